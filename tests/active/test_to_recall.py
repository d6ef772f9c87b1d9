"""A run that ends when a share of the positives is known, and an audit at the end of a run."""

from collections import Counter

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.active import MaxLabels, RecallProof, final_audit, label_pool, label_to_recall


def clusters(seed, n=1000):
    """A ring of positives, and a small group far inside the others that no question near the boundary finds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.hypot(*X.T) > 2.3
    X[:12] = np.array([0.3, 0.3]) + 0.05 * rng.normal(size=(12, 2))
    y[:12] = True
    return X, y


@pytest.mark.long
@pytest.mark.parametrize("recall", [0.7, 0.9])
def test_the_promise_is_kept(recall):
    kept, reasons = [], Counter()
    for seed in range(10):
        X, y = clusters(seed)
        proof = RecallProof(recall)
        steps = list(label_to_recall(LASVM(C=100.0, gamma=2.0), X, y.__getitem__, proof, n_questions=60, seed=seed))
        assert len({step.key for step in steps}) == len(steps) == steps[-1].n_labels
        n_known = sum(step.y for step in steps)
        assert proof.n_known == n_known
        assert proof.holds()
        kept.append(n_known >= recall * y.sum())
        reasons.update(step.reason for step in steps)
    assert all(kept)
    assert {"review", "audit", "hunt"} <= set(reasons)


def test_skipped_rows_count_as_positives_that_are_not_known():
    X, y = clusters(0, 400)
    labels = [None if row % 40 == 0 else bool(y[row]) for row in range(400)]
    proof = RecallProof(0.5)
    steps = list(label_to_recall(LASVM(C=100.0, gamma=2.0), X, labels.__getitem__, proof, n_questions=40))
    assert all(step.y is not None for step in steps)
    assert proof.n_known + proof.missed_at_most() >= y.sum()


def test_an_audit_at_the_end_bounds_what_is_missed():
    n_held = 0
    for seed in range(20):
        X, y = clusters(seed)
        model = LASVM(C=100.0, gamma=0.5)
        steps = list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(60), seed=seed, tune_gamma=0))
        digest, asked = model.digest(), []

        def oracle(row, y=y, asked=asked):
            asked.append(row)
            return y[row]

        labelled = [step.key for step in steps]
        missed = final_audit(model, X, oracle, labelled, n=100, seed=seed)
        assert model.digest() == digest
        assert not set(asked) & set(labelled)
        assert (len(asked), missed.n_audited, missed.n_found) == (100, 100, y[asked].sum())
        left = np.setdiff1d(np.arange(1000), [*labelled, *asked])
        left = left[~model.predict_many(X[left])]
        assert len(left) == missed.n_unlabelled
        n_held += y[left].sum() <= missed.at_most
    assert n_held >= 18


@pytest.mark.parametrize("argument", [{"hunt": -1}, {"n_questions": 1}])
def test_what_is_out_of_range_is_named(argument):
    X, y = clusters(0)
    with pytest.raises(ValueError, match=f"{next(iter(argument))}="):
        label_to_recall(LASVM(), X, y.__getitem__, RecallProof(0.8), **argument)
    with pytest.raises(TypeError, match="proof"):
        label_to_recall(LASVM(), X, y.__getitem__, 0.8)
