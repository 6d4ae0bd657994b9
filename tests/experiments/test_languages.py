"""Languages that a configuration file describes, and what is said where their data is missing."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from subdp.cli.main import app
from subdp.experiments.cells import run_grid
from subdp.experiments.corpora import Corpora
from subdp.experiments.grid import Cell, ExperimentName, ExperimentOptions, Result, System
from subdp.experiments.languages import LANGUAGES, Language, folder_of, read_languages
from subdp.experiments.tables import PAPER, Table, markdown
from subdp.support.errors import SubdpError
from subdp.support.settings import Settings
from tests.experiments.toy import PARTS, toy_grid, write_treebank
from tests.grammar import toy_pairs

CONFIGS = Path(__file__).parents[2] / "configs"
SWEDISH = '[experiment]\nlanguages = ["sv"]\n[languages.sv]\ntreebanks = ["sv_talbanken"]\nbitext = ["subtitles"]\n'


@pytest.fixture
def swedish(data: Path, tmp_path: Path) -> Path:
    """The folder of data with a treebank and bitext of Swedish as well."""
    shutil.copytree(data, tmp_path / "data")
    for seed, split in enumerate(("dev", "test")):
        path = tmp_path / f"data/ud/UD_Swedish-Talbanken/sv_talbanken-ud-{split}.conllu"
        write_treebank(path, 10, seed + 3, 1)
    (tmp_path / "data/bitext/subtitles").mkdir()
    rows = [f"{' '.join(a.words)}\t{' '.join(b.words)}\n" for a, b, _ in toy_pairs(40, seed=8)]
    with gzip.open(tmp_path / "data/bitext/subtitles/en-sv.tsv.gz", "wt") as file:
        file.write("".join(rows))
    (tmp_path / "c.toml").write_text(SWEDISH)
    return tmp_path / "data"


def _refused(capsys: pytest.CaptureFixture[str], data: Path, config: str, *flags: str) -> str:
    """What the command line says of a configuration that is wrong."""
    file = data / "wrong.toml"
    file.write_text(config)
    with pytest.raises(SystemExit) as exit:
        app.meta(["experiment", "transfer", "--data", str(data), "-o", str(data / "x"), "--config", str(file), *flags])
    assert exit.value.code == 1
    return capsys.readouterr().err


def test_a_described_language_has_its_own_treebanks_and_bitext(swedish: Path) -> None:
    corpora = Corpora(swedish, PARTS, 0, read_languages(swedish.parent / "c.toml"))
    assert len(corpora.gold("sv", "dev")) == len(corpora.gold("sv", "test")) == 10
    assert corpora.bitext("sv").report.read == 40
    assert corpora.bitext("de").report.read == 60 + 12 + 30
    assert corpora.survey(["sv"], ["en"]) == []


def test_a_file_may_describe_a_language_of_the_paper_anew(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text('[languages.de]\ntreebanks = ["de_hdt"]\n')
    assert read_languages(tmp_path / "c.toml") == {**LANGUAGES, "de": Language(("de_hdt",))}
    assert read_languages(None) == LANGUAGES


@pytest.mark.trains
def test_an_experiment_with_a_described_language(swedish: Path, options: ExperimentOptions, tmp_path: Path) -> None:
    corpora = Corpora(swedish, PARTS, 10, read_languages(tmp_path / "c.toml"))
    grid = toy_grid("transfer", options, "sv", "de")
    results = run_grid(grid, corpora, tmp_path / "out", lambda _: None)
    table = Table.of(results, "test")
    assert (table.languages, table.systems) == (("sv", "de"), ("DT", "SubDP"))
    header = markdown("transfer", results, grid.splits).splitlines()
    assert "|  | sv | de | mean |" in header
    assert any(line.startswith("| SubDP of the paper") and f"|  | {PAPER['de'][0]} |" in line for line in header)


@pytest.mark.trains
@pytest.mark.parametrize("name", ["losses", "alignment", "multisource"])
def test_analyses_have_a_mean_and_a_spread_over_seeds(
    data: Path, output: Path, options: ExperimentOptions, name: ExperimentName
) -> None:
    grid = toy_grid(name, options, "de", seeds=(1, 2))
    results = run_grid(grid, Corpora(data, PARTS, options.tatoeba), output, lambda _: None)
    seeds: dict[str, list[int]] = {}
    for result in results:
        seeds.setdefault(result.cell.system.name, []).append(result.cell.seed)
    assert list(seeds) == [system.name for system in grid.systems("de")]
    assert all(found == [1, 2] for found in seeds.values())
    assert all("±" in row[1] for row in Table.of(results, "dev").rows("LAS"))


def test_only_direct_transfer_has_one_seed_where_all_share_the_source_parser(options: ExperimentOptions) -> None:
    for name in ("losses", "alignment", "multisource"):
        cells = toy_grid(name, replace(options, encoder=None), "de", seeds=(1, 2)).cells()
        assert {cell.system.method for cell in cells if cell.seed == 2} == (
            {cell.system.method for cell in cells} - {"direct"}
        )


def test_a_treebank_without_a_dev_set_is_cut_in_half_and_that_is_said(data: Path) -> None:
    corpora = Corpora(data, PARTS, 0, {**LANGUAGES, "xx": Language(("UD_German-PUD",))})
    dev, test = corpora.gold("xx", "dev"), corpora.gold("xx", "test")
    assert [tree.sent_id for tree in dev + test] == [f"s{number}" for number in range(12)]
    assert len(dev) == 6
    (note,) = Corpora(data, PARTS, 0).survey(["hi"], ["en"])[1:]
    assert note == "hi: hi_pud has no dev set, the first half of its test set is taken as dev"


def test_a_treebank_that_stands_in_for_another_is_named(data: Path) -> None:
    assert Corpora(data, PARTS, 0).survey(["hi"], ["en"])[0] == "hi: hi_hdtb is missing, hi_pud stands in"


def test_sentences_that_are_tested_on_are_never_bitext(data: Path) -> None:
    corpora = Corpora(data, ("pud",), 0, {**LANGUAGES, "de": Language(("de_gsd", "de_pud"))})
    assert len(Corpora(data, ("pud",), 0).bitext("de")) > 0
    with pytest.raises(SubdpError, match="no bitext from en into de"):
        corpora.bitext("de")


def test_a_language_that_is_not_described_is_told(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = _refused(capsys, data, "", "--languages", "de", "sw")
    assert "the language 'sw' is not described" in said
    assert "as [languages.sw]; known languages are en, ar," in said
    assert "not a target" in _refused(capsys, data, "", "--languages", "en")


def test_missing_treebanks_are_told_with_the_command_that_fetches_them_all(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "ud/UD_Norwegian-Nynorsk").mkdir(exist_ok=True)
    languages = '[languages.no]\ntreebanks = ["no_bokmaal", "no_nynorsk"]\n[languages.fi]\ntreebanks = ["fi_tdt"]\n'
    said = " ".join(_refused(capsys, data, languages, "--languages", "no", "de", "fi").split())
    assert "has no test set of no_bokmaal, no_nynorsk, fi_tdt" in said
    assert f"subdp data ud no_bokmaal no_nynorsk fi_tdt -o {data / 'ud'}" in said
    with pytest.raises(SubdpError, match="has no test set of tr_imst"):
        Corpora(data, PARTS, 0).gold("tr", "dev")


def test_missing_bitext_is_told_with_the_files_that_were_looked_for(swedish: Path) -> None:
    corpora = Corpora(swedish, PARTS, 0, {**LANGUAGES, "sv": Language(("sv_talbanken",))})
    with pytest.raises(SubdpError, match=r"from en into sv .looked for en-sv.tsv, or en.txt and sv.txt, in ntrex, pud"):
        corpora.survey(["sv"], ["en"])


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            '[languages.sv]\ntreebank = ["sv_talbanken"]',
            "[languages.sv]: there is no setting 'treebank' (the settings are",
        ),
        ('[languages.sv]\ntreebanks = "sv_talbanken"', "[languages.sv]: treebanks cannot be 'sv_talbanken'"),
        ('[languages.sv]\nbitext = ["ntrex"]', "[languages.sv]: a language needs a treebank"),
        ('[languages.sv]\ntreebanks = ["Talbanken"]', "[languages.sv]: 'Talbanken' is not a treebank name"),
        ('[languages]\nsv = "sv_talbanken"', "languages.sv is not a section"),
        ('[languages."s/v"]\ntreebanks = ["sv_talbanken"]', "a language cannot be named 's/v'"),
        ('[language.sv]\ntreebanks = ["sv_talbanken"]', "there is no section 'language'"),
    ],
)
def test_a_wrong_description_is_a_clear_error(
    data: Path, capsys: pytest.CaptureFixture[str], config: str, said: str
) -> None:
    found = " ".join(_refused(capsys, data, config).split())
    assert f"{data / 'wrong.toml'}: {said}" in found


def test_figure_3_has_its_eighteen_languages_and_the_command_that_fetches_their_treebanks() -> None:
    text, languages = (CONFIGS / "figure3.toml").read_text(), read_languages(CONFIGS / "figure3.toml")
    chosen = ExperimentOptions.resolve(CONFIGS / "figure3.toml", {}).languages
    assert len(set(chosen)) == 18
    assert set(chosen) <= set(languages)
    command = re.sub(r"\n#\s*", " ", text)
    fetched = shlex.split(command[command.index("subdp data ud") :].partition(" -o ")[0])[3:]
    assert fetched == [treebank for name in chosen for treebank in languages[name].treebanks]
    assert all(folder_of(treebank).startswith("UD_") for treebank in fetched)
    loops = re.findall(r"for xx in ([a-z ]+);", text)
    assert sorted(" ".join(loops).split()) == sorted(chosen)


def test_all_configurations_resolve() -> None:
    for file in sorted(CONFIGS.glob("*.toml")):
        options = ExperimentOptions.resolve(file, {})
        assert Settings.resolve(options.preset, file=file)
        assert set(options.languages) <= set(read_languages(file))


def test_the_papers_row_is_left_out_where_it_has_none_of_the_languages() -> None:
    result = Result(Cell("sv", System("DT"), 1), {"test": []}, {"encoder": "bundled"})
    assert "of the paper" not in markdown("transfer", [result], ("test",))
