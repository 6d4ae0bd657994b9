"""The data of an experiment in one folder: treebanks for testing, translated text for learning.

    DIR/ud/UD_German-GSD/de_gsd-ud-test.conllu …     as `subdp data ud` writes them
    DIR/bitext/ntrex/en.txt, de.txt …                line N translates line N
    DIR/bitext/tatoeba/en-de.tsv …                   English TAB translation; other bitext in either format, or .tsv.gz

Of a treebank without a dev set, such as PUD, the first half of the test set is dev and the second half is test. Where
that is PUD, it is left out of the bitext, so that no test sentence is trained on. Imports no torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from subdp.corpus.bitext import Bitext, read_bitext
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.experiments.languages import LANGUAGES, Language, folder_of
from subdp.support.errors import SubdpError

Split = Literal["train", "dev", "test", "pool", "rest"]
"""Every other tree of a dev set is in its pool, from which trees to train on are drawn; the others are the rest."""


@dataclass(frozen=True, slots=True)
class Corpora:
    """A folder of treebanks and bitext.

    `parts` names the folders of bitext to read, `pud` for the parallel treebanks; `tatoeba` limits Tatoeba's pairs.
    """

    folder: Path
    parts: tuple[str, ...]
    tatoeba: int
    languages: Mapping[str, Language] = field(default_factory=lambda: LANGUAGES)

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise SubdpError("no such folder", where=str(self.folder), hint="check the path")
        if not (self.folder / "ud").is_dir():
            raise SubdpError("holds no folder ud/", where=str(self.folder), hint="`subdp data ud` fetches treebanks")

    def survey(self, targets: Iterable[str], sources: Iterable[str]) -> list[str]:
        """Look for all data of these languages before work begins: an error if some is missing.

        Returns what is unusual about it: treebanks that stand in for others, or have no dev set.
        """
        targets, sources = list(targets), list(sources)
        treebanks = {name: self._treebanks(name) for name in dict.fromkeys((*targets, *sources)) if name != "en"}
        self._check([treebank for found in treebanks.values() for treebank in found])
        for target in targets:
            for source in sources:
                if source != target:
                    self._bitext_files(source, target)
        notes = []
        for name, found in treebanks.items():
            if found != self._language(name).treebanks:
                notes.append(f"{name}: {', '.join(self._language(name).treebanks)} is missing, {found[0]} stands in")
            notes += [
                f"{name}: {treebank} has no dev set, the first half of its test set is taken as dev"
                for treebank in found
                if not self._files(treebank, "dev")
            ]
        return notes

    def gold(self, language: str, split: Split, most: int | None = None) -> list[Sentence]:
        """The gold trees of a language; at most `most` of them, spread evenly over its treebanks."""
        if split in ("pool", "rest"):
            return _spread(self.gold(language, "dev")[0 if split == "pool" else 1 :: 2], most)
        found: list[Sentence] = []
        for treebank in self._treebanks(language):
            self._check([treebank])
            found += self._part(treebank, split)
        return _spread(found, most)

    def bitext(self, language: str, source: str = "en") -> Bitext:
        """All translated text from one language into another, cleaned, in a fixed order."""
        first, *others = self._read(source, language)
        whole = sum(others, start=first)
        clean = whole.clean(language)
        # Line numbers of the original files do not fit the files of links, which are made for the clean pairs.
        return clean.with_pairs(replace(pair, id=None, line=None) for pair in clean)

    def _read(self, source: str, target: str) -> Iterator[Bitext]:
        for part, files in self._bitext_files(source, target).items():
            pairs = read_bitext(*files)
            yield pairs.sample(min(self.tatoeba, len(pairs)), seed=0) if part == "tatoeba" else pairs

    def _bitext_files(self, source: str, target: str) -> dict[str, tuple[Path, ...]]:
        """The files of each part that has this pair of languages: one table, or two parallel files."""
        own = self._language(target).bitext
        parts = self.parts if own is None else own
        found = {part: files for part in parts if (files := self._part_files(part, source, target))}
        if not found:
            hint = f"looked for {source}-{target}.tsv, or {source}.txt and {target}.txt, in {', '.join(parts)}"
            reason = f"has no bitext from {source} into {target}"
            raise SubdpError(reason, where=str(self.folder / "bitext"), hint=hint)
        return found

    def _part_files(self, part: str, source: str, target: str) -> tuple[Path, ...]:
        if part == "pud":
            puds = [self._language(name).pud for name in (source, target)]
            files = [path for pud in puds for path in self._files(pud, "test")]
            tested = puds[1] in map(folder_of, self._treebanks(target))
            return tuple(files) if len(files) == 2 and not tested else ()
        folder = self.folder / "bitext" / part
        tables = [folder / f"{source}-{target}.tsv", folder / f"{source}-{target}.tsv.gz"]
        lines = (folder / f"{source}.txt", folder / f"{target}.txt")
        for choice in (*((table,) for table in tables), lines):
            if all(file.exists() for file in choice):
                return choice
        return ()

    def _language(self, name: str) -> Language:
        if name not in self.languages:
            known = ", ".join(self.languages)
            hint = f"describe it in the configuration file as [languages.{name}]; known languages are {known}"
            raise SubdpError(f"the language {name!r} is not described", hint=hint)
        return self.languages[name]

    def _treebanks(self, name: str) -> tuple[str, ...]:
        """The treebanks of a language, or the one that stands in for them."""
        language = self._language(name)
        missing = not any(self._files(treebank, "test") for treebank in language.treebanks)
        return (language.stand_in,) if language.stand_in and missing else language.treebanks

    def _check(self, treebanks: Sequence[str]) -> None:
        """Raise if a treebank is missing, with the command that fetches all that are."""
        folder = self.folder / "ud"
        if missing := [treebank for treebank in dict.fromkeys(treebanks) if not self._files(treebank, "test")]:
            hint = f"to fetch: subdp data ud {' '.join(missing)} -o {folder}"
            raise SubdpError(f"has no test set of {', '.join(missing)}", where=str(folder), hint=hint)

    def _part(self, treebank: str, split: Split) -> list[Sentence]:
        halved = split != "train" and not self._files(treebank, "dev")
        paths = self._files(treebank, "test" if halved else split)
        sentences = [sentence for path in paths for sentence in read_conllu(path)]
        middle = len(sentences) // 2
        return sentences if not halved else sentences[middle:] if split == "test" else sentences[:middle]

    def _files(self, treebank: str, split: Split) -> list[Path]:
        return sorted(self.folder.glob(f"ud/{folder_of(treebank)}/*-ud-{split}.conllu"))


def _spread(sentences: list[Sentence], most: int | None) -> list[Sentence]:
    """At most this many sentences, evenly from all treebanks of a language and not only from the first."""
    if most is None or len(sentences) <= most:
        return sentences
    return [sentences[index * len(sentences) // most] for index in range(most)]
