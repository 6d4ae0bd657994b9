"""Make the multilingual parser that comes with subdp: the English one, adapted to many languages at once.

    subdp data ntrex $(python tools/multilingual.py --languages) -o NTREX
    python tools/multilingual.py --ntrex NTREX --treebank en_ewt-ud-train.conllu -o src/subdp/network/models/multi

The languages are those of NTREX-128 that the encoder knows (XLM-R's) and subdp can cut into words. Every one has the
same number of pairs, drawn at random, separately for each, so that no language and no sentence dominates.
No gold tree of any of them is used. There are two rounds: in the second, what the first one made is the teacher, which
is nearer to most of the languages than the English parser is. It takes an hour on two cores, and 20 GB of the cache;
what the first round made is kept, and not made again.
It needs the tokenizers: pip install 'subdp[zh,ja,th,vi]'.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from subdp import Parser, read_bitext, read_conllu
from subdp.network.hub import SHIPPED
from subdp.projection.silver import Silver
from subdp.support.settings import Settings

LANGUAGES = """
afr amh arb aze-Latn bel ben bos bul cat ces cym dan deu ell est eus fas fil fin fra gle glg guj hau heb hin hrv hun hye
ind isl ita jpn kan kat kaz kir kmr kor lav lit mal mar mkd mlg mon msa nep nld nno nob orm pan pol por pus ron rus sin
slk slv snd-Arab som spa sqi srp-Cyrl swa swe tam tel tha tur uig ukr urd uzb vie xho zho-CN zho-TW
""".split()
ROUNDS = ((300, 4), (600, 3))  # pairs of each language, and epochs
ENGLISH = 6000  # sentences of the treebank: a quarter as many as there are pairs in the first round


def main() -> None:
    flags = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    flags.add_argument("--languages", action="store_true", help="print the languages, and stop")
    flags.add_argument("--leave-out", nargs="*", default=[], help="languages to do without, to test on them")
    flags.add_argument("--ntrex", type=Path, help="folder with en.txt, afr.txt, …")
    flags.add_argument("--treebank", help="the treebank that the English parser was trained on")
    flags.add_argument(
        "--first", type=Path, default=Path("build/multilingual"), help="where the first round's parser is kept"
    )
    flags.add_argument("-o", "--output", type=Path)
    options = flags.parse_args()
    if options.languages:
        print(*LANGUAGES)
        return
    if None in (options.ntrex, options.treebank, options.output):
        flags.error("--ntrex, --treebank and --output are needed")
    Parser.check_folder(options.output)
    english = Parser.load(SHIPPED)
    languages = [name for name in LANGUAGES if name not in options.leave_out]
    trees = random.Random(0).sample(list(read_conllu(options.treebank)), ENGLISH)
    about = {
        "title": f"Multilingual dependency parser ({len(languages)} languages of NTREX-128, UD English EWT 2.2)",
        "licence": "CC BY-SA 4.0, as NTREX-128 and the treebank",
        "language": "multilingual",
        "languages": languages,
    }

    def one_round(parser: Parser, pairs: int, epochs: int) -> Parser:
        silvers = [projected(english, options.ntrex, name, pairs) for name in languages]
        settings, text = Settings.resolve(flags={"adapt": {"epochs": epochs}}), [tree.words for tree in trees]
        return parser.adapt_to_many(silvers, text, source=english, settings=settings, seed=1, about=about)

    if not options.first.is_dir():
        one_round(english, *ROUNDS[0]).save(options.first, half=True)
    first = Parser.load(options.first, encoder=english.encoder)
    if first.about["languages"] != languages or first.about["adapted_from"] != english.about:
        flags.error(f"{options.first} was made from other languages or another English parser: remove it")
    one_round(first, *ROUNDS[1]).save(options.output, half=True)


def projected(english: Parser, ntrex: Path, language: str, most: int) -> Silver:
    """Silver of some pairs of a language, drawn at random."""
    pairs = read_bitext(ntrex / "en.txt", ntrex / f"{language}.txt").clean()
    print(f"{language}: {min(most, len(pairs))} pairs", flush=True)
    return english.project(pairs.sample(min(most, len(pairs)), seed=LANGUAGES.index(language)))


if __name__ == "__main__":
    main()
