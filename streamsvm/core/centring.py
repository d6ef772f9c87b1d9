"""A shift of a whole training set towards 0, for kernels of distances in single precision.

    ||x - z||^2 = <x, x> + <z, z> - 2 <x, z>

The three terms are rounded in proportion to their size, and the distance may be small beside them.  A distance does not
depend on a constant that is subtracted from all examples; the terms do.  `core.scaling` does the same for a stream.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from streamsvm.core.kernels import RBF_KIND, Kernel
from streamsvm.core.scaling import FAR


def centre_of(X: Any, kernel: Kernel) -> np.ndarray | None:
    """The means of the features that are far from 0, and 0 for all others, (D,); None if no feature is far.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, or compressed rows, of which only features that half of the rows have count.
    kernel
        The kernel; only the RBF kernel depends on distances alone.
    """
    values = X.data if sp.issparse(X) else X
    limit = FAR / kernel.gamma
    if kernel.kind != RBF_KIND or not values.size or max(-float(values.min()), float(values.max())) ** 2 <= limit:
        return None
    means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    far = np.square(means) > limit
    if sp.issparse(X):
        far &= 2 * np.bincount(X.indices, minlength=X.shape[1]) >= X.shape[0]
    return np.where(far, means, 0.0) if far.any() else None


def centred(X: Any, centre: np.ndarray | None) -> Any:
    """The examples minus the centre, in double precision; X itself without one."""
    if centre is None:
        return X
    if not sp.issparse(X):
        return X - centre
    columns, n = np.flatnonzero(centre), X.shape[0]
    starts = np.arange(0, n * len(columns) + 1, len(columns))
    return sp.csr_matrix(X - sp.csr_matrix((np.tile(centre[columns], n), np.tile(columns, n), starts), shape=X.shape))
