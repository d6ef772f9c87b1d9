"""The compiled checks of stored numbers against their slow twins, on arrays with one or two numbers spoiled."""

import fuzz_snapshot
import naive
import numpy as np
import pytest
from states import state_of

from streamsvm import LASVM
from streamsvm.core import storage
from streamsvm.core.expansion import COMPRESSED, SLOTS, STORAGE
from streamsvm.core.saving import faults
from streamsvm.core.saving.rows import require_rows
from streamsvm.core.saving.scale import RANGES, require_scale
from streamsvm.core.saving.snapshot import SnapshotError
from streamsvm.core.scaling.state import copy as copy_of_scale

REALS = (0.0, 0.5, -1.0, 3.0, 1e10, 5e29, 1e30, -1e30, 1e37, 1e300, np.nan, np.inf, -np.inf)
NUMBERS = (0, 1, -1, 2, 3, 7, 2**40, 2**62, 2**62 + 2**60, -(2**63))
SPOILED = ("alpha", "g", "lo", "hi", "up", "down", "y", "born", "sq", "self_k", "raw", "losses")
OF_SCALE = (*RANGES, "varied", "factor", "place", "feature")


def spoil(rng, array):
    """Another number in a place of the array."""
    values = REALS if array.dtype.kind == "f" else [n for n in NUMBERS if np.iinfo(array.dtype).min <= n]
    with np.errstate(over="ignore"):
        array.flat[rng.integers(array.size)] = np.array(values[rng.integers(len(values))]).astype(array.dtype)


def kinds():
    real, binary = fuzz_snapshot.problem(80, 5), fuzz_snapshot.problem(80, 12, binary=True)
    learned = fuzz_snapshot.learned
    return {
        "columns": learned(LASVM(C=10.0, gamma=0.5), *real),
        "scaled": learned(LASVM(C=10.0), *real),
        "bits": learned(LASVM(C=10.0, gamma=0.1), *binary),
        "compressed": fuzz_snapshot.compressed_model(),
        "polynomial": learned(LASVM(C=1.0, kernel="poly", gamma=0.5, degree=3, coef0=-1.0), *real),
        "linear": learned(LASVM(C=1.0, kernel="linear"), *real),
        "sigmoid": learned(LASVM(C=1.0, kernel="sigmoid", gamma=0.1, coef0=-0.5), *real),
        "empty": LASVM(),
    }


KINDS = kinds()


def told_by(check, *given):
    """What a check finds, if anything."""
    try:
        check(*given)
    except SnapshotError as error:
        return [str(error).partition("invalid: ")[2]]
    return []


def first_of(messages, texts):
    return texts.index(messages[0]) if messages else len(texts)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_wrong_with_an_expansion_is_what_the_twin_finds(kind):
    model, rng = KINDS[kind], np.random.default_rng(0)
    features = (
        {"sparse_values"} if state_of(model).expansion.counts[STORAGE] == COMPRESSED else {"columns", "bits", "starts"}
    )
    for turn in range(400):
        s = storage.copy(state_of(model).expansion)
        used = [getattr(s, name) for name in (*SPOILED, *features)]
        own = [array[..., : s.counts[SLOTS]] if array.shape[-1] == len(s.alpha) else array for array in used]
        for _ in range(turn % 3):
            array = own[rng.integers(len(own))]
            if array.size:
                spoil(rng, array)
        with np.errstate(all="ignore"):
            expected = naive.faults_of_expansion(s, naive.kernel_of(model))
        found = min(faults.fault_of_coefficients(s), faults.fault_of_examples(s, naive.kernel_of(model)))
        assert found == first_of(expected, faults.FAULTS), (turn, expected, (*faults.FAULTS, "sound")[found])


def test_what_is_wrong_with_a_scale_is_what_the_twin_finds():
    rng = np.random.default_rng(1)
    state = state_of(fuzz_snapshot.learned(LASVM(C=10.0), *fuzz_snapshot.late_feature())).scale.state
    told = set()
    for turn in range(2000):
        c = copy_of_scale(state)
        for _ in range(turn % 3):
            name = OF_SCALE[rng.integers(len(RANGES))] if rng.random() < 0.7 else OF_SCALE[turn % 4 - 4]
            spoil(rng, getattr(c, name))
        with np.errstate(all="ignore"):
            expected = naive.faults_of_scale(c)
        found = told_by(require_scale, c)
        assert found == expected[:1], (turn, expected)
        told |= set(found)
    assert len(told) > 12


def test_what_is_wrong_with_rows_is_what_the_twin_finds():
    rng, told = np.random.default_rng(2), set()
    for turn in range(1000):
        starts = np.append(0, np.cumsum(rng.integers(0, 4, size=5)))
        lengths = np.diff(starts)
        columns = np.concatenate([np.sort(rng.permutation(6)[:n]) for n in lengths] + [np.zeros(0, int)])
        values = rng.normal(size=len(columns))
        for _ in range(turn % 3):
            array = (starts, columns, values)[rng.integers(3)]
            if array.size:
                spoil(rng, array)
        if len(columns) != starts[-1]:
            continue  # `require_array` refuses it
        arrays = {"starts": starts, "columns": columns, "values": values}
        with np.errstate(all="ignore"):
            expected = naive.faults_of_rows(starts, columns, values, 6)
        found = told_by(require_rows, arrays, 5, 6)
        assert found == expected[:1], (turn, expected)
        told |= set(found)
    assert len(told) == 4
