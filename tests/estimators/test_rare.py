"""Learners with weights that follow the classes' counts, and with a learned threshold."""

import datetime

import naive
import numpy as np
import pytest
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, OneVsRest, SnapshotError
from streamsvm.core.saving.snapshot import pack, unpack
from streamsvm.estimators.learner.state import class_weight, slots_of
from streamsvm.online.outputs.threshold import BINS, HEAD, LARGEST_WEIGHT, PERIOD, SINCE, VALUE, WEIGHT
from streamsvm.validation import cross_validate
from tests.helpers.states import binaries_of

LEARNERS = [LASVM, LASVMG, LASVMNC, LASVMI, FullSVM]
RARE = {"pos_weight": "balanced", "threshold": "gmean"}
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def ring(n=1200, seed=0):
    """Two features; one in sixteen examples is positive and lies outside."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, np.hypot(*X.T) + 0.4 * rng.normal(size=n) > 2.5


def dicts(X):
    return [dict(enumerate(row)) for row in X.tolist()]


def looped(model, X, y, **given):
    """Learn one by one what `learn_many` takes at once."""
    for i, (x, label) in enumerate(zip(dicts(X), y.tolist(), strict=True)):
        model.learn_one(x, label, **{name: values[i] for name, values in given.items()})
    return model


def g_mean(predicted, y):
    return float(np.sqrt(predicted[y].mean() * (~predicted[~y]).mean()))


# ------------------------------------------------------------------------------------------------------------- weights


def test_the_boxes_are_those_of_the_class_ratios_so_far():
    X, y = ring(300)
    model = FullSVM(C=2.0, gamma=0.5, pos_weight="balanced")
    model.learn_many(X, y)
    s = state_of(model).expansion
    boxes = (s.hi - s.lo)[:300][np.argsort(s.ids[:300])]
    np.testing.assert_allclose(boxes, 2.0 * np.array(naive.balanced_weights(y.tolist())))
    assert model.class_counts == ((~y).sum(), y.sum())
    assert boxes[y].max() > 4.0
    assert set(boxes[20:][~y[20:]]) == {2.0}


@pytest.mark.long
@pytest.mark.parametrize("algorithm", LEARNERS)
@pytest.mark.parametrize("bounds", [{}, {"budget": 60}, {"window": 200}], ids=str)
def test_a_batch_is_a_loop(algorithm, bounds):
    X, y = ring(700)
    w = np.random.default_rng(1).choice([0.0, 1.0, 2.5], 700)
    ids = np.arange(700) % 650
    one = looped(algorithm(C=1.0, gamma=0.5, **RARE, **bounds), X, y, w=w.tolist(), id=ids.tolist())
    many = algorithm(C=1.0, gamma=0.5, **RARE, **bounds)
    for part in np.split(np.arange(700), [1, 300, 317]):
        many.learn_many(X[part], y[part], w=w[part], ids=ids[part])
    assert many.digest() == one.digest()
    assert one.class_counts == ((~y & (w > 0)).sum(), (y & (w > 0)).sum())


def test_examples_that_come_too_late_do_not_count():
    X, y = ring(200)
    late = np.arange(200) % 7 == 6
    times = [START + datetime.timedelta(minutes=t - 100 * bool(late[t])) for t in range(200)]
    model = LASVM(C=1.0, gamma=0.5, pos_weight="balanced", window=datetime.timedelta(minutes=50))
    one = looped(model.clone(), X, y, t=times)
    model.learn_many(X, y, t=times)
    assert model.digest() == one.digest()
    assert model.class_counts == ((~y & ~late).sum(), (y & ~late).sum())


def test_a_refused_example_does_not_count():
    X, y = ring(100)
    model = looped(LASVM(pos_weight="balanced"), X, y)
    before = model.class_counts
    for x, label, w in (({0: np.inf}, True, 1.0), ({0: 1.0}, "yes", 1.0), ({0: 1.0}, True, -1.0)):
        with pytest.raises(ValueError, match=r"must|label|finite|number"):
            model.learn_one(x, label, w)
    assert model.class_counts == before


def test_forgetting_and_correcting_do_not_change_the_counts():
    X, y = ring(300)
    model = FullSVM(C=2.0, gamma=0.5, pos_weight="balanced")
    model.learn_many(X, y)
    negatives, positives = counts = model.class_counts
    rare = int(np.flatnonzero(y)[-1])
    slot = slots_of(state_of(model), rare)
    before = float((state_of(model).expansion.hi - state_of(model).expansion.lo)[slot][0])
    assert model.relabel(rare, False) == 1
    s = state_of(model).expansion
    slot = slots_of(state_of(model), rare)
    assert (s.hi - s.lo)[slot][0] == pytest.approx(before / np.sqrt(negatives / positives))
    model.forget(range(20))
    assert model.class_counts == counts
    assert model.relabel(rare, True) == 1
    s = state_of(model).expansion
    assert (s.hi - s.lo)[slots_of(state_of(model), rare)][0] == pytest.approx(before)


def test_leaving_out_takes_the_weights_of_now():
    X, y = ring(300)
    model = LASVM(C=1.0, gamma=0.5, pos_weight="balanced")
    model.learn_many(X, y)
    rest, slots = model.leave_out(dicts(0.1 * X[:2]), [True, False], ids=[1001, 1002])
    assert (rest.s.y[slots] > 0).tolist() == [True, False]
    assert (rest.s.hi - rest.s.lo)[slots].tolist() in ([class_weight(state_of(model), True), 1.0], [0.0, 1.0])


def test_a_rare_class_is_found():
    X, y = ring(4000)
    found = {}
    for name, parameters in {"1": {}, "weights": {"pos_weight": "balanced"}, "both": RARE}.items():
        model = LASVM(C=1.0, gamma=0.5, **parameters)
        model.learn_many(X, y)
        X_new, y_new = ring(4000, seed=1)
        found[name] = g_mean(model.predict_many(X_new), y_new)
    assert found["1"] + 0.05 < found["weights"] < found["both"]


def test_cross_validation_takes_the_counts_of_all_examples():
    X, y = ring(400)
    balanced = cross_validate(LASVM(C=1.0, gamma=0.5, pos_weight="balanced"), X, y, k=3)
    given = cross_validate(LASVM(C=1.0, gamma=0.5, pos_weight=float(np.sqrt((~y).sum() / y.sum()))), X, y, k=3)
    np.testing.assert_array_equal(balanced.decision_values, given.decision_values)


# ---------------------------------------------------------------------------------------------------------- thresholds


@pytest.mark.parametrize("algorithm", LEARNERS)
@pytest.mark.parametrize("threshold", [0.4, "gmean"])
def test_predictions_compare_with_the_threshold(algorithm, threshold):
    X, y = ring(600)
    model = algorithm(C=1.0, gamma=0.5, threshold=threshold)
    model.learn_many(X, y)
    cut, f = model.decision_threshold, model.decision_function_many(X)
    assert cut == 0.4 if threshold == 0.4 else cut < 0.0
    np.testing.assert_array_equal(model.predict_many(X), f > cut)
    assert ((f > cut) != (f > 0.0)).any()
    for i in np.argsort(np.abs(f - cut))[:20]:
        assert model.predict_one(dict(enumerate(X[i]))) is bool(f[i] > cut)


def test_probabilities_and_members_do_not_depend_on_it():
    X, y = ring(600)
    models = [LASVM(C=1.0, gamma=0.5, threshold=threshold) for threshold in (0.0, 0.4, "gmean")]
    for model in models:
        model.learn_many(X, y)
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba_many(X), models[0].predict_proba_many(X))
        np.testing.assert_array_equal(model.dual_coef, models[0].dual_coef)


@pytest.mark.parametrize("threshold", ["g-mean", "", np.nan, np.inf, None, True])
def test_other_thresholds_are_refused(threshold):
    with pytest.raises(ValueError, match="threshold="):
        LASVM(threshold=threshold)


# ----------------------------------------------------------------------------------------------------------- snapshots


@pytest.mark.parametrize("algorithm", LEARNERS)
def test_a_restored_model_goes_on(algorithm):
    X, y = ring(900)
    whole = algorithm(C=1.0, gamma=0.5, **RARE)
    whole.learn_many(X[:450], y[:450])
    again = algorithm.from_bytes(whole.to_bytes())
    assert again.digest() == whole.digest()
    for model in (whole, again):
        model.learn_many(X[450:], y[450:])
    assert again.digest() == whole.digest()
    assert again.decision_threshold == whole.decision_threshold != 0.0
    assert again.class_counts == whole.class_counts


def test_the_digest_holds_the_counts_and_the_margins():
    X, y = ring(400)
    model = LASVM(C=1.0, gamma=0.5, **RARE)
    model.learn_many(X, y)
    before = model.digest()
    state_of(model).class_counts = (1, 1)
    assert model.digest() != before
    model = LASVM(C=1.0, gamma=0.5, **RARE)
    model.learn_many(X, y)
    state_of(model).calibration[-BINS] += 1.0
    assert model.digest() != before


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (VALUE, 3.0, "the learned threshold is 3.0"),
        (WEIGHT, 0.5, "the newest margin weighs 0.5"),
        (WEIGHT, 3 * LARGEST_WEIGHT, "the newest margin weighs"),
        (SINCE, PERIOD, "the threshold has the counts"),
        (SINCE, 0.5, "the threshold has the counts"),
        (HEAD, -1.0, "no weights and counts"),
        (HEAD + BINS, np.nan, "no weights and counts"),
    ],
)
def test_what_is_wrong_with_a_stored_threshold_is_named(place, value, problem):
    model = LASVM(threshold="gmean")
    meta, arrays = unpack(model.to_bytes(), "LASVM")
    arrays["threshold"] = arrays["threshold"].copy()
    arrays["threshold"][place] = value
    with pytest.raises(SnapshotError, match=problem):
        LASVM.from_bytes(pack("LASVM", meta, arrays))


@pytest.mark.parametrize("counts", [[1], [-1, 2], [1.0, 2], [40, 40], "12"])
def test_stored_counts_that_cannot_be_are_refused(counts):
    X, y = ring(50)
    model = LASVM()
    model.learn_many(X, y)
    meta, arrays = unpack(model.to_bytes(), "LASVM")
    with pytest.raises(SnapshotError, match="class_counts"):
        LASVM.from_bytes(pack("LASVM", meta | {"class_counts": counts}, arrays))


# ----------------------------------------------------------------------------------------------------- several classes


def test_each_class_of_several_has_its_own_counts():
    X, _ = ring(900)
    y = np.digitize(X[:, 0], [0.0, 1.5])
    known = OneVsRest(LASVM(C=1.0, gamma=0.5, pos_weight="balanced"), classes=[0, 1, 2])
    known.learn_many(X, y)
    for label, model in binaries_of(known).items():
        alone = LASVM(C=1.0, gamma=0.5, pos_weight="balanced", reservoir=0)
        alone.learn_many(X, y == label)
        assert model.class_counts == alone.class_counts == ((y != label).sum(), (y == label).sum())
        np.testing.assert_array_equal(model.dual_coef, alone.dual_coef)
    unknown = OneVsRest(LASVM(C=1.0, gamma=0.5, pos_weight="balanced"))
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        unknown.learn_one(x, label)
    assert {k: model.class_counts for k, model in unknown._models.items()} == {
        k: model.class_counts for k, model in known._models.items()
    }
    batch = OneVsRest(LASVM(C=1.0, gamma=0.5, pos_weight="balanced"))
    batch.learn_many(X, y)
    assert batch.digest() == unknown.digest()
    assert OneVsRest.from_bytes(batch.to_bytes()).digest() == batch.digest()
    assert batch.relabel(int(batch.support_ids[0]), "new") == 1


@pytest.mark.parametrize("threshold", [0.5, "gmean"])
def test_several_classes_have_no_threshold(threshold):
    with pytest.raises(ValueError, match=r"the most probable class is predicted"):
        OneVsRest(LASVM(threshold=threshold))
