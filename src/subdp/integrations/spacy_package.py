"""A parser as a spaCy pipeline that pip installs: what `subdp convert spacy` writes."""

from __future__ import annotations

import tempfile
from pathlib import Path

from spacy import blank
from spacy.cli.package import package

from subdp import __version__
from subdp.integrations.spacy_pipe import ParserPipe
from subdp.network.hub import find_model
from subdp.support.errors import SubdpError


def write_package(parser: str, output: Path, *, language: str, name: str) -> Path:
    """Write the package of a pipeline with this parser alone, and spaCy's tokenizer of the language; gives its folder.

    `pip install FOLDER` installs it, `spacy.load("LANGUAGE_NAME")` loads it.
    """
    folder = output / f"{language}_{name}-{__version__}"
    if folder.exists():
        raise SubdpError("already exists", where=str(folder), hint="remove it, or name another folder with -o")
    if not name.isidentifier():
        raise SubdpError(f"{name!r} cannot be the name of a package", hint="use letters, digits and _")
    try:
        nlp = blank(language)
    except ImportError as error:
        raise SubdpError(f"spaCy has no language {language!r}", hint="xx is for any language") from error
    pipe: ParserPipe = nlp.add_pipe("subdp")
    about = pipe.from_disk(find_model(parser)).parser.about
    nlp.meta |= {"name": name, "version": __version__, "requirements": [f"subdp[spacy]>={__version__}"]}
    nlp.meta |= {"description": about.get("title", "A dependency parser"), "license": about.get("licence", "")}
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as pipeline:
        nlp.to_disk(pipeline)
        package(Path(pipeline), output, create_sdist=False)
    return folder
