"""A shift of a whole training set towards 0, for kernels of distances in single precision.

    ||x - z||^2 = <x, x> + <z, z> - 2 <x, z>

The three terms are rounded in proportion to their size, and the distance may be small beside them.  A distance does not
depend on a constant that is subtracted from all examples; the terms do.  `core.scaling` does the same for a stream.
"""

from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import sparse as sp
from streamsvm.core.inputs import narrow
from streamsvm.core.kernels import RBF_KIND, Kernel
from streamsvm.core.scaling.state import FAR


class Centre(NamedTuple):
    """What is subtracted from some features: their columns, and a number for each."""

    columns: np.ndarray
    values: np.ndarray

    def negative(self) -> "Centre":
        """What undoes it."""
        return Centre(self.columns, -self.values)


def centre_of(X: Any, kernel: Kernel) -> Centre | None:
    """The means of the features that are far from 0; None if no feature is.

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
    X, columns = narrow(X)
    means = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    far = np.square(means) > limit
    if sp.issparse(X):
        far &= 2 * np.bincount(X.indices, minlength=X.shape[1]) >= X.shape[0]
    found = np.flatnonzero(far)
    return Centre(found if columns is None else columns[found], means[found]) if len(found) else None


def centred(X: Any, centre: Centre | None) -> Any:
    """The examples minus the centre, in double precision; X itself without one."""
    if centre is None:
        return X
    if not sp.issparse(X):
        X = np.array(X, np.float64)
        X[:, centre.columns] -= centre.values
        return X
    n, k = X.shape[0], len(centre.columns)
    starts = np.arange(0, n * k + 1, k)
    return sp.csr_matrix(
        X - sp.csr_matrix((np.tile(centre.values, n), np.tile(centre.columns, n), starts), shape=X.shape)
    )
