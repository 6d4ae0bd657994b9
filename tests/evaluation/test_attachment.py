"""Scores worked out by hand, against the CoNLL 2018 scorer, and the statistics over runs and between systems."""

from __future__ import annotations

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from subdp.corpus.treebank import Sentence, read_conllu
from subdp.evaluation.attachment import compare, evaluate, summarize
from subdp.evaluation.scores import Labels, Punctuation, Scores
from subdp.support.errors import SubdpError

RULES: tuple[Punctuation, ...] = ("upos", "deprel", "form", "none")


def cats(heads: Sequence[int], labels: Sequence[str], any_roots: bool = False) -> Sentence:
    """`Cats were seen at $ 5 .` with a tree."""
    sentence = Sentence.of(
        ["Cats", "were", "seen", "at", "$", "5", "."],
        upos=["NOUN", "AUX", "VERB", "ADP", "SYM", "NUM", "PUNCT"],
        comments=["sent_id = cats-1"],
    )
    return sentence.with_tree(heads, labels, any_roots=any_roots)


GOLD = cats([3, 3, 0, 5, 3, 5, 3], ["nsubj:pass", "aux:pass", "root", "case", "obl", "nummod", "punct"])
SYSTEM = cats([3, 3, 0, 3, 3, 4, 3], ["nsubj", "aux:pass", "root", "case", "nmod", "nummod", "dep"])


def random_tree(generator: random.Random, length: int) -> list[int]:
    """Heads of a random tree: every word hangs on one that was placed before it."""
    order = generator.sample(range(1, length + 1), length)
    heads = [0] * length
    for position, word in enumerate(order[1:], start=1):
        heads[word - 1] = generator.choice(order[:position])
    return heads


def random_treebank(sentences: int, seed: int) -> list[Sentence]:
    generator = random.Random(seed)
    relations = ["nsubj", "nsubj:pass", "obj", "obl:tmod", "obl", "punct", "case", "nmod:poss"]
    forms = {"punct": (",", "PUNCT")}
    result = []
    for _ in range(sentences):
        heads = random_tree(generator, generator.randint(1, 60))
        labels = ["root" if head == 0 else generator.choice(relations) for head in heads]
        forms_and_tags = [forms.get(label, ("word", "NOUN")) for label in labels]
        words, upos = zip(*forms_and_tags, strict=True)
        result.append(Sentence.of(words, heads=heads, labels=labels, upos=upos))
    return result


def perturbed(sentence: Sentence, generator: random.Random, share: float) -> Sentence:
    """A share of the heads, labels and roots exchanged so that it stays a tree with one root."""
    heads, labels = list(sentence.heads), list(sentence.labels)
    if generator.random() < share and len(heads) > 1:  # a word below the root changes places with it
        root = heads.index(0) + 1
        below = generator.choice([word for word, head in enumerate(heads, start=1) if head == root])
        heads[below - 1], heads[root - 1] = 0, below
    for word in range(1, len(heads) + 1):
        if heads[word - 1] and generator.random() < share:
            candidates = [head for head in range(1, len(heads) + 1) if not hangs_below(heads, head, word)]
            heads[word - 1] = generator.choice(candidates)
        if generator.random() < share:
            labels[word - 1] = generator.choice([*sentence.labels, "dep", labels[word - 1] + ":extra"])
    return sentence.with_tree(heads, labels)


def hangs_below(heads: Sequence[int], word: int, ancestor: int) -> bool:
    while word:
        if word == ancestor:
            return True
        word = heads[word - 1]
    return False


def udeval_scores(gold: Sequence[Sentence], system: Sequence[Sentence]) -> tuple[float, float]:
    """UAS and LAS of the shared task's scorer, in percent."""
    udeval = pytest.importorskip("udtools.udeval", reason="udtools, the scorer compared with, is not installed")
    loaded = [
        udeval.load_conllu(io.StringIO("".join(one.conllu + "\n\n" for one in sentences)), "test", {})
        for sentences in (gold, system)
    ]
    result = udeval.evaluate(*loaded)
    return 100 * result["UAS"].f1, 100 * result["LAS"].f1


@pytest.fixture(scope="module")
def ewt_dev() -> list[Sentence]:
    folder = os.environ.get("SUBDP_DATA")
    if not folder:
        pytest.skip("SUBDP_DATA does not name a folder with ud/UD_English-EWT")
    return list(read_conllu(Path(folder) / "ud" / "UD_English-EWT" / "en_ewt-ud-dev.conllu"))


def test_scores_worked_out_by_hand() -> None:
    # Without `$` and `.`: Cats right, were right, seen right, at wrong head, 5 wrong head.
    scores = evaluate([GOLD], [SYSTEM])
    assert (scores.words, scores.right_heads, scores.right_arcs, scores.punctuation_words) == (5, 3, 3, 2)
    assert (scores.uas, scores.las, scores.label_accuracy) == (60, 60, 100)
    assert (scores.sentences, scores.exact_match, scores.root_accuracy) == (1, 0, 100)


def test_full_labels_tell_subtypes_apart() -> None:
    scores = evaluate([GOLD], [SYSTEM], labels="full")
    assert scores.uas == 60
    assert scores.las == 40
    assert scores.by_relation["nsubj:pass"].right_arcs == 0
    assert scores.by_relation["nsubj"].predicted == 1


@pytest.mark.parametrize(("rule", "words", "uas", "las"), [("upos", 5, 3, 3), ("deprel", 6, 4, 3), ("none", 7, 5, 3)])
def test_punctuation_rules_leave_out_different_words(rule: Punctuation, words: int, uas: int, las: int) -> None:
    scores = evaluate([GOLD], [SYSTEM], punctuation=rule)
    assert (scores.words, scores.right_heads, scores.right_arcs) == (words, uas, las)
    assert scores.punctuation_words == 7 - words


def test_the_form_rule_takes_punctuation_of_every_script_but_no_symbols() -> None:
    forms = ["word", ".", "...", "。", "؟", "।", "«", "$", "+", "a.", "'s"]
    heads = [0] + [1] * (len(forms) - 1)
    sentence = Sentence.of(forms, heads=heads, labels=["root"] + ["dep"] * (len(forms) - 1))
    scores = evaluate([sentence], [sentence], punctuation="form")
    assert (scores.words, scores.punctuation_words) == (5, 6)


def test_punctuation_is_what_the_gold_standard_says_it_is() -> None:
    system = Sentence.of(SYSTEM.words, heads=SYSTEM.heads, labels=["punct"] * 7, upos=["PUNCT"] * 7)
    assert evaluate([GOLD], [system]).words == evaluate([GOLD], [system], punctuation="deprel").words - 1 == 5


def test_a_feature_that_the_gold_standard_never_has_gets_no_score() -> None:
    row = "1\tgo\t_\tVERB\t_\tMood=Imp\t0\troot\t_\t_\n\n"
    trees = list(read_conllu(io.StringIO(row)))
    assert list(evaluate(trees, trees, layers=["feats:Mood", "feats:mood"]).layers) == ["feats:Mood"]


def test_words_without_upos_are_scored_and_counted() -> None:
    bare = Sentence.of(["Dogs", "bark", "."], heads=[2, 0, 2], labels=["nsubj", "root", "punct"])
    scores = evaluate([bare], [bare])
    assert (scores.words, scores.untagged_words) == (3, 3)
    assert "3 words without UPOS scored" in str(scores)
    assert evaluate([bare], [bare], punctuation="form").untagged_words == 0


def test_a_perfect_system_has_full_marks() -> None:
    treebank = random_treebank(20, seed=1)
    for rule in RULES:
        scores = evaluate(treebank, treebank, punctuation=rule)
        values = scores.uas, scores.las, scores.label_accuracy, scores.exact_match, scores.root_accuracy
        assert values == (100,) * 5
        assert scores.unlabelled_exact_match == 100


def test_exact_match_with_and_without_labels() -> None:
    relabelled = cats(GOLD.heads, ["obj", *GOLD.labels[1:]])
    scores = evaluate([GOLD, GOLD], [GOLD, relabelled])
    assert (scores.exact_match, scores.unlabelled_exact_match) == (50, 100)


def test_a_second_root_is_a_wrong_root() -> None:
    two_roots = cats([0, 3, 0, 5, 3, 5, 3], GOLD.labels, any_roots=True)
    assert evaluate([GOLD, GOLD], [GOLD, two_roots]).root_accuracy == 50


def test_a_head_the_system_leaves_unknown_is_wrong() -> None:
    blank = Sentence.of(GOLD.words)
    scores = evaluate([GOLD], [blank], punctuation="none")
    assert (scores.words, scores.uas, scores.las, scores.label_accuracy) == (7, 0, 0, 0)
    assert scores.by_relation["_"].predicted == 7


def test_a_word_whose_gold_head_is_unknown_is_not_scored() -> None:
    partial = Sentence.of(["a", "b", "c"], heads=[2, -1, -1], labels=["det", "_", "_"])
    whole = Sentence.of(["a", "b", "c"], heads=[2, 3, 0], labels=["det", "obj", "root"])
    scores = evaluate([partial], [whole])
    assert (scores.words, scores.unknown_words, scores.las, scores.exact_match) == (1, 2, 100, 100)
    assert scores.root_accuracy == 0  # no root is known
    assert "2 without gold head left out" in str(scores)


def test_long_sentences_are_left_out_counted_and_let_in_by_option() -> None:
    long = Sentence.of(["w"] * 151, heads=[0, *range(1, 151)], labels=["root"] + ["dep"] * 150)
    scores = evaluate([GOLD, long], [GOLD, long])
    assert (scores.sentences, scores.long_sentences, scores.words) == (1, 1, 5)
    assert "1 sentence over 150 words left out" in str(scores)
    assert evaluate([long], [long], max_length=151).words == 151
    assert evaluate([long], [long], max_length=None).long_sentences == 0


def test_sentences_of_punctuation_alone_count_as_empty() -> None:
    dots = Sentence.of(["..."], heads=[0], labels=["root"], upos=["PUNCT"])
    scores = evaluate([GOLD, dots], [GOLD, dots])
    assert (scores.sentences, scores.empty_sentences, scores.punctuation_words) == (1, 1, 3)
    with pytest.raises(SubdpError, match="no word to score"):
        evaluate([dots], [dots])


def test_relations_by_hand() -> None:
    relation = evaluate([GOLD], [SYSTEM], punctuation="none").by_relation
    assert next(iter(relation)) == "aux"  # all occur once: by name
    case, nmod = relation["case"], relation["nmod"]
    assert (case.words, case.predicted, case.uas, case.precision, case.recall, case.f1) == (1, 1, 0, 0, 0, 0)
    assert (nmod.words, nmod.predicted, nmod.f1) == (0, 1, 0)
    assert relation["nsubj"].f1 == 100


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("labels", ["universal", "full"])
def test_parts_add_up_to_the_whole(rule: Punctuation, labels: str) -> None:
    gold, generator = random_treebank(60, seed=3), random.Random(3)
    system = [perturbed(sentence, generator, 0.3) for sentence in gold]
    scores = evaluate(gold, system, punctuation=rule, labels=cast(Labels, labels))
    whole = (scores.words, scores.right_heads, scores.right_arcs)
    relations, lengths = list(scores.by_relation.values()), list(scores.by_length.values())
    for parts in (relations, lengths, scores.per_sentence):
        assert tuple(sum(part[at] for part in map(counts, parts)) for at in range(3)) == whole
    assert sum(relation.predicted for relation in relations) == scores.words
    assert sum(length.sentences for length in lengths) == scores.sentences == len(gold) - scores.empty_sentences
    assert scores.words + scores.punctuation_words == sum(len(sentence) for sentence in gold)
    assert list(scores.by_length) == ["1-10", "11-20", "21-30", "31-40", "41-50", "51+"]


def counts(part: object) -> tuple[int, int, int]:
    return part.words, part.right_heads, part.right_arcs  # type: ignore[attr-defined]


def test_scores_print_as_one_line_and_as_json() -> None:
    scores = evaluate([GOLD], [SYSTEM])
    assert str(scores) == (
        "UAS 60.0  LAS 60.0  UPOS 100.0  label accuracy 100.0  exact match 0.0  root 100.0"
        "  (5 words, 1 sentence; 2 punctuation left out)"
    )
    back = json.loads(json.dumps(scores.as_dict(), allow_nan=False))
    assert (back["uas"], back["las"], back["words"], back["punctuation"]) == (60, 60, 5, "upos")
    assert back["by_relation"]["nsubj"]["f1"] == 100
    assert back["by_length"] == {"1-10": {"uas": 60, "las": 60, "label_accuracy": 100, "words": 5, "sentences": 1}}


def test_the_first_word_that_differs_is_named() -> None:
    other = Sentence.of(["Cats", "are", "seen", "by", "$", "5", "."])
    with pytest.raises(SubdpError) as caught:
        evaluate([GOLD, GOLD], [GOLD, other])
    assert "sentence 2 (cats-1), word 2: the gold standard has 'were', the system has 'are'" in str(caught.value)


def test_a_missing_or_surplus_word_is_named() -> None:
    shorter = Sentence.of(GOLD.words[:-1])
    with pytest.raises(SubdpError, match=r"word 7: the gold standard has '\.', the system has no more words"):
        evaluate([GOLD], [shorter])
    with pytest.raises(SubdpError, match=r"word 7: the gold standard has no more words, the system has '\.'"):
        evaluate([shorter], [GOLD])


def test_words_in_composed_and_decomposed_characters_are_the_same() -> None:
    composed, decomposed = (Sentence.of([word], heads=[0], labels=["root"]) for word in ("é", "e\u0301"))
    assert evaluate([composed], [decomposed]).las == 100


def test_a_different_number_of_sentences_is_named() -> None:
    with pytest.raises(SubdpError, match=r"gold standard has sentence 2 \(cats-1\), but the system ends after 1"):
        evaluate([GOLD, GOLD], [GOLD])
    with pytest.raises(SubdpError, match=r"system has sentence 1 .*, but the gold standard ends after 0"):
        evaluate([], [GOLD])


def test_unknown_rules_are_refused_with_the_choices() -> None:
    with pytest.raises(SubdpError, match="choose upos, deprel, form, none"):
        evaluate([GOLD], [GOLD], punctuation="all")  # type: ignore[arg-type]
    with pytest.raises(SubdpError, match="choose universal, full"):
        evaluate([GOLD], [GOLD], labels="some")  # type: ignore[arg-type]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_equals_the_shared_task_scorer_on_random_trees(share: float) -> None:
    gold, generator = random_treebank(80, seed=4), random.Random(5)
    system = [perturbed(sentence, generator, share) for sentence in gold]
    scores = evaluate(gold, system, punctuation="none", max_length=None)
    assert (scores.uas, scores.las) == pytest.approx(udeval_scores(gold, system), abs=1e-9)
    assert share == 0 or scores.las < scores.uas < 100


def test_equals_the_shared_task_scorer_on_ewt(ewt_dev: list[Sentence]) -> None:
    generator = random.Random(6)
    system = [perturbed(sentence, generator, 0.15) for sentence in ewt_dev]
    scores = evaluate(ewt_dev, system, punctuation="none", max_length=None)
    assert (scores.uas, scores.las) == pytest.approx(udeval_scores(ewt_dev, system), abs=1e-9)
    assert scores.words == 25_148


def test_mean_and_sample_deviation_over_runs() -> None:
    half = cats([3, 3, 0, 3, 3, 4, 3], GOLD.labels)
    runs = [evaluate([GOLD], [GOLD]), evaluate([GOLD], [half])]
    summary = summarize(runs)
    assert (summary.uas.mean, summary.uas.std) == pytest.approx((80, 20 * 2**0.5))
    assert str(summary.uas) == "80.0 ± 28.3"
    assert str(summary) == "UAS 80.0 ± 28.3  LAS 80.0 ± 28.3  (2 runs)"
    assert json.loads(json.dumps(summary.as_dict()))["las"]["mean"] == 80


def test_one_run_has_no_deviation_and_none_no_summary() -> None:
    summary = summarize([evaluate([GOLD], [GOLD])])
    assert summary.las.std is None
    assert str(summary) == "UAS 100.0  LAS 100.0  (1 run)"
    with pytest.raises(SubdpError, match="no run"):
        summarize([])


@pytest.fixture(scope="module")
def good_and_bad() -> tuple[Scores, Scores]:
    gold, generator = random_treebank(120, seed=7), random.Random(8)
    good = [perturbed(sentence, generator, 0.1) for sentence in gold]
    bad = [perturbed(sentence, generator, 0.3) for sentence in gold]
    return evaluate(gold, good), evaluate(gold, bad)


def test_a_system_does_not_beat_itself(good_and_bad: tuple[Scores, Scores]) -> None:
    good, _ = good_and_bad
    result = compare(good, good, samples=500)
    assert result.uas == result.las
    assert (result.las.gain, result.las.low, result.las.high, result.las.p_value) == (0, 0, 0, 1)


def test_a_clearly_better_system_is_found_better(good_and_bad: tuple[Scores, Scores]) -> None:
    good, bad = good_and_bad
    result = compare(bad, good, samples=2_000)
    for gain in (result.uas, result.las):
        assert 0 < gain.low < gain.gain < gain.high
        assert gain.p_value == 1 / 2_001
    assert result.uas.gain == pytest.approx(good.uas - bad.uas)
    back = compare(good, bad, samples=2_000)
    assert back.uas.gain == -result.uas.gain
    assert back.uas.high < 0
    assert json.loads(json.dumps(result.as_dict()))["samples"] == 2_000


def test_equally_good_systems_are_told_apart_as_seldom_as_promised() -> None:
    # One pair may differ by chance; over many pairs, p below 0.05 must come up about one time in twenty.
    word, blank = Sentence.of(["w"], heads=[0], labels=["root"]), Sentence.of(["w"])
    generator, gold, alarms = random.Random(10), [word] * 150, 0
    for _ in range(300):
        first, second = (evaluate(gold, generator.choices([word, blank], [0.7, 0.3], k=150)) for _ in range(2))
        alarms += compare(first, second, samples=400).uas.p_value < 0.05
    assert 0.02 < alarms / 300 < 0.09  # within about three standard errors of 0.05


def test_the_interval_has_the_width_that_theory_gives() -> None:
    # 400 sentences of one word, the second system right in 100 more of them: the gain is a mean of coin throws.
    word = Sentence.of(["w"], heads=[0], labels=["root"])
    blank = Sentence.of(["w"])
    gold = [word] * 400
    result = compare(evaluate(gold, [blank] * 400), evaluate(gold, [word] * 100 + [blank] * 300))
    deviation = 100 * (0.25 * 0.75 / 400) ** 0.5
    assert (result.uas.low, result.uas.high) == pytest.approx((25 - 1.96 * deviation, 25 + 1.96 * deviation), abs=0.3)


def test_the_same_seed_gives_the_same_answer(good_and_bad: tuple[Scores, Scores]) -> None:
    assert compare(*good_and_bad, samples=300, seed=1) == compare(*good_and_bad, samples=300, seed=1)
    assert compare(*good_and_bad, samples=300, seed=1) != compare(*good_and_bad, samples=300, seed=2)


def test_samples_are_drawn_in_steps_without_a_seam() -> None:
    gold = [Sentence.of(["w"], heads=[0], labels=["root"])] * 1_500  # several steps of less than 1,000 samples
    scores = evaluate(gold, gold)
    assert compare(scores, scores, samples=2_500).uas.p_value == 1


def test_scores_of_different_gold_or_rules_are_not_compared() -> None:
    one = evaluate([GOLD], [SYSTEM])
    for other in (evaluate([GOLD, GOLD], [GOLD, GOLD]), evaluate([GOLD], [GOLD], punctuation="none")):
        with pytest.raises(SubdpError, match="not comparable"):
            compare(one, other)
    with pytest.raises(SubdpError, match="at least 1"):
        compare(one, one, samples=0)


def test_importing_takes_no_torch() -> None:
    modules = "subdp.evaluation.attachment, subdp.drawing.render"
    code = f"import sys, {modules}; print(sorted({{'numba', 'torch'}} & set(sys.modules)))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
