"""A parser, the one distilled from it, and UDPipe 1, all from the same text: how fast they parse, and how well.

    python benchmarks/distilled.py TEACHER --text FILE… --test GOLD.conllu                # distills first
    python benchmarks/distilled.py TEACHER --student SMALL --text FILE… --test GOLD.conllu --udpipe

Sentences of the test set, from words to trees and tags in a loaded parser, in turns. UDPipe (ufal.udpipe; one core,
with its default settings but for the number of iterations) is trained on the trees that the teacher finds in the text:
what the student learns from, but for the probabilities.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from measure import alternate, arguments, compare, give, say, seconds
from subdp.corpus.draft import draft
from subdp.corpus.treebank import Sentence, read_conllu
from subdp.evaluation.attachment import evaluate
from subdp.parser import Parser
from subdp.pipeline.annotate import read_text

HELD_OUT = 20  # One sentence in so many is UDPipe's held-out data.


class Udpipe:
    """UDPipe 1, its tagger and parser, trained on trees."""

    def __init__(self, trees: Sequence[Sentence], iterations: int):
        from ufal import udpipe

        self.udpipe = udpipe
        apart, rest = trees[::HELD_OUT], [tree for at, tree in enumerate(trees) if at % HELD_OUT]
        error = udpipe.ProcessingError()
        trained = udpipe.Trainer.train(
            "morphodita_parsito",
            self.read(rest),
            self.read(apart),
            "none",
            f"models=1;provide_lemma_1=0;provide_xpostag_1=0;provide_feats_1=0;iterations_1={iterations}",
            f"iterations={iterations}",
            error,
        )
        if error.occurred():
            raise SystemExit(error.message)
        with tempfile.NamedTemporaryFile() as file:
            file.write(trained)
            file.flush()
            self.model = udpipe.Model.load(file.name)

    def read(self, sentences: Sequence[Sentence]) -> Any:
        """Sentences as UDPipe has them."""
        reader, found = self.udpipe.InputFormat.newConlluInputFormat(), self.udpipe.Sentences()
        reader.setText("".join(f"{sentence.conllu}\n\n" for sentence in sentences))
        one = self.udpipe.Sentence()
        while reader.nextSentence(one):
            found.append(one)
            one = self.udpipe.Sentence()
        return found

    def parse(self, sentences: Any) -> None:
        """Tag and parse sentences in place."""
        for sentence in sentences:
            self.model.tag(sentence, self.model.DEFAULT)
            self.model.parse(sentence, self.model.DEFAULT)

    def written(self, sentences: Any, file: Path) -> list[Sentence]:
        """Its sentences as ours, for scoring."""
        writer = self.udpipe.OutputFormat.newConlluOutputFormat()
        file.write_text("".join(map(writer.writeSentence, sentences)), encoding="utf-8")
        return list(read_conllu(file, any_roots=True))


def main() -> None:
    options = arguments(__doc__)
    options.add_argument("teacher", help="a model folder, or en")
    options.add_argument("--text", nargs="+", required=True)
    options.add_argument("--test", type=Path, required=True)
    options.add_argument("--student", help="the parser that was distilled; by default it is made here")
    options.add_argument("--udpipe", action="store_true", help="train UDPipe: some five minutes an iteration")
    options.add_argument("--iterations", type=int, default=10, help="of UDPipe's training")
    options.add_argument("--sentences", type=int, help="at most this many, of the text and of the test set")
    chosen = options.parse_args()
    teacher = Parser.load(chosen.teacher)
    gold = list(read_conllu(chosen.test))[: chosen.sentences]
    plain = [draft(" ".join(tree.words), tree.words, str(number)) for number, tree in enumerate(gold, 1)]
    read = (sentence for file in chosen.text for sentence in read_text(file, None, teacher.tokenizer))
    text = list(islice(read, chosen.sentences))
    small = teacher.distill(text) if chosen.student is None else Parser.load(chosen.student, encoder=teacher.encoder)
    parsers = {"subdp": small, "teacher": teacher}
    for name, parser in parsers.items():
        say(f"{name}: {evaluate(gold, list(parser.parse(plain)), layers=('upos',)).brief}")
    ways: dict[str, Any] = {name: lambda parser=parser: list(parser.parse(plain)) for name, parser in parsers.items()}
    if chosen.udpipe:
        trees = list(teacher.parse(draft(" ".join(one.words), one.words, "1") for one in text))
        made: list[Udpipe] = []
        say(f"ufal.udpipe: trained in {seconds(lambda: made.append(Udpipe(trees, chosen.iterations))):.0f} s")
        with tempfile.TemporaryDirectory() as folder:
            theirs = made[0].read(plain)
            ways["ufal.udpipe"] = lambda: made[0].parse(theirs)
            made[0].parse(theirs)
            found = made[0].written(theirs, Path(folder) / "udpipe.conllu")
        say(f"ufal.udpipe: {evaluate(gold, found, layers=('upos',)).brief}")
    times, count = alternate(ways, chosen.repeats), len(plain)
    work, aims = f"parse {count:,} sentences, distilled", {"teacher": 8.0}
    give(compare(work, times, unit="sentences/s", figure=lambda taken: count / taken, aims=aims), chosen.json)


if __name__ == "__main__":
    main()
