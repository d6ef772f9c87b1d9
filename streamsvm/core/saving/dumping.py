"""An expansion as the arrays of a snapshot, and back."""

from collections.abc import Mapping

import numpy as np

from streamsvm.core.expansion import (
    APPENDED,
    CACHE_BYTES,
    COLUMNS,
    COMPRESSED,
    HAND,
    ROWS,
    SLOTS,
    STORAGE,
    WIDTH,
    Expansion,
)
from streamsvm.core.kernels import Kernel
from streamsvm.core.saving.integrity import require_coefficients, require_examples, require_layout, require_union
from streamsvm.core.storage.features import list_features
from streamsvm.core.storage.members import SAVED, doubled, empty, feature_matrix, slots_for


def dump(s: Expansion, n_features: int, n_places: int) -> dict[str, np.ndarray]:
    """The arrays of an expansion, with its holes but without its cached rows; `restore` reads them back.

    They show what the expansion holds as long as it stays as it is.

    Parameters
    ----------
    s
        The expansion.
    n_features, n_places
        The number of named features of the model, and of those that have a place in its scale.
    """
    n, counts = int(s.counts[SLOTS]), s.counts.copy()
    counts[APPENDED] = 0  # serial numbers are not part of the model
    arrays = {
        **{name: getattr(s, name)[:n] for name in SAVED},
        "n_features": np.array([n_features]),
        "starts": s.starts[: n + 1],
        "counts": counts,
        "extremes": s.extremes,
        "losses": s.losses,
    }
    if s.raw.shape[1]:
        arrays["raw"] = s.raw[:n, :n_places]
    if s.counts[STORAGE] == COMPRESSED:
        return arrays | {name: getattr(s, name)[: s.starts[n]] for name in ("sparse_indices", "sparse_values")}
    counts[WIDTH] = width = min(int(s.counts[WIDTH]), n_features, len(feature_matrix(s)))
    return arrays | {"features": feature_matrix(s)[:width, :n]}


def restore(
    arrays: Mapping[str, np.ndarray],
    cache_bytes: int,
    kernel: Kernel,
    n_features: int,
    n_raw: int = 0,
    n_seen: int | None = None,
) -> Expansion:
    """Make an expansion from the arrays of `dump`.

    Parameters
    ----------
    arrays
        The arrays, from a snapshot.
    cache_bytes
        Memory for kernel rows.
    kernel
        The model's kernel.
    n_features, n_raw
        The number of named features of the model, and of unscaled ones that it keeps of each member.
    n_seen
        For the union of several classes: the number of examples that it has learned.  None: these are the arrays of
        one model.

    Raises
    ------
    SnapshotError
        If the arrays are not those of an expansion.
    """
    n = len(arrays["y"]) if "y" in arrays else 0
    arrays = {"born": np.zeros(n, np.int64), "losses": np.zeros(4), **arrays}  # the first snapshots lack these
    require_layout(arrays, n_features, n_raw)
    s = _filled(arrays, cache_bytes, n_features, n_raw)
    if n_seen is None:
        require_coefficients(s, arrays)
    else:
        require_union(arrays, n_seen)
    require_examples(s, kernel)
    return s


def _filled(arrays: Mapping[str, np.ndarray], cache_bytes: int, n_features: int, n_raw: int) -> Expansion:
    """The expansion with these arrays, of which only the layout was checked."""
    n, storage = len(arrays["y"]), arrays["counts"][STORAGE]
    n_rows = 0 if storage == COMPRESSED else doubled(1, len(arrays["features"]))
    room = doubled(1, n_features), n_rows
    s = empty(cache_bytes, slots_for(n), *room, binary=bool(storage != COLUMNS), n_raw=n_raw)
    for name in SAVED:
        getattr(s, name)[:n] = arrays[name]
    s.serial[:n] = np.arange(n)
    s.starts[: n + 1] = arrays["starts"]
    s.counts[: len(arrays["counts"])] = arrays["counts"]  # older snapshots have fewer
    s.counts[APPENDED] = n
    s.counts[ROWS] = s.counts[HAND] = 0
    s.counts[CACHE_BYTES] = cache_bytes
    s.extremes[:] = arrays["extremes"]
    s.losses[:] = arrays["losses"]
    if n_raw:
        s.raw[:n] = arrays["raw"]
    if storage != COMPRESSED:
        feature_matrix(s)[: len(arrays["features"]), :n] = arrays["features"]
        return s
    nonzeros = {name: arrays[name].copy() for name in ("sparse_indices", "sparse_values")}
    return list_features(
        s._replace(bits=np.zeros((0, 0), np.uint8), query=np.zeros(len(s.member_indices), np.float32), **nonzeros)
    )
