"""Which pairs of a bitext are probably not translations: the paper's three filters, and limits on length.

`Bitext.clean` applies them and counts. Imports the standard library only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

_CODES = """
ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX
ro_RO ru_RU si_LK tr_TR vi_VN zh_CN af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN
pl_PL ps_AF pt_XX sv_SE sw_KE ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI
"""
LANGUAGE_TOKENS = frozenset(_CODES.split())
"""The language tokens of CRISS and mBART: in a translation they are artefacts, not words."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Limits that a pair must keep to.

    Copies, language tokens and repetitions are the paper's filters. Its words were separated by spaces, punctuation
    attached; so punctuation marks do not count as words here (a shared comma and full stop would make copies of many
    short sentences), unless a sentence has nothing else. The comparison is case-sensitive.
    """

    copies: float = 0.8
    """A *copy*: at least this share of the target's words also occur in the source sentence."""
    repetitions: float = 0.8
    """A *repetition*: at least this share of the target's words occur in it more than once."""
    longest: int = 150
    """*Too long*: more words than this on a side."""
    ratio: float = 3.0
    """*Length ratio*: one side has more than this many times the words of the other."""

    def __post_init__(self) -> None:
        if min(self.copies, self.repetitions) <= 0 or min(self.longest, self.ratio) < 1:
            raise ValueError("copies and repetitions must be above 0, longest and ratio at least 1")

    def judge(self, source: tuple[str, ...], target: tuple[str, ...], language: str | None) -> tuple[str, ...] | str:
        """The target's words if the pair is kept, or else the first reason to drop it.

        A *language token* (`[de_DE]`, `es_XX`) of any other language than `language` (`de`) is a reason; that of
        `language` itself is removed from the words.
        """
        tokens = language_tokens(target)
        if tokens:
            if set(tokens.values()) != {(language or "").partition("_")[0]}:
                return "language token"
            target = tuple(word for index, word in enumerate(target) if index not in tokens)
        short, long = sorted((len(source), len(target)))
        if not short:
            return "empty side"
        if long > self.longest:
            return "too long"
        if long > self.ratio * short:
            return "length ratio"
        words = [word for word in target if any(map(str.isalnum, word))] or target
        if sum(map(set(source).__contains__, words)) >= self.copies * len(words):
            return "copy"
        if sum(count for count in Counter(words).values() if count > 1) >= self.repetitions * len(words):
            return "repetition"
        return target


def language_tokens(words: tuple[str, ...]) -> dict[int, str]:
    """The positions of language tokens, with their languages (`de`): `[de_DE]`, or tokenised as `[`, `de_DE`, `]`."""
    found: dict[int, str] = {}
    for index, word in enumerate(words):
        code = word.strip("[]") if "_" in word else ""
        if code in LANGUAGE_TOKENS:
            torn = index > 0 and words[index - 1 : index + 2 : 2] == ("[", "]")
            found |= dict.fromkeys(range(index - 1, index + 2) if torn else [index], code[:2])
    return found
