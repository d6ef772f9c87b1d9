"""A model warns of a stream from which it cannot learn, once, and is silent about others."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from streamsvm import LASVM, LASVMG, AutoLASVM, OneVsOne, OneVsRest
from streamsvm.estimators.learner import finishing
from streamsvm.estimators.learner.advice import StreamWarning
from streamsvm.sklearn_api import LASVMClassifier

NAMES = ["a", "b", "c"]


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] + 0.1 * rng.normal(size=n) > 0


def learn(model, X, y, batch):
    """Learn all at once, in batches, or one by one; return the warnings, each with how many had been learned."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_: found.append((model.n_seen, message))
        for begin in range(0, len(y), batch or 1):
            if batch:
                model.learn_many(X[begin : begin + batch], y[begin : begin + batch])
            else:
                model.learn_one(dict(enumerate(X[begin].tolist())), bool(y[begin]))
    assert all(isinstance(message, StreamWarning) for _, message in found)
    return [(n, str(message)) for n, message in found]


@pytest.mark.parametrize("algorithm", [LASVM, LASVMG])
def test_a_stream_that_is_fine_has_none(algorithm):
    X, y = stream(5000)
    X[:, 1] = X[:, 1] > 0.3  # 0 and 1
    X[:, 2] = 10.0
    X[:, 0] *= 3.0
    assert learn(algorithm(C=1.0, gamma=0.5), X, y, 700) == []


def test_features_of_different_scales():
    X, y = stream(2500)
    X *= [1.0, 2e-3, 500.0]
    ((n, text),) = learn(LASVM(C=1.0, gamma=0.5), X, y, 900)
    assert n == 1000
    assert text.startswith("the features have very different scales")
    assert "deviation of 1 is 0.0019, that of 2 5.2e+02" in text
    assert 'scaling="standard"' in text


@pytest.mark.parametrize(("scaling", "gamma"), [("standard", 0.5), ("auto", "scale")])
def test_a_model_that_scales_does_not_mind(scaling, gamma):
    X, y = stream(1200)
    assert learn(LASVM(C=1.0, gamma=gamma, scaling=scaling), X * [1.0, 2e-3, 500.0], y, 100) == []


def test_a_large_feature_that_stands_apart_is_named():
    """A stranger's own feature may begin with the sign of those that are never scaled."""
    X, y = stream(1200)
    for name, size, n_told in (("~x", 1e4, 1), ("~x", 2.0, 0), ("x", 1e4, 0)):
        model, names = LASVM(), ("a", "b", name)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model.learn_many([dict(zip(names, row, strict=True)) for row in (X * [1.0, 1.0, size]).tolist()], y)
        assert len(told) == n_told
        assert all("'~x' is cut to -3..3" in str(w.message) for w in told)


def test_features_that_are_0_or_1_may_be_rare():
    X, y = stream(1500)
    X[:, 1] = np.arange(1500) % 500 == 0
    X[:, 2] *= 30.0
    assert learn(LASVM(C=1.0, gamma=0.5), X, y, 100) == []


def test_features_that_are_rare_may_be_small():
    X, y = stream(1500)
    X[np.arange(1500) % 3 > 0, 1] = 0.0
    X[:, 1] *= 1e-3
    assert learn(LASVM(C=1.0, gamma=0.5), X, y, 100) == []
    X[:, 1] += 1e-3 * X[:, 0]
    assert len(learn(LASVM(C=1.0, gamma=0.5), X, y, 100)) == 1


@pytest.mark.parametrize("label", [False, True])
def test_one_class(label):
    X, _ = stream(2100)
    ((n, text),) = learn(LASVM(), X, np.full(2100, label), 450)
    assert n == 1000
    assert text.startswith(f"the first 1000 examples have the label {label} only")


def test_a_class_that_comes_in_time():
    X, _ = stream(1500)
    assert learn(LASVM(), X, np.arange(1500) >= 999, 300) == []


def noise(n):
    """Labels that features do not tell: one of ten is positive."""
    return np.random.default_rng(5).normal(size=(n, 3)), np.arange(n) % 10 == 3


def test_equal_predictions():
    X, y = noise(5000)
    ((n, text),) = learn(LASVM(C=0.01, gamma=1e-4), X, y, 830)
    assert 2000 <= n <= 4000
    assert n % 1000 == 0
    assert "predictions were all False, although" in text
    assert 'pos_weight="balanced"' in text


def test_equal_predictions_of_one_class():
    X, _ = noise(4500)
    y = np.arange(4500) < 5
    assert learn(LASVM(), X, y, 500) == []


@pytest.mark.parametrize(
    ("C", "budget", "on_budget", "wrong", "tells"),
    [
        (10.0, 50, "merge", 0.2, True),
        (10.0, 50, "remove", 0.2, False),
        (1.0, 50, "merge", 0.2, False),
        (10.0, 50, "merge", 0.0, False),
        (10.0, None, "merge", 0.2, False),
    ],
)
def test_a_budget_that_wrong_labels_fill(C, budget, on_budget, wrong, tells):
    X, y = stream(4000)
    y = y ^ (np.random.default_rng(1).random(len(y)) < wrong)
    found = learn(LASVM(C, budget=budget, on_budget=on_budget), X, y, 900)
    assert len(found) == tells
    if tells:
        assert "budget=50 has long been full" in found[0][1]
        assert "use C=1 or less" in found[0][1]


def test_a_full_budget_may_drift():
    X, y = stream(7000)
    y ^= np.arange(7000) >= 2900
    model = LASVM(30.0, budget=40, on_budget="merge")  # at one look, many labels are not as predicted
    assert learn(model, X, y, 500) == []
    assert model.n_members > 35


@pytest.mark.long
def test_a_batch_warns_as_a_loop_does():
    X, y = noise(4100)
    X *= [1.0, 1e-3, 500.0]
    found = [learn(LASVM(C=0.01, gamma=1e-9), X, y, batch) for batch in (None, 640, 4100)]
    assert len(found[0]) == 2
    assert found[0] == found[1]
    assert [text for _, text in found[2]] == [text for _, text in found[0]]


def test_a_warning_that_is_an_error_leaves_a_whole_model():
    X, _ = stream(1300)
    model = LASVM()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StreamWarning):
            model.learn_many(X, np.ones(1300, bool))
    assert model.n_seen == 1000
    model.learn_many(X, np.zeros(1300, bool))
    whole = LASVM()
    learn(whole, X[:1000], np.ones(1000, bool), 1000)
    whole.learn_many(X, np.zeros(1300, bool))
    assert model.digest() == whole.digest()


def test_a_restored_model_looks_when_it_would_have():
    X, y = noise(4500)
    model = LASVM(C=0.01, gamma=1e-4)
    learn(model, X[:950], y[:950], 950)
    again = LASVM.from_bytes(model.to_bytes())
    assert [n for n, _ in learn(again, X[950:], y[950:], 50)] == [3000]


def test_several_classes_and_training_sets_have_none():
    X, y = noise(5000)
    X *= [1.0, 1e-3, 500.0]
    model = OneVsRest(LASVM(C=0.01, gamma=1e-9), classes=[False, True, "never"])
    model.learn_many(X[:2500], y[:2500])
    again = OneVsRest.from_bytes(model.to_bytes())
    again.learn_many(X[2500:], y[2500:])
    LASVMClassifier(C=0.01, gamma=1e-9, max_iter=10).fit(X, y)


def named(X):
    """Rows as dicts of the features other than 0."""
    return [{d: v for d, v in enumerate(x) if v} for x in X.tolist()]


@pytest.mark.parametrize("as_given", [sp.csr_matrix, named])
def test_a_look_within_a_block_leaves_the_block_its_new_features(as_given):
    X = np.random.default_rng(0).normal(size=(1100, 4))
    X[:1020, 2] = X[1024:, 2] = X[:1060, 3] = 0.0  # Feature 2 occurs after the look, and only in its block.
    y = X[:, 0] > 0
    block, parts = LASVM(gamma=0.5), LASVM(gamma=0.5)
    block.learn_many(as_given(X), y)
    for own in (slice(0, 1000), slice(1000, 1100)):
        parts.learn_many(as_given(X[own]), y[own])
    assert block.feature_names == parts.feature_names == [0, 1, 2, 3]
    assert block.digest() == parts.digest()


# ------------------------------------------------------------------------------------------- features that are missing

LACKING = "an example lacks the feature 'kelvin', which then counts as 0, far from its values, such as "
LEARNERS = {
    "LASVM": LASVM(),
    "G": LASVMG(),
    "auto": AutoLASVM(),
    "classes": OneVsRest(LASVM()),
    "classes, auto": OneVsRest(AutoLASVM()),
    "pairs": OneVsOne(LASVM()),
}


def records(n, share, seed=0):
    """Records of which a share lacks a feature that is far from 0, and others lack one that is not."""
    rng = np.random.default_rng(seed)
    X = [{"kelvin": 290 + 10 * rng.normal(), "wind": rng.normal(), "rain": rng.normal()} for _ in range(n)]
    y = [x["kelvin"] + 10 * x["wind"] > 290 for x in X]
    for x in X[1:]:
        x.pop("kelvin" if rng.random() < share else "rain" if rng.random() < 0.2 else None, None)
    return X, y


def told(step):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        step()
    assert all(warning.category is StreamWarning for warning in found)
    return [str(warning.message) for warning in found]


@pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)
@pytest.mark.parametrize("share", [0.03, 0.4, 0.7])
def test_a_feature_far_from_0_that_most_examples_lack_is_told_once(model, share):
    """Others are guessed."""
    X, y = records(200, share)

    def one_by_one():
        learner = model.clone()
        for x, label in zip(X, y, strict=True):
            learner.learn_one(x, label)

    for step in (one_by_one, lambda: model.clone().learn_many(X, y)):
        texts = told(step)
        assert len(texts) == (share > 0.5)
        assert all(text.startswith(LACKING) for text in texts)


@pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)
def test_a_feature_that_only_the_prediction_lacks(model):
    X, y = records(100, 0.0)
    model = model.clone()
    assert told(lambda: model.learn_many(X, y)) == []
    assert told(lambda: model.predict_one({"kelvin": 280.0})) == []
    digest = model.digest()
    lacking = [{"wind": 1.0, "rain": 0.0}, {"wind": 1.0, "kelvin": 280.0}]
    means = {name: float(np.mean([x[name] for x in X[1:] if name in x])) for name in ("kelvin", "rain")}
    whole = [means | x for x in lacking]
    np.testing.assert_allclose(model.decision_function_many(lacking), model.decision_function_many(whole), atol=0.03)
    one, frame = model.decision_function_one(lacking[0]), model.decision_function_many(pd.DataFrame(lacking[:1]))
    many = model.decision_function_many(lacking)
    np.testing.assert_allclose(np.ravel(list(one.values()) if isinstance(one, dict) else one), np.ravel(many[0]))
    np.testing.assert_allclose(np.ravel(frame), np.ravel(many[0]))
    assert model.digest() == digest


def test_words_that_a_text_lacks_are_not_missing():
    rng = np.random.default_rng(0)
    texts = [{f"w{d}": 3.0 + rng.integers(2) for d in rng.integers(0, 40, 6)} for _ in range(200)]
    matrix = sp.csr_matrix(np.where(rng.random((200, 5)) < 0.8, 290 + rng.normal(size=(200, 5)), 0.0))
    baskets = [{f"w{d}": 1.0 + rng.poisson(1.0) for d in range(8) if rng.random() < 0.6} for _ in range(200)]
    y = rng.random(200) < 0.5
    for X in (texts, matrix, baskets, pd.DataFrame.sparse.from_spmatrix(matrix)):
        assert told(lambda X=X: LASVM().learn_many(X, y)) == []
    assert told(lambda: LASVM(gamma=0.5).learn_many(records(200, 0.4)[0], y)) == []  # It does not scale.


# ------------------------------------------------------------------------------------------------- whose line is named


def one_class(n):
    model = LASVM(gamma=0.5)
    model.learn_many(stream(n)[0], np.ones(n, bool))
    return model


def with_kelvin(model):
    """One that has seen it in few examples, and has not told so."""
    X, y = records(200, 0.7)
    model.learn_many(X, y)
    return type(model).from_bytes(model.to_bytes())


X, Y = stream(300)
WITHOUT = {"wind": 1.0, "rain": 1.0}
LINES = {
    "one class, one": (lambda: one_class(999), lambda model: model.learn_one({0: 1.0}, True)),
    "one class, many": (lambda: one_class(900), lambda model: model.learn_many(X, np.ones(300, bool))),
    "lacking, predict": (lambda: with_kelvin(LASVM()), lambda model: model.predict_one(WITHOUT)),
    "lacking, learn": (lambda: with_kelvin(LASVM()), lambda model: model.learn_one(WITHOUT, True)),
    "lacking, many": (lambda: with_kelvin(LASVM()), lambda model: model.predict_many([WITHOUT])),
    "lacking, classes": (lambda: with_kelvin(OneVsRest(LASVM())), lambda model: model.predict_one(WITHOUT)),
    "lacking, auto": (lambda: with_kelvin(AutoLASVM()), lambda model: model.learn_one(WITHOUT, True)),
    "tolerance": (lambda: LASVM(gamma=0.5), lambda model: model.finish(tol=1e-300)),
    "tolerance, sparse": (lambda: LASVM(gamma=0.5), lambda model: model.sparsify(tol=1e-300)),
    "tolerance, classes": (lambda: OneVsOne(LASVM(gamma=0.5)), lambda model: model.finish(tol=1e-300)),
    "reservoir": (lambda: LASVM(gamma=0.5), lambda model: model.finish()),
}


@pytest.mark.parametrize("name", LINES)
def test_a_warning_names_the_line_of_the_user(name, monkeypatch):
    """However many functions of the package lie in between."""
    make, call = LINES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = make()
    if model.n_seen == 0:
        model.learn_many(X, Y)
    if name == "reservoir":
        monkeypatch.setattr(finishing, "ROUNDS", 0)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call(model)
    kind = RuntimeWarning if name.startswith("tolerance") else StreamWarning
    assert {(warning.category, warning.filename, warning.lineno) for warning in found} == {
        (kind, __file__, call.__code__.co_firstlineno)
    }
