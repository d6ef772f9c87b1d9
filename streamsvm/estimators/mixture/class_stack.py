"""The probabilities of several classes, from those that the experts of each class give it.

    p = softmax of X w        X: a row for each class: the logits of its experts, and the log of their joint probability

There is one w for all classes.  It begins with 1 for the joint probabilities, so these are scaled to a sum of 1, and
learns by multinomial logistic regression: one extended Kalman step a record, as in `online.mixture.linear`,

    R = diag(p) - p p^T,   S -= S X^T (I + R X S X^T)^-1 R X S,   w += S X^T (t - p),   S_aa += walk

t is 1 for the class of the record, and 0 for the others.

========= ==================================================== ================= =======
symbol    name                                                 shape             dtype
========= ==================================================== ================= =======
w         of the K logits, and of the joint probability        (K + 1,)          float64
S         its covariance                                       (K + 1, K + 1)    float64
========= ==================================================== ================= =======

Source: the Kalman step is that of Gaussian approximations to Bayesian logistic regression, as in Spiegelhalter and
Lauritzen (1990), here with several classes.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from streamsvm.core.saving.snapshot import require_array, require_finite
from streamsvm.online.mixture.advice import VARIANCE
from streamsvm.online.mixture.experts import K
from streamsvm.online.mixture.linear import WALKS

LEAST = 1e-3  # joint probability


class ClassStack:
    """One softmax over all classes."""

    def __init__(self) -> None:
        self.w, self.S = np.append(np.zeros(K), 1.0), VARIANCE * np.eye(K + 1)

    def predict(self, logits: np.ndarray, joint: Sequence[float]) -> np.ndarray:
        """The probability of each class, (C,), from the logits of its experts, (C, K), and their joint probability."""
        return self._probabilities(_inputs(logits, joint))

    def _probabilities(self, X: np.ndarray) -> np.ndarray:
        f = X @ self.w
        p: np.ndarray = np.exp(f - f.max())
        return p / p.sum()

    def learn(self, logits: np.ndarray, joint: Sequence[float], number: int) -> None:
        """Learn that the record was of the class with this number."""
        X = _inputs(logits, joint)
        p = self._probabilities(X)
        R, XS = np.diag(p) - np.outer(p, p), X @ self.S
        S = self.S - XS.T @ np.linalg.solve(np.eye(len(p)) + R @ XS @ X.T, R @ XS)
        self.w = self.w + S @ (X[number] - p @ X)
        self.S = (S + S.T) / 2.0 + WALKS[0] * np.eye(K + 1)

    def dump(self) -> dict[str, np.ndarray]:
        """The arrays of the state by name."""
        return {"stack.w": self.w, "stack.S": self.S}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `dump` gave, or raise a SnapshotError."""
        names = ("stack.w", "stack.S")
        self.w, self.S = (require_array(arrays, name, np.float64, (K + 1,) * d) for d, name in enumerate(names, 1))
        require_finite(arrays, *names)


def _inputs(logits: np.ndarray, joint: Sequence[float]) -> np.ndarray:
    return np.column_stack([logits, np.log(np.maximum(joint, LEAST))])
