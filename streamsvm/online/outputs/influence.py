"""What members and features add to a decision value; `estimators.learner.explaining` has the formulas."""

from typing import NamedTuple

import numpy as np

from streamsvm.core.blocks import LARGEST_SQUARED_NORM, expansion_sum
from streamsvm.core.compiling._dispatch import by_class
from streamsvm.core.compiling._jit import compiled
from streamsvm.core.compiling._reference import by_reference
from streamsvm.core.expansion import SLOTS
from streamsvm.core.kernels import LINEAR_KIND, POLYNOMIAL_KIND, RBF_KIND, Kernel
from streamsvm.core.rows import kernel_row
from streamsvm.online.arrival import prepare


@by_reference
class Parts(NamedTuple):
    """What `explain_example` writes.

    Attributes
    ----------
    terms
        alpha_s k(x_s, x) for each slot, (n,) float64.
    factors
        What x_s is multiplied by in the derivative of f(x) by the features, for each slot, (n,) float32.
    slopes
        What x itself adds to that derivative, for each column, (D,) float64; zeros before.
    """

    terms: np.ndarray
    factors: np.ndarray
    slopes: np.ndarray


@by_class
@compiled
def explain_example(s, c, kernel, features, b, parts):
    """Return f(x) + b for one query, and write its parts; NaN if a feature is not finite."""
    n = s.counts[SLOTS]
    nnz, sq = prepare(s, c, features.columns, features.values)
    if not sq < LARGEST_SQUARED_NORM:
        return np.nan
    indices, values = s.member_indices[:nnz], s.member_values[:nnz]
    if kernel.kind == POLYNOMIAL_KIND:
        kernel_row(s, Kernel(LINEAR_KIND, 1.0, 0.0, 1), indices, values, sq, 0, n, s.scratch)
        for t in range(n):
            z = kernel.gamma * np.float64(s.scratch[t]) + kernel.coef0
            parts.factors[t] = s.alpha[t] * kernel.gamma * kernel.degree * z ** (kernel.degree - 1)
    kernel_row(s, kernel, indices, values, sq, 0, n, s.scratch)
    total = 0.0
    for t in range(n):
        value = np.float64(s.scratch[t])
        parts.terms[t] = s.alpha[t] * value
        total += parts.terms[t]
        if kernel.kind == RBF_KIND:
            parts.factors[t] = 2.0 * kernel.gamma * parts.terms[t]
        elif kernel.kind == LINEAR_KIND:
            parts.factors[t] = s.alpha[t]
        elif kernel.kind != POLYNOMIAL_KIND:
            parts.factors[t] = s.alpha[t] * kernel.gamma * (1.0 - value * value)
    if kernel.kind == RBF_KIND:
        for k in range(nnz):
            parts.slopes[indices[k]] = -2.0 * kernel.gamma * total * values[k]
    return expansion_sum(s.alpha[:n], s.scratch[:n]) + b


@compiled
def largest(values, side, places):
    """Write the places of the largest side * values above 0, the largest first; return how many there are."""
    n = 0
    for t in range(values.shape[0]):
        v = side * values[t]
        if v > 0.0 and (n < places.shape[0] or v > side * values[places[n - 1]]):
            n = min(n + 1, places.shape[0])
            k = n - 1
            while k > 0 and v > side * values[places[k - 1]]:
                places[k] = places[k - 1]
                k -= 1
            places[k] = t
    return n
