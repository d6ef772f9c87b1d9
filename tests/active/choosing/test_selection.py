"""Which example is asked about next."""

import math

import naive
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from river import preprocessing
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, WarmupScaler
from streamsvm.active import (
    ActiveSelection,
    ArrayPool,
    AutoActiveSelection,
    GradientSelection,
    RandomSelection,
    StreamPool,
    margins,
    pool_size,
)

RNG = np.random.default_rng
LEARNERS = [LASVM, LASVMG, LASVMNC, LASVMI, FullSVM]
N, D = 200, 3


def problem(seed=0, n=N):
    rng = RNG(seed)
    X = rng.normal(size=(n, D)).round(3)
    return X, X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=n) > 1.0


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


def stream_pool(X):
    pool = StreamPool()
    for key, x in enumerate(dicts(X)):
        pool.add(key, x, 0, RNG(0))
    return pool


POOLS = {
    "array": ArrayPool,
    "float32": lambda X: ArrayPool(X.astype(np.float32)),
    "csr": lambda X: ArrayPool(sp.csr_matrix(X)),
    "dicts": lambda X: ArrayPool(dicts(X)),
    "pandas": lambda X: ArrayPool(pd.DataFrame(X)),
    "stream": stream_pool,
}
SELECTIONS = [
    RandomSelection(),
    ActiveSelection(),
    ActiveSelection(pool=7),
    ActiveSelection(pool=None),
    AutoActiveSelection(),
    AutoActiveSelection(within=2, at_most=30),
    GradientSelection([key % 3 == 0 for key in range(N)]),
]


def name(rule):
    return repr(rule).partition("labels=")[0]


def trained(learner, seed=0, n=N):
    model = learner(C=10.0, gamma=0.5)
    model.learn_many(*problem(seed, n))
    return model


class Known:
    """A model that knows f: it is the only feature.  It notes how many rows it is asked for at once."""

    def __init__(self, delta=0.0):
        self.delta = delta
        self.blocks = []

    def decision_function_many(self, X):
        self.blocks.append(len(X))
        return X[:, 0]


def known(values, delta=0.0):
    return ArrayPool(np.array(values, float).reshape(-1, 1)), Known(delta)


# ---------------------------------------------------------------------------------------------------------------- rules

# Few different values, so that there are ties, and some that lie exactly where a candidate counts as close.
VALUES = st.lists(
    st.sampled_from([-3.0, -1.5, -1.25, -1.0, -0.5, 0.0, 0.5, 1.0, 1.25, 1.5, 2.0]), min_size=1, max_size=80
)


@given(VALUES, st.integers(0, 5), st.sampled_from([1, 3, 59, 200]))
def test_active_is_the_closest_of_the_drawn(values, seed, n):
    pool, model = known(values)
    choice = ActiveSelection(n).choose(pool, model, RNG(seed))
    drawn = pool.draw(n, RNG(seed))
    assert choice[:3] == (*naive.closest(drawn, values.__getitem__), len(drawn))
    assert model.blocks == [len(drawn)]


@given(VALUES, st.integers(1, 90))
def test_searching_everything_is_the_closest_of_all(values, chunk):
    pool, model = known(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(ActiveSelection.choose.__globals__, "CHUNK", chunk)  # doctests may load the module once more
        choice = ActiveSelection(None).choose(pool, model, RNG(0))
    assert choice[:3] == (*naive.closest(range(len(values)), values.__getitem__), len(values))
    assert max(model.blocks) <= chunk
    assert sum(model.blocks) == len(values)


@given(
    VALUES,
    st.integers(0, 5),
    st.integers(1, 8),
    st.sampled_from([1, 2, 10, 40, 100]),
    st.sampled_from([0.0, 0.3, 0.5, 1.0, 4.0]),
)
def test_autoactive_is_as_if_drawn_one_by_one(values, seed, within, at_most, delta):
    pool, model = known(values, delta)
    choice = AutoActiveSelection(within, at_most).choose(pool, model, RNG(seed))
    drawn = pool.draw(at_most, RNG(seed))
    assert choice[:3] == naive.auto_active(drawn, values.__getitem__, delta, within)
    assert sum(model.blocks) <= max(8, 3 * choice.n_candidates)


@given(VALUES, st.data(), st.integers(0, 5), st.sampled_from([1, 3, 59]))
def test_gradient_is_the_most_wrong_of_the_drawn(values, data, seed, n):
    labels = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    pool, model = known(values)
    drawn = pool.draw(n, RNG(seed))
    expected = (*naive.most_wrong(drawn, values.__getitem__, labels), len(drawn))
    for form in (labels, np.array(labels), np.where(labels, 1, -1), dict(enumerate(labels))):
        assert GradientSelection(form, n).choose(pool, model, RNG(seed))[:3] == expected


@given(VALUES, st.integers(0, 5))
def test_random_is_the_first_drawn(values, seed):
    pool, model = known(values)
    choice = RandomSelection().choose(pool, model, RNG(seed))
    (key,) = pool.draw(1, RNG(seed))
    assert choice[:3] == (key, values[key], 1)


def test_of_equals_none_is_preferred():
    pool, model = known([0.5] * 4)
    for rule in (RandomSelection(), ActiveSelection(), AutoActiveSelection(), GradientSelection([True] * 4)):
        rng = RNG(3)
        chosen = np.bincount([rule.choose(pool, model, rng).key for _ in range(2000)], minlength=4)
        assert chosen.min() > 400, rule


@pytest.mark.parametrize("rule", SELECTIONS, ids=name)
def test_the_choice_stays_in_the_pool_and_nothing_else_counts(rule):
    """A function of the pool's state, the model and the generator's state."""
    X, _ = problem()
    model, pool, again = trained(LASVM), ArrayPool(X), ArrayPool(X)
    for key in (0, 17, 199):
        pool.discard(key)
        again.discard(key)
    choice = rule.choose(pool, model, RNG(5))
    assert choice.key in pool
    assert len(pool) == N - 3
    before = model.digest()
    rule.choose(pool, model, RNG(6))
    assert rule.choose(again, model, RNG(5)) == choice
    assert model.digest() == before
    assert [type(part) for part in choice] == [int, float, int, str]


@pytest.mark.parametrize("rule", SELECTIONS, ids=name)
def test_an_empty_pool_is_refused(rule):
    for pool in (StreamPool(), ArrayPool(np.empty((0, 3))), ArrayPool(np.eye(3), keys=[])):
        with pytest.raises(ValueError, match="the pool is empty: there is no example left to ask about"):
            rule.choose(pool, LASVM(), RNG(0))


# ------------------------------------------------------------------------------------------------------ learners, pools


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("kind", POOLS)
def test_every_learner_and_every_pool_choose_alike(learner, kind):
    X, _ = problem()
    model, pool, rows = trained(learner), POOLS[kind](X), dicts(X)

    def decide(key):
        return model.decision_function_one(rows[key])

    choice = ActiveSelection().choose(pool, model, RNG(1))
    assert choice[:2] == pytest.approx(naive.closest(pool.draw(59, RNG(1)), decide), abs=1e-6)
    choice = ActiveSelection(None).choose(pool, model, RNG(1))
    assert choice[:2] == pytest.approx(naive.closest(pool.keys(), decide), abs=1e-6)
    choice = AutoActiveSelection().choose(pool, model, RNG(2))
    assert choice[:3] == pytest.approx(naive.auto_active(pool.draw(100, RNG(2)), decide, model.delta, 5), abs=1e-6)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("rule", SELECTIONS, ids=name)
def test_a_start_with_one_class_or_none_is_no_trouble(learner, rule):
    X, _ = problem()
    for kind in ("array", "csr", "stream"):
        pool, model, rng = POOLS[kind](X), learner(), RNG(0)
        for label in (None, True, True, False):
            if label is not None:
                model.learn_one(dict(enumerate(X[0])), label)
            choice = rule.choose(pool, model, rng)
            assert choice.key in pool
            assert math.isfinite(choice.margin)
            assert math.isfinite(model.delta)


def test_one_query_is_one_block_of_kernel_values():
    X, _ = problem()
    model = trained(LASVM)
    model.finish()  # leaves no holes between the members
    before = model.kernel_evaluations
    ActiveSelection().choose(ArrayPool(X), model, RNG(0))
    assert model.kernel_evaluations - before == 59 * model.n_members


def test_autoactive_costs_little_while_most_candidates_are_close():
    pool, model = known([0.5] * 1000)
    assert AutoActiveSelection().choose(pool, model, RNG(0)).n_candidates == 5
    assert model.blocks == [8]
    pool, model = known([5.0] * 1000)
    assert AutoActiveSelection().choose(pool, model, RNG(0)).n_candidates == 100
    assert sum(model.blocks) == 100


# ------------------------------------------------------------------------------------------------------------ pipelines


@pytest.mark.parametrize("scaler", [WarmupScaler, preprocessing.StandardScaler])
def test_the_last_step_of_a_pipeline_decides(scaler):
    X, y = problem()
    X = 5.0 * X + 2.0
    model = scaler() | LASVM(C=10.0, gamma=0.5)
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
    one_by_one = [model[-1].decision_function_one(model[0].transform_one(x)) for x in dicts(X)]
    for form in (X, sp.csr_matrix(X), dicts(X), tuple(dicts(X))):
        np.testing.assert_allclose(margins(model, form), one_by_one, atol=1e-5)
    choice = AutoActiveSelection().choose(ArrayPool(X), model, RNG(0))
    drawn = ArrayPool(X).draw(100, RNG(0))
    expected = naive.auto_active(drawn, one_by_one.__getitem__, model[-1].delta, 5)
    assert choice[:3] == pytest.approx(expected, abs=1e-5)


def test_frames_of_every_kind_go_through_a_pipeline():
    X, y = problem()
    frames = [library.DataFrame(dict(zip("abc", X.T, strict=True))) for library in (pd, pl)]
    model = WarmupScaler() | LASVM(C=10.0, gamma=0.5)
    for x, label in zip(frames[0].to_dict("records"), y.tolist(), strict=True):
        model.learn_one(x, label)
    choices = [ActiveSelection().choose(ArrayPool(frame), model, RNG(4)) for frame in frames]
    assert choices[0][:3] == pytest.approx(choices[1][:3])
    assert choices[0][:2] != pytest.approx(ActiveSelection().choose(ArrayPool(frames[0]), model[-1], RNG(4))[:2])


def test_a_pipeline_of_a_learner_alone():
    X, _ = problem()
    model = trained(LASVM)
    np.testing.assert_array_equal(margins(WarmupScaler() | model, X[:5]), model.decision_function_many(X[:5]))


# ---------------------------------------------------------------------------------------------------- largest violation


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("n", [1, 20, 60, 200])
def test_delta_is_the_largest_violation_among_the_members(learner, n):
    model = trained(learner, seed=n, n=n)
    s = state_of(model).expansion
    live = np.flatnonzero(s.y)
    problem_of_members = s.alpha[live], s.g[live], s.lo[live], s.hi[live]
    violation = naive.violation if learner is LASVM else naive.box_violation
    assert model.delta == pytest.approx(max(0.0, violation(*problem_of_members)), abs=1e-9)
    assert learner().delta == 0.0
    model.finish(0.01)
    assert 0.0 <= model.delta <= 0.01
    assert type(model.delta) is float


def test_what_has_no_delta_counts_as_finished():
    values = [1.0, 1.1] * 50
    pool, model = known(values)
    del model.delta
    expected = naive.auto_active(pool.draw(100, RNG(0)), values.__getitem__, 0.0, 5)
    assert AutoActiveSelection().choose(pool, model, RNG(0))[:3] == expected


# ------------------------------------------------------------------------------------------------------------ pool size


@given(st.floats(1e-4, 0.9999), st.floats(1e-9, 0.9999))
def test_the_pool_is_the_smallest_that_is_enough(p, eta):
    n = pool_size(p, eta)
    assert n >= 1
    assert n * math.log1p(-p) <= math.log(eta) * (1 - 1e-6)
    assert n == 1 or (n - 1) * math.log1p(-p) > math.log(eta) * (1 + 1e-6)


def test_known_pool_sizes():
    assert [pool_size(), pool_size(0.5, 0.25), pool_size(0.1, 0.01), pool_size(0.99, 0.5)] == [59, 2, 44, 1]


def test_59_candidates_hold_one_of_the_best_5_percent():
    rng, hits = RNG(0), 0
    for _ in range(1000):
        values = rng.permutation(1000) - 0.5
        pool, model = known(values)
        hits += abs(ActiveSelection().choose(pool, model, rng).margin) < 50
    assert 0.93 < hits / 1000 < 0.98


# ----------------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ActiveSelection(0), "pool=0 must be a whole number, at least 1"),
        (lambda: ActiveSelection(2.5), r"pool=2\.5 must"),
        (lambda: AutoActiveSelection(within=0), "within=0 must"),
        (lambda: AutoActiveSelection(at_most=0), "at_most=0 must"),
        (lambda: GradientSelection([], pool=0), "pool=0 must"),
        (lambda: pool_size(p=0.0), r"p=0\.0 must be a number between 0 and 1"),
        (lambda: pool_size(p=1), "p=1 must be"),
        (lambda: pool_size(eta=-0.1), r"eta=-0\.1 must be"),
        (lambda: pool_size(eta=math.nan), "eta=nan must be"),
    ],
)
def test_a_bad_parameter_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()
