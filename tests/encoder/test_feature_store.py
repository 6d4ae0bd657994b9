from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from subdp.encoder import feature_store as features
from subdp.encoder.encoder import Encoded, Encoder
from subdp.encoder.feature_store import FeatureStore, store_sizes
from subdp.encoder.shards import KEY, Row, Shard, Shards, pack, write_shard
from subdp.support.errors import SubdpError
from tests.tiny import tiny_encoder

SENTENCES = [
    ["The", "cats", "are", "singing", "in", "the", "verschwundenen", "garden"],
    ["a"],
    ["Ein", "Satz", "mit", "Straßen", "und", "\x01", "漢字"],
    [],
    ["to", "be", "or", "not", "to", "be", "?"],
]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    return Encoder.load(tiny_encoder(tmp_path_factory.mktemp("tiny")), device="cpu")


@pytest.fixture
def encoded(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The sentences that the encoder is really given, as they come."""
    seen: list[list[str]] = []
    real = encoder.encode

    def encode(sentences: Collection[Sequence[str]], layers: Sequence[int] | None = None) -> Iterator[Encoded]:
        seen.extend(list(words) for words in sentences)
        return real(sentences, layers)

    monkeypatch.setattr(encoder, "encode", encode)
    return seen


def words_of(store: FeatureStore, sentences: list[list[str]]) -> list[np.ndarray]:
    """Word features as the network reads them out of a batch, a sentence at a time: [words, layers, 2 · hidden]."""
    batch = store.batch(sentences)
    ends = torch.cat([batch.vectors[batch.first], batch.vectors[batch.last]], dim=-1)
    return [row[:length].numpy() for row, length in zip(ends, batch.lengths.tolist(), strict=True)]


def assert_features_are_the_encoders(store: FeatureStore, sentences: list[list[str]]) -> None:
    expected = [
        np.concatenate([one.vectors[:, one.first], one.vectors[:, one.last]], axis=2).swapaxes(0, 1)
        for one in store.encoder.encode(sentences, store.layers)
    ]
    for got, want in zip(words_of(store, sentences), expected, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("layers", [None, [2], [3, 1]])
def test_a_batch_holds_the_encoders_word_features(encoder: Encoder, tmp_path: Path, layers: list[int] | None) -> None:
    store = FeatureStore(encoder, layers, tmp_path)
    assert store.add(SENTENCES) == len(SENTENCES)
    assert_features_are_the_encoders(store, SENTENCES)
    assert_features_are_the_encoders(store, SENTENCES[::-1] + SENTENCES[:2])


def test_a_batch_is_padded_with_zero_and_says_how_long_each_sentence_is(encoder: Encoder, tmp_path: Path) -> None:
    store = FeatureStore(encoder, None, tmp_path)
    store.add(SENTENCES)
    batch = store.batch(SENTENCES)
    assert batch.lengths.tolist() == [len(words) for words in SENTENCES]
    assert batch.first.shape == batch.last.shape == (len(SENTENCES), 8)
    assert batch.first[1, 1:].tolist() == batch.last[1, 1:].tolist() == [0] * 7
    assert batch.vectors.dtype == torch.float16


def test_a_word_of_one_subword_is_stored_once_and_longer_ones_twice(encoder: Encoder, tmp_path: Path) -> None:
    store = FeatureStore(encoder, None, tmp_path)
    sentence = ["the", "verschwundenen", "the"]
    store.add([sentence])
    assert len(store.batch([sentence]).vectors) == 1 + 2 + 1


def test_no_sentence_is_encoded_twice(encoder: Encoder, encoded: list[list[str]], tmp_path: Path) -> None:
    store = FeatureStore(encoder, None, tmp_path)
    assert store.add([*SENTENCES, *SENTENCES]) == len(SENTENCES)
    assert encoded == SENTENCES
    assert store.add(SENTENCES) == 0
    again = FeatureStore(encoder, None, tmp_path)
    assert again.add([*SENTENCES, ["new"]]) == 1
    assert encoded == [*SENTENCES, ["new"]]
    assert len(again) == len(SENTENCES) + 1
    assert ["new"] in again
    assert ["newer"] not in again


def test_the_same_letters_cut_into_other_words_are_another_sentence(encoder: Encoder, tmp_path: Path) -> None:
    store = FeatureStore(encoder, None, tmp_path)
    store.add([["ab", "c"], []])
    assert ["a", "bc"] not in store
    assert [""] not in store


def test_other_layers_and_other_encoders_have_stores_of_their_own(encoder: Encoder, tmp_path: Path) -> None:
    FeatureStore(encoder, [1], tmp_path).add(SENTENCES)
    other = Encoder.load(tiny_encoder(tmp_path / "other", hidden=8), device="cpu")
    assert len(FeatureStore(encoder, [2], tmp_path)) == 0
    assert len(FeatureStore(other, [1], tmp_path)) == 0


def test_many_shards_read_as_one(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "_SHARD_BYTES", 1000)
    store = FeatureStore(encoder, None, tmp_path)
    store.add(SENTENCES)
    assert len(list(store.folder.glob("*.arrow"))) > 1
    assert_features_are_the_encoders(store, SENTENCES)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def empty(file: Path) -> None:
    file.write_bytes(b"")


def fill_with_something_else(file: Path) -> None:
    file.write_bytes(b"this is not an Arrow file, however long one may read in it")


@pytest.mark.parametrize("damage", [cut_short, flip_a_bit, empty, fill_with_something_else])
def test_a_damaged_shard_is_found_and_made_again(encoder: Encoder, tmp_path: Path, damage: object) -> None:
    store = FeatureStore(encoder, None, tmp_path)
    store.add(SENTENCES[:2])
    (shard,) = store.folder.glob("*.arrow")
    whole = shard.read_bytes()
    store.add(SENTENCES[2:])
    del store
    assert callable(damage)
    damage(shard)
    store = FeatureStore(encoder, None, tmp_path)
    assert store.add(SENTENCES) == 2
    assert len(store) == len(SENTENCES)
    assert_features_are_the_encoders(store, SENTENCES)
    assert shard.read_bytes() == whole


def test_a_shard_that_cannot_be_mapped_is_named_and_kept(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where address space is limited: pyarrow's error then has no errno, like that of a damaged file."""
    FeatureStore(encoder, None, tmp_path).add(SENTENCES)

    def refuse(_: str) -> Any:
        raise OSError("Memory mapping file failed: Cannot allocate memory")

    monkeypatch.setattr(pyarrow, "memory_map", refuse)
    with pytest.raises(SubdpError, match=r"\.arrow: cannot be mapped: .* \(allow more address space"):
        FeatureStore(encoder, None, tmp_path)
    assert len(list(tmp_path.rglob("*.arrow"))) == 1


def test_what_an_interrupted_run_left_is_no_trap_and_is_swept_up(encoder: Encoder, tmp_path: Path) -> None:
    store = FeatureStore(encoder, None, tmp_path)
    store.add(SENTENCES[:1])
    old, young = store.folder / "old.part", store.folder / "young.part"
    old.write_bytes(b"half")
    young.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    store = FeatureStore(encoder, None, tmp_path)
    store.add(SENTENCES)
    assert_features_are_the_encoders(store, SENTENCES)
    assert not old.exists()
    assert young.exists()  # Another process may be writing it.


def test_two_writers_at_once_leave_a_good_store(encoder: Encoder, tmp_path: Path) -> None:
    one, two = FeatureStore(encoder, None, tmp_path), FeatureStore(encoder, None, tmp_path)
    one.add(SENTENCES[:3])
    rows = (Row.of(features._key(words), next(encoder.encode([words]))) for words in SENTENCES[1:])
    two._write(pack(rows), "another")
    assert one.add(SENTENCES) == 0  # What the other has written counts.
    for store in (one, FeatureStore(encoder, None, tmp_path)):
        assert len(store) == len(SENTENCES)
        assert_features_are_the_encoders(store, SENTENCES)


def test_a_store_that_cannot_be_written_is_a_clear_error(
    encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(features, "write_shard", full)
    with pytest.raises(SubdpError, match=r"No space left.*SUBDP_CACHE"):
        FeatureStore(encoder, None, tmp_path).add(SENTENCES)


def test_values_beyond_half_precision_stay_finite() -> None:
    ends = np.zeros(1, np.int32)
    row = Row.of(b"k" * 16, Encoded(np.array([[[1e6, -1e6, 1.0]]], np.float32), ends, ends))
    assert np.frombuffer(row.vectors, np.float16).tolist() == [65504.0, -65504.0, 1.0]


def test_a_sentence_that_was_never_added_is_refused(encoder: Encoder, tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="add"):
        FeatureStore(encoder, None, tmp_path).batch([["unknown"]])


def test_stores_are_listed_with_their_sizes(encoder: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    assert store_sizes() == []
    FeatureStore(encoder, [1]).add(SENTENCES[:1])
    FeatureStore(encoder, [1, 2, 3]).add(SENTENCES)
    large, small = store_sizes()
    assert large.layers == (1, 2, 3)
    assert small.encoder == encoder.name
    assert large.bytes == sum(file.stat().st_size for file in large.folder.iterdir()) > small.bytes > 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.text(max_size=6), max_size=5), max_size=5))
def test_any_words_come_back(
    encoder: Encoder, tmp_path_factory: pytest.TempPathFactory, words: list[list[str]]
) -> None:
    store = FeatureStore(encoder, [1], tmp_path_factory.mktemp("store"))
    store.add(words)
    assert_features_are_the_encoders(store, words)


def test_all_subwords_come_back_as_the_encoder_gave_them(encoder: Encoder, tmp_path: Path) -> None:
    store = FeatureStore(encoder, [1, 3], tmp_path)
    store.add(SENTENCES)
    for found, fresh in zip(store.encode(SENTENCES, [3]), encoder.encode(SENTENCES, [3]), strict=True):
        assert np.allclose(found.vectors, fresh.vectors, atol=2e-2)
        assert found.owners.tolist() == fresh.owners.tolist()


@pytest.mark.parametrize("at_once", [1000, 7])
def test_sentences_are_found_by_their_keys_whatever_bytes_those_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr("subdp.encoder.shards._SORTED_AT_ONCE", at_once)
    draw = random.Random(1)
    keys = list({bytes(draw.choices((0, 0, 0, 1, 255), k=16)) for _ in range(300)})
    rows = [Row(key, np.uint16(number).tobytes(), b"") for number, key in enumerate(keys[:200])]
    shards = Shards()
    for number, part in enumerate((rows[:120], rows[80:])):
        write_shard(pack(part), tmp_path / f"{number}.arrow")
        shard = Shard.read(tmp_path / f"{number}.arrow", 0)
        assert shard is not None
        shards.add([shard])
    assert len(shards) == 200
    assert [int(sizes[0]) for sizes, _ in shards.rows(np.array(keys[:200], KEY))] == list(range(200))
    assert (shards.find(np.array(keys[200:], KEY)) == -1).all()


def test_shards_that_could_not_be_indexed_are_still_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shard(pack([Row(b"k" * 16, np.uint16(1).tobytes(), b"")]), tmp_path / "0.arrow")
    shard, shards = Shard.read(tmp_path / "0.arrow", 0), Shards()
    assert shard is not None
    with monkeypatch.context() as patch:
        patch.setattr("subdp.encoder.shards.map_columns", lambda *_: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            shards.add([shard])
    assert not shards.files
    shards.add([shard])
    assert len(shards) == 1


def test_a_damaged_shard_does_not_hide_a_sound_copy(tmp_path: Path) -> None:
    rows = [Row(bytes([number]) * 16, np.uint16(1).tobytes(), bytes(2000)) for number in range(5)]
    files = [tmp_path / "0.arrow", tmp_path / "1.arrow"]
    for file in files:
        write_shard(pack(rows), file)
    flip_a_bit(files[0])
    shards, keys = Shards(), np.array([row.key for row in rows], KEY)
    found = [shard for file in files if (shard := Shard.read(file, 1000))]
    assert [shard.is_sound() for shard in found] == [False, True]
    shards.add(found)
    assert (shards.find_sound(keys) >= 0).all()
    assert len(shards) == 5
    assert files[1].exists()
