"""Named features: every kind of batch says the same, order does not matter, and a bad value is named."""

import random
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from river import feature_extraction, preprocessing
from states import state_of

from streamsvm import LASVM, AutoLASVM, FullSVM, OneVsOne, OneVsRest
from streamsvm.core.expansion import is_binary
from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.estimators.inputs.features import FeatureTable, TooManyFeatures

NAN, INF = float("nan"), float("inf")


def problem(n=300, d=6, binary=False, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, d)) < 0.4).astype(float) if binary else rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    return X, X @ rng.normal(size=d) + 0.2 * rng.normal(size=n) > 0


def dicts(X, zeros=True):
    return [{d: v for d, v in enumerate(x) if zeros or v != 0} for x in X.tolist()]


def learned(X, y, **parameters):
    model = LASVM(**{"C": 10.0, "gamma": 0.3} | parameters)
    model.learn_many(X, y)
    return model


# ------------------------------------------------------------------------------------------------ one meaning, any form

FORMS = {
    "float32 array": np.float32,
    "column-major array": np.asfortranarray,
    "every second row of an array": lambda X: np.repeat(X, 2, axis=0)[::2],
    "csr matrix": sp.csr_matrix,
    "csr array": sp.csr_array,
    "csc matrix": sp.csc_matrix,
    "coo matrix": sp.coo_matrix,
    "csr matrix with zeros": lambda X: sp.csr_matrix((X.ravel(), np.tile(range(6), len(X)), range(0, X.size + 1, 6))),
    "dicts": dicts,
    "dicts without zeros": lambda X: dicts(X, zeros=False),
    "dicts, turned around": lambda X: [dict(reversed(x.items())) for x in dicts(X)],
    "pandas frame": pd.DataFrame,
    "pandas frame, columns turned around": lambda X: pd.DataFrame(X)[[5, 4, 3, 2, 1, 0]],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("binary", [False, True])
def test_every_form_of_a_batch_is_learned_and_predicted_alike(form, binary):
    X, y = problem(binary=binary)
    X = np.float64(np.float32(X))
    X[0] = 1.0  # so that all features are met at once, and get the same columns
    expected, model = learned(X, y), learned(FORMS[form](X), y)
    assert is_binary(state_of(model).expansion) == binary
    assert model.digest() == expected.digest()
    np.testing.assert_array_equal(model.decision_function_many(FORMS[form](X)), expected.decision_function_many(X))
    assert [model.decision_function_one(x) for x in dicts(X[:50])] == expected.decision_function_many(X[:50]).tolist()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.int64, np.float32])
def test_numbers_of_every_type_are_taken(dtype):
    X, y = problem(binary=True)
    X[0] = 1.0
    expected = learned(X, y).digest()
    assert learned(X.astype(dtype), y).digest() == expected
    sparse = learned(sp.csr_matrix(X.astype(dtype)), y)  # its columns come in the order of occurrence
    assert sparse.decision_function_many(X) == pytest.approx(learned(X, y).decision_function_many(X), abs=1e-4)
    assert learned([{d: dtype(v) for d, v in enumerate(x)} for x in X], y).digest() == expected
    assert learned(pd.DataFrame(X.astype(dtype)), y).digest() == expected


def test_frames_of_pandas_and_polars_are_learned_alike():
    X, y = problem()
    names = [f"sensor {d}" for d in range(6)]
    with_pandas = learned(pd.DataFrame(X, columns=names), pd.Series(y))
    with_polars = learned(pl.DataFrame(X, schema=names), pl.Series(y))
    with_dicts = learned([dict(zip(names, x, strict=True)) for x in X], y)
    assert with_pandas.digest() == with_polars.digest() == with_dicts.digest()


def test_a_frame_may_mix_numbers_and_booleans():
    frame = pd.DataFrame({"a": [0.5, 1.5], "b": [True, False], "c": [1, 2]})
    rows = [{"a": 0.5, "b": True, "c": 1}, {"a": 1.5, "b": False, "c": 2}]
    assert learned(frame, [True, False]).digest() == learned(rows, [True, False]).digest()


def test_numbers_beyond_numpy_are_taken():
    exact, rounded = {"a": Decimal("0.5"), "b": Fraction(1, 4), "c": 2**50}, {"a": 0.5, "b": 0.25, "c": 2.0**50}
    assert learned([exact, {}], [True, False]).digest() == learned([rounded, {}], [True, False]).digest()


def test_duplicate_entries_of_a_sparse_matrix_add_up():
    parts = sp.csr_matrix((np.array([1.0, 2.0, 1.0]), np.array([0, 0, 1]), np.array([0, 2, 3])), shape=(2, 2))
    assert learned(parts, [True, False]).digest() == learned(parts.toarray(), [True, False]).digest()


@pytest.mark.parametrize("cut", [1, 7, 50])
def test_how_sparse_batches_are_cut_does_not_matter(cut):
    """Although features appear one after the other: they get their columns example by example."""
    X = sp.random(200, 60, density=0.1, random_state=0, format="csr")
    y = np.asarray(X.sum(axis=1)).ravel() > 3
    model, whole = LASVM(), LASVM()
    for begin in range(0, 200, cut):
        model.learn_many(X[begin : begin + cut], y[begin : begin + cut])
    whole.learn_many(X, y)
    assert model.digest() == whole.digest()


# ------------------------------------------------------------------------------------------------- features come and go


@settings(max_examples=40)
@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from([0.0, 1.0, -0.5, 2.0]), max_size=8), max_size=30
    ),
    st.integers(0, 10**6),
)
def test_the_order_and_presence_of_features_do_not_matter(rows, seed):
    """A missing feature is 0, and a predicted example says nothing about the next one that is learned."""
    rng, one, other = random.Random(seed), LASVM(), LASVM()
    for t, x in enumerate(rows):
        shuffled = dict(rng.sample(list(x.items()), len(x)))
        other.predict_one(rng.choice(rows))
        one.learn_one(x, t % 2 == 0)
        other.learn_one(shuffled, t % 2 == 0)
        assert one.decision_function_one(x) == other.decision_function_one(shuffled | {"never seen": 0.0})
    assert one.digest() == other.digest()


def test_a_feature_first_met_in_prediction_is_learned():
    x = {"a": 1.0, "b": 2.0}
    model, expected = LASVM(), LASVM()
    for label in (True, False):
        model.predict_one(x)
        model.learn_one(x, label)
        expected.learn_one(x, label)
        x = {"c": 3.0}
    assert model.digest() == expected.digest()
    assert set(model.feature_names) == {"a", "b", "c"}


def test_an_unknown_feature_counts_as_distance():
    model = LASVM(C=10.0)
    model.learn_one({"a": 1.0}, True)
    model.learn_one({"a": -1.0}, False)
    known, unknown = model.decision_function_one({"a": 1.0}), model.decision_function_one({"a": 1.0, "b": 1.0})
    b = model.bias
    assert unknown - b == pytest.approx((known - b) * np.exp(-1))
    assert model.decision_function_many([{"a": 1.0, "b": 1.0}])[0] == unknown
    assert "b" not in model.feature_names


def test_new_columns_are_given_in_the_order_of_names():
    table = FeatureTable()
    table.add(["b", 10, 2])
    table.add(["b", "a"])
    table.n_kept = len(table)
    assert table.names() == [2, 10, "b", "a"]
    assert list(table.lookup(("a", "?", 2))) == [3, -1, 0]
    assert FeatureTable.of_names(table.names()).columns == table.columns


def test_only_plain_names_can_be_saved():
    model = LASVM()
    model.learn_one({("a", 1): 1.0}, True)
    with pytest.raises(SnapshotError, match=r"the feature name \('a', 1\) is a tuple"):
        model.to_bytes()


@pytest.mark.parametrize("names", [["a", "b"], [1, 2], [0.5, 1.5], [True, False]])
def test_plain_names_survive_saving(names):
    model = LASVM()
    model.learn_one({names[0]: 1.0}, True)
    model.learn_one({names[1]: 1.0}, False)
    back = LASVM.from_bytes(model.to_bytes())
    assert back.decision_function_one({names[0]: 2.0}) == model.decision_function_one({names[0]: 2.0})


# ------------------------------------------------------------------------------------------------------ what is refused

BAD_VALUES = [
    (NAN, ValueError),
    (INF, ValueError),
    (-INF, ValueError),
    (1e30, ValueError),
    (1e200, ValueError),
    (10**400, ValueError),
    (None, TypeError),
    ("3.5", TypeError),
    (b"3", TypeError),
    (1j, TypeError),
    ([1.0], TypeError),
    (np.ones(3), TypeError),
    (np.datetime64("2020-01-01"), TypeError),
    ({}, TypeError),
]


@pytest.mark.parametrize(("value", "error"), BAD_VALUES, ids=lambda v: getattr(v, "__name__", repr(v)[:30]))
@pytest.mark.parametrize("method", ["learn_one", "learn_many", "predict_one", "predict_many"])
@pytest.mark.parametrize("with_others", [True, False])
def test_a_bad_value_in_a_dict_is_named_and_changes_nothing(method, value, error, with_others):
    model = learned(*problem(50, 3))
    digest = model.digest()
    x = {0: 1.0, "wind": value, 2: 0.5} if with_others else {"wind": value}
    batch = [{"met before": 1.0}, x]
    given = batch if method.endswith("many") else x
    labels = {"learn_one": (True,), "learn_many": ([True, False],)}.get(method, ())
    with pytest.raises(error, match="'wind'"):
        getattr(model, method)(given, *labels)
    assert model.digest() == digest
    model.learn_one({0: 1.0, "wind": 3.5}, True)
    assert np.isfinite(model.decision_function_one({"wind": 1.0}))


@pytest.mark.parametrize("value", [NAN, INF, 1e30])
@pytest.mark.parametrize("method", ["learn_many", "predict_many"])
def test_a_bad_value_in_a_batch_is_named_with_its_row(method, value):
    X, y = problem(50, 3)
    X[30, 2] = value
    frame = pd.DataFrame(X, columns=["a", "b", "wind"])
    model = learned(*problem(50, 3))
    digest = model.digest()
    arguments = (y,) if method == "learn_many" else ()
    for batch, name in ((X, "2"), (sp.csr_matrix(X), "2"), (dicts(X), "2"), (frame, "'wind'")):
        with pytest.raises(ValueError, match=rf"feature {name} in row 30 is .*{re.escape(repr(value))}"):
            getattr(model, method)(batch, *arguments)
        assert model.digest() == digest


def test_features_of_a_refused_batch_do_no_harm():
    """They must not point beyond the memory that there is for features."""
    X = np.ones((10, 5000))
    X[3, 4] = NAN
    model = LASVM()
    with pytest.raises(ValueError, match="feature 4 in row 3"):
        model.learn_many(X, np.arange(10) % 2 == 0)
    assert model.feature_names == []
    assert np.isfinite(model.decision_function_many(np.ones((2, 5000)))).all()
    X[3, 4] = 1.0
    model.learn_many(X, np.arange(10) % 2 == 0)
    assert model.n_members > 0


def test_large_values_are_refused_or_taken_alike_in_every_form():
    for value in (1e10, 5e17, 5e18, 1e19, 1e30):
        outcomes = set()
        for batch in (np.array([[value]]), sp.csr_matrix([[value]]), [{0: value}], pd.DataFrame({0: [value]})):
            try:
                outcomes.add(learned(batch, [True]).n_members)
            except ValueError:
                outcomes.add("refused")
        try:
            LASVM().learn_one({0: value}, True)
            outcomes.add(1)
        except ValueError:
            outcomes.add("refused")
        assert len(outcomes) == 1, value


@pytest.mark.parametrize("X", [np.ones(3), np.ones((2, 3, 4))], ids=["1-D", "3-D"])
@pytest.mark.parametrize("method", ["learn_many", "predict_many"])
def test_an_array_that_is_no_batch_is_refused_with_its_shape(method, X):
    arguments = (np.ones(X.shape[:1], bool),) if method == "learn_many" else ()
    with pytest.raises(ValueError, match=re.escape(f"X has shape {X.shape}")):
        getattr(LASVM(), method)(X, *arguments)


@pytest.mark.parametrize("X", [[[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], ["a", "b"]], ids=["lists", "numbers", "strings"])
def test_a_list_of_something_else_than_dicts_is_refused(X):
    with pytest.raises(TypeError, match=r"X.*dict"):
        LASVM().learn_many(X, [True, False])


def test_columns_that_are_no_numbers_are_named():
    frame = pd.DataFrame({"a": [1.0, 2.0], "town": ["Oslo", "Rome"]})
    with pytest.raises(TypeError, match="column 'town'"):
        LASVM().learn_many(frame, [True, False])
    with pytest.raises(TypeError, match="X has dtype <U4"):
        LASVM().learn_many(frame[["town"]].to_numpy(str), [True, False])


@pytest.mark.parametrize("bad", [INF, 1e19, "high", [1.0], {}])
def test_a_batch_is_validated_as_it_would_be_learned(bad):
    """Rows with the same names are looked at together, others one by one; the verdict is the same."""
    rows = [{"a": float(i), "b": 1} for i in range(5)]
    for spoiled in ([*rows, {"a": 1.0, "b": bad}], [*rows, {"b": bad}]):
        model = LASVM()
        model.validate_many(rows)
        with pytest.raises((ValueError, TypeError)) as validated:
            model.validate_many(spoiled)
        with pytest.raises((ValueError, TypeError)) as learned:
            model.learn_many(spoiled, [True, False] * 3)
        assert str(validated.value) == str(learned.value)
        assert model.n_members == 0


# ------------------------------------------------------------------------------------------------ order and number


def test_numbers_get_columns_by_size():
    names = ["b", 10, 2, "a", np.int64(3), 0.5, True, "7", "-7", 7]
    for order in (names, names[::-1]):
        table = FeatureTable()
        table.add(order)
        assert list(map(str, table.columns)) == ["0.5", "True", "2", "3", "7", "7", "10", "-7", "a", "b"]
        assert table.columns[7] < table.columns["7"]


def test_the_numbers_of_a_list_have_their_columns_in_the_order_of_the_list():
    table, names = FeatureTable(), [str(i) for i in range(1000)]
    table.add(names)
    assert list(table.columns) == names


@pytest.mark.parametrize("names", [[f"f{i}" for i in range(5)], list(range(5))])
def test_a_model_has_at_most_so_many_features(names):
    model = LASVM()
    model.max_features = 4
    model.learn_one(dict.fromkeys(names[:3], 1.0), True)
    digest, x = model.digest(), dict.fromkeys(names, 1.0)
    for refuse in (
        lambda: model.validate_one(x),
        lambda: model.learn_one(x, True),
        lambda: model.validate_many([x]),
        lambda: model.learn_many([x], [True]),
        lambda: model.validate_many([dict.fromkeys(names[:4], 1.0), {names[4]: 1.0}]),
    ):
        with pytest.raises(TooManyFeatures, match=r"[12] new features"):
            refuse()
        assert model.digest() == digest
        assert model.feature_names == names[:3]
    model.learn_one(dict.fromkeys(names[:4], 1.0), False)
    assert model.predict_one(x) in (True, False)


def test_the_limit_is_far_and_holds_for_all_classes():
    assert LASVM().max_features == 2**20
    model = OneVsRest(LASVM())
    model.max_features = 2
    model.learn_one({"a": 1.0, "b": 1.0}, "x")
    with pytest.raises(TooManyFeatures, match=r"1 new features, such as 'ccc.*\.\.\., beside 2 known ones"):
        model.learn_one({"c" * 1000: 1.0}, "y")
    assert model.labels == ["x"]
    with pytest.raises(ValueError, match="max_features=0 must be a whole number, at least 1"):
        model.max_features = 0


# ------------------------------------------------------------------------------------- names that no feature has

LEARNERS = {
    "LASVM": LASVM(),
    "unscaled": LASVM(gamma=0.5),
    "FULL": FullSVM(),
    "auto": AutoLASVM(),
    "classes": OneVsRest(LASVM()),
    "classes, auto": OneVsRest(AutoLASVM()),
    "pairs": OneVsOne(LASVM()),
}
every_learner = pytest.mark.parametrize("model", LEARNERS.values(), ids=LEARNERS)


@every_learner
def test_an_array_after_named_features_is_refused(model):
    X, y = problem(60, 2)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = model.clone()
    model.learn_many(frame.to_dict("records"), y)
    digest = model.digest()
    for other in (X, sp.csr_matrix(X), pd.DataFrame(X), pl.DataFrame(X, schema=["c", "d"])):
        for method in ("predict_many", "predict_proba_many", "decision_function_many"):
            if not sp.issparse(other) or method == "predict_many":
                with pytest.raises(
                    ValueError, match=r"columns of X are .*\(2 in all\), and the model knows none of them"
                ):
                    getattr(model, method)(other)
    for other in (X, sp.csr_matrix(X), pd.DataFrame(X)):
        with pytest.raises(ValueError, match=r"columns of X are 0, 1 .*, but 'a', 'b' \(2 in all\); give a dataframe"):
            model.learn_many(other, y)
    assert model.digest() == digest
    model.predict_many(pd.DataFrame(X, columns=["a", "new"]))
    model.learn_many(pd.DataFrame(X, columns=["new", "newer"]), y)  # Features may change.
    model.predict_many(frame)


@every_learner
def test_named_columns_after_an_array_are_refused(model):
    X, y = problem(60, 2)
    model = model.clone()
    model.learn_many(X, y)
    frame = pd.DataFrame(X, columns=["a", "b"])
    for attempt in (lambda: model.predict_many(frame), lambda: model.learn_many(frame, y)):
        with pytest.raises(ValueError, match=r"columns of X are 'a', 'b' .* knows none of them, but 0, 1 \(2 in all\)"):
            attempt()
    assert model.feature_names == [0, 1]


@every_learner
def test_lazy_frames_and_record_batches_are_refused(model):
    model = model.clone()
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    for X in (frame.lazy(), frame.to_arrow().to_batches()[0]):
        for attempt in (lambda X=X: model.learn_many(X, [True, False]), lambda X=X: model.predict_many(X)):
            with pytest.raises(
                TypeError, match=rf"X is a {type(X).__name__}; a batch is a dataframe \(of a lazy one call"
            ):
                attempt()


# ------------------------------------------------------------------------------------------------------ sparse columns


@every_learner
def test_sparse_columns_of_pandas(model):
    """As river's BagOfWords, TFIDF and OneHotEncoder make them; other columns may be beside them."""
    X, y = problem(80, 5, binary=True)
    names = list("abcde")
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=names)
    sparse = sparse.astype({"a": pd.SparseDtype(bool, False), "b": pd.SparseDtype(float, 1.0)})
    sparse["number"] = np.arange(80.0)
    named = [
        {d: x[d] for d in names if x[d] or d == "b"} | {"number": float(t)}
        for t, x in enumerate(sparse.to_dict("records"))
    ]
    a, b = model.clone(), model.clone()
    a.learn_many(sparse, y)
    b.learn_many(named, y)
    assert a.digest() == b.digest()
    assert isinstance(a.predict_many(sparse), pd.Series)
    assert np.array_equal(np.asarray(a.decision_function_many(sparse)), np.asarray(b.decision_function_many(named)))
    sparse["a"] = pd.arrays.SparseArray([NAN, *[1.0] * 79], fill_value=0.0)
    with pytest.raises(ValueError, match=r"feature 'a' in row 0 is nan.*Records"):
        a.learn_many(sparse, y)
    sparse["a"] = pd.arrays.SparseArray(["x"] * 80, fill_value="")
    with pytest.raises(TypeError, match=r"column 'a' has dtype Sparse.*; features must be numbers"):
        a.predict_many(sparse)


@pytest.mark.parametrize(
    "before", [feature_extraction.BagOfWords(), feature_extraction.TFIDF(), preprocessing.OneHotEncoder()]
)
def test_batches_of_words_through_a_pipeline(before):
    X = pd.Series(["win a prize", "meeting at noon", "claim a prize", "lunch at noon"])
    X = pd.DataFrame({"text": X}) if isinstance(before, preprocessing.OneHotEncoder) else X
    y = pd.Series([True, False, True, False], name="spam")
    for model in (LASVM(kernel="linear"), AutoLASVM(), OneVsOne(LASVM())):
        pipeline = before.clone() | model
        pipeline.learn_many(X, y)
        assert pipeline.predict_many(X).tolist() == y.tolist()
