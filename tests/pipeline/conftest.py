"""A source parser, data and the result of a run that nothing disturbed, all made of toy trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.treebank import write_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from tests.grammar import toy_pairs
from tests.pipeline.toy_run import SETTINGS, make, result, silent, small_shards, write_bitext


@pytest.fixture(scope="module")
def source(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a source parser."""
    folder = tmp_path_factory.mktemp("source") / "parser"
    Parser.train((tree for tree, _, _ in toy_pairs(40)), encoder=tiny, settings=SETTINGS).save(folder)
    return folder


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a bitext and gold trees, and a cache of its own."""
    monkeypatch.setenv("SUBDP_CACHE", str(tmp_path / "cache"))
    write_bitext(tmp_path / "pairs.tsv", toy_pairs(30, seed=3))
    write_conllu((tree for _, tree, _ in toy_pairs(10, seed=9)), tmp_path / "test.conllu")
    return tmp_path


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, bytes]:
    """The result of a run that nothing disturbed, with shards so small that there are many."""
    with pytest.MonkeyPatch.context() as patch:
        small_shards(patch)
        folder = tmp_path_factory.mktemp("undisturbed")
        patch.setenv("SUBDP_CACHE", str(folder / "cache"))
        write_bitext(folder / "pairs.tsv", toy_pairs(30, seed=3))
        write_conllu((tree for _, tree, _ in toy_pairs(10, seed=9)), folder / "test.conllu")
        run = make(folder, source)
        run.perform(silent)
        return result(run)
