"""The threshold for predictions, from leave-one-out values and the pool."""

import numpy as np
import pytest

from streamsvm import LASVM, OneVsRest
from streamsvm.active import MaxLabels, label_pool, pool_cut
from streamsvm.active.choosing.cut import OBJECTIVES, PoolCut, cut_of
from streamsvm.validation import leave_one_out


def ring(n=2000, seed=0):
    """Few positives, far outside."""
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.hypot(*X.T) > 2.5


def recalls(model, X, y):
    said = model.predict_many(X)
    return said[y].mean(), 1.0 - said[~y].mean()


def naive_cut(left_out, f):
    """By counting, one threshold after the other."""
    share = sum(value > 0 for value in f) / len(f)
    best, found = -1.0, 0.0
    for c in [*(value - 1e-6 for value in sorted(left_out)), 0.0]:
        if share > 0.5 or not -1.0 <= c <= 0.0:
            continue
        recall = (sum(value > c for value in left_out) + 1) / (len(left_out) + 2)
        false = (sum(value > c for value in f) / len(f) - share * recall) / (1 - share)
        product = recall * (1 - min(max(false, 0.0), 1.0))
        if product > best:
            best, found = product, c
    return found


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_best_by_counting(seed):
    rng = np.random.default_rng(seed)
    left_out, f = rng.normal(0.3, 0.7, size=2 + seed), rng.normal(rng.choice([-0.8, 0.1]), 0.6, size=300)
    assert cut_of(left_out, f, "gmean") == naive_cut(left_out, f)


def test_it_loses_no_positive_that_the_boundary_finds():
    f = np.append(np.full(990, 0.1), np.full(10, -1.0))
    assert cut_of(np.array([0.4, 0.5]), f - 0.2, "gmean") == 0.0  # 0.4 would let in fewer negatives
    assert cut_of(np.array([-0.4, -0.5]), f, "gmean") == 0.0  # most are positive


def test_its_values_are_those_of_leave_one_out():
    X, y = ring()
    rows = np.append(np.flatnonzero(y)[:8], np.flatnonzero(~y)[:60])
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(X[rows], y[rows])
    f = model.decision_function_many(X)
    left_out = leave_one_out(model, X[rows], y[rows]).decision_values[:8]
    assert pool_cut(model, X[rows], y[rows], f) == naive_cut(left_out, f)
    assert pool_cut(model, X[rows], y[rows], f, "recall") == max(-1.0, min(0.0, left_out.min() - 1e-6))
    assert pool_cut(model, X[rows], y[rows], f, "precision") == 0.0


@pytest.mark.parametrize("n_positive", [0, 1])
def test_too_few_positives_say_nothing(n_positive):
    X, y = ring()
    rows = np.append(np.flatnonzero(y)[:n_positive], np.flatnonzero(~y)[:20])
    assert pool_cut(LASVM(), X[rows], y[rows], np.zeros(10)) == 0.0


def test_a_run_ends_with_the_threshold_of_its_objective():
    X, y = ring()
    found = {}
    for objective in (None, *OBJECTIVES):
        model = LASVM(C=100.0, gamma=0.5)
        steps = list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(40), threshold=objective, seed=1))
        asked = [step.key for step in steps]
        found[objective] = *recalls(model, X, y), asked, model.threshold
    assert found["precision"] == found[None]
    assert found[None][3] == 0.0 > found["gmean"][3] >= found["recall"][3]
    assert found["recall"][0] >= found["gmean"][0] > found[None][0]  # of the positives
    assert found["recall"][1] <= found["gmean"][1] <= found[None][1]  # of the negatives
    assert found["gmean"][2] == found[None][2]  # the questions


def test_a_model_with_a_learned_threshold_gets_it_from_the_pool():
    X, y = ring()
    thresholds = []
    for model, objective in ((LASVM(C=10.0, threshold="gmean"), None), (LASVM(C=10.0), "gmean")):
        list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(60), threshold=objective))
        thresholds.append(model.decision_threshold)
    assert thresholds[0] == thresholds[1] != 0.0


def test_it_is_kept_in_a_file(tmp_path):
    X, y = ring()
    model = LASVM(C=100.0, gamma=0.5)
    list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(40), threshold="gmean", seed=1))
    again = LASVM.from_bytes(model.to_bytes())
    assert again.decision_threshold == model.decision_threshold < 0.0
    np.testing.assert_array_equal(again.predict_many(X), model.predict_many(X))


def test_it_is_chosen_when_labels_have_changed():
    cut = PoolCut("gmean")
    due = [n for n in range(400) if cut.is_due(n)]
    assert due[:20] == list(range(1, 21))
    assert len(due) < 90
    assert not cut.is_due(399)
    cut.forget()
    assert cut.is_due(399)


def test_what_has_no_threshold_is_refused():
    X, y = ring(50)
    with pytest.raises(ValueError, match="threshold='f1' is unknown; use one of 'gmean', 'recall', 'precision'"):
        label_pool(LASVM(), X, y.__getitem__, threshold="f1")
    with pytest.raises(TypeError, match=r"needs a model such as LASVM\(\), and no pipeline"):
        label_pool(OneVsRest(LASVM()), X, y.__getitem__, threshold="gmean")
    with pytest.raises(ValueError, match="threshold=nan must be a finite number"):
        LASVM().set_threshold(float("nan"))
