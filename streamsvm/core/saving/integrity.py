"""The checks of an expansion's stored arrays before compiled code, which checks no bounds, works on them.

A snapshot's checksum shows damage, but an attacker can compute one.  So these checks trust nothing: no count, no place,
no coefficient.  Arrays that pass are a model that learns, predicts and forgets like any other.

First comes the layout of the arrays: what it takes to fill an expansion with them.  The numbers are checked in the
filled expansion, by the compiled code of `faults`.
"""

import numpy as np

from streamsvm.core.expansion import (
    BITS,
    COLUMNS,
    COMPRESSED,
    COUNTS,
    FORBIDDEN,
    G_DOWN,
    G_UP,
    HOLES,
    NEGATIVE,
    POSITIVE,
    SLOT_DOWN,
    SLOT_UP,
    SLOTS,
    STORAGE,
    WIDE,
    WIDTH,
    Expansion,
)
from streamsvm.core.kernels import Kernel
from streamsvm.core.saving.faults import FAULTS, SOUND, fault_of_coefficients, fault_of_examples
from streamsvm.core.saving.rows import require_places
from streamsvm.core.saving.snapshot import LARGEST_COUNT, Arrays, every, require, require_array, require_finite

DTYPES: dict[str, np.dtype] = {
    **dict.fromkeys(("alpha", "g", "lo", "hi", "up", "down", "self_k"), np.dtype(np.float64)),
    "y": np.dtype(np.int8),
    "ids": np.dtype(np.int64),
    "born": np.dtype(np.int64),
    "sq": np.dtype(np.float32),
}  # of the arrays with a number for each slot

# -------------------------------------------------------------------------------------------------- before it is filled


def require_layout(arrays: Arrays, n_features: int, n_raw: int) -> None:
    """Check the types, the lengths and the counts of an expansion's arrays, and the places of compressed features.

    Parameters
    ----------
    arrays
        The arrays, as `dumping.dump` makes them.
    n_features, n_raw
        The number of named features, and of unscaled ones that each slot keeps.

    Raises
    ------
    SnapshotError
        If an expansion cannot be filled with them.
    """
    _require_shapes(arrays, n_features, n_raw)
    _require_counts(arrays, n_features)
    starts = arrays["starts"]
    require(starts[0] == 0 and every(starts[1:] >= starts[:-1]), "'starts' does not rise from 0")
    if arrays["counts"][STORAGE] == COMPRESSED:
        _require_compressed(arrays)
    else:
        _require_matrix(arrays)


def _require_shapes(arrays: Arrays, n_features: int, n_raw: int) -> None:
    require("y" in arrays and arrays["y"].ndim == 1, "the labels 'y' are missing")
    n = len(arrays["y"])
    for name, dtype in DTYPES.items():
        require_array(arrays, name, dtype, (n,))
    require_array(arrays, "starts", np.int64, (n + 1,))
    require_array(arrays, "extremes", np.float64, (2,))
    require_array(arrays, "losses", np.float64, (4,))
    if n_raw:
        require_array(arrays, "raw", np.float64, (n, n_raw))
    else:
        require("raw" not in arrays, "it has unscaled features, but no scale")
    stored = require_array(arrays, "n_features", np.int64, (1,))[0]
    require(stored == n_features, f"it has {stored} features, but {n_features} names of features")


def _require_counts(arrays: Arrays, n_features: int) -> None:
    n = len(arrays["y"])
    counts = require_array(arrays, "counts", np.int64, (None,)).tolist()
    require(WIDE < len(counts) <= COUNTS, f"'counts' has {len(counts)} numbers; {COUNTS} are needed")
    holes = n - int(np.count_nonzero(arrays["y"]))
    require(counts[SLOTS] == n, f"it states {counts[SLOTS]} slots and has {n}")
    require(counts[HOLES] == holes, f"it states {counts[HOLES]} holes and has {holes}")
    require(BITS <= counts[STORAGE] <= COMPRESSED, f"its storage has the unknown number {counts[STORAGE]}")
    require(0 <= counts[WIDTH] <= n_features, f"its members have {counts[WIDTH]} features of {n_features}")
    require(counts[WIDE] > 0, f"it compresses a matrix of {counts[WIDE]} entries")
    require(all(count <= n for count in counts[POSITIVE : NEGATIVE + 1]), "it counts too many vectors")
    counts[SLOT_UP] = counts[SLOT_DOWN] = 0  # -1 stands for none of them
    require(min(counts) >= 0 and max(counts) <= LARGEST_COUNT, "a count is negative or too large")


def _require_compressed(arrays: Arrays) -> None:
    starts, nnz = arrays["starts"], int(arrays["starts"][-1])
    indices = require_array(arrays, "sparse_indices", np.int32, (nnz,))
    require_array(arrays, "sparse_values", np.float32, (nnz,))
    require_finite(arrays, "sparse_values")
    require_places(starts, indices, int(arrays["counts"][WIDTH]), "a slot")


def _require_matrix(arrays: Arrays) -> None:
    width, n = int(arrays["counts"][WIDTH]), len(arrays["y"])
    rows = len(arrays["features"]) if "features" in arrays and arrays["features"].ndim == 2 else width
    require(width <= rows <= arrays["n_features"][0], f"the matrix has {rows} rows for {width} features")
    require_array(arrays, "features", np.float32 if arrays["counts"][STORAGE] == COLUMNS else np.uint8, (rows, n))


# --------------------------------------------------------------------------------------------------- after it is filled


def require_coefficients(s: Expansion, arrays: Arrays) -> None:
    """Check the coefficients, boxes and gradients of an expansion that was filled with these arrays."""
    _require_sound(fault_of_coefficients(s))
    ends = ((SLOT_UP, G_UP, "up", -FORBIDDEN), (SLOT_DOWN, G_DOWN, "down", FORBIDDEN))
    for count, extreme, penalty, of_none in ends:
        slot, g, may_move = int(arrays["counts"][count]), arrays["extremes"][extreme], arrays[penalty] == 0.0
        require(-1 <= slot < len(may_move), f"the extreme slot {slot} is not among {len(may_move)}")
        if slot >= 0:
            require(may_move[slot] and g == arrays["g"][slot], f"slot {slot} is not extreme")
        else:
            require(not may_move.any() and g == of_none, f"members may go {penalty}, but none is extreme")


def require_union(arrays: Arrays, n_seen: int) -> None:
    """Check the coefficients, weights and numbers of the union of several classes, see `online.union`."""
    require_finite(arrays, "hi")
    ids, hi = arrays["ids"], arrays["hi"]
    require(not arrays["alpha"].any() and not arrays["lo"].any(), "vectors of all classes have coefficients")
    require((hi >= 0.0).all(), "a weight is negative")
    require((np.diff(ids) > 0).all(), "the numbers of the vectors do not rise")
    require(not len(ids) or (ids[0] >= 0 and ids[-1] < n_seen), f"a vector's number is not below n_seen={n_seen}")


def require_examples(s: Expansion, kernel: Kernel) -> None:
    """Check the features, squared norms and kernel values k(x, x) of all slots."""
    _require_sound(fault_of_examples(s, kernel))


def _require_sound(fault: int) -> None:
    require(fault == SOUND, (*FAULTS, "")[fault])
