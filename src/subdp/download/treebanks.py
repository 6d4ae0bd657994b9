"""Official Universal Dependencies treebanks: downloaded from their repositories, or copied from a folder, and checked.

    for treebank in fetch_treebanks(["en_ewt", "de_gsd"], Path("data/ud"), release="2.2"):
        print(treebank)              # data/ud/UD_English-EWT: 16,622 sentences (train 12,543, dev 2,002, test 2,077)

`subdp experiment --data data` then finds them. Existing files are kept, so that an interrupted call can be resumed.
Imports no torch.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from subdp.corpus.treebank import read_conllu
from subdp.download.ud_names import PARTS, UD_URL, TreebankName, find_treebank
from subdp.download.web import check_url, download, pour
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_output, open_text_output

PAPER_RELEASE = "2.2"
"""The release that the paper uses."""

SPLITS = ("train", "dev", "test")
LICENCE, RELEASE = "LICENSE.txt", "RELEASE.txt"

_OR_COPY = "try again, or use --from DIR to copy from a folder that holds UD_* folders"


@dataclass(frozen=True, slots=True)
class FetchedTreebank:
    """A treebank on disk: the sentences in each split, the splits that existed already, and notes for the user."""

    folder: Path
    sentences: dict[str, int]
    kept: tuple[str, ...]
    notes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The same values, for JSON."""
        return {
            "folder": str(self.folder),
            "sentences": self.sentences,
            "kept": list(self.kept),
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        counts = ", ".join(f"{split} {count:,}" for split, count in self.sentences.items())
        line = f"{self.folder}: {counted(sum(self.sentences.values()), 'sentence')} ({counts})"
        kept = [f"{', '.join(self.kept)} already there"] if self.kept else []
        return "; ".join([line, *kept, *self.notes])


def fetch_treebanks(
    names: Iterable[str],
    output: Path,
    *,
    release: str | None = None,
    url: str = UD_URL,
    source: Path | None = None,
) -> Iterator[FetchedTreebank]:
    """Download treebanks into `output` one by one, or copy them from a folder `source` that holds `UD_*` folders.

    A file gets its name only once it is complete and valid CoNLL-U. A missing split is not an error; a treebank with
    no split at all is. The default `release` is 2.2, the paper's.
    """
    if release is not None and not re.fullmatch(r"\d+\.\d+", release):
        raise SubdpError(f"{release!r} is not a release", hint="releases look like 2.2 or 2.15")
    if source is not None and not source.is_dir():
        raise SubdpError("no such folder", where=str(source), hint="give the folder that holds the UD_* folders")
    url = check_url(url, "URLs start with https://; use --from for a folder")
    treebanks = dict.fromkeys(map(find_treebank, names))
    if source is None:
        tag = release or PAPER_RELEASE
        origins = [_Origin(f"{url}/{treebank.folder}/r{tag}", tag) for treebank in treebanks]
    else:
        origins = [_folder_origin(source / treebank.folder, release) for treebank in treebanks]
    return (
        _fetch(origin, treebank, output / treebank.folder) for origin, treebank in zip(origins, treebanks, strict=True)
    )


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where the files of one treebank come from: a folder or URL, and the release if it is known."""

    place: str
    release: str | None

    def copy(self, file: str, to: IO[bytes]) -> bool:
        """Copy a file; False if there is none."""
        place = f"{self.place}/{file}"
        if "://" in place:  # no path has that
            return download(place, to, hint=_OR_COPY)
        path = Path(place)
        if path.is_file():
            with path.open("rb") as stream:
                pour(stream, to, path.stat().st_size, place)
        return path.is_file()


def _folder_origin(folder: Path, release: str | None) -> _Origin:
    noted = _read_note(folder).release
    if noted is not None and release not in (None, noted):
        raise SubdpError(f"this is release {noted}, not {release}", where=str(folder), hint="leave out --release")
    return _Origin(str(folder), release or noted)


def _fetch(origin: _Origin, treebank: TreebankName, folder: Path) -> FetchedTreebank:
    """Fetch the missing splits of one treebank, and its licence."""
    noted = _read_note(folder)
    if noted.release is not None and origin.release not in (None, noted.release):
        hint = "choose another folder with --output, or delete this one"
        raise SubdpError(f"this is release {noted.release}, not {origin.release}", where=str(folder), hint=hint)
    files = {split: folder / f"{treebank.code}-ud-{split}.conllu" for split in SPLITS}
    kept = {split: content for split, file in files.items() if (content := _content_of(file))}
    found = dict(kept)
    if not noted.splits or not all(split in kept for split in noted.splits):
        for split in SPLITS:
            if split not in kept and (content := _fetch_split(origin, treebank, split, files[split])):
                found[split] = content
        if not found:
            where = f"{origin.place}/{treebank.code}-ud-test.conllu"
            raise SubdpError("no such treebank: it has no train, dev or test file", where=where, hint=_ADVICE)
        _fetch_licence(origin, folder)
        if (release := _read_note(folder).release) is not None:
            _write_note(folder, release, found)
    bare = [split for split, content in found.items() if not content.has_words]
    notes = {
        f"no {', '.join(split for split in SPLITS if split not in found)}": len(found) < len(SPLITS),
        "release unknown": bool(kept) and noted.release is None,
        f"{', '.join(bare)} without words, because the licence does not allow the text to be distributed": bool(bare),
        f"no {LICENCE}": not (folder / LICENCE).exists(),
    }
    counts = {split: found[split].sentences for split in SPLITS if split in found}
    return FetchedTreebank(folder, counts, tuple(kept), tuple(note for note, holds in notes.items() if holds))


_ADVICE = "is it part of this release? if its name has an unusual spelling, give the full one, such as UD_English-EWT"


def _fetch_split(origin: _Origin, treebank: TreebankName, split: str, file: Path) -> _Content | None:
    """Fetch one split, check that it is complete CoNLL-U, and only then give it its name."""
    with tempfile.TemporaryFile() as data:
        place = _copy_split(origin, treebank, split, data)
        if place is None:
            return None
        data.seek(0)
        try:
            content = _read(data)
        except SubdpError as error:
            hint = "the file is not complete CoNLL-U; try again"
            raise SubdpError(error.reason, where=place, line=error.line, hint=hint) from None
        file.parent.mkdir(parents=True, exist_ok=True)
        if origin.release is not None and not any(file.parent.glob("*.conllu")):
            _write_note(file.parent, origin.release)
        data.seek(0)
        with open_output(file) as output:
            shutil.copyfileobj(data, output)
        return content


def _copy_split(origin: _Origin, treebank: TreebankName, split: str, to: IO[bytes]) -> str | None:
    """Copy a split from its file, or from its parts one after the other; returns where it was found."""
    # Before release 2.2 the first treebank of a language had no name in its files: en-ud-train.conllu.
    for code in (treebank.code, treebank.language):
        if origin.copy(f"{code}-ud-{split}.conllu", to):
            return f"{origin.place}/{code}-ud-{split}.conllu"
    parts = [f"{treebank.code}-ud-train-{part}.conllu" for part in PARTS.get(treebank.code, ()) if split == "train"]
    missing = [part for part in parts if not origin.copy(part, to)]
    if missing == parts:
        return None
    if missing:
        hint = "unpack the whole release and use --from DIR to copy from it"
        raise SubdpError("one part of the file is missing", where=f"{origin.place}/{missing[0]}", hint=hint)
    return f"{origin.place}/{parts[0]}"


def _fetch_licence(origin: _Origin, folder: Path) -> None:
    """Fetch the licence, if there is one."""
    with tempfile.TemporaryFile() as data:
        if not (folder / LICENCE).exists() and origin.copy(LICENCE, data):
            data.seek(0)
            with open_output(folder / LICENCE) as output:
                shutil.copyfileobj(data, output)


@dataclass(frozen=True, slots=True)
class _Content:
    """The content of a file: the number of sentences, and whether it has words, which some treebanks replace by `_`."""

    sentences: int
    has_words: bool


def _read(source: Path | IO[bytes]) -> _Content:
    sentences, has_words = 0, False
    for sentence in read_conllu(source, any_roots=True):
        sentences += 1
        has_words = has_words or any(word != "_" for word in sentence.words)
    return _Content(sentences, has_words)


def _content_of(file: Path) -> _Content | None:
    """The content of an existing file; None if there is none, or a broken one, which is fetched again."""
    try:
        return _read(file) if file.exists() else None
    except SubdpError:
        return None


@dataclass(frozen=True, slots=True)
class _Note:
    """A note kept next to the files: their release and, once all are fetched, which splits the treebank has."""

    release: str | None
    splits: tuple[str, ...] = ()


def _read_note(folder: Path) -> _Note:
    file = folder / RELEASE
    words = file.read_text(encoding="utf-8").split() if file.is_file() else []
    return _Note(words[0], tuple(words[1:])) if words else _Note(None)


def _write_note(folder: Path, release: str, splits: Iterable[str] = ()) -> None:
    with open_text_output(folder / RELEASE) as write:
        write(f"{' '.join([release, *splits])}\n")
