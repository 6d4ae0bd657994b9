"""What the tests of experiments share: a folder of data, one of results, and a tiny encoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from subdp.experiments.grid import ExperimentOptions
from tests.experiments.toy import write_treebank
from tests.grammar import toy_pairs
from tests.tiny import tiny_encoder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of treebanks and bitext in the toy language, under the names of the real ones."""
    folder = tmp_path_factory.mktemp("data")
    for treebank, code, side in (
        ("English-EWT", "en_ewt", 0),
        ("German-GSD", "de_gsd", 1),
        ("French-GSD", "fr_gsd", 0),
        ("Spanish-GSD", "es_gsd", 0),
        ("Spanish-AnCora", "es_ancora", 0),
    ):
        for seed, split in enumerate(("train", "dev", "test")):
            if split != "train" or code == "en_ewt":
                write_treebank(folder / f"ud/UD_{treebank}/{code}-ud-{split}.conllu", 20, seed, side)
    for treebank, code, side in (("English-PUD", "en_pud", 0), ("German-PUD", "de_pud", 1), ("Hindi-PUD", "hi_pud", 1)):
        write_treebank(folder / f"ud/UD_{treebank}/{code}-ud-test.conllu", 12, 7, side)
    (folder / "bitext/ntrex").mkdir(parents=True)
    for language, side in (("en", 0), ("de", 1), ("fr", 0), ("es", 0), ("hi", 1)):
        lines = [" ".join(pair[:2][side].words) for pair in toy_pairs(60, seed=5)]
        (folder / f"bitext/ntrex/{language}.txt").write_text("\n".join(lines) + "\n")
    (folder / "bitext/tatoeba").mkdir()
    rows = [f"{' '.join(a.words)}\t{' '.join(b.words)}" for a, b, _ in toy_pairs(30, seed=6)]
    (folder / "bitext/tatoeba/en-de.tsv").write_text("\n".join(rows) + "\n")
    return folder


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all grids, as a user would have it."""
    return tmp_path_factory.mktemp("experiments")


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache that no other test has filled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUBDP_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> ExperimentOptions:
    """Options with an encoder that is made in a moment."""
    encoder = str(tiny_encoder(tmp_path_factory.mktemp("encoder")))
    return ExperimentOptions(encoder=encoder, tatoeba=10, dev_sentences=8)
