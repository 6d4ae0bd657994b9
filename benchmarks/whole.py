"""The whole method, from a treebank and translated pairs to a parser, compared with supar and simalign in a script.

    python benchmarks/whole.py --treebank en.conllu --bitext en-de.tsv --test de.conllu          # 40 minutes
    python benchmarks/whole.py … --sentences 50 --pairs 20 --epochs 1 --repeats 1                # a minute: a try

Both start as new processes with nothing computed before (no cache of features; the encoder's model folder is there),
with the same sentences, pairs, encoder, sizes, losses (the paper's), epochs (none stops early) and threads. Ours is
`subdp run`, theirs `glue.py`. A second row is `subdp run` with its default losses, beside the peers with the paper's; a
third, on processors with VNNI instructions, `subdp run --encoder-bits 8`.
All end with some gold trees parsed and scored: the scores show that they have made a parser. Much of the difference is
what supar and simalign do not do: supar runs its encoder, all layers of it, for every batch of every epoch, and reads
the last ones; ours runs once a sentence and stops at the layer that is read last.
`--sentences 0` takes the whole treebank, `--epochs 0` the preset's epochs: then it takes some hours.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from measure import alternate, arguments, compare, give, say, script
from peers import model_folder
from subdp.corpus.bitext import read_bitext
from subdp.corpus.treebank import read_conllu, write_conllu
from subdp.encoder.bundled.convert import bundled_encoder
from subdp.encoder.eight_bits import check_processor
from subdp.encoder.encoder import Encoder
from subdp.support.errors import SubdpError
from subdp.support.settings import EncoderBits, LossesName, Settings

PEER = "supar + simalign + torch, glued"
AIM = 5.5
DEFAULT, EIGHT = "default losses", "8 bits"
TESTED = 100


def prepare(options: Any, folder: Path) -> Settings:
    """Write samples of the treebank, the pairs and the gold trees, and the settings, the same for both."""
    sentences = list(read_conllu(options.treebank))
    if options.sentences:
        sentences = random.Random(0).sample(sentences, min(options.sentences, len(sentences)))
    write_conllu(sentences, str(folder / "treebank.conllu"))
    pairs = read_bitext(*options.bitext)
    pairs = pairs.sample(min(options.pairs, len(pairs)), seed=1)
    lines = [f"{' '.join(pair.source)}\t{' '.join(pair.target)}\n" for pair in pairs]
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")
    write_conllu(list(read_conllu(options.test))[:TESTED], str(folder / "test.conllu"))
    changes = {"epochs": options.epochs, "patience": options.epochs} if options.epochs else {"patience": 1000}
    for losses in ("paper", "default"):
        settings = Settings.resolve(losses=losses, flags={"train": changes, "adapt": changes})
        (folder / f"{losses}.toml").write_text(settings.as_toml(), encoding="utf-8")
    words = sum(map(len, sentences)), sum(pairs.words)
    say(f"{len(sentences):,} sentences ({words[0]:,} words), {len(pairs):,} pairs ({words[1]:,} words)")
    return settings


def inputs(folder: Path, options: Any) -> list[str]:
    """The flags that both commands have."""
    files = {"--treebank": "treebank.conllu", "--bitext": "pairs.tsv", "--test": "test.conllu"}
    found = [part for flag, file in files.items() for part in (flag, str(folder / file))]
    return [*found, *(["--encoder", options.encoder] if options.encoder != "bundled" else [])]


def fresh_cache(folder: Path) -> dict[str, str]:
    """The environment for a run with an empty cache except for the bundled encoder's model folder."""
    cache = Path(tempfile.mkdtemp(dir=folder))
    (cache / "encoders").symlink_to(bundled_encoder().parent.resolve())
    return {**os.environ, "SUBDP_CACHE": str(cache), "SUBDP_QUIET": "1", "TRANSFORMERS_VERBOSITY": "error"}


def ours(folder: Path, options: Any, losses: LossesName, bits: EncoderBits = 32) -> None:
    """`subdp run`, in a new folder."""
    output = tempfile.mkdtemp(dir=folder)
    command = [script("subdp"), "run", *inputs(folder, options), "-o", output, "--encoder-bits", str(bits)]
    command += ["--config", str(folder / f"{losses}.toml"), "--tokenized", "--json"]
    scores = json.loads(call(command, fresh_cache(folder)))["scores"]["subdp"]
    say(f"subdp, {losses} losses, {bits} bits: UAS {scores['uas']:.1f}, LAS {scores['las']:.1f}")


def theirs(folder: Path, options: Any) -> None:
    """The script that glues supar and simalign."""
    script = Path(__file__).with_name("glue.py")
    command = [sys.executable, str(script), *inputs(folder, options), "--settings", str(folder / "paper.toml")]
    found = json.loads(call(command, fresh_cache(folder)).splitlines()[-1])
    parts = ", ".join(f"{name} {taken:.0f} s" for name, taken in found["seconds"].items())
    say(f"{PEER}: UAS {found['uas']:.1f}, LAS {found['las']:.1f}; {parts}")


def call(command: list[str], environment: dict[str, str]) -> str:
    """Run a command; what it says is shown only if it fails."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\nfailed:\n{done.stderr}")
    return done.stdout


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--treebank", required=True)
    parser.add_argument("--bitext", nargs="+", required=True, help="one file of pairs, or two files of lines")
    parser.add_argument("--test", required=True, help=f"gold trees; {TESTED} of them are parsed")
    parser.add_argument("--sentences", type=int, default=1000, help="of the treebank, at random; 0 for all")
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=5, help="of both trainings; 0 for the preset's")
    parser.add_argument("--encoder", default="bundled")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model_folder(Encoder.load(options.encoder))  # Made when first asked for, which is not to be timed.
        settings = prepare(options, folder)
        ways: dict[str, Callable[[], object]] = {
            "subdp": partial(ours, folder, options, "paper"),
            DEFAULT: partial(ours, folder, options, "default"),
            PEER: partial(theirs, folder, options),
        }
        try:
            check_processor()
            ways[EIGHT] = partial(ours, folder, options, "paper", 8)
        except SubdpError as error:
            say(str(error))
        times = alternate(ways, options.repeats, warm=False)
    epochs = f"{settings.train.epochs} + {settings.adapt.epochs} epochs"
    size = f"{options.sentences or 'all'} sentences + {options.pairs} pairs, {epochs}"
    mine = {
        "subdp": "paper's losses",
        DEFAULT: "default losses (the peer: the paper's)",
        EIGHT: "paper's losses, --encoder-bits 8",
    }
    rows = []
    for name, losses in mine.items():
        if name not in times:
            continue
        both = {way: times[way] for way in (name, PEER)}
        aims = {PEER: AIM} if name == "subdp" else {}
        rows += compare(f"whole method, {losses}, {size}", both, aims=aims, ours=name)
    give(rows, options.json)


if __name__ == "__main__":
    main()
