"""One parser for many threads, as in a service: each gets what it would get alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import torch

from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.grammar import toy_pairs

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8),
    train=TrainConfig(epochs=1),
)


@pytest.mark.parametrize("cores", [1, 2])
def test_four_threads_get_the_bytes_that_one_gets(tiny: Encoder, cores: int) -> None:
    parser = Parser.train((tree for tree, _, _ in toy_pairs(8)), encoder=tiny, settings=SETTINGS)
    texts = [[" ".join(tree.words)] * (1 + number % 3) for number, (tree, _, _) in enumerate(toy_pairs(60, seed=5))]

    def parse(sentences: list[str]) -> str:
        return "".join(sentence.conllu for sentence in parser.parse(sentences, confidence=True))

    torch.set_num_threads(cores)
    try:
        alone = [parse(sentences) for sentences in texts]
        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(parse, texts * 3)) == alone * 3
    finally:
        torch.set_num_threads(1)
