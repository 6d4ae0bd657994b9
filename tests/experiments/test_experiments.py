"""The experiments: which cells there are, that they are done once, and what the tables say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from subdp.cli.experiments import _suffix
from subdp.cli.main import app
from subdp.evaluation.scores import SentenceCounts
from subdp.experiments.cells import Bench, run_grid
from subdp.experiments.corpora import Corpora
from subdp.experiments.grid import Cell, ExperimentOptions, Result, System, read_result
from subdp.experiments.orders import RULES
from subdp.experiments.tables import PAPER, Table, gains, latex, markdown, table_csv, write_report
from subdp.support.errors import SubdpError
from subdp.support.settings import LOSSES
from tests.experiments.toy import PARTS, SETTINGS, toy_grid
from tests.grammar import toy_pairs

pytestmark = pytest.mark.trains


def test_bitext_is_ntrex_and_tatoeba_and_pud_where_that_is_not_the_test_set(data: Path) -> None:
    corpora = Corpora(data, PARTS, 10)
    ntrex = {tuple(pair[0].words) for pair in toy_pairs(60, seed=5)}
    german, hindi = corpora.bitext("de"), corpora.bitext("hi")
    assert german.report.read == 60 + 12 + 30
    assert german.report.dropped["not in the sample"] == 20
    assert hindi.report.read == 60
    assert {pair.source for pair in hindi} <= ntrex


def test_a_language_tested_on_pud_has_halves_of_it_that_share_nothing(data: Path) -> None:
    corpora = Corpora(data, PARTS, 0)
    dev, test = corpora.gold("hi", "dev"), corpora.gold("hi", "test")
    assert [tree.sent_id for tree in dev + test] == [f"s{number}" for number in range(12)]
    assert len(dev) == len(test) == 6


def test_the_ablation_has_the_papers_five_systems_and_one_seed_of_the_slow_ones(options: ExperimentOptions) -> None:
    cells = toy_grid("ablation", options, "de", seeds=(1, 2, 3)).cells()
    seeds = {name: [c.seed for c in cells if c.system.name == name] for name in ("DT", "ST", "Hard", "RandI", "SubDP")}
    assert seeds == {"DT": [1, 2, 3], "ST": [1], "Hard": [1, 2, 3], "RandI": [1], "SubDP": [1, 2, 3]}


def test_one_source_parser_for_all_seeds_makes_direct_transfer_one_cell(options: ExperimentOptions) -> None:
    cells = toy_grid("transfer", replace(options, encoder=None), "de", seeds=(1, 2)).cells()
    names = [(cell.system.name, cell.seed) for cell in cells]
    assert names == [("DT", 1), ("DT, multilingual", 1), ("SubDP", 1), ("SubDP", 2)]


def test_a_seed_or_language_named_twice_counts_once(options: ExperimentOptions) -> None:
    assert toy_grid("transfer", options, "de", "de", seeds=(1, 2, 1)).cells() == (
        toy_grid("transfer", options, "de", seeds=(1, 2)).cells()
    )


def test_rows_are_chosen_by_name_and_an_unknown_one_is_told_with_those_there_are(options: ExperimentOptions) -> None:
    chosen = replace(options, systems=("SubDP es",))
    cells = toy_grid("multisource", chosen, "de", "es").cells()
    assert [(cell.language, cell.system.name) for cell in cells] == [("de", "SubDP es")]
    with pytest.raises(SubdpError, match="the experiment ablation has no row 'SubDP es'"):
        toy_grid("ablation", chosen, "de")


def test_the_losses_differ_from_the_default_in_one_setting_each(options: ExperimentOptions) -> None:
    systems = toy_grid("losses", options, "de").systems("de")[1:]
    default = systems[0].losses
    assert default == SETTINGS.losses
    assert systems[1].losses == LOSSES["paper"]
    assert len({system.losses for system in systems}) == len(systems) >= 8
    for system in systems[2:]:
        assert sum(getattr(system.losses, name) != getattr(default, name) for name in default.__slots__) == 1


def test_every_system_gives_a_parser_and_a_second_run_does_nothing(
    data: Path, output: Path, options: ExperimentOptions
) -> None:
    said: list[str] = []
    grid, corpora = toy_grid("ablation", options, "de"), Corpora(data, PARTS, options.tatoeba)
    first = run_grid(grid, corpora, output, said.append)
    assert [result.cell.system.name for result in first] == ["DT", "ST", "Hard", "RandI", "SubDP"]
    assert len({result.las("test") for result in first}) > 1
    assert all(len(result.counts["dev"]) == 8 for result in first)
    before = {path: path.stat().st_mtime_ns for path in (output / "cells").iterdir()}
    again = run_grid(grid, corpora, output, said.append)
    assert "seed 1: 5 cells, 5 already done" in said
    assert [result.counts for result in again] == [result.counts for result in first]
    assert {path: path.stat().st_mtime_ns for path in (output / "cells").iterdir()} == before


def test_grids_in_one_folder_share_their_cells(data: Path, output: Path, options: ExperimentOptions) -> None:
    said: list[str] = []
    run_grid(toy_grid("ablation", options, "de"), Corpora(data, PARTS, options.tatoeba), output, said.append)
    run_grid(toy_grid("transfer", options, "de"), Corpora(data, PARTS, options.tatoeba), output, said.append)
    assert said[-1] == "seed 1: 2 cells, 2 already done"


def test_other_settings_are_other_cells(data: Path, output: Path, options: ExperimentOptions) -> None:
    grid = toy_grid("transfer", options, "de")
    longer = replace(grid, settings=replace(SETTINGS, adapt=replace(SETTINGS.adapt, epochs=2)))
    said: list[str] = []
    for one in (grid, longer):
        run_grid(one, Corpora(data, PARTS, options.tatoeba), output, said.append)
    assert "seed 1: 2 cells, 1 already done" in said  # direct transfer trains nothing


def test_two_jobs_find_what_one_finds(data: Path, output: Path, options: ExperimentOptions, tmp_path: Path) -> None:
    corpora = Corpora(data, PARTS, options.tatoeba)
    alone = run_grid(toy_grid("transfer", options, "de"), corpora, output, lambda _: None)
    together = run_grid(toy_grid("transfer", replace(options, jobs=2), "de"), corpora, tmp_path, lambda _: None)
    assert [r.counts for r in together] == [r.counts for r in alone]


def test_other_links_and_fewer_pairs_need_no_other_silver(data: Path, output: Path, options: ExperimentOptions) -> None:
    corpora = Corpora(data, PARTS, options.tatoeba)
    sizes = run_grid(toy_grid("bitext-size", options, "de"), corpora, output, lambda _: None)
    assert [result.cell.system.name for result in sizes] == ["DT", "50"]
    links = run_grid(toy_grid("alignment", options, "de"), corpora, output, lambda _: None)
    assert len(links) == 7
    assert len(list((output / "silver").iterdir())) == 1


def test_trees_to_train_on_are_never_scored_and_fewer_are_some_of_the_more(
    data: Path, output: Path, options: ExperimentOptions
) -> None:
    corpora = Corpora(data, PARTS, options.tatoeba)
    dev, pool, rest = (corpora.gold("de", split) for split in ("dev", "pool", "rest"))
    assert sorted(tree.sent_id or "" for tree in pool + rest) == sorted(tree.sent_id or "" for tree in dev)
    bench = Bench(toy_grid("trees", options, "de"), corpora, output)
    five, ten = ([tree.sent_id for tree in bench.drawn(Cell("de", System("x", trees=n), 1))] for n in (5, 10))
    assert set(five) < set(ten) <= {tree.sent_id for tree in pool}
    assert five != [tree.sent_id for tree in bench.drawn(Cell("de", System("x", trees=5), 2))]


def test_trees_are_trained_on_alone_and_beside_silver_as_many_as_there_are(
    data: Path, output: Path, options: ExperimentOptions
) -> None:
    results = run_grid(toy_grid("trees", options, "de"), Corpora(data, PARTS, options.tatoeba), output, lambda _: None)
    names = ["DT", "5 trees", "10 trees", "SubDP", "SubDP, 5 trees", "SubDP, 10 trees"]
    assert [result.cell.system.name for result in results] == names
    assert [result.made["adapted_on"] and result.made["adapted_on"].get("trees") for result in results] == [
        None, 5, 10, None, 5, 10,
    ]  # fmt: skip
    assert all(len(result.counts["rest"]) == 8 for result in results)


def test_the_orders_are_compared_with_the_doubts_of_one_parser(
    data: Path, output: Path, options: ExperimentOptions
) -> None:
    corpora = Corpora(data, PARTS, options.tatoeba)
    results = run_grid(toy_grid("order", options, "de"), corpora, output, lambda _: None)
    assert [result.cell.system.name for result in results] == ["SubDP", *RULES]
    trained_on = [result.made["adapted_on"].get("trees") for result in results]
    assert trained_on == [None, *[len(corpora.gold("de", "pool"))] * len(RULES)], "the toy's pool has too few words"
    (doubts,) = (output / "doubts").glob("*/doubts.json")
    assert len(json.loads(doubts.read_text())) == len(corpora.gold("de", "pool"))


def test_several_sources_teach_one_target(data: Path, output: Path, options: ExperimentOptions) -> None:
    results = run_grid(toy_grid("multisource", options, "de"), Corpora(data, PARTS, 0), output, lambda _: None)
    names = [result.cell.system.name for result in results]
    alone = ["DT en", "DT es", "DT fr", "SubDP en", "SubDP es", "SubDP fr"]
    assert names == [*alone, "DT all", "SubDP all", "SubDP all, averaged", "DT all, SubDP init."]


def _result(language: str, system: str, seed: int, right: int) -> Result:
    counts = [SentenceCounts(10, 10, right, right - 1, True) for _ in range(20)]
    return Result(Cell(language, System(system), seed), {"dev": counts, "test": counts}, {"encoder": "bundled"})


RESULTS = [
    _result("de", "DT", 1, 5), _result("de", "SubDP", 1, 7), _result("de", "SubDP", 2, 8),
    _result("tr", "DT", 1, 3), _result("tr", "SubDP", 1, 4), _result("tr", "SubDP", 2, 4),
]  # fmt: skip


def test_a_table_has_means_over_seeds_and_over_languages() -> None:
    table = Table.of(RESULTS, "test")
    assert table.languages == ("de", "tr")
    assert table.rows("UAS") == [["DT", "50.0", "30.0", "40.0"], ["SubDP", "75.0 ± 7.1", "40.0 ± 0.0", "57.5"]]


def test_the_gain_is_of_the_mean_over_all_seeds() -> None:
    found = {(language, other): comparison.uas.gain for language, other, comparison in gains(RESULTS, "test")}
    assert found == {("tr", "DT"): pytest.approx(10), ("de", "DT"): pytest.approx(25)}


def test_the_transfer_table_shows_the_papers_numbers_and_names_the_encoder() -> None:
    text = markdown("transfer", RESULTS, ("test",))
    assert f"{PAPER['de'][1]:.1f}" in text
    assert "not the paper's XLM-R" in text
    assert r"75.0 $\pm$ 7.1" in latex("transfer", RESULTS, ("test",))


def test_other_losses_have_files_of_their_own() -> None:
    named = {_suffix(losses) for losses in LOSSES.values()}
    assert named == {"", "-paper"}
    assert len({*named, *(_suffix(replace(LOSSES["default"], temperature=value)) for value in (0.5, 2.0))}) == 4


def test_all_four_files_are_written(tmp_path: Path) -> None:
    files = write_report("bitext-size", [*RESULTS, _result("de", "50", 1, 6)], ("dev",), tmp_path, "bitext-size")
    assert [path.suffix for path in files] == [".md", ".tex", ".csv", ".png"]
    assert (tmp_path / "bitext-size.png").read_bytes().startswith(b"\x89PNG")
    assert table_csv(RESULTS).count("\n") == 1 + 2 * len(RESULTS)


def test_a_source_parser_of_other_settings_is_another(data: Path, output: Path, options: ExperimentOptions) -> None:
    grid = toy_grid("transfer", options, "de")
    run_grid(grid, Corpora(data, PARTS, 0), output, lambda _: None)
    before = len(list((output / "source").iterdir()))
    longer = replace(grid, settings=replace(SETTINGS, train=replace(SETTINGS.train, epochs=3)))
    run_grid(longer, Corpora(data, PARTS, 0), output, lambda _: None)
    assert len(list((output / "source").iterdir())) == before + 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seeds = 3", "seeds cannot be 3"),
        ('languages = "de"', "languages cannot be 'de'"),
        ('preset = "big"', "preset cannot be 'big'"),
        ("jobs = 0", "jobs cannot be 0"),
        ("epochs = 3", "there is no setting 'epochs'"),
    ],
)
def test_a_wrong_configuration_is_a_clear_error(
    tmp_path: Path, text: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.toml").write_text(f"[experiment]\n{text}\n")
    with pytest.raises(SystemExit) as exit:
        app.meta(["experiment", "transfer", "--data", str(tmp_path), "-o", "x", "--config", str(tmp_path / "c.toml")])
    assert exit.value.code == 1
    assert said in capsys.readouterr().err


def test_a_damaged_cell_is_made_anew(tmp_path: Path) -> None:
    cell = RESULTS[0].cell
    (tmp_path / "cell.json").write_text(json.dumps({"counts": {"dev": [[1]]}}))
    assert read_result(tmp_path / "cell.json", cell) is None
    assert read_result(tmp_path / "none.json", cell) is None


def test_a_wrong_folder_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match="no such folder"):
        Corpora(tmp_path / "missing", PARTS, 0)
    with pytest.raises(SubdpError, match="holds no folder ud/"):
        Corpora(tmp_path, PARTS, 0)
