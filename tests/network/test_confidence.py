"""Confidences in MISC: what was chosen, and the rivals that are worth a person's attention."""

from __future__ import annotations

import numpy as np

from subdp.network.confidence import confidences
from subdp.network.prediction import Prediction
from subdp.projection.substructures import Inventory

INVENTORY: Inventory = {"arcs": (), "labels": ("root", "nsubj", "obj", "det")}


def test_each_word_has_its_probabilities_and_its_likely_rivals() -> None:
    arcs = np.array(
        [
            [1.0, 0.0, 0.0, 0.0],  # ROOT has no head
            [0.0, 0.0, 1.0, 0.0],
            [0.6, 0.3, 0.1, 0.0],  # 0.1 on itself is no rival
            [0.04, 0.11, 0.8, 0.05],
        ],
        np.float32,
    )
    labels = np.array([[0.0, 1.0, 0.0, 0.0], [0.9, 0.04, 0.06, 0.0], [0.1, 0.2, 0.4, 0.3]], np.float32)
    found = confidences(Prediction((2, 0, 2), (1, 0, 2), {}, arcs, labels, {}), INVENTORY, {})
    assert found == [
        "HeadProb=1.000|LabelProb=1.000",
        "HeadProb=0.600|LabelProb=0.900|HeadAlt=1:0.300|LabelAlt=obj:0.060",
        "HeadProb=0.800|LabelProb=0.400|HeadAlt=1:0.110|LabelAlt=det:0.300,nsubj:0.200",
    ]


def test_the_chosen_head_need_not_be_the_likeliest() -> None:
    arcs = np.array([[1, 0, 0], [0.1, 0, 0.9], [0.2, 0.8, 0]], np.float32)
    labels = np.eye(2, 4, dtype=np.float32)
    found = confidences(Prediction((0, 1), (0, 1), {}, arcs, labels, {}), INVENTORY, {})
    assert found[0] == "HeadProb=0.100|LabelProb=1.000|HeadAlt=2:0.900"
