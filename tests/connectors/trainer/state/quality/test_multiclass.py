"""Metrics of more than two classes, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import (
    accuracy_score,
    cohen_kappa_score,
    confusion_matrix,
    f1_score,
    precision_recall_fscore_support,
)

from streamsvm.connectors.records.classes import KnownClasses
from streamsvm.connectors.trainer.state.quality.multiclass import ClassPrequential

LABELS = ["a", "b", 3, "never"]


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    guesses = np.where(rng.random(n) < 0.7, labels, rng.choice(3, n))
    return [LABELS[k] for k in labels], [LABELS[k] for k in guesses]


def filled(window, labels, guesses, size=7):
    metrics = ClassPrequential(window, KnownClasses(LABELS, 4))
    for start in range(0, len(labels), size):
        metrics.update(labels[start : start + size], guesses[start : start + size])
    return metrics


@pytest.mark.parametrize(("n", "window"), [(50, 100), (777, 100)])
def test_scores_are_scikit_learn_s(n, window):
    labels, guesses = stream(n)
    metrics = filled(window, labels, guesses)
    y, guess = ([str(label) for label in part[-window:]] for part in (labels, guesses))
    found, classes = metrics.rolling().overall(), ["a", "b", "3"]
    assert found == pytest.approx(
        {
            "accuracy": accuracy_score(y, guess),
            "macro_f1": f1_score(y, guess, average="macro"),
            "weighted_f1": f1_score(y, guess, average="weighted"),
            "kappa": cohen_kappa_score(y, guess),
        }
    )
    assert metrics.rolling_error() == pytest.approx(1 - found["accuracy"])
    assert metrics.rolling().counts[:3, :3].tolist() == confusion_matrix(y, guess, labels=classes).tolist()
    of_classes = metrics.rolling().of_classes()
    assert list(of_classes) == LABELS[:3]
    table = np.array([(each.precision, each.recall, each.f1, each.n) for each in of_classes.values()])
    np.testing.assert_allclose(table.T, precision_recall_fscore_support(y, guess, labels=classes))


def test_errors_count_over_all_events():
    labels, guesses = stream(500)
    metrics = filled(10, labels, guesses)
    assert (metrics.n, metrics.n_errors) == (500, sum(y != guess for y, guess in zip(labels, guesses, strict=True)))
    assert metrics.n_window == 10


def test_an_event_without_a_prediction_does_not_count():
    metrics = filled(10, ["a", "b"], [None, "b"])
    assert (metrics.n, metrics.n_errors, metrics.rolling().n) == (1, 0, 1)


def test_nothing_has_no_number():
    metrics = ClassPrequential(10, KnownClasses((), 3))
    assert np.isnan(list(metrics.gauges().values())).all()
    assert np.isnan(list(metrics.summary().values())).all()
    assert metrics.rolling().of_classes() == {}


def test_it_goes_on_from_a_checkpoint_with_another_window():
    labels, guesses = stream(300)
    metrics = filled(100, labels, guesses)
    again = ClassPrequential(40, KnownClasses(LABELS, 4))
    again.restore(metrics.to_arrays())
    assert again.rolling().overall() == filled(40, labels, guesses).rolling().overall()
    assert (again.n, again.n_errors) == (metrics.n, metrics.n_errors)


@pytest.mark.parametrize(
    "damage", [{"pairs": np.array([[0, 4]], np.int16)}, {"pairs": np.array([[-1, 0]], np.int16)}, {"counts": [3, 4]}]
)
def test_a_damaged_checkpoint_is_refused(damage):
    arrays = filled(10, *stream(30)).to_arrays() | {name: np.array(value) for name, value in damage.items()}
    with pytest.raises(ValueError, match="a checkpoint counts"):
        ClassPrequential(10, KnownClasses(LABELS, 4)).restore(arrays)
