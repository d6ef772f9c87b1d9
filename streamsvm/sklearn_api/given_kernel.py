"""A classifier over kernel values that the user computes: ``kernel="precomputed"``, or a function.

There are no features that a learner could keep.  So there is no learner: only the solutions of the pairs of classes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from streamsvm.batch.kernels.matrix import Gram
from streamsvm.batch.multiclass.class_pairs import optima
from streamsvm.batch.options import SolverOptions
from streamsvm.estimators.multiclass.trained_pairs import trained
from streamsvm.online.outputs.calibration import RUN
from streamsvm.online.outputs.coupling import coupled
from streamsvm.online.outputs.sigmoid import probabilities
from streamsvm.sklearn_api.exact import LARGEST, exact_pair


def kernel_values(kernel: Callable[[Any, Any], Any] | str, X: Any, X_fit: Any) -> np.ndarray:
    """The kernel values of examples with those of the training set, from what the user gives as X."""
    if callable(kernel):
        X = kernel(X, X_fit)
    elif hasattr(X, "tocsr"):
        raise TypeError("Sparse precomputed kernels are not supported: X must be a dense array of kernel values")
    return check_array(X, dtype=np.float64, order="C", ensure_min_features=0, input_name="kernel values")


class KernelMachines:
    """The machines of all pairs of classes, as functions of kernel values with the training set.

    Parameters
    ----------
    K
        Kernel values of the training set, (n, n).
    labels
        The class of each example, 0 to k - 1.
    used
        Numbers of the examples to learn, of every class.
    box
        Largest coefficient of each example, (n,).
    options
        As for `optima`.
    """

    def __init__(
        self,
        K: np.ndarray,
        labels: np.ndarray,
        used: np.ndarray,
        box: np.ndarray,
        options: SolverOptions,
    ) -> None:
        self.n, self.n_classes = len(K), int(labels.max()) + 1
        places = labels[used] if self.n_classes > 2 else 1 - labels[used]  # of two, the second one is positive
        found = list(optima(Gram(K).part(used), places, box[used], options))
        if len(used) <= LARGEST:
            K_used = K[np.ix_(used, used)]
            found = [exact_pair(pair, K_used, places, box[used]) for pair in found]
        self.outcomes = [(pair.n_passes, pair.converged) for pair in found]
        self._pairs = trained(found, used, np.bincount(places).tolist(), [0] * self.n_classes)

    def _parts(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        return [pair.function for pair in self._pairs]

    def pair_values_many(self, K: np.ndarray) -> np.ndarray:
        """f(x) of each pair, (m, n_pairs), from kernel values with the training set, (m, n)."""
        return np.column_stack([K[:, numbers] @ alpha + bias for numbers, alpha, bias in self._parts()])

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of the second of two classes."""
        return probabilities(self._pairs[0].calibration, margins)

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of more than two classes, (m, n_classes), from f(x) of each pair."""
        sigmoids = np.array([pair.calibration[:RUN] for pair in self._pairs])
        return coupled(probabilities(sigmoids, margins), self.n_classes)


def require_square(K: np.ndarray, y: np.ndarray) -> None:
    """Raise a ValueError unless these are the kernel values of a training set."""
    if K.shape[0] != K.shape[1]:
        raise ValueError(f"X has shape {K.shape}: a precomputed kernel of a training set is a square matrix")
    check_consistent_length(K, y)
