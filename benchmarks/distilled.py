"""A parser, the one distilled from it, UDPipe 1 and spaCy, all from the same text: how fast they parse, and how well.

    python benchmarks/distilled.py TEACHER --text FILE… --test GOLD.conllu                # distills first
    python benchmarks/distilled.py TEACHER --student SMALL --text FILE… --test GOLD.conllu --peers udpipe spacy

Sentences of the test set, from words to trees and tags in a loaded parser, in turns. UDPipe (ufal.udpipe, with its
default settings) and spaCy (the architecture of its small pipelines, as `spacy init config` has it) are trained on the
trees that the teacher finds in the text: what the student learns from, but for the probabilities. Both run on one core;
with few iterations they parse as fast as with many, and less well.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
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
            udpipe.Sentences(self.read(rest)),
            udpipe.Sentences(self.read(apart)),
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

    def read(self, sentences: Sequence[Sentence]) -> list[Any]:
        """Sentences as UDPipe has them."""
        reader, found = self.udpipe.InputFormat.newConlluInputFormat(), []
        reader.setText("".join(f"{sentence.conllu}\n\n" for sentence in sentences))
        one = self.udpipe.Sentence()
        while reader.nextSentence(one):
            found.append(one)
            one = self.udpipe.Sentence()
        return found

    def parse(self, sentences: Sequence[Sentence]) -> list[Any]:
        """Its trees and tags of sentences."""
        parsed = self.read(sentences)
        for sentence in parsed:
            self.model.tag(sentence, self.model.DEFAULT)
            self.model.parse(sentence, self.model.DEFAULT)
        return parsed

    def found(self, sentences: Any) -> list[Sentence]:
        """Parsed sentences as ours, for scoring."""
        writer = self.udpipe.OutputFormat.newConlluOutputFormat()
        with tempfile.NamedTemporaryFile("w", suffix=".conllu", encoding="utf-8") as file:
            file.write("".join(map(writer.writeSentence, sentences)))
            file.flush()
            return list(read_conllu(file.name, any_roots=True))


class Spacy:
    """The tagger and the parser of spaCy's small pipelines, trained on trees."""

    def __init__(self, trees: Sequence[Sentence], iterations: int):
        import spacy
        from spacy.cli.init_config import init_config
        from spacy.training import Example
        from spacy.util import fix_random_seed, load_model_from_config, minibatch

        fix_random_seed(1)
        config = init_config(lang="xx", pipeline=["morphologizer", "parser"], optimize="efficiency", gpu=False)
        self.nlp = load_model_from_config(config, auto_fill=True)
        self.doc = spacy.tokens.Doc
        examples = [Example(self.read([tree])[0], self._gold(tree)) for tree in trees]
        optimizer = self.nlp.initialize(lambda: examples)
        for _ in range(iterations):
            random.Random(1).shuffle(examples)
            for batch in minibatch(examples, size=32):
                self.nlp.update(batch, sgd=optimizer, drop=0.1)

    def read(self, sentences: Sequence[Sentence]) -> Any:
        """Sentences as spaCy has them."""
        return [self.doc(self.nlp.vocab, list(sentence.words)) for sentence in sentences]

    def parse(self, sentences: Sequence[Sentence]) -> Any:
        """Its trees and tags of sentences."""
        return list(self.nlp.pipe(self.read(sentences)))

    def found(self, sentences: Any) -> list[Sentence]:
        """Parsed sentences as ours, for scoring."""
        return [
            Sentence.of(
                [token.text for token in doc],
                heads=[0 if token.head == token else token.head.i + 1 for token in doc],
                labels=["root" if token.head == token else token.dep_ for token in doc],
                upos=[token.pos_ or "X" for token in doc],
                any_roots=True,
            )
            for doc in sentences
        ]

    def _gold(self, tree: Sentence) -> Any:
        heads = [head - 1 if head else at for at, head in enumerate(tree.heads)]
        deps = [label if head else "ROOT" for head, label in zip(tree.heads, tree.labels, strict=True)]
        return self.doc(self.nlp.vocab, list(tree.words), heads=heads, deps=deps, pos=list(tree.upos))


PEERS: dict[str, tuple[str, Callable[..., Any]]] = {"udpipe": ("ufal.udpipe", Udpipe), "spacy": ("spacy", Spacy)}


def main() -> None:
    options = arguments(__doc__)
    options.add_argument("teacher", help="a model folder, or en")
    options.add_argument("--text", nargs="+", required=True)
    options.add_argument("--test", type=Path, required=True)
    options.add_argument("--student", help="the parser that was distilled; by default it is made here")
    options.add_argument("--peers", nargs="+", choices=list(PEERS), default=[], help="to train: minutes an iteration")
    options.add_argument("--iterations", type=int, default=10, help="of the peers' training")
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
    trees = list(teacher.parse(draft(" ".join(one.words), one.words, "1") for one in text)) if chosen.peers else []
    for title, make in (PEERS[name] for name in chosen.peers):
        made: list[Any] = []
        say(f"{title}: trained in {seconds(lambda: made.append(make(trees, chosen.iterations))):.0f} s")  # noqa: B023
        say(f"{title}: {evaluate(gold, made[0].found(made[0].parse(plain)), layers=('upos',)).brief}")
        ways[title] = partial(made[0].parse, plain)
    times, count = alternate(ways, chosen.repeats), len(plain)
    work, aims = f"parse {count:,} sentences, distilled", {"teacher": 8.0}
    give(compare(work, times, unit="sentences/s", figure=lambda taken: count / taken, aims=aims), chosen.json)


if __name__ == "__main__":
    main()
