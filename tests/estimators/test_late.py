"""Labels that come late: the probabilities are fitted to the margins of the predictions."""

from collections import deque
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

from streamsvm import LASVM, LASVMG, AutoLASVM, OneVsOne, OneVsRest
from streamsvm.online.outputs.sigmoid import DECAY, MAX_MARGIN, MAX_SLOPE, MIN_SLOPE

BINARY = {
    "LASVM": LASVM,
    "LASVM, threshold": lambda: LASVM(threshold="gmean"),
    "LASVM, window": lambda: LASVM(window=80),
    "LASVM-G": LASVMG,
    "AutoLASVM": AutoLASVM,
}
SEVERAL = {
    "OneVsRest": lambda: OneVsRest(LASVM()),
    "OneVsOne": lambda: OneVsOne(LASVM()),
    "OneVsRest, tuned": lambda: OneVsRest(AutoLASVM()),
}


def in_runs(n, seed=0):
    """Two classes in runs of 10 records that are alike, as hours of elec2 are.

    The place of a run tells its label in 3 of 4 cases.
    """
    rng = np.random.default_rng(seed)
    centre = np.repeat(rng.normal(size=(n // 10 + 1, 2)), 10, axis=0)[:n]
    is_usual = np.repeat(rng.random(n // 10 + 1) < 0.75, 10)[:n]
    y = ((centre[:, 0] > 0) == is_usual) ^ (rng.random(n) < 0.05)
    X = centre + rng.normal(scale=0.05, size=(n, 2))
    return [dict(enumerate(x)) for x in X.tolist()], y.tolist()


def three(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    X = rng.normal(size=(n, 2)) + 1.5 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    return [dict(enumerate(x)) for x in X.tolist()], ["abc"[c] for c in y]


def said(model, x):
    return model.pair_values_one(x) if isinstance(model, OneVsOne) else model.decision_function_one(x)


def play(model, xs, ys, late, knows=True):
    """Predict, and learn each example when so many others have come; return what was predicted."""
    waiting, p, given = deque(), [], []
    for i, (x, y) in enumerate(zip(xs, ys, strict=True)):
        f = said(model, x)
        p.append(model.predict_proba_one(x))
        waiting.append((x, y, f, i))
        if len(waiting) > late:
            x, y, f, i = waiting.popleft()
            model.learn_one(x, y, id=i, margin=f if knows else None)
            given.append((f, y))
    return p, given


def calibration_error(p, y):
    p, y = np.array(p), np.array(y)
    bins = np.minimum((10 * p).astype(int), 9)
    return sum(abs((p - y)[bins == b].sum()) for b in range(10)) / len(p)


def slopes_of(given, a):
    """The twin of the sigmoid: the slopes after these margins, from those before them."""
    a, curvature = list(a), [1.0, 1.0]
    for f, y in given:
        side, f = int(f > 0), float(np.clip(f, -MAX_MARGIN, MAX_MARGIN))
        p = 1 / (1 + np.exp(-a[side] * f))
        curvature[side] = DECAY * curvature[side] + f * f * p * (1 - p) + 1e-6
        a[side] = min(max(a[side] + (y - p) * f / curvature[side], MIN_SLOPE), MAX_SLOPE)
    return a


@pytest.mark.parametrize("learner", [LASVM, LASVMG])
def test_the_slopes_are_those_of_the_predicted_margins(learner):
    xs, ys = in_runs(300)
    model = learner()
    _, given = play(model, xs, ys, late=50)
    both = next(i for i in range(len(ys)) if len({*ys[: i + 1]}) == 2)
    np.testing.assert_allclose(model.slopes, slopes_of(given[both + 1 :], (2.0, 2.0)), rtol=1e-9)


@pytest.mark.parametrize("name", BINARY | SEVERAL)
def test_nothing_else_is_changed_by_the_margin(name):
    """What is a member, and with which coefficient, does not depend on the margin; a batch is a loop."""
    make = (BINARY | SEVERAL)[name]
    xs, ys = (in_runs if name in BINARY else three)(260)
    late, plain, batch = make(), make(), make()
    _, given = play(late, xs, ys, late=60)
    play(plain, xs, ys, late=60, knows=False)
    assert late.digest() != plain.digest()
    n, f = len(given), [f for f, _ in given]
    batch.learn_many(xs[:n], ys[:n], ids=range(n), margins=f)
    assert batch.digest() == late.digest()
    assert late.support_ids.tolist() == plain.support_ids.tolist()
    assert late.dual_coef.tolist() == plain.dual_coef.tolist()
    assert type(late).from_bytes(late.to_bytes()).digest() == late.digest()


@pytest.mark.parametrize("name", ["LASVM", "LASVM, threshold", "LASVM-G", "OneVsRest", "OneVsOne"])
def test_a_margin_of_now_changes_nothing(name):
    """Except with a window, where a member leaves in between, and where challengers have margins of their own."""
    make = (BINARY | SEVERAL)[name]
    xs, ys = (in_runs if name in BINARY else three)(150)
    given, plain = make(), make()
    for x, y in zip(xs, ys, strict=True):
        given.learn_one(x, y, margin=said(given, x))
        plain.learn_one(x, y)
    for x in xs[:10]:
        assert given.predict_proba_one(x) == pytest.approx(plain.predict_proba_one(x), rel=1e-9)


def test_arrays_of_margins():
    """What `decision_function_many` and `pair_values_many` returned, also before the last class was known."""
    xs, ys = three(200)
    X = np.array([list(x.values()) for x in xs])
    for make in SEVERAL.values():
        rows, dicts = make(), make()
        for model in (rows, dicts):
            model.learn_many(X[:60], ["ab"[i % 2] for i in range(60)])
        one = isinstance(rows, OneVsOne)
        f = rows.pair_values_many(X[60:]) if one else rows.decision_function_many(X[60:])
        by_key = [dict(zip(rows.pairs if one else rows.labels, row, strict=True)) for row in f.tolist()]
        rows.learn_many(X[60:], ys[60:], margins=f)
        dicts.learn_many(X[60:], ys[60:], margins=by_key)
        assert rows.digest() == dicts.digest()


@pytest.mark.parametrize("n", [1, 140])
def test_decision_values_of_three_classes_are_not_taken_for_those_of_their_pairs(n):
    xs, ys = three(200)
    X, model = np.array([list(x.values()) for x in xs]), OneVsOne(LASVM())
    model.learn_many(X[:60], ys[:60])
    before, f = model.digest(), model.decision_function_many(X[60 : 60 + n])
    with pytest.raises(ValueError, match=r"margins has decision values of the classes .* as pair_values_many returns"):
        model.learn_many(X[60 : 60 + n], ys[60 : 60 + n], margins=f)
    with pytest.raises(ValueError, match=r"margin has the keys .* as pair_values_one returns"):
        model.learn_one(xs[60], ys[60], margin=model.decision_function_one(xs[60]))
    assert model.digest() == before
    model.learn_many(X[60 : 60 + n], ys[60 : 60 + n], margins=model.pair_values_many(X[60 : 60 + n]))


def test_frames_of_margins():
    """What `decision_function_many` returned for a data frame."""
    xs, ys = three(120)
    frame = pd.DataFrame(xs)
    for make in (LASVM, SEVERAL["OneVsRest"]):
        of_frame, of_array = make(), make()
        for model in (of_frame, of_array):
            labels = ys if isinstance(model, OneVsRest) else [y == ys[0] for y in ys]
            model.learn_many(frame[:60], labels[:60])
            f = model.decision_function_many(frame[60:])
            model.learn_many(frame[60:], labels[60:], margins=f if model is of_frame else f.to_numpy())
        assert of_frame.digest() == of_array.digest()


@pytest.mark.parametrize(
    ("margins", "message"),
    [
        (np.zeros((2, 4)), r"margins has shape \(2, 4\); it must have a column for each of \['a', 'b'\]"),
        (np.zeros(2), r"margins has shape \(2,\)"),
        (0.5, "margins=0.5 must be a sequence"),
        (b"12", "margins=b'12' must be a sequence"),
        (np.array(0.5), r"margins"),
        ({0: {"a": 1.0}, 1: {"a": 1.0}}, "margins is a dict"),
        (np.ma.masked_array(np.zeros((2, 2)), [[True, False], [False, False]]), "margins is a masked array"),
        ([{"a": 1.0}], "margins has 1 entries for 2 rows"),
        (
            pd.DataFrame({"a": [1.0, 2.0], "c": [1.0, 2.0]}),
            r"margins has the columns \['a', 'c'\]; they must be \['a', 'b'\]",
        ),
    ],
)
def test_margins_of_a_wrong_shape_or_kind_are_named(margins, message):
    rows, labels = [{"a": 1.0}, {"a": 2.0}], ["a", "b"]
    model = OneVsRest(LASVM())
    model.learn_many(rows, labels)
    before = model.digest()
    with pytest.raises((TypeError, ValueError), match=message):
        model.learn_many(rows, labels, margins=margins)
    assert model.digest() == before


@pytest.mark.parametrize("margins", [0.5, b"12", {0: 1.0, 1: 2.0}, {1.0, 2.0}, np.ma.masked_array([1.0, 2.0], [0, 1])])
def test_what_is_no_sequence_of_margins_is_no_margin(margins):
    """Also where the bytes of a text, the keys of a dict or what is masked could be taken for numbers."""
    with pytest.raises((TypeError, ValueError), match="margins"):
        LASVM().learn_many([{"a": 1.0}, {"a": 2.0}], [True, False], margins=margins)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LASVM(window=timedelta(minutes=60), threshold="gmean"),
        lambda: LASVM(budget=20, on_budget="project", threshold="gmean"),
        lambda: LASVMG(window=70, budget=25, reservoir=30),
        lambda: OneVsRest(LASVM(window=timedelta(minutes=60))),
        lambda: OneVsOne(LASVM(budget=20)),
    ],
)
def test_a_batch_is_a_loop_where_members_leave(make):
    """With weights of 0, ids that come again, times out of order, and margins that are not all known."""
    rng, n = np.random.default_rng(1), 240
    several = hasattr(make(), "labels")
    xs, ys = (three if several else in_runs)(n)
    ids, w = np.arange(n), rng.choice([0.0, 0.5, 1.0, 2.0], n)
    ids[40::7] -= rng.integers(1, 30, len(ids[40::7]))
    t = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=int(m)) for m in np.arange(n) - rng.integers(0, 70, n)]
    f = rng.normal(size=n).tolist()
    if several:
        keys = "abc" if isinstance(make(), OneVsRest) else [("b", "c"), ("c", "b"), ("a", "c")]
        f = [dict.fromkeys(keys, value) for value in f]
    f = [value if known else None for value, known in zip(f, rng.random(n) < 0.7, strict=True)]
    loop, batch = make(), make()
    for i in range(n):
        loop.learn_one(xs[i], ys[i], w[i], int(ids[i]), t[i], f[i])
    for b in range(0, n, 50):
        own = slice(b, b + 50)
        batch.learn_many(xs[own], ys[own], w[own], ids[own], t[own], f[own])
    assert batch.digest() == loop.digest()


def test_an_unknown_margin_is_that_of_now():
    xs, ys = in_runs(120)
    mixed, plain = LASVM(), LASVM()
    mixed.learn_many(xs, ys, margins=[np.nan] * 60 + [None] * 60)
    plain.learn_many(xs, ys)
    assert mixed.digest() == plain.digest()


@pytest.mark.parametrize("margin", [np.inf, "2", True, np.nan])
def test_a_margin_that_is_no_number_is_refused(margin):
    model = LASVM()
    model.learn_many([{"a": 1.0}, {"a": 2.0}], [True, False])
    before = model.digest()
    with pytest.raises(ValueError, match="margin="):
        model.learn_one({"a": 1.0}, True, margin=margin)
    assert model.digest() == before
    with pytest.raises(ValueError, match="margins has 1 entries for 2 rows"):
        model.learn_many([{"a": 1.0}, {"a": 2.0}], [True, False], margins=[0.0])
    several = OneVsRest(LASVM())
    with pytest.raises(TypeError, match="must be a dict"):
        several.learn_one({"a": 1.0}, "x", margin=0.5)


@pytest.mark.long
def test_late_labels_keep_the_probabilities_honest():
    """The calibration error with labels 500 late, against that of probabilities fitted while learning."""
    xs, ys = in_runs(6000)
    honest = calibration_error([p[True] for p in play(LASVM(), xs, ys, late=500)[0]][1000:], ys[1000:])
    fooled = calibration_error([p[True] for p in play(LASVM(), xs, ys, late=500, knows=False)[0]][1000:], ys[1000:])
    assert honest < 0.06 < 0.1 < fooled
