"""What the tests of ranks train, in processes that torchrun starts: `-m tests.training.rank_work TASK FOLDER`.

The vectors are made up from the words, so that no encoder has to be loaded.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from subdp.encoder.batch import Batch, Words
from subdp.network.biaffine import Biaffine
from subdp.projection.substructures import inventory_of
from subdp.support.errors import SubdpError
from subdp.support.settings import NetworkConfig, TrainConfig
from subdp.training import ranks
from subdp.training.examples import TreeExamples
from subdp.training.loop import train
from tests.grammar import toy_pairs

NETWORK = NetworkConfig(features=24, lstm=16, lstm_layers=2, arc=16, label=12, dropout=0.2)
CONFIG = TrainConfig(epochs=4, batch_words=150, lr=0.01)
TREES = [source for source, _, _ in toy_pairs(60)]
HIDDEN = 16


def made_up(sentences: Sequence[Words]) -> Batch:
    """A batcher: the vectors of a word depend on its letters alone."""
    vectors = [torch.tensor([[ord(letter) * (at + 1) % 7 - 3.0 for at in range(HIDDEN)] for letter in word]).mean(0)
               for words in sentences for word in words]  # fmt: skip
    lengths = torch.tensor(list(map(len, sentences)))
    first = torch.zeros(len(sentences), int(lengths.max()), dtype=torch.long)
    first[torch.arange(first.shape[1]) < lengths[:, None]] = torch.arange(int(lengths.sum()))
    return Batch(torch.stack(vectors)[:, None].half(), first, first, lengths)


def failing(how: str, sentences: Sequence[Words]) -> Batch:
    """A batcher that fails, but on rank 0."""
    if os.environ["RANK"] != "0":
        if how == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hangs":
            os.kill(os.getpid(), signal.SIGSTOP)
        raise SubdpError("no such shard", where="features")
    return made_up(sentences)


def trained(folder: Path | None = None, epochs: int = CONFIG.epochs, batcher: Any = made_up, seed: int = 1) -> Biaffine:
    """A network trained on toy trees, always from the same weights; the seed is that of dropout and batches."""
    examples = TreeExamples(batcher, TREES, inventory_of(TREES))
    torch.manual_seed(1)
    network = Biaffine(NETWORK, 1, HIDDEN, examples.inventory)
    train(network, examples, replace(CONFIG, epochs=epochs), seed=seed, folder=folder)
    return network


def work(task: str, folder: Path) -> None:
    """What rank 0 does."""
    if task != "train":
        trained(batcher=partial(failing, task))
    trained(folder / "begun-by-two", epochs=2)
    networks = {"whole": trained(), "resumed-by-two": trained(folder / "begun-by-one")}
    for name, network in networks.items():
        save_file(network.state_dict(), folder / f"{name}.safetensors")


if __name__ == "__main__":
    if sys.argv[1] == "hangs":
        ranks.STEP_SECONDS = 2
    torch.set_num_threads(1)
    try:
        ranks.on_ranks(partial(work, sys.argv[1], Path(sys.argv[2])))
    except SubdpError as error:
        print(error)
        ranks.leave(1)
    ranks.leave(0)  # As the command does.
