"""The verbs that download data: `subdp data ud` for treebanks, `ntrex`, `tatoeba`, `wikimatrix` for bitext.

No torch.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from cyclopts import App, Parameter

from subdp.cli.app import Flag, Output, give
from subdp.download.ud_names import UD_URL

if TYPE_CHECKING:
    from subdp.download.bitexts import FetchedFile
    from subdp.download.treebanks import FetchedTreebank

From: TypeAlias = Annotated[str | None, Parameter(name="--from")]
Names: TypeAlias = Annotated[list[str], Parameter(negative="")]

data = App(name="data", help="Download published treebanks and bitext.")


@data.command
def ud(
    treebanks: Names,
    /,
    *,
    output: Output,
    release: str | None = None,
    source: From = None,
    url: str = UD_URL,
    json: Flag = False,
) -> None:
    """Download official treebanks of Universal Dependencies; existing files are kept.

    Parameters
    ----------
    treebanks
        Treebank names, such as en_ewt or UD_English-EWT.
    output
        Folder to write to; each treebank gets a subfolder such as UD_English-EWT. experiment --data DIR reads DIR/ud.
    release
        Release of Universal Dependencies; by default 2.2, which the paper uses.
    source
        Copy from a folder that holds UD_* folders, such as an unpacked release, instead of downloading.
    url
        URL of the treebanks' repositories.
    json
        Print the result as JSON.
    """
    from subdp.download.treebanks import fetch_treebanks

    folder = None if source is None else Path(source)
    _give("treebanks", fetch_treebanks(treebanks, Path(output), release=release, url=url, source=folder), json)


@data.command
def ntrex(languages: Names, /, *, output: Output, url: str | None = None, json: Flag = False) -> None:
    """Download NTREX-128, news translated from English (CC BY-SA 4.0); existing files are kept.

    Parameters
    ----------
    languages
        Languages to download besides English, such as de, deu or fra-CA.
    output
        Folder to write to: en.txt, de.txt and so on, in which line N translates line N. experiment --data DIR reads
        DIR/bitext/ntrex.
    url
        URL of a server to use instead of GitHub, with its files and file lists under the same paths.
    json
        Print the result as JSON.
    """
    from subdp.download.bitexts import fetch_ntrex

    _give("files", fetch_ntrex(languages, Path(output), url=url), json)


@data.command
def tatoeba(
    pairs: Names, /, *, output: Output, release: str | None = None, url: str | None = None, json: Flag = False
) -> None:
    """Download the development and test sets of the Tatoeba Challenge (CC BY 2.0 FR); existing files are kept.

    Parameters
    ----------
    pairs
        Language pairs, such as en-de or eng-deu, the source first.
    output
        Folder to write to: en-de.tsv and so on, source TAB target. experiment --data DIR reads DIR/bitext/tatoeba.
    release
        Release of the challenge; by default v2023-09-26.
    url
        URL of a server to use instead of GitHub, with its files and file lists under the same paths.
    json
        Print the result as JSON.
    """
    from subdp.download.bitexts import TATOEBA_RELEASE, fetch_tatoeba

    _give("files", fetch_tatoeba(pairs, Path(output), release=release or TATOEBA_RELEASE, url=url), json)


@data.command
def wikimatrix(pairs: Names, /, *, output: Output, url: str | None = None, json: Flag = False) -> None:
    """Download WikiMatrix, sentences mined from Wikipedia, from OPUS (CC BY-SA 4.0); existing files are kept.

    Parameters
    ----------
    pairs
        Language pairs, such as en-de, the source first.
    output
        Folder to write to: en-de.tsv and so on, source TAB target.
    url
        URL of the corpus; by default OPUS's.
    json
        Print the result as JSON.
    """
    from subdp.download.bitexts import WIKIMATRIX_URL, fetch_wikimatrix

    _give("files", fetch_wikimatrix(pairs, Path(output), url=url or WIKIMATRIX_URL), json)


def _give(kind: str, fetched: Iterable[FetchedTreebank | FetchedFile], json: bool) -> None:
    """Print each thing as it arrives, or all at the end as JSON."""
    found = []
    for one in fetched:
        found.append(one.as_dict())
        if not json:
            give(str(one))
    if json:
        give({kind: found})
