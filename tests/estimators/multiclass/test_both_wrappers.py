"""What one-versus-rest and one-versus-one have in common."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from four_classes import COMMON, DATA, MODELS, together

from streamsvm import LASVM, AutoLASVM, FullSVM, OneVsOne, OneVsRest
from tests.helpers.river_checks import hold

both = pytest.mark.parametrize("wrapper", [OneVsRest, OneVsOne])
CASES = [(wrapper, name) for wrapper in MODELS for name in MODELS[wrapper]]
IDS = [f"{wrapper.__name__}-{name}" for wrapper, name in CASES]
every_model = pytest.mark.parametrize(("wrapper", "name"), CASES, ids=IDS)


@pytest.mark.long
@every_model
@pytest.mark.parametrize("cut", [1, 37, 257])
def test_batches_may_be_cut_anywhere(wrapper, name, cut):
    model, (X, y) = MODELS[wrapper][name], DATA["dense"]
    rng = np.random.default_rng(5)
    others = {"w": rng.uniform(0.0, 2.0, len(X)), "ids": rng.permutation(len(X)) // 2}
    pieces, whole = (together(wrapper, model, X, y, c, **others) for c in (cut, None))
    assert pieces.digest() == whole.digest()


@both
@pytest.mark.parametrize("name", ["LASVM", "LASVM, window", "G"])
def test_learn_many_is_a_loop_of_learn_one(wrapper, name):
    X, y = DATA["few features"]
    w = np.random.default_rng(6).uniform(0.0, 2.0, len(X))
    one, many = wrapper(COMMON[name]), wrapper(COMMON[name])
    for t in range(len(X)):
        one.learn_one(dict(enumerate(X[t])), y[t], w=w[t])
    many.learn_many(pd.DataFrame(X, columns=[*range(3)]), pd.Series(y), w)
    assert one.digest() == many.digest()
    values = many.decision_function_many(X[:1])[0]
    assert one.decision_function_one(dict(enumerate(X[0]))) == dict(zip(many.labels, values, strict=True))


@both
def test_a_row_that_is_refused_leaves_what_a_loop_leaves(wrapper):
    """Its kernel with itself is too large.  The rows before it are learned, as those of one class are by `LASVM`."""
    X, y = DATA["few features"]
    X = X[:60].copy()
    X[40] = 1e15
    one, many = (wrapper(LASVM(kernel="poly", scaling=None)) for _ in range(2))
    for t in range(40):
        one.learn_one(dict(enumerate(X[t])), y[t])
    with pytest.raises(ValueError, match="kernel of example 40 with itself"):
        many.learn_many(X, y[:60])
    assert many.n_seen == 40
    assert one.digest() == many.digest()


@pytest.mark.long
@every_model
@pytest.mark.parametrize("cut", [1, 100])
def test_classes_that_appear_do_so_however_batches_are_cut(wrapper, name, cut):
    model, (X, y) = MODELS[wrapper][name], DATA["dense"]
    order = np.argsort(y, kind="stable")[:400]
    X, y = np.vstack([X[order], X[:100]]), np.concatenate([y[order], y[:100]])
    whole, pieces = (together(wrapper, model, X, y, c, classes=None) for c in (None, cut))
    assert whole.labels == pieces.labels == list(dict.fromkeys(y))
    assert whole.digest() == pieces.digest()


@both
def test_before_there_is_a_class(wrapper):
    model = wrapper(LASVM())
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_many(np.ones((2, 1))).tolist() == [None, None]
    assert model.decision_function_many(np.ones((2, 1))).shape == (2, 0)
    model.learn_one({"a": 1.0}, 7)
    assert model.predict_one({"a": 1.0}) == 7
    assert model.predict_proba_one({"a": 1.0}) == {7: 1.0}
    assert model.n_members == 1


@pytest.mark.parametrize("model", [OneVsRest(LASVM()), OneVsOne(LASVM()), OneVsRest(AutoLASVM())], ids=repr)
def test_the_predicted_class_is_the_most_probable_one(model):
    """Of a record while the stream is learned, and of many; the classes overlap, and one is rare."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, (400, 9)).astype(float)
    score = X @ rng.normal(size=9) + 0.7 * rng.normal(size=400)
    y, said = np.digitize(score, np.quantile(score, [0.5, 0.8, 0.95])).tolist(), []
    for x, label in zip(X.tolist(), y, strict=True):
        example = dict(enumerate(x))
        p = model.predict_proba_one(example)
        said += [(model.predict_one(example), max(p, key=p.__getitem__, default=None))]
        model.learn_one(example, label)
    predicted, most_probable = zip(*said, strict=True)
    assert predicted == most_probable
    p = model.predict_proba_many(X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.array(model.labels)[p.argmax(axis=1)], model.predict_many(X))


@both
def test_a_correction_of_a_label_may_begin_a_class(wrapper):
    X, y = DATA["dense"]
    model = together(wrapper, LASVM(C=10.0, gamma=0.05), X, y)
    number = int(model.support_ids[3])
    assert model.relabel(number, "new") == 1
    assert model.labels[-1] == "new"
    assert model.decision_function_one(dict(enumerate(X[number])))["new"] > 0.0
    assert model.n_seen == len(X)
    with pytest.raises(ValueError, match="None and NaN"):
        model.relabel(number, None)
    with pytest.raises(ValueError, match="y has 2 labels for 1 rows"):
        model.relabel(number, ["red", "blue"])


@pytest.mark.long
@pytest.mark.parametrize(
    ("wrapper", "name", "data"),
    [*((*case, "dense") for case in CASES), *((OneVsRest, *case) for case in (("LASVM", "binary"), ("G", "text")))],
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_restored_model_continues_bit_for_bit(wrapper, name, data, tmp_path):
    X, y = DATA[data]
    model = wrapper(MODELS[wrapper][name], classes=["gold"])
    model.learn_many(X[:300], y[:300])
    model.save(tmp_path / "model")
    restored = [
        wrapper.load(tmp_path / "model"),
        wrapper.from_bytes(model.to_bytes(), cache_mb=0.01),
        pickle.loads(pickle.dumps(model)),  # noqa: S301 # our own
        copy.deepcopy(model),
    ]
    model.learn_many(X[300:], y[300:])
    model.finish()
    for other in restored:
        other.learn_many(X[300:], y[300:])
        other.finish()
        assert other.digest() == model.digest()
        assert other.labels == model.labels
        assert np.array_equal(other.decision_function_many(X), model.decision_function_many(X))
    assert restored[0]._get_params()["classes"] == ["gold"]
    assert restored[1].model.cache_mb == 0.01


@both
@pytest.mark.parametrize(
    ("y", "problem"),
    [
        (pd.DataFrame({"y": ["spam"]}), r"y has shape \(1, 1\); it must have one label for each of 1 rows"),
        (pl.DataFrame({"y": ["spam"]}), r"y has shape \(1, 1\)"),
        (np.array([["spam"]]), r"y has shape \(1, 1\)"),
        (sp.csr_matrix([[1]]), r"y has shape \(1, 1\)"),
        ({"u": "spam"}, "y is a dict; it must be a list, an array or a series"),
        ({"spam"}, "y is a set; it must be a list"),
        (pd.Series([pd.NA]), r"y\[0\] is <NA>; a label is anything hashable but None and NaN"),
        ([pd.NaT], r"y\[0\] is NaT"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_labels_are_one_for_each_row_in_order(wrapper, y, problem):
    model = wrapper(LASVM())
    with pytest.raises((TypeError, ValueError), match=problem):
        model.learn_many(np.ones((1, 1)), y)
    assert model.labels == []


@both
def test_labels_of_every_library(wrapper):
    for y in (
        pd.Series(["a", "b"]),
        pl.Series(["a", "b"]),
        pl.Series(["a", "b"]).to_arrow(),
        pd.Categorical(["a", "b"]),
    ):
        model = wrapper(LASVM())
        model.learn_many(np.eye(2), y)
        assert model.labels == ["a", "b"]
        assert {type(label) for label in model.labels} == {str}


@both
def test_a_missing_label(wrapper):
    with pytest.raises(ValueError, match="y is <NA>; a label is anything hashable but None and NaN, or pandas' NA"):
        wrapper(LASVM()).learn_one({"a": 1.0}, pd.NA)
    for classes in ({"a": 1, "b": 2}, pd.DataFrame({"class": ["a", "b"]})):
        with pytest.raises(TypeError, match="must be a list of labels"):
            wrapper(LASVM(), classes=classes)


@both
def test_parameters_are_checked(wrapper):
    with pytest.raises(TypeError, match=rf"^{wrapper.__name__}.__init__\(\) missing 1 required .*'model'"):
        wrapper()
    with pytest.raises(TypeError, match="must be one of LASVM, LASVMG"):
        wrapper("LASVM")
    with pytest.raises(TypeError, match="must be one of LASVM, LASVMG"):
        wrapper(OneVsRest(LASVM()))
    with pytest.raises(ValueError, match='on_budget="merge"'):
        wrapper(LASVM(budget=10, on_budget="merge"))
    with pytest.raises(ValueError, match="classes holds 'a' twice"):
        wrapper(LASVM(), classes=["a", "b", "a"])
    with pytest.raises(TypeError, match="classes='ab' must be a list"):
        wrapper(LASVM(), classes="ab")


@pytest.mark.long
@both
@pytest.mark.parametrize(
    ("model", "classes"), [(LASVM(), None), (FullSVM(C=10.0, cache_mb=4.0), [True])], ids=["LASVM", "FULL"]
)
def test_every_check_of_river_passes(wrapper, model, classes):
    hold(wrapper(model, classes=classes), 62)


NOTHING_LEFT_TO_COMPILE = """
import numpy as np
import streamsvm
from streamsvm.core.compiling import _jit

streamsvm.warmup(streamsvm.LASVM, classes=True)
asked, load = [], _jit._CodeCache.load_overload
_jit._CodeCache.load_overload = lambda of, *others: asked.append(of._py_func.__name__) or load(of, *others)
X = np.random.default_rng(1).normal(size=(300, 5))
for wrapper in (streamsvm.OneVsRest, streamsvm.OneVsOne):
    model = wrapper(streamsvm.LASVM())
    model.learn_many(X, np.arange(300) % 4)
    model.learn_one({0: 1.0, 3: 2.0}, 2)
    model.predict_one({0: 1.0})
    model.predict_proba_many(X)
print(asked)
"""


@pytest.mark.long
def test_warmup_compiles_what_a_trainer_of_classes_needs():
    done = subprocess.run([sys.executable, "-c", NOTHING_LEFT_TO_COMPILE], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
