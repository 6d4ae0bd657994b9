"""What sentences are fitted to, packed: hardly anything is lost, and nothing is worked out twice."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import subdp.training.examples
from subdp.encoder.encoder import Encoder
from subdp.network.scorers import PairScores, Scored, Scores
from subdp.parser import Parser
from subdp.projection.silver import Silver, SilverPair
from subdp.support.settings import LossConfig, Settings
from subdp.training.examples import SoftExamples
from subdp.training.losses import loss_weights, project_batch, soft_loss
from subdp.training.packed import Packed, pack, packed_loss
from tests.grammar import toy_pairs
from tests.training.test_losses import random_problem

pytestmark = pytest.mark.trains

LOSSES = LossConfig(completion="none")


@pytest.mark.parametrize("weight", ["arc", "best"])
def test_packing_loses_no_more_than_half_precision_and_masses_below_a_ten_thousandth(weight: Any) -> None:
    source, alignment, scored, sizes = random_problem(4, sizes=((3, 4), (5, 2), (4, 9)))
    config = LossConfig(label_weight=weight, completion="none")
    projected = project_batch(source, alignment, config)
    weights = loss_weights(projected, scored.mask, config)
    packed = pack(weights, [["word"] * target for _, target in sizes])
    loss, expected = packed_loss(scored, packed).item(), soft_loss(scored, projected, config).item()
    assert loss == pytest.approx(expected, rel=1e-3)
    assert [len(sentence.words) for sentence in packed] == [4, 2, 9]


def test_a_sentence_adds_the_same_loss_in_any_company() -> None:
    source, alignment, scored, sizes = random_problem(5, sizes=((3, 4), (5, 2), (4, 4)))
    weights = loss_weights(project_batch(source, alignment, LOSSES), scored.mask, LOSSES)
    packed = pack(weights, [["word"] * target for _, target in sizes])
    together = packed_loss(scored, packed).item()
    alone = [packed_loss(rows_of(scored, [row]), [packed[row]]).item() for row in range(3)]
    assert together == pytest.approx(sum(alone), rel=1e-6)
    turned = packed_loss(rows_of(scored, [2, 0, 1, 0]), [packed[2], packed[0], packed[1], packed[0]]).item()
    assert turned == pytest.approx(together + alone[0], rel=1e-6)


def rows_of(scored: Scored, rows: list[int]) -> Scored:
    """The scores of some of a batch's sentences."""
    parts: dict[str, Scores] = {}
    for name, part in scored.parts.items():
        if isinstance(part, PairScores):
            parts[name] = PairScores(part.dependents[rows], part.heads[rows], part.weight)
        else:
            parts[name] = type(part)(part.log_probabilities[rows])
    return Scored(scored.mask[rows], parts)


class Watched(Silver):
    """Silver that counts how often its pairs are read."""

    def __init__(self, silver: Silver):
        self.inventory, self.made_from, self.where = silver.inventory, silver.made_from, silver.where
        self.silver, self.reads = silver, 0

    def __len__(self) -> int:
        return len(self.silver)

    def __getitem__(self, index: int) -> SilverPair:
        self.reads += 1
        return self.silver[index]

    def targets(self) -> Iterator[tuple[str, ...]]:
        return self.silver.targets()


@pytest.fixture(scope="module")
def parser(tiny: Encoder) -> Parser:
    settings = Settings.resolve(flags={"network": {"lstm": 8, "layers": "0,1"}, "train": {"epochs": 1}})
    return Parser.train((tree for tree, _, _ in toy_pairs(10)), encoder=tiny, settings=settings)


@pytest.fixture
def silver(parser: Parser) -> Watched:
    made = ((tree, links, translation.words) for tree, translation, links in toy_pairs(20, seed=3))
    found = Watched(Silver.of(made, parser.inventory))
    parser.vectors.remember(found.targets())
    return found


def taught(parser: Parser, silver: Silver, **losses: Any) -> SoftExamples:
    return SoftExamples(parser.vectors.stored, silver, np.arange(20), LossConfig(**losses)).taught_by(parser.network)[0]


def test_what_is_worked_out_is_not_worked_out_again_and_gives_the_same_loss(parser: Parser, silver: Watched) -> None:
    examples = taught(parser, silver)
    expected = examples.loss(parser.network, range(20)).item()
    done = examples.worked_out(parser.network.device)
    silver.reads = 0
    assert done.loss(parser.network, range(20)).item() == pytest.approx(expected, rel=1e-4)
    assert silver.reads == 0
    examples.loss(parser.network, range(20))
    assert silver.reads == 20


def test_what_does_not_fit_in_memory_is_worked_out_whenever_it_is_needed(
    parser: Parser, silver: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subdp.training.examples, "MOST_WORDS", 30)
    examples = taught(parser, silver)
    done = examples.worked_out(parser.network.device)
    kept = sum(examples.lengths[number] for number in done.kept)
    assert 24 <= kept <= 30
    silver.reads = 0
    expected = examples.loss(parser.network, range(20)).item()
    assert done.loss(parser.network, range(20)).item() == pytest.approx(expected, rel=1e-4)
    assert silver.reads == 20 + 20 - len(done.kept)


def test_the_papers_labels_of_all_pairs_are_not_kept(parser: Parser, silver: Watched) -> None:
    examples = taught(parser, silver, label_weight="none", completion="none")
    assert not examples.worked_out(parser.network.device).kept
    assert examples.loss(parser.network, range(20)).item() > 0


def test_the_sentences_of_a_batch_share_its_arrays() -> None:
    """Many small arrays between large ones that are freed would take several times the memory of what they hold."""
    source, alignment, scored, sizes = random_problem(5, sizes=((3, 4), (5, 2), (4, 4)))
    weights = loss_weights(project_batch(source, alignment, LOSSES), scored.mask, LOSSES)
    first, second, third = pack(weights, [["word"] * target for _, target in sizes])
    for name in weights:
        assert first.masses[name].base is second.masses[name].base is third.masses[name].base is not None
    own = Packed(
        first.words,
        {name: array.copy() for name, array in first.places.items()},
        {name: array.copy() for name, array in first.masses.items()},
    )
    assert len(pickle.dumps(first)) <= len(pickle.dumps(own)) + 100, "alone, it is sent alone"
