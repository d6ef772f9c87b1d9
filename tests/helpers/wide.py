"""Examples in far more columns than there are entries, and the same ones without the empty columns."""

import numpy as np
import scipy.sparse as sp

WIDTH = 2**40  # an array of that many numbers fits into no memory


def matrices(n=40, d=12, seed=0):
    """Compressed rows with `WIDTH` columns, the same with d columns, and labels."""
    rng = np.random.default_rng(seed)
    narrow = sp.random(n, d, 0.3, format="csr", random_state=rng)
    narrow.data -= 0.5
    columns = np.sort(rng.integers(0, WIDTH, d))
    indices, starts = columns[narrow.indices], narrow.indptr.astype(np.int64)
    return sp.csr_matrix((narrow.data, indices, starts), shape=(n, WIDTH)), narrow, np.arange(n) % 2
