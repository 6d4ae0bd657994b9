"""What becomes of NULL mass: measured against projection, given out by the rule, and no more than is missing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from subdp.network.scorers import HeadScores, PairScores, Scored, WordScores
from subdp.support.errors import SubdpError
from subdp.support.settings import LossConfig
from subdp.training.losses import Projected
from subdp.training.null_mass import Agreement, add_up, complete, measure, own_label_mask

NONE = torch.zeros(2)
MASK = torch.tensor([[False, True, True]])


def said(arcs: Tensor, label: int, **words: Tensor) -> Scored:
    """What a parser says: these heads, one of two labels everywhere (all but surely), and values of words."""
    ones, weight = torch.ones(1, 3, 1), torch.zeros(2, 1, 1)
    weight[label] = 60
    logs = {name: WordScores(values.clamp(min=1e-30).log()) for name, values in words.items()}
    heads = HeadScores(arcs.clamp(min=1e-30).log())
    return Scored(MASK, {"arcs": heads, "labels": PairScores(ones, ones, weight), **logs})


def projected(arcs: Tensor, null: Tensor | None = None, **words: Tensor) -> Projected:
    labels = torch.tensor([1.0, 0.0]).expand(1, 3, 3, 2)
    null = 1 - arcs.sum(-1) if null is None else null
    return Projected({"arcs": arcs, "labels": labels, **words}, torch.ones(1, 3, dtype=torch.bool), null)


ARCS = torch.tensor([[[0.0, 0, 0], [0.25, 0, 0.5], [0, 0, 0]]])
OWN = torch.tensor([[[1.0, 0, 0], [0.0, 0, 1.0], [0.6, 0.4, 0]]])


def test_completion_gives_the_missing_mass_to_the_teacher_and_no_more() -> None:
    full = complete(projected(ARCS), said(OWN, 1), {"arcs": torch.ones(2)}, 0.0, NONE)
    torch.testing.assert_close(full.arcs[0, 1:], torch.tensor([[0.25, 0, 0.75], [0.6, 0.4, 0]]))
    labels = full.distributions["labels"]
    torch.testing.assert_close(labels[0, 1, 2], torch.tensor([2 / 3, 1 / 3]))
    torch.testing.assert_close(labels[0, 2, 0], torch.tensor([0.0, 1.0]))
    none = complete(projected(ARCS), said(OWN, 1), {"arcs": torch.zeros(2)}, 0.0, NONE)
    torch.testing.assert_close(none.arcs, ARCS)


def test_the_share_is_the_trust_in_the_relation_that_the_teacher_gives_the_word() -> None:
    trust = {"arcs": torch.tensor([0.1, 0.5])}
    torch.testing.assert_close(complete(projected(ARCS), said(OWN, 1), trust, 0.0, NONE).arcs[0, 2], 0.5 * OWN[0, 2])
    torch.testing.assert_close(complete(projected(ARCS), said(OWN, 0), trust, 0.0, NONE).arcs[0, 2], 0.1 * OWN[0, 2])


def test_mass_that_self_loops_lost_is_not_handed_out() -> None:
    gone = complete(projected(ARCS, null=torch.zeros(1, 3)), said(OWN, 1), {"arcs": torch.ones(2)}, 0.0, NONE)
    torch.testing.assert_close(gone.arcs, ARCS)


def test_tags_are_completed_by_the_trust_in_each_tag() -> None:
    tags = torch.tensor([[[0.0, 0], [0.5, 0.25], [0, 0]]])
    own = torch.tensor([[[0.0, 0], [1.0, 0.0], [0.25, 0.75]]])
    trust = {"arcs": torch.ones(2), "tags": torch.tensor([1.0, 0.5])}
    found = complete(projected(ARCS, tags=tags), said(OWN, 1, tags=own), trust, 0.0, NONE).distributions["tags"]
    torch.testing.assert_close(found[0, 1:], torch.tensor([[0.75, 0.25], [0.25, 0.375]]))


def test_mixing_gives_the_teacher_its_share_of_mass_that_was_placed_and_loses_none() -> None:
    trust = {"arcs": torch.tensor([0.0, 0.5])}
    found = complete(projected(ARCS, null=torch.zeros(1, 3)), said(OWN, 1), trust, 0.4, NONE)
    torch.testing.assert_close(found.arcs[0, 1], 0.8 * ARCS[0, 1] + 0.2 * 0.75 * OWN[0, 1])
    torch.testing.assert_close(found.arcs.sum(-1), ARCS.sum(-1))
    tags, own = torch.tensor([[[0.0, 0], [0.75, 0.25], [0, 0]]]), torch.tensor([[[0.0, 0], [0.0, 1.0], [0, 1.0]]])
    trust["tags"] = torch.tensor([1.0, 0.5])
    mixed = complete(projected(ARCS, tags=tags), said(OWN, 1, tags=own), trust, 0.4, NONE).distributions["tags"]
    torch.testing.assert_close(mixed[0, 1:], torch.tensor([[0.3, 0.7], [0, 0.5]]))


def test_of_tags_the_teacher_has_a_larger_share_and_never_more_than_all() -> None:
    tags, own = torch.tensor([[[0.0, 0], [1.0, 0.0], [1.0, 0]]]), torch.tensor([[[0.0, 0], [0.0, 1.0], [1.0, 0]]])
    trust = {"arcs": torch.ones(2), "tags": torch.tensor([0.0, 0.6])}
    for mixing, left in ((0.0, 1.0), (0.5, 0.2), (0.9, 0.0)):
        found = complete(projected(ARCS, tags=tags), said(OWN, 1, tags=own), trust, mixing, NONE).distributions["tags"]
        torch.testing.assert_close(found[0, 1], torch.tensor([left, 1 - left]))


def test_labels_stay_projected_where_projection_placed_the_arc_whatever_is_mixed_in() -> None:
    sure = torch.tensor([[[0.0, 0, 0], [0.0, 0, 1.0], [1.0, 0, 0]]])
    found = complete(projected(sure), said(OWN, 1), {"arcs": torch.ones(2)}, 0.5, NONE).distributions["labels"]
    torch.testing.assert_close(found[0, 1, 2], torch.tensor([1.0, 0.0]), msg="both have this arc")
    torch.testing.assert_close(found[0, 2, 0], torch.tensor([1.0, 0.0]), msg="the teacher took mass from this arc")
    torch.testing.assert_close(found[0, 2, 1], torch.tensor([0.0, 1.0]), msg="only the teacher has this arc")


def test_a_label_that_projection_is_not_trusted_with_becomes_the_teachers() -> None:
    untrusted = torch.tensor([1.0, 0.0])
    found = complete(projected(ARCS), said(OWN, 1), {"arcs": torch.zeros(2)}, 0.0, untrusted)
    torch.testing.assert_close(found.distributions["labels"][0, 1, 2], torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(found.arcs, ARCS)


def test_agreement_counts_words_where_projection_chose_by_what_the_parser_says_of_them() -> None:
    arcs = torch.tensor([[[0.0, 0, 0], [0.1, 0, 0.6], [0.4, 0.4, 0.2]]])
    tags = torch.tensor([[[0.0, 0], [0.9, 0.1], [0.2, 0.8]]])
    own_tags = torch.tensor([[[0.0, 0], [0.8, 0.2], [0.9, 0.1]]])
    found = add_up([measure(said(OWN, 1, tags=own_tags), projected(arcs, tags=tags))] * 2)
    assert found["arcs"].words.tolist() == [0, 2], "nothing was chosen for the second word"
    assert found["arcs"].same.tolist() == [0, 2]
    assert found["tags"].words.tolist() == [4, 0]
    assert found["tags"].same.tolist() == [2, 0]
    assert found["tags"].overall == 0.5


def test_trust_is_twice_the_agreement_less_one_and_rare_relations_follow_the_rest() -> None:
    agreement = Agreement(torch.tensor([1000.0, 1000.0, 0.0, 1000.0]), torch.tensor([1000.0, 750.0, 0.0, 400.0]))
    assert agreement.overall == pytest.approx(2150 / 3000)
    shares = agreement.by_value()
    assert shares[2] == pytest.approx(agreement.overall)
    assert 0.95 < shares[0] < 1
    assert agreement.trust().tolist() == pytest.approx([max(0, 2 * share - 1) for share in shares.tolist()])
    assert agreement.trust()[3] == 0


def test_a_label_of_its_own_that_the_parser_lacks_is_an_error_unless_it_is_the_default() -> None:
    assert own_label_mask(["nmod", "amod"], LossConfig()).tolist() == [0, 0], "a treebank without compounds"
    assert own_label_mask(["nmod", "amod"], LossConfig(own_labels=("amod",))).tolist() == [0, 1]
    with pytest.raises(SubdpError, match=r"own_labels names 'compuond'.*nmod, amod"):
        own_label_mask(["nmod", "amod"], LossConfig(own_labels=("compuond",)))
