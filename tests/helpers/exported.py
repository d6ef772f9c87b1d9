"""Models of all kinds that the tests of the exports ask for by name, and rows for them."""

import functools

import numpy as np
import scipy.sparse as sp

from streamsvm import LASVM, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsOne, OneVsRest, WarmupScaler
from streamsvm.conformal import ConformalClassifier
from streamsvm.sklearn_api import LASVMClassifier

SEED = 1  # of the rows that are asked about
NAMES = ("length", "width", "~flag", "weight", "height")


def table(n, seed, scale=1.0):
    """Rows of raw features whose sizes differ."""
    X = np.random.default_rng(seed).normal(size=(n, 5)) * [1.0, 20.0, 1.0, 0.1, 1.0] + [0.0, 300.0, 0.0, 0.0, -2.0]
    X[:, 2] = X[:, 2] > 0
    return X * scale


def dicts(X, names=NAMES):
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def without(rows):
    """The rows, every fifth of which lacks a feature."""
    return [{name: v for name, v in x.items() if i % 5 or name != NAMES[i % 4]} for i, x in enumerate(rows)]


def classes(X, n):
    value = X[:, 0] * (X[:, 1] - 300.0) / 20.0 + X[:, 2] + 3.0 * X[:, 3]
    return np.digitize(value, np.quantile(value, np.arange(1, n) / n))


def two(made, n=400, **parameters):
    model, X = made(**parameters), table(n, 0)
    model.learn_many(dicts(X), classes(X, 2) == 1)
    return model


def several(wrapper, learner, n=300):
    model, X = wrapper(learner), table(n, 0)
    model.learn_many(dicts(X), np.array(["bird", "cat", "dog", "eel"])[classes(X, 4)])
    return model


def sparse(**parameters):
    """A model of words: few of 300 features in each example."""
    X = sp.random(300, 300, 0.03, "csr", random_state=0)
    model = LASVM(**parameters)
    model.learn_many(X, np.asarray(X[:, :150].sum(axis=1) > X[:, 150:].sum(axis=1)).ravel())
    return model


def piped():
    model, X = WarmupScaler() | LASVM(gamma=0.3), table(400, 0)
    for x, y in zip(dicts(X), classes(X, 2) == 1, strict=True):
        model.learn_one(x, bool(y))
    return model


def far():
    """Its features are far from 0, so it keeps them shifted."""
    model, X = LASVM(gamma=0.2), table(400, 0)
    X = X / [1.0, 20.0, 1.0, 0.1, 1.0] + 1000.0
    model.learn_many(X, classes(table(400, 0), 2) == 1)
    return model


def deciding(learner, labels, n=600):
    """A model that decides.  Its labels are swapped halfway, so recent errors correct probabilities of two classes."""
    model, X = ConformalClassifier(learner, error=0.1), table(n, 0)
    own = classes(X, len(labels))
    y = np.array(labels)[np.where(np.arange(n) < n // 2, own, len(labels) - 1 - own)]
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
    return model


def fitted(n_classes, **parameters):
    X = table(300, 0)
    labels = np.array(["bird", "cat", "dog", "eel"])[classes(X, n_classes)]
    return LASVMClassifier(**parameters).fit(X / [1.0, 20.0, 1.0, 0.1, 1.0], labels)


MODELS = {
    "scaled": lambda: two(LASVM),
    "linear": lambda: two(LASVM, kernel="linear"),
    "poly": lambda: two(LASVM, kernel="poly", coef0=1.0),
    "sigmoid": lambda: two(LASVM, kernel="sigmoid", gamma=0.05, scaling="standard", coef0=-0.5),
    "threshold": lambda: two(LASVMNC, threshold="gmean"),
    "ramp": lambda: two(LASVMI),
    "full": lambda: two(FullSVM, budget=60),
    "tuned": lambda: two(AutoLASVM, 1100),
    "sparse": lambda: sparse(),
    "sparse number": lambda: sparse(gamma=0.5),
    "scaler before": piped,
    "far": far,
    "rest": lambda: several(OneVsRest, LASVM()),
    "rest linear": lambda: several(OneVsRest, LASVM(kernel="linear")),
    "rest tuned": lambda: several(OneVsRest, AutoLASVM(), 1100),
    "pairs": lambda: several(OneVsOne, LASVM()),
    "fitted": lambda: fitted(2),
    "fitted pairs": lambda: fitted(4),
}
DECIDERS = {
    "decides": lambda: deciding(LASVM(), [False, True]),
    "decides rest": lambda: deciding(OneVsRest(LASVM()), ["bird", "cat", "dog", "eel"]),
    "decides rest of two": lambda: deciding(OneVsRest(LASVM()), [1, 0]),
    "decides pairs": lambda: deciding(OneVsOne(LASVM()), ["bird", "cat", "dog"]),
}


@functools.cache
def model_of(name):
    return (MODELS | DECIDERS)[name]()


def rows_of(name, n):
    """Rows for the model of this name, as dicts and as an array in the order of its features."""
    if name.startswith("sparse"):
        X = sp.random(n, 300, 0.03, "csr", random_state=SEED).toarray()
        return dicts(X, range(300)), X
    X = table(n, SEED)
    if name in ("far", "fitted", "fitted pairs"):
        X = X / [1.0, 20.0, 1.0, 0.1, 1.0] + (1000.0 if name == "far" else 0.0)
        return dicts(X, range(5)), X
    return without(dicts(X)), X


def answers_of(name, n):
    """What the model itself says: decision values, probabilities and labels."""
    model, (rows, X) = model_of(name), rows_of(name, n)
    if name.startswith("fitted"):
        values, p = model.decision_function(X), model.predict_proba(X)
        return values.reshape(n, -1), p, model.predict(X).tolist()
    if name in DECIDERS:
        values = model.model.decision_function_many(rows)
        return values.reshape(n, -1), model.predict_proba_many(rows), model.predict_many(rows).tolist()
    if name == "scaler before":
        scaler, model = model.steps.values()
        rows = scaler.transform_many(rows)
    values, p = model.decision_function_many(rows), model.predict_proba_many(rows)
    return values.reshape(n, -1), p, model.predict_many(rows).tolist()


def engine_rounding(name):
    """How far the model's own decision values may be from exact ones: it computes in single precision.

    The machines of the linear kernel add up hundreds of large terms, whose sum is small.
    """
    return 1e-4 if "linear" in name else 1e-5


def assert_alike(found, expected, tolerance):
    """Compare values, probabilities and labels."""
    (values, p, labels), (right, right_p, right_labels) = found, expected
    size = max(1.0, np.abs(right).max())
    np.testing.assert_allclose(values, right, rtol=0, atol=tolerance * size)
    if p is not None:
        np.testing.assert_allclose(p, right_p, rtol=0, atol=20 * tolerance * size)
    assert labels == right_labels
    assert len(set(right_labels)) > 1
