"""Which examples a model refuses, before it learns anything of them."""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, NAMES, is_bounded, largest_self_product
from streamsvm.estimators.inputs.checks import culprit_of, not_finite, too_large
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.inputs.raw_rows import one_row
from streamsvm.estimators.learner.state import State


class KernelOverflow(ValueError):  # noqa: N818 - names the condition
    """The kernel of an example with itself is too large, by the gamma that is in use when the example's turn comes."""


def validate_one(state: State, x: Mapping[Hashable, Any]) -> None:
    """Raise the ValueError or TypeError that learning would raise for these features."""
    state.features.require_room(x)
    require_learnable(state, x, *state.features.example(x, learning=False))


def validate_many(state: State, X: Any) -> None:
    """Raise the ValueError or TypeError that learning would raise for these rows."""
    features = state.features
    if not (isinstance(X, NamedRows) and all(name in features.columns for name in X.names)):  # There may be new ones.
        features = features.copy()
    for rows, raw, _ in features.raw_batches(X, learning=True):
        if not is_bounded(state.kernel):
            scale = state.scale.copy()
            scale.fit_room(features)
            require_kernel(state, rows.start, scale.queries(raw).sq)


def require_learnable(state: State, x: Mapping[Hashable, Any], columns: np.ndarray, values: np.ndarray) -> None:
    """Raise a ValueError if an example is to be refused; its new columns stay provisional."""
    raw = one_row(columns, values)
    if too_large(raw.sq):
        raise too_large_feature(state, x)
    if not is_bounded(state.kernel):
        require_kernel(state, state.n_seen, state.scale.queries(raw).sq if state.scale.is_active else raw.sq)


def require_kernel(state: State, first: int, sq: np.ndarray) -> None:
    """Raise a ValueError if k(x, x) is too large for an example, given squared norms from number `first` on."""
    if largest_self_product(state.kernel, sq) > LARGEST_KERNEL_VALUE:
        raise kernel_overflow(state, first + int(np.argmax(sq)))


def too_large_feature(state: State, x: Mapping[Hashable, Any]) -> ValueError:
    """The error of an example with a feature that is too large or not finite."""
    name = culprit_of(x, state.features.example(x, learning=False)[1])
    return not_finite(name, x[name])


def kernel_overflow(state: State, row: int) -> ValueError:
    """The error of an example whose kernel with itself is too large."""
    kernel, limit = NAMES[state.kernel.kind], f"{LARGEST_KERNEL_VALUE:g}"
    return KernelOverflow(f"the {kernel} kernel of example {row} with itself is above {limit}; scale the features")


def too_large_a_kernel(state: State, which: str) -> ValueError:
    """The error of an example whose decision value is not finite."""
    kernel = NAMES[state.kernel.kind]
    return ValueError(f"{which}: the {kernel} kernel is too large for single precision; scale the features")
