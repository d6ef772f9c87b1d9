"""The precision-recall break-even point against its definition, and as a river metric."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from river import datasets, evaluate, linear_model, metrics, preprocessing, utils

from streamsvm.metrics import PRBEP, prbep_score

# Few distinct values make ties likely.
examples = st.lists(st.tuples(st.booleans(), st.sampled_from([-1.5, 0.0, 0.25, 0.5, 3.0, math.inf])), max_size=30)
weighted_examples = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0.0, 0.1, 0.5, 0.7]), st.integers(0, 3)), max_size=15
)


def naive_prbep(ranked):
    """The definition for one order of the examples."""
    positives = sum(y for y, _ in ranked)
    return sum(y for y, _ in ranked[:positives]) / positives if positives else 0.0


def expected_prbep(pairs):
    """The mean over every order that agrees with the scores."""
    orders = [order for order in itertools.permutations(pairs) if list(order) == sorted(order, key=lambda e: -e[1])]
    return sum(map(naive_prbep, orders)) / len(orders)


def metric_of(seen):
    metric = PRBEP()
    for example in seen:
        metric.update(*example)
    return metric


def value(seen):
    return metric_of(seen).get()


def score(pairs):
    return prbep_score([y for y, _ in pairs], [s for _, s in pairs])


@given(st.lists(st.tuples(st.booleans(), st.floats(allow_nan=False)), unique_by=lambda e: e[1], max_size=40))
def test_without_ties_it_is_the_definition(pairs):
    assert score(pairs) == pytest.approx(naive_prbep(sorted(pairs, key=lambda e: -e[1])), abs=1e-12)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.1, 0.5, 0.9])), max_size=6))
def test_ties_count_with_their_expected_precision(pairs):
    assert score(pairs) == pytest.approx(expected_prbep(pairs), abs=1e-12)


@given(examples, st.randoms())
def test_the_order_of_examples_does_not_matter(pairs, random):
    shuffled = random.sample(pairs, len(pairs))
    assert score(shuffled) == score(pairs)
    assert value(shuffled) == value(pairs) == pytest.approx(score(pairs), abs=1e-12)


@given(weighted_examples)
def test_a_weight_counts_as_that_many_examples(weighted):
    repeated = [(y, s) for y, s, w in weighted for _ in range(w)]
    assert value(weighted) == pytest.approx(value(repeated), abs=1e-12)


@given(weighted_examples, weighted_examples)
def test_revert_undoes_update_exactly(kept, undone):
    kept = [(y, s, w / 3) for y, s, w in kept]  # weights that floating-point sums do not give back
    metric = metric_of(undone + kept)
    for example in undone:
        metric.revert(*example)
    assert metric.get() == value(kept)
    assert metric._seen.items() == metric_of(kept)._seen.items()  # nothing is left over in memory


@given(examples, st.integers(1, 10))
def test_a_rolling_window_forgets(pairs, size):
    rolling = utils.Rolling(PRBEP, window_size=size)
    for y, s in pairs:
        rolling.update(y, s)
    assert rolling.get() == value(pairs[-size:])


def test_perfect_reversed_and_empty_rankings():
    assert prbep_score([1, 1, 0, 0], [4, 3, 2, 1]) == 1.0
    assert prbep_score([-1, -1, 1, 1], [4, 3, 2, 1]) == 0.0
    assert prbep_score([False, False], [0.3, 0.2]) == 0.0
    assert prbep_score([], []) == 0.0
    assert PRBEP().get() == 0.0


def test_probabilities_and_scores_are_the_same_thing():
    by_score, by_proba = PRBEP(), PRBEP()
    for y, p in [(True, 0.9), (False, 0.4), (True, 0.3), (False, 0.1)]:
        by_score.update(y, p)
        by_proba.update(y, {False: 1 - p, True: p})
    by_proba.update(True, {})  # a model that knows no class yet
    by_score.update(True, 0.0)
    assert by_score.get() == by_proba.get() == pytest.approx(2 / 3)


def test_any_label_can_be_the_positive_one():
    metric = PRBEP(pos_val="spam")
    metric.update("spam", {"spam": 0.9, "ham": 0.1})
    metric.update("ham", {"spam": 0.2, "ham": 0.8})
    assert metric.get() == 1.0
    assert metric.clone().pos_val == "spam"
    assert metric.clone().get() == 0.0


def test_progressive_validation_over_a_real_stream():
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    both = evaluate.progressive_val_score(datasets.Phishing(), model, PRBEP() + metrics.Accuracy())
    prbep, accuracy = both
    model = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    alone = evaluate.progressive_val_score(datasets.Phishing(), model, PRBEP())
    assert alone.get() == prbep.get() > 0.85
    assert accuracy.get() > 0.85
    assert repr(alone).startswith("PRBEP: 8")


@pytest.mark.parametrize(
    ("y_true", "scores", "message"),
    [
        ([1, 0], [0.5], r"equally long, got \(2,\) and \(1,\)"),
        ([[1, 0]], [[0.5, 0.2]], "one-dimensional"),
        ([1, 2], [0.5, 0.2], r"y_true must be bool, 0/1 or -1/\+1, got the values \[1 2\]"),
        ([1, 0], [0.5, np.nan], "scores must not be NaN, got 1"),
    ],
)
def test_bad_arrays_are_named(y_true, scores, message):
    with pytest.raises(ValueError, match=message):
        prbep_score(y_true, scores)


def test_bad_examples_are_named():
    metric = PRBEP()
    with pytest.raises(ValueError, match="y_pred must not be NaN"):
        metric.update(True, {True: math.nan})
    for w in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="w must be a finite weight"):
            metric.update(True, 0.5, w)
    with pytest.raises(ValueError, match="cannot revert y_true=True"):
        metric.revert(True, 0.5)
    assert metric.get() == 0.0
