"""How much SubDP gains over direct transfer: English parser → NTREX + PUD pairs → target parser, scored on UD.

    python benchmarks/transfer.py --data DATA --languages de,tr --losses default,paper --output transfer.jsonl

DATA holds `ud/` (UD 2.2) and `bitext/ntrex/`. The source parser is the shipped one; the encoder is the bundled one, not
the paper's XLM-R. Arabic and Hindi have no other gold trees than PUD: there the bitext is NTREX alone, PUD's first half
is dev and its second half test. A cell that is in the output file already is not computed again.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from subdp.bitext import Bitext, read_bitext
from subdp.config import SHIPPED, Settings
from subdp.parser import Parser
from subdp.similarity import find_aligner
from subdp.treebank import Sentence, read_conllu

NAMES = {
    "ar": "Arabic", "de": "German", "es": "Spanish", "fr": "French",
    "hi": "Hindi", "it": "Italian", "ko": "Korean", "tr": "Turkish",
}  # fmt: skip
GOLD = {"de": ["GSD"], "es": ["GSD", "AnCora"], "fr": ["GSD"], "it": ["ISDT"], "ko": ["GSD", "Kaist"], "tr": ["IMST"]}


def gold(data: Path, language: str, split: str) -> list[Sentence]:
    """The gold trees of a language: its dev or its test part."""
    if language not in GOLD:
        (path,) = data.glob(f"ud/UD_{NAMES[language]}-PUD/*.conllu")
        sentences = list(read_conllu(path))
        middle = len(sentences) // 2
        return sentences[:middle] if split == "dev" else sentences[middle:]
    paths = [next(data.glob(f"ud/UD_{NAMES[language]}-{name}/*-{split}.conllu")) for name in GOLD[language]]
    return [sentence for path in paths for sentence in read_conllu(path)]


def bitext(data: Path, language: str) -> Bitext:
    """NTREX, and PUD where it is not the test set; cleaned."""
    pairs = read_bitext(data / "bitext/ntrex/en.txt", data / f"bitext/ntrex/{language}.txt")
    if language in GOLD:
        english, other = (next(data.glob(f"ud/UD_{name}-PUD/*.conllu")) for name in ("English", NAMES[language]))
        pairs = pairs + read_bitext(english, other)
    return pairs.clean(language)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=Path, required=True)
    options.add_argument("--languages", default="de,tr,hi,ko")
    options.add_argument("--losses", default="default,paper", help="names, or name:setting=value+setting=value")
    options.add_argument("--aligner", default="argmax")
    options.add_argument("--one-to-one", action="store_true")
    options.add_argument("--split", default="test", choices=["dev", "test"])
    options.add_argument("--most", type=int, help="score only the first so many gold sentences of each language")
    options.add_argument("--adapt", default="", help="setting=value+setting=value of the training")
    options.add_argument("--seeds", default="1")
    options.add_argument("--parser", type=Path, default=SHIPPED)
    options.add_argument("--output", type=Path, required=True)
    arguments = options.parse_args()
    parser = Parser.load(arguments.parser)
    done = [json.loads(line) for line in arguments.output.read_text().splitlines()] if arguments.output.exists() else []

    def cell(key: dict[str, object]) -> bool:
        return any(key.items() <= row.items() for row in done)

    def keep(row: dict[str, object]) -> None:
        print(json.dumps(row), flush=True)
        with arguments.output.open("a") as stream:
            stream.write(json.dumps(row) + "\n")

    for language in arguments.languages.split(","):
        trees = gold(arguments.data, language, arguments.split)[: arguments.most]
        base: dict[str, object] = {"language": language, "split": arguments.split, "parser": parser.fingerprint}
        if not cell({**base, "losses": "direct"}):
            scores = parser.evaluate(trees)
            keep({**base, "losses": "direct", "uas": scores.uas, "las": scores.las, "label": scores.label_accuracy})
        silver = None
        for losses in arguments.losses.split(","):
            for seed in map(int, arguments.seeds.split(",")):
                links = arguments.aligner + (" 1:1" if arguments.one_to_one else "")
                key = {**base, "losses": losses, "adapt": arguments.adapt, "aligner": links, "seed": seed}
                if cell(key):
                    continue
                if silver is None:
                    aligner = find_aligner(arguments.aligner, parser.encoder, one_to_one=arguments.one_to_one)
                    silver = parser.project(bitext(arguments.data, language), aligner=aligner)
                name, _, changes = losses.partition(":")
                flags = {
                    "losses": dict(item.split("=") for item in changes.split("+") if item),
                    "adapt": dict(item.split("=") for item in arguments.adapt.split("+") if item),
                }
                start = time.perf_counter()
                settings = Settings.resolve("small", name, flags=flags)
                adapted = parser.adapt(silver, settings=settings, seed=seed)
                seconds = time.perf_counter() - start
                scores = adapted.evaluate(trees)
                row = {"uas": scores.uas, "las": scores.las, "label": scores.label_accuracy, "pairs": len(silver)}
                more = {"epochs": adapted.about["epochs"], "best_epoch": adapted.about["best_epoch"]}
                trust = {"agreement": adapted.about["agreement"], "seconds": round(seconds)}
                keep({**key, **row, **more, **trust, "settings": asdict(settings.losses)})


if __name__ == "__main__":
    main()
