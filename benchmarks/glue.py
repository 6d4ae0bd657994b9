"""The whole method without subdp: supar, simalign and the paper's formulas in plain torch, glued together.

    python benchmarks/glue.py --treebank en.conllu --bitext en-de.tsv --settings run/config.toml --test de.conllu

What someone with supar and simalign would write to get the method: `whole.py` compares it with `subdp run`, whose
settings it uses. It trains supar's parser on the treebank, aligns the pairs with simalign (mutual argmax), keeps the
parser's distributions of the source sentences in memory, and trains on from the source parser with the partial cross
entropy on what they project to, keeping the epoch that fits a tenth of the pairs best. From subdp it takes what is not
the method: reading files, settings, scores. Prints seconds by step, and the scores if there is a test set, as JSON.
"""

from __future__ import annotations

import copy
import json
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from peers import Supar, load_simalign, model_folder
from subdp.alignment.similarity import default_layer
from subdp.corpus.bitext import Pair, read_bitext
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.encoder.encoder import Encoder
from subdp.evaluation.attachment import evaluate
from subdp.support.settings import LossConfig, Settings

STEPS: dict[str, float] = {}


@contextmanager
def step(name: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    STEPS[name] = STEPS.get(name, 0.0) + time.perf_counter() - start


@dataclass(frozen=True, slots=True, eq=False)
class Silver:
    """A pair's distributions on the source side and its links. Shape: [S+1, S+1], [S+1, S+1, L], [S+1, T+1]."""

    arcs: Tensor
    labels: Tensor
    links: Tensor


def align(pairs: list[Pair], encoder: Encoder) -> list[Tensor]:
    """A matrix of links for each pair, ROOT with ROOT."""
    aligner = load_simalign(model_folder(encoder), "a", default_layer(encoder.layers))
    matrices = []
    for pair in pairs:
        links = torch.zeros(len(pair.source) + 1, len(pair.target) + 1)
        links[0, 0] = 1
        for source, target in aligner.get_word_aligns(list(pair.source), list(pair.target))["inter"]:
            links[source + 1, target + 1] = 1
        matrices.append(links)
    return matrices


def batches(supar: Supar, sides: list[tuple[str, ...]], words: int, *, shuffle: bool) -> Any:
    """supar's batches, each with the numbers of its sentences; they can be iterated over repeatedly."""
    data = supar.load([list(side) for side in sides], words, shuffle=shuffle)
    numbers = {id(sentence): number for number, sentence in enumerate(data.sentences)}

    def run() -> Iterator[tuple[list[int], Any]]:
        supar.parser.transform.eval()
        for batch in data.loader:
            yield [numbers[id(sentence)] for sentence in batch.sentences], batch

    return run


@torch.no_grad()
def source_distributions(supar: Supar, pairs: list[Pair], links: list[Tensor], words: int) -> list[Silver]:
    """The source parser's distributions over every source sentence."""
    found: list[Any] = [None] * len(pairs)
    supar.parser.model.eval()
    for numbers, batch in batches(supar, [pair.source for pair in pairs], words, shuffle=False)():
        arcs, labels, _ = supar.scores(batch)
        arcs, labels = arcs.softmax(-1), labels.softmax(-1)
        arcs[:, 0] = 0
        for row, number in enumerate(numbers):
            size = len(pairs[number].source) + 1
            found[number] = Silver(arcs[row, :size, :size].clone(), labels[row, :size, :size].clone(), links[number])
    return found


def project(silver: list[Silver], target: int) -> tuple[Tensor, Tensor]:
    """P̂2 of a batch: A_ts · P1 · A_st for arcs, the three-operand sum for labels, with NULL written out."""
    source, count = max(len(each.arcs) for each in silver), silver[0].labels.shape[-1]
    arcs = torch.zeros(len(silver), source, source)
    labels = torch.full((len(silver), source + 1, source + 1, count), 1 / count)
    links = torch.zeros(len(silver), source, target)
    for row, each in enumerate(silver):
        size = len(each.arcs)
        arcs[row, :size, :size] = each.arcs
        labels[row, :size, :size] = each.labels
        links[row, :size, : each.links.shape[1]] = each.links
    to_target, to_source = with_null(links), with_null(links.transpose(1, 2))
    projected = (to_source[..., :-1] @ arcs @ to_target)[..., :-1]
    return projected, torch.einsum("bpi,bijl,bqj->bpql", to_source, labels, to_source)


def with_null(links: Tensor) -> Tensor:
    """N(Δ(Ã)). Shape: [B, r, c] → [B, r, c + 1]."""
    empty = (links.sum(-1, keepdim=True) == 0).to(links.dtype)
    extended = torch.cat((links, empty), -1)
    return extended / extended.sum(-1, keepdim=True)


def loss(supar: Supar, batch: Any, silver: list[Silver], config: LossConfig) -> tuple[Tensor, int]:
    """The partial cross entropy of a batch, and how many words it has."""
    arcs, labels, mask = supar.scores(batch)
    wanted_arcs, wanted_labels = project(silver, arcs.shape[1])
    wanted_arcs = wanted_arcs * mask[..., None]
    pairs = mask[..., None] & torch.cat((torch.ones_like(mask[:, :1]), mask[:, 1:]), 1)[:, None]
    weight = wanted_arcs if config.label_weight == "arc" else pairs
    by_pair = (wanted_labels * labels.log_softmax(-1)).sum(-1)
    return -(wanted_arcs * arcs.log_softmax(-1)).sum() - (weight * by_pair).sum(), int(mask.sum())


def adapt(supar: Supar, pairs: list[Pair], silver: list[Silver], settings: Settings) -> None:
    """Train on from the source parser, and keep the epoch that fits the held-out tenth of the pairs best."""
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(1)).tolist()
    apart = round(0.1 * len(pairs))
    held, kept = order[:apart], order[apart:]
    config, model = settings.adapt, supar.parser.model
    words = max(1, min(config.batch_words, sum(len(pairs[at].target) for at in kept) // config.least_batches))
    learnt = batches(supar, [pairs[at].target for at in kept], words, shuffle=True)
    tested = batches(supar, [pairs[at].target for at in held], words, shuffle=False) if held else None
    supar.begin(config)
    best, best_loss = copy.deepcopy(model.state_dict()), float("inf")
    for _ in range(config.epochs):
        model.train()
        for numbers, batch in learnt():
            value, count = loss(supar, batch, [silver[kept[number]] for number in numbers], settings.losses)
            supar.parser.optimizer.zero_grad()
            (value / count).backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip)
            supar.parser.optimizer.step()
            supar.parser.scheduler.step()
        model.eval()
        with torch.no_grad():
            parts = [] if tested is None else [(batch, [silver[held[at]] for at in which]) for which, batch in tested()]
            total = sum(float(loss(supar, batch, chosen, settings.losses)[0]) for batch, chosen in parts)
        if total <= best_loss:
            best, best_loss = copy.deepcopy(model.state_dict()), total
    model.load_state_dict(best)


def run(treebank: str, bitext: str, settings: Settings, encoder: Encoder, folder: Path) -> Supar:
    """All steps: the target parser."""
    with step("source"):
        sentences: list[Sentence] = []
        for sentence in read_conllu(treebank):
            sentences.append(sentence.with_tree(sentence.heads, sentence.universal_labels))
        supar = Supar(sentences, encoder, settings.network, settings.train, folder)
        for _ in range(settings.train.epochs):
            supar.epoch()
    with step("clean"):
        pairs = list(read_bitext(bitext, tokenized=True).clean())
    with step("align"):
        links = align(pairs, encoder)
    with step("project"):
        silver = source_distributions(supar, pairs, links, settings.train.batch_words)
    with step("adapt"):
        adapt(supar, pairs, silver, settings)
    return supar


def main() -> None:
    options = ArgumentParser(description=__doc__)
    options.add_argument("--treebank", required=True)
    options.add_argument("--bitext", required=True)
    options.add_argument("--settings", required=True, help="a TOML file, as config.toml of a run")
    options.add_argument("--encoder", default="bundled")
    options.add_argument("--test")
    chosen = options.parse_args()
    settings, encoder = Settings.resolve(file=chosen.settings), Encoder.load(chosen.encoder)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        supar = run(chosen.treebank, chosen.bitext, settings, encoder, Path(folder))
        if chosen.test:
            with step("evaluate"):
                gold = list(read_conllu(chosen.test))
                scores = evaluate(gold, supar.parse(gold))
                found = {"uas": scores.uas, "las": scores.las}
    print(json.dumps({"seconds": STEPS, **found}))


if __name__ == "__main__":
    main()
