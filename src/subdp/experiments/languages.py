"""The languages of the experiments: what each is tested on, and what bitext it learns from if not the usual one.

The paper's eight and English come with the package. A configuration file describes others, or these anew:

    [languages.sv]
    treebanks = ["sv_talbanken"]

Imports no torch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from subdp.download.ud_names import find_treebank
from subdp.support.errors import SubdpError
from subdp.support.files import Source, name_of
from subdp.support.values import check_fields, converted, read_toml


@dataclass(frozen=True, slots=True)
class Language:
    """A section `[languages.xx]` of a configuration file, where `xx` names the language in tables and files."""

    treebanks: tuple[str, ...] = ()
    """Treebanks with its dev and test sets, as `subdp data ud` takes their names."""
    bitext: tuple[str, ...] | None = None
    """The folders of bitext to learn from; None is those that the section `[experiment]` names."""
    stand_in: str | None = None
    """Treebank to use where all others are missing."""

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.treebanks:
            raise SubdpError("a language needs a treebank", hint='such as treebanks = ["de_gsd"]')
        for treebank in (*self.treebanks, *([self.stand_in] if self.stand_in else [])):
            folder_of(treebank)

    @property
    def pud(self) -> str:
        """The language's treebank in PUD, whose sentences are the same in all languages."""
        return f"{folder_of(self.treebanks[0]).rpartition('-')[0]}-PUD"


def folder_of(treebank: str) -> str:
    """The folder of a treebank: `UD_German-GSD` of `de_gsd`. A folder's name stays, also of one that is not UD's."""
    return treebank if treebank.startswith("UD_") else find_treebank(treebank).folder


PAPER_LANGUAGES = {
    "ar": Language(("ar_padt",), stand_in="ar_pud"),
    "hi": Language(("hi_hdtb",), stand_in="hi_pud"),
    "ko": Language(("ko_gsd", "ko_kaist")),
    "tr": Language(("tr_imst",)),
    "de": Language(("de_gsd",)),
    "es": Language(("es_gsd", "es_ancora")),
    "fr": Language(("fr_gsd",)),
    "it": Language(("it_isdt",)),
}
"""The paper's eight target languages in the order of its table: four distant from English, four close to it."""
LANGUAGES = {"en": Language(("en_ewt",)), **PAPER_LANGUAGES}
"""The languages that come with the package."""


def read_languages(file: Source | None) -> dict[str, Language]:
    """The languages that come with the package and those that a TOML file describes, which win."""
    section = {} if file is None else read_toml(file).get("languages", {})
    found = dict(LANGUAGES)
    for name, table in section.items():
        assert file is not None
        if not isinstance(table, dict):
            hint = "describe a language in a section of its own, such as [languages.de]"
            raise SubdpError(f"languages.{name} is not a section", where=name_of(file), hint=hint)
        if not re.fullmatch(r"\w+(-\w+)*", name):
            hint = "it is part of file names: use letters, such as de or pt-BR"
            raise SubdpError(f"a language cannot be named {name!r}", where=name_of(file), hint=hint)
        try:
            found[name] = Language(**converted(Language, table))
        except SubdpError as error:
            where = f"{name_of(file)}: [languages.{name}]"
            raise SubdpError(error.reason, where=where, hint=error.hint) from None
    return found
