"""Published bitext, as `subdp experiment` and `subdp run` read it: NTREX-128, the Tatoeba Challenge, WikiMatrix.

    for file in fetch_wikimatrix(["en-de"], Path("data/bitext/wikimatrix")):
        print(file)                  # data/bitext/wikimatrix/en-de.tsv: 1,573,438 lines

A file that is there already is kept, whatever is in it. An interrupted call is resumed by the same call. Imports no
torch.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

from subdp.download.github import GitHubFolder
from subdp.download.web import check_url, download, download_file
from subdp.support.errors import SubdpError, counted
from subdp.support.files import open_input, open_text_output, read_lines
from subdp.support.languages import spellings

NTREX = ("MicrosoftTranslator/NTREX", "8561f6a622db9edad1217683e5c83daefd8bb2bf", "NTREX-128")
TATOEBA = ("Helsinki-NLP/Tatoeba-Challenge", "d34a89ac102fd236503a1911dd1050564bf4e682")
TATOEBA_RELEASE = "v2023-09-26"
WIKIMATRIX_URL = "https://object.pouta.csc.fi/OPUS-WikiMatrix"
"""Where OPUS has WikiMatrix: the pairs with a margin score of 1.04 or more."""

_PAIR = re.compile(r"([A-Za-z_]+)-([A-Za-z_]+)")
# The Tatoeba Challenge names archives by macrolanguage; `spellings` does not lead from these languages to theirs.
_MACROLANGUAGES = {"ind": "msa", "zsm": "msa", "nno": "nor", "cmn": "zho", "yue": "zho", "lzh": "zho", "mhr": "chm"}
_NTREX_SOURCE, _NTREX_TARGET = "newstest2019-src.eng.txt", re.compile(r"newstest2019-ref\.(.+)\.txt")


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file on disk, how many lines it has, and whether it existed already."""

    path: Path
    lines: int
    kept: bool

    def as_dict(self) -> dict[str, Any]:
        """The same values, for JSON."""
        return {"path": str(self.path), "lines": self.lines, "kept": self.kept}

    def __str__(self) -> str:
        return f"{self.path}: {counted(self.lines, 'line')}{'; already there' if self.kept else ''}"


def fetch_ntrex(languages: Iterable[str], output: Path, *, url: str | None = None) -> Iterator[FetchedFile]:
    """Download English and its translations into these languages (`de`, `deu`, `fra-CA`): line N translates line N.

    The files are `en.txt`, `de.txt` and so on in the folder `output`.
    """
    folder = GitHubFolder(*NTREX, url)
    wanted = dict.fromkeys(["en", *languages])
    missing = {language: _ntrex_name(folder, language) for language in wanted if not _file(output, language).exists()}
    for language in wanted:
        file = _file(output, language)
        if language in missing:
            folder.fetch(missing[language], file)
        yield _fetched(file, kept=language not in missing)


def _file(output: Path, language: str) -> Path:
    if not re.fullmatch(r"\w+(-\w+)*", language):
        raise SubdpError(f"{language!r} is not a language", hint="write de, or deu")
    return output / f"{language}.txt"


def _ntrex_name(folder: GitHubFolder, language: str) -> str:
    """The name of a language's file: the one of the language itself, or else of its first script or country."""
    if language == "en":
        return _NTREX_SOURCE
    # In the order of the codes, so that fra comes before fra-CA; their files are in the opposite order.
    names = dict(sorted((match[1], name) for name in folder.hashes if (match := _NTREX_TARGET.fullmatch(name))))
    for spelling in spellings(language):
        for code, name in names.items():
            if code == spelling or code.startswith(f"{spelling}-"):
                return name
    raise SubdpError(f"NTREX-128 has no language {language!r}", hint=f"it has {', '.join(names)}")


def fetch_tatoeba(
    pairs: Iterable[str], output: Path, *, release: str = TATOEBA_RELEASE, url: str | None = None
) -> Iterator[FetchedFile]:
    """Download the development and test sets of a release of the Tatoeba Challenge: `en-de.tsv`, source TAB target.

    Its training sets are left out: they are all of OPUS. So are rows in other languages of the same macrolanguage, such
    as Indonesian in the archive that has Malay.
    """
    if not re.fullmatch(r"v\d{4}-\d\d-\d\d", release):
        raise SubdpError(f"{release!r} is not a release", hint=f"releases look like {TATOEBA_RELEASE}")
    repository, commit = TATOEBA
    folders = {
        part: GitHubFolder(repository, commit, f"data/release/{part}/{release}", url) for part in ("dev", "test")
    }
    files = {output / f"{pair}.tsv": _languages(pair) for pair in pairs}
    missing = {file: _tatoeba_archives(folders, release, *files[file]) for file in files if not file.exists()}
    for file, languages in files.items():
        if listed := missing.get(file):
            archives = {output / name: turned for _, name, turned in listed}
            for (part, name, _), archive in zip(listed, archives, strict=True):
                if not archive.exists():
                    folders[part].fetch(name, archive)
            _write(file, _tatoeba_rows(archives, *languages), archives)
        yield _fetched(file, kept=file not in missing)


def _tatoeba_archives(
    folders: dict[str, GitHubFolder], release: str, source: str, target: str
) -> list[tuple[str, str, bool]]:
    """The archives of a pair: for each its part (dev or test), its name, and whether it has the target first."""
    ours, theirs = _tatoeba_codes(source), _tatoeba_codes(target)
    found: list[tuple[str, str, bool]] = []
    for part, folder in folders.items():
        for one, other in product(ours, theirs):
            turns = {f"{other}-{one}": True, f"{one}-{other}": False}
            names = {f"tatoeba-{part}-{release}.{pair}.txt.gz": turned for pair, turned in turns.items()}
            if there := [(part, name, turned) for name, turned in names.items() if name in folder.hashes]:
                found += there
                break
    if not found:
        every = (name.split(".")[1].split("-") for folder in folders.values() for name in folder.hashes if "-" in name)
        raise _no_pair(f"the Tatoeba Challenge {release}", ours[0], theirs[0], every)
    return found


def _tatoeba_codes(language: str) -> list[str]:
    """The codes that a language may have in the names of archives, its own first."""
    own = [code for code in spellings(language) if len(code) == 3] or [language]
    return own + [_MACROLANGUAGES[code] for code in own if code in _MACROLANGUAGES]


def _tatoeba_rows(archives: Mapping[Path, bool], source: str, target: str) -> Iterator[tuple[str, str]]:
    """The rows in the two languages; the archive of a macrolanguage has others too, and codes in each row."""
    ours, theirs = set(spellings(source)), set(spellings(target))
    kept = False
    others: set[str] = set()
    for archive, turned in archives.items():
        one, other = (1, 0) if turned else (0, 1)
        for number, line in read_lines(archive):
            cells = line.split("\t")
            if len(cells) != 4:
                raise SubdpError(f"{len(cells)} columns instead of 4", where=str(archive), line=number, hint=_REMOVE)
            # The first three letters are the language, the rest is the script: cmn_Hans.
            if {cells[one], cells[one][:3]} & ours and {cells[other], cells[other][:3]} & theirs:
                kept = True
                yield cells[2 + one], cells[2 + other]
            else:
                others.add(f"{cells[one][:3]}-{cells[other][:3]}")
    if not kept:
        hint = f"its archives have {', '.join(sorted(others))}"
        raise SubdpError(f"the Tatoeba Challenge has no row in {source}-{target}", hint=hint)


def fetch_wikimatrix(pairs: Iterable[str], output: Path, *, url: str = WIKIMATRIX_URL) -> Iterator[FetchedFile]:
    """Download WikiMatrix as OPUS has it: `en-de.tsv`, source TAB target."""
    url = check_url(url)
    files = {output / f"{pair}.tsv": _languages(pair) for pair in pairs}
    for file, languages in files.items():
        kept = file.exists()
        if not kept:
            name = "-".join(sorted(languages))
            archive = output / f"{name}.txt.zip"
            if not archive.exists() and not download_file(f"{url}/v1/moses/{archive.name}", archive):
                raise _no_pair("WikiMatrix", *languages, _wikimatrix_pairs(url))
            _write(file, _wikimatrix_rows(archive, [f"WikiMatrix.{name}.{one}" for one in languages]), [archive])
        yield _fetched(file, kept=kept)


def _wikimatrix_pairs(url: str) -> list[list[str]]:
    """All pairs that there are, by the list of files that OPUS has; none if there is no list."""
    listed = BytesIO()
    download(f"{url}/index.txt", listed)
    return [name.split("-") for name in re.findall(r"moses/(\w+-\w+)\.txt\.zip", listed.getvalue().decode())]


def _wikimatrix_rows(archive: Path, members: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The lines of two members of a zip file in parallel, whose checksums zipfile verifies."""
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(members[0]) as left, opened.open(members[1]) as right:
            for source, target in zip_longest(left, right):
                if source is None or target is None:
                    raise SubdpError("its two sides differ in length", where=str(archive), hint=_REMOVE)
                yield source.decode().rstrip("\r\n"), target.decode().rstrip("\r\n")
    except (zipfile.BadZipFile, KeyError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise SubdpError(f"is damaged: {error}", where=str(archive), hint=_REMOVE) from None


_REMOVE = "remove it and try again"


def _write(file: Path, rows: Iterable[tuple[str, str]], archives: Iterable[Path]) -> None:
    """Write a table all or nothing, then remove what it was made from."""
    with open_text_output(file) as write:
        for row in rows:
            write("\t".join(cell.replace("\t", " ") for cell in row) + "\n")
    for archive in archives:
        archive.unlink()


def _languages(pair: str) -> tuple[str, str]:
    match = _PAIR.fullmatch(pair)
    if match is None or match[1] == match[2]:
        raise SubdpError(f"{pair!r} is not a pair of languages", hint="write en-de: the source, then the target")
    return match[1], match[2]


def _no_pair(what: str, source: str, target: str, every: Iterable[Sequence[str]]) -> SubdpError:
    """An error that names the languages that there are with either of the two."""
    found: dict[str, set[str]] = {source: set(), target: set()}
    for one, other in every:
        for language in found.keys() & {one, other}:
            found[language].add(other if one == language else one)
    there = [f"with {language}: {', '.join(sorted(others))}" for language, others in found.items() if others]
    return SubdpError(
        f"{what} has no pair {source}-{target}", hint="; ".join(there) or "check the codes of both languages"
    )


def _fetched(file: Path, *, kept: bool) -> FetchedFile:
    with open_input(file) as stream:
        return FetchedFile(file, sum(1 for _ in stream), kept)
