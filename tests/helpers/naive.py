"""Slow, obvious twins of the compiled functions: plain NumPy in float64, written from the formulas."""

import itertools

import numpy as np

from streamsvm.core.expansion import BITS, COLUMNS, COMPRESSED, SLOTS, STORAGE, WIDTH
from streamsvm.core.kernels import (
    LINEAR_KIND,
    NAMES,
    POLYNOMIAL_KIND,
    RBF_KIND,
    SIGMOID_KIND,
    is_positive_semidefinite,
    make_kernel,
    self_products,
)
from streamsvm.core.rounding import DUST, KERNEL_ROUNDING, SUM_ROUNDING
from streamsvm.core.scaling import gaps, moments, renewal
from streamsvm.core.scaling.state import ACTIVE, APART, CLIP, MEMORY, OLD_ENOUGH, PLACES, SPAN
from streamsvm.online.arrival import MAX_REPROCESS
from streamsvm.online.gap import CONCAVE, CONVEX, IGNORE
from streamsvm.online.gradient import SLOT_BLOCK
from streamsvm.online.lasvm import ENOUGH_MEMBERS, EVICTION_PERIOD, NEAR_MARGIN, RESERVE, SEEDS, SPARED

# -------------------------------------------------------------------------------------------------------------- kernels


SEMIDEFINITE = [name for name in NAMES if is_positive_semidefinite(make_kernel(name))]  # with coef0 >= 0


def kernel_value(kernel, x, z):
    """k(x, z) for two vectors."""
    if kernel.kind == RBF_KIND:
        return np.exp(-kernel.gamma * np.sum((x - z) ** 2))
    if kernel.kind == LINEAR_KIND:
        return x @ z
    if kernel.kind == POLYNOMIAL_KIND:
        return (kernel.gamma * (x @ z) + kernel.coef0) ** kernel.degree
    if kernel.kind == SIGMOID_KIND:
        return np.tanh(kernel.gamma * (x @ z) + kernel.coef0)
    raise NotImplementedError(f"the twin has no formula for {kernel}")


def kernel_of(model):
    """The kernel that a learner uses at present, by its public names."""
    return make_kernel(model.kernel, gamma=model.gamma_in_use, degree=model.degree, coef0=model.coef0)


def gram(kernel, X, Z):
    """k(x, z) for every row of X and of Z, shape (len(X), len(Z))."""
    return np.array([[kernel_value(kernel, x, z) for z in Z] for x in X]).reshape(len(X), len(Z))


def late_margins(n):
    """What a model said of n examples when it predicted them; NaN for half of them, whose labels were not late."""
    rng = np.random.default_rng(n)
    return np.where(rng.random(n) < 0.5, rng.normal(scale=2.0, size=n), np.nan)


def compress(x, columns):
    """The non-zero features of a query as {column: float32 value}, in order, and its squared norm.

    `columns` (d,) has the column of each input, -1 if it is unknown: it then counts in the norm only.
    """
    x = np.float32(x)
    known = {int(columns[d]): x[d] for d in np.argsort(columns) if columns[d] >= 0 and x[d] != 0}
    return known, np.sum(np.float64(x) ** 2)


# -------------------------------------------------------------------------------------------------------------- scaling


class NaiveScale:
    """`core.scaling` for examples that are dicts {column: value}; a feature's moments are a dict of its own."""

    def __init__(self, scales, memory=MEMORY, far=(np.inf, 0.0), apart=()):
        self.scales, self.memory, self.far, self.apart = scales, memory, far, apart
        self.cut = CLIP if scales else np.inf
        self.n_seen = self.wait = self.renewed = 0
        self.sparse = self.due = self.zeros = False
        self.began, self.named, self.times = {}, {}, {}
        self.moments = {}  # of the features with a place, in the order of their places
        self.share = self.norm = self.weight = self.spread = 0.0

    @property
    def is_active(self):
        return any(f["spread"] > 0.0 for f in self.moments.values())

    def observe(self, x, may_be_unknown=True, marked=False):
        self.zeros |= marked
        deserving = self._note_names(x)
        sparse = self._looks_sparse()
        at_once = sparse != self.sparse or self.n_seen == 0
        if sparse != self.sparse:
            self.weight = 0.0
            for f in self.moments.values():
                f.update(w=0.0, m=0.0, S=0.0)
        self.sparse = sparse
        self._take_in_norm(x)
        if not sparse:
            for d, f in self.moments.items():
                if self.scales and d in x:
                    self._note_value(f, x[d])
                elif may_be_unknown and self._is_unknown(d):
                    continue
                at_once |= self._move(f, x.get(d, 0.0))
        self.n_seen += 1
        if at_once:
            self.due = True
        elif self.n_seen >= self.wait:
            young = self.scales and self.renewed < MEMORY / moments.YOUNG
            is_too_young = young and self.n_seen >= moments.YOUNG * self.renewed
            self.due = self._has_moved() or is_too_young or (not sparse and any(deserving))

    def _note_names(self, x):
        x = [d for d in x if d not in self.apart]
        again = [self.named.get(d) == self.n_seen - 1 or self.n_seen == 0 for d in x]
        self.share += ((np.mean(again) if x else 1.0) - self.share) / min(self.n_seen + 1, MEMORY)
        for d in x:
            self.began.setdefault(d, self.n_seen)
            self.named[d] = self.n_seen
            self.times[d] = self.times.get(d, 0) + 1
        return [self._deserves_place(d, self.n_seen) for d in x]

    def _deserves_place(self, d, latest):
        age = latest - self.began[d]
        return d not in self.moments and age >= OLD_ENOUGH and self.times[d] >= age / 2

    def _looks_sparse(self):
        if self.n_seen < moments.JUDGED_AFTER:
            return self.sparse
        return self.share < (1.0 - moments.SPARSE_BELOW if self.sparse else moments.SPARSE_BELOW)

    def _take_in_norm(self, x):
        values = np.array([v for d, v in x.items() if self.sparse or d not in self.moments])
        total = np.sum((np.clip(values, -self.cut, self.cut) if self.is_active else values) ** 2)
        self.weight = self.weight * (1 - 1 / self.memory) + 1
        if self.weight > moments.WARM and self.spread > 0:
            total = min(total, moments.OUTLIER**2 * self.spread)
        self.norm += (float(np.float32(total)) - self.norm) / self.weight

    def _move(self, f, v):
        """Whether the feature is to be scaled, and was left alone so far."""
        new = self.scales and not f["varied"] and v not in (0.0, 1.0)
        f["varied"] |= v not in (0.0, 1.0)
        w, e = f["w"] * (1 - 1 / self.memory) + 1, v - f["m"]
        if w > moments.FIRST and f["S"] > 0:
            most = (moments.OUTLIER if w > moments.WARM else moments.EARLY_OUTLIER) * np.sqrt(f["S"] / w)
            e = np.clip(e, -most, most)
        rest = e - e / w
        f.update(w=w, m=f["m"] + e / w, S=f["S"] * (1 - 1 / self.memory) + e * rest)
        return new

    def _note_value(self, f, v):
        self.zeros |= v <= 0.0
        if f["w"] > 0:
            rate = max(gaps.RATE, 1 / (f["w"] + 1))
            f["excess"] += rate * ((v - f["last"]) ** 2 - (v - f["m"]) ** 2 - f["excess"])
        f["last"] = v

    def _is_unknown(self, d, marked=False):
        """Whether an example that lacks a feature, and may mark a gap, may have any value of it."""
        f = self.moments[d]
        is_dense = self.times[d] >= (self.n_seen - self.began[d]) / 2
        if not self.scales or not f["varied"] or not f["w"] or not is_dense:
            return False
        return marked or self.zeros or f["m"] ** 2 > 9 * self._variance(f)

    def filled(self, x, marked=False):
        """The example with guesses for what is unknown."""
        if self.sparse or self.n_seen < moments.JUDGED_AFTER:
            return x
        lacking = {d: f for d, f in self.moments.items() if d not in x and self._is_unknown(d, marked)}
        return x | {d: f["last"] if f["excess"] < 0 else f["m"] for d, f in lacking.items()}

    def _variance(self, f):
        return f["S"] / f["w"] if f["w"] > 0 else 0.0

    def _wanted(self, f):
        """The variance by which to scale a feature; 0 to leave it alone."""
        if self.sparse or not f["varied"]:
            return 0.0
        if not self.scales:
            return float(self._is_far(f["m"]))
        is_constant = np.sqrt(self._variance(f)) <= SUM_ROUNDING * abs(f["m"])
        return 1.0 if is_constant else self._variance(f)

    def _is_far(self, off):
        limit = self.far[0] + self.far[1] * self.spread
        return limit > 0 and off**2 > limit

    def _spread_now(self):
        moments = [] if self.sparse else self.moments.values()
        return self.norm + sum(self._variance(f) / (self._wanted(f) or 1.0) for f in moments)

    def _has_moved(self):
        V, used = self._spread_now(), self.spread
        gamma_is_a_number = 0 < self.far[0] < np.inf
        if not gamma_is_a_number and V > 0 and max(V / used if used else np.inf, used / V) > moments.SPREAD_FACTOR:
            return True
        if not self.scales:
            return any(self._wanted(f) and self._is_far(f["m"] - f["shift"]) for f in self.moments.values())
        scaled = [f for f in self.moments.values() if f["spread"] > 0]
        ratios = [np.sqrt(self._wanted(f) / f["spread"]) for f in scaled]
        far = [abs(f["m"] - f["shift"]) > np.sqrt(f["spread"]) for f in scaled]
        moved = [a or r > moments.FACTOR or r < 1 / moments.FACTOR for a, r in zip(far, ratios, strict=True)]
        return moments.FEW * sum(moved) > len(scaled)

    def renew(self, n_members):
        first = self.n_seen == 1 and 0 < len(self.began) <= renewal.AT_ONCE
        latest, known, was_active = self.n_seen - 1, len(self.moments), self.is_active
        for d in sorted(self.began) if not self.sparse else ():
            if d not in self.moments and (first or self._deserves_place(d, latest)):
                self.moments[d] = {"w": 0.0, "m": 0.0, "S": 0.0, "varied": False, "shift": 0.0, "spread": 0.0}
                self.moments[d] |= {"last": 0.0, "excess": 0.0}
        self._take_into_use()
        cuts = self.scales and self.is_active
        if not was_active and (cuts or len(self.moments) > known):
            self.norm = self.weight = 0.0
            if cuts:
                self._take_into_use()
        self.renewed = self.n_seen
        self.due, self.wait = False, self.n_seen + max(1, n_members)

    def _take_into_use(self):
        self.spread = self._spread_now() or self.spread
        for f in self.moments.values():
            f["spread"] = self._wanted(f)
            f["shift"] = f["m"] if f["spread"] > 0 else 0.0

    def scaled(self, x):
        """The features as the kernel sees them: {column: float32 value}, without zeros."""
        if self.is_active:
            x = {d: np.clip(v, -self.cut, self.cut) for d, v in x.items() if d not in self.moments} | {
                d: self._z(f, x.get(d, 0.0)) for d, f in self.moments.items()
            }
        return {d: np.float32(v) for d, v in sorted(x.items()) if np.float32(v) != 0}

    def _z(self, f, v):
        z = (v - f["shift"]) / (np.sqrt(f["spread"]) or 1.0)
        return np.clip(z, -self.cut, self.cut)


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
    for begin in range(0, len(g), SLOT_BLOCK):
        block = begin + np.flatnonzero(allowed[begin : begin + SLOT_BLOCK])
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
    curvature = np.maximum(diagonal[i] + diagonal - 2.0 * K_i, DUST)
    gain = np.where((alpha > lo) & (g < g[i]), (g[i] - g) ** 2 / curvature, 0.0)
    return int(np.argmax(gain)) if gain.max(initial=0.0) > 0 else None


def pair_step(alpha, g, lo, hi, i, j, diagonal, K_i, K_j):
    """The best step along (i, j), in place; a bound that is reached is assigned.  Returns its rounding."""
    room_i, room_j = hi[i] - alpha[i], alpha[j] - lo[j]
    curvature = diagonal[i] + diagonal[j] - 2.0 * K_i[j]
    newton = (g[i] - g[j]) / curvature if curvature > DUST else np.inf
    step = min(room_i, room_j, newton)
    alpha[i] = hi[i] if step == room_i else alpha[i] + step
    alpha[j] = lo[j] if step == room_j else alpha[j] - step
    g -= step * K_i - step * K_j
    return KERNEL_ROUNDING * step * (abs(diagonal[i]) + abs(diagonal[j]))


def solve(K, y, lo, hi, tol, max_steps=200_000):
    """SMO with the most violating pair, from alpha = 0 until no pair violates by more than tol; return alpha and g."""
    alpha, g = np.zeros(len(y)), np.array(y, float)
    for _ in range(max_steps):
        if not violation(alpha, g, lo, hi) > tol:
            return alpha, g
        i, j = extremes(alpha, g, lo, hi)
        pair_step(alpha, g, lo, hi, i, j, np.diag(K), K[i], K[j])
    raise AssertionError(f"no solution after {max_steps} steps")


def conjugate_steps(K, y, lo, hi, tol, n_steps, most):
    """The first steps of second order along conjugate directions, from alpha = 0; return alpha, g and the steps taken.

    A direction begins anew at a bound, and when it moves more than `most` examples.
    """
    alpha, g, diagonal = np.zeros(len(y)), np.array(y, float), np.diag(K)
    direction, moved = np.zeros(len(y)), set()
    for step in range(n_steps):
        i, _ = extremes(alpha, g, lo, hi)
        if not violation(alpha, g, lo, hi) > tol:
            return alpha, g, step
        j = second_order_partner(alpha, g, lo, i, diagonal, K[i])
        pair, slope = np.zeros(len(y)), g[i] - g[j]
        pair[i], pair[j] = 1.0, -1.0
        if 0 < len(moved) <= most:
            turned = pair - (pair @ K @ direction) / (direction @ K @ direction) * direction
            curvature, every = turned @ K @ turned, sorted(moved | {i, j})
            new = alpha + slope / curvature * turned
            inside = (lo[every] < new[every]).all() and (new[every] < hi[every]).all()
            if curvature > 1e-3 * (pair @ K @ pair) and inside:
                alpha, g, direction, moved = new, g - slope / curvature * (K @ turned), turned, set(every)
                continue
        pair_step(alpha, g, lo, hi, i, j, diagonal, K[i], K[j])
        is_full = alpha[i] < hi[i] and alpha[j] > lo[j]
        direction, moved = pair, {i, j} if is_full else set()
    return alpha, g, n_steps


def row_hash(label, words):
    """The hash of an example, whose features are these 32-bit words."""
    h = int(label) + 1
    for word in words:
        h = (h ^ int(word)) * 0xD6E8FEB86659FD93 % 2**64
        h ^= h >> 32
    return h * 0xD6E8FEB86659FD93 % 2**64


# ---------------------------------------------------------------------------------------------------------- expansions


class NaiveExpansion:
    """The members of a twin by slot, on the kernel matrix K of a whole stream.

    K is given, `dot` as well, and slots stay where they are in the engine: a twin then agrees bit for bit, or not at
    all.
    """

    def __init__(self, K, diagonal, rule, C=1.0, pos_weight=1.0, dot=np.dot):
        self.K, self.diagonal, self.rule = K, diagonal, rule
        self.C, self.pos_weight, self.dot = C, pos_weight, dot
        self.examples, self.ids = np.empty(0, int), np.empty(0, int)
        self.y, self.alpha, self.g, self.lo, self.hi = (np.empty(0) for _ in range(5))  # by slot; a hole has y = 0
        self.n_seen = self.n_squeezed = self.since_eviction = 0
        self.pair = None, None  # slots of the largest g that may rise and of the smallest that may fall
        self.margins = []  # margin and sign of each example that the sigmoid learns from
        self.said = np.nan  # of the next example, when it was predicted

    @property
    def _problem(self):
        return self.alpha, self.g, self.lo, self.hi

    def _arrive(self):
        """The stream's next example and its f(x), after the squeeze that may be due."""
        if 4 * np.sum(self.y == 0) > len(self.y) + 256:
            self._squeeze()
        x, self.n_seen = self.n_seen, self.n_seen + 1
        return x, self.dot(self.alpha, self.K[x, self.examples])

    def _note_margin(self, margin, y):
        self.margins.append((margin if np.isnan(self.said) else self.said, y))

    def _box(self, y, w):
        return self.C * w * (self.pos_weight if y > 0 else 1.0)

    def _is_member(self, id):
        return id is not None and id in self.ids[self.y != 0]

    def _join(self, **member):
        for name, value in ({"alpha": 0.0} | member).items():
            setattr(self, name, np.append(getattr(self, name), value))

    def _row(self, slot):
        return np.float64(self.K[self.examples[slot], self.examples])

    def _bury(self, gone):
        for a in (self.y, self.alpha, self.lo, self.hi):
            a[gone] = 0.0

    def _squeeze(self):
        self.n_squeezed += 1
        live = self.y != 0
        self.pair = tuple(None if slot is None else int(np.sum(live[:slot])) for slot in self.pair)
        for name in ("examples", "ids", "y", "alpha", "g", "lo", "hi"):
            setattr(self, name, getattr(self, name)[live])


# --------------------------------------------------------------------------------------------------------------- LASVM


class NaiveLASVM(NaiveExpansion):
    """The online rules of `streamsvm.online.lasvm`.  `pair` is known up to the rounding of the step that led to it."""

    def learn(self, y, w=1.0, id=None):
        """Learn the stream's next example, of sign y; return its margin before."""
        x, f = self._arrive()
        margin = f + self._bias()
        box = self._box(y, w)
        if box > 0 and not self._is_member(id):
            if None not in self.pair:
                self._note_margin(margin, y)
            self._process(x, y, f, box, x if id is None else id)
            self._reprocess()
            self.since_eviction += 1
            if self.since_eviction == EVICTION_PERIOD:
                self.since_eviction = 0
                self._evict()
        return margin

    def _bias(self):
        found = [self.g[slot] for slot in self.pair if slot is not None]
        return float(np.mean(found)) if found else 0.0

    def _process(self, x, y, f, box, number):
        g, (up, down) = y - f, self.pair
        partner = down if y > 0 else up
        violates = partner is not None and y * (g - self.g[partner]) > self.rule.tau
        if partner is None:
            if len(self.y) >= ENOUGH_MEMBERS:
                return
        elif not (violates and y * (f + self._bias()) < self.rule.margin):
            away, is_open = self._beyond(y, g), self.g[up] <= self.g[down]
            narrows = is_open and away < -self.rule.tau
            if not narrows and (away >= NEAR_MARGIN or np.sum(self._off_far_bound()) >= RESERVE):
                return
        self._join(examples=x, ids=number, y=y, g=g, lo=min(0.0, box * y), hi=max(0.0, box * y))
        k = len(self.y) - 1
        if violates:
            self._step(*((k, partner) if y > 0 else (partner, k)))
        elif y > 0 and (up is None or g > self.g[up]):
            self.pair = k, down
        elif y < 0 and (down is None or g < self.g[down]):
            self.pair = up, k

    def _beyond(self, y, g):
        """How far examples with alpha = 0 are from violating, whatever the bias between the extremes."""
        i, j = self.pair
        ends = -np.inf if i is None else self.g[i], np.inf if j is None else self.g[j]
        return np.where(np.asarray(y) > 0, min(ends) - g, g - max(ends))

    def _off_far_bound(self):
        return np.where(self.y > 0, self.alpha < self.hi, self.alpha > self.lo) & (self.y != 0)

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
        beyond = self._beyond(self.y, self.g)
        candidate = (self.alpha == 0) & (self.y != 0)
        near = np.sum(candidate & (beyond >= 0) & (beyond < self.rule.slack))
        members = np.sum(self.y != 0)
        slack = 0.0 if near > SPARED * members or members > ENOUGH_MEMBERS else self.rule.slack
        useless = candidate & (beyond >= slack)
        useless[[i, j]] = False
        missing = max(0, RESERVE - np.sum(self._off_far_bound() & ~useless))
        nearest = np.flatnonzero(useless & (beyond < NEAR_MARGIN))
        useless[nearest[np.argsort(beyond[nearest], kind="stable")][:missing]] = False
        self._bury(useless)


class PrintedLASVM(NaiveLASVM):
    """LASVM as the paper prints it (section 3.2): no example is refused, and REPROCESS evicts after its step."""

    def learn(self, y, w=1.0, id=None):
        """Learn the stream's next example, of sign y; return its margin before."""
        x, f = self._arrive()
        margin, box = f + self._bias(), self._box(y, w)
        if box == 0 or self._is_member(id):
            return margin
        if None not in self.pair:
            self._note_margin(margin, y)
        seeded = self.alpha.any() or min(np.sum(self.y > 0), np.sum(self.y < 0)) >= SEEDS
        partner = self.pair[1] if y > 0 else self.pair[0]
        self._join(examples=x, ids=x if id is None else id, y=y, g=y - f, lo=min(0.0, box * y), hi=max(0.0, box * y))
        k = len(self.y) - 1
        if seeded and partner is not None and y * (self.g[k] - self.g[partner]) > self.rule.tau:
            self._step(*((k, partner) if y > 0 else (partner, k)))
        else:
            up, down = self.pair
            if y > 0 and (up is None or self.g[k] > self.g[up]):
                self.pair = k, down
            if y < 0 and (down is None or self.g[k] < self.g[down]):
                self.pair = up, k
        steps = 0
        while seeded and steps < MAX_REPROCESS and self._reprocess_once(steps):
            steps += 1
        return margin

    def _reprocess_once(self, steps):
        i, j = self.pair
        at_least = abs(self.rule.reprocess)
        if i is None or j is None or not self.g[i] - self.g[j] > self.rule.tau:
            return False
        if steps >= at_least and not self.g[i] - self.g[j] > self.rule.delta_max:
            return False
        self._step(i, j)
        i, j = self.pair
        if i is not None and j is not None:
            idle = (self.alpha == 0) & (self.y != 0)
            gone = idle & np.where(self.y < 0, self.g >= self.g[i], self.g <= self.g[j])
            self._bury(gone)
            if gone[i] or gone[j]:
                self.pair = extremes(*self._problem)
        return True


class NaiveTogether:
    """The twin of `streamsvm.online.joint_learning`: models of classes that learn a stream, one example after another.

    `models` are those of the pairs (a, b) of classes, with a as positive; or of the single classes, (a,), against all
    others.  `begin` makes a model.  Each example has one row of the kernel matrix that all models have.
    """

    def __init__(self, begin, pairs):
        self.begin, self.pairs = begin, pairs
        self.classes, self.models, self.told = [], {}, []

    def learn(self, label, w=1.0, said=None):
        """Learn the stream's next example with all models that it concerns; `said` is by their keys."""
        x = len(self.told)
        self.told.append((label, w))
        pupils = self._begin(label) if label not in self.classes else []
        for key in self.models:
            self._learn(key, x, label, w, (said or {}).get(key, np.nan))
        past = sorted(self._members() - {x})
        for key in pupils:  # what went before is new to them
            for member in past:
                self._learn(key, member, *self.told[member])

    def _begin(self, label):
        """Make the models of a new class; the keys of those that are to learn what went before."""
        self.classes.append(label)
        if self.pairs and len(self.classes) == 2:  # the first class's model goes on
            self.models = {tuple(self.classes): model for model in self.models.values()}
            return []
        others = self.classes[:-1] if self.pairs else []
        new = [(other, label) for other in others] or [(label,)]
        self.models |= {key: self.begin() for key in new}
        return new

    def _members(self):
        """The members of all models, by their places in the stream."""
        return {x for model in self.models.values() for x in model.examples[model.y != 0].tolist()}

    def _learn(self, key, x, label, w, said=np.nan):
        sign = 1 if label == key[0] else -1 if label in key or not self.pairs else 0
        if sign:
            self.models[key].n_seen, self.models[key].said = x, said
            self.models[key].learn(sign, w)


# ------------------------------------------------------------------------------------------------------ without a bias


def primal(alpha, y, K, lo, hi):
    """1/2 ||w||^2 + the sum of the members' losses max(lo_s g_s, hi_s g_s)."""
    g = gradient(alpha, y, K)
    return 0.5 * alpha @ K @ alpha + np.maximum(lo * g, hi * g).sum()


def loss_sums(g, alpha, lo, hi):
    """Sums of the gap's terms, of the losses, of their squares, and of the boxes."""
    h = np.maximum(lo * g, hi * g)
    return np.sum(h - alpha * g), np.sum(h), np.sum(h * h), np.sum(hi - lo)


def box_violation(alpha, g, lo, hi):
    """How much the member that violates most violates by itself; 0 if none does."""
    return max(np.max(g[alpha < hi], initial=0.0), np.max(-g[alpha > lo], initial=0.0))


def best_move(g, curvature, low, high):
    """The d in [low, high] with the largest g d - curvature d^2 / 2; without curvature, as far as g points."""
    if g == 0.0:
        return 0.0
    return float(np.clip(g / curvature if curvature > DUST else np.copysign(np.inf, g), low, high))


def solve_box(K, y, lo, hi, tol, max_steps=200_000):
    """Projected coordinate ascent: from alpha = 0 the move with the largest gain, until no member violates by more
    than tol; return alpha and g.
    """
    alpha, g, curvature = np.zeros(len(y)), np.array(y, float), np.maximum(np.diag(K), DUST)
    for _ in range(max_steps):
        if box_violation(alpha, g, lo, hi) <= tol:
            return alpha, g
        d = np.clip(g / curvature, lo - alpha, hi - alpha)
        i = int(np.argmax(g * d - 0.5 * curvature * d * d))
        alpha[i] = np.clip(alpha[i] + d[i], lo[i], hi[i])
        g -= d[i] * K[i]
    raise AssertionError(f"no solution after {max_steps} steps")


def gain(d, g, K):
    """How much the dual grows when two members move by d: g'd - 1/2 d'Kd."""
    return g[0] * d[0] + g[1] * d[1] - 0.5 * (K[0, 0] * d[0] * d[0] + K[1, 1] * d[1] * d[1]) - K[0, 1] * d[0] * d[1]


def best_moves(g, K, low, high):
    """The d of two members with the largest gain: where its gradient is 0, or the best point of the box's edges.

    On an edge one member moves to a bound and the other as far as is then best.  g, low, high are (2,), K is (2, 2).
    """
    determinant = K[0, 0] * K[1, 1] - K[0, 1] * K[0, 1]
    if K[0, 0] > 0 and determinant > KERNEL_ROUNDING * K[0, 0] * K[1, 1]:
        d = (np.diag(K)[::-1] * g - K[0, 1] * g[::-1]) / determinant
        if (low <= d).all() and (d <= high).all():
            return d
    points = [(best_move(g[0], K[0, 0], low[0], high[0]), 0.0)]
    points += [(end[0], best_move(g[1] - K[0, 1] * end[0], K[1, 1], low[1], high[1])) for end in (low, high)]
    points += [(best_move(g[0] - K[0, 1] * end[1], K[0, 0], low[0], high[0]), end[1]) for end in (low, high)]
    return np.array(points[int(np.argmax([gain(d, g, K) for d in points]))])


def joint_partner(alpha, g, lo, hi, i, diagonal, K_i):
    """The member whose joint step with i, if it is cut by no bound, gains most over that of i alone; None if none does.

    Its move has the sign of K_ii g_j - K_ij g_i, and must be one that it may make.
    """
    product = diagonal[i] * diagonal
    determinant = np.maximum(product - K_i * K_i, KERNEL_ROUNDING * product + DUST)
    d = diagonal[i] * g - K_i * g[i]
    may_move = np.where(d > 0, alpha < hi, alpha > lo)
    gains = np.where(may_move, d * d / determinant, 0.0)
    j = int(np.argmax(gains))
    return j if gains[j] > 0 and j != i else None


def distances(alpha, g, lo, hi):
    """How far each gradient is from letting its member move in the direction that its box allows."""
    to_rise = np.where(alpha < hi, np.maximum(0.0, -g), np.inf)
    to_fall = np.where(alpha > lo, np.maximum(0.0, g), np.inf)
    return np.minimum(to_rise, to_fall)


class NaiveGap(NaiveExpansion):
    """The online rules of `streamsvm.online.gap`.  `sums` adds up the losses of a block of slots."""

    def __init__(self, *args, sums=loss_sums, **kwargs):
        super().__init__(*args, **kwargs)
        self.sums = sums
        self.gap = self.loss = self.squares = self.boxes = 0.0
        self.n_admitted = self.n_reprocess = self.n_cleaned = 0

    def learn(self, y, w=1.0, id=None):
        """Learn the stream's next example, of sign y; return its margin before."""
        x, f = self._arrive()
        C = self._box(y, w)
        if not C > 0 or self._is_member(id):
            return f
        support = self.y[self.alpha != 0]
        both = bool((support > 0).any() and (support < 0).any())
        if both:
            self._note_margin(f, y)
        active = self.rule.ramp != CONVEX and both and self.n_admitted >= self.rule.ramp_warmup
        noise = active and y * f < self.rule.ramp_s
        if self.rule.ramp == IGNORE and (noise or y * f > 1):
            return f
        beta = C if noise and self.rule.ramp == CONCAVE else 0.0
        members = np.sum(self.y != 0)
        enough = max(self.boxes / members if members else C, self._target(len(support)))
        lo, hi = min(0.0, C * y) - beta * y, max(0.0, C * y) - beta * y
        self._join(examples=x, ids=x if id is None else id, y=y, g=y - f, lo=lo, hi=hi)
        self.n_admitted += 1
        self._process(len(self.y) - 1)
        self._reprocess(enough)
        self.since_eviction += 1
        if self.since_eviction == self.rule.clean_every:
            self.since_eviction = 0
            self._clean()
        return f

    def _target(self, n_support):
        if n_support == 0:
            return 0.0
        return np.sqrt(max(0.0, self.squares - self.loss * self.loss / n_support))

    def _process(self, k):
        g = self.g[k]
        if (g > 0 and self.hi[k] > 0) or (g < 0 and self.lo[k] < 0):
            self._step(k)
        else:
            self.boxes += self.hi[k] - self.lo[k]
            self.pair = extremes(*self._problem)

    def _reprocess(self, enough):
        for _ in range(MAX_REPROCESS):
            i = self._violator()
            if i is None or not self.gap > enough:
                return
            self._step(i)
            self.n_reprocess += 1

    def _violator(self):
        """The member that may move and whose gradient is farthest from 0; None if it is within tau."""
        up, down = self.pair
        rise = -np.inf if up is None else self.g[up]
        fall = -np.inf if down is None else -self.g[down]
        return None if max(rise, fall) <= self.rule.tau else up if rise >= fall else down

    def _step(self, i):
        diagonal, K_i = self.diagonal[self.examples], self._row(i)
        j = joint_partner(*self._problem, i, diagonal, K_i) if self.rule.joint else None
        low, high = self.lo - self.alpha, self.hi - self.alpha
        if j is None:
            d = best_move(self.g[i], diagonal[i], low[i], high[i])
            self._move(i, d, low[i], high[i])
            self.g -= d * K_i
        else:
            pair = np.array([i, j])
            K = np.array([[diagonal[i], K_i[j]], [K_i[j], diagonal[j]]])
            d = best_moves(self.g[pair], K, low[pair], high[pair])
            for slot, change in zip(pair, d, strict=True):
                self._move(slot, change, low[slot], high[slot])
            self.g -= d[0] * K_i + d[1] * self._row(j)
        self._note()

    def _move(self, i, d, low, high):
        """alpha_i += d; a bound that is reached is assigned."""
        inside = np.clip(self.alpha[i] + d, self.lo[i], self.hi[i])
        self.alpha[i] = self.hi[i] if d == high else self.lo[i] if d == low else inside

    def _note(self):
        self.pair = extremes(*self._problem)
        blocks = [slice(begin, begin + SLOT_BLOCK) for begin in range(0, len(self.g), SLOT_BLOCK)]
        sums = [self.sums(self.g[b], self.alpha[b], self.lo[b], self.hi[b]) for b in blocks]
        self.gap, self.loss, self.squares, self.boxes = (sum(terms) for terms in zip(*sums, strict=True))

    def _clean(self):
        idle = np.flatnonzero((self.alpha == 0) & (self.y != 0))
        if len(idle) <= self.rule.max_non_sv:
            return
        away = distances(*self._problem)
        nearest_first = idle[np.argsort(away[idle], kind="stable")]
        too_many = nearest_first[self.rule.max_non_sv :]
        self._bury(too_many[away[too_many] > 0])
        self._note()
        self.n_cleaned += 1


# -------------------------------------------------------------------------------------------------------------- sigmoid


def slopes(margins, memory=0.999, smallest=0.02, largest=50.0, clip=10.0):
    """The slopes for negative and for positive margins after (margin, sign) pairs, by damped Newton steps."""
    slope, curvature = {False: 2.0, True: 2.0}, {False: 1.0, True: 1.0}
    for margin, y in margins:
        side, f = bool(margin > 0), float(np.clip(margin, -clip, clip))
        p = 1 / (1 + np.exp(-slope[side] * f))
        curvature[side] = memory * curvature[side] + f * f * p * (1 - p) + 1e-6
        slope[side] = float(np.clip(slope[side] + ((y > 0) - p) * f / curvature[side], smallest, largest))
    return slope[False], slope[True]


# ---------------------------------------------------------------------------------------------------- pairwise coupling


def coupled(r, n_classes, nearest=1e-7):
    """The probabilities of the classes from those of the pairs: the conditions of the optimum as one linear system."""
    Q, r = np.zeros((n_classes, n_classes)), np.clip(r, nearest, 1 - nearest)
    for r_ij, (i, j) in zip(r, itertools.combinations(range(n_classes), 2), strict=True):
        Q[i, i] += (1 - r_ij) ** 2
        Q[j, j] += r_ij**2
        Q[i, j] = Q[j, i] = -r_ij * (1 - r_ij)
    system = np.block([[Q, np.ones((n_classes, 1))], [np.ones((1, n_classes)), np.zeros((1, 1))]])
    return np.linalg.solve(system, [0.0] * n_classes + [1.0])[:n_classes]


# -------------------------------------------------------------------------------------------- thresholds, class weights


def threshold(margins, memory=0.9998, period=20, enough=10):
    """The threshold after (margin, sign) pairs: the edge k / 20 whose decayed recalls have the largest product."""
    edges = np.arange(-59, 60) / 20
    seen, chosen = [], 0.0
    for margin, y in margins:
        seen.append((margin, y > 0))
        n_positive = sum(positive for _, positive in seen)
        if len(seen) % period == 0 and enough <= n_positive <= len(seen) - enough:
            weights = memory ** np.arange(len(seen) - 1, -1, -1)
            f, positive = (np.array(column) for column in zip(*seen, strict=True))
            above = f > edges[:, None]
            product = (1 + (above & positive) @ weights) * (1 + (~above & ~positive) @ weights)
            best = np.flatnonzero(product >= product.max() / (1 + 1e-9))
            chosen = edges[best[np.argmin(np.abs(edges[best]))]]
    return chosen


def balanced_weights(labels):
    """For each label, the root of the class ratio among the labels up to it, if its class is the rarer one."""
    found = []
    for t, y in enumerate(labels):
        own = sum(other == y for other in labels[: t + 1])
        found.append(max(1.0, (t + 1 - own) / own) ** 0.5)
    return found


# ---------------------------------------------------------------------------------------------------- active selection


def closest(keys, decide):
    """The key with the smallest |f|, the first of equals, and its f: one after the other."""
    best = None
    for key in keys:
        f = decide(key)
        if best is None or abs(f) < abs(best[1]):
            best = key, f
    return best


def auto_active(keys, decide, delta, within):
    """AUTOACTIVE over candidates as they are drawn: the closest key, its f, and how many were looked at."""
    looked_at, near = [], 0
    for key in keys:
        looked_at.append(key)
        near += abs(decide(key)) <= 1.0 + delta / 2.0
        if near == within:
            break
    return *closest(looked_at, decide), len(looked_at)


def most_wrong(keys, decide, labels):
    """GRADIENT: the key with the smallest y f, the first of equals, and its f."""
    best, least = None, np.inf
    for key in keys:
        f = decide(key)
        if best is None or (f if labels[key] else -f) < least:
            best, least = (key, f), f if labels[key] else -f
    return best


def margin_exhausted(answers, pool):
    """How far `MarginExhausted` is after these answers, of (margin, y, reason): outside in a row, audited."""
    outside = audited = 0
    for margin, y, reason in answers:
        auditing = outside >= pool
        inside = reason == "boundary" and abs(margin) < 1
        contradicts = auditing and reason in ("explore", "audit") and (margin if y else -margin) < 1
        if inside or contradicts:
            outside = audited = 0
        elif auditing:
            audited += reason in ("explore", "audit")
        else:
            outside += reason == "boundary"
    return outside, audited


# --------------------------------------------------------------------------------------------------------- batch solver


class NaivePlanner:
    """SMO with second-order working sets and planned steps, on a kernel matrix: `batch.steps.pairs` step by step.

    A working set is (i, j) with its direction e_i - e_j.  `history` holds the sets of all steps, `planned` how many
    were planned; the last planned step is kept as the set that was to follow, and its size relative to the Newton step.
    `closest` is by how much the closest decision so far was made, relative to what was compared: where it is next to
    nothing, another rounding of the same sums would have decided otherwise.
    """

    def __init__(self, K, y, lower, upper, planning, over_step=1.0):
        self.K, self.y, self.lower, self.upper = K, y, lower, upper
        self.planning, self.over_step = planning, over_step
        self.beta, self.g = np.zeros(len(y)), np.array(y, float)
        self.history, self.planned = [], 0
        self.to_follow, self.ratio, self.free = None, 1.0, False
        self.closest = np.inf

    @property
    def violation(self):
        return violation(self.beta, self.g, self.lower, self.upper)

    def _decided(self, *values):
        """Note how close the largest of some values is to the next one."""
        second, first = np.sort(values)[-2:]
        self.closest = min(self.closest, (first - second) / max(abs(first), abs(second), 1e-300))

    def curvature(self, i, j):
        return max(self.K[i, i] + self.K[j, j] - 2.0 * self.K[i, j], DUST)

    def room(self, i, j):
        return min(self.upper[i] - self.beta[i], self.beta[j] - self.lower[j])

    def gain(self, i, j, exact):
        """Twice the gain of the best step along (i, j): with the bounds or, not `exact`, without."""
        w, q = self.g[i] - self.g[j], self.curvature(i, j)
        mu = min(w / q, self.room(i, j))
        return mu * (2.0 * w - q * mu) if exact else w * w / q

    def working_set(self):
        i, _ = extremes(self.beta, self.g, self.lower, self.upper)
        if self.history:  # at first all are equal, and none is rounded
            self._decided(*self.g[self.beta < self.upper])
        exact = self.to_follow is not None and abs(self.ratio - 1.0) > 0.9
        may_fall = (self.beta > self.lower) & (self.g < self.g[i])
        gains = [self.gain(i, j, exact) if may_fall[j] else 0.0 for j in range(len(self.y))]
        j = int(np.argmax(gains))
        if self.history:
            self._decided(*gains)
        if self.to_follow is not None:
            self._decided(abs(self.ratio - 1.0), 0.9)
            a, b = self.to_follow if self.g[self.to_follow[0]] >= self.g[self.to_follow[1]] else self.to_follow[::-1]
            if self.room(a, b) > 0 and (a, b) != (i, j):
                self._decided(self.gain(a, b, exact), gains[j])
                if self.gain(a, b, exact) > gains[j]:
                    return a, b
        return i, j

    def plan(self, i, j):
        """The recent set to follow and the step before it that is best for both together; None if bounds disturb."""
        v = np.zeros(len(self.y))
        v[i], v[j] = 1.0, -1.0
        best, gains = None, {}
        for a, b in self.history[::-1][: self.planning]:
            v_2 = np.zeros(len(self.y))
            v_2[a], v_2[b] = 1.0, -1.0
            V = np.array([v, v_2])
            Q = np.array([[self.curvature(i, j), v @ self.K @ v_2], [0.0, self.curvature(a, b)]])
            Q[1, 0] = Q[0, 1]
            if not np.linalg.det(Q) > 1e-12 * Q[0, 0] * Q[1, 1]:
                continue
            mu = np.linalg.solve(Q, V @ self.g)  # the best of the plane that both directions span
            first, both = self.beta + mu[0] * v, self.beta + mu @ V
            ends = [first[[i, j]], both[[a, b]]]
            boxes = [(self.lower[s], self.upper[s]) for s in ([i, j], [a, b])]
            inside = all((lo < end).all() and (end < hi).all() for end, (lo, hi) in zip(ends, boxes, strict=True))
            for end, (lo, hi) in zip(ends, boxes, strict=True):
                self.closest = min(self.closest, np.min(np.abs([end - lo, end - hi]) / (hi - lo)))
            gained = mu @ V @ self.g - 0.5 * mu @ Q @ mu
            if inside:
                gains[frozenset((a, b))] = gained
            if inside and (best is None or gained > best[0]):
                best = gained, mu[0], (a, b)
        if len(gains) > 1:
            self._decided(*gains.values())
        return best

    def step(self):
        i, j = self.working_set()
        w, q, room = self.g[i] - self.g[j], self.curvature(i, j), self.room(i, j)
        best = self.plan(i, j) if self.free else None
        if best is None:
            self._decided(self.over_step * w / q, room)
        mu, self.to_follow = (min(self.over_step * w / q, room), None) if best is None else best[1:]
        self.ratio, self.free = mu * q / w, best is None and mu < room
        self.planned += best is not None
        reached_i, reached_j = mu >= self.upper[i] - self.beta[i], mu >= self.beta[j] - self.lower[j]
        self.beta[i] = self.upper[i] if reached_i else self.beta[i] + mu
        self.beta[j] = self.lower[j] if reached_j else self.beta[j] - mu
        self.g -= mu * (self.K[i] - self.K[j])
        self.history.append((i, j))


def newton_direction(K_F, g_F):
    """d with K_F d = g_F - mu 1 and sum d = 0, from the bordered system."""
    m = len(g_F)
    A = np.block([[K_F, np.ones((m, 1))], [np.ones((1, m)), np.zeros((1, 1))]])
    return np.linalg.lstsq(A, np.append(g_F, 0.0), rcond=None)[0][:m]


# ------------------------------------------------------------------------------------------------------------ seeding


def shift(beta, lower, upper, amount):
    """clip(beta + theta, lower, upper) with the sum grown by `amount` or as much as can be: theta by bisection."""
    low, high = (lower - beta).min() - 1.0, (upper - beta).max() + 1.0
    for _ in range(200):
        theta = 0.5 * (low + high)
        if (np.clip(beta + theta, lower, upper) - beta).sum() < amount:
            low = theta
        else:
            high = theta
    return np.clip(beta + high, lower, upper)


def forced_steps(beta, y, K, lower, upper, leaving):
    """Empty the leaving coefficients, the positive ones first, in pair steps with the best gain per unit moved."""
    beta = beta.copy()
    while beta[leaving].any():
        sign = 1.0 if (beta[leaving] > 0.0).any() else -1.0
        r = max(leaving, key=lambda i: sign * beta[i])
        g = gradient(beta, y, K)
        best, where, step = -np.inf, None, 0.0
        for j in range(len(beta)):
            room = upper[j] - beta[j] if sign > 0 else beta[j] - lower[j]
            if room > 0.0:
                delta = min(abs(beta[r]), room)
                gained = sign * (g[j] - g[r]) - delta / 2 * (K[r, r] + K[j, j] - 2 * K[r, j])
                if gained > best:
                    best, where, step = gained, j, delta
        old = beta[r], beta[where]
        beta[r] = 0.0 if step == abs(old[0]) else old[0] - sign * step
        bound = upper[where] if sign > 0 else lower[where]
        beta[where] = bound if step == abs(bound - old[1]) else old[1] + sign * step
    return beta


def eta_steps(beta, y, K, lower, upper, mu, leaving, entering):
    """ATO as printed, until no leaving example has a coefficient: beta at its end and the number of steps.

    For problems in which no two examples meet mu or a bound at once.
    """
    beta, steps = beta.copy(), 0
    g = gradient(beta, y, K)
    R = [i for i in leaving if beta[i] != 0.0]
    T = [i for i in entering if y[i] * (g[i] - mu) > 0.0]
    M = [i for i in range(len(y)) if i not in leaving and lower[i] < beta[i] < upper[i]]
    S = [i for i in range(len(y)) if lower[i] < upper[i]]
    while R:
        d = np.zeros(len(y))
        for i in R + T:
            d[i] = (0.0 if i in R else upper[i] if y[i] > 0 else lower[i]) - beta[i]
        equations = np.vstack([np.ones(len(M)), K[np.ix_(M, M)]])
        d[M] = -np.linalg.pinv(equations, rcond=1e-12) @ np.append(d.sum(), K[M] @ d)
        d_g = -K @ d
        eta, event = 1.0, None
        for i in S:
            if i in M:
                bound = upper[i] if d[i] > 0 else lower[i]
                share = (bound - beta[i]) / d[i]
            else:
                above = y[i] > 0 if i in T else beta[i] == upper[i]
                share = (mu - g[i]) / d_g[i] if (g[i] > mu) == above and (d_g[i] < 0) == above else np.inf
            if share < eta:
                eta, event = share, i
        beta += eta * d
        g, steps = gradient(beta, y, K), steps + 1
        if event in M:
            M.remove(event)
            beta[event] = upper[event] if d[event] > 0 else lower[event]
        elif event is not None:
            M.append(event)
            T = [i for i in T if i != event]
        else:
            R = []
    return beta, steps


def follow(beta, y, K, lower, upper, mu, leaving, jitter, tol):
    """The path on which the leaving coefficients go to 0, solved anew at each event; beta at its end and the events.

    A gradient is one of the margin when it is within tol of mu: (above, below).
    """
    beta, above, below = beta.copy(), *tol
    box = lower < upper
    M = [i for i in np.flatnonzero(box) if lower[i] < beta[i] < upper[i]]
    events = 0
    while True:
        g, m = gradient(beta, y, K), len(M)
        d = -beta[leaving]
        A = np.block([[np.zeros((1, 1)), np.ones((1, m))], [np.ones((m, 1)), K[np.ix_(M, M)] + jitter * np.eye(m)]])
        x = -np.linalg.solve(A, np.append(d.sum(), K[np.ix_(M, leaving)] @ d))
        x += np.linalg.solve(A, np.append(0.0, jitter * x[1:]))  # what the jitter has left of the equations
        change = np.zeros(len(beta))
        change[leaving], change[M] = d, x[1:]
        rate = -K @ change
        t, who = 1.0, None
        for i in np.flatnonzero(box):
            if i in M:
                room = upper[i] - beta[i] if change[i] > 0 else beta[i] - lower[i]
                speed = abs(change[i])
            elif beta[i] <= lower[i]:
                room, speed = mu + above - g[i], rate[i] - x[0]
            else:
                room, speed = g[i] - mu + below, x[0] - rate[i]
            if speed > 1e-10 and room / speed < t:
                t, who = room / speed, i
        beta += t * change
        mu += t * x[0]
        if who is None:
            return beta, events
        events += 1
        if who in M:
            M.remove(who)
            beta[who] = upper[who] if change[who] > 0 else lower[who]
        else:
            M.append(who)


# --------------------------------------------------------------------------------------------------------- smooth SVM


def smooth_objective(F, y, c, w, b):
    """(b^2 + w'w) / 2 + sum_i c_i (1 - y_i (w'x_i + b))_+^2 / 2, example by example."""
    total = 0.5 * (b * b + w @ w)
    for x, label, cost in zip(F, y, c, strict=True):
        total += 0.5 * cost * max(0.0, 1.0 - label * (w @ x + b)) ** 2
    return total


def smooth_svm(F, y, c):
    """w and b of its minimum: dense Newton steps with halving, in the problem's own symbols."""
    A, u = np.column_stack([np.ones(len(F)), F]), np.zeros(F.shape[1] + 1)

    def f(u):
        return smooth_objective(F, y, c, u[1:], u[0])

    for _ in range(300):
        v = 1.0 - y * (A @ u)
        S = v > 0.0
        g = u - A.T @ (c * y * np.maximum(v, 0.0))
        z = np.linalg.solve(np.eye(len(u)) + A[S].T @ (c[S, None] * A[S]), -g)
        step = 1.0
        while step > 1e-12 and f(u + step * z) > f(u) + 1e-4 * step * (g @ z):
            step /= 2
        u = u + step * z
        if np.abs(z).max() < 1e-13 * (1.0 + np.abs(u).max()):
            break
    return u[1:], u[0]


# ------------------------------------------------------------------------------------------------------------ reservoir


def split_mix(number):
    """SplitMix64 of a number, in Python's integers."""
    z = (number + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


class NaiveReservoir:
    """Lists of (number, id, born, positive, box, features) that are sorted each time."""

    def __init__(self, size, span, max_values):
        self.rooms, self.span, self.max_values, self.kept = [size // 2] * 2, span, max_values, []

    def note(self, number, own_id, born, now, positive, box, x):
        if self.span is not None:
            self.kept = [example for example in self.kept if example[2] > now - self.span]
        if box > 0.0:
            self.forget([own_id])
            features = {d: v for d, v in sorted(x.items()) if v != 0.0}
            self._add((number, own_id, born, positive, box, features))

    def _add(self, example):
        positive = example[3]
        own = sorted([e for e in self.kept if e[3] == positive] + [example], key=lambda e: split_mix(e[0]))
        own = own[: self.rooms[positive]]
        while sum(len(e[5]) for e in own) > self.max_values:
            own.pop()
            self.rooms[positive] = len(own)
        self.kept = [e for e in self.kept if e[3] != positive] + own

    def forget(self, ids):
        self.kept = [example for example in self.kept if example[1] not in ids]

    def relabel(self, own_id, positive, factor):
        for example in [e for e in self.kept if e[1] == own_id and e[3] != positive]:
            self.kept.remove(example)
            self._add((*example[:3], positive, example[4] * factor, example[5]))


# ------------------------------------------------------------------------------------------------------------ snapshots


def faults_of_expansion(s, kernel):
    """What is wrong with the numbers of an expansion: the messages of `core.saving.faults`, in their order."""
    n, width = s.counts[SLOTS], s.counts[WIDTH]
    alpha, g, lo, hi, up, down, y, born = (
        getattr(s, name)[:n] for name in ("alpha", "g", "lo", "hi", "up", "down", "y", "born")
    )
    sound = {
        **{f"'{name}' holds numbers that are not finite": np.isfinite(getattr(s, name)[:n]) for name in BOXED},
        "a label is neither -1 nor 1": (abs(y) == 1) | (y == 0),
        "a box does not begin at 0": (lo <= 0) & (hi >= 0) & ((lo == 0) | (hi == 0)),
        "a coefficient is outside its box": (lo <= alpha) & (alpha <= hi),
        "a box is too large": hi - lo <= 1e18,
        "a hole has a box": (y != 0) | (lo >= hi),
        "a gradient is too large": abs(g) < 5e29,
        "an example's age is too large": abs(born.astype(float)) <= 2.0**62,
        "'up' does not fit the boxes": up == np.where(alpha < hi, 0.0, -1e30),
        "'down' does not fit the boxes": down == np.where(alpha > lo, 0.0, 1e30),
        "'losses' holds numbers that are not finite": np.isfinite(s.losses),
        "an unscaled feature is too large": abs(s.raw[:n]) < 1e18,
        **_soundness_of_features(s, n, width),
    }
    sq, self_k = s.sq[:n].astype(float), s.self_k[:n]
    sums = _squares_of_slots(s, n)
    before_cancelling = self_products(kernel._replace(coef0=abs(kernel.coef0)), sq)
    sound |= {
        "a squared norm is negative or too large": (sq >= 0) & (sq < 1e36),
        "'sq' does not fit the features": abs(sq - sums) <= 1e-5 * sums + 1e-37,
        "'self_k' does not fit the features and the kernel": abs(self_k - self_products(kernel, sq))
        <= 1e-9 * before_cancelling,
        "a kernel value is too large": abs(self_k) <= 1e30,
    }
    return [message for message, fits in sound.items() if not np.all(fits)]


BOXED = ("alpha", "g", "lo", "hi")


def _soundness_of_features(s, n, width):
    if s.counts[STORAGE] == COMPRESSED:
        return {}
    matrix = (s.columns if s.counts[STORAGE] == COLUMNS else s.bits)[:, :n]
    return {
        "'features' holds numbers that are not finite": np.isfinite(matrix),
        "a bit is neither 0 nor 1": s.bits[:, :n] <= 1 if s.counts[STORAGE] == BITS else True,
        "a feature is not among those that it counts": matrix[width:] == 0,
        "'starts' does not fit the features": np.count_nonzero(matrix, axis=0) == np.diff(s.starts[: n + 1]),
    }


def _squares_of_slots(s, n):
    if s.counts[STORAGE] != COMPRESSED:
        matrix = s.columns if s.counts[STORAGE] == COLUMNS else s.bits
        return (matrix[:, :n].astype(float) ** 2).sum(axis=0)
    own = [s.sparse_values[s.starts[t] : s.starts[t + 1]].astype(float) for t in range(n)]
    return np.array([values @ values for values in own])


def faults_of_scale(c):
    """What is wrong with the numbers of a scale: the messages of `core.saving.scale`, in their order."""
    n, largest = c.counts[PLACES], 4e36
    in_range = {
        "m": abs(c.m) <= 1e18,
        "shift": abs(c.shift) <= 1e18,
        "last": abs(c.last) <= 1e18,
        "spread": (c.spread >= 0) & (c.spread <= largest),
        "excess": abs(c.excess) <= largest,
        "S": c.S >= 0,
        "w": c.w >= 0,
        **{name: (getattr(c, name) >= 0) & (getattr(c, name) <= 2**62) for name in ("began", "named", "times")},
        "totals": (c.totals >= 0) & (c.totals <= largest * 2.0**62),
    }
    is_scaled, feature, features = c.spread > 0, c.feature[:n], len(c.place)
    known = (feature >= 0) & (feature < features)
    sound = {
        **{f"{name} of the scale is negative, not a number, or too large": fits for name, fits in in_range.items()},
        "'varied' of the scale is neither 0 nor 1": c.varied <= 1,
        "w of the scale is too large": c.w <= 2 * c.counts[SPAN],
        "a variance of the scale is too large": largest * c.w >= c.S,
        "the factors of the scale do not fit its variances": [
            factor == (1.0 / np.sqrt(spread) if spread > 0 else 1.0)
            for factor, spread in zip(c.factor, c.spread, strict=True)
        ],
        "the scale is active without a scaled feature, or the reverse": bool(c.counts[ACTIVE]) == is_scaled.any(),
        "a place belongs to no feature": known,
        "a place belongs to another feature": [c.place[d] == p for p, d in enumerate(feature) if known[p]],
        "a feature has no such place": np.count_nonzero(c.place >= 0) == n and np.all(c.place >= APART),
    }
    return [message for message, fits in sound.items() if not np.all(fits)]


def faults_of_rows(starts, columns, values, n_features):
    """What is wrong with compressed rows: the messages of `core.saving.rows`, in their order."""
    if starts[0] != 0 or np.any(np.diff(starts) < 0):
        return ["'starts' does not rise from 0"]
    rows = [slice(b, e) for b, e in itertools.pairwise(starts)]
    sound = {
        f"a feature is not among {n_features}": (columns >= 0) & (columns < n_features),
        "the features of an example are not in order": [np.all(np.diff(columns[row]) > 0) for row in rows],
        "a feature is 0, not a number, or too large": [
            np.all(values[row] != 0) and values[row] @ values[row] < 1e36 for row in rows
        ],
    }
    return [message for message, fits in sound.items() if not np.all(fits)]


# -------------------------------------------------------------------------------------------- why, and what has changed


def decision_value(model, z):
    """f of an example as the kernel sees it, from what a learner of two labels tells of itself, in double precision."""
    kernel = kernel_of(model)
    return model.dual_coef @ gram(kernel, model.support_vectors.toarray().astype(float), [z])[:, 0] + model.bias


def scaled_example(model, x):
    """An example as the kernel sees it, by column."""
    scales = [(x.get(name, 0.0), *model.scale_of(name)) for name in model.feature_names]
    return np.array([np.clip((v - m) * f, -3, 3) if (m, f) != (0, 1) else v for v, m, f in scales])


class NaiveAlarm:
    """`streamsvm.alarms` with lists of all values; `update` returns the name that an alarm is about, or None."""

    def __init__(self, both_sides, rate=1e-7):
        self.both_sides, self.rate = both_sides, rate
        self.begin()

    def begin(self):
        self.first, self.edges, self.bins, self.sums, self.drawn = {}, {}, {}, {}, 0

    def update(self, x):
        for name, v in x.items():
            if name not in self.edges:
                self.first.setdefault(name, []).append(v)
                if len(self.first[name]) == 100:
                    self.edges[name] = [sorted(self.first[name])[(e + 1) * 100 // 24] for e in range(23)]
                    self.bins[name], self.sums[name] = [], np.zeros((2, 3))
                continue
            self.bet(name, sum((e < v) + (e <= v) for e in self.edges[name]))
        begun = {name: self.mean(name) for name in self.sums if self.bins[name]}
        if not begun or sum(begun.values()) / len(begun) < 1 / self.rate:
            return None
        self.begin()
        return max(begun, key=begun.get)

    def bet(self, name, place):
        earlier = self.bins[name]
        u = ((split_mix(self.drawn) >> 11) + 0.5) / 2**53
        self.drawn += 1
        p = (sum(b > place for b in earlier) + u * (earlier.count(place) + 1)) / (len(earlier) + 1)
        earlier.append(place)
        a = np.array([0.5, 0.75, 0.875])
        for side in range(1 + self.both_sides):
            self.sums[name][side] = (1 + self.sums[name][side]) * a * max((p, 1 - p)[side], 1e-9) ** (a - 1)

    def mean(self, name):
        return self.sums[name][: 1 + self.both_sides].mean()
