"""Fetching treebanks: from a web server on this machine, from a folder, and what happens when something is wrong."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from subdp.corpus.treebank import Sentence, read_conllu, write_conllu
from subdp.download import web
from subdp.download.treebanks import FetchedTreebank, fetch_treebanks
from subdp.support.errors import SubdpError
from tests.cli.test_cli import run

TREE = Sentence.of(["Dogs", "bark"], heads=[2, 0], labels=["nsubj", "root"])
GERMAN = Sentence.of(["Hunde", "bellen", "laut"], heads=[2, 0, 2], labels=["nsubj", "root", "advmod"])


class Handler(SimpleHTTPRequestHandler):
    """Serves the files of a folder, and does as a bad server does where a file's name says so."""

    requests: list[str]  # filled by the fixture: which paths were asked for

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if "_slow-" in self.path:
            time.sleep(1)
        elif "_busy-" in self.path:
            self.send_error(503)
        elif "_short-" in self.path:
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(f"{TREE.conllu}\n\n".encode())
        else:
            super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """What the server has: English in three splits, German PUD in one, at release 2.2."""
    english = tmp_path / "web" / "UD_English-EWT" / "r2.2"
    german = tmp_path / "web" / "UD_German-PUD" / "r2.2"
    for folder in (english, german):
        folder.mkdir(parents=True)
        (folder / "LICENSE.txt").write_text("CC BY-SA")
    for split, count in (("train", 3), ("dev", 2), ("test", 1)):
        write_conllu([TREE] * count, english / f"en_ewt-ud-{split}.conllu")
    write_conllu([GERMAN], german / "de_pud-ud-test.conllu")
    return tmp_path / "web"


@pytest.fixture
def requests() -> list[str]:
    """The paths that the server was asked for."""
    return []


@pytest.fixture
def url(published: Path, requests: list[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server on this machine."""
    monkeypatch.setenv("no_proxy", "*")
    handler = type("Recording", (Handler,), {"requests": requests})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(published)))
    thread = Thread(target=partial(server.serve_forever, poll_interval=0.01), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def fetch(output: Path, *names: str, **options: object) -> list[FetchedTreebank]:
    return list(fetch_treebanks(names, output, **options))  # type: ignore[arg-type]


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_treebanks_come_with_all_their_splits_and_licences(url: str, published: Path, tmp_path: Path) -> None:
    english, german = fetch(tmp_path / "ud", "en_ewt", "UD_German-PUD", url=url)
    assert files(tmp_path / "ud") == {
        "UD_English-EWT/en_ewt-ud-train.conllu",
        "UD_English-EWT/en_ewt-ud-dev.conllu",
        "UD_English-EWT/en_ewt-ud-test.conllu",
        "UD_English-EWT/LICENSE.txt",
        "UD_English-EWT/RELEASE.txt",
        "UD_German-PUD/de_pud-ud-test.conllu",
        "UD_German-PUD/LICENSE.txt",
        "UD_German-PUD/RELEASE.txt",
    }
    for name in ("en_ewt-ud-train.conllu", "LICENSE.txt"):
        original = published / "UD_English-EWT" / "r2.2" / name
        assert (tmp_path / "ud" / "UD_English-EWT" / name).read_bytes() == original.read_bytes()
    assert str(english).endswith("UD_English-EWT: 6 sentences (train 3, dev 2, test 1)")
    assert str(german).endswith("UD_German-PUD: 1 sentence (test 1); no train, dev")


def test_what_is_there_is_not_fetched_again(url: str, tmp_path: Path, requests: list[str]) -> None:
    fetch(tmp_path, "en_ewt", "de_pud", url=url)
    requests.clear()
    english, german = fetch(tmp_path, "en_ewt", "de_pud", url=url)
    assert requests == []
    assert english.kept == ("train", "dev", "test")
    assert german.sentences == {"test": 1}
    assert "already there" in str(german)


def test_an_interrupted_call_goes_on_where_it_stopped(
    url: str, tmp_path: Path, published: Path, requests: list[str]
) -> None:
    dev = published / "UD_English-EWT" / "r2.2" / "en_ewt-ud-dev.conllu"
    whole = dev.read_text()
    dev.write_text("nonsense")
    with pytest.raises(SubdpError):
        fetch(tmp_path / "ud", "en_ewt", url=url)
    dev.write_text(whole)
    requests.clear()
    (english,) = fetch(tmp_path / "ud", "en_ewt", url=url)
    assert english.kept == ("train",)
    assert requests[0].endswith("en_ewt-ud-dev.conllu")


def test_a_broken_file_that_is_there_is_fetched_anew(url: str, tmp_path: Path) -> None:
    fetch(tmp_path, "en_ewt", url=url)
    test = tmp_path / "UD_English-EWT" / "en_ewt-ud-test.conllu"
    whole = test.read_text()
    test.write_text(whole[:-5])
    (english,) = fetch(tmp_path, "en_ewt", url=url)
    assert test.read_text() == whole
    assert english.kept == ("train", "dev")


def test_two_releases_do_not_mix_in_one_folder(url: str, tmp_path: Path) -> None:
    fetch(tmp_path, "en_ewt", url=url)
    with pytest.raises(SubdpError, match=r"UD_English-EWT: this is release 2\.2, not 2\.15 \(choose another folder"):
        fetch(tmp_path, "en_ewt", url=url, release="2.15")


def test_a_treebank_that_is_not_there_is_an_error_that_names_the_address(url: str, tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match=r"/UD_English-GUM/r2\.2/en_gum-ud-test\.conllu: no such treebank") as caught:
        fetch(tmp_path / "ud", "en_gum", url=url)
    assert "full one, such as UD_English-EWT" in str(caught.value)
    assert not (tmp_path / "ud").exists()


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (f"{TREE.conllu}\n", 3),  # cut off before the last line end
        ("<html>\n<p>Please log in</p>\n</html>\n\n", 1),
        ("", None),
    ],
)
def test_what_is_not_whole_or_no_conllu_never_gets_its_name(
    url: str, tmp_path: Path, published: Path, content: str, line: int | None
) -> None:
    (published / "UD_German-PUD" / "r2.2" / "de_pud-ud-test.conllu").write_text(content)
    with pytest.raises(SubdpError, match=r"de_pud-ud-test\.conllu:.*try again") as caught:
        fetch(tmp_path / "ud", "de_pud", url=url)
    assert caught.value.line == line
    assert not (tmp_path / "ud").exists()


def test_a_download_that_ends_early_at_the_end_of_a_sentence_is_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(SubdpError, match=r"only \d+ of 1,000 bytes arrived|IncompleteRead"):
        fetch(tmp_path / "ud", "en_short", url=url)
    assert not (tmp_path / "ud").exists()


def test_a_busy_server_a_slow_one_and_none_are_told(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "SECONDS", 0.2)
    with pytest.raises(SubdpError, match="the server answered 503 Service Unavailable"):
        fetch(tmp_path, "en_busy", url=url)
    with pytest.raises(SubdpError, match=r"cannot be downloaded: timed out .*--from DIR"):
        fetch(tmp_path, "en_slow", url=url)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
        with pytest.raises(SubdpError, match=r"cannot be downloaded: .*refused"):
            fetch(tmp_path, "en_ewt", url=nobody)


def test_files_in_parts_are_joined_and_a_missing_part_is_told(url: str, tmp_path: Path, published: Path) -> None:
    folder = published / "UD_Czech-PDT" / "r2.2"
    folder.mkdir(parents=True)
    for part in "clm":
        write_conllu([TREE], folder / f"cs_pdt-ud-train-{part}.conllu")
    with pytest.raises(SubdpError, match=r"cs_pdt-ud-train-v\.conllu: one part of the file is missing"):
        fetch(tmp_path / "ud", "cs_pdt", url=url)
    write_conllu([GERMAN], folder / "cs_pdt-ud-train-v.conllu")
    (czech,) = fetch(tmp_path / "ud", "cs_pdt", url=url)
    assert czech.sentences == {"train": 4}
    assert "no LICENSE.txt" in czech.notes
    joined = list(read_conllu(tmp_path / "ud" / "UD_Czech-PDT" / "cs_pdt-ud-train.conllu"))
    assert joined == [TREE, TREE, TREE, GERMAN]


def test_early_releases_named_their_files_by_the_language_alone(url: str, tmp_path: Path, published: Path) -> None:
    folder = published / "UD_English-EWT" / "r2.1"
    folder.mkdir()
    write_conllu([TREE], folder / "en-ud-dev.conllu")
    fetch(tmp_path / "ud", "en_ewt", url=url, release="2.1")
    assert (tmp_path / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu").exists()


def test_a_treebank_whose_text_is_kept_back_is_noted(url: str, tmp_path: Path, published: Path) -> None:
    folder = published / "UD_French-FTB" / "r2.2"
    folder.mkdir(parents=True)
    write_conllu([Sentence.of(["_", "_"], heads=[2, 0], labels=["nsubj", "root"])], folder / "fr_ftb-ud-test.conllu")
    (french,) = fetch(tmp_path / "ud", "fr_ftb", url=url)
    assert any("test without words" in note for note in french.notes)


def test_a_folder_serves_as_well_as_the_web(tmp_path: Path, published: Path) -> None:
    release = tmp_path / "ud-treebanks-v2.2"
    release.mkdir()
    (published / "UD_English-EWT" / "r2.2").rename(release / "UD_English-EWT")
    (english,) = fetch(tmp_path / "ud", "en_ewt", source=release)
    assert english.sentences == {"train": 3, "dev": 2, "test": 1}
    assert not (tmp_path / "ud" / "UD_English-EWT" / "RELEASE.txt").exists()  # nobody knows it
    (again,) = fetch(tmp_path / "ud", "en_ewt", source=release)
    assert "release unknown" in again.notes
    (known,) = fetch(tmp_path / "known", "en_ewt", source=release, release="2.2")
    (copied,) = fetch(tmp_path / "copied", "en_ewt", source=known.folder.parent)
    assert (copied.folder / "RELEASE.txt").read_text() == "2.2 train dev test\n"
    with pytest.raises(SubdpError, match="leave out --release"):
        fetch(tmp_path / "other", "en_ewt", source=known.folder.parent, release="2.3")
    with pytest.raises(SubdpError, match="no such treebank"):
        fetch(tmp_path / "other", "de_gsd", source=release)
    with pytest.raises(SubdpError, match="no such folder"):
        fetch(tmp_path / "other", "en_ewt", source=tmp_path / "nowhere")


def test_requests_that_make_no_sense_are_refused_before_anything_is_fetched(
    url: str, tmp_path: Path, requests: list[str]
) -> None:
    for names, options in (
        (["en_ewt", "klingon"], {"url": url}),
        (["en_ewt"], {"url": "file:///etc"}),
        (["en_ewt"], {"url": url, "release": "latest"}),
    ):
        with pytest.raises(SubdpError):
            fetch(tmp_path, *names, **options)
    assert requests == []


def test_the_command_prints_one_line_for_each_treebank_or_json(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["data", "ud", "--release", "2.2", "--url", url, "en_ewt", "de_pud", "-o", tmp_path / "ud"]
    assert run(*command) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert run(*command, "--json") == 0
    first, second = json.loads(capsys.readouterr().out)["treebanks"]
    assert first["sentences"] == {"train": 3, "dev": 2, "test": 1}
    assert second["folder"] == str(tmp_path / "ud" / "UD_German-PUD")
    assert run("data", "ud", "en_gum", "--url", url, "-o", tmp_path / "ud") == 1
    message = capsys.readouterr().err
    assert message.startswith(f"subdp: {url}/UD_English-GUM/r2.2/")
    assert len(message.splitlines()) == 1
    assert run("data", "ud", "-o", tmp_path / "ud") == 2
    assert run("data", "ud", "en_ewt", "--from", tmp_path / "ud", "-o", tmp_path / "copy") == 0


def test_fetching_does_without_torch() -> None:
    code = "import sys, subdp.download.treebanks, subdp.cli.data; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
