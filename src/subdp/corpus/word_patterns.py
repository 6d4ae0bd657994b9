"""Where words and sentences end, as regular expressions; `words.py` says what they are for. Imports regex alone."""

from __future__ import annotations

import regex  # type: ignore[import-untyped]

# Their full stop, before a name or a number, ends neither the word nor a sentence. "No." needs the number.
_TITLES = r"(?:Mr|Mrs|Ms|Dr|Prof|St|vs|ca|bzw)\.(?=\s+[\p{L}\d])|(?:No|Nr)\.(?=\s+\d)"
_CLITICS = "s|m|d|re|ve|ll"
# French, Italian and Catalan words that lose their vowel before another; a list, because Turkish writes its
# suffixes after an apostrophe too (İstanbul'un) and those stay with their word.
_ELIDED = (
    "[cdjlmnstvz]|(?:jus|lors|puis|quoi)?qu|(?:a|be|co|da|de|ne|que|su)ll|(?:a|da|de|ne|su)?gl|(?:alc|ciasc|ness)?un"
    "|anch|com|cos|dov|mezz|quand|quest|sant|senz|tutt|trent|vent"
)

WORD = regex.compile(
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

BREAK = regex.compile(
    rf"""
      (?<=\p{{L}})(?=n['’]t$)
    | (?<=[\w.])(?=['’](?:{_CLITICS})$)
    | (?<=^(?:{_ELIDED})['’])(?=[aàâeéèêëhiìîïoòóôœuùúûy])
    | (?<=\p{{Hangul}})(?=['’]) | (?<=['’])(?=\p{{Hangul}})      # in Korean an apostrophe is a quotation mark
    """,
    regex.V1 | regex.VERBOSE | regex.IGNORECASE,
)

LETTER = regex.compile(r"\p{L}")
KANA = regex.compile(r"[\p{Hiragana}\p{Katakana}]")
SCRIPTS = {
    script: regex.compile(rf"\p{{L}}(?<=\p{{{script}}})")
    for script in ("Han", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")
}
VIETNAMESE = regex.compile("[Ấ-ặẾ-ệỐ-ợỨ-ự]")  # With two marks: Jarai has ơ and ư too, Yoruba and Igbo have dots.
LATIN_WORD, BEYOND_ASCII = regex.compile(r"\p{L}+"), regex.compile(r"[^\x00-\x7F]")
UNSPACED = regex.compile(r"\p{L}(?<=[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}])")

_CLOSING = r"(?:[\p{SB=Close}--\p{Ps}]{0,3}(?:\s»)?)"
SENTENCE_END = regex.compile(
    rf"""
      (?<=[。！？｡]{_CLOSING})(?![。！？｡\p{{SB=Close}}--\p{{Ps}}])
    | (?<=[\p{{SB=STerm}}\p{{SB=ATerm}}…]{_CLOSING})
      (?<!(?<!\w)(?:[\p{{Lu}}\p{{Ll}}]\.|[IVX]+\.|{_TITLES})|(?<![\w.,:])\d{{1,2}}\.)
      \s+(?![\p{{Pe}}\p{{Pf}},;:.!?…/]|\p{{P}}*\p{{Ll}})
    """,
    regex.V1 | regex.VERBOSE,
)
