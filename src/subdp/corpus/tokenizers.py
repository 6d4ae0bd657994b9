"""Tokenizers by name, and the right one for a script.

`unicode` and `whitespace` are built in (`words.py`); any package adds others as plug-ins in the group
`subdp.tokenizers`: functions from a text to its words. Chinese, Japanese and Thai, which are written without spaces
between words, and Vietnamese, which is written with spaces between syllables, need a dictionary: `zh`, `ja`, `th` and
`vi`, each an extra of this package (`pip install 'subdp[zh]'`). `auto` stands for the one that a text calls for.

May import plugins, errors, cache and word_patterns only, the last and the dictionaries when first needed.
"""

from __future__ import annotations

import os
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, islice
from typing import TypeAlias, TypeVar
from unicodedata import normalize

from subdp.support.cache import cache_folder
from subdp.support.errors import SubdpError
from subdp.support.plugins import load, package_of, plugins

Tokenizer: TypeAlias = Callable[[str], Iterable[str]]
"""A function from the text of a sentence to its words; white space among them is ignored."""

AUTO = "auto"
BUILT_IN = ("unicode", "whitespace")
_Item = TypeVar("_Item")
_SAMPLE = 200  # So many texts of a file, the first ones, tell its script.
_GROUP = "subdp.tokenizers"
_JAPANESE = 0.1  # The share of kana from which text in Han characters is Japanese; a Chinese text may quote some.
# Of letters with two marks: 10 % of NTREX's Vietnamese, none of its 127 others. A name alone does not make a text
# Vietnamese: more than half of its words have letters beyond ASCII (82 % there).
_VIETNAMESE, _MARKED, _FEWEST = 0.03, 0.5, 3


@dataclass(frozen=True, slots=True)
class Dictionary:
    """A tokenizer that is an extra of this package: the script it is for, what it needs, how it is made."""

    script: str
    packages: tuple[str, ...]
    make: Callable[[], Tokenizer]


def unspaced_script(text: str) -> str | None:
    """The script of a text that is mainly written without spaces between words, or None.

    The tokenizer `unicode` cuts such text into pieces, not words. Japanese stands for Han characters among kana,
    Vietnamese for its Latin letters.
    """
    from subdp.corpus.word_patterns import KANA, LETTER, SCRIPTS, UNSPACED

    count = len(UNSPACED.findall(text))
    if 2 * count <= len(LETTER.findall(text)):
        return "Vietnamese" if _is_vietnamese(normalize("NFC", text)) else None
    if len(KANA.findall(text)) >= _JAPANESE * count:
        return "Japanese"
    return max(SCRIPTS, key=lambda script: len(SCRIPTS[script].findall(text)))


def _is_vietnamese(text: str) -> bool:
    from subdp.corpus.word_patterns import BEYOND_ASCII, LATIN_WORD, LETTER, VIETNAMESE

    if len(VIETNAMESE.findall(text)) < max(_FEWEST, _VIETNAMESE * len(LETTER.findall(text))):
        return False
    words = LATIN_WORD.findall(text)
    return sum(BEYOND_ASCII.search(word) is not None for word in words) > _MARKED * len(words)


def peeked(items: Iterable[_Item]) -> tuple[list[_Item], Iterator[_Item]]:
    """The first items of a stream, enough to tell a script by, and all of them."""
    stream = iter(items)
    first = list(islice(stream, _SAMPLE))
    return first, chain(first, stream)


def choose_tokenizer(
    tokenizer: str | Tokenizer, texts: Iterable[str], what: str = "the text", where: str | None = None
) -> str | Tokenizer:
    """The tokenizer to use where it is `auto`: by the script of the texts; any other stays.

    A script without spaces between words for which no tokenizer is installed is an error that says `what` is in it.
    """
    if tokenizer != AUTO:
        return tokenizer
    script = unspaced_script("\n".join(texts))
    if script is None:
        return "unicode"
    reason, otherwise = f"{what} is written in {script} script, without spaces between words", _WORDS
    if script == "Vietnamese":
        reason = f"{what} looks Vietnamese, where spaces separate syllables, not words"
        otherwise = "or, if it is another language, give --tokenizer unicode"
    for name, dictionary in DICTIONARIES.items():
        if dictionary.script == script:
            if not _installed(dictionary):
                hint = f"its tokenizer is not installed: pip install '{_extra(name)}'; {otherwise}"
                raise SubdpError(reason, where=where, hint=hint)
            return name
    raise SubdpError(reason, where=where, hint=f"name a plug-in's tokenizer with --tokenizer; {_WORDS}")


_WORDS = "or separate the words by spaces and say so with --tokenized or --format words"


def find_tokenizer(name: str) -> Tokenizer:
    """The tokenizer of that name that needs a dictionary or comes from another package."""
    if name in DICTIONARIES:
        return _dictionary(name)
    found = load(_GROUP, name, built_in=[*BUILT_IN, *DICTIONARIES])
    if not callable(found):
        raise SubdpError(f"the tokenizer {name!r} is not a function", hint="its entry point must name text -> words")
    return found  # type: ignore[no-any-return]


def tokenizer_key(name: str) -> str:
    """Identifies a tokenizer by all that its words depend on: its name and the version of the package it is from."""
    from importlib.metadata import version

    if name in BUILT_IN:
        return name
    if name in DICTIONARIES:
        _check_installed(name)
        return ", ".join(f"{package} {version(package)}" for package in DICTIONARIES[name].packages)
    find_tokenizer(name)
    return f"{name} of {package_of(plugins(_GROUP)[name])}"


@lru_cache
def _dictionary(name: str) -> Tokenizer:
    _check_installed(name)
    return DICTIONARIES[name].make()


def _installed(dictionary: Dictionary) -> bool:
    return all(find_spec(package) is not None for package in dictionary.packages)


def _check_installed(name: str) -> None:
    if not _installed(DICTIONARIES[name]):
        needs = " and ".join(DICTIONARIES[name].packages)
        raise SubdpError(f"the tokenizer {name!r} needs {needs}", hint=f"pip install '{_extra(name)}'")


def _extra(name: str) -> str:
    return f"subdp[{name}]"


def _chinese() -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Its regular expressions have escapes that newer Pythons warn of.
        import jieba

    jieba.setLogLevel("ERROR")
    tokenizer = jieba.Tokenizer()
    # It keeps its dictionary in a temporary folder, where anyone could put another; ours belongs to the user.
    folder = cache_folder() / "jieba"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.tmp_dir = str(folder)
    return tokenizer.lcut  # type: ignore[no-any-return]


def _japanese() -> Tokenizer:
    from sudachipy import Dictionary as Sudachi
    from sudachipy import SplitMode

    dictionary, own = Sudachi(dict="small"), threading.local()

    def words(text: str) -> list[str]:
        if not hasattr(own, "tokenizer"):  # One for each thread: it cannot be shared.
            own.tokenizer = dictionary.tokenizer(mode=SplitMode.A)  # The short units are the words of UD.
        return [morpheme.surface() for morpheme in own.tokenizer.tokenize(text)]

    return words


def _thai() -> Tokenizer:
    os.environ.setdefault("PYTHAINLP_READ_ONLY", "1")  # Else importing it makes a folder in the user's home.
    from pythainlp.tokenize import word_tokenize

    return lambda text: word_tokenize(text, keep_whitespace=False)


def _vietnamese() -> Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # As for Chinese.
        from pyvi import ViTokenizer

    def words(text: str) -> list[str]:
        found = ViTokenizer.spacy_tokenize(text)
        tokens, end, cut = found[0] if isinstance(found, tuple) else [], 0, list[str]()
        for token in tokens:
            # Its underscores join the syllables of a word, unless the text has them; in a treebank a space does.
            here = re.compile(r"(?:_|\s+)".join(map(re.escape, token.split("_")))).search(text, end)
            cut.append(" ".join(here[0].split()) if here else token)
            end = here.end() if here else end
        return cut

    return words


DICTIONARIES = {
    "zh": Dictionary("Han", ("jieba",), _chinese),
    "ja": Dictionary("Japanese", ("sudachipy", "sudachidict_small"), _japanese),
    "th": Dictionary("Thai", ("pythainlp",), _thai),
    "vi": Dictionary("Vietnamese", ("pyvi",), _vietnamese),
}
