"""Kernel values on a device: CuPy's part is played by fake_cupy, which keeps host and device apart."""

import copy
import gc
import pickle
import sys

import fake_cupy
import naive
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from queries import queries
from states import state_of

import streamsvm
from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM
from streamsvm.active import ActiveSelection, ArrayPool, AutoActiveSelection
from streamsvm.batch import SolverOptions, smo
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.connectors.records.models import Trained, pack_model, unpack_model
from streamsvm.core.device import choice, vectors
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.device.gpu import find_gpu
from streamsvm.core.device.mirror import Mirror
from streamsvm.core.kernels import NAMES, make_kernel
from streamsvm.core.storage import features_of, live_slots, rows_of
from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.validation import cross_validate, grid_search, leave_one_out

KERNELS = {name: {"kernel": name, "gamma": 0.3} for name in NAMES} | {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.2, "coef0": 1.0, "degree": 3},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.05, "coef0": -0.5},
}
ALGORITHMS = (LASVM, LASVMG, LASVMNC, LASVMI, FullSVM)


@pytest.fixture
def gpu(monkeypatch):
    """A device that only this test knows."""
    find_gpu.cache_clear()
    fake_cupy.install(monkeypatch)
    yield fake_cupy
    find_gpu.cache_clear()


def some(n=600, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)) > 0


def binary(n=600, d=20):
    X = (np.random.default_rng(1).random((n, d)) < 0.3).astype(float)
    return X, X[:, :5].sum(axis=1) > 1.5


def wide(n=900, d=3000):
    X = sp.random(n, d, 0.003, format="csr", random_state=2, data_rvs=lambda k: 1.0 + np.arange(k) % 3)
    return X, np.asarray(X.sum(axis=1)).ravel() > np.median(np.asarray(X.sum(axis=1)))


FORMS = {"dense": some, "binary": binary, "wide": wide}


def close(a, b, rtol=1e-5):
    np.testing.assert_allclose(a, b, rtol=0, atol=rtol * max(1.0, float(np.abs(b).max())))


def contents(mirror):
    """What is in each place of a mirror: features by serial number."""
    n = len(mirror.serials)
    rows = fake_cupy.asnumpy(mirror._X)[:n]
    return {int(serial): (rows[k], fake_cupy.asnumpy(mirror._sq)[k]) for k, serial in enumerate(mirror.serials)}


def assert_mirrors(mirror, s):
    held = contents(mirror)
    live = live_slots(s)
    assert sorted(held) == sorted(s.serial[live].tolist())
    for slot in live.tolist():
        indices, values = features_of(s, slot)
        expected = np.zeros(mirror._X.shape[1], np.float32)
        expected[indices] = values
        row, sq = held[int(s.serial[slot])]
        np.testing.assert_array_equal(row, expected)
        assert sq == s.sq[slot]


# ------------------------------------------------------------------------------------------------- the same as the CPU


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_decision_values_are_the_cpus(gpu, kernel, form):
    X, y = FORMS[form]()
    here = LASVM(C=2.0, **KERNELS[kernel])
    here.learn_many(X[:400], y[:400])
    there = LASVM.from_bytes(here.to_bytes(), device="cuda")
    before = there.kernel_evaluations
    close(there.decision_function_many(X), here.decision_function_many(X))
    assert there.kernel_evaluations - before == X.shape[0] * there.n_members
    assert gpu.launched[0] > 0


def test_members_that_are_scaled_anew_are_sent_anew(gpu):
    X, y = some()
    X = X * [1.0, 1e3, 1e-3, 1.0, 1.0, 1.0] * 1.02 ** np.arange(600)[:, None]
    there, scales = LASVM(C=2.0, device="cuda"), []
    for b in range(0, 600, 60):
        there.learn_many(X[b : b + 60], y[b : b + 60])
        here = LASVM.from_bytes(there.to_bytes(), device="cpu")
        close(there.decision_function_many(X), here.decision_function_many(X), rtol=1e-4)
        assert_mirrors(state_of(there).evaluator.mirror, state_of(there).expansion)
        scales.append(state_of(there).scale)
    assert len(set(map(id, scales))) > 3
    assert gpu.launched[0] > 0


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_learn_many_makes_the_same_model(gpu, algorithm):
    X, y = some(700)
    here, there = algorithm(C=2.0, gamma=0.3), algorithm(C=2.0, gamma=0.3, device="cuda")
    for model in (here, there):
        model.learn_many(X[:300], y[:300])
        model.learn_many(X[300:], y[300:])
        model.finish()
    assert gpu.launched[0] > 0
    f = here.decision_function_many(X)
    close(LASVM.decision_function_many(there, X), f, rtol=2e-3)  # the tolerance of finish is 1e-3
    assert state_of(there).evaluator.device.works
    assert np.mean(there.predict_many(X) == (f > 0)) > 0.998


def test_features_that_come_in_a_block_count_within_it(gpu):
    """They are wider than every member."""
    rng = np.random.default_rng(4)
    narrow, broad = rng.normal(size=(200, 4)), rng.normal(size=(256, 40))
    models = LASVM(C=2.0, gamma=0.02), LASVM(C=2.0, gamma=0.02, device="cuda")
    for model in models:
        model.learn_many(narrow, narrow[:, 0] > 0)
        model.learn_many(broad, broad[:, 20] > 0)
        s = state_of(model).expansion
        live = live_slots(s)
        K = naive.gram(state_of(model).kernel, *(rows_of(s, live, 40).toarray() for _ in range(2)))
        np.testing.assert_allclose(s.g[live], s.y[live] - K @ s.alpha[live], atol=1e-4)
    close(models[1].decision_function_many(broad), models[0].decision_function_many(broad), rtol=1e-3)


def test_equal_examples_are_never_closer_than_equal(gpu):
    """Rounding makes their squared distance negative, and exp of it more than 1."""
    X = 100.0 * np.random.default_rng(0).normal(size=(50, 30))
    K = RowStore(X, make_kernel("rbf", gamma=1e10), device="cuda").rows(np.arange(50))
    assert K.max() <= 1.0


def test_features_that_no_member_has_add_to_the_distance_only(gpu):
    X, y = some(d=3)
    here, there = LASVM(gamma=0.5), LASVM(gamma=0.5, device="cuda")
    for model in (here, there):
        model.learn_many(X, y)
    wider = np.hstack([X, np.ones((len(X), 2))])
    close(there.decision_function_many(wider), here.decision_function_many(wider))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_go_there_as_they_are(gpu, dtype):
    X, y = some(400, d=7)
    here, there = LASVM(gamma=0.5), LASVM(gamma=0.5, device="cuda")
    for model in (here, there):
        model.learn_many(X[:, :5], y)
        model.learn_many(pd.DataFrame(X, columns=range(7)), y)
    X = X.astype(dtype)
    there.predict_many(X[:1])
    shuffled = pd.DataFrame(X[:, ::-1], columns=range(6, -1, -1))
    for given in (X, np.asfortranarray(X), X[::2], pd.DataFrame(X, columns=range(7)), X[:, :3], shuffled):
        gpu.sent[0] = 0
        close(there.decision_function_many(given), here.decision_function_many(given))
        each = dtype().itemsize if isinstance(given, np.ndarray) else 8  # river makes float64 of a frame's columns
        assert gpu.sent[0] < given.size * each + 8 * there.n_members + 500


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e19])
def test_features_that_are_no_good_are_named(gpu, bad):
    X, y = some(100, d=3)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y)
    X[70, 1] = bad
    with pytest.raises(ValueError, match="feature 1 in row 70 is"):
        model.predict_many(X)
    assert state_of(model).evaluator.device.works


def test_a_digest_and_a_snapshot_do_not_depend_on_the_device(gpu):
    X, y = some(200)
    model = LASVM(gamma=0.5)
    model.learn_many(X, y)
    there = LASVM.from_bytes(model.to_bytes(), device="cuda")
    there.predict_many(X)
    assert there.digest() == model.digest()
    assert LASVM.from_bytes(there.to_bytes()).device == "cuda"


# ----------------------------------------------------------------------------------------------------------- the mirror


def test_the_mirror_follows_by_what_has_changed(gpu):
    X, y = some(800)
    model = LASVMG(C=2.0, gamma=0.3, device="cuda")
    model.learn_many(X[:400], y[:400])
    model.predict_many(X[:10])
    mirror = state_of(model).evaluator.mirror
    known, sent = set(mirror.serials.tolist()), mirror.sent
    model.predict_many(X[:10])
    assert mirror.sent == sent
    for x, label in zip(X[400:420], y[400:420], strict=True):
        model.learn_one(dict(enumerate(x)), label)
    model.forget(model.support_ids[:30])
    model.predict_many(X[:10])
    assert mirror is state_of(model).evaluator.mirror
    assert mirror.sent - sent == len(set(mirror.serials.tolist()) - known) <= 20
    assert_mirrors(mirror, state_of(model).expansion)


@pytest.mark.long
@pytest.mark.parametrize("on_budget", ["remove", "project", "merge"])
def test_the_mirror_is_right_after_any_history(gpu, on_budget):
    rng = np.random.default_rng(3)
    X, y = some(1500)
    here = LASVM(C=5.0, gamma=0.5, budget=60, on_budget=on_budget, window=700)
    mirror, first = Mirror(find_gpu()), 0
    while first < len(X):
        n = int(rng.integers(1, 80))
        here.learn_many(X[first : first + n], y[first : first + n], ids=rng.integers(0, 50, len(X[first : first + n])))
        if rng.random() < 0.3 and here.n_support:
            here.forget(rng.choice(here.support_ids, 3))
        mirror.follow(state_of(here).expansion)
        assert_mirrors(mirror, state_of(here).expansion)
        first += n
    assert mirror.sent < 1500 + 500


def test_an_id_that_is_given_again_is_another_member(gpu):
    X, y = some(50)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y, ids=np.arange(50))
    model.predict_many(X)
    again = model.support_ids[0]
    model.forget(again)
    model.learn_one(dict(enumerate(-X[again])), not y[again], id=int(again))
    model.predict_many(X)
    assert_mirrors(state_of(model).evaluator.mirror, state_of(model).expansion)


def test_members_widen_and_are_compressed_on_the_way(gpu):
    X, y = wide()
    here, there = LASVM(C=2.0, gamma=0.1), LASVM(C=2.0, gamma=0.1, device="cuda")
    for model in (here, there):
        model.learn_many(X[:200, :40], y[:200])
    close(there.decision_function_many(X), here.decision_function_many(X))
    for model in (here, there):
        model.learn_many(X[200:], y[200:])
    close(there.decision_function_many(X), here.decision_function_many(X), rtol=1e-4)
    assert_mirrors(state_of(there).evaluator.mirror, state_of(there).expansion)


def test_copies_leave_the_device_behind(gpu):
    X, y = some(100)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y)
    f = model.decision_function_many(X)
    for other in (copy.copy(model), copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.clone()):  # noqa: S301
        assert state_of(other).evaluator is not state_of(model).evaluator
        assert state_of(other).evaluator.mirror is None
    close(copy.deepcopy(model).decision_function_many(X), f)


# --------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.long
def test_ten_thousand_batches_leave_nothing_behind(gpu):
    X, y = some(60)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y)
    model.predict_many(X)
    before = gpu.live[0]
    q = queries(model, X[:3])
    for _ in range(10_000):
        state_of(model).evaluator.decide(state_of(model).expansion, state_of(model).kernel, q, 0.0)
    assert gpu.live[0] == before
    del model
    assert gpu.live[0] == 0


def test_blocks_are_cut_to_the_memory_that_is_free(gpu):
    X, y = some(3000)
    here = LASVM(gamma=0.5)
    here.learn_many(X[:500], y[:500])
    f, model = here.decision_function_many(X), LASVM.from_bytes(here.to_bytes(), device="cuda")
    gpu.LIMIT[0] = 1_500_000  # the products of all 3000 queries alone take three times as much
    close(model.decision_function_many(X), f)
    assert gpu.largest[0] <= 1_500_000
    assert state_of(model).evaluator.device.works


def test_a_block_that_does_not_fit_is_halved(gpu):
    X, y = some(3000)
    here = LASVM(gamma=0.5)
    here.learn_many(X[:500], y[:500])
    f, model = here.decision_function_many(X), LASVM.from_bytes(here.to_bytes(), device="cuda")
    model.predict_many(X[:1])
    gpu.LIMIT[0], gpu.launched[0] = gpu.live[0] + 1_000_000, 0
    close(model.decision_function_many(X), f)
    assert gpu.launched[0] > 10
    assert state_of(model).evaluator.device.works


def test_without_enough_memory_the_cpu_goes_on(gpu):
    X, y = some(1000)
    here = LASVM(gamma=0.5)
    here.learn_many(X[:500], y[:500])
    model = LASVM.from_bytes(here.to_bytes(), device="cuda")
    gpu.LIMIT[0] = 5000
    with pytest.warns(RuntimeWarning, match="device='cuda' cannot be used .OutOfMemoryError: .*the CPU computes"):
        f = model.decision_function_many(X)
    np.testing.assert_array_equal(f, here.decision_function_many(X))
    assert gpu.live[0] == 0
    np.testing.assert_array_equal(model.decision_function_many(X), f)  # without another warning


def test_a_device_that_fails_while_learning_costs_nothing(gpu, monkeypatch):
    X, y = some(3000)  # The device has nothing to do for the first block, which meets no members.
    here, there = LASVM(gamma=0.5), LASVM(gamma=0.5, device="cuda")
    here.learn_many(X, y)
    monkeypatch.setattr(Mirror, "products", failing(gpu.CUDARuntimeError("cudaErrorLaunchFailure")))
    with pytest.warns(RuntimeWarning, match="cudaErrorLaunchFailure"):
        there.learn_many(X, y)
    assert there.digest() == here.digest()
    assert state_of(there).evaluator.mirror is None


def failing(error):
    """A function that raises this error."""

    def fail(*args, **kwargs):
        raise type(error)(*error.args)  # another one each time: an error keeps the frames that it went through

    return fail


def test_kernels_that_do_not_compile_leave_the_work_to_the_cpu(gpu, monkeypatch):
    X, y = some(200)
    model = LASVM(gamma=0.5, device="auto")
    model.learn_many(X, y)
    monkeypatch.setattr(choice, "AUTO_WORK", 1)
    monkeypatch.setattr(vectors, "weighted_sum", failing(gpu.CompileException("no headers")))
    with pytest.warns(RuntimeWarning, match="device='auto' cannot be used .CompileException: no headers"):
        f = model.decision_function_many(X)
    np.testing.assert_array_equal(f, LASVM.from_bytes(model.to_bytes(), device="cpu").decision_function_many(X))
    assert gpu.released[0] == 2
    assert gpu.live[0] == 0


def test_libraries_that_are_missing_leave_the_work_to_the_cpu(gpu):
    """CuPy loads them when they are first needed, and raises a plain RuntimeError then."""
    X, y = some(200)
    here, there = LASVM(gamma=0.5), LASVM(gamma=0.5, device="cuda")
    for model in (here, there):
        model.learn_many(X, y)
    gpu.missing[0] = "libcublas.so.12"
    with pytest.warns(RuntimeWarning, match="CuPy failed to load libcublas"):
        f = there.decision_function_many(X)
    np.testing.assert_array_equal(f, here.decision_function_many(X))


@pytest.mark.parametrize(
    "text", ["CUBLAS_STATUS_ALLOC_FAILED", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"]
)
def test_memory_that_cuda_itself_lacks_is_memory(gpu, monkeypatch, text):
    X, y = some(1000)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X[:300], y[:300])
    f, original, sizes = model.decision_function_many(X), fake_cupy.DeviceArray.__matmul__, []

    def multiply(a, b):
        sizes.append(a.shape[0])
        return original(a, b) if a.shape[0] <= 200 else failing(gpu.CUBLASError(text))()

    monkeypatch.setattr(fake_cupy.DeviceArray, "__matmul__", multiply)
    close(model.decision_function_many(X), f)
    assert sizes[:3] == [1000, 500, 250]


@pytest.mark.parametrize("error", [RuntimeError("ours"), MemoryError("the host's"), KeyboardInterrupt()])
def test_errors_of_others_are_not_the_devices(gpu, monkeypatch, error):
    X, y = some(200)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y)
    f = model.decision_function_many(X)
    with monkeypatch.context() as patch:
        patch.setattr(vectors, "weighted_sum", failing(error))
        with pytest.raises(type(error)):
            model.decision_function_many(X)
    np.testing.assert_array_equal(model.decision_function_many(X), f)
    assert state_of(model).evaluator.device.works


# -------------------------------------------------------------------------------------------------------------- choices


@pytest.mark.parametrize("name", ["gpu", None, 0])
def test_only_known_devices(name):
    with pytest.raises(ValueError, match='must be "cpu", "cuda" or "auto"'):
        LASVM(device=name)
    with pytest.raises(ValueError, match='must be "cpu", "cuda" or "auto"'):
        RowStore([[1.0]], make_kernel("rbf"), device=name)


def test_without_cupy_a_warning_says_what_to_install(monkeypatch):
    find_gpu.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy", None)  # what Python does for a module that cannot be imported
    X, y = some(100)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y)  # the first block needs no kernel values of members: there are none
    with pytest.warns(RuntimeWarning, match=r"streamsvm\[gpu12\]") as warned:
        model.predict_many(X)
    assert warned[0].filename == __file__  # the caller's line, not one of the engine's
    model.predict_many(X)  # without another warning


def test_auto_says_nothing_where_there_is_no_gpu(monkeypatch):
    monkeypatch.setattr(choice, "AUTO_WORK", 1)
    monkeypatch.setitem(sys.modules, "cupy", None)
    find_gpu.cache_clear()
    X, y = some(100)
    here, model = LASVM(gamma=0.5), LASVM(gamma=0.5, device="auto")
    for one in (here, model):
        one.learn_many(X, y)
    np.testing.assert_array_equal(model.decision_function_many(X), here.decision_function_many(X))


@pytest.mark.parametrize("n_devices", [-1, 0])  # no driver; no device
def test_a_driver_without_a_device_is_no_device(gpu, n_devices):
    gpu.DEVICES[0] = n_devices
    X, y = some(100)
    model = LASVM(gamma=0.5, device="cuda")
    model.learn_many(X, y)
    with pytest.warns(RuntimeWarning, match="CUDA"):
        model.predict_many(X)


def test_auto_takes_the_device_for_large_work_only(gpu):
    X, y = some(2000, d=30)
    model = FullSVM(gamma=0.05, device="auto")
    model.learn_many(X[:1000], y[:1000])
    model.predict_many(X[:1600])  # 1000 x 1600 x 30 products
    assert gpu.launched[0] == 0
    model.predict_many(X)
    assert gpu.launched[0] == 3  # squared norms, a matrix product and a fused sum for all 2000


@pytest.mark.parametrize(("d", "launched"), [(60, False), (70, True)])
def test_auto_learns_there_if_products_are_worth_sending_back(gpu, monkeypatch, d, launched):
    monkeypatch.setattr(choice, "AUTO_WORK", 1e6)
    X, y = some(600, d=d)
    model = FullSVM(gamma=0.01, device="auto")
    model.learn_many(X, y)
    assert (gpu.launched[0] > 0) == launched


def test_auto_leaves_sparse_features_to_the_cpu(gpu, monkeypatch):
    monkeypatch.setattr(choice, "AUTO_WORK", 1)
    X, y = wide()
    model = LASVM(device="auto")
    model.learn_many(X, y)
    model.predict_many(X)
    assert gpu.launched[0] == 0


def test_the_cpu_never_asks_for_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    X, y = some(100)
    model = LASVM()
    model.learn_many(X, y)
    model.predict_many(X)
    smo.solve(X, y, C=1.0)
    assert not state_of(model).evaluator.device.works


# -------------------------------------------------------------------------------------------------------- training sets


@pytest.mark.long
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_are_the_cpus(gpu, kernel, form):
    X, _ = FORMS[form](200)
    parameters = dict(KERNELS[kernel])
    kernel = make_kernel(parameters.pop("kernel"), **parameters)
    here, there = RowStore(X, kernel), RowStore(X, kernel, device="cuda")
    ids = np.array([3, 1, 150, 7])
    np.testing.assert_allclose(there.rows(ids), here.rows(ids), rtol=1e-12, atol=1e-13)
    assert there.rows_computed == 4
    there.prepare()
    assert there.rows_computed == 200
    np.testing.assert_allclose(there.rows(np.arange(200)), here.rows(np.arange(200)), rtol=1e-12, atol=1e-13)
    beta = np.linspace(-1.0, 1.0, 200)
    np.testing.assert_allclose(there.expand(X[:50], beta), here.expand(X[:50], beta), rtol=1e-10, atol=1e-10)
    released = gpu.released[0]
    there.drop_rows()
    assert gpu.released[0] == released + 2
    gc.collect()  # numba keeps frames of callers when it compiles
    assert gpu.live[0] == 0


def test_a_solver_finds_all_rows_if_they_fit(gpu):
    X, y = some(300)
    here, there = (
        smo.solve(X, y, C=5.0, gamma=0.3, options=SolverOptions(device=name, tol=1e-6)) for name in ("cpu", "cuda")
    )
    assert there.rows_computed == 300
    close(there.decision_values, here.decision_values, rtol=1e-5)
    few = RowStore(X, make_kernel("rbf", gamma=0.3), cache_mb=0.3, device="cuda")  # 87 rows
    with pytest.warns(
        RuntimeWarning, match="cache_mb holds only 87 of 300 kernel rows.*cache_mb=2 the device computes them"
    ):
        few.prepare()
    few.prepare()  # without another warning
    assert few.rows_computed == 0
    close(smo.solve(few, y, C=5.0, options=SolverOptions(tol=1e-6)).decision_values, here.decision_values, rtol=1e-5)


def test_cross_validation_and_grids_agree(gpu):
    X, y = some(150, d=4)
    for estimate in (
        lambda name: cross_validate(LASVM(C=5.0, gamma=0.3, tol=1e-5, device=name), X, y, k=5).decision_values,
        lambda name: leave_one_out(LASVM(C=5.0, gamma=0.3, tol=1e-5, device=name), X, y).decision_values,
        lambda name: grid_search(LASVM(tol=1e-5, device=name), X, y, Cs=[0.5, 5.0], gammas=[0.1, 0.5]).scores,
    ):
        gpu.launched[0] = 0
        close(estimate("cuda"), estimate("cpu"), rtol=1e-4)
        assert gpu.launched[0] > 0


@pytest.mark.long
def test_rows_without_enough_memory_come_from_the_cpu(gpu):
    X, y = some(300)
    gpu.LIMIT[0] = 5000
    with pytest.warns(RuntimeWarning, match="OutOfMemoryError"):
        there = smo.solve(X, y, C=5.0, gamma=0.3, options=SolverOptions(device="cuda"))
    np.testing.assert_array_equal(there.dual_coef, smo.solve(X, y, C=5.0, gamma=0.3).dual_coef)
    gc.collect()
    assert gpu.live[0] == 0


# ---------------------------------------------------------------------------------------------------------- who uses it


@pytest.mark.parametrize("selection", [ActiveSelection(pool=59), ActiveSelection(pool=None), AutoActiveSelection()])
def test_selections_choose_the_same(gpu, selection):
    X, y = some(800)
    here = LASVM(C=2.0, gamma=0.3)
    here.learn_many(X[:200], y[:200])
    there = LASVM.from_bytes(here.to_bytes(), device="cuda")
    choices = [selection.choose(ArrayPool(X), model, np.random.default_rng(5)) for model in (here, there)]
    assert choices[0].key == choices[1].key
    assert gpu.launched[0] > 0


def test_a_published_model_predicts_on_the_scorers_device(gpu):
    X, y = some(300)
    model = LASVM(gamma=0.5)
    model.learn_many(X, y)
    served = unpack_model(pack_model(Trained(model)), "cuda")
    close(served.model.decision_function_many(X), model.decision_function_many(X))
    assert gpu.launched[0] > 0


def test_every_learner_has_the_parameter():
    for algorithm in ALGORITHMS:
        assert algorithm(device="auto").device == "auto"
        assert isinstance(state_of(algorithm()).evaluator, Evaluator)
    assert streamsvm.LASVM().device == "cpu"


@pytest.mark.long
def test_the_classifier_of_scikit_learn_has_the_parameter(gpu):
    X, y = some(300)
    here, there = (LASVMClassifier(C=2.0, tol=1e-4, device=name).fit(X, y) for name in ("cpu", "cuda"))
    close(there.decision_function(X), here.decision_function(X), rtol=1e-2)
    assert gpu.launched[0] > 0


def test_several_classes_share_the_device(gpu):
    X, _ = some(700, d=12)
    y = np.argmax(X[:, :3], axis=1)
    here, there = (streamsvm.OneVsRest(LASVM(C=2.0, gamma=0.05, device=name)) for name in ("cpu", "cuda"))
    for model in (here, there):
        model.learn_many(X, y)
    close(there.decision_function_many(X), here.decision_function_many(X), rtol=1e-2)
    assert gpu.launched[0] > 0
    assert_mirrors(there._common.evaluator.mirror, there._union.vectors)
    for other in (copy.deepcopy(there), pickle.loads(pickle.dumps(there))):  # noqa: S301
        assert other._common.evaluator.mirror is None
    again = streamsvm.OneVsRest.from_bytes(there.to_bytes(), device="cpu")
    close(again.decision_function_many(X), there.decision_function_many(X))
    assert again._common.evaluator.device.choice == "cpu"
