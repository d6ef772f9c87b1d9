"""Queries made of matrices, as the engine makes them of what the user gives."""

import numpy as np
import scipy.sparse as sp

from streamsvm.core.blocks import queries_of


def from_dense(X, columns):
    """The rows of a matrix whose input d is the feature columns[d]."""
    n, d = X.shape
    return queries_of(np.arange(n + 1) * d, np.tile(columns, n), np.array(X, np.float64).ravel())


def from_sparse(S, columns):
    """The same of a sparse matrix."""
    S = sp.csr_matrix(S)
    return queries_of(S.indptr.astype(np.int64), columns[S.indices], S.data.astype(np.float64))


def queries(model, X):
    """Examples as the kernel of a model that does not scale sees them."""
    ((_, raw, _),) = model._features.raw_batches(X, learning=False)
    return queries_of(raw.indptr, raw.columns, raw.values)
