"""The data of the paper's experiments in one folder: treebanks for testing, translated text for learning.

    DIR/ud/UD_German-GSD/de_gsd-ud-test.conllu …     as `subdp data ud` writes them
    DIR/bitext/ntrex/en.txt, de.txt …                line N translates line N
    DIR/bitext/tatoeba/en-de.tsv …                   English TAB translation; other bitext in either format

Languages without a test treebank of their own here are tested on one half of PUD, with the other half as dev; PUD is
then left out of their bitext, so that no test sentence is trained on. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from subdp.corpus.bitext import Bitext, read_bitext
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.support.errors import SubdpError

Split = Literal["train", "dev", "test", "pool", "rest"]
"""Every other tree of a dev set is in its pool, from which trees to train on are drawn; the others are the rest."""
_NAMES = {
    "ar": "Arabic", "de": "German", "en": "English", "es": "Spanish", "fr": "French",
    "hi": "Hindi", "it": "Italian", "ko": "Korean", "tr": "Turkish",
}  # fmt: skip
_TREEBANKS = {
    "ar": ("PADT",), "de": ("GSD",), "en": ("EWT",), "es": ("GSD", "AnCora"), "fr": ("GSD",),
    "hi": ("HDTB",), "it": ("ISDT",), "ko": ("GSD", "Kaist"), "tr": ("IMST",),
}  # fmt: skip
LANGUAGES = ("ar", "hi", "ko", "tr", "de", "es", "fr", "it")
"""The paper's eight target languages in the order of its table: four distant from English, four close to it."""


@dataclass(frozen=True, slots=True)
class Corpora:
    """A folder of treebanks and bitext.

    `parts` names the folders of bitext to read, `pud` for the parallel treebanks; `tatoeba` limits Tatoeba's pairs.
    """

    folder: Path
    parts: tuple[str, ...]
    tatoeba: int

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise SubdpError("no such folder", where=str(self.folder), hint="check the path")
        if not (self.folder / "ud").is_dir():
            raise SubdpError("holds no folder ud/", where=str(self.folder), hint="`subdp data ud` fetches treebanks")

    def gold(self, language: str, split: Split, most: int | None = None) -> list[Sentence]:
        """The gold trees of a language; at most `most` of them, spread evenly over its treebanks."""
        if split in ("pool", "rest"):
            return _spread(self.gold(language, "dev")[0 if split == "pool" else 1 :: 2], most)
        if not self._has_own_treebank(language):
            paths = self._files(language, "PUD", "test")
            if not paths:
                raise SubdpError(f"has no treebank of {_NAMES[language]}", where=str(self.folder / "ud"))
            sentences = [sentence for path in paths for sentence in read_conllu(path)]
            middle = len(sentences) // 2
            return (sentences[middle:] if split == "test" else sentences[:middle])[:most]
        found: list[Sentence] = []
        for name in _TREEBANKS[language]:
            paths = self._files(language, name, split)
            if not paths and split != "train":
                where = str(self.folder / "ud" / f"UD_{_NAMES[language]}-{name}")
                raise SubdpError(f"has no {split} part", where=where, hint="`subdp data ud` fetches treebanks")
            found += [sentence for path in paths for sentence in read_conllu(path)]
        return _spread(found, most)

    def bitext(self, language: str, source: str = "en") -> Bitext:
        """All translated text from one language into another, cleaned, in a fixed order."""
        parts = list(self._parts(source, language))
        if not parts:
            raise SubdpError(f"has no bitext from {source} into {language}", where=str(self.folder / "bitext"))
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part
        clean = whole.clean(language)
        # Line numbers of the original files do not fit the files of links, which are made for the clean pairs.
        return replace(clean, pairs=tuple(replace(pair, id=None, line=None) for pair in clean))

    def _parts(self, source: str, target: str) -> Iterator[Bitext]:
        for part in self.parts:
            folder = self.folder / "bitext" / part
            table, lines = folder / f"{source}-{target}.tsv", (folder / f"{source}.txt", folder / f"{target}.txt")
            if part == "pud":
                files = [self._files(language, "PUD", "test") for language in (source, target)]
                if all(files) and self._has_own_treebank(target):
                    yield read_bitext(files[0][0], files[1][0])
            elif table.exists():
                pairs = read_bitext(table)
                yield pairs.sample(min(self.tatoeba, len(pairs)), seed=0) if part == "tatoeba" else pairs
            elif all(file.exists() for file in lines):
                yield read_bitext(*lines)

    def _has_own_treebank(self, language: str) -> bool:
        if language not in _NAMES:
            raise SubdpError(f"there is no experiment for the language {language!r}", hint=", ".join(LANGUAGES))
        return any(self._files(language, name, "test") for name in _TREEBANKS[language])

    def _files(self, language: str, treebank: str, split: Split) -> list[Path]:
        return sorted(self.folder.glob(f"ud/UD_{_NAMES[language]}-{treebank}/*-ud-{split}.conllu"))


def _spread(sentences: list[Sentence], most: int | None) -> list[Sentence]:
    """At most so many sentences, evenly from all treebanks of a language and not only from the first."""
    if most is None or len(sentences) <= most:
        return sentences
    return [sentences[index * len(sentences) // most] for index in range(most)]
