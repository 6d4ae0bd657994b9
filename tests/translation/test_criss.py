"""CRISS: a checkpoint as fairseq writes it becomes a model folder that translates and encodes."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from subdp.cli.main import app
from subdp.encoder.encoder import Encoder
from subdp.support.errors import SubdpError
from subdp.translation.criss import convert
from subdp.translation.models import ModelTranslator

LANGUAGES = ["ar_AR", "de_DE", "en_XX"]
# As in every list of pieces: some are whole words, some begin in the middle, and one is a sign that ends lines.
PIECES = ["▁the", "▁", "th", "e", "▁a", *"abcdfghijklmnopqrstuvwxyz.", "\u2028"]
ROWS = 4 + len(PIECES) + len(LANGUAGES) + 1
HIDDEN, POSITIONS = 8, 30


def sentencepiece_model(kind: str = "UNIGRAM") -> bytes:
    """What SentencePiece writes: pieces (an unknown and a control piece first), training, normalisation."""
    from sentencepiece.sentencepiece_model_pb2 import ModelProto

    model = ModelProto()
    model.pieces.add(piece="<unk>", score=0.0, type=ModelProto.SentencePiece.UNKNOWN)
    model.pieces.add(piece="<s>", score=0.0, type=ModelProto.SentencePiece.CONTROL)
    for number, piece in enumerate(PIECES):
        model.pieces.add(piece=piece, score=-1.0 - number / 8)
    model.trainer_spec.model_type = model.trainer_spec.ModelType.Value(kind)
    model.normalizer_spec.name = "identity"
    return bytes(model.SerializeToString())


def fairseq_model() -> tuple[Any, dict[str, Tensor]]:
    """A tiny mBART of transformers, and its weights under fairseq's names: the same numbers."""
    from transformers import MBartConfig, MBartForConditionalGeneration

    sizes: dict[str, Any] = {"d_model": HIDDEN, "max_position_embeddings": POSITIONS, "scale_embedding": True}
    for side, layers in (("encoder", 2), ("decoder", 1)):
        sizes |= {f"{side}_layers": layers, f"{side}_attention_heads": 2, f"{side}_ffn_dim": 12}
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = MBartForConditionalGeneration(MBartConfig(vocab_size=ROWS, init_std=0.5, **sizes)).eval()
    state = {name: tensor.clone() for name, tensor in model.model.state_dict().items() if name != "shared.weight"}
    shared = model.model.shared.weight.detach()
    for side in ("encoder", "decoder"):
        state[f"{side}.embed_tokens.weight"] = shared.clone()
        state[f"{side}.version"] = torch.tensor([3.0])
        state[f"{side}.embed_positions._float_tensor"] = torch.zeros(1)
    state["decoder.output_projection.weight"] = shared.clone()
    return model, state


SETTINGS = Namespace(
    arch="mbart_large", encoder_attention_heads=2, decoder_attention_heads=2, activation_fn="gelu", lr=[0.1]
)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Callable[..., Path]:
    """A folder like CRISS's archive, with a checkpoint that holds what is given besides the weights."""

    def make(state: dict[str, Tensor] | None = None, zipped: bool = True, **more: Any) -> Path:
        folder = tmp_path / "criss"
        folder.mkdir(exist_ok=True)
        (folder / "dict.txt").write_text("".join(f"{piece} {9}\n" for piece in PIECES), newline="")
        (folder / "lang_dict.txt").write_text("".join(f"{language}\n" for language in LANGUAGES))
        (folder / "sentence.bpe.model").write_bytes(sentencepiece_model())
        content = {"args": SETTINGS, "model": fairseq_model()[1] if state is None else state, **more}
        torch.save(content, folder / "criss.3rd.pt", _use_new_zipfile_serialization=zipped)
        return folder

    return make


@pytest.mark.parametrize("zipped", [True, False])  # Torch wrote checkpoints in another format before version 1.6.
def test_every_weight_lands_where_it_computes_the_same(
    checkpoint: Callable[..., Path], tmp_path: Path, zipped: bool
) -> None:
    from transformers import AutoModelForSeq2SeqLM

    history = [{"lr": np.float64(0.1), "losses": np.arange(3.0), "updates": np.int64(5)}]
    folder = checkpoint(zipped=zipped, optimizer_history=history, extra_state={"epoch": 1})
    convert(folder, tmp_path / "model")
    found = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "model").eval()
    expected, _ = fairseq_model()
    ids = torch.tensor([[4, 5, 6, 7, 2, 1], [9, 8, 2, 1, 1, 1]])
    inputs = {
        "input_ids": ids,
        "attention_mask": (ids != 1).long(),
        "decoder_input_ids": torch.tensor([[2, 36], [2, 37]]),
    }
    with torch.inference_mode():
        torch.testing.assert_close(found(**inputs).logits, expected(**inputs).logits, rtol=0, atol=1e-5)
    assert found.config.max_position_embeddings == POSITIONS
    assert found.model.encoder.embed_positions.weight.shape[0] == POSITIONS + 2
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]


def test_pieces_have_fairseqs_numbers_and_sources_no_language(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    convert(checkpoint(), tmp_path / "model")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "model")
    assert len(tokenizer) == ROWS
    names = ["<s>", "<pad>", "</s>", "<unk>", PIECES[0], PIECES[-1], "ar_AR", "de_DE", "en_XX", "<mask>"]
    first = 4 + len(PIECES)
    assert tokenizer.convert_tokens_to_ids(names) == [0, 1, 2, 3, 4, first - 1, *range(first, first + 4)]
    assert tokenizer.convert_ids_to_tokens(tokenizer("the  athb ☃").input_ids) == [
        "▁the", "▁a", "th", "b", "▁", "<unk>", "</s>",
    ]  # fmt: skip
    assert tokenizer.decode(tokenizer("the a").input_ids, skip_special_tokens=True) == "the a"


def test_the_folder_translates_and_encodes(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    checkpoint()
    with pytest.raises(SystemExit) as ended:
        app.meta(["convert-criss", str(tmp_path / "criss" / "criss.3rd.pt"), "-o", str(tmp_path / "model")])
    assert not ended.value.code
    translator = ModelTranslator(str(tmp_path / "model"), "en", "de", beams=2)
    generated: list[Any] = []
    generate = translator.model.generate

    def spy(**given: Any) -> Any:
        generated.append(generate(**given))
        return generated[-1]

    translator.model.generate = spy
    assert len(translator.translate(["the a", "the athe b."])) == 2
    assert generated[0][:, :2].tolist() == [[2, ROWS - 3]] * len(generated[0]), "</s>, then the target language"
    assert (translator.before, translator.after) == ([], [2]), "a source has no language"
    encoder = Encoder.load(tmp_path / "model")
    (encoded,) = encoder.encode([["the", "a", "bath"]])
    assert encoded.vectors.shape[0] == 3
    assert encoded.vectors.shape[2] == HIDDEN


def test_a_checkpoint_in_half_precision_stays_so(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file

    convert(checkpoint({name: tensor.half() for name, tensor in fairseq_model()[1].items()}), tmp_path / "model")
    assert {tensor.dtype for tensor in load_file(tmp_path / "model" / "model.safetensors").values()} == {torch.float16}
    assert Encoder.load(tmp_path / "model").model.dtype == torch.float32


class Evil:
    """Something that runs code when it is unpickled."""

    def __init__(self, proof: Path):
        self.proof = proof

    def __reduce__(self) -> Any:
        return Path.touch, (self.proof,)


def test_a_checkpoint_never_runs_code(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = checkpoint(extra_state=Evil(tmp_path / "proof"))
    with pytest.raises(SubdpError, match=r"criss\.3rd\.pt: holds more than weights .* run code and is not loaded"):
        convert(folder, tmp_path / "model")
    assert not (tmp_path / "proof").exists()
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("gone", "added", "reason"),
    [
        ("encoder.layers.1.fc1", {}, r"weights are not mBART's: .*layers\.1\.fc1"),
        ("encoder.embed_positions.weight", {}, "not mBART's: .*embed_positions"),
        ("encoder.layer_norm", {"encoder.odd": torch.zeros(1)}, "not mBART's"),
        ("none", {"decoder.output_projection.weight": torch.zeros(ROWS, HIDDEN)}, "do not share"),
    ],
)
def test_weights_of_another_kind_are_refused(
    checkpoint: Callable[..., Path], tmp_path: Path, gone: str, added: dict[str, Tensor], reason: str
) -> None:
    state = {name: tensor for name, tensor in fairseq_model()[1].items() if not name.startswith(gone)}
    with pytest.raises(SubdpError, match=reason):
        convert(checkpoint(state | added), tmp_path / "model")
    assert [path.name for path in tmp_path.iterdir()] == ["criss"], "nothing half-written is left"


def test_files_that_do_not_belong_together_are_told(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder, out = checkpoint(), tmp_path / "model"
    (folder / "lang_dict.txt").write_text("en_XX\n")
    with pytest.raises(SubdpError, match=f"{ROWS} embeddings for {ROWS - 2} pieces"):
        convert(folder, out)
    (folder / "lang_dict.txt").unlink()
    with pytest.raises(SubdpError, match=r"lang_dict\.txt: is missing"):
        convert(folder, out)
    (folder / "sentence.bpe.model").write_bytes(sentencepiece_model("BPE"))
    with pytest.raises(SubdpError, match="is not a unigram model"):
        convert(folder, out)
    for damaged in (sentencepiece_model()[:-40], b"", b"not a model"):
        (folder / "sentence.bpe.model").write_bytes(damaged)
        with pytest.raises(SubdpError, match="is not a SentencePiece model"):
            convert(folder, out)
    (folder / "sentence.bpe.model").write_bytes(sentencepiece_model())
    (folder / "dict.txt").write_text("▁the 1\n")
    with pytest.raises(SubdpError, match=r"dict\.txt: does not list the pieces"):
        convert(folder, out)


@pytest.mark.parametrize("package", ["sentencepiece", "google.protobuf.message"])
def test_without_sentencepiece_the_error_says_what_to_install(
    checkpoint: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    folder = checkpoint()
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "sentencepiece.sentencepiece_model_pb2", raising=False)
    with pytest.raises(SubdpError, match=r"needs sentencepiece and protobuf.*pip install 'subdp\[translate\]'"):
        convert(folder, tmp_path / "model")


def test_a_file_that_is_no_checkpoint_is_told(checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder, out = checkpoint(), tmp_path / "model"
    (folder / "criss.3rd.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(SubdpError, match=r"criss\.3rd\.pt: "):
        convert(folder, out)
    torch.save([1], folder / "criss.3rd.pt")
    with pytest.raises(SubdpError, match="it has no entry 'model'"):
        convert(folder, out)
    (folder / "criss.1st.pt").touch()
    with pytest.raises(SubdpError, match=r"holds 2 checkpoints instead of one: criss\.1st\.pt, criss\.3rd\.pt"):
        convert(folder, out)
    with pytest.raises(SubdpError, match="no such file"):
        convert(folder / "criss.2nd.pt", out)
    out.mkdir()
    with pytest.raises(SubdpError, match="already exists"):
        convert(folder / "criss.3rd.pt", out)
