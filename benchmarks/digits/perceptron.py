"""The averaged perceptron with an RBF kernel, which Figures 1 and 2 of the LASVM paper have beside LASVM.

Source: Freund, Schapire, "Large margin classification using the perceptron algorithm", Machine Learning 37 (1999).  Its
coefficients are the mean of those that the perceptron had after each example so far.  There is no bias.
"""

import numpy as np

BLOCK = 500  # examples whose kernel values are one matrix product


def rbf(X: np.ndarray, Z: np.ndarray, gamma: float) -> np.ndarray:
    """exp(-gamma |x - z|^2) for all rows x of X and z of Z."""
    distances = np.square(X).sum(axis=1)[:, np.newaxis] + np.square(Z).sum(axis=1) - 2 * (X @ Z.T)
    return np.exp(-gamma * np.maximum(distances, 0))


class AveragedPerceptron:
    """Learns the rows of X, labelled -1 and +1, in their order; it has one coefficient for each of them."""

    def __init__(self, X: np.ndarray, y: np.ndarray, gamma: float) -> None:
        self.X, self.y, self.gamma = X, y, gamma
        self.coef = np.zeros(len(y))  # y times how often the example was predicted wrongly
        self.dated = np.zeros(len(y))  # the same changes, each times its date
        self.n_seen = 0

    def learn(self) -> None:
        """One epoch."""
        for begin in range(0, len(self.y), BLOCK):
            self._learn_block(np.arange(begin, min(begin + BLOCK, len(self.y))))

    def _learn_block(self, rows: np.ndarray) -> None:
        members = np.flatnonzero(self.coef)
        f = rbf(self.X[rows], self.X[members], self.gamma) @ self.coef[members]
        among = rbf(self.X[rows], self.X[rows], self.gamma)
        for i, row in enumerate(rows):
            if self.y[row] * f[i] <= 0:
                self.coef[row] += self.y[row]
                self.dated[row] += self.y[row] * self.n_seen
                f += self.y[row] * among[i]
            self.n_seen += 1

    @property
    def mean(self) -> np.ndarray:
        """The mean of the coefficients over the examples seen."""
        return self.coef - self.dated / self.n_seen

    @property
    def support_ids(self) -> np.ndarray:
        """The examples that predictions need."""
        return np.flatnonzero(self.mean)

    def decision_function_many(self, X: np.ndarray) -> np.ndarray:
        """Values of the averaged perceptron."""
        return rbf(X, self.X[self.support_ids], self.gamma) @ self.mean[self.support_ids]
