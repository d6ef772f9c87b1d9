"""Slow, obvious twins of the compiled functions: plain NumPy in float64, written from the formulas."""

import numpy as np

from streamsvm.kernels import LINEAR_KIND, POLYNOMIAL_KIND, RBF_KIND
from streamsvm.online.lasvm import EVICTION_PERIOD, LARGE, MAX_ONE_CLASS, MAX_REPROCESS, ROUNDING, SPARED
from streamsvm.online.scan import BLOCK

NO_CURVATURE = 1e-12


# -------------------------------------------------------------------------------------------------------------- kernels


def kernel_value(kernel, x, z):
    """k(x, z) for two vectors."""
    if kernel.kind == RBF_KIND:
        return np.exp(-kernel.gamma * np.sum((x - z) ** 2))
    if kernel.kind == LINEAR_KIND:
        return x @ z
    if kernel.kind == POLYNOMIAL_KIND:
        return (kernel.gamma * (x @ z) + kernel.coef0) ** kernel.degree
    return np.tanh(kernel.gamma * (x @ z) + kernel.coef0)


def gram(kernel, X, Z):
    """k(x, z) for every row of X and of Z, shape (len(X), len(Z))."""
    return np.array([[kernel_value(kernel, x, z) for z in Z] for x in X]).reshape(len(X), len(Z))


def compress(x, columns):
    """The non-zero features of a query as {column: float32 value}, in order, and its squared norm.

    `columns` (d,) has the column of each input, -1 if it is unknown: it then counts in the norm only.
    """
    x = np.float32(x)
    known = {int(columns[d]): x[d] for d in np.argsort(columns) if columns[d] >= 0 and x[d] != 0}
    return known, np.sum(np.float64(x) ** 2)


# ----------------------------------------------------------------------------------------------------- the dual problem


def dual(alpha, y, K):
    """W(alpha) = sum_s alpha_s y_s - 1/2 sum_rs alpha_r alpha_s K_rs."""
    return alpha @ y - 0.5 * alpha @ K @ alpha


def gradient(alpha, y, K):
    """g_s = y_s - sum_r alpha_r K_rs."""
    return y - K @ alpha


def extremes(alpha, g, lo, hi, tie=0.0):
    """Slots of the largest g that may rise and of the smallest g that may fall; None where there is none.

    What is equal up to `tie` goes to the first slot (of the first block of slots, which the engine scans one by one).
    """
    return first_largest(g, alpha < hi, tie), first_largest(-g, alpha > lo, tie)


def first_largest(g, allowed, tie):
    largest, found = -np.inf, None
    for begin in range(0, len(g), BLOCK):
        block = begin + np.flatnonzero(allowed[begin : begin + BLOCK])
        if len(block) and g[block].max() > largest + tie:
            largest = g[block].max()
            found = int(block[np.abs(g[block] - largest) <= tie][0])
    return found


def violation(alpha, g, lo, hi):
    """g_i - g_j of the most violating pair; minus infinity without a pair."""
    i, j = extremes(alpha, g, lo, hi)
    return -np.inf if i is None or j is None else g[i] - g[j]


def midpoint(alpha, g, lo, hi):
    """The bias: half-way between the extremes; the only one if there is one; 0 without members."""
    found = [g[slot] for slot in extremes(alpha, g, lo, hi) if slot is not None]
    return float(np.mean(found)) if found else 0.0


def second_order_partner(alpha, g, lo, i, diagonal, K_i):
    """The member j that may fall with the largest gain (g_i - g_j)^2 / curvature; None if no g_j < g_i."""
    curvature = np.maximum(diagonal[i] + diagonal - 2.0 * K_i, NO_CURVATURE)
    gain = np.where((alpha > lo) & (g < g[i]), (g[i] - g) ** 2 / curvature, 0.0)
    return int(np.argmax(gain)) if gain.max(initial=0.0) > 0 else None


def pair_step(alpha, g, lo, hi, i, j, diagonal, K_i, K_j):
    """The best step along (i, j), in place; a bound that is reached is assigned.  Returns its rounding."""
    room_i, room_j = hi[i] - alpha[i], alpha[j] - lo[j]
    curvature = diagonal[i] + diagonal[j] - 2.0 * K_i[j]
    newton = (g[i] - g[j]) / curvature if curvature > NO_CURVATURE else np.inf
    step = min(room_i, room_j, newton)
    alpha[i] = hi[i] if step == room_i else alpha[i] + step
    alpha[j] = lo[j] if step == room_j else alpha[j] - step
    g -= step * K_i - step * K_j
    return ROUNDING * step * (abs(diagonal[i]) + abs(diagonal[j]))


def solve(K, y, lo, hi, tol, max_steps=200_000):
    """SMO with the most violating pair, from alpha = 0 until no pair violates by more than tol; return alpha and g."""
    alpha, g = np.zeros(len(y)), np.array(y, float)
    for _ in range(max_steps):
        if not violation(alpha, g, lo, hi) > tol:
            return alpha, g
        i, j = extremes(alpha, g, lo, hi)
        pair_step(alpha, g, lo, hi, i, j, np.diag(K), K[i], K[j])
    raise AssertionError(f"no solution after {max_steps} steps")


# --------------------------------------------------------------------------------------------------------------- LASVM


class NaiveLASVM:
    """The online rules of `streamsvm.online.lasvm`, on the kernel matrix K of a whole stream.

    K is given, `dot` as well, and slots stay where they are in the engine: the twin then agrees bit for bit, or not
    at all.  `pair` is the most violating pair, up to the rounding of the step that led to it.
    """

    def __init__(self, K, diagonal, rule, C=1.0, pos_weight=1.0, dot=np.dot):
        self.K, self.diagonal, self.rule = K, diagonal, rule
        self.C, self.pos_weight, self.dot = C, pos_weight, dot
        self.examples, self.ids = np.empty(0, int), np.empty(0, int)
        self.y, self.alpha, self.g, self.lo, self.hi = (np.empty(0) for _ in range(5))  # by slot; a hole has y = 0
        self.n_seen = self.n_squeezed = self.since_eviction = 0
        self.pair = None, None
        self.margins = []  # margin and sign of each example that the sigmoid learns from

    def learn(self, y, w=1.0, id=None):
        """Learn the stream's next example, of sign y; return its margin before."""
        if 4 * np.sum(self.y == 0) > len(self.y) + 256:
            self._squeeze()
        x, self.n_seen = self.n_seen, self.n_seen + 1
        f = self.dot(self.alpha, self.K[x, self.examples])
        found = [self.g[slot] for slot in self.pair if slot is not None]
        margin = f + (float(np.mean(found)) if found else 0.0)
        box = self.C * w * (self.pos_weight if y > 0 else 1.0)
        if box > 0 and not (id is not None and id in self.ids[self.y != 0]):
            if None not in self.pair:
                self.margins.append((margin, y))
            self._process(x, y, y - f, box, x if id is None else id)
            self._reprocess()
            self.since_eviction += 1
            if self.since_eviction == EVICTION_PERIOD:
                self.since_eviction = 0
                self._evict()
        return margin

    @property
    def _problem(self):
        return self.alpha, self.g, self.lo, self.hi

    def _process(self, x, y, g, box, number):
        up, down = self.pair
        partner = down if y > 0 else up
        if partner is None and len(self.y) >= MAX_ONE_CLASS:
            return
        if partner is not None and not y * (g - self.g[partner]) > self.rule.tau:
            return
        joined = {"examples": x, "ids": number, "y": y, "alpha": 0.0, "g": g}
        for name, value in (joined | {"lo": min(0.0, box * y), "hi": max(0.0, box * y)}).items():
            setattr(self, name, np.append(getattr(self, name), value))
        if partner is not None:
            k = len(self.y) - 1
            self._step(*((k, partner) if y > 0 else (partner, k)))
        else:
            self.pair = extremes(*self._problem)

    def _row(self, slot):
        return np.float64(self.K[self.examples[slot], self.examples])

    def _step(self, i, j):
        tie = pair_step(*self._problem, i, j, self.diagonal[self.examples], self._row(i), self._row(j))
        self.pair = extremes(*self._problem, tie)

    def _reprocess(self):
        adaptive = self.rule.reprocess < 0
        at_least = 1 if adaptive else self.rule.reprocess
        for steps in range(MAX_REPROCESS):
            i, j = self.pair
            delta = -np.inf if None in self.pair else self.g[i] - self.g[j]
            if not delta > self.rule.tau or (steps >= at_least and not delta > self.rule.delta_max):
                return
            if adaptive and steps >= 1:
                diagonal = self.diagonal[self.examples]
                j = second_order_partner(self.alpha, self.g, self.lo, i, diagonal, self._row(i))
            self._step(i, j)

    def _evict(self):
        i, j = self.pair
        if i is None or j is None:
            return
        beyond = np.where(self.y < 0, self.g - self.g[i], self.g[j] - self.g)
        candidate = (self.alpha == 0) & (self.y != 0)
        near = np.sum(candidate & (beyond >= 0) & (beyond < self.rule.slack))
        members = np.sum(self.y != 0)
        slack = 0.0 if near > SPARED * members or members > LARGE else self.rule.slack
        useless = candidate & (beyond >= slack)
        useless[[i, j]] = False
        for a in (self.y, self.alpha, self.lo, self.hi):
            a[useless] = 0.0

    def _squeeze(self):
        self.n_squeezed += 1
        live = self.y != 0
        self.pair = tuple(None if slot is None else int(np.sum(live[:slot])) for slot in self.pair)
        for name in ("examples", "ids", "y", "alpha", "g", "lo", "hi"):
            setattr(self, name, getattr(self, name)[live])


# -------------------------------------------------------------------------------------------------------------- sigmoid


def slopes(margins, memory=0.999, smallest=0.05, largest=50.0, clip=10.0):
    """The slopes for negative and for positive margins after (margin, sign) pairs, by damped Newton steps."""
    slope, curvature = {False: 2.0, True: 2.0}, {False: 1.0, True: 1.0}
    for margin, y in margins:
        side, f = bool(margin > 0), float(np.clip(margin, -clip, clip))
        p = 1 / (1 + np.exp(-slope[side] * f))
        curvature[side] = memory * curvature[side] + f * f * p * (1 - p) + 1e-6
        slope[side] = float(np.clip(slope[side] + ((y > 0) - p) * f / curvature[side], smallest, largest))
    return slope[False], slope[True]
