"""One compiled loop over the problems of pairs of classes; see `class_pairs`.

1. A quarter of each class's examples arrives first, then another quarter, then the rest.  The pair steps stop at a
   coarse tolerance until all have arrived.  The gradients of all examples are kept up to date.  So the decision values
   of arriving examples are known.
2. Kernel rows are put together at the first step that needs them, with one over the curvature beside each value: to
   choose a partner then takes no division.

============ ============================================================= ================
symbol       name                                                          shape, dtype
============ ============================================================= ================
K_first      kernel values among the first class's examples                (n_1, n_1) float32
K_second     among the second class's                                      (n_2, n_2) float32
K_cross      of the second class's examples with the first class's         (n_2, n_1) float32
alpha, g,    coefficients, gradient, label, box, penalties and k(x, x), as (n,) float64
y, lo, hi,   in `members`: the first class's, which is positive, then the
up, down,    second's
diagonal
rows         kernel rows, as far as they are known                         (n, n) float32
inverses     one over the curvature along two examples, in the same rows   (n, n) float32
============ ============================================================= ================
"""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.problem import middle, settle
from streamsvm.batch.steps.pairs import BLOCK, BOTTOM, TOP, step_along, update
from streamsvm.core.compiling._jit import compiled, inner
from streamsvm.core.compiling._simd import fmax
from streamsvm.core.expansion import FORBIDDEN, set_penalties
from streamsvm.core.rounding import DUST

STAGES = 3  # in which examples arrive: a quarter, half and all of them
ROUGH = 0.5  # tolerance while examples are still coming; a finer one costs a third more steps


class Work(NamedTuple):
    """The problem of one pair; see the module's docstring."""

    alpha: np.ndarray
    g: np.ndarray
    y: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    up: np.ndarray
    down: np.ndarray
    diagonal: np.ndarray


class Found(NamedTuple):
    """The solutions of the pairs of one class with some others, one after another.

    `is_member`, `alpha` and `g` are those of the first class's examples and the second's.  `f` and `positive` are the
    decision values and labels of arriving examples, in their order.  The rest has a value for each pair.
    """

    alpha: np.ndarray
    g: np.ndarray
    is_member: np.ndarray
    f: np.ndarray
    positive: np.ndarray
    n_arrived: np.ndarray
    bias: np.ndarray
    violation: np.ndarray


@inner
def _put_row(K_first, K_second, K_cross, s, diagonal, row, inverse):
    """The kernel values of example s with all of its pair, and one over the curvatures."""
    n_first = K_first.shape[0]
    if s < n_first:
        for t in range(n_first):
            row[t] = K_first[s, t]
        for t in range(K_cross.shape[0]):
            row[n_first + t] = K_cross[t, s]
    else:
        for t in range(n_first):
            row[t] = K_cross[s - n_first, t]
        for t in range(K_cross.shape[0]):
            row[n_first + t] = K_second[s - n_first, t]
    for t in range(row.shape[0]):
        inverse[t] = np.float32(1.0) / np.float32(fmax(diagonal[s] + diagonal[t] - 2.0 * np.float64(row[t]), DUST))


@inner
def _largest_gain(g_i, g, down, inverse):
    """Twice the largest Newton gain along i and an example of a block."""
    largest = 0.0
    for t in range(g.shape[0]):
        w = fmax(g_i - g[t] - down[t], 0.0)
        largest = fmax(largest, w * w * np.float64(inverse[t]))
    return largest


@inner
def _partner(g_i, g, down, inverse):
    """The j that may fall with the largest Newton gain along (i, j), or -1; as `pairs.newton_partner`."""
    best, best_block = 0.0, -1
    for b in range(0, g.shape[0], BLOCK):
        e = min(b + BLOCK, g.shape[0])
        largest = _largest_gain(g_i, g[b:e], down[b:e], inverse[b:e])
        if largest > best:
            best, best_block = largest, b
    if best_block >= 0:
        for t in range(best_block, min(best_block + BLOCK, g.shape[0])):
            w = fmax(g_i - g[t] - down[t], 0.0)
            if w * w * np.float64(inverse[t]) >= (1.0 - 1e-14) * best:
                return t
    return -1


@inner
def _take_steps(K_first, K_second, K_cross, rows, inverses, known, w, tol, max_steps, extremes):
    """Take pair steps until the extremes differ by at most tol, or none helps; return how many."""
    alpha, g, lo, hi, up, down, diagonal = w.alpha, w.g, w.lo, w.hi, w.up, w.down, w.diagonal
    i = update(g, up, down, 0.0, g, g, extremes)
    for step in range(max_steps):
        if not extremes[TOP] - extremes[BOTTOM] > tol:
            return step
        if not known[i]:
            _put_row(K_first, K_second, K_cross, i, diagonal, rows[i], inverses[i])
            known[i] = True
        j = _partner(g[i], g, down, inverses[i])
        if j < 0:
            return step
        if not known[j]:
            _put_row(K_first, K_second, K_cross, j, diagonal, rows[j], inverses[j])
            known[j] = True
        i = step_along(alpha, g, lo, hi, up, down, diagonal, i, j, rows[i], rows[j], extremes)
        if i < 0:
            return step
    return max_steps


@inner
def _share(n, stage):
    """Number of a class's examples that have arrived in this stage; at least one."""
    return -((-n) >> (STAGES - 1 - stage))


@inner
def _arrive(w, n_first, stage, b, f, positive):
    """Let examples arrive, with the classes evenly spread; return how many.

    Those of a later stage are noted: what a model with the constant b, which does not know them, decides about them.
    """
    n_second = w.y.shape[0] - n_first
    i, j = (_share(n_first, stage - 1), _share(n_second, stage - 1)) if stage > 0 else (0, 0)
    end_i, end_j, arrived = _share(n_first, stage), _share(n_second, stage), 0
    while i < end_i or j < end_j:
        if j == end_j or (i < end_i and i * n_second <= j * n_first):
            s = i
            i += 1
        else:
            s = n_first + j
            j += 1
        set_penalties(w.alpha, w.lo, w.hi, w.up, w.down, s)
        if stage > 0:
            f[arrived], positive[arrived] = w.y[s] - w.g[s] + b, s < n_first
            arrived += 1
    return arrived


@inner
def _solve(K_first, K_second, K_cross, rows, inverses, known, w, tol, max_steps, f, positive, extremes, starts):
    """Solve the problem of a pair; return the number of examples whose decision values were noted.

    If it `starts` from another solution, all examples are there from the beginning.
    """
    n_first, n = K_first.shape[0], w.alpha.shape[0]
    left, arrived = max_steps * n, 0
    if starts:
        for s in range(n):
            set_penalties(w.alpha, w.lo, w.hi, w.up, w.down, s)
        _take_steps(K_first, K_second, K_cross, rows, inverses, known, w, tol, left, extremes)
        return 0
    for stage in range(STAGES):
        b = middle(extremes[TOP], extremes[BOTTOM])
        arrived += _arrive(w, n_first, stage, b, f[arrived:], positive[arrived:])
        goal = tol if stage == STAGES - 1 else max(tol, ROUGH)
        left -= _take_steps(K_first, K_second, K_cross, rows, inverses, known, w, goal, left, extremes)
    return arrived


@inner
def _end(w, extremes, is_member):
    """Put coefficients beside a bound onto it, and mark the members; return the constant of f(x)."""
    bottom = -1
    settle(w.alpha, w.lo, w.hi, 0.0)
    for s in range(w.alpha.shape[0]):
        is_member[s] = w.alpha[s] != 0.0
        set_penalties(w.alpha, w.lo, w.hi, w.up, w.down, s)
        if w.down[s] == 0.0 and (bottom < 0 or w.g[s] < w.g[bottom]):
            bottom = s
    top = update(w.g, w.up, w.down, 0.0, w.g, w.g, extremes)
    if w.up[top] == 0.0:
        is_member[top] = True
    if bottom >= 0:
        is_member[bottom] = True
    return middle(extremes[TOP], extremes[BOTTOM])


@inner
def _part(w, n):
    """The problem of a pair of n examples, in memory for larger ones."""
    return Work(w.alpha[:n], w.g[:n], w.y[:n], w.lo[:n], w.hi[:n], w.up[:n], w.down[:n], w.diagonal[:n])


@inner
def _begin(w, s, y, box, diagonal):
    """Make this the problem's example s, which has not arrived yet."""
    w.alpha[s], w.g[s], w.y[s], w.diagonal[s] = 0.0, y, y, diagonal
    w.lo[s], w.hi[s] = min(0.0, y * box), max(0.0, y * box)
    w.up[s], w.down[s] = -FORBIDDEN, FORBIDDEN


@inner
def _start(w, alpha, g, growth):
    """Begin with the solution for smaller boxes, from which they have grown by this factor.

    If most support vectors are at their bounds, the coefficients and y - g grow alike.
    """
    support, bounded = 0, 0
    for s in range(alpha.shape[0]):
        support += alpha[s] != 0.0
        bounded += alpha[s] != 0.0 and abs(alpha[s]) * growth >= (1.0 - DUST) * (w.hi[s] - w.lo[s])
    factor = growth if 2 * bounded > support else 1.0
    for s in range(alpha.shape[0]):
        w.alpha[s] = min(max(factor * alpha[s], w.lo[s]), w.hi[s])
        w.g[s] = w.y[s] - factor * (w.y[s] - g[s])


@compiled
def solve_pairs(K_first, squares, at, K_cross, sizes, box, diagonal, memory, work, tol, max_steps, growth, found):
    """Solve the pairs of one class with others, one after another.

    `sizes` are the others', whose kernel matrices begin `at` these places of `squares`.  `box` and `diagonal` begin
    with the first class.  If `found` has the solutions for smaller boxes, they have grown by the factor `growth`;
    otherwise it is 0.
    """
    n_first, row, out, extremes = K_first.shape[0], 0, 0, np.empty(2)
    known = np.empty(work.alpha.shape[0], np.bool_)
    for b in range(sizes.shape[0]):
        n_second, n = sizes[b], n_first + sizes[b]
        w, f, positive = _part(work, n), found.f[out : out + n], found.positive[out : out + n]
        K_second = squares[at[b] : at[b] + n_second * n_second].reshape((n_second, n_second))
        rows, inverses = memory[0, : n * n].reshape((n, n)), memory[1, : n * n].reshape((n, n))
        extremes[TOP], extremes[BOTTOM] = -FORBIDDEN, FORBIDDEN
        for s in range(n):
            known[s] = False
            source = s if s < n_first else row + s
            _begin(w, s, 1.0 if s < n_first else -1.0, box[source], diagonal[source])
        starts = growth > 0.0 and not found.violation[b] > tol
        if starts:
            _start(w, found.alpha[out : out + n], found.g[out : out + n], growth)
        pair = K_first, K_second, K_cross[row : row + n_second]
        found.n_arrived[b] = _solve(*pair, rows, inverses, known, w, tol, max_steps, f, positive, extremes, starts)
        found.violation[b] = extremes[TOP] - extremes[BOTTOM]
        found.bias[b] = _end(w, extremes, found.is_member[out : out + n])
        for s in range(n):
            found.alpha[out + s], found.g[out + s] = w.alpha[s], w.g[s]
        row, out = row + n_second, out + n
