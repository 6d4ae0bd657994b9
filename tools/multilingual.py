"""Make the multilingual parser that comes with subdp: the English one, adapted to many languages at once.

    subdp data ntrex $(python tools/multilingual.py --languages) -o NTREX
    python tools/multilingual.py --ntrex NTREX --treebank en_ewt-ud-train.conllu -o src/subdp/network/models/multi

The languages are those of NTREX-128 that the encoder knows (XLM-R's) and subdp can cut into words. Every one has the
same number of pairs, drawn at random, separately for each, so that no language and no sentence dominates.
No gold tree of any of them is used. It needs the tokenizers: pip install 'subdp[zh,ja,th,vi]'.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from subdp import Parser, read_bitext, read_conllu
from subdp.network.hub import SHIPPED

LANGUAGES = """
afr amh arb aze-Latn bel ben bos bul cat ces cym dan deu ell est eus fas fil fin fra gle glg guj hau heb hin hrv hun hye
ind isl ita jpn kan kat kaz kir kmr kor lav lit mal mar mkd mlg mon msa nep nld nno nob orm pan pol por pus ron rus sin
slk slv snd-Arab som spa sqi srp-Cyrl swa swe tam tel tha tur uig ukr urd uzb vie xho zho-CN zho-TW
""".split()
PAIRS = 300  # of each language
ENGLISH = 6000  # sentences of the treebank, a quarter as many as pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", action="store_true", help="print the languages, and stop")
    parser.add_argument("--leave-out", nargs="*", default=[], help="languages to do without, to test on them")
    parser.add_argument("--ntrex", type=Path, help="folder with en.txt, afr.txt, …")
    parser.add_argument("--treebank", help="the treebank that the English parser was trained on")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    if options.languages:
        print(*LANGUAGES)
        return
    if None in (options.ntrex, options.treebank, options.output):
        parser.error("--ntrex, --treebank and --output are needed")
    Parser.check_folder(options.output)
    english = Parser.load(SHIPPED)
    languages = [name for name in LANGUAGES if name not in options.leave_out]
    silvers = []
    for number, name in enumerate(languages):
        pairs = read_bitext(options.ntrex / "en.txt", options.ntrex / f"{name}.txt").clean()
        silvers.append(english.project(pairs.sample(min(PAIRS, len(pairs)), seed=number)))
        print(f"{number + 1} of {len(languages)}: {name}", flush=True)
    trees = random.Random(0).sample(list(read_conllu(options.treebank)), ENGLISH)
    about = {
        "title": f"Multilingual dependency parser ({len(languages)} languages of NTREX-128, UD English EWT 2.2)",
        "licence": "CC BY-SA 4.0, as NTREX-128 and the treebank",
        "language": "multilingual",
        "languages": languages,
    }
    english.adapt_to_many(silvers, [tree.words for tree in trees], seed=1, about=about).save(options.output, half=True)


if __name__ == "__main__":
    main()
