"""Which drafts are corrected first: every rule chooses what it says, and about the same number of words."""

from __future__ import annotations

import pytest

from subdp.experiments.orders import CORRECTED_WORDS, RULES, OrderRule, first_to_correct

LENGTHS = [3, 30, 12, 18, 40, 7] * 10
WORDS = [[f"w{number}-{at}" for at in range(length)] for number, length in enumerate(LENGTHS)]
DOUBTS = [number % 7 / 2 for number in range(len(LENGTHS))]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_takes_sentences_until_there_are_words_enough_and_no_longer(rule: OrderRule) -> None:
    found = first_to_correct(WORDS, DOUBTS, rule, seed=1)
    assert len(set(found)) == len(found)
    assert sum(LENGTHS[number] for number in found) >= CORRECTED_WORDS
    assert sum(LENGTHS[number] for number in found[:-1]) < CORRECTED_WORDS


@pytest.mark.parametrize("rule", RULES)
def test_all_sentences_are_taken_if_they_have_fewer_words(rule: OrderRule) -> None:
    assert sorted(first_to_correct(WORDS[:5], DOUBTS[:5], rule, seed=1)) == [0, 1, 2, 3, 4]


def test_the_seed_draws_what_is_random_and_the_order_of_equals() -> None:
    draws = {tuple(first_to_correct(WORDS, DOUBTS, "random", seed)) for seed in range(4)}
    assert len(draws) == 4
    equal = {tuple(first_to_correct(WORDS, [0.0] * len(WORDS), "doubt", seed)) for seed in range(4)}
    assert equal == draws


def test_doubt_is_for_each_word_or_in_all_and_lengths_are_kept_to_where_asked() -> None:
    def least(rule: OrderRule, value: list[float]) -> bool:
        found = first_to_correct(WORDS, DOUBTS, rule, seed=1)
        others = set(range(len(WORDS))) - set(found)
        return min(value[number] for number in found) >= max(value[number] for number in others)

    assert least("doubt", DOUBTS)
    assert least("total doubt", [doubt * length for doubt, length in zip(DOUBTS, LENGTHS, strict=True)])
    short = first_to_correct(WORDS, DOUBTS, "doubt, 5 to 20 words", seed=1)
    assert {LENGTHS[number] for number in short} == {12, 18, 7}


def test_variety_leaves_repetitions_for_later() -> None:
    same = [["the", "dog", "barks"] for _ in range(200)]
    fresh = [[f"one{number}", f"two{number}"] for number in range(50)]
    found = first_to_correct([*same, *fresh], [0.0] * 250, "variety", seed=1)
    assert set(found[:51]) >= set(range(200, 250))
