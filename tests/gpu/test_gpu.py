"""On a real device: what tests/core/device/test_device.py holds with a stand-in, and what only a device can show."""

import subprocess
import sys

import numpy as np
import pytest
from states import state_of

from streamsvm import LASVM, FullSVM
from streamsvm.batch import SolverOptions, smo
from streamsvm.batch.kernels.rows import RowStore
from streamsvm.core.device.gpu import CHUNK_BYTES
from streamsvm.core.kernels import NAMES, make_kernel
from streamsvm.validation import cross_validate, grid_search, leave_one_out

KERNELS = {name: {"kernel": name, "gamma": 0.05} for name in NAMES} | {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.1, "coef0": 1.0, "degree": 3},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.02, "coef0": -0.5},
}


def some(n=3000, d=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n)) > 0


def close(a, b, rtol=1e-4):
    np.testing.assert_allclose(a, b, rtol=0, atol=rtol * float(np.abs(b).max()))


def pair(n=1000, **parameters):
    """A model on the CPU, and the same on the device."""
    X, y = some(n)
    here = LASVM(C=2.0, **(parameters or KERNELS["rbf"]))
    here.learn_many(X, y)
    return here, LASVM.from_bytes(here.to_bytes(), device="cuda")


@pytest.mark.parametrize("kernel", KERNELS)
def test_decision_values_are_the_cpus(gpu, kernel):
    here, there = pair(**KERNELS[kernel])
    X, _ = some(20_000, seed=1)
    close(there.decision_function_many(X), here.decision_function_many(X))
    assert state_of(there).evaluator.mirror is not None


def test_learn_many_makes_the_same_model(gpu):
    X, y = some(5000, d=100)
    here, there = (LASVM(C=2.0, gamma=0.01, device=device) for device in ("cpu", "cuda"))
    for model in (here, there):
        model.learn_many(X, y)
        model.finish(1e-5)
    close(there.decision_function_many(X), here.decision_function_many(X), rtol=1e-2)
    assert np.mean(there.predict_many(X) == here.predict_many(X)) > 0.999
    assert state_of(there).evaluator.mirror is not None


def test_the_mirror_follows(gpu):
    X, y = some()
    model = FullSVM(C=2.0, gamma=0.05, device="cuda")
    model.learn_many(X[:2000], y[:2000])
    model.predict_many(X[:1])
    sent = state_of(model).evaluator.mirror.sent
    model.learn_many(X[2000:2100], y[2000:2100])
    model.forget(model.support_ids[:50])
    here = FullSVM.from_bytes(model.to_bytes(), device="cpu")
    close(model.decision_function_many(X), here.decision_function_many(X))
    assert state_of(model).evaluator.mirror.sent <= sent + 100


def test_training_sets_agree(gpu):
    X, y = some(400, d=4)
    kernel = make_kernel("rbf", gamma=0.3)
    here, there = RowStore(X, kernel), RowStore(X, kernel, device="cuda")
    np.testing.assert_allclose(there.rows(range(400)), here.rows(range(400)), rtol=1e-10, atol=1e-12)
    for estimate in (
        lambda device: (
            smo.solve(X, y, C=5.0, gamma=0.3, options=SolverOptions(tol=1e-6, device=device)).decision_values
        ),
        lambda device: cross_validate(LASVM(C=5.0, gamma=0.3, tol=1e-5, device=device), X, y, k=5).decision_values,
        lambda device: leave_one_out(LASVM(C=5.0, gamma=0.3, tol=1e-5, device=device), X, y).decision_values,
        lambda device: grid_search(LASVM(device=device), X, y, Cs=[0.5, 5.0], gammas=[0.1, 0.5]).scores,
    ):
        close(estimate("cuda"), estimate("cpu"))


def test_ten_thousand_batches_leave_nothing_behind(gpu):
    _, there = pair()
    X, _ = some(64, seed=1)
    for _ in range(100):
        there.decision_function_many(X)
    pool = gpu.xp.get_default_memory_pool()
    used, held = pool.used_bytes(), pool.total_bytes()
    for _ in range(10_000):
        there.decision_function_many(X)
    assert pool.used_bytes() == used
    assert pool.total_bytes() <= held + (1 << 20)


def test_what_one_process_holds_is_bounded(gpu):
    """Others may want the device too."""
    here, there = pair(5000)
    X, _ = some(100_000, seed=1)
    gpu.release()
    before = gpu.xp.get_default_memory_pool().total_bytes()
    close(there.decision_function_many(X), here.decision_function_many(X))
    assert gpu.xp.get_default_memory_pool().total_bytes() - before < 2 * CHUNK_BYTES


def test_out_of_memory_is_survived(gpu):
    here, there = pair()
    X, _ = some(50_000, seed=1)
    there.decision_function_many(X[:1])
    gpu.release()
    free = gpu.xp.cuda.runtime.memGetInfo()[0]
    hog = gpu.xp.zeros(max(0, free - (96 << 20)), np.uint8)  # another user of the device
    try:
        close(there.decision_function_many(X), here.decision_function_many(X))
    finally:
        del hog
        gpu.release()


PROCESS = """
import numpy as np, sys
from streamsvm import LASVM
rng = np.random.default_rng(0)
X = rng.normal(size=(20000, 20))
model = LASVM.load(sys.argv[1])
for _ in range(20):
    f = model.decision_function_many(X)
assert model._state.evaluator.mirror is not None
np.save(sys.argv[2], f)
"""


def test_two_processes_share_a_device(gpu, tmp_path):
    here, there = pair()
    there.save(tmp_path / "model")
    command = [sys.executable, "-W", "error", "-c", PROCESS, str(tmp_path / "model")]
    processes = [subprocess.Popen([*command, str(tmp_path / name)]) for name in ("a.npy", "b.npy")]
    assert [process.wait(timeout=300) for process in processes] == [0, 0]
    f = here.decision_function_many(np.random.default_rng(0).normal(size=(20000, 20)))
    for name in ("a.npy", "b.npy"):
        close(np.load(tmp_path / name), f)
