"""8-bit products. Their arithmetic is tested on any processor, by a slow product where it lacks the instructions."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from subdp.encoder import eight_bits
from subdp.encoder.eight_bits import EightBitLinear, check_processor, in_eight_bits
from subdp.encoder.encoder import Encoder
from subdp.encoder.trainable import TrainableEncoder
from subdp.parser import Parser
from subdp.pipeline.options import RunOptions
from subdp.pipeline.run import Run
from subdp.support.errors import SubdpError
from subdp.support.settings import EncoderBits, Settings
from tests.cli.test_cli import run as command
from tests.grammar import toy_pairs

SHORT: dict[str, dict[str, object]] = {"train": {"epochs": 1}, "network": {"layers": "0,1,2"}}
SENTENCES = [["The", "cats", "are", "singing", "."], ["a"], ["Ein", "Satz", "mit", "Straßen"]]


def slow_product(x: Tensor, weight: Tensor) -> Tensor:
    return x.int() @ weight.int().t()


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the processor had the instructions."""
    monkeypatch.setattr(eight_bits, "integer_product", slow_product)
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)


@pytest.mark.usefixtures("anywhere")
class TestProducts:
    def test_each_entry_is_off_by_no_more_than_half_a_step_of_either_factor(self) -> None:
        """Of x and of a row of W, every entry is rounded by at most half of the scale."""
        torch.manual_seed(1)
        linear, x = nn.Linear(48, 20), torch.randn(3, 7, 48) * torch.logspace(-3, 3, 7)[:, None]
        scale_w, scale_x = linear.weight.abs().amax(-1) / 127, x.abs().amax(-1, keepdim=True) / 127
        size_w, size_x = linear.weight.abs().sum(-1), x.abs().sum(-1, keepdim=True)
        bound = (scale_x * size_w + scale_w * size_x) / 2 + 48 * scale_x * scale_w / 4
        off = (EightBitLinear(linear)(x) - linear(x)).abs()
        assert (off <= bound * 1.001 + 1e-5).all()
        assert off.max() > 0

    def test_a_vector_does_not_depend_on_the_others_in_its_batch(self) -> None:
        torch.manual_seed(1)
        eight, x = EightBitLinear(nn.Linear(32, 8)), torch.randn(5, 32)
        x[3] *= 1000  # One scale for all rows would leave nothing of the others.
        for row, alone in zip(eight(x), x, strict=True):
            torch.testing.assert_close(row, eight(alone[None])[0], rtol=1e-5, atol=1e-6)

    def test_zeros_give_the_bias_and_a_map_may_have_none(self) -> None:
        linear = nn.Linear(4, 3)
        torch.testing.assert_close(EightBitLinear(linear)(torch.zeros(2, 4)), linear.bias.detach().expand(2, 3))
        assert EightBitLinear(nn.Linear(4, 3, bias=False))(torch.zeros(2, 4)).eq(0).all()


@pytest.mark.usefixtures("anywhere")
class TestEncoder:
    def test_vectors_are_nearly_those_of_the_same_encoder(self, tiny_folder: Path) -> None:
        plain, eight = (Encoder.load(tiny_folder, "cpu", bits=bits) for bits in (32, 8))
        for one, other in zip(plain.encode(SENTENCES), eight.encode(SENTENCES), strict=True):
            assert np.abs(one.vectors - other.vectors).max() < 0.1
            assert np.abs(one.vectors[1:] - other.vectors[1:]).max() > 0
            np.testing.assert_array_equal(one.vectors[0], other.vectors[0])  # No product comes before layer 0.

    def test_it_has_a_fingerprint_of_its_own_and_keeps_its_bits_in_another_process(self, tiny_folder: Path) -> None:
        plain, eight = (Encoder.load(tiny_folder, "cpu", bits=bits) for bits in (32, 8))
        assert plain.fingerprint != eight.fingerprint
        there = pickle.loads(pickle.dumps(eight))
        assert (there.bits, there.fingerprint) == (8, eight.fingerprint)

    def test_no_layer_of_it_can_be_trained(self, tiny_folder: Path) -> None:
        with pytest.raises(SubdpError, match="cannot be used with trained encoder layers"):
            TrainableEncoder(Encoder.load(tiny_folder, "cpu", bits=8), [0, 1], [1])

    def test_other_numbers_of_bits_and_other_precisions_are_refused(self, tiny_folder: Path) -> None:
        with pytest.raises(SubdpError, match="bits cannot be 16"):
            Encoder.load(tiny_folder, "cpu", bits=16)  # type: ignore[arg-type]
        with pytest.raises(SubdpError, match="for an encoder in float32"):
            Encoder.load(tiny_folder, "cpu", torch.bfloat16, bits=8)
        with pytest.raises(SubdpError, match="the encoder that is given has 32-bit products"):
            Parser.load("en", encoder=Encoder.load(device="cpu"), bits=8)

    def test_a_parser_can_be_used_with_8_bits_and_with_32_and_is_told_apart(self) -> None:
        plain, eight = Parser.load("en", device="cpu"), Parser.load("en", device="cpu", bits=8)
        assert plain.fingerprint != eight.fingerprint
        assert plain.features.folder != eight.features.folder
        assert eight.encoder.title == "bundled, 8-bit products"
        (one,), (other,) = plain("She sleeps."), eight("She sleeps.")
        assert one.heads == other.heads == (2, 0, 2)

    def test_a_parser_that_was_trained_with_8_bits_says_so_and_is_the_same_with_32(
        self, tiny_folder: Path, tmp_path: Path
    ) -> None:
        trees, settings = [tree for tree, _, _ in toy_pairs(6)], Settings.resolve(flags=SHORT)
        Parser.train(trees, encoder=Encoder.load(tiny_folder, "cpu", bits=8), settings=settings).save(tmp_path / "p")
        assert "trained with 8-bit products" in (tmp_path / "p" / "README.md").read_text()
        plain, eight = (Parser.load(tmp_path / "p", device="cpu", bits=bits) for bits in (None, 8))
        assert (plain.encoder.bits, eight.encoder.bits) == (32, 8)

    def test_a_training_is_not_resumed_with_other_bits(self, tiny_folder: Path, tmp_path: Path) -> None:
        trees = [tree for tree, _, _ in toy_pairs(6)]

        def train(bits: EncoderBits, epochs: int) -> Parser:
            settings = Settings.resolve(flags={**SHORT, "train": {"epochs": epochs}})
            encoder = Encoder.load(tiny_folder, "cpu", bits=bits)
            return Parser.train(trees, encoder=encoder, settings=settings, folder=tmp_path)

        train(32, 1)
        with pytest.raises(SubdpError, match="its data, encoder or seed was another"):
            train(8, 2)
        assert train(32, 2).about["epochs"] == 2

    def test_a_parser_that_reads_embeddings_alone_does_without(self, tiny_folder: Path, tmp_path: Path) -> None:
        settings = Settings.resolve("distilled", flags={"train": {"epochs": 1}})
        trees = [tree for tree, _, _ in toy_pairs(6)]
        Parser.train(trees, encoder=Encoder.load(tiny_folder, "cpu"), settings=settings).save(tmp_path / "p")
        assert Parser.load(tmp_path / "p", device="cpu", bits=8).encoder.bits == 32

    def test_a_model_without_linear_maps_is_refused(self) -> None:
        with pytest.raises(SubdpError, match="gpt: has no linear layers to run in 8 bits"):
            in_eight_bits(nn.ModuleList([nn.LayerNorm(4)]), "gpt")

    def test_what_cannot_work_is_refused_before_a_run_begins(self, tmp_path: Path) -> None:
        (tmp_path / "pairs.tsv").write_text("I sleep\tIch schlafe\n")
        options = RunOptions((str(tmp_path / "pairs.tsv"),), encoder_bits=8)
        settings, said = Settings.resolve(flags={"adapt": {"encoder_layers": "1"}}), list[str]()
        with pytest.raises(SubdpError, match="cannot be used with trained encoder layers"):
            Run(options, settings, tmp_path / "out").perform(said.append)
        assert said == []
        assert not (tmp_path / "out").exists()


class TestProcessors:
    def test_products_that_overflow_are_noticed(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """What the libraries below torch do without VNNI: two products of 8 bits are added in 16."""
        monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: True)
        monkeypatch.setattr(eight_bits, "integer_product", lambda x, weight: slow_product(x, weight).clamp(max=32767))
        with pytest.raises(SubdpError, match="VNNI"):
            check_processor()

    def test_a_processor_without_the_instructions_is_named_in_one_sentence(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
        (tmp_path / "text.txt").write_text("She sleeps.\n")
        assert command("parse", str(tmp_path / "text.txt"), "--encoder-bits", "8") == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert "8-bit products need a processor with AVX-512 VNNI instructions, which this one lacks" in said.err

    def test_where_it_has_them_products_are_exact(self) -> None:
        try:
            check_processor()
        except SubdpError as error:
            pytest.skip(str(error))
        torch.manual_seed(1)
        x, weight = (torch.randint(-127, 128, (40, 96), dtype=torch.int8) for _ in range(2))
        assert eight_bits.integer_product(x, weight).equal(slow_product(x, weight))
