"""The verbs of the command line that fetch data: `subdp data ud`. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter

from subdp.cli.app import Flag, Output, app, give
from subdp.download.ud_names import UD_URL

From: TypeAlias = Annotated[str | None, Parameter(name="--from")]
Treebanks: TypeAlias = Annotated[list[str], Parameter(negative="")]

data = App(name="data", help="Fetch data that others publish.")
app.command(data)


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
    """Fetch official treebanks of Universal Dependencies; what is there already is not fetched again.

    Parameters
    ----------
    treebanks
        Their names, as en_ewt or as UD_English-EWT.
    output
        The folder for them: each has a folder of its own in it, as UD_English-EWT. experiment --data DIR reads DIR/ud.
    release
        The release of Universal Dependencies, as 2.2, which the paper uses and which is the default.
    source
        A folder that holds UD_* folders, such as an unpacked release: copy from there, without the web.
    url
        The web address of the treebanks' repositories.
    json
        Print what is there as JSON.
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
