"""Trust in labels: Bayes' rule by hand, and shares found again that were made."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from rmsh.training.label_noise import LabelModel, fit_label_model, probability_correct

_AS_SAID = torch.tensor([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])


def _items(right: float, *, n: int = 4000, classes: int = 10, sure: float = 0.9) -> tuple[Tensor, Tensor, Tensor]:
    """The logits of two classifiers that saw labels of which a share is right; the labels; which are right."""
    random = torch.Generator().manual_seed(0)
    frequencies = torch.full((classes,), 0.2)
    own = (torch.rand(n, classes, generator=random) < frequencies).float()
    known = sure * own + (1 - sure) * frequencies  # of the item's own labels
    seen = right * known + (1 - right) * frequencies  # of the labels the classifiers saw
    is_own = torch.rand(n, generator=random) < right
    labels = torch.where(is_own[:, None], own, own[torch.randperm(n, generator=random)])
    return torch.stack([seen, seen]).logit(), labels, is_own


def test_trust_is_bayes_rule_over_both_classifiers() -> None:
    said = torch.tensor([[[0.62, 0.14]], [[0.46, 0.30]]]).logit()
    model = LabelModel(torch.tensor([0.3, 0.3]), _AS_SAID, correct=0.8)
    # Of own labels they say (0.62 - 0.06) / 0.8 = 0.7 and 0.1, and 0.5 and 0.3; the item has the first, not the second.
    own = 0.8 * (0.7 * 0.9) * (0.5 * 0.7)
    other = 0.2 * (0.3 * 0.7) ** 2
    assert probability_correct(said, torch.tensor([[1.0, 0.0]]), model).item() == pytest.approx(
        own / (own + other), rel=1e-5
    )


@pytest.mark.parametrize("right", [0.6, 0.8, 1.0])
def test_the_share_of_right_labels_is_found_again(right: float) -> None:
    said, labels, is_own = _items(right)
    model = fit_label_model(said, labels)
    assert model.correct == pytest.approx(right, abs=0.08)
    trust = probability_correct(said, labels, model)
    assert trust[is_own].mean() > 0.95
    if right < 1:
        assert trust[~is_own].mean() < 0.35  # some got labels like their own


@pytest.mark.parametrize(("factor", "shift"), [(0.2, -3.0), (5.0, 0.0), (-1.0, 1.0)])
def test_classifiers_that_are_too_sure_or_biased_are_read_as_they_should_be(factor: float, shift: float) -> None:
    said, labels, _ = _items(0.8)
    model = fit_label_model(said, labels)
    other = fit_label_model(factor * said + shift, labels)
    assert other.correct == pytest.approx(model.correct, abs=0.01)
    torch.testing.assert_close(other.probabilities(factor * said + shift), model.probabilities(said), atol=0.01, rtol=0)


@pytest.mark.parametrize("logit", [-9.0, 0.0, 9.0])
def test_classifiers_that_know_nothing_doubt_nobody_more_than_another(logit: float) -> None:
    _, labels, _ = _items(0.8)
    said = torch.full((2, *labels.shape), logit)
    trust = probability_correct(said, labels, fit_label_model(said, labels))
    assert trust.max() - trust.min() < 0.01
    assert trust.min() > 0.85


def test_a_label_that_every_or_no_item_has_says_nothing() -> None:
    said, labels, _ = _items(0.8, classes=6)
    constant = torch.stack([torch.zeros(4000), torch.ones(4000)], dim=1)
    wider = torch.cat([labels, constant], dim=1)
    more = torch.cat([said, (20 * constant - 10).expand(2, -1, -1)], dim=2)
    assert fit_label_model(more, wider).correct == pytest.approx(fit_label_model(said, labels).correct, abs=0.01)


def test_a_classifier_that_cannot_judge_an_item_says_nothing_of_it() -> None:
    said, labels, _ = _items(0.8)
    present = torch.ones(said.shape[:2], dtype=torch.bool)
    present[1, ::2] = False
    nonsense = torch.where(present[:, :, None], said, torch.tensor(50.0))
    model, same = (fit_label_model(z, labels, present) for z in (said, nonsense))
    assert same.correct == model.correct
    torch.testing.assert_close(
        probability_correct(nonsense, labels, same, present), probability_correct(said, labels, model, present)
    )
    alone = probability_correct(said[:1, ::2], labels[::2], model._replace(calibration=model.calibration[:1]))
    torch.testing.assert_close(probability_correct(said, labels, model, present)[::2], alone)
