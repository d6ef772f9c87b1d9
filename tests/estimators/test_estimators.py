"""The algorithms as river classifiers: batches, copies, caches and input that is refused change nothing."""

import copy
import itertools
import pickle
import re
from unittest import mock

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from river import datasets, metrics
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsRest, SnapshotError, WarmupScaler
from streamsvm.core import blocks, storage
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import ROWS, SLOTS
from streamsvm.core.saving import snapshot
from streamsvm.estimators.learner.learning import learn_batch
from streamsvm.online import arrival
from streamsvm.online import finish as finishing

ALGORITHMS = {"LASVM": LASVM, "G": LASVMG, "NC": LASVMNC, "I": LASVMI, "FULL": FullSVM}
every_algorithm = pytest.mark.parametrize("algorithm", ALGORITHMS.values(), ids=ALGORITHMS.keys())


def problem(seed=0, n=500, d=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=n) > 0.7


def loop(model, X, y, w=None, ids=None):
    """Learn the rows one by one."""
    for t, (x, label) in enumerate(zip(X, y, strict=True)):
        model.learn_one(
            dict(enumerate(x)), bool(label), w=1.0 if w is None else w[t], id=None if ids is None else int(ids[t])
        )
    return model


def model_of(X, y, algorithm=LASVM, **parameters):
    model = algorithm(**{"C": 10.0, "gamma": 0.3} | parameters)
    model.learn_many(X, y)
    return model


def coefficients(model):
    return dict(zip(model.support_ids.tolist(), model.dual_coef.tolist(), strict=True))


# -------------------------------------------------------------------------------------------------- one way of learning

FORMS = {
    "array": lambda X: X,
    "csr": sp.csr_matrix,
    "pandas": pd.DataFrame,
    "dicts": lambda X: [*map(dict, map(enumerate, X))],
}


@pytest.mark.long
@every_algorithm
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cut", [1, 37, 256, 257, 500])
def test_learn_many_is_a_loop_of_learn_one_bit_for_bit(algorithm, form, cut):
    X, y = problem()
    w, ids = np.random.default_rng(1).uniform(0.0, 2.0, 500), np.random.default_rng(2).permutation(500) // 2
    expected = loop(algorithm(C=10.0, gamma=0.3), X, y, w, ids)
    model = algorithm(C=10.0, gamma=0.3)
    for b in range(0, 500, cut):
        e = b + cut
        model.learn_many(FORMS[form](X[b:e]), y[b:e], w[b:e], ids[b:e])
    assert model.digest() == expected.digest()


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.lists(st.integers(1, 1000), max_size=8), st.sampled_from([0, 500]))
def test_batches_may_be_cut_anywhere(seed, cuts, first_real):
    """Although holes are squeezed out and features become real-valued in the middle of a batch."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4000, 12))
    y = (X.sum(axis=1) > 0) ^ (rng.random(4000) < 0.01)
    X[:first_real] = X[:first_real] > 0.5
    pieces, whole = (LASVM(C=30.0, gamma=0.02, reprocess=1, admission="violation") for _ in range(2))
    with mock.patch.object(storage.room, "keep", wraps=storage.keep) as squeezed:
        for begin, end in itertools.pairwise([0, *np.minimum(np.cumsum(cuts), 4000), 4000]):
            pieces.learn_many(X[begin:end], y[begin:end])
        assume(squeezed.call_count > 0)  # nearly every stream has holes enough
        whole.learn_many(X, y)
    assert pieces.digest() == whole.digest()


@every_algorithm
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
@pytest.mark.parametrize("cut", [8, 101, 256])
def test_matrix_products_give_the_bits_of_rows(algorithm, kernel, cut, monkeypatch):
    """With as many features as are needed for products, some of them 0, and blocks that do not fill a tile."""
    monkeypatch.setattr(blocks, "MIN_MEMBERS", 0)
    X, y = problem(3, 400, 41)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = 0.0
    parameters = {"C": 1.0, "kernel": kernel, "gamma": 0.02, "degree": 2, "coef0": 1.0}
    model, rows = algorithm(**parameters), loop(algorithm(**parameters), X, y)
    with mock.patch.object(blocks, "inner_products", wraps=blocks.inner_products) as products:
        for b in range(0, 400, cut):
            model.learn_many(X[b : b + cut], y[b : b + cut])
    assert products.call_count > 0
    assert model.digest() == rows.digest()
    np.testing.assert_array_equal(model.decision_function_many(X), rows.decision_function_many(X))


def test_margins_are_those_of_prediction():
    X, y = problem(4, 200)
    model, margins = LASVM(C=10.0), []
    for x, label in zip(X, y, strict=True):
        margins.append(model.decision_function_one(dict(enumerate(x))))
        loop(model, x[None], [label])
    in_blocks = learn_batch(state_of(LASVM(C=10.0)), X, y, None, None)
    np.testing.assert_allclose(in_blocks, margins, atol=1e-9)


@pytest.mark.parametrize("d", [5, 40])
def test_predicting_many_is_predicting_one_by_one(d):
    """With 40 features it is a matrix product."""
    X, y = problem(5, 300, d)
    model, rows = model_of(X, y), [dict(enumerate(x)) for x in X]
    f = np.array([model.decision_function_one(x) for x in rows])
    np.testing.assert_array_equal(model.decision_function_many(X), f)
    np.testing.assert_array_equal(model.predict_many(rows), f > 0)
    assert [model.predict_one(x) for x in rows] == (f > 0).tolist()
    p = np.array([[q[False], q[True]] for q in map(model.predict_proba_one, rows)])
    np.testing.assert_array_equal(model.predict_proba_many(rows), p)


# ----------------------------------------------------------------------------------------- what must not change results


@pytest.mark.long
@every_algorithm
@pytest.mark.parametrize("d", [3, 40])
@pytest.mark.parametrize("finish_at", [None, 400])
def test_the_size_of_the_row_cache_changes_nothing(algorithm, d, finish_at):
    X, y = problem(6, 600, d)
    more = {"delta_max": 0.1} if algorithm is LASVM else {}
    models = [algorithm(C=30.0, gamma=1 / d, cache_mb=mb, **more) for mb in (1e-6, 0.05, 256.0)]
    for model in models:
        loop(model, X[:400], y[:400])
        if finish_at:
            model.finish()
        model.learn_many(X[400:], y[400:])
    assert state_of(models[0]).expansion.counts[ROWS] <= 16 < state_of(models[2]).expansion.counts[ROWS]
    assert len({model.digest() for model in models}) == 1
    assert models[0].kernel_evaluations > models[2].kernel_evaluations


COPIES = {
    "bytes": lambda model: type(model).from_bytes(model.to_bytes()),
    "pickle 4": lambda model: pickle.loads(pickle.dumps(model, protocol=4)),  # noqa: S301
    "pickle 5": lambda model: pickle.loads(pickle.dumps(model, protocol=5)),  # noqa: S301
    "deep copy": copy.deepcopy,
}


@pytest.mark.long
@every_algorithm
@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("at", [0, 1, 60, 150, 299])
@pytest.mark.parametrize("d", [3, 40])
def test_a_copy_continues_as_the_original_does(algorithm, how, at, d):
    X, y = problem(7, 300, d)
    more = {LASVM: {"delta_max": 0.1}, FullSVM: {}}.get(algorithm, {"clean_every": 20, "max_non_sv": 10})
    model = loop(algorithm(C=10.0, gamma=1 / d, **more), X[:at], y[:at])
    other = COPIES[how](model)
    assert other.digest() == model.digest()
    loop(model, X[at:], y[at:])
    assert other.n_seen == at  # the original's further life is not the copy's
    loop(other, X[at:], y[at:])
    assert other.digest() == model.digest()
    model.finish()
    other.finish()
    assert other.digest() == model.digest()
    assert other.to_bytes()[:8] == model.to_bytes()[:8]


def test_a_file_continues_as_the_original_does(tmp_path):
    X, y = problem(8)
    model = model_of(X[:300], y[:300])
    model.save(tmp_path / "model")
    other = LASVM.load(tmp_path / "model")
    for m in (model, other):
        m.learn_many(X[300:], y[300:])
    assert other.digest() == model.digest()
    assert LASVM.from_bytes(model.to_bytes(), cache_mb=1.0).digest() == model.digest()


def test_a_snapshot_without_the_later_counters_is_read():
    X, y = problem(8)
    model = model_of(X, y)
    meta, arrays = snapshot.unpack(model.to_bytes(), "LASVM")
    arrays["counts"] = arrays["counts"][:12]
    del arrays["losses"]
    assert LASVM.from_bytes(snapshot.pack("LASVM", meta, arrays)).digest() == model.digest()


@every_algorithm
def test_predicting_changes_nothing(algorithm):
    X, y = problem(9)
    model = model_of(X, y, algorithm)
    digest, data = model.digest(), snapshot.unpack(model.to_bytes(), algorithm.__name__)[1]
    for x in ({0: 1.0}, {"unknown": 3.0}, {}):
        model.predict_one(x)
        model.predict_proba_one(x)
    model.predict_many(X)
    model.predict_proba_many(sp.csr_matrix(X))
    assert model.digest() == digest
    for name, array in snapshot.unpack(model.to_bytes(), algorithm.__name__)[1].items():
        if name != "counts":
            np.testing.assert_array_equal(array, data[name])


@every_algorithm
def test_the_digest_tells_models_apart(algorithm):
    X, y = problem(10, 100)
    models = [model_of(X, y, algorithm), model_of(X, y, algorithm, C=11.0), model_of(X[:99], y[:99], algorithm)]
    digests = {model.digest() for model in models}
    assert len(digests | {algorithm().digest()}) == 4
    assert model_of(X, y, algorithm, cache_mb=1.0).digest() in digests


# -------------------------------------------------------------------------------------------------------------- the ids


@every_algorithm
def test_examples_are_numbered_from_0(algorithm):
    X, y = problem(11, 100)
    model = model_of(X[:50], y[:50], algorithm)
    loop(model, X[50:], y[50:])
    np.testing.assert_array_equal(y[model.support_ids], model.dual_coef > 0)
    assert model.support_ids.dtype == np.int64
    assert set(model.support_ids) <= set(range(100))


@every_algorithm
def test_the_same_example_again_changes_nothing(algorithm):
    X, y = problem(12, 200)
    ids = 10**12 + np.arange(200)
    model = algorithm(C=10.0, gamma=1.0)  # an example that comes again moves a running scale
    model.learn_many(X, y, ids=ids)
    members = set(state_of(model).expansion.ids[state_of(model).expansion.y != 0].tolist())
    inside = np.isin(ids, sorted(members))
    before = coefficients(model)
    model.learn_many(X[inside], y[inside], ids=ids[inside])
    loop(model, X[inside], y[inside], ids=ids[inside])
    assert coefficients(model) == before
    loop(model, X[inside][:1] + 0.01, ~y[inside][:1], ids=[7])
    assert 7 in model.support_ids


CHANGES = {
    "features": lambda X, y, w: (X + 0.5, y, w),
    "label": lambda X, y, w: (X, ~y, w),
    "weight": lambda X, y, w: (X, y, w * 0.5),
}


@every_algorithm
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("form", ["one", "batch"])
def test_an_example_takes_the_place_of_the_member_with_its_id(algorithm, change, form):
    X, y = problem(27, 120)
    model = algorithm(C=10.0, gamma=0.3, reservoir=0)  # `forget` looks at it, the arrival of an example does not
    model.learn_many(X, y, ids=np.arange(120) + 500)
    number = int(model.support_ids[5])
    i = slice(number - 500, number - 499)
    new, label, w = change(X[i], y[i], np.ones(1))
    expected = copy.deepcopy(model)
    assert expected.forget(number) == 1
    expected.learn_many(new, label, w=w, ids=[number])
    if form == "one":
        loop(model, new, label, w, [number])
    else:
        model.learn_many(new, label, w=w, ids=[number])
    assert model.digest() == expected.digest()
    assert (state_of(model).expansion.ids[state_of(model).expansion.y != 0] == number).sum() <= 1


@every_algorithm
def test_what_is_left_out_takes_no_place(algorithm):
    X, y = problem(28, 100)
    model = algorithm(C=10.0, gamma=0.3)
    model.learn_many(X, y, ids=np.arange(100))
    before = coefficients(model)
    number = int(model.support_ids[3])
    model.learn_one({0: 5.0}, True, w=0.0, id=number)
    model.learn_many(X[:1] + 1.0, y[:1], w=[0.0], ids=[number])
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({0: INF}, True, id=number)
    with pytest.raises(ValueError, match="finite"):
        model.learn_many([{0: INF}], [True], ids=[number])
    assert coefficients(model) == before


@pytest.mark.long
@every_algorithm
@pytest.mark.parametrize(
    "bounds", [{}, {"budget": 30}, {"budget": 30, "on_budget": "project"}, {"window": 60}], ids=["", "b", "p", "w"]
)
@pytest.mark.parametrize("cut", [7, 256])
def test_ids_that_return_in_batches_are_those_of_a_loop(algorithm, bounds, cut):
    """Other examples, the same ones again, and several of one id in a batch."""
    rng = np.random.default_rng(29)
    ids = rng.integers(0, 60, 300)
    X, y = problem(30, 60)
    X, y = X[ids], y[ids]
    other = rng.random(300) < 0.3
    X[other] += rng.normal(size=(other.sum(), 5))
    y[rng.random(300) < 0.1] ^= True
    w = rng.choice([0.0, 1.0, 1.0, 2.0], 300)
    one, many = algorithm(C=10.0, gamma=0.3, **bounds), algorithm(C=10.0, gamma=0.3, **bounds)
    loop(one, X, y, w, ids)
    for b in range(0, 300, cut):
        part = slice(b, b + cut)
        many.learn_many(X[part], y[part], w=w[part], ids=ids[part])
    assert many.digest() == one.digest()
    members = state_of(one).expansion.ids[state_of(one).expansion.y != 0]
    assert len(np.unique(members)) == len(members) > 5


def test_numbers_go_on_above_the_largest_id():
    X, y = problem(31, 60)
    model = FullSVM(C=1.0, gamma=1.0)
    assert model.next_id == 0
    model.learn_many(X[:10], y[:10])
    assert model.next_id == model.n_seen == 10
    model.learn_many(X[10:20], y[10:20], ids=np.arange(100, 110))
    model.learn_one(dict(enumerate(X[20])), y[20], id=50)
    model.learn_one(dict(enumerate(X[21])), y[21])
    model.learn_many(X[22:24], y[22:24])
    assert model.next_id == 113
    assert sorted(model.support_ids) == [*range(10), 50, *range(100, 113)]
    model.learn_one(dict(enumerate(X[24])), y[24], id=-(2**63))
    assert model.next_id == 113
    assert model.n_seen == 25
    restored = FullSVM.from_bytes(model.to_bytes())
    assert restored.next_id == 113
    model.learn_one({0: 1.0}, True, id=2**63 - 1)
    for call in (lambda: model.learn_one({0: 1.0}, True), lambda: model.learn_many(X[:1], y[:1])):
        with pytest.raises(ValueError, match="no ids are left above the largest one, 9223372036854775807"):
            call()


def test_a_snapshot_that_does_not_tell_the_next_id_goes_on_above_its_members():
    model = FullSVM()
    model.learn_many(*problem(32, 20), ids=np.arange(20) + 70)
    meta, arrays = snapshot.unpack(model.to_bytes(), "FullSVM")
    del meta["next_id"]
    assert FullSVM.from_bytes(snapshot.pack("FullSVM", meta, arrays)).digest() == model.digest()
    for wrong in ("7", -1, 2**64, 1.5):
        with pytest.raises(SnapshotError, match="next_id"):
            FullSVM.from_bytes(snapshot.pack("FullSVM", {**meta, "next_id": wrong}, arrays))


def test_too_few_labels_for_the_ids_are_refused():
    X, y = problem(33, 4)
    model = LASVM()
    model.learn_many(X, y)
    with pytest.raises(ValueError, match=r"y has shape \(2,\) for 1 ids; one label for each is needed"):
        model.relabel([1], [True, False])


def test_two_members_with_one_id_from_an_old_snapshot_are_both_corrected():
    X, _ = problem(33, 2)
    model = FullSVM()
    model.learn_many(X, [True, False])
    state_of(model).expansion.ids[:2] = 7
    assert model.relabel(7, True) == 1
    assert model.n_members == 2
    assert (model.dual_coef > 0).all()
    assert model.forget(7) == 2


def test_an_id_that_has_left_may_come_back():
    X = np.random.default_rng(22).normal(size=(1000, 3))
    y = X[:, 0] > 0
    model = LASVM(C=10.0, gamma=0.3, reprocess=1)
    model.learn_many(X, y, ids=np.arange(1000))
    s = state_of(model).expansion
    gone = int(s.ids[: s.counts[SLOTS]][s.y[: s.counts[SLOTS]] == 0][-1])  # a hole has kept its number
    loop(model, X[[gone]], ~y[[gone]], ids=[gone])
    assert gone in model.support_ids


@pytest.mark.parametrize("extreme", [-(2**63), 2**63 - 1])
def test_ids_are_64_bit(extreme):
    model = LASVM()
    model.learn_one({"a": 1.0}, True, id=extreme)
    model.learn_one({"a": 0.0}, False, id=np.int32(5))
    assert set(model.support_ids) == {extreme, 5}


# -------------------------------------------------------------------------------------------------------- what is given


@pytest.mark.parametrize("labels", [(False, True), (0, 1), (-1, 1), (0.0, 1.0), (-1.0, 1.0)])
def test_labels_may_be_written_in_three_ways(labels):
    X, y = problem(13, 100)
    expected = model_of(X, y).digest()
    written = [labels[int(label)] for label in y]
    for form in (written, np.array(written), np.array(written, object), pd.Series(written), pl.Series(written)):
        assert model_of(X, form).digest() == expected
    model = LASVM(C=10.0, gamma=0.3)
    for x, label in zip(X, written, strict=True):
        model.learn_one(dict(enumerate(x)), label)
    assert model.digest() == expected


def test_a_weight_for_all_is_a_weight_for_each():
    X, y = problem(14, 100)
    models = [LASVM(C=0.5) for _ in range(3)]
    for model, w in zip(models, (0.5, np.full(100, 0.5), pd.Series(np.full(100, 0.5))), strict=True):
        model.learn_many(X, y, w)
    assert len({model.digest() for model in models}) == 1
    assert np.abs(models[0].dual_coef).max() == 0.25


@every_algorithm
def test_pos_weight_is_a_weight_of_the_positive_class(algorithm):
    X, y = problem(15, 200)
    weighted, expected = algorithm(C=2.0, pos_weight=3.0), algorithm(C=2.0)
    weighted.learn_many(X, y)
    expected.learn_many(X, y, np.where(y, 3.0, 1.0))
    assert coefficients(weighted) == coefficients(expected)


@every_algorithm
@pytest.mark.parametrize("X", [np.empty((0, 3)), sp.csr_matrix((0, 3)), [], pd.DataFrame({"a": []})])
def test_a_batch_without_rows_does_nothing(algorithm, X):
    model = model_of(*problem(16, 50), algorithm)
    members = coefficients(model)
    model.learn_many(X, [])
    model.learn_many(X, np.empty(0, bool), ids=np.empty(0, int))
    assert coefficients(model) == members
    assert len(model.predict_many(X)) == 0


@pytest.mark.parametrize("kind", [pd, pl])
def test_a_frame_gives_answers_of_its_kind(kind):
    X, y = problem(17, 100, 2)
    frame = kind.DataFrame({"a": X[:, 0], "b": X[:, 1]})
    model = LASVM()
    model.learn_many(frame, kind.Series(y, name="rain") if kind is pd else kind.Series("rain", y))
    f, labels, p = model.decision_function_many(frame), model.predict_many(frame), model.predict_proba_many(frame)
    assert isinstance(f, kind.Series)
    assert isinstance(labels, kind.Series)
    assert isinstance(p, kind.DataFrame)
    assert labels.name == "rain"
    np.testing.assert_array_equal(labels.to_numpy(), f.to_numpy() > 0)
    np.testing.assert_allclose(np.asarray(p).sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.asarray(p)[:, 1] > 0.5, labels.to_numpy())


def test_a_pandas_frame_keeps_its_index():
    X, y = problem(18, 20, 2)
    frame = pd.DataFrame(X, index=np.arange(100, 120))
    model = model_of(frame, y)
    for answer in (model.decision_function_many(frame), model.predict_many(frame), model.predict_proba_many(frame)):
        np.testing.assert_array_equal(answer.index, frame.index)


@every_algorithm
def test_before_learning_every_answer_is_open(algorithm):
    model = algorithm()
    assert model.predict_one({"a": 1.0}) is False
    assert model.predict_proba_one({"a": 1.0}) == {False: 0.5, True: 0.5}
    assert model.decision_function_one({}) == 0.0
    np.testing.assert_array_equal(model.predict_many(np.ones((3, 2))), [False] * 3)
    np.testing.assert_array_equal(model.predict_proba_many(np.ones((20, 50))), np.full((20, 2), 0.5))
    assert (model.n_members, model.n_support, len(model.support_ids), model.bias) == (0, 0, 0, 0.0)


def test_bananas_are_learned_behind_a_scaler():
    model, accuracy = WarmupScaler("minmax", warmup=100) | LASVM(C=10.0, gamma=20.0), metrics.Accuracy()
    for x, y in datasets.Bananas().take(1500):
        accuracy.update(y, model.predict_one(x))
        model.learn_one(x, y)
    assert accuracy.get() > 0.85


# ------------------------------------------------------------------------------------------------------ what is refused

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "C": [0, -1.0, NAN, INF, "1", None],
        "pos_weight": [0, -1.0, NAN, INF, "1", None],
        "tol": [0, -1.0, NAN, INF, "1", None],
        "cache_mb": [0, -1.0, NAN, INF, "1", None],
        "gamma": [0, -1.0, NAN, INF, "1", None, 1e39],
        "degree": [0, -1, 2.5, NAN, "three", None],
        "coef0": [NAN, INF, "1", None, -1e39],
        "delta_max": [0, -1.0, NAN, INF, "1"],
        "reprocess": [-1, 1.5, True, "often", None],
        "admission": ["any", None, 0.9, ["margin"]],
        "kernel": ["gaussian", None, 3],
    }.items(),
)
def test_a_bad_parameter_is_named(name, values):
    for value in values:
        with pytest.raises((ValueError, TypeError), match=re.escape(f"{name}={value!r}")):
            LASVM(**{name: value})


@pytest.mark.parametrize(
    ("name", "values"),
    {
        "clean_every": [0, -1, 1.5, True, "300", None, 10**30],
        "max_non_sv": [-1, 1.5, False, "300", None, 10**30],
        "steps": ["triple", None, 2],
        "ramp_s": [NAN, INF, -INF, "1", None, 1.001],
        "ramp_warmup": [-1, 0.5, True, None],
    }.items(),
)
def test_a_bad_parameter_of_the_gap_family_is_named(name, values):
    for value in values:
        with pytest.raises(ValueError, match=f"{name}={value!r}"):
            LASVMNC(**{name: value})
        with pytest.raises(ValueError, match=f"{name}={value!r}"):
            LASVMI(**{name: value})


@pytest.mark.long
@pytest.mark.parametrize("numbers", [(1, 2), (np.float32(1.0), np.int64(2)), (np.int64(1), np.int8(2))])
def test_parameters_may_be_numbers_of_any_type(numbers):
    C, degree = numbers
    model = LASVM(C=C, kernel="poly", degree=degree, gamma=C, coef0=C, tol=C, cache_mb=C, pos_weight=C, delta_max=C)
    model.learn_one({"a": 1.0}, True)
    assert LASVM.from_bytes(model.to_bytes()).digest() == model.digest()


@pytest.mark.parametrize("y", [2, -2, 0.5, NAN, "yes", None, [True], np.array([True])])
def test_a_label_that_is_not_binary_is_refused(y):
    model = model_of(*problem(19, 30))
    digest = model.digest()
    with pytest.raises(ValueError, match="y="):
        model.learn_one({"new": 1.0}, y)
    assert model.digest() == digest


@pytest.mark.parametrize(
    ("y", "shown"),
    [
        ([0, 1, 2], "0, 1, 2"),
        ([-1, 0, 1], "-1, 0, 1"),
        (["a", "b", "a"], "'a', 'b'"),
        ([1.0, 0.0, NAN], "nan"),
        ([True, None, False], "None"),
        ([2, 2, 2], "2"),
    ],
)
def test_labels_that_are_not_binary_are_shown(y, shown):
    model = LASVM()
    with pytest.raises(ValueError, match=f"y.*{shown}"):
        model.learn_many(np.ones((3, 2)), y)
    assert model.digest() == LASVM().digest()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [True, False]}, r"y has shape \(2,\) for 3 rows of X"),
        ({"y": [[True], [False], [True]]}, r"y has shape \(3, 1\) for 3 rows"),
        ({"y": True}, r"y has shape \(\) for 3 rows"),
        ({"w": [1.0, 2.0]}, r"w has shape \(2,\); it must be one weight, or one for each of 3 rows of X"),
        ({"w": -1.0}, r"w holds -1.0"),
        ({"w": [1.0, NAN, 1.0]}, r"w holds nan"),
        ({"w": [1.0, INF, 1.0]}, r"w holds inf"),
        ({"w": ["a", "b", "c"]}, r"w "),
        ({"w": [1.0, pd.NA, 1.0]}, "w holds <NA> in row 1; weights must be numbers"),
        ({"w": {0: 1.0, 1: 1.0, 2: 1.0}}, "w is a dict; it must be a list"),
        ({"w": [1.0, 10**400, 1.0]}, "w holds 10{99} in row 1; weights must be numbers"),
        ({"w": [[1.0], [1.0, 2.0], []]}, "w holds sequences of different lengths"),
        ({"y": [[True], [True, False], []]}, "y holds sequences of different lengths"),
        ({"ids": [[1], [1, 2], []]}, "ids holds sequences of different lengths"),
        ({"w": pd.DataFrame({"w": [1.0, 1.0, 1.0]})}, r"w has shape \(3, 1\)"),
        ({"y": {0: True, 1: False, 2: True}}, "y is a dict"),
        ({"y": {True, False}}, "y is a set"),
        ({"y": pd.DataFrame({"y": [True, False, True]})}, r"y has shape \(3, 1\)"),
        ({"y": [True, pd.NA, False]}, "y holds <NA> in row 1"),
        ({"ids": {1, 2, 3}}, "ids is a set"),
        ({"ids": {1: 1, 2: 2, 3: 3}}, "ids is a dict"),
        ({"ids": [1, pd.NA, 3]}, "id=<NA> must be a signed 64-bit integer"),
        ({"ids": [1, 2]}, r"ids has shape \(2,\)"),
        ({"ids": [1.0, 2.0, 3.0]}, r"ids has .*float64"),
        ({"ids": ["a", "b", "c"]}, r"ids has "),
        ({"ids": np.array([1, 2, 2**63], np.uint64)}, r"ids holds 9223372036854775808"),
    ],
)
def test_a_batch_whose_parts_do_not_fit_is_refused(arguments, message):
    model = LASVM()
    with pytest.raises((ValueError, TypeError), match=message):
        model.learn_many(**{"X": np.ones((3, 2)), "y": [True, False, True]} | arguments)
    assert model.digest() == LASVM().digest()


@pytest.mark.parametrize(
    "arguments",
    [
        {"w": -1.0},
        {"w": NAN},
        {"w": INF},
        {"w": "1"},
        {"w": None},
        {"id": "7"},
        {"id": 1.5},
        {"id": 2**63},
        {"id": NAN},
    ],
)
def test_a_bad_weight_or_id_is_named(arguments):
    model = model_of(*problem(20, 30))
    digest = model.digest()
    ((name, value),) = arguments.items()
    with pytest.raises((ValueError, TypeError), match=f"{name}={value!r}"):
        model.learn_one({"new": 1.0}, True, **arguments)
    assert model.digest() == digest
    loop(model, *problem(20, 5))  # and it goes on


def test_a_weight_whose_box_overflows_is_refused():
    model = LASVM(C=1e10)
    with pytest.raises(ValueError, match=r"w=1e\+308"):
        model.learn_one({"a": 1.0}, True, w=1e308)
    with pytest.raises(ValueError, match=r"w holds 1e\+308"):
        model.learn_many([{"a": 1.0}], [True], w=[1e308])
    assert model.digest() == LASVM(C=1e10).digest()


@pytest.mark.parametrize("kernel", [{"kernel": "linear"}, {"kernel": "poly", "degree": 5}])
def test_an_example_whose_kernel_overflows_is_refused(kernel):
    model = LASVM(**kernel, gamma=1.0)
    model.learn_many([{"a": 1.0}, {"a": -1.0}], [True, False])
    digest = model.digest()
    with pytest.raises(ValueError, match="scale the features"):
        model.learn_one({"new": 9e17}, True)
    with pytest.raises(ValueError, match=r"example 1 .*scale the features"):
        model.learn_many([{"a": 1.0}, {"new": 9e17}], [True, False])
    assert model.digest() == digest
    assert model.predict_one({"a": 1.0}) is True


MASKED = np.ma.masked_array(np.ones((3, 2)), [[0, 0], [0, 1], [0, 0]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": MASKED}, r"X is a masked array with 1 masked entries, the first at \[1, 1\]"),
        ({"y": np.ma.masked_array([True, False, True], [0, 0, 1])}, r"y is a masked array .*\[2\]"),
        ({"w": np.ma.masked_array([1.0, 2.0, 3.0], [1, 1, 0])}, r"w is a masked array with 2 masked .*\[0\]"),
        ({"ids": np.ma.masked_array([1, 2, 3], [0, 1, 0])}, r"ids is a masked array .*\[1\]"),
    ],
    ids=["X", "y", "w", "ids"],
)
def test_what_is_masked_is_refused(arguments, message):
    for model in (LASVM(), OneVsRest(LASVM())):
        digest = model.digest()
        with pytest.raises(ValueError, match=message):
            model.learn_many(**{"X": np.ones((3, 2)), "y": [True, False, True]} | arguments)
        assert model.digest() == digest
        for call in (model.predict_many, model.decision_function_many, model.validate_many, model.predict_proba_many):
            with pytest.raises(ValueError, match="X is a masked array"):
                call(MASKED)
        with pytest.raises(ValueError, match="ids is a masked array"):
            model.forget(np.ma.masked_array([1, 2], [0, 1]))


def test_a_masked_array_without_masked_entries_is_an_array():
    X, y = problem(34, 50)
    model = LASVM(C=10.0, gamma=0.3)
    model.learn_many(np.ma.masked_array(X), np.ma.masked_array(y), w=np.ma.ones(50), ids=np.ma.arange(50))
    assert model.digest() == model_of(X, y).digest()


NO_IDS = [b"5", "5", bytearray(b"5"), memoryview(b"5"), 1.5, None, True, [1.5], ["5"], np.array("5"), [True], 2**63]


@pytest.mark.parametrize("ids", NO_IDS)
def test_what_is_no_id_forgets_nothing(ids):
    model = FullSVM()
    model.learn_many(np.arange(60.0)[:, None], np.arange(60) % 2 == 0)
    for call in (lambda: model.forget(ids), lambda: model.relabel(ids, True)):
        with pytest.raises(ValueError, match="id"):
            call()
    assert model.n_members == 60


def test_ids_may_be_given_in_many_ways():
    model = FullSVM()
    model.learn_many(np.arange(20.0)[:, None], np.arange(20) % 2 == 0)
    for ids in (np.array(5), np.int32(6), 7, [8], {9}, (10,), np.array([11], np.uint8), pd.Series([12]), range(13, 14)):
        assert model.forget(ids) == 1
    for ids in ([], (), np.array([]), np.array([], int), set()):
        assert model.forget(ids) == 0
    model.learn_many([], [], ids=[])
    model.learn_many(np.empty((0, 1)), [], ids=np.array([]))
    assert model.n_members == 11


@pytest.mark.parametrize("name", [NAN, INF, -INF, np.float64("nan"), np.float32("inf")])
def test_a_number_that_names_a_feature_is_finite(name):
    model = model_of(*problem(35, 30))
    digest = model.digest()
    calls = (
        lambda: model.learn_one({0: 1.0, name: 1.0}, True),
        lambda: model.learn_many([{0: 1.0, name: 1.0}], [True]),
        lambda: model.learn_many(pd.DataFrame({0: [1.0], name: [1.0]}), [True]),
        lambda: model.validate_one({name: 1.0}),
        lambda: model.predict_one({name: 1.0}),
    )
    for call in calls:
        with pytest.raises(ValueError, match=f"a feature is named .*{name}"):
            call()
    assert model.digest() == digest


@every_algorithm
@pytest.mark.parametrize("value", [1.0 + 1e-12, 1e-60, -0.0, 1.0 - 1e-12])
def test_a_value_is_binary_if_it_is_as_it_is_stored(algorithm, value):
    one, many = algorithm(), algorithm()
    X = np.array([[0.0, 1.0], [1.0, 0.0], [value, 1.0], [1.0, value]])
    y = np.array([True, False, False, True])
    many.learn_many(X, y)
    loop(one, X, y)
    assert one.digest() == many.digest()


# ------------------------------------------------------------------------------------------------------------ snapshots


def test_a_damaged_snapshot_is_refused():
    data = model_of(*problem(21, 50)).to_bytes()
    for position in np.linspace(0, len(data) - 1, 60).astype(int):
        damaged = bytearray(data)
        damaged[position] ^= 0x10
        with pytest.raises(SnapshotError):
            LASVM.from_bytes(bytes(damaged))
    for length in (0, 5, 100, len(data) - 1):
        with pytest.raises(SnapshotError):
            LASVM.from_bytes(data[:length])


def test_a_snapshot_of_something_else_is_refused():
    with pytest.raises(SnapshotError, match="'WarmupScaler' snapshot, expected 'LASVM'"):
        LASVM.from_bytes(WarmupScaler().to_bytes())


def test_a_damaged_file_is_named(tmp_path):
    path = tmp_path / "model.svm"
    path.write_bytes(LASVM().to_bytes()[:-1])
    with pytest.raises(SnapshotError, match=r"model\.svm"):
        LASVM.load(path)


# ------------------------------------------------------------------------------------------------- what is interrupted


@pytest.mark.long
@every_algorithm
@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_interrupted_finish_changes_nothing(algorithm, calls, monkeypatch):
    X, y = problem(23, 600, 3)
    model = model_of(X, y, algorithm, C=1e3)
    expected = copy.deepcopy(model)
    kept = []

    def interrupt(s, order):
        kept.append(order)
        if len(kept) == calls:
            raise KeyboardInterrupt
        return keep(s, order)

    keep = storage.keep
    with monkeypatch.context() as patch:
        patch.setattr(finishing, "keep", interrupt)
        patch.setattr(finishing, "AT_ONCE", 20)  # few steps between two looks at what may be shrunk
        with pytest.raises(KeyboardInterrupt):
            model.finish(1e-7)
    assert model.digest() == expected.digest()
    learned = copy.deepcopy(model)
    for m in (model, learned):
        m.learn_many(X[:100], ~y[:100])
        m.finish()
    assert model.digest() == learned.digest()


@every_algorithm
@pytest.mark.parametrize("place", [(arrival, "make_room"), (Evaluator, "products")], ids=["room", "products"])
def test_an_interrupted_batch_was_learned_up_to_a_block(algorithm, place, monkeypatch):
    X, y = problem(24, 700, 20)
    model, expected, real, calls = model_of(X[:50], y[:50], algorithm), model_of(X[:50], y[:50], algorithm), {}, []
    real = getattr(*place)

    def interrupt(*arguments):
        calls.append(arguments)
        made = real(*arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return made

    monkeypatch.setattr(*place, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.learn_many(np.pad(X[50:], ((0, 0), (0, 100))), y[50:])
    n = model.n_seen
    assert 50 < n < 700
    expected.learn_many(np.pad(X[50:n], ((0, 0), (0, 100))), y[50:n])
    assert model.digest() == expected.digest()
    model.predict_many(np.ones((30, 500)))
    for m in (model, expected):
        m.learn_many(X[n:], y[n:])
    assert model.digest() == expected.digest()


@every_algorithm
def test_a_prediction_that_overflows_is_refused_and_spoils_nothing(algorithm):
    X, y = problem(25, 300, 2)
    parameters = {"kernel": "poly", "degree": 3, "gamma": 1.0, "coef0": 1.0, "C": 0.1}
    model, expected = model_of(X, y, algorithm, **parameters), model_of(X, y, algorithm, **parameters)
    for call in (model.decision_function_one, model.predict_one, model.predict_proba_one):
        with pytest.raises(ValueError, match="scale the features"):
            call({0: 1e17, 1: 1e17})
    with pytest.raises(ValueError, match=r"X\[1\].*scale the features"):
        model.predict_many(np.array([[1.0, 1.0], [1e17, 1e17]]))
    for m in (model, expected):
        m.finish(0.1)
    assert model.digest() == expected.digest()


@every_algorithm
def test_a_batch_of_columns_without_rows_makes_no_columns(algorithm):
    X, y = problem(26, 60, 3)
    model = model_of(X, y, algorithm)
    digest = model.digest()
    model.learn_many(np.empty((0, 5000)), np.empty(0, bool))
    assert model.digest() == digest
    model.predict_one(dict.fromkeys(range(5000), 1.0))
    model.predict_many(np.ones((20, 5000)))


@every_algorithm
def test_a_refused_example_with_new_features_leaves_the_model_as_it_was(algorithm):
    X = np.random.default_rng(0).random((40, 3)) < 0.5
    model = model_of(X, X[:, 0], algorithm)
    digest = model.digest()
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({0: 1.0, 1: 1e30, **{f"n{k}": 0.5 for k in range(10)}}, True)
    assert model.digest() == digest


def test_the_scale_in_use_is_told():
    """As the kernel sees the members: scaled, cut, and features of only 0 and 1 as they are."""
    rng = np.random.default_rng(0)
    rows = [{"a": 5.0 + 100.0 * rng.standard_t(2), "b": float(rng.integers(2))} for _ in range(400)]
    model = LASVM()
    model.learn_many(rows, [x["a"] > 0.0 for x in rows])
    shift, factor = model.scale_of("a")
    assert factor < 0.1
    assert model.scale_of("b") == model.scale_of("unheard of") == (0.0, 1.0)
    expected = [[np.clip((rows[i]["a"] - shift) * factor, -3.0, 3.0), rows[i]["b"]] for i in model.support_ids]
    np.testing.assert_allclose(model.support_vectors.toarray(), expected, rtol=1e-6)
    assert np.abs(expected).max() == 3.0
    assert LASVM(gamma=1.0).scale_of("a") == (0.0, 1.0)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("learner", [LASVM, AutoLASVM])
def test_some_support_vectors(learner, form):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * (rng.random((200, 3)) < 0.7)
    model = learner()
    model.learn_many(form(X), X[:, 0] > 0.3 * X[:, 1])
    ids, every = model.support_ids, model.support_vectors.toarray()
    wanted = [ids[7], ids[2], 10**9]
    np.testing.assert_array_equal(model.support_vectors_of(wanted).toarray(), every[[2, 7]])
    assert model.support_vectors_of([]).shape == (0, 3)


@pytest.mark.parametrize("model", [LASVM(), AutoLASVM(), OneVsRest(LASVM()), OneVsRest(AutoLASVM())], ids=str)
def test_ids_to_forget_or_correct_are_never_keys_or_names_of_columns(model):
    model = model.clone()
    X = np.random.default_rng(0).normal(size=(20, 2))
    model.learn_many(X, X[:, 0] > 0, ids=pd.Series(np.arange(20), dtype="Int64"))
    digest, ids = model.digest(), model.support_ids.tolist()
    for wrong in (dict.fromkeys(ids), pd.DataFrame({number: [0] for number in ids})):
        for attempt in (lambda wrong=wrong: model.forget(wrong), lambda wrong=wrong: model.relabel(wrong, True)):
            with pytest.raises((TypeError, ValueError), match="ids "):
                attempt()
    with pytest.raises(TypeError, match="ids is a set; it must be a list"):
        model.relabel(set(ids), [True] * len(ids))
    if hasattr(model, "support_vectors_of"):
        assert model.support_vectors_of(set(ids)).shape == (len(ids), 2)
    assert model.digest() == digest
    assert model.forget(set(ids)) >= len(ids)
