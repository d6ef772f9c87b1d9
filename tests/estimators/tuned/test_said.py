"""What the candidates said of an example before its late label came, and how they are judged by it."""

import math
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import AutoLASVM
from streamsvm.estimators.learner.prediction import decide_one
from streamsvm.estimators.tuned.said import Said, rows_of
from streamsvm.estimators.tuned.tuner import Tuner
from streamsvm.estimators.tuned.tuning import CHECK, LONGEST_LAG, deviation

finite = st.floats(-1e6, 1e6)


def in_runs(n, seed=0):
    """Records in runs of 50 that are alike; half of the runs have the other label than their place tells."""
    rng = np.random.default_rng(seed)
    centre = np.repeat(rng.normal(size=(n // 50 + 1, 2)), 50, axis=0)[:n]
    is_usual = np.repeat(rng.random(n // 50 + 1) < 0.7, 50)[:n]
    X = centre + rng.normal(scale=0.05, size=(n, 2))
    return [dict(enumerate(x)) for x in X.tolist()], ((centre[:, 0] > 0) == is_usual).tolist()


def play(model, xs, ys, late, said=AutoLASVM.margins_one):
    """Learn each example when so many others have come; return how many were predicted wrongly, and what was said."""
    waiting, wrong, margins = deque(), 0, []
    for x, y in zip(xs, ys, strict=True):
        wrong += model.predict_one(x) != y
        waiting.append((x, y, said(model, x)))
        if len(waiting) > late:
            x, y, margin = waiting.popleft()
            margins.append(margin)
            model.learn_one(x, y, margin=margin)
    return wrong, margins


@given(finite, st.integers(0, 10**9), st.dictionaries(st.integers(0, 10**6), finite, max_size=4))
def test_a_row_says_what_was_put_into_it(f, n_seen, by_number):
    (row,) = rows_of(np.array([f]), n_seen, {number: np.array([own]) for number, own in by_number.items()})
    assert Said.of(row.tolist()) == (f, n_seen, by_number)


@pytest.mark.parametrize(
    "row", [[], [1.0], [1.0, 2.0, 0.0], [1.0, -1.0], [1.0, 0.5], [1.0, 2.0, 0.5, 1.0], [math.nan, 1.0]]
)
def test_other_rows_are_refused(row):
    model = AutoLASVM()
    model.learn_many([{"a": 1.0}, {"a": 2.0}], [True, False])
    before = model.digest()
    with pytest.raises(ValueError, match="margin="):
        model.learn_one({"a": 1.0}, True, margin=row)
    assert model.digest() == before


def test_a_row_has_the_values_of_all_candidates():
    xs, ys = in_runs(300)
    model = AutoLASVM()
    model.learn_many(xs, ys)
    said = Said.of(model.margins_one(xs[0]))
    assert said.n_seen == 300
    assert said.f == model.decision_function_one(xs[0])
    assert said.by_number == {n: decide_one(state, xs[0]) for n, state in model._models.items()}
    np.testing.assert_array_equal(model.margins_many(xs[:5]), [model.margins_one(x) for x in xs[:5]])


def test_candidates_are_judged_by_what_they_said():
    """Those that had not begun when a record was predicted are not judged by it."""
    xs, ys = in_runs(30)
    model = AutoLASVM()
    model.learn_many(xs[:20], ys[:20])
    for x in xs[20:]:
        model.learn_one(x, True, margin=(1.0, 0, 0, 1.0, 1, -1.0, 3, 1.0))
    wrong = {number: score.wrong for number, score in model._tuner.scores.items()}
    early = AutoLASVM()
    early.learn_many(xs[:20], ys[:20])
    before = {number: score.wrong for number, score in early._tuner.scores.items()}
    assert wrong == {0: before[0], 1: before[1] + 10, 2: before[2], 3: before[3]}
    assert model._tuner.lag == 29


def test_the_lag_fades():
    tuner = Tuner().counted({0: np.zeros(1, bool)}, [200])
    assert tuner.counted({0: np.zeros(50, bool)}).lag == 150
    assert tuner.counted({0: np.zeros(1, bool)}, [300]).lag == 300
    assert tuner.counted({0: np.zeros(3, bool)}, [300, 0, 7]).lag == 298
    assert tuner.counted({7: np.zeros(1, bool)}, [100]).scores == tuner.scores  # the champion's word is not known


@pytest.mark.long
def test_a_batch_is_a_loop_and_a_snapshot_goes_on():
    xs, ys = in_runs(1400)
    loop = AutoLASVM()
    _, margins = play(loop, xs, ys, late=100)
    half, n = AutoLASVM(), len(margins)
    half.learn_many(xs[:700], ys[:700], margins=margins[:700])
    half = AutoLASVM.from_bytes(half.to_bytes())
    half.learn_many(xs[700:n], ys[700:n], margins=margins[700:])
    assert half.digest() == loop.digest()
    assert half._tuner.lag == loop._tuner.lag == 100


@given(st.lists(st.tuples(st.integers(0, CHECK), st.integers(0, CHECK)), min_size=1, max_size=60), st.integers(0, 3000))
def test_deviation_is_that_of_parts_of_a_lag(scores, lag):
    """The twin: add up whole parts from the end."""
    won, lost = (list(part) for part in zip(*scores, strict=True))
    alone = max(sum(won) + sum(lost), 1)
    found = deviation(won, lost, lag)
    if lag == 0:
        assert found == math.sqrt(alone)
        return
    length, parts = math.ceil(min(lag, LONGEST_LAG) / CHECK), []
    while len(won) - (len(parts) + 1) * length >= 0:
        end = len(won) - len(parts) * length
        parts.append(sum(won[end - length : end]) - sum(lost[end - length : end]))
    if len(parts) < 2:
        assert found == math.inf
    else:
        mean_square = sum(part**2 for part in parts) / (len(parts) * length)
        assert found == pytest.approx(math.sqrt(max(mean_square * len(won), alone)))


@pytest.mark.long
def test_candidates_that_are_told_do_not_chase_runs():
    """Without the row, those that remember the newest neighbours seem the best."""
    xs, ys = in_runs(3000)
    told, _ = play(AutoLASVM(), xs, ys, late=200)
    not_told, _ = play(AutoLASVM(), xs, ys, late=200, said=AutoLASVM.decision_function_one)
    assert told < not_told
