"""Raw text to sentences and words.

Words end at the default word boundaries of Unicode (UAX #29), so vowel signs, diacritics and syllable blocks stay
whole in every script; punctuation marks are words of their own. A few rules then bring the words nearer to those of
Universal Dependencies, whose treebanks the parsers learn from: `do n't`, `l' homme`, `U.S.`, `...` and the like.

Writing systems without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese, Tibetan) need a
dictionary, which the standard does not have: every Han character, every kana of Hiragana and every character with its
marks would be a word. `tokenizers.py` has what they need.

Words are always in Unicode's composed form, NFC: text in NFC and in NFD gives the same words.

May import tokenizers, errors and word_patterns only; the last when first needed, because its patterns take a moment to
compile.
"""

from __future__ import annotations

from collections.abc import Callable
from unicodedata import category, normalize

from subdp.corpus.tokenizers import Tokenizer, find_tokenizer
from subdp.support.errors import SubdpError

_UNSEEN = ("Cc", "Cf")  # Unicode's categories of characters that are not seen.


def words_of(text: str, tokenizer: str | Tokenizer = "unicode") -> tuple[str, ...]:
    """The words of a text: by `unicode` word boundaries, by `whitespace`, by another tokenizer's name or any function.

    No word is empty or, from the built-in tokenizers, holds white space; except for white space, control and invisible
    characters, nothing of the text is lost. Words are in NFC.

    >>> words_of("Don't panic: it's 3,000.50 kg.")
    ('Do', "n't", 'panic', ':', 'it', "'s", '3,000.50', 'kg', '.')
    >>> words_of("कृपया मेरे लिए लाना।")
    ('कृपया', 'मेरे', 'लिए', 'लाना', '।')
    """
    return words_function(tokenizer)(text)


def words_function(tokenizer: str | Tokenizer = "unicode") -> Callable[[str], tuple[str, ...]]:
    """The function behind `words_of`, found once for use on many texts."""
    if tokenizer == "unicode":
        return lambda text: _unicode_words(composed(text))
    if tokenizer == "whitespace":
        return lambda text: tuple(composed(text).split())
    if isinstance(tokenizer, str):
        tokenizer = find_tokenizer(tokenizer)
    return lambda text: _checked(tokenizer, composed(text))


def composed(text: str) -> str:
    """Text in NFC, the form that Universal Dependencies and the encoders' training data are in.

    >>> composed("e\u0301")
    'é'
    """
    return normalize("NFC", text)


def sentences_of(text: str) -> tuple[str, ...]:
    """The sentences of a text, in NFC; cautiously: where in doubt, two are left together.

    A sentence ends with its line, or with `. ! ? …` and their kin in other scripts, with the quotes and brackets that
    close after them, before white space and no lower-case letter; after `。！？` no space is needed. A full stop ends
    nothing after a single letter, a Roman numeral, a title (Dr.) or one or two digits (German and Turkish ordinals).

    >>> sentences_of("Dr. Who left at 5 p.m. sharp. Did he? Yes!")
    ('Dr. Who left at 5 p.m. sharp.', 'Did he?', 'Yes!')
    """
    from subdp.corpus.word_patterns import SENTENCE_END

    return tuple(
        sentence.strip()
        for line in composed(text).splitlines()
        for sentence in SENTENCE_END.split(line)
        if sentence.strip()
    )


def _unicode_words(text: str) -> tuple[str, ...]:
    from subdp.corpus.word_patterns import BREAK, WORD

    found: list[str] = WORD.findall(text)
    if "'" not in text and "’" not in text:
        return tuple(found)
    words: list[str] = []
    for word in found:
        inside = len(word) > 1 and ("'" in word or "’" in word)
        words += [part for part in BREAK.split(word) if part] if inside else [word]
    return tuple(words)


def _checked(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """The plug-in's words without the white space and the invisible characters that some give as words too."""
    words = tuple(tokenizer(text))
    for word in words:
        if not isinstance(word, str):
            raise SubdpError(f"the tokenizer gave a {type(word).__name__} instead of a word", hint="it must give str")
    visible = (composed(word.strip()) for word in words if any(category(one) not in _UNSEEN for one in word.strip()))
    return tuple(visible)
