"""The verbs that make something for another tool of a parser: `subdp convert spacy`. No torch before one runs."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from subdp.cli.app import Output, give, say
from subdp.support.errors import SubdpError

convert = App(name="convert", help="Convert a parser for use in another tool.")


@convert.command
def spacy(parser: str, *, output: Output, language: str = "xx", name: str = "subdp") -> None:
    """Make a spaCy pipeline from a parser, as a package that pip installs; prints its folder.

    Parameters
    ----------
    parser
        Model folder, a name on the Hugging Face Hub, or one that ships: en (English), multi (80 languages).
    output
        Folder to make the package's own folder in.
    language
        spaCy's language code, which decides the tokenizer; xx is for any language.
    name
        The pipeline is called LANGUAGE_NAME.
    """
    try:
        from subdp.integrations.spacy_package import write_package
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "spacy":
            raise
        raise SubdpError("spaCy is not installed", hint="pip install 'subdp[spacy]'") from None

    folder = write_package(parser, Path(output), language=language, name=name)
    give(str(folder))
    say(f'install it with: pip install {folder}; load it with: spacy.load("{language}_{name}")')
