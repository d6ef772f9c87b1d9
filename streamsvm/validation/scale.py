"""The scaled features and the gamma that a model with a running scale would have if it knew all examples.

A model that learns from a stream scales by running moments.  Here the moments are those of all examples; `core.scaling`
says which features are scaled.  Labels are not used, so nothing but moments leaks from the test examples.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from streamsvm.batch import RowStore
from streamsvm.core import arguments
from streamsvm.core import sparse as sp
from streamsvm.core.inputs import squared_lengths, without_duplicates
from streamsvm.core.kernels import about
from streamsvm.core.mixed import apart_of, numbers_of, with_columns
from streamsvm.core.rounding import SUM_ROUNDING
from streamsvm.core.scaling.state import CLIP
from streamsvm.validation.held_out.problem import require_solvable


def resolve_scaling(
    model: Any, X: Any, has_gamma: bool = False, names: Iterable[Hashable] | None = None
) -> tuple[Any, Any]:
    """The model with a number for gamma, and the features as its kernel sees them.

    Parameters
    ----------
    model, X
        A learner, and the examples as the user gave them.
    has_gamma
        Whether another gamma, which is a number, takes the place of the model's.
    names
        The names of the columns, which say what stands apart; default: those of the frame, if X is one.

    Raises
    ------
    TypeError, ValueError
        As `require_solvable`, and if the model would have to scale features that are not finite, or those of a
        `RowStore`.
    """
    require_solvable(model)
    scaling = getattr(model, "scaling", None)
    follows = getattr(model, "gamma", None) == "scale" and not has_gamma
    scales = scaling == "standard" or (follows and scaling == "auto")
    if not follows and not scales:
        return model, X
    if isinstance(X, RowStore):
        raise ValueError("X is a RowStore, whose features cannot be scaled; give the model a number for gamma")
    names = getattr(X, "columns", None) if names is None else names
    apart = None if names is None else apart_of(names)
    Z = standardised(X, apart) if scales else X
    gamma = _gamma_of(model, Z, apart) if follows else model.gamma
    return model.clone({"gamma": gamma, "scaling": None}), Z


def standardised(X: Any, apart: np.ndarray | None = None) -> Any:
    """Features with mean 0 and variance 1, clipped; those apart, or only 0 or 1, and sparse input are left alone."""
    if sp.issparse(X):
        numbers = np.empty(0, np.int64) if apart is None else numbers_of(X, apart)
        rows = sp.csr_matrix(X)
        return with_columns(rows, numbers, standardised(rows[:, numbers].toarray())) if len(numbers) else X
    arguments.require_unmasked("X", X)
    Z = np.array(X, np.float64)
    if Z.ndim != 2 or not len(Z):
        return Z
    is_bad = ~np.isfinite(Z).all(axis=1)
    if is_bad.any():  # scaled, all rows would be
        raise ValueError(f"X holds NaN or infinity in row {int(np.argmax(is_bad))}")
    scaled = ~np.isin(Z, (0.0, 1.0)).all(axis=0)
    if apart is not None:
        scaled &= ~apart
    mean, deviation = Z[:, scaled].mean(axis=0), Z[:, scaled].std(axis=0)
    deviation[deviation <= SUM_ROUNDING * np.abs(mean)] = 1.0
    Z[:, scaled] = np.clip((Z[:, scaled] - mean) / deviation, -CLIP, CLIP)
    return Z


def _gamma_of(model: Any, X: Any, apart: np.ndarray | None) -> float:
    """1 / the sum of the features' variances, or mean squares if they stand apart."""
    if "gamma" not in about(model.kernel).parameters:
        return 1.0
    if sp.issparse(X):
        spread = float(squared_lengths(without_duplicates(sp.csr_matrix(X))).sum() / max(X.shape[0], 1))
    else:
        Z = np.asarray(X, np.float64)
        apart = np.zeros(Z.shape[1], bool) if apart is None else apart
        spread = float(Z[:, ~apart].var(axis=0).sum() + np.square(Z[:, apart]).sum() / max(len(Z), 1))
    return 1.0 / spread if 0.0 < spread < np.inf else 1.0  # infinite features are refused later
