"""The checks of an expansion's stored arrays before compiled code, which checks no bounds, works on them.

A snapshot's checksum shows damage, but an attacker can compute one.  So these checks trust nothing: no count, no place,
no coefficient.  Arrays that pass are a model that learns, predicts and forgets like any other.
"""

import math

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM
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
)
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, Kernel, self_products
from streamsvm.core.saving.snapshot import LARGEST_COUNT, Arrays, require, require_array, require_finite

LARGEST_BOX = 1e18  # of a merged member; each of its parts has `arguments.LARGEST_BOX` at most
LARGEST_MATRIX = 2**32  # entries; the largest limit for compressing that a snapshot may state
LARGEST_FEATURE = math.sqrt(LARGEST_SQUARED_NORM)
AT_ONCE = 2**16  # entries of a matrix whose squares are in memory
ROUNDING, TINY = 1e-5, 1e-37  # of a squared norm in float32
DTYPES = {"y": np.int8, "ids": np.int64, "born": np.int64, "sq": np.float32}
OF_SLOTS = ("alpha", "g", "lo", "hi", "up", "down", "self_k", *DTYPES)


def validate(arrays: Arrays, kernel: Kernel, n_features: int, n_raw: int) -> None:
    """Check that these are the arrays of an expansion.

    Parameters
    ----------
    arrays
        The arrays, as `dumping.dump` makes them.
    kernel
        The model's kernel.
    n_features, n_raw
        The number of named features, and of unscaled ones that each slot keeps.

    Raises
    ------
    SnapshotError
        If they are not the arrays of an expansion.
    """
    _require_shapes(arrays, n_features, n_raw)
    _require_counts(arrays, n_features)
    _require_coefficients(arrays)
    _require_extremes(arrays)
    _require_examples(arrays, kernel)


def validate_union(arrays: Arrays, kernel: Kernel, n_features: int, n_raw: int, n_seen: int) -> None:
    """Check the arrays of the union of several classes, see `online.union`."""
    _require_shapes(arrays, n_features, n_raw)
    _require_counts(arrays, n_features)
    require_finite(arrays, "hi")
    ids, hi = arrays["ids"], arrays["hi"]
    require(not arrays["alpha"].any() and not arrays["lo"].any(), "vectors of all classes have coefficients")
    require((hi >= 0.0).all(), "a weight is negative")
    require((np.diff(ids) > 0).all(), "the numbers of the vectors do not rise")
    require(not len(ids) or (ids[0] >= 0 and ids[-1] < n_seen), f"a vector's number is not below n_seen={n_seen}")
    _require_examples(arrays, kernel)


def _require_shapes(arrays: Arrays, n_features: int, n_raw: int) -> None:
    require("y" in arrays and arrays["y"].ndim == 1, "the labels 'y' are missing")
    n = len(arrays["y"])
    for name in OF_SLOTS:
        require_array(arrays, name, DTYPES.get(name, np.float64), (n,))
    require_array(arrays, "starts", np.int64, (n + 1,))
    require_array(arrays, "extremes", np.float64, (2,))
    require_array(arrays, "losses", np.float64, (4,))
    if n_raw:
        raw = require_array(arrays, "raw", np.float64, (n, n_raw))
        require((np.abs(raw) < LARGEST_FEATURE).all(), "an unscaled feature is too large")
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
    require(0 < counts[WIDE] <= LARGEST_MATRIX, f"it compresses a matrix of {counts[WIDE]} entries")
    require(all(count <= n for count in counts[POSITIVE : NEGATIVE + 1]), "it counts too many vectors")
    counts[SLOT_UP] = counts[SLOT_DOWN] = 0  # -1 stands for none of them
    require(min(counts) >= 0 and max(counts) <= LARGEST_COUNT, "a count is negative or too large")


def _require_coefficients(arrays: Arrays) -> None:
    require_finite(arrays, "alpha", "g", "lo", "hi", "losses")
    alpha, lo, hi, y = arrays["alpha"], arrays["lo"], arrays["hi"], arrays["y"]
    require(((np.abs(y) == 1) | (y == 0)).all(), "a label is neither -1 nor 1")
    require(((lo <= 0.0) & (hi >= 0.0) & ((lo == 0.0) | (hi == 0.0))).all(), "a box does not begin at 0")
    require(((lo <= alpha) & (alpha <= hi)).all(), "a coefficient is outside its box")
    require((hi - lo <= LARGEST_BOX).all(), "a box is too large")
    require(not np.any((y == 0) & (lo < hi)), "a hole has a box")
    require((np.abs(arrays["g"]) < FORBIDDEN / 2).all(), "a gradient is too large")
    require((np.abs(arrays["born"].astype(np.float64)) <= LARGEST_COUNT).all(), "an example's age is too large")
    require((arrays["up"] == np.where(alpha < hi, 0.0, -FORBIDDEN)).all(), "'up' does not fit the boxes")
    require((arrays["down"] == np.where(alpha > lo, 0.0, FORBIDDEN)).all(), "'down' does not fit the boxes")


def _require_extremes(arrays: Arrays) -> None:
    ends = ((SLOT_UP, G_UP, "up", -FORBIDDEN), (SLOT_DOWN, G_DOWN, "down", FORBIDDEN))
    for count, extreme, penalty, of_none in ends:
        slot, g, may_move = int(arrays["counts"][count]), arrays["extremes"][extreme], arrays[penalty] == 0.0
        require(-1 <= slot < len(may_move), f"the extreme slot {slot} is not among {len(may_move)}")
        if slot >= 0:
            require(may_move[slot] and g == arrays["g"][slot], f"slot {slot} is not extreme")
        else:
            require(not may_move.any() and g == of_none, f"members may go {penalty}, but none is extreme")


def _require_examples(arrays: Arrays, kernel: Kernel) -> None:
    """Check the features, squared norms and kernel values k(x, x) of all slots."""
    starts, storage = arrays["starts"], int(arrays["counts"][STORAGE])
    require(starts[0] == 0 and (starts[1:] >= starts[:-1]).all(), "'starts' does not rise from 0")
    sums = _compressed_sums(arrays) if storage == COMPRESSED else _matrix_sums(arrays, storage)
    sq = arrays["sq"].astype(np.float64)
    require(((sq >= 0.0) & (sq < LARGEST_SQUARED_NORM)).all(), "a squared norm is negative or too large")
    require((np.abs(sq - sums) <= ROUNDING * sums + TINY).all(), "'sq' does not fit the features")
    self_k, expected = arrays["self_k"], self_products(kernel, sq)
    scale = self_products(kernel._replace(coef0=abs(kernel.coef0)), sq)  # before the terms of k cancel
    require((np.abs(self_k - expected) <= 1e-9 * scale).all(), "'self_k' does not fit the features and the kernel")
    require((np.abs(self_k) <= LARGEST_KERNEL_VALUE).all(), "a kernel value is too large")


def _compressed_sums(arrays: Arrays) -> np.ndarray:
    """Check the compressed features; the sum of squares over the features of each slot."""
    starts, nnz = arrays["starts"], int(arrays["starts"][-1])
    indices = require_array(arrays, "sparse_indices", np.int32, (nnz,))
    values = require_array(arrays, "sparse_values", np.float32, (nnz,))
    require_finite(arrays, "sparse_values")
    width = arrays["counts"][WIDTH]
    require(((indices >= 0) & (indices < width)).all(), f"a feature is not among {width}")
    slots = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    require(((np.diff(indices) > 0) | (np.diff(slots) > 0)).all(), "the features of a slot are not in order")
    return np.bincount(slots, values.astype(np.float64) ** 2, len(starts) - 1)


def _matrix_sums(arrays: Arrays, storage: int) -> np.ndarray:
    """Check the feature-major matrix; the sum of squares over the features of each slot."""
    width, n = int(arrays["counts"][WIDTH]), len(arrays["y"])
    rows = len(arrays["features"]) if "features" in arrays and arrays["features"].ndim == 2 else width
    require(width <= rows <= arrays["n_features"][0], f"the matrix has {rows} rows for {width} features")
    features = require_array(arrays, "features", np.float32 if storage == COLUMNS else np.uint8, (rows, n))
    require_finite(arrays, "features")
    require(storage == COLUMNS or features.max(initial=0) <= 1, "a bit is neither 0 nor 1")
    require(not features[width:].any(), f"a feature is not among {width}")
    sums, nnz = np.zeros(n), np.zeros(n, np.int64)
    at_once = max(1, AT_ONCE // max(1, n))
    for d in range(0, width, at_once):
        part = features[d : min(d + at_once, width)]
        sums += np.square(part, dtype=np.float64).sum(axis=0)
        nnz += np.count_nonzero(part, axis=0)
    require((nnz == arrays["starts"][1:] - arrays["starts"][:-1]).all(), "'starts' does not fit the features")
    return sums
