"""The model card: front matter that the Hub reads, and plain sentences."""

from __future__ import annotations

from typing import Any

import pytest

from subdp.network.model_card import card, facts

ENCODER = {"name": "bundled", "fingerprint": "f00"}
TRAINING = {"epochs": 2, "best_epoch": 1, "seed": 1}
MADE = {"trained_on": {"sentences": 3, "words": 1200}, **TRAINING}
ENGLISH = {
    **MADE,
    "title": 'English: "a" parser',
    "treebank": "en_ewt-ud-train.conllu",
    "licence": "CC BY-SA 4.0, as the treebank",
    "scores": {"dev": "UAS 91.6, LAS 88.5", "test": "UAS 91.2, LAS 88.3, UPOS 96.0"},
}


def front_matter(about: dict[str, Any]) -> Any:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    _, matter, text = card({"labels": ["root"]}, ENCODER, about).split("---\n", 2)
    assert text.startswith("\n# ")
    return yaml.safe_load(matter)


def test_the_front_matter_has_language_licence_data_and_scores() -> None:
    found = front_matter(ENGLISH)
    assert (found["language"], found["license"], found["library_name"]) == ("en", "cc-by-sa-4.0", "subdp")
    assert found["datasets"] == ["universal_dependencies"]
    assert found["metrics"] == ["las", "uas", "upos"]
    (index,) = found["model-index"]
    assert index["name"] == 'English: "a" parser'
    scores = {
        (result["dataset"]["split"], metric["name"]): metric["value"]
        for result in index["results"]
        for metric in result["metrics"]
    }
    assert scores[("test", "UPOS")] == 96.0
    assert scores[("dev", "LAS")] == 88.5


def test_what_is_not_known_is_left_out() -> None:
    adapted = {
        "adapted_on": {"pairs": 7, "made_from": {}},
        "adapted_from": ENGLISH,
        "epochs": 1,
        "best_epoch": 1,
        "seed": 1,
    }
    found = front_matter(adapted)
    assert not {"language", "license", "model-index"} & set(found), "those of the English parser are not its own"
    started = 'It started from: English: "a" parser (licence: CC BY-SA 4.0, as the treebank).'
    assert started in card({"labels": ["root"]}, ENCODER, adapted)
    assert front_matter({**adapted, "language": "de"})["language"] == "de"
    distilled = {"distilled_on": {"sentences": 2, "words": 9, "made_up": 4}, "distilled_from": ENGLISH, **TRAINING}
    learnt = "predicts on 2 sentences of raw text (9 words) and 4 sentences made up from them, "
    assert learnt in card({"labels": ["root"]}, ENCODER, distilled)
    assert front_matter(distilled)["language"] == "en", "a student is of its teacher's language"
    assert "model-index" not in front_matter(distilled)
    own = front_matter({**adapted, "licence": "ask me"})
    assert (own["license"], own["license_name"]) == ("other", "ask me")


def test_the_card_is_plain_sentences() -> None:
    text = card({"labels": ["nsubj", "root"]}, ENCODER, ENGLISH)
    assert "- Trained on 3 sentences of en_ewt-ud-train.conllu (1,200 words), 2 epochs" in text
    assert "- On test: UAS 91.2, LAS 88.3, UPOS 96.0." in text
    assert "{" not in text.split("---\n", 2)[2]


def test_facts_are_a_few_words() -> None:
    found = facts({"arcs": (), "labels": ("a", "b"), "upos": ("X",)}, "bundled", {})
    assert found == [("parser", "a dependency parser"), ("predicts", "2 labels and 1 upos"), ("encoder", "bundled")]
