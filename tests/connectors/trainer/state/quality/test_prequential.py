"""Prequential metrics against scikit-learn, and a history of bounded length."""

import io
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from streamsvm.connectors.trainer.operate import progress_bar
from streamsvm.connectors.trainer.state.quality.prequential import History, Prequential, Snapshot
from streamsvm.metrics import prbep_score


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.random(n) < 0.3
    margins = rng.normal(size=n) + labels
    return labels, margins


def filled(window, sizes, labels, margins):
    metrics, start = Prequential(window), 0
    for size in sizes:
        metrics.update(labels[start : start + size], margins[start : start + size])
        start += size
    assert start == len(labels)
    return metrics


def expected(labels, margins):
    predicted = margins > 0
    accuracies = [np.mean(predicted[labels == label] == label) for label in (False, True)]
    return (
        len(labels),
        np.mean(predicted != labels),
        math.sqrt(accuracies[0] * accuracies[1]),
        roc_auc_score(labels, margins),
        prbep_score(labels, margins),
    )


@pytest.mark.parametrize(("n", "window"), [(50, 100), (100, 100), (777, 100), (777, 1)])
@pytest.mark.parametrize("size", [1, 7, 300])
def test_scores_are_scikit_learn_s(n, window, size):
    labels, margins = stream(n)
    sizes = [size] * (n // size) + ([n % size] if n % size else [])
    metrics = filled(window, sizes, labels, margins)
    if window > 1:
        np.testing.assert_allclose(metrics.rolling(), expected(labels[-window:], margins[-window:]))
        assert metrics.rolling_error() == metrics.rolling().error
        assert metrics.of_history() == {"g_mean": metrics.rolling().g_mean}
    np.testing.assert_allclose(metrics.cumulative()[:3], expected(labels, margins)[:3])
    np.testing.assert_allclose(metrics.cumulative()[3:], expected(labels, margins)[3:], atol=2e-3)


def test_ties_count_half():
    metrics = filled(4, [4], np.array([True, False, True, False]), np.zeros(4))
    for scores in (metrics.rolling(), metrics.cumulative()):
        assert (scores.auc, scores.prbep) == (0.5, 0.5)


def test_extreme_margins_have_a_bin():
    metrics = filled(4, [4], np.array([True, False, True, False]), np.array([1e300, -1e300, 1e9, -1e-300]))
    assert metrics.cumulative()[1:] == (0.0, 1.0, 1.0, 1.0)


def test_nothing_and_one_class_have_no_number():
    assert all(math.isnan(value) for value in Prequential(10).rolling()[1:])
    scores = filled(10, [3], np.ones(3, dtype=bool), np.ones(3)).cumulative()
    assert scores.error == 0.0
    assert math.isnan(scores.g_mean)
    assert math.isnan(scores.auc)


@given(
    n=st.integers(0, 60),
    more=st.integers(0, 30),
    old=st.integers(1, 40),
    new=st.integers(1, 40),
    seed=st.integers(0, 9),
)
def test_metrics_continue_from_a_checkpoint(n, more, old, new, seed):
    labels, margins = stream(n + more, seed)
    restored = Prequential(new)
    restored.restore(filled(old, [n], labels[:n], margins[:n]).to_arrays())
    restored.update(labels[n:], margins[n:])
    assert restored.n == n + more
    known = min(min(old, n, new) + more, new)
    last = slice(n + more - known, None)
    np.testing.assert_equal(restored.rolling_error(), np.mean((margins[last] > 0) != labels[last]) if known else np.nan)


def test_metrics_restored_with_the_same_window_are_the_same():
    labels, margins = stream(500)
    metrics = filled(100, [500], labels, margins)
    restored = Prequential(100)
    restored.restore(metrics.to_arrays())
    assert restored.rolling() == metrics.rolling()
    assert restored.cumulative() == metrics.cumulative()


def read(arrays):
    history = History()
    history.restore(arrays)
    return history


def test_the_history_is_thinned_out_evenly_and_survives():
    history = History()
    for n in range(0, 200_000, 10):
        if history.is_due(n):
            history.add(Snapshot(n, 0.5, math.nan, 3, 1.5))
    distances = np.diff([row.n for row in history.rows])
    assert 400 < len(history.rows) <= 1024
    assert len(set(distances)) == 1
    assert history.rows[-1].n > 199_000
    restored = read(history.to_arrays())
    np.testing.assert_array_equal(np.array(restored.rows), np.array(history.rows))
    assert restored.is_due(10**6)
    assert read(History().to_arrays()).rows == []


def test_the_history_of_an_older_version_has_what_it_had():
    history = History()
    history.add(Snapshot(50, 0.5, 0.4, 3, 1.5, n_members=4, n_labels=40, n_errors=9, lag=7, age=0.5, shift=0.1))
    history.latest = Snapshot(70, 0.4, 0.5, 4, 1.7, n_members=5)
    arrays = history.to_arrays()
    assert arrays["rows"].tolist() == [[50, 0.5, 0.4, 3, 1.5]]  # all that an older version reads
    restored = read(arrays)
    np.testing.assert_array_equal(np.array(restored.rows), np.array(history.rows))
    assert restored.latest[:6] == history.latest[:6]
    old = read({"rows": arrays["rows"], "every": arrays["every"]})
    assert old.latest is None
    (row,) = old.rows
    assert row[:5] == history.rows[0][:5]
    assert all(map(math.isnan, row[5:]))
    np.testing.assert_array_equal(read(old.to_arrays()).rows, old.rows)


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_is_shown_on_a_terminal_only(monkeypatch, terminal):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("events", total=200, done=100) as progress:
        progress.update(50)
        progress.set_postfix(error="1.0%", refresh=False)
        progress.update(50)
    if terminal:
        assert "200/200" in stream.getvalue()
        assert "error=1.0%" in stream.getvalue()
    else:
        assert stream.getvalue() == ""
