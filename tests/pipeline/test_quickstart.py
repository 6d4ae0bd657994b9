"""`subdp quickstart` with a tiny parser in place of the shipped one: every step is told, and all results are shown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from subdp.corpus.treebank import UNKNOWN, read_conllu
from subdp.encoder.encoder import Encoder
from subdp.parser import Parser
from subdp.pipeline.baselines import hard_trees
from subdp.pipeline.quickstart import SAMPLE, Language, quickstart
from subdp.projection.silver import SilverStore
from subdp.support.settings import NetworkConfig, Settings, TrainConfig
from tests.grammar import toy_pairs

pytestmark = pytest.mark.trains

SETTINGS = replace(
    Settings.resolve(),
    network=NetworkConfig(features=16, lstm=12, lstm_layers=1, arc=12, label=8),
    train=TrainConfig(epochs=2, batch_words=100),
    adapt=TrainConfig(epochs=1),
)


@pytest.fixture(scope="module")
def source(tiny: Encoder, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "parser"
    Parser.train((tree for tree, _, _ in toy_pairs(20)), encoder=tiny, settings=SETTINGS).save(folder)
    return folder


@pytest.mark.parametrize("language", ["de", "tr"])
def test_it_tells_every_step_and_shows_all_results(language: Language, source: Path, tmp_path: Path) -> None:
    said: list[str] = []
    given: list[str] = []
    for _ in range(2):
        quickstart(language, tmp_path / "out", said.append, given.append, source_parser=source, settings=SETTINGS)
    text = "\n".join(said)
    for step in ("[1/8] clean", "[2/8] encode", "[3/8] project", "[5/8] adapt", "[7/8] evaluate", "[8/8] hard"):
        assert text.count(step) == 1, "once: the second time all is done"
    assert "120 pairs read, 120 kept" in text
    results = "\n".join(given[: len(given) // 2])
    for line in ("direct transfer", "hard projection", "SubDP", "40 sentences", "ROOT", "run --bitext en-xx.tsv"):
        assert line in results
    assert f"parse - --parser {tmp_path / 'out' / 'parser'}" in results
    assert Parser.load(tmp_path / "out" / "parser").about["adapted_on"]["pairs"] == 120
    assert given[: len(given) // 2] == given[len(given) // 2 :]


def test_the_sample_is_whole() -> None:
    for language in ("de", "tr"):
        assert len((SAMPLE / f"en-{language}.tsv").read_text().splitlines()) == 120
        assert len(list(read_conllu(SAMPLE / f"{language}-test.conllu"))) == 40


def test_hard_projection_learns_only_what_one_to_one_links_tell(source: Path, tmp_path: Path) -> None:
    from subdp.alignment.links import Alignment, write_alignments
    from subdp.corpus.bitext import Bitext
    from tests.grammar import as_pair

    parser = Parser.load(source)
    pairs = toy_pairs(30, seed=3)
    # The verb, which is the root, and the object have lost their links: their dependents' heads are unknown.
    links = [Alignment.of(link for link in alignment.links if link[0] not in (2, 4)) for _, _, alignment in pairs]
    write_alignments(links, tmp_path / "links.txt")
    bitext = Bitext.of([as_pair(tree, translation) for tree, translation, _ in pairs])
    silver = parser.project(bitext, aligner=str(tmp_path / "links.txt"), folder=tmp_path / "silver")
    trees = list(hard_trees(silver))
    assert [tree.words for tree in trees] == [translation.words for _, translation, _ in pairs]
    assert all(tree.heads[-1] == UNKNOWN for tree in trees)
    adapted = parser.adapt_to_trees(hard_trees(SilverStore(tmp_path / "silver")), settings=SETTINGS)
    known = sum(head != UNKNOWN for tree in trees for head in tree.heads)
    assert adapted.about["adapted_on"]["known_heads"] == known
    assert adapted.fingerprint != parser.fingerprint
