"""Models that scale inside: whatever is done to them, they are what their raw features make them."""

import copy
import datetime
import itertools
import pickle

import joblib
import naive
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, OneVsRest, SnapshotError
from streamsvm.core import storage
from streamsvm.core.expansion import SLOTS
from streamsvm.core.kernel_table import KERNELS
from streamsvm.core.kernels import kernel_values
from streamsvm.core.saving.snapshot import pack, unpack
from streamsvm.core.scaling.state import CUT, FAR, PLACES, SEEN, SPREAD
from streamsvm.estimators.learner.advice import StreamWarning
from tests.helpers.states import binaries_of, state_of

START = datetime.datetime(2026, 1, 1)
FEW = {"clean_every": 15, "max_non_sv": 5}
MODELS = {
    "LASVM": LASVM(C=2.0, cache_mb=0.05),
    "gamma": LASVM(C=2.0, gamma=0.3, scaling="standard"),
    "spread": LASVM(C=2.0, scaling=None),
    "linear": LASVM(C=0.5, kernel="linear"),
    "poly": LASVM(C=0.5, kernel="poly", degree=2, coef0=1.0),
    "sigmoid": LASVM(C=0.5, kernel="sigmoid", coef0=-0.5),
    "G": LASVMG(C=2.0, **FEW),
    "NC": LASVMNC(C=2.0, ramp_warmup=20, **FEW),
    "I": LASVMI(C=2.0, ramp_warmup=20, **FEW),
    "FULL": FullSVM(C=2.0),
    "remove": LASVM(C=2.0, budget=25),
    "project": LASVM(C=2.0, budget=25, on_budget="project"),
    "merge": LASVM(C=2.0, budget=25, on_budget="merge"),
    "window": LASVM(C=2.0, window=60),
    "time": LASVM(C=2.0, window=datetime.timedelta(seconds=60), budget=40),
    "rare": LASVM(C=2.0, pos_weight="balanced", threshold="gmean"),
    "shift": LASVM(C=2.0, gamma=1e-4),
    "shift, window": LASVMG(C=2.0, gamma=1e-4, window=60, budget=30),
    "classes": OneVsRest(LASVM(C=2.0)),
    "classes, shift": OneVsRest(LASVM(C=2.0, gamma=1e-4)),
    "classes, window": OneVsRest(LASVMG(C=2.0, window=60, budget=30)),
}
SOME = ("LASVM", "spread", "G", "merge", "window", "shift", "classes", "classes, window", "classes, shift")


def stream(n=240, seed=0):
    """Dicts whose features differ in size, one of which appears late, one is a bit that varies, some are missing."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        unit = 50.0 if t > 120 else 1.0
        x = {0: rng.normal(), 1: 1e3 * rng.normal() + 5e3, 2: 1e-3 * rng.normal(), 3: unit * rng.normal()}
        x |= {4: float(rng.random() < 0.4) if t < 80 else rng.normal(), 5: float(rng.random() < 0.3)}
        x |= {7: rng.normal(300.0, 100.0)} if t > 60 else {}
        x |= {100 + t: 2.0} if t % 9 == 0 else {}
        x |= {1: 1e6} if t % 50 == 40 else {}
        rows.append({d: float(v) for d, v in x.items() if v != 0.0 and (d != 2 or rng.random() < 0.9)})
    return rows


def given(model, rows, seed=1):
    """Labels, weights and ids for these rows, some of which return; and times."""
    rng = np.random.default_rng(seed)
    f = np.array([x[0] + (x[1] - 5e3) / 1e3 for x in rows]) + 0.2 * rng.normal(size=len(rows))
    y = np.digitize(f, [-0.5, 1.0]).tolist() if isinstance(model, OneVsRest) else (f > 0.5).tolist()
    w = rng.choice([0.0, 0.5, 1.0, 2.0], len(rows), p=[0.1, 0.2, 0.5, 0.2])
    ids = np.arange(len(rows)) + 1000
    again = np.flatnonzero(rng.random(len(rows)) < 0.1)[1:]
    ids[again] = ids[again] - rng.integers(1, 8, len(again))
    return y, w, ids, np.array([START + datetime.timedelta(seconds=t) for t in range(len(rows))])


def parts(model, *arrays):
    """The arguments of a model; times only if it wants them."""
    *others, t = arrays
    window = state_of(model).window
    return [*others, t] if window and window.by_time else others


def loop(model, rows, *labels):
    for x, *rest in zip(rows, *parts(model, *labels), strict=True):
        model.learn_one(x, *rest)
    return model


def in_parts(model, form, rows, cut, *labels):
    for b in range(0, len(rows), cut):
        own = slice(b, b + cut)
        model.learn_many(form(rows[own]), *parts(model, *(values[own] for values in labels)))
    return model


def matrix(rows, width=400):
    X = sp.lil_matrix((len(rows), width))
    for t, x in enumerate(rows):
        for d, v in x.items():
            X[t, d] = v
    return sp.csr_matrix(X)


def shuffled(rows):
    rng = np.random.default_rng(2)
    return [{d: x[d] for d in rng.permutation(list(x)).tolist()} for x in rows]


def gram(kernel, X):
    """As `naive.gram`, of which it is a fast form, for a check after every example."""
    sq = np.sum(X**2, axis=1)
    return kernel_values(kernel, X @ X.T, sq[:, None], sq[None, :])


def check(model):
    """Features are the scaled raw ones, gradients those of the features, and gamma is that of the scale in use."""
    if isinstance(model, OneVsRest):
        for of_class in binaries_of(model).values():
            assert state_of(of_class).scale is model._common.scale
            check(of_class)
        if model._common.scale.is_active:
            check_scaled(model._union.vectors, model.model._over(model._common))
        return
    s, live = state_of(model).expansion, storage.live_slots(state_of(model).expansion)
    assert (s.raw.shape[1] > 0) == model.is_scaling
    if model.is_scaling:
        check_scaled(s, model)
    alpha, y = s.alpha[live], s.y[live].astype(float)
    assert ((s.lo[live] <= alpha) & (alpha <= s.hi[live])).all()
    if isinstance(model, LASVM):
        assert abs(alpha.sum()) <= 1e-9 * (1.0 + np.abs(alpha).sum())
    X = storage.rows_of(s, live, len(model.feature_names)).toarray().astype(float)
    np.testing.assert_allclose(s.sq[live], np.sum(X**2, axis=1), rtol=1e-5)
    K = gram(naive.kernel_of(model), X)
    np.testing.assert_allclose(s.self_k[live], np.diag(K), rtol=1e-5, atol=1e-6)
    digits = 1e-4 if model.is_scaling else 1e-3  # of large features, fewer are left in single precision
    rounding = digits * (1.0 + np.abs(alpha).sum() * np.abs(K).max(initial=0.0))
    exact = (model.kernel != "rbf") | (model.gamma_in_use * s.sq[live] < FAR)  # two outliers lose their distance
    np.testing.assert_allclose(s.g[live][exact], (y - K @ alpha)[exact], rtol=0, atol=rounding)
    V = state_of(model).scale.state.totals[SPREAD]
    if model.gamma == "scale" and model.kernel != "linear":
        assert model.gamma_in_use == 1.0 / V


def check_scaled(s, model):
    live, c = storage.live_slots(s), state_of(model).scale.state
    n, cut = int(c.counts[PLACES]), c.limits[CUT]
    z = ((s.raw[live][:, :n] - c.shift[:n]) * c.factor[:n]).clip(-cut, cut).astype(np.float32)
    X = storage.rows_of(s, live, len(model._features.columns)).toarray()
    if model.on_budget == "merge":  # a merged member lies between two scaled ones, which clipping is no part of
        return
    np.testing.assert_array_equal(X[:, c.feature[:n]], z)
    others = np.delete(X, c.feature[:n], axis=1)
    assert np.abs(others).max(initial=0.0) <= cut


# ------------------------------------------------------------------------------------------------- one way or another


FORMS = {
    "dicts": lambda rows: rows,
    "shuffled": shuffled,
    "sparse": matrix,
}


@pytest.fixture(scope="module")
def loops():
    """The digest of each model that learned the stream one by one."""
    rows = stream()
    found = {}

    def digest(name):
        if name not in found:
            found[name] = loop(MODELS[name].clone(), rows, *given(MODELS[name], rows)).digest()
        return found[name]

    return digest


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_learn_many_is_the_loop_however_it_is_cut(name, loops):
    rows = stream()
    labels = given(MODELS[name], rows)
    rows_of_one = in_parts(MODELS[name].clone(), matrix, rows, 1, *labels).digest()  # what it lacks is 0
    for cut, form in ((7, "dicts"), (100, "shuffled"), (240, "sparse")):
        model = in_parts(MODELS[name].clone(), FORMS[form], rows, cut, *labels)
        assert model.digest() == (rows_of_one if form == "sparse" else loops(name)), (cut, form)
    assert state_of(model).scale.is_active == (name != "spread")
    check(model)


@pytest.mark.long
@pytest.mark.parametrize("name", ["LASVM", "merge", "classes"])
def test_frames_and_arrays_are_the_loop_too(name):
    """All features are named in each row, so that zeros are."""
    X = matrix(stream()).toarray()[:, :10]
    frame = pd.DataFrame(X, columns=[f"f{d}" for d in range(10)])
    labels = given(MODELS[name], stream())
    for batch, rows in ((X, [dict(enumerate(x)) for x in X.tolist()]), (frame, frame.to_dict("records"))):
        model = in_parts(MODELS[name].clone(), lambda part: part, batch, 64, *labels)
        assert model.digest() == loop(MODELS[name].clone(), rows, *labels).digest()
        check(model)


@pytest.mark.long
@pytest.mark.parametrize("name", SOME)
def test_every_moment_is_consistent(name):
    model, rows = MODELS[name].clone(), stream()
    renewed, scale = 0, None
    for example in zip(rows, *parts(model, *given(model, rows)), strict=True):
        model.learn_one(*example)
        check(model)
        renewed += state_of(model).scale is not scale
        scale = state_of(model).scale
    assert renewed > (1 if "shift" in name else 4)


def test_members_keep_what_was_given():
    """Those that were learned after their features had a place."""
    model, rows = FullSVM(C=2.0), stream()
    model.learn_many(rows, given(model, rows)[0])
    s, c = state_of(model).expansion, state_of(model).scale.state
    live, names = storage.live_slots(s), model.feature_names
    assert len(live) == len(rows)
    for p, d in enumerate(c.feature[: c.counts[PLACES]].tolist()):
        first = 110 if names[d] == 7 else 0
        expected = np.array([rows[i].get(names[d], 0.0) for i in range(first, len(rows))])
        close = np.float32(expected) if first == 0 else expected
        whole = (expected != 0.0) | (names[d] != 2)  # of which one in ten is lacking, and guessed
        np.testing.assert_allclose(s.raw[live][first:, p][whole], close[whole], rtol=1e-6)
        assert np.all(s.raw[live][first:, p][~whole][2:] != 0.0)


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_a_snapshot_of_any_moment_goes_on_bit_for_bit(name, loops):
    rows = stream()
    labels = given(MODELS[name], rows)
    model, done = MODELS[name].clone(), 0
    for end in (1, 2, 3, 25, 77, 78, 79, 90, 150, 151, 200, 240):
        model = in_parts(model, list, rows[done:end], 40, *(values[done:end] for values in labels))
        digest, done = model.digest(), end
        model = type(model).from_bytes(model.to_bytes())
        assert model.digest() == digest
        check(model)
    assert model.digest() == loops(name)


@pytest.mark.parametrize("name", ["LASVM", "classes"])
def test_copies_go_on_alike(name, tmp_path):
    rows = stream()
    labels = given(MODELS[name], rows)
    model = in_parts(MODELS[name].clone(), list, rows[:120], 40, *(values[:120] for values in labels))
    before = model.digest()
    joblib.dump(model, tmp_path / "model.joblib")
    copies = [copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]  # noqa: S301 - our own bytes
    copies.append(joblib.load(tmp_path / "model.joblib", mmap_mode="r"))
    after = set()
    for other in copies:
        in_parts(other, list, rows[120:], 40, *(values[120:] for values in labels))
        check(other)
        after.add(other.digest())
    assert model.digest() == before
    assert after == {loop(model, rows[120:], *(values[120:] for values in labels)).digest()}


# -------------------------------------------------------------------------------------------------- what may be done


def learned(name, n=240):
    rows = stream()[:n]
    model = MODELS[name].clone()
    y, *_ = labels = given(model, rows)
    return in_parts(model, list, rows, 60, *labels), rows, y


@pytest.mark.long
@pytest.mark.parametrize("name", SOME)
def test_what_is_done_to_it_leaves_it_consistent(name):
    model, *_ = learned(name)
    right = "new" if name.startswith("classes") else True
    ids = model.support_ids
    steps = [lambda: model.forget(ids[:3]), lambda: model.finish(1e-3), lambda: model.relabel(ids[5:8], right)]
    if isinstance(getattr(model, "_blank", model), LASVMG):
        steps.append(model.sparsify)
    more = stream(300)[240:]
    for step, x in zip(itertools.cycle(steps), more, strict=False):
        step()
        check(model)
        times = {"t": START + datetime.timedelta(seconds=300)} if name == "time" else {}
        model.learn_one(x, right, **times)
        check(model)


def test_forgetting_is_exact_across_renewals():
    """The model without an example, scaled as the model with it, has the same coefficients."""
    rows = stream()
    y = given(LASVM(), rows)[0]
    model = FullSVM(C=2.0, tol=1e-6)
    model.learn_many(rows, y)
    assert model.forget(range(0, 240, 7)) == 35
    model.finish(1e-6)
    s = state_of(model).expansion
    live = storage.live_slots(s)
    X = storage.rows_of(s, live, len(model.feature_names)).toarray().astype(float)
    K = naive.gram(naive.kernel_of(model), X, X)
    alpha = naive.solve_box(K, s.y[live].astype(float), s.lo[live], s.hi[live], 1e-6)
    alpha = alpha[0] if isinstance(alpha, tuple) else alpha
    np.testing.assert_allclose(K @ s.alpha[live], K @ alpha, atol=1e-3)


def test_leaving_out_predicts_as_forgetting_does():
    rows, model = stream(), LASVM(C=2.0)
    y = given(model, rows)[0]
    model.learn_many(rows, y)
    model.finish(1e-4)
    whole = {2, 4, 7}  # What the member has for a feature that it lacks is not what a query has by now.
    t = next(t for t in model.support_ids.tolist() if t >= 80 and whole <= rows[t].keys())
    other = {0: 1.0, 1: 4e3}
    leave_out, slots = model.leave_out([rows[t], other], [y[t], True], ids=[t, 10**6])
    np.testing.assert_allclose(leave_out.decision_values()[slots[1]], model.decision_function_one(other), atol=1e-9)
    f = leave_out.without(slots[:1])
    model.forget(t)
    np.testing.assert_allclose(f, [model.decision_function_one(rows[t])], atol=0.05)


# -------------------------------------------------------------------------------------------------- what it is good for


def separable(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    return X, X[:, 0] * X[:, 1] + X[:, 2] > 0.3


def accuracy(model, X, y, begin=200):
    right = 0
    for b in range(0, len(y), 50):
        if b >= begin:
            right += np.count_nonzero(model.predict_many(X[b : b + 50]) == y[b : b + 50])
        model.learn_many(X[b : b + 50], y[b : b + 50])
    return right / (len(y) - begin)


UNITS = np.array([1.0, 1e3, 1e-3, 1e6, 1e-6, 30.0])
MEANS = np.array([0.0, 5e3, 1e-2, -3e6, 0.0, 7.0])


def test_units_do_not_matter():
    X, y = separable(1500)
    scaled, raw = accuracy(LASVM(), X, y), accuracy(LASVM(), X * UNITS + MEANS, y)
    assert abs(scaled - raw) < 0.02
    assert raw > 0.85
    with pytest.warns(StreamWarning, match="different scales"):
        assert accuracy(LASVM(scaling=None), X * UNITS + MEANS, y) < 0.8


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scaling", ["auto", "standard", None])
@pytest.mark.parametrize("gamma", ["scale", 0.1])
def test_what_the_parameters_mean(kernel, scaling, gamma):
    X, y = separable(300)
    model = LASVM(kernel=kernel, scaling=scaling, gamma=gamma)
    model.learn_many(X * 10.0, y)
    assert model.is_scaling == (scaling == "standard" or (scaling == "auto" and gamma == "scale"))
    V = 6.0 if model.is_scaling else 600.0
    if kernel != "linear":
        np.testing.assert_allclose(model.gamma_in_use, gamma if gamma == 0.1 else 1.0 / V, rtol=0.5)
    check(model)


@pytest.mark.parametrize(("unit", "mean", "after"), [(100.0, 0.0, 2000), (1.0, 5.0, 4000), (0.3, 0.0, 6000)])
def test_another_unit_and_another_mean_are_followed(unit, mean, after):
    X, y = separable(after + 1400, seed=1)
    X[1000:, :3] = X[1000:, :3] * unit + mean
    model = LASVM(window=400)
    model.learn_many(X[:-400], y[:-400])
    assert np.mean(model.predict_many(X[-400:]) == y[-400:]) > 0.8


def test_a_late_feature_is_used():
    """It decides from then on, and is much larger than the others."""
    X, y = separable(1200)
    late = [dict(enumerate(x)) for x in X.tolist()]
    for t in range(400, 1200):
        late[t]["late"] = 1300.0 if t % 2 else 700.0
    y = np.where(np.arange(1200) < 400, y, np.arange(1200) % 2 == 1)
    model = LASVM()
    model.learn_many(late[:800], y[:800])
    assert np.mean(model.predict_many(late[800:]) == y[800:]) > 0.95


def test_one_wide_hostile_example_costs_its_own_features_only():
    X, y = separable(600)
    model, other = LASVM(), LASVM()
    hostile = {f"h{d}": 1e12 for d in range(20_000)}
    model.learn_many(X[:300], y[:300])
    other.learn_many(X[:300], y[:300])
    before = model.gamma_in_use
    model.learn_one(hostile, True)
    model.learn_many(X[300:], y[300:])
    other.learn_many(X[300:], y[300:])
    s = state_of(model).expansion
    assert state_of(model).scale.n_places == 6
    assert s.raw.shape[1] <= 16
    np.testing.assert_allclose(model.gamma_in_use, before, rtol=0.5)
    assert np.mean(model.predict_many(X) == other.predict_many(X)) > 0.95
    check(model)


def test_renewals_of_a_stationary_stream_are_few():
    """Rescaling costs what the members' kernel values cost: their number grows like the logarithm of the stream."""
    X, y = separable(3000)
    model, renewed, scale = LASVM(), [], None
    for t in range(0, 3000, 10):
        model.learn_many(X[t : t + 10] * UNITS + MEANS, y[t : t + 10])
        renewed.append(state_of(model).scale is not scale)
        scale = state_of(model).scale
    assert sum(renewed) < 15
    assert sum(renewed[50:]) <= 3


# ------------------------------------------------------------------------------------------------------ what is refused


def test_what_learning_refuses_validation_refuses_too():
    X, y = separable(100)
    X[0] = 1.0
    model = LASVM(kernel="poly", degree=18)
    model.learn_many(X, y)
    assert model.is_scaling
    many = {f"n{d}": 3.0 for d in range(40)}  # (40 * 9 / V)^18
    digest = model.digest()
    for call in (model.validate_one, lambda x: model.learn_one(x, True)):
        with pytest.raises(ValueError, match="the poly kernel of example 100 with itself"):
            call(many)
    for call in (model.validate_many, lambda rows: model.learn_many(rows, [True])):
        with pytest.raises(ValueError, match="the poly kernel of example 0 with itself"):
            call([many])
    for x in ({0: 1e19}, {0: np.inf}, {0: np.inf, 1: np.nan}):
        for call in (model.validate_one, lambda x: model.learn_one(x, True), model.predict_one):
            with pytest.raises(ValueError, match="feature 0 is"):
                call(x)
    assert model.digest() == digest
    model.validate_one(dict.fromkeys(range(6), 1e9))  # is clipped
    model.learn_one(dict.fromkeys(range(6), 1e9), True)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
@pytest.mark.parametrize("scaling", ["auto", None])
def test_huge_features_are_not_refused(kernel, scaling):
    """Neither before the first scale is in use nor while nothing varies."""
    X, y = separable(60)
    X = X * 1e15 + 1e16
    X[:10] = X[0]
    model = LASVM(kernel=kernel, degree=9, scaling=scaling)
    for x, label in zip(X, y, strict=True):
        model.learn_one(dict(enumerate(x)), label)
    assert model.n_seen == 60
    assert np.isfinite(model.decision_function_many(X)).all()


def test_tiny_features_make_no_infinite_gamma():
    X, y = separable(100)
    for scaling in ("auto", None):
        model = LASVM(kernel="poly", scaling=scaling)
        model.learn_many(X * 1e-25, y)
        assert np.isfinite(model.decision_function_many(X)).all()


def test_a_member_that_leaves_for_an_example_with_a_new_feature():
    """Its column is not taken back meanwhile: compiled code would write beyond the arrays."""
    for name in ("remove", "project", "merge", "window"):
        model, *_ = learned(name, 120)
        for t in range(50):
            model.learn_one({0: 0.1 * t, 1: 5e3, f"new {t}": 1.0}, bool(t % 2), id=int(model.support_ids[0]))
            assert len(model._features) == len(model._features.columns)
        assert "new 49" in model.feature_names
        check(model)


# ---------------------------------------------------------------------------------------------------- hostile snapshots


@pytest.fixture(scope="module")
def snapshots():
    return {name: learned(name)[0].to_bytes() for name in ("LASVM", "spread", "classes")}


def spoiled(snapshots, name, array, place, value):
    kind = "OneVsRest" if name == "classes" else "LASVM"
    meta, arrays = unpack(snapshots[name], kind)
    arrays[array][place] = value
    return (OneVsRest if name == "classes" else LASVM), pack(kind, meta, arrays)


@pytest.mark.parametrize("name", ["LASVM", "classes"])
@pytest.mark.parametrize(
    ("array", "place", "value", "problem"),
    [
        ("place", 0, 10**6, "a place belongs to"),
        ("place", 0, -2, "a place belongs to"),
        ("feature", 0, 10**6, "a place belongs to no feature"),
        ("feature", 0, -1, "a place belongs to no feature"),
        ("feature", 1, 0, "a place belongs to another feature"),
        ("began", 0, -1, "began of the scale is negative"),
        ("times", 0, 2**63 - 1, "times of the scale is negative, not a number, or too large"),
        ("w", 0, np.nan, "w of the scale is negative, not a number"),
        ("w", 0, 0.0, "a variance of the scale is too large"),
        ("m", 0, 1e300, "m of the scale is negative, not a number, or too large"),
        ("S", 0, np.inf, "a variance of the scale is too large"),
        ("shift", 0, -1e300, "shift of the scale is negative, not a number, or too large"),
        ("spread", 0, -1.0, "spread of the scale is negative"),
        ("factor", 0, 0.0, "the factors of the scale do not fit"),
        ("varied", 0, 7, "of the scale is neither 0 nor 1"),
        ("totals", SPREAD, np.nan, "totals of the scale is negative, not a number"),
        ("counts", PLACES, 10**9, "the scale has 1000000000 places"),
        ("counts", PLACES, 1, "is float64 of shape|is int64 of shape"),
        ("counts", SEEN, -1, "a count of the scale is out of range"),
        ("counts", 3, 0, "the scale is of another kind"),
        ("counts", 5, 2, "a flag of the scale"),
        ("counts", 7, 0, "the scale is active without a scaled feature, or the reverse"),
        ("spread", slice(None), 0.0, "the factors of the scale do not fit"),
    ],
)
def test_what_is_wrong_with_the_scale_is_named(snapshots, name, array, place, value, problem):
    full = f"{'common.' if name == 'classes' else ''}scale.{array}"
    kind, data = spoiled(snapshots, name, full, place, value)
    with pytest.raises(SnapshotError, match=problem):
        kind.from_bytes(data)


@pytest.mark.parametrize("owner", ["", "0.", "union."])
def test_the_unscaled_features_must_fit_the_scale(snapshots, owner):
    name, kind = ("classes", OneVsRest) if owner else ("LASVM", LASVM)
    meta, arrays = unpack(snapshots[name], kind.__name__)
    raw = arrays[owner + "raw"]
    others = [raw[:, :-1], raw[:, :0], np.pad(raw, ((0, 0), (0, 1))), raw[:-1], raw.astype(np.float32), raw * np.nan]
    others += [np.full(raw.shape, 1e300), None]
    for other in others:
        changed = {key: value for key, value in (arrays | {owner + "raw": other}).items() if value is not None}
        with pytest.raises(SnapshotError):
            kind.from_bytes(pack(kind.__name__, meta, changed))


def test_unscaled_features_without_a_scale_are_refused(snapshots):
    meta, arrays = unpack(snapshots["spread"], "LASVM")
    n = len(arrays["y"])
    with pytest.raises(SnapshotError, match="it has unscaled features, but no scale"):
        LASVM.from_bytes(pack("LASVM", meta, arrays | {"raw": np.zeros((n, 6))}))
    assert state_of(LASVM.from_bytes(snapshots["spread"])).expansion.counts[SLOTS] == n
