"""The scaled features and the gamma that a model with a running scale would have if it knew all examples.

A model that learns from a stream scales by running moments.  Here the moments are those of all examples; `core.scaling`
says which features are scaled.  Labels are not used, so nothing but moments leaks from the test examples.
"""

from typing import Any

import numpy as np

from streamsvm.batch import RowStore
from streamsvm.core import arguments
from streamsvm.core import sparse as sp
from streamsvm.core.inputs import squared_lengths, without_duplicates
from streamsvm.core.kernels import about
from streamsvm.core.scaling import CLIP, CONSTANT
from streamsvm.validation.held_out.problem import require_solvable


def resolve_scaling(model: Any, X: Any, has_gamma: bool = False) -> tuple[Any, Any]:
    """The model with a number for gamma, and the features as its kernel sees them.

    Parameters
    ----------
    model, X
        A learner, and the examples as the user gave them.
    has_gamma
        Whether another gamma, which is a number, takes the place of the model's.

    Raises
    ------
    TypeError, ValueError
        As `require_solvable`, and if the model would have to scale the features of a `RowStore`.
    """
    require_solvable(model)
    scaling = getattr(model, "scaling", None)
    follows = getattr(model, "gamma", None) == "scale" and not has_gamma
    scales = scaling == "standard" or (follows and scaling == "auto")
    if not follows and not scales:
        return model, X
    if isinstance(X, RowStore):
        raise ValueError("X is a RowStore, whose features cannot be scaled; give the model a number for gamma")
    Z = standardised(X) if scales and not sp.issparse(X) else X
    gamma = _gamma_of(model, Z) if follows else model.gamma
    return model.clone({"gamma": gamma, "scaling": None}), Z


def standardised(X: Any) -> np.ndarray:
    """Features with mean 0 and variance 1, clipped; those that are only 0 or 1 are left alone."""
    arguments.require_unmasked("X", X)
    Z = np.array(X, np.float64)
    if Z.ndim != 2 or not len(Z):
        return Z
    scaled = ~np.isin(Z, (0.0, 1.0)).all(axis=0)
    mean, deviation = Z[:, scaled].mean(axis=0), Z[:, scaled].std(axis=0)
    deviation[deviation <= CONSTANT * np.abs(mean)] = 1.0
    Z[:, scaled] = np.clip((Z[:, scaled] - mean) / deviation, -CLIP, CLIP)
    return Z


def _gamma_of(model: Any, X: Any) -> float:
    """1 / the sum of the features' variances."""
    if "gamma" not in about(model.kernel).parameters:
        return 1.0
    if sp.issparse(X):
        spread = float(squared_lengths(without_duplicates(sp.csr_matrix(X))).sum() / max(X.shape[0], 1))
    else:
        spread = float(np.asarray(X, np.float64).var(axis=0).sum())
    return 1.0 / spread if spread > 0.0 else 1.0
