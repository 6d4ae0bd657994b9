"""The verbs that download data: `subdp data ud`. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from subdp.cli.app import Flag, Output, give
from subdp.download.ud_names import UD_URL

From: TypeAlias = Annotated[str | None, Parameter(name="--from")]
Treebanks: TypeAlias = Annotated[list[str], Parameter(negative="")]

data = App(name="data", help="Download data that others publish.")


@data.command
def ud(
    treebanks: Treebanks,
    /,
    *,
    output: Output,
    release: str | None = None,
    source: From = None,
    url: str = UD_URL,
    json: Flag = False,
) -> None:
    """Download official treebanks of Universal Dependencies; files that are there already are kept.

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
        Web address of the treebanks' repositories.
    json
        Print the result as JSON.
    """
    from subdp.download.treebanks import fetch_treebanks

    folder = None if source is None else Path(source)
    fetched = []
    for treebank in fetch_treebanks(treebanks, Path(output), release=release, url=url, source=folder):
        fetched.append(treebank.as_dict())
        if not json:
            give(str(treebank))
    if json:
        give({"treebanks": fetched})
