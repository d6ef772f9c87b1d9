"""scipy.sparse, imported with its first use: it takes as long to load as numpy.

A matrix can be sparse only if scipy.sparse is loaded, so asking whether it is loads nothing.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scipy.sparse import coo_matrix as coo_matrix
    from scipy.sparse import csr_matrix as csr_matrix
    from scipy.sparse import vstack as vstack


def issparse(X: Any) -> bool:
    """Whether X is a sparse matrix or array of scipy."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and loaded.issparse(X)


if not TYPE_CHECKING:

    def __getattr__(name):
        """What scipy.sparse has under this name."""
        return getattr(import_module("scipy.sparse"), name)
