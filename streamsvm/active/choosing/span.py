"""The distance of an example from the span of the labelled examples, in the feature space of the kernel.

    sigma(x)^2 = k(x, x) - k' (K + lambda I)^-1 k,       lambda = 0.01 of the mean k(z, z)

is the squared distance of x from the span of the labelled examples z.  lambda keeps the matrix regular if examples
repeat.  The Cholesky factor L of K + lambda I grows by one row for each label: then sigma^2 = k(x, x) - |L^-1 k|^2.
"""

import numpy as np

RIDGE = 0.01  # lambda


class Factor:
    """The factor of the labelled examples' kernel matrix."""

    def __init__(self) -> None:
        self._n = 0
        self._L = np.zeros((1, 1))  # with room for examples

    def __len__(self) -> int:
        return self._n

    def add(self, k: np.ndarray, own: float) -> None:
        """Add an example.

        Parameters
        ----------
        k
            Its kernel values with the examples before it, (n,).
        own
            Its kernel value with itself.
        """
        n = self._n
        if n == len(self._L):
            self._L = np.pad(self._L, ((0, n), (0, n)))
        ridge = RIDGE * max(own, np.finfo(float).tiny)
        row = self._solved(k)
        self._L[n, :n] = row
        self._L[n, n] = np.sqrt(max(own + ridge - row @ row, ridge))
        self._n += 1

    def distances(self, k: np.ndarray, own: np.ndarray) -> np.ndarray:
        """sigma of other examples as a share of their length, from 0 to 1.

        Parameters
        ----------
        k
            Their kernel values with the labelled examples, (n, m).
        own
            Their kernel values with themselves, (m,).
        """
        own = np.maximum(own, np.finfo(float).tiny)
        explained = np.add.reduce(self._solved(k) ** 2, axis=0)
        return np.sqrt(np.clip(1.0 - explained / own, 0.0, 1.0))

    def _solved(self, k: np.ndarray) -> np.ndarray:
        from scipy.linalg import solve_triangular  # loads as long as numpy; only some learners need it

        n = self._n
        return np.asarray(solve_triangular(self._L[:n, :n], k, lower=True, check_finite=False)) if n else k
