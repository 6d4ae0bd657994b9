"""Which drafts to correct first: rules that choose sentences of the same number of words from a pool. No torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import numpy as np

OrderRule = Literal["random", "doubt", "total doubt", "doubt, 5 to 20 words", "variety"]
RULES: tuple[OrderRule, ...] = get_args(OrderRule)
CORRECTED_WORDS = 300
"""What is corrected by every rule: about twenty sentences of news."""


def first_to_correct(words: Sequence[Sequence[str]], doubts: Sequence[float], rule: OrderRule, seed: int) -> list[int]:
    """The numbers of the sentences to correct: the first ones by a rule, until they have `CORRECTED_WORDS` words.

    `doubts` has a parser's doubt in each sentence, for each word (`pipeline/annotate.py`). The seed draws the order
    where the rule leaves it open.
    """
    drawn = np.random.default_rng(seed).permutation(len(words)).tolist()
    found, count = list[int](), 0
    for number in _variety(words, drawn) if rule == "variety" else sorted(drawn, key=_key(words, doubts, rule)):
        if count >= CORRECTED_WORDS:
            break
        found.append(number)
        count += len(words[number])
    return found


def _key(
    words: Sequence[Sequence[str]], doubts: Sequence[float], rule: OrderRule
) -> Callable[[int], tuple[float, ...]]:
    """What a rule sorts by, the least first."""
    if rule == "random":
        return lambda number: ()
    if rule == "doubt":
        return lambda number: (-doubts[number],)
    if rule == "total doubt":
        return lambda number: (-doubts[number] * len(words[number]),)
    return lambda number: (not 5 <= len(words[number]) <= 20, -doubts[number])


def _variety(words: Sequence[Sequence[str]], drawn: Sequence[int]) -> list[int]:
    """One sentence after the other, the one with the largest share of words that no sentence before it has."""
    left, seen, found = dict.fromkeys(drawn), set[str](), list[int]()
    while left and sum(len(words[number]) for number in found) < CORRECTED_WORDS:
        best = max(left, key=lambda number: len({*map(str.lower, words[number])} - seen) / len(words[number]))
        del left[best]
        found.append(best)
        seen |= {*map(str.lower, words[best])}
    return found
