"""The tags of a word's form in the whole bitext have a share in the tag of each of its occurrences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from subdp.training.forms import Forms
from subdp.training.packed import Packed

LAYERS = {"upos": 3}


def packed(words: Sequence[str], tags: Any) -> Packed:
    """A sentence whose words have these masses on three tags, and one arc each."""
    dense = np.array(tags, np.float32)
    at, value = np.nonzero(dense)
    arcs = np.array([[word, 0] for word in range(1, len(words) + 1)], np.int16)
    return Packed(
        words,
        {"arcs": arcs, "upos": np.stack([at + 1, value], axis=1).astype(np.int16)},
        {"arcs": np.ones(len(words), np.float16), "upos": dense[at, value].astype(np.float16)},
    )


def tags_of(sentence: Packed) -> np.ndarray:
    found = np.zeros((len(sentence.words), 3))
    places = sentence.places["upos"]
    found[places[:, 0] - 1, places[:, 1]] = sentence.masses["upos"]
    return found


def test_a_word_without_a_tag_gets_that_of_its_form_elsewhere() -> None:
    sentences = [packed(["Bank", "und"], [[1, 0, 0], [0, 1, 0]]), packed(["bank"], [[0, 0, 0]])]
    forms = Forms.of(sentences, LAYERS, 0.5)
    assert tags_of(forms.shared(sentences[1:])[0]).tolist() == [[1, 0, 0]], "whatever the case of its letters"
    assert tags_of(forms.shared(sentences)[0]).tolist() == [[1, 0, 0], [0, 1, 0]], "what all agree on stays"


@pytest.mark.parametrize("share", [0.25, 0.5])
def test_word_and_form_have_their_shares_and_null_mass_goes_to_the_form(share: float) -> None:
    rng = np.random.default_rng(1)
    tags = rng.dirichlet([1, 1, 1, 1], 8)[:, :3]  # The fourth part of each is NULL mass.
    words = ["a", "b", "a", "c", "b", "a", "A", "d"]
    sentences = [packed(words[:5], tags[:5]), packed(words[5:], tags[5:])]
    forms = Forms.of(sentences, LAYERS, share)
    found = np.concatenate([tags_of(one) for one in forms.shared(sentences)])
    for word, own, new in zip(words, tags, found, strict=True):
        same = [at for at, other in enumerate(words) if other.lower() == word.lower()]
        mean = tags[same].sum(0) / tags[same].sum()
        expected = (1 - share) * own + (1 - (1 - share) * own.sum()) * mean
        np.testing.assert_allclose(new, expected, atol=2e-3)  # Masses are in half precision.
    np.testing.assert_allclose(found.sum(-1), 1, atol=2e-3)


def test_a_form_that_was_never_tagged_or_never_seen_stays_as_it_is() -> None:
    forms = Forms.of([packed(["x"], [[0, 0, 0]])], LAYERS, 0.5)
    assert tags_of(forms.shared([packed(["x", "new"], [[0, 0, 0], [0, 0.75, 0]])])[0]).tolist() == [
        [0, 0, 0],
        [0, 0.75, 0],
    ]


def test_everything_but_tags_stays_as_it_is() -> None:
    sentence = packed(["x", "x"], [[1, 0, 0], [0, 1, 0]])
    shared = Forms.of([sentence], LAYERS, 0.5).shared([sentence])[0]
    assert shared.words == sentence.words
    assert shared.places["arcs"] is sentence.places["arcs"]
    assert shared.masses["arcs"] is sentence.masses["arcs"]
