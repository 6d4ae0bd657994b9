"""How well projection went: the same whichever way the pairs are divided."""

from __future__ import annotations

from pathlib import Path

import pytest

from subdp.alignment.links import Alignment
from subdp.corpus.treebank import Sentence
from subdp.projection import silver as stores
from subdp.projection.quality import QualityUnit, Summary, measure
from subdp.projection.silver import SilverPair, SilverStore
from subdp.projection.soft_tree import SoftTree
from subdp.support.engine import LocalEngine

TREE = Sentence.of(["I", "slept", "well"], heads=[2, 0, 2], labels=["nsubj", "root", "advmod"])
LINKS = ["0-0 1-1 2-2", "0-0 1-0", "1-1", ""] * 4


@pytest.fixture
def silver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SilverStore:
    """Sixteen pairs in shards of five, from all words linked to none."""
    monkeypatch.setattr(stores, "SHARD", 5)
    soft = SoftTree.of(TREE)
    pairs = [
        SilverPair(TREE.words, (f"w{number}", "schlief", "gut"), Alignment.parse(links), soft.distributions)
        for number, links in enumerate(LINKS)
    ]
    store = SilverStore.create(tmp_path / "silver", soft.inventory, pairs=len(pairs), made_from={})
    for number, unit in enumerate(store.units):
        store.write(number, pairs[unit.start : unit.stop])
    return store


def test_a_report_is_the_same_in_one_piece_and_shard_by_shard(silver: SilverStore) -> None:
    assert len(silver.units) == 4
    whole = QualityUnit(silver, "head")(range(len(silver)))
    found, parts = whole.as_dict(), measure(silver, "head", LocalEngine()).as_dict()
    assert parts.pop("worst") == found.pop("worst")
    assert parts.pop("layers") == found.pop("layers") == {}
    assert parts == pytest.approx(found), "sums in another order round differently"
    assert (found["pairs"], found["target_words"]) == (16, 48)
    assert found["linked"] == pytest.approx((3 + 1 + 1 + 0) / 12)
    assert found["coverage"] == pytest.approx((3 + 1 + 1 + 0) / 12), "a linked word's head is linked here too"


def test_the_worst_pairs_are_those_of_all_shards(silver: SilverStore) -> None:
    worst = measure(silver, "mean", LocalEngine()).as_dict()["worst"]
    assert [pair["coverage"] for pair in worst[:4]] == [0, 0, 0, 0]
    assert {pair["target"] for pair in worst[:4]} == {f"w{number} schlief gut" for number in (3, 7, 11, 15)}


def test_nothing_is_added_by_an_empty_summary(silver: SilverStore) -> None:
    found = measure(silver, "mean", LocalEngine())
    found.join(Summary())
    assert found == measure(silver, "mean", LocalEngine())
