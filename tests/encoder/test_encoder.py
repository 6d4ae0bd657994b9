from __future__ import annotations

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from subdp.encoder import encoder as encode
from subdp.encoder.encoder import Encoded, Encoder, _Span
from subdp.support.errors import SubdpError
from tests.tiny import Kind, tiny_encoder

SENTENCES = [
    ["The", "cats", "are", "singing", "in", "the", "verschwundenen", "garden", "."],
    ["a"],
    ["Ein", "Satz", "mit", "Straßen", ",", "don't", "U.S.", "<unk>", "漢字", "ﬁn"],
    ["to", "be", "or", "not", "to", "be", "?"],
    ["шаги", "ıslak", "ağaç"],
]
KINDS: list[Kind] = ["bert", "wordpiece", "xlm-roberta", "mbart"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, Path]:
    return {kind: tiny_encoder(tmp_path_factory.mktemp(kind), kind) for kind in KINDS}


@pytest.fixture
def encoder(folders: dict[Kind, Path]) -> Encoder:
    return Encoder.load(folders["bert"], device="cpu")


def plain(encoder: Encoder, words: list[str]) -> tuple[np.ndarray, list[int | None]]:
    """What transformers itself gives for one sentence: [layers + 1, subwords, hidden], and the word of each subword."""
    inputs = encoder.tokenizer(words, is_split_into_words=True, return_tensors="pt")
    with torch.inference_mode():
        output = encoder.model(input_ids=inputs["input_ids"], output_hidden_states=True)
    return torch.cat(output.hidden_states)[:, 1:-1].numpy(), inputs.word_ids()[1:-1]


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_and_words_are_those_of_transformers(folders: dict[Kind, Path], kind: Kind) -> None:
    encoder = Encoder.load(folders[kind], device="cpu")
    assert (encoder.layers, encoder.hidden, encoder.window) == (3, 16, 64)
    for words, encoded in zip(SENTENCES, encoder.encode(SENTENCES), strict=True):
        vectors, owners = plain(encoder, words)
        np.testing.assert_allclose(encoded.vectors, vectors, atol=1e-5)
        assert encoded.owners.tolist() == owners
        assert len(encoded.first) == len(words)


def test_only_the_encoder_of_an_encoder_decoder_is_kept(folders: dict[Kind, Path]) -> None:
    encoder = Encoder.load(folders["mbart"], device="cpu")
    assert not any("decoder" in name for name, _ in encoder.model.named_parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_layers_above_the_highest_asked_for_are_not_computed(folders: dict[Kind, Path], kind: Kind) -> None:
    encoder = Encoder.load(folders[kind], device="cpu")
    (everything,) = encoder.encode(SENTENCES[:1])
    ran: list[int] = []
    for number, block in enumerate(encoder.blocks, start=1):
        block.register_forward_pre_hook(lambda *_, number=number: ran.append(number))
    for layers, expected in (([0], [1]), ([2, 0], [1, 2]), ([3], [1, 2, 3])):
        ran.clear()
        (some,) = encoder.encode(SENTENCES[:1], layers)
        np.testing.assert_allclose(some.vectors, everything.vectors[layers], atol=1e-6)
        # For layer 0 the first block is reached and left before it computes anything.
        assert ran in (expected, [])


def test_order_and_vectors_do_not_depend_on_batches_and_chunks(
    encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentences = SENTENCES * 5
    expected = list(encoder.encode(sentences))
    monkeypatch.setattr(encode, "_BATCH", {"cpu": 30})
    monkeypatch.setattr(encode, "_MOST_WORDS", 40)
    for want, got in zip(expected, encoder.encode(sentences), strict=True):
        np.testing.assert_allclose(got.vectors, want.vectors, atol=1e-5)
        assert got.first.tolist() == want.first.tolist()


def test_sentences_stream_through(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "_MOST_WORDS", 10)
    read = 0

    def endless() -> Iterator[list[str]]:
        nonlocal read
        while True:
            read += 1
            yield ["so", "on"]

    stream = encoder.encode(endless())
    for _ in range(12):
        next(stream)
    assert read <= 20


def test_a_sentence_of_2000_words_is_encoded_whole_and_each_part_where_it_has_most_context(encoder: Encoder) -> None:
    words = [SENTENCES[0][number * 7 % 9] + "ab"[number % 2] for number in range(2000)]
    (encoded,) = encoder.encode([words])
    assert len(encoded.first) == 2000
    assert encoded.last[-1] == encoded.vectors.shape[1] - 1
    room = encoder.window - 2
    (ids, _), *_ = encoder._tokenise([words])
    for start in (0, room // 2, 10 * (room // 2), len(ids) - room):
        row = torch.tensor([[*encoder.prefix, *ids[start : start + room], *encoder.suffix]])
        with torch.inference_mode():
            states = encoder.model(input_ids=row, output_hidden_states=True).hidden_states
        # A window's middle is always taken from it; the last window may share nearly all with the one before.
        final = start + room == len(ids)
        low, high = (room // 2 + 1, room) if final else (0 if start == 0 else room // 4 + 1, 3 * room // 4 - 1)
        window = torch.cat(states)[:, 1:-1].numpy()
        np.testing.assert_allclose(encoded.vectors[:, start + low : start + high], window[:, low:high], atol=1e-5)


def test_a_sentence_that_just_fits_is_encoded_plainly(encoder: Encoder) -> None:
    words = ["the"] * (encoder.window - 2)
    (encoded,) = encoder.encode([words])
    np.testing.assert_allclose(encoded.vectors, plain(encoder, words)[0], atol=1e-5)


@given(length=st.integers(0, 300), room=st.integers(1, 40))
def test_windows_keep_every_subword_once_where_it_has_most_context(length: int, room: int) -> None:
    spans = list(encode._spans(0, length, room))
    kept = [position for span in spans for position in range(span.keep_start, span.keep_end)]
    assert kept == list(range(length))

    def context(span: _Span, position: int) -> float:
        left = np.inf if span.start == 0 else position - span.start
        right = np.inf if span.end == length else span.end - 1 - position
        return min(left, right)

    for span in spans:
        assert span.end - span.start <= room
        for position in range(span.keep_start, span.keep_end):
            others = [other for other in spans if other.start <= position < other.end]
            assert context(span, position) >= max(context(other, position) for other in others) - 1


def test_a_window_of_one_subword_works_and_one_of_none_is_an_error(encoder: Encoder) -> None:
    parts = (encoder.folder, encoder.model, encoder.tokenizer)
    encoder.tokenizer.model_max_length = 3
    (encoded,) = Encoder("narrow", *parts).encode([["the", "a", "the"]])
    first, second, third = encoded.vectors[-1]
    np.testing.assert_allclose(first, third, atol=1e-5)  # each is encoded alone
    assert not np.allclose(first, second)
    encoder.tokenizer.model_max_length = 2
    with pytest.raises(SubdpError, match="none: takes 2 subwords at a time, all taken up by its 2 special ones"):
        Encoder("none", *parts)


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_without_subwords_still_gets_a_vector(folders: dict[Kind, Path], kind: Kind) -> None:
    encoder = Encoder.load(folders[kind], device="cpu")
    (encoded,) = encoder.encode([["a", "\x01", "", "the"]])
    assert (encoded.last - encoded.first).min() >= 0
    assert encoded.owners.tolist() == sorted(encoded.owners.tolist())
    assert set(encoded.owners.tolist()) == {0, 1, 2, 3}
    assert np.isfinite(encoded.vectors).all()


def test_no_sentences_and_a_sentence_without_words(encoder: Encoder) -> None:
    assert list(encoder.encode([])) == []
    (encoded,) = encoder.encode([[]])
    assert encoded.vectors.shape == (4, 0, 16)


@pytest.mark.parametrize(
    ("device", "said"), [("gpu", "'gpu' cannot be used"), ("meta", "'meta' cannot be used"), ("cuda:99", "'cuda:99'")]
)
def test_a_device_that_is_not_there_is_a_clear_error(folders: dict[Kind, Path], device: str, said: str) -> None:
    with pytest.raises(SubdpError, match=rf"the device {said}.*\(name cpu, cuda"):
        Encoder.load(folders["bert"], device=device)


def test_arrays_that_do_not_fit_together_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        Encoded(np.zeros((1, 2, 3)), np.zeros(2, np.int32), np.zeros(1, np.int32))


@pytest.mark.parametrize("layers", [[4], [-1], []])
def test_layers_that_the_encoder_does_not_have_are_refused(encoder: Encoder, layers: list[int]) -> None:
    with pytest.raises(SubdpError, match="layers 0 to 3"):
        next(encoder.encode(SENTENCES, layers))


def test_the_fingerprint_follows_the_content_not_the_place(folders: dict[Kind, Path], tmp_path: Path) -> None:
    original = Encoder.load(folders["bert"], device="cpu").fingerprint
    copy = shutil.copytree(folders["bert"], tmp_path / "copy")
    assert Encoder.load(copy, device="cpu").fingerprint == original
    other = tiny_encoder(tmp_path / "other", positions=65)
    assert Encoder.load(other, device="cpu").fingerprint != original


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_gives_nearly_the_same(folders: dict[Kind, Path], encoder: Encoder, dtype: torch.dtype) -> None:
    half = Encoder.load(folders["bert"], device="cpu", dtype=dtype)
    for want, got in zip(encoder.encode(SENTENCES), half.encode(SENTENCES), strict=True):
        assert got.vectors.dtype == (np.float16 if dtype == torch.float16 else np.float32)
        np.testing.assert_allclose(got.vectors, want.vectors, atol=0.2)


def test_loading_says_nothing(folders: dict[Kind, Path], capfd: pytest.CaptureFixture[str]) -> None:
    for folder in folders.values():
        Encoder.load(folder, device="cpu")
    assert capfd.readouterr() == ("", "")


def test_an_encoder_that_is_nowhere_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def offline(*_: object, **__: object) -> str:
        raise FileNotFoundError("no network")

    monkeypatch.setattr("huggingface_hub.snapshot_download", offline)
    with pytest.raises(SubdpError, match=r"some-one/no-such-model.*network"):
        Encoder.load("some-one/no-such-model")
    with pytest.raises(SubdpError, match="no folder"):
        Encoder.load(tmp_path / "no-such-folder")


def test_a_folder_is_named_by_its_full_path(folders: dict[Kind, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folders["bert"].parent)
    assert Encoder.load(folders["bert"].name, device="cpu").name == str(folders["bert"].resolve())


def test_a_model_by_name_is_fetched_without_its_side_folders(
    folders: dict[Kind, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def fetch(name: str, **patterns: Any) -> str:
        asked.append((name, patterns))
        return str(folders["bert"])

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)
    assert Encoder.load("some-one/some-model", device="cpu").name == "some-one/some-model"
    ((name, patterns),) = asked
    assert name == "some-one/some-model"
    assert "*.safetensors" in patterns["allow_patterns"]
    assert patterns["ignore_patterns"] == ["*/*"]


def test_a_folder_with_missing_weights_is_refused(folders: dict[Kind, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["bert"], tmp_path / "deeper")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 4}))
    with pytest.raises(SubdpError, match=r"weights are missing.*layer\.3"):
        Encoder.load(folder)


def test_a_broken_folder_is_a_clear_error(folders: dict[Kind, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["bert"], tmp_path / "broken")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:500])
    with pytest.raises(SubdpError, match="cannot be loaded"):
        Encoder.load(folder)
    with pytest.raises(SubdpError, match="cannot be loaded"):
        Encoder.load(tmp_path)


def test_code_that_comes_with_a_model_is_not_run(folders: dict[Kind, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["bert"], tmp_path / "foreign")
    config = json.loads((folder / "config.json").read_text())
    foreign = {"model_type": "foreign", "auto_map": {"AutoConfig": "foreign.C", "AutoModel": "foreign.M"}}
    (folder / "config.json").write_text(json.dumps(config | foreign))
    (folder / "foreign.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with pytest.raises(SubdpError, match="cannot be loaded"):
        Encoder.load(folder)
    assert not (tmp_path / "ran").exists()


def test_an_encoder_can_be_pickled_and_its_copy_encodes_the_same(encoder: Encoder) -> None:
    (expected,) = encoder.encode([["the", "a"]])
    (found,) = pickle.loads(pickle.dumps(encoder)).encode([["the", "a"]])
    np.testing.assert_allclose(found.vectors, expected.vectors, atol=1e-5)


def test_a_process_that_has_another_encoder_of_that_name_is_told(folders: dict[Kind, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["bert"], tmp_path / "encoder")
    sent = pickle.dumps(Encoder.load(folder, device="cpu"))
    (folder / "config.json").write_text((folder / "config.json").read_text() + " ")
    with pytest.raises(SubdpError, match="the encoder of this name on this machine is a different one"):
        pickle.loads(sent)


def test_the_embeddings_of_a_word_are_the_mean_of_its_subwords_and_the_last_of_them(encoder: Encoder) -> None:
    words = ["the", "verschwundenen"]
    cuts = [torch.tensor(encoder.tokenizer(word, add_special_tokens=False)["input_ids"]) for word in words]
    assert len(cuts[1]) > 1
    mean, last = encoder.embeddings(words)
    for row, ids in enumerate(cuts):
        looked_up = encoder.model.get_input_embeddings()(ids)
        subwords = torch.nn.functional.layer_norm(looked_up, (encoder.hidden,))
        torch.testing.assert_close(mean[row], subwords.mean(0))
        torch.testing.assert_close(last[row], subwords[-1])
