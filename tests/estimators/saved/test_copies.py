"""Copies share nothing, and what joblib maps from a read-only file can still learn."""

import copy
import datetime

import joblib
import numpy as np
import pytest

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsOne, OneVsRest, WarmupScaler
from streamsvm.active import ActiveLearner
from streamsvm.batch import SmoothSVM, smo
from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.validation import StreamingKFold, StreamingLOO

LEARNERS = {
    "LASVM": LASVM(C=10.0),
    "window": LASVM(C=10.0, window=datetime.timedelta(seconds=100), budget=30),
    "G": LASVMG(C=10.0),
    "NC": LASVMNC(C=10.0),
    "I": LASVMI(C=10.0),
    "FULL": FullSVM(C=10.0),
    "classes": OneVsRest(LASVM(C=10.0)),
    "pairs": OneVsOne(LASVM(C=10.0)),
    "auto": AutoLASVM(),
    "classes, auto": OneVsRest(AutoLASVM()),
}
WRAPPERS = {
    "leave-one-out": StreamingLOO(LASVM(C=10.0), share=0.0),
    "folds": StreamingKFold(LASVM(C=10.0), share=0.0),
    "active": ActiveLearner(LASVM(C=10.0), seed=0),
    "scaler": WarmupScaler(warmup=1000),
}
START = datetime.datetime(2026, 1, 1)


def rows(begin, end):
    rng = np.random.default_rng(begin)
    X = rng.normal(size=(end - begin, 4))
    return X, X[:, 0] > 0


def teach(model, begin, end):
    X, y = rows(begin, end)
    if isinstance(model, WarmupScaler):
        for x in X:
            model.learn_one(dict(enumerate(x)))
    elif isinstance(model, ActiveLearner):
        for x, label in zip(X, y, strict=True):
            model.ask(dict(enumerate(x)))
            model.learn_one(dict(enumerate(x)), bool(label))
    elif isinstance(model, LASVM) and model.window:
        model.learn_many(X, y, t=[START + datetime.timedelta(seconds=t) for t in range(begin, end)])
    else:
        model.learn_many(X, y)


def state(model):
    """What is learned and remembered."""
    if isinstance(model, WarmupScaler):
        return model.to_bytes()
    if isinstance(model, ActiveLearner):
        scores = [list(way) for way in model._scores]
        return model.model.digest(), model.n_seen, model.n_asked, scores, model._rng.getstate()
    if isinstance(model, StreamingLOO | StreamingKFold):
        return model.model.digest(), model._memory.ids, model._since
    return model.digest()


@pytest.mark.parametrize("model", [*LEARNERS.values(), *WRAPPERS.values()], ids=[*LEARNERS, *WRAPPERS])
def test_what_a_copy_learns_is_not_learned_by_the_original(model):
    model = model.clone()
    teach(model, 0, 120)
    before, other = state(model), copy.copy(model)
    assert state(other) == before
    teach(other, 120, 300)
    assert state(model) == before
    teach(model, 120, 300)
    assert state(model) == state(other)


def mapped(model, tmp_path):
    path = tmp_path / f"{len(list(tmp_path.iterdir()))}.joblib"
    joblib.dump(model, path)
    return joblib.load(path, mmap_mode="r")


@pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)
def test_a_model_that_is_mapped_from_a_file_goes_on_learning(model, tmp_path):
    model = model.clone()
    teach(model, 0, 120)
    other = mapped(model, tmp_path)
    for m in (model, other):
        m.forget(m.support_ids[:2])
        teach(m, 120, 300)
        m.predict_one({0: 1.0, 1: 2.0})
        m.finish()
    assert other.digest() == model.digest()


def test_what_holds_a_model_that_is_mapped_from_a_file_goes_on(tmp_path):
    X, y = rows(0, 200)
    estimate = StreamingLOO(LASVM(C=10.0), share=0.0)
    estimate.learn_many(X, y)
    other = mapped(estimate, tmp_path)
    for wrapper in (estimate, other):
        teach(wrapper, 200, 300)
    assert other.estimate().error == estimate.estimate().error
    classifier = LASVMClassifier().partial_fit(X, y, classes=[False, True])
    other = mapped(classifier, tmp_path)
    for each in (classifier, other):
        each.partial_fit(*rows(200, 300))
    np.testing.assert_array_equal(other.decision_function(X), classifier.decision_function(X))


def test_batch_solvers_that_are_mapped_from_a_file(tmp_path):
    X, y = rows(0, 100)
    smooth = SmoothSVM(kernel="rbf").fit(X, y)
    other = mapped(smooth, tmp_path)
    np.testing.assert_array_equal(other.decision_function(X), smooth.decision_function(X))
    np.testing.assert_array_equal(other.fit(X, y).coef_, smooth.coef_)
    solution = smo.solve(X, y, C=10.0)
    store = mapped(solution.store, tmp_path)
    np.testing.assert_array_equal(smo.solve(store, y, C=10.0).dual_coef, smo.solve(solution.store, y, C=10.0).dual_coef)


def test_examples_that_are_mapped_from_a_file(tmp_path):
    X, y = rows(0, 300)
    expected, model = LASVM(), LASVM()
    expected.learn_many(X, y)
    model.learn_many(mapped(X, tmp_path), mapped(y, tmp_path))
    assert model.digest() == expected.digest()
