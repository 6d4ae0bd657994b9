"""Fetching bitext from a web server on this machine: what arrives, what is kept, resumed and refused."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from subdp.corpus.bitext import read_bitext
from subdp.download.bitexts import NTREX, TATOEBA, fetch_ntrex, fetch_tatoeba, fetch_wikimatrix
from subdp.download.web import download
from subdp.support.errors import SubdpError
from tests.cli.test_cli import run
from tests.download.server import Web, serving

ENGLISH, GERMAN = ["Dogs bark.", "Cats sleep."], ["Hunde bellen.", "Katzen schlafen."]
ZIP = "v1/moses/de-en.txt.zip"
EVERY: list[tuple[Any, str]] = [(fetch_ntrex, "de"), (fetch_tatoeba, "en-de"), (fetch_wikimatrix, "en-de")]


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setenv("no_proxy", "*")
    with serving(tmp_path / "web") as web:
        yield web


def text(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def on_github(web: Web, repository: str, commit: str, path: str, files: dict[str, bytes]) -> None:
    """Publish a folder as GitHub does: its files, and a list of them with the hashes that git has."""
    for name, content in files.items():
        web.publish(f"{repository}/{commit}/{path}/{name}", content)
    hashes = {name: hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() for name, content in files.items()}
    listed = [{"name": name, "sha": sha, "type": "file"} for name, sha in hashes.items()]
    web.publish(f"repos/{repository}/contents/{path}", json.dumps(listed).encode())


@pytest.fixture
def ntrex(web: Web) -> Web:
    names = {
        "src.eng": ENGLISH,
        "ref.deu": GERMAN,
        "ref.arb": ["…", "؟"],
        "ref.zho-TW": ["b", "b"],
        "ref.zho-CN": ["a"],
        "ref.fra-CA": ["bine"],
        "ref.fra": ["haricot"],
    }
    on_github(web, *NTREX, {f"newstest2019-{name}.txt": text(lines) for name, lines in names.items()})
    return web


@pytest.fixture
def tatoeba(web: Web) -> Web:
    rows = {"dev": ["deu\teng\tHunde bellen.\tDogs bark."], "test": ["deu\teng\tKatzen schlafen.\tCats sleep."]}
    for part, lines in rows.items():
        files = {f"tatoeba-{part}-v2023-09-26.deu-eng.txt.gz": gzip.compress(text(lines))}
        if part == "test":
            files["tatoeba-test-v2023-09-26.eng-tur.txt.gz"] = gzip.compress(
                text(["eng\ttur\tDogs bark.\tKöpek havlar."])
            )
        on_github(web, *TATOEBA, f"data/release/{part}/v2023-09-26", files)
    return web


def packed(english: list[str], german: list[str]) -> bytes:
    to = io.BytesIO()
    with zipfile.ZipFile(to, "w") as archive:
        for name, lines in (("README", ["x"]), ("WikiMatrix.de-en.de", german), ("WikiMatrix.de-en.en", english)):
            archive.writestr(name, text(lines))
    return to.getvalue()


@pytest.fixture
def wikimatrix(web: Web) -> Web:
    web.publish(ZIP, packed(ENGLISH, GERMAN))
    web.publish("index.txt", f"v1/moses/en-tr.txt.zip\nv1/raw/en.zip\n{ZIP}\n".encode())
    return web


def files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_ntrex_comes_as_parallel_files_by_the_codes_that_were_asked_for(ntrex: Web, tmp_path: Path) -> None:
    english, german, *_ = fetch_ntrex(["de", "ar", "zh", "zho-TW"], tmp_path / "out", url=ntrex.url)
    assert files(tmp_path / "out") == {"en.txt", "de.txt", "ar.txt", "zh.txt", "zho-TW.txt"}
    assert (tmp_path / "out" / "zh.txt").read_text() == "a\n", "the first script or country, in alphabetical order"
    assert str(german) == f"{tmp_path / 'out' / 'de.txt'}: 2 lines"
    assert read_bitext(english.path, german.path)[0].target == ("Hunde", "bellen", ".")


def test_ntrex_without_a_country_is_the_file_that_names_none(ntrex: Web, tmp_path: Path) -> None:
    for language, expected in (("fr", "haricot\n"), ("fra", "haricot\n"), ("fra-CA", "bine\n")):
        *_, fetched = fetch_ntrex([language], tmp_path, url=ntrex.url)
        assert fetched.path.read_text() == expected


def test_tatoeba_comes_as_a_table_with_the_source_first(tatoeba: Web, tmp_path: Path) -> None:
    for pair, expected in (
        ("en-de", "Dogs bark.\tHunde bellen.\nCats sleep.\tKatzen schlafen.\n"),
        ("deu-eng", "Hunde bellen.\tDogs bark.\nKatzen schlafen.\tCats sleep.\n"),
        ("en-tr", "Dogs bark.\tKöpek havlar.\n"),
    ):
        (fetched,) = fetch_tatoeba([pair], tmp_path / "out", url=tatoeba.url)
        assert fetched.path.read_text(encoding="utf-8") == expected
    assert files(tmp_path / "out") == {"en-de.tsv", "deu-eng.tsv", "en-tr.tsv"}


def test_tatoeba_has_the_rows_of_one_language_of_a_macrolanguage(web: Web, tmp_path: Path) -> None:
    archives = {
        "dev": {
            "eng-msa": ["eng\tind\tYes.\tYa.", "eng\tzsm_Latn\tNo.\tBukan."],
            "hbs-eng": ["hrv\teng\tKruh.\tBread."],
        },
        "test": {
            "eng-hbs": ["eng\tsrp_Cyrl\tBread.\tХлеб.", "eng\thrv\tTrain.\tVlak.", "eng\tsrp_Latn\tTrain.\tVoz."],
            "eng-nor": ["eng\tnob\tI.\tJeg.", "eng\tnno\tI.\tEg."],
            "eng-zho": ["eng\tcmn_Hans\tHe.\t他。", "eng\tyue_Hant\tHe.\t佢。"],
            "nor-nor": ["nob\tnno\tJeg.\tEg.", "nno\tnob\tEg.\tJeg."],
        },
    }
    for part, rows in archives.items():
        name = f"tatoeba-{part}-v2023-09-26.{{}}.txt.gz"
        files = {name.format(pair): gzip.compress(text(lines)) for pair, lines in rows.items()}
        on_github(web, *TATOEBA, f"data/release/{part}/v2023-09-26", files)
    for pair, expected in {
        "en-id": "Yes.\tYa.\n",
        "en-ms": "No.\tBukan.\n",
        "en-hr": "Bread.\tKruh.\nTrain.\tVlak.\n",  # whichever side an archive has first
        "sr-en": "Хлеб.\tBread.\nVoz.\tTrain.\n",
        "en-nb": "I.\tJeg.\n",
        "en-nn": "I.\tEg.\n",
        "nn-nb": "Eg.\tJeg.\n",
        "en-zh": "He.\t他。\n",
        "en-yue": "He.\t佢。\n",
    }.items():
        (fetched,) = fetch_tatoeba([pair], tmp_path / "out", url=web.url)
        assert fetched.path.read_text(encoding="utf-8") == expected, pair
    with pytest.raises(SubdpError, match=r"has no row in en-hbs \(its archives have eng-hrv, eng-srp\)"):
        list(fetch_tatoeba(["en-hbs"], tmp_path / "out", url=web.url))
    assert not (tmp_path / "out" / "en-hbs.tsv").exists()


def test_wikimatrix_comes_as_a_table_with_the_source_first(wikimatrix: Web, tmp_path: Path) -> None:
    wikimatrix.publish(ZIP, packed(["Dogs\tbark."], ["Hunde bellen."]))
    english, german = fetch_wikimatrix(["en-de", "de-en"], tmp_path / "out", url=wikimatrix.url)
    assert english.path.read_text() == "Dogs bark.\tHunde bellen.\n"
    assert german.path.read_text() == "Hunde bellen.\tDogs bark.\n"
    assert files(tmp_path / "out") == {"en-de.tsv", "de-en.tsv"}


def test_files_that_are_there_are_kept_whatever_is_in_them(
    ntrex: Web, tatoeba: Web, wikimatrix: Web, tmp_path: Path
) -> None:
    for name in ("en.txt", "de.txt", "en-de.tsv"):
        (tmp_path / name).write_text("edited")
    fetched = [
        *fetch_ntrex(["de"], tmp_path, url=ntrex.url),
        *fetch_tatoeba(["en-de"], tmp_path, url=tatoeba.url),
        *fetch_wikimatrix(["en-de"], tmp_path, url=wikimatrix.url),
    ]
    assert all(file.kept and file.path.read_text() == "edited" for file in fetched)
    assert "already there" in str(fetched[0])
    assert ntrex.requests == []


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_that_was_cut_off_is_resumed(wikimatrix: Web, tmp_path: Path, ranges: bool) -> None:
    wikimatrix.cut[ZIP] = 100
    with pytest.raises(SubdpError, match=r"de-en\.txt\.zip: .*\(the same command resumes the download\)"):
        list(fetch_wikimatrix(["en-de"], tmp_path / "out", url=wikimatrix.url))
    assert files(tmp_path / "out") == {"de-en.txt.zip.part"}
    wikimatrix.cut.clear()
    wikimatrix.ranges = ranges
    (fetched,) = fetch_wikimatrix(["en-de"], tmp_path / "out", url=wikimatrix.url)
    assert wikimatrix.requests[-1] == (ZIP, "bytes=100-")
    assert fetched.path.read_text() == "Dogs bark.\tHunde bellen.\nCats sleep.\tKatzen schlafen.\n"
    assert files(tmp_path / "out") == {"en-de.tsv"}


def test_what_is_longer_than_the_servers_file_is_fetched_anew(wikimatrix: Web, tmp_path: Path) -> None:
    (tmp_path / "de-en.txt.zip.part").write_bytes(b"x" * 10_000)
    (fetched,) = fetch_wikimatrix(["en-de"], tmp_path, url=wikimatrix.url)
    assert fetched.lines == 2


def test_a_file_with_another_checksum_than_published_never_gets_its_name(ntrex: Web, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "de.txt.part").write_bytes(b"Katze")  # of another version of the file
    with pytest.raises(SubdpError, match=r"ref\.deu\.txt: does not match the published checksum"):
        list(fetch_ntrex(["de"], out, url=ntrex.url))
    assert files(out) == {"en.txt"}
    assert [file.lines for file in fetch_ntrex(["de"], out, url=ntrex.url)] == [2, 2]


def test_a_damaged_archive_leaves_no_table(wikimatrix: Web, tmp_path: Path) -> None:
    whole = packed(ENGLISH, GERMAN)
    damaged = [whole.replace(b"Dogs bark.", b"Dogs bite."), whole[:-30], b"<html>", packed(ENGLISH, GERMAN[:1])]
    for number, content in enumerate(damaged):
        wikimatrix.publish(ZIP, content)
        with pytest.raises(SubdpError, match=r"de-en\.txt\.zip: .*\(remove it and try again\)"):
            list(fetch_wikimatrix(["en-de"], tmp_path / str(number), url=wikimatrix.url))
        assert files(tmp_path / str(number)) == {"de-en.txt.zip"}


def test_what_does_not_exist_is_refused_and_what_does_is_named(
    ntrex: Web, tatoeba: Web, wikimatrix: Web, tmp_path: Path
) -> None:
    with pytest.raises(SubdpError, match=r"no language 'tlh' \(it has arb, deu, fra, fra-CA, zho-CN, zho-TW\)"):
        list(fetch_ntrex(["de", "tlh"], tmp_path, url=ntrex.url))
    with pytest.raises(SubdpError, match=r"v2023-09-26 has no pair eng-tlh \(with eng: deu, tur\)"):
        list(fetch_tatoeba(["en-de", "en-tlh"], tmp_path, url=tatoeba.url))
    with pytest.raises(SubdpError, match=r"WikiMatrix has no pair de-tr \(with de: en; with tr: en\)"):
        list(fetch_wikimatrix(["de-tr"], tmp_path, url=wikimatrix.url))
    with pytest.raises(SubdpError, match="check the codes of both languages"):
        list(fetch_wikimatrix(["xx-yy"], tmp_path, url=wikimatrix.url))
    assert not any(path.suffix in (".txt", ".tsv", ".part") for path in tmp_path.iterdir())


def test_requests_that_make_no_sense_are_refused_before_anything_is_asked_for(web: Web, tmp_path: Path) -> None:
    for name in ("de", "en-de-fr", "../en-de", "en-en"):
        for fetch in (fetch_tatoeba, fetch_wikimatrix):
            with pytest.raises(SubdpError, match="is not a pair of languages"):
                list(fetch([name], tmp_path, url=web.url))
    with pytest.raises(SubdpError, match="is not a language"):
        list(fetch_ntrex(["../de"], tmp_path, url=web.url))
    with pytest.raises(SubdpError, match="'2023' is not a release"):
        list(fetch_tatoeba(["en-de"], tmp_path, release="2023", url=web.url))
    for every, name in EVERY:
        with pytest.raises(SubdpError, match="is not a URL"):
            list(every([name], tmp_path, url="file:///etc"))
    assert web.requests == []


def test_no_network_is_told_and_leaves_no_file(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        for fetch, name in EVERY:
            with pytest.raises(SubdpError, match=r"cannot be downloaded: .*refused"):
                list(fetch([name], tmp_path / "out", url=nobody))
    assert not any(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_with_the_file(wikimatrix: Web) -> None:
    told = pytest.raises(SubdpError, match=r"/dev/full: cannot be written: .*make room")
    with Path("/dev/full").open("wb", buffering=0) as full, told:
        download(f"{wikimatrix.url}/{ZIP}", full)


def test_the_commands_print_a_line_for_each_file_or_json(
    ntrex: Web, tatoeba: Web, wikimatrix: Web, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("data", "ntrex", "de", "--url", ntrex.url, "-o", tmp_path) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'en.txt'}: 2 lines\n{tmp_path / 'de.txt'}: 2 lines\n"
    assert run("data", "tatoeba", "en-de", "en-tr", "--url", tatoeba.url, "-o", tmp_path, "--json") == 0
    first, _ = json.loads(capsys.readouterr().out)["files"]
    assert first == {"path": str(tmp_path / "en-de.tsv"), "lines": 2, "kept": False}
    assert run("data", "wikimatrix", "en-de", "--url", wikimatrix.url, "-o", tmp_path) == 0
    assert "already there" in capsys.readouterr().out
    assert run("data", "wikimatrix", "en-fr", "--url", wikimatrix.url, "-o", tmp_path) == 1
    assert "with en: de, tr" in capsys.readouterr().err
    assert run("data", "wikimatrix", "-o", tmp_path) == 2


def test_fetching_does_without_torch() -> None:
    code = "import sys, subdp.download.bitexts; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
