"""The default policy: which kinds of questions, in which shares, about which examples."""

import json
from collections import Counter

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.active import ArrayPool, MixedSelection, margins
from streamsvm.active.choosing.space import Space
from streamsvm.active.choosing.span import RIDGE

RNG = np.random.default_rng
ONLY = {
    "boundary": {"boundary": 1.0, "novel": 0.0, "explore": 0.0},
    "novel": {"boundary": 0.0, "novel": 1.0, "explore": 0.0},
    "explore": {"boundary": 0.0, "novel": 0.0, "explore": 1.0},
}


def problem(n=400, seed=0, spread=1.0):
    X = spread * RNG(seed).normal(size=(n, 2))
    return X, X[:, 0] > 0.3


def started(selection, X, y, model, keys=range(20)):
    """A pool of which some rows are labelled."""
    pool = ArrayPool(X)
    for key in keys:
        row = pool.rows([key])
        pool.discard(key)
        selection.note(key, row)
        model.learn_many(row, [bool(y[key])], 1.0, np.array([key]))
    model.finish()
    return pool


class FromScratch(Space):
    """Computes everything anew for each question, in double precision or as the model does."""

    def distances(self, places):
        near = ((self._pool.matrix[places, None] - self._labelled.matrix) ** 2).sum(axis=2)
        return near.min(axis=1)

    def decision_values(self, model, places):
        return margins(model, self._pool.matrix[places])

    def novelty(self, model, places):
        Z, X, gamma = self._labelled.matrix, self._pool.matrix[places], model.gamma_in_use
        K, k = (np.exp(-gamma * ((rows[:, None] - Z) ** 2).sum(axis=2)) for rows in (Z, X))
        return np.sqrt(1.0 - (k * np.linalg.solve(K + RIDGE * np.eye(len(Z)), k.T).T).sum(axis=1))


def test_what_is_kept_changes_no_choice():
    X = RNG(3).normal(size=(250, 6))
    y = X[:, 0] + X[:, 1] ** 2 > 1.5
    asked = []
    for space in (Space(), FromScratch()):
        selection, model, rng = MixedSelection(), LASVM(gamma=0.2), RNG(5)
        selection._space = space
        pool = started(selection, X, y, model)
        for _ in range(30):
            choice = selection.choose(pool, model, rng)
            asked.append((choice.key, choice.reason))
            row = pool.rows([choice.key])
            selection.note(choice.key, row)
            pool.discard(choice.key)
            model.learn_many(row, [bool(y[choice.key])], 1.0, np.array([choice.key]))
            model.finish()
    assert asked[:30] == asked[30:]
    assert {reason for _, reason in asked} == {"boundary", "novel", "explore"}


def f_of(pool, model):
    return dict(zip(pool.keys(), margins(model, pool.rows(pool.keys())).tolist(), strict=True))


def test_boundary_is_the_smallest_of_the_whole_pool():
    X, y = problem()
    selection, model = MixedSelection(**ONLY["boundary"]), LASVM(gamma=0.5)
    pool = started(selection, X, y, model)
    f = f_of(pool, model)
    choice = selection.choose(pool, model, RNG(0))
    assert abs(f[choice.key]) == pytest.approx(min(map(abs, f.values())), abs=1e-4)
    assert choice.margin == f[choice.key]
    assert (choice.n_candidates, choice.reason) == (380, "boundary")


def test_the_boundary_is_at_0_whatever_the_threshold_for_predictions():
    X, y = problem()
    asked = []
    for threshold in (0.0, 0.7):
        selection, model = MixedSelection(**ONLY["boundary"]), LASVM(gamma=0.5, threshold=threshold)
        asked.append(selection.choose(started(selection, X, y, model), model, RNG(0)).key)
    assert asked[0] == asked[1]


def test_novel_is_uncertain_and_far_from_the_labelled():
    X, y = problem()
    selection, model = MixedSelection(**ONLY["novel"], candidates=30), LASVM(gamma=0.5)
    pool = started(selection, X, y, model)
    choice = selection.choose(pool, model, RNG(3))
    rng = RNG(3)
    rng.random()
    keys = np.array(pool.keys())[rng.choice(len(pool), 30, replace=False)]
    f = margins(model, X[keys])
    K = np.exp(-0.5 * ((X[:20, None] - X[:20]) ** 2).sum(2)) + 0.01 * np.eye(20)
    k = np.exp(-0.5 * ((X[keys][:, None] - X[:20]) ** 2).sum(2))
    score = np.minimum(np.abs(f), 1.0) - np.sqrt(1.0 - np.einsum("ij,jk,ik->i", k, np.linalg.inv(K), k))
    assert (choice.key, choice.reason) == (keys[np.argmin(score)], "novel")


def test_explore_and_the_start_prefer_the_far_ones():
    """An outlier ten times as far as the others is drawn most of the time."""
    X = np.append(RNG(0).normal(size=(50, 2)), [[200.0, 0.0]], axis=0)
    for draws in ("begin", "choose"):
        found = Counter()
        for seed in range(30):
            selection, model = MixedSelection(**ONLY["explore"]), LASVM(gamma=0.5)
            pool = started(selection, X, np.arange(51) % 2 == 0, model, range(6))
            choice = getattr(selection, draws)(pool, model, RNG(seed))
            found[choice.key == 50, choice.reason] += 1
        assert found[True, "seed" if draws == "begin" else "explore"] == 30


def test_where_distances_are_alike_the_start_takes_turns():
    """Unit rows in 200 dimensions: after an even number of labels, the farthest of 20 is asked about."""
    X = RNG(0).normal(size=(400, 200))
    X /= np.linalg.norm(X, axis=1)[:, None]
    model = LASVM(gamma=0.5, scaling=None)
    for labelled, turns in ((range(2), True), (range(1), False)):
        selection = MixedSelection()
        pool = started(selection, X, np.arange(400) % 2 == 0, model, labelled)
        near = (2.0 - 2.0 * X[list(labelled)] @ X.T).min(axis=0)[pool.keys()]
        ranks = [(near > near[pool.keys().index(selection.begin(pool, model, RNG(s)).key)]).mean() for s in range(40)]
        assert bool(max(ranks) < 0.35) is turns  # of 20, the farthest one is hardly ever below the first third


def test_a_random_start_is_random():
    X = np.append(RNG(0).normal(size=(50, 2)), [[200.0, 0.0]], axis=0)
    selection, model = MixedSelection(start="random"), LASVM(gamma=0.5)
    pool = started(selection, X, np.arange(51) % 2 == 0, model, range(6))
    keys = [selection.begin(pool, model, RNG(seed)).key for seed in range(60)]
    assert keys.count(50) < 10
    assert len(set(keys)) > 20


def test_the_first_question_is_about_any_example():
    X, _ = problem(50)
    keys = {MixedSelection().begin(ArrayPool(X), LASVM(), RNG(seed)).key for seed in range(60)}
    assert len(keys) > 25


def test_the_shares():
    X, y = problem()
    reasons = Counter()
    for seed in range(300):
        selection, model = MixedSelection(), LASVM(gamma=0.5)
        pool = started(selection, X, y, model, range(6))
        reasons[selection.choose(pool, model, RNG(seed)).reason] += 1
    assert 150 < reasons["boundary"] < 210
    assert 65 < reasons["novel"] < 115
    assert 15 < reasons["explore"] < 47
    assert sum(reasons.values()) == 300


def test_when_the_margin_is_empty_three_kinds_take_turns():
    """Two classes far apart: no example of the pool is inside the margin."""
    X, y = problem(200)
    X[:, 0] = np.where(y, 20.0, -20.0)
    reasons, selection, model = Counter(), MixedSelection(), LASVM(kernel="linear", gamma=1.0)
    first = [*np.flatnonzero(y)[:5], *np.flatnonzero(~y)[:5]]
    X[first, 0] *= 0.5
    pool = started(selection, X, y, model, first)
    f = f_of(pool, model)
    for key in [key for key, value in f.items() if abs(value) < 1.001]:
        pool.discard(key)
        del f[key]
    for seed in range(150):
        choice = selection.choose(pool, model, RNG(seed))
        reasons[choice.reason] += 1
        if choice.reason == "boundary":
            assert f[choice.key] == pytest.approx(max(value for value in f.values() if value < 0.0), abs=1e-4)
    assert set(reasons) == {"boundary", "novel", "audit"}
    assert min(reasons.values()) > 30


def test_a_model_without_kernel_rows_is_asked_about_random_examples(monkeypatch):
    """A pipeline, or any model with decision_function_many."""
    monkeypatch.setitem(MixedSelection._scored.__globals__, "CHUNK", 40)

    class Line:
        n_rows = 0

        def decision_function_many(self, X):
            self.n_rows += len(X)
            return X[:, 0]

    X, _ = problem()
    model = Line()
    choice = MixedSelection(**ONLY["boundary"], candidates=10).choose(ArrayPool(X), model, RNG(0))
    assert 40 < model.n_rows <= 42
    assert abs(choice.margin) < 0.2


def test_a_restored_selection_goes_on_alike():
    X, y = problem()
    selection, model = MixedSelection(), LASVM()
    pool = started(selection, X, y, model)
    for key in (30, 31):
        selection.choose(pool, model, RNG(0))
        selection.note(key, pool.rows([key]))
        pool.discard(key)
    again = MixedSelection()
    again.restore(json.loads(json.dumps(selection.state())))
    for seed in range(40):
        assert again.choose(pool, model, RNG(seed)) == selection.choose(pool, model, RNG(seed))
        assert again.begin(pool, model, RNG(seed)) == selection.begin(pool, model, RNG(seed))


@pytest.mark.parametrize(
    "bad", [{"boundary": 0.7}, {"novel": -0.1, "boundary": 1.0}, {"candidates": 0}, {"start": "far"}]
)
def test_refuses(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        MixedSelection(**bad)


def test_an_empty_pool_is_refused():
    with pytest.raises(ValueError, match="the pool is empty"):
        MixedSelection().choose(ArrayPool(np.empty((0, 3))), LASVM(), RNG(0))
