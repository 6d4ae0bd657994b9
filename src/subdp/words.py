"""Raw text to sentences and words.

Words end at the default word boundaries of Unicode (UAX #29), so vowel signs, diacritics and syllable blocks stay
whole in every script; punctuation marks are words of their own. A few rules then bring the words nearer to those of
Universal Dependencies, whose treebanks the parsers learn from: `do n't`, `l' homme`, `U.S.`, `...` and the like.

Writing systems without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan) need a
dictionary, which the standard does not have: every Han character, every kana of Hiragana and every character with its
marks is then a word. `needs_tokenizer` says when text is of that kind; a package can bring a better tokenizer as a
plug-in in the group `subdp.tokenizers`: a function from a text to its words. May import plugins and errors only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import regex  # type: ignore[import-untyped]

from subdp.errors import SubdpError
from subdp.plugins import load

Tokenizer: TypeAlias = Callable[[str], Iterable[str]]
"""A function from the text of a sentence to its words; white space among them is ignored."""

BUILT_IN = ("unicode", "whitespace")

# Their full stop, before a name or a number, ends neither the word nor a sentence. "No." needs the number.
_TITLES = r"(?:Mr|Mrs|Ms|Dr|Prof|St|vs|ca|bzw)\.(?=\s+[\p{L}\d])|(?:No|Nr)\.(?=\s+\d)"
_CLITICS = "s|m|d|re|ve|ll"
# French, Italian and Catalan words that lose their vowel before another; a list, because Turkish writes its
# suffixes after an apostrophe too (İstanbul'un) and those stay with their word.
_ELIDED = (
    "[cdjlmnstvz]|(?:jus|lors|puis|quoi)?qu|(?:a|be|co|da|de|ne|que|su)ll|(?:a|da|de|ne|su)?gl|(?:alc|ciasc|ness)?un"
    "|anch|com|cos|dov|mezz|quand|quest|sant|senz|tutt|trent|vent"
)

_WORD = regex.compile(
    rf"""
      (?:https?://|www\.)[!\#-;=?-~]*[0-9A-Za-z/]                # an address, to its last letter, digit or slash
    | [0-9A-Za-z_.+-]{{1,64}}@[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)+
    | \.{{2,}} | -{{2,}} | [!?]{{2,}} | '{{2,}} | `{{2,}} | \*{{2,}} | ={{2,}} | ~{{2,}} | <{{2,}} | >{{2,}}
    | [:;]-?[()DP](?!\w)
    | (?<!\w)(?:\p{{L}}\p{{M}}*\.){{2,}}(?!\w)                   # U.S.  M.Ö.  z.B.
    | (?<![\w.'’-])\p{{Lu}}\.(?=\s+\p{{L}})                      # J. Smith
    | (?<!\w)(?:{_TITLES})
    | \d+(?::\d+)+ | \d+(?:/\d+){{2}}                            # 10:30  24/12/2004
    | (?<!\w)[Cc]an(?=not\b)
    | \d+(?:[.,]\d+)*['’](?!(?i:{_CLITICS})\b)\p{{L}}+           # Turkish 1912'de
    | \p{{Han}}{{1,9}}\p{{Hangul}}+                              # Korean with a stem in Han characters
    | ['’](?:(?i:{_CLITICS})\b)?                                 # by hand: the flag w keeps a quote on a vowel
    | [^\s\p{{Cc}}\p{{DI}}]\S*?(?:\b|(?!\S))                     # from anything visible to the next boundary
    """,
    regex.V1 | regex.WORD | regex.VERBOSE,
)

_BREAK = regex.compile(
    rf"""
      (?<=\p{{L}})(?=n['’]t$)
    | (?<=[\w.])(?=['’](?:{_CLITICS})$)
    | (?<=^(?:{_ELIDED})['’])(?=[aàâeéèêëhiìîïoòóôœuùúûy])
    | (?<=\p{{Hangul}})(?=['’]) | (?<=['’])(?=\p{{Hangul}})      # in Korean an apostrophe is a quotation mark
    """,
    regex.V1 | regex.VERBOSE | regex.IGNORECASE,
)


def words_of(text: str, tokenizer: str | Tokenizer = "unicode") -> tuple[str, ...]:
    """The words of a text: by `unicode` word boundaries, by `whitespace`, or by a plug-in's name or any function.

    No word is empty or, from the built-in tokenizers, holds white space; but for white space, control and invisible
    characters, nothing of the text is lost.

    >>> words_of("Don't panic: it's 3,000.50 kg.")
    ('Do', "n't", 'panic', ':', 'it', "'s", '3,000.50', 'kg', '.')
    >>> words_of("कृपया मेरे लिए लाना।")
    ('कृपया', 'मेरे', 'लिए', 'लाना', '।')
    """
    return words_function(tokenizer)(text)


def words_function(tokenizer: str | Tokenizer = "unicode") -> Callable[[str], tuple[str, ...]]:
    """The function behind `words_of`, found once for use on many texts."""
    if tokenizer == "unicode":
        return _unicode_words
    if tokenizer == "whitespace":
        return lambda text: tuple(text.split())
    if isinstance(tokenizer, str):
        tokenizer = _callable(load("subdp.tokenizers", tokenizer, built_in=BUILT_IN), tokenizer)
    return lambda text: _checked(tokenizer, text)


def needs_tokenizer(text: str) -> str | None:
    """The script of a text that is mainly written without spaces between words, or None.

    For such text the tokenizer `unicode` gives pieces, not words; callers say so once for a file, not for each line.
    Japanese stands for Han characters among kana.
    """
    count = len(_UNSPACED.findall(text))
    if 2 * count <= len(_LETTER.findall(text)):
        return None
    if _KANA.search(text):
        return "Japanese"
    return max(_SCRIPTS, key=lambda script: len(_SCRIPTS[script].findall(text)))


def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text, cautiously: rather two left together than one torn.

    A sentence ends with its line, or with `. ! ? …` and their kin in other scripts, with the quotes and brackets that
    close after them, before white space and no small letter; after `。！？` no space is needed. A full stop after an
    single letter, a Roman number, a title (Dr.) or one or two digits (German and Turkish ordinals) ends nothing.

    >>> sentences_of("Dr. Who left at 5 p.m. sharp. Did he? Yes!")
    ('Dr. Who left at 5 p.m. sharp.', 'Did he?', 'Yes!')
    """
    return tuple(
        sentence.strip() for line in text.splitlines() for sentence in _SENTENCE_END.split(line) if sentence.strip()
    )


def _unicode_words(text: str) -> tuple[str, ...]:
    found: list[str] = _WORD.findall(text)
    if "'" in text or "’" in text:
        return tuple(part for word in found for part in _parts(word))
    return tuple(found)


def _parts(word: str) -> list[str]:
    if len(word) > 1 and ("'" in word or "’" in word):
        return [part for part in _BREAK.split(word) if part]
    return [word]


def _callable(found: object, name: str) -> Tokenizer:
    if not callable(found):
        raise SubdpError(f"the tokenizer {name!r} is not a function", hint="its entry point must name text -> words")
    return found


def _checked(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """The plug-in's words without the white space that some give as words too."""
    words = tuple(tokenizer(text))
    for word in words:
        if not isinstance(word, str):
            raise SubdpError(f"the tokenizer gave a {type(word).__name__} instead of a word", hint="it must give str")
    return tuple(word.strip() for word in words if word.strip())


_LETTER = regex.compile(r"\p{L}")
_KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
_SCRIPTS = {
    script: regex.compile(rf"\p{{L}}(?<=\p{{{script}}})")
    for script in ("Han", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
}
_UNSPACED = regex.compile(r"\p{L}(?<=[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}])")

_CLOSING = r"(?:[\p{SB=Close}--\p{Ps}]{0,3}(?:\s»)?)"
_SENTENCE_END = regex.compile(
    rf"""
      (?<=[。！？｡]{_CLOSING})(?![。！？｡\p{{SB=Close}}--\p{{Ps}}])
    | (?<=[\p{{SB=STerm}}\p{{SB=ATerm}}…]{_CLOSING})
      (?<!(?<!\w)(?:[\p{{Lu}}\p{{Ll}}]\.|[IVX]+\.|{_TITLES})|(?<![\w.,:])\d{{1,2}}\.)
      \s+(?![\p{{Pe}}\p{{Pf}},;:.!?…/]|\p{{P}}*\p{{Ll}})
    """,
    regex.V1 | regex.VERBOSE,
)
