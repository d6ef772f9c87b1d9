"""Decisions with a guarantee: the rules, and attacks on the promise."""

import math
from collections import deque

import numpy as np
import pytest

from streamsvm.conformal.decision import Decision
from streamsvm.conformal.guard import CAP, ETA, ETA_OF_AUDIT, FEW, LARGEST_LEVEL, Guard
from streamsvm.online.outputs.past import WINDOW

ALPHAS = (0.1, 0.02, 0.01)


def decide(guard, p):
    return Decision(guard.labels(p), p, None, None, guard.n)


class Twin:
    """The guard for prompt labels, slow and obvious."""

    def __init__(self, alpha):
        self.alpha, self.scores, self.level, self.seen = alpha, {}, {}, {}
        self.pool = []

    def _threshold(self, c):
        if c not in self.seen:
            return -1.0
        k, scores = len(self.seen), self.scores[c][-WINDOW:]
        if k > 2 and 2 * k * self.seen[c] >= sum(self.seen.values()) and 0 < len(scores) < FEW / self.alpha:
            scores = self.pool[-WINDOW:]
        place = int(math.exp(self.level[c]) * (len(scores) + 1))
        return sorted(scores)[min(place, len(scores)) - 1] if place and scores else -1.0

    def labels(self, p):
        best = max(p, key=p.get)
        return {c for c in p if c == best or p[c] >= self._threshold(c)}

    def note(self, p, labels, y):
        self.seen[y] = self.seen.get(y, 0) + 1
        before = self.level.get(y, math.log(self.alpha))
        wrong = len(labels) == 1 and y not in labels
        self.level[y] = min(before + ETA * (self.alpha - wrong), math.log(min(CAP * self.alpha, LARGEST_LEVEL)))
        self.scores.setdefault(y, []).append(p.get(y, 0.0))
        if len(self.seen) > 2:
            self.pool.append(p.get(y, 0.0))


@pytest.mark.parametrize(("n_classes", "alpha"), [(2, 0.1), (2, 0.02), (5, 0.1), (5, 0.02)])
def test_the_guard_is_its_twin(n_classes, alpha):
    rng = np.random.default_rng(0)
    guard, twin = Guard(alpha, 1.0), Twin(alpha)
    for _ in range(2500):
        y = int(rng.choice(n_classes, p=rng.dirichlet(np.ones(n_classes)) if n_classes > 2 else None))
        f = rng.normal(size=n_classes) + 2.5 * (np.arange(n_classes) == y)
        p = dict(enumerate((np.exp(f) / np.exp(f).sum()).tolist()))
        said = decide(guard, p)
        assert set(said.labels) == twin.labels(p)
        assert list(said.labels) == sorted(said.labels, key=p.get, reverse=True)
        guard.note(0, said, y)
        twin.note(p, said.labels, y)


def worst_excess(wrong, alpha):
    """The largest wrong - alpha m over all blocks of successive records."""
    above, worst, total = 0.0, 0.0, 0.0
    for w in wrong:
        total += w - alpha
        worst = max(worst, total - above)
        above = min(above, total)
    return worst


def greedy(rng, guard, t):
    """Wrong whenever the guard would decide, for a whole block, after it has earned all trust that there is."""
    low = 0.5 * guard.threshold(1)
    return ({0: 1 - low, 1: low}, 1) if low > 0.0 and t % 2000 > 1500 else ({0: 0.4, 1: 0.6}, 1)


def patient(rng, guard, t):
    """Right for long, then as often wrong as the guard allows, with ever smaller probabilities."""
    tiny = 10.0 ** -(3 + t % 7)
    return ({0: 1 - tiny, 1: tiny}, 1) if t % 4000 > 3000 else ({0: 0.05, 1: 0.95}, 1)


def turning(rng, guard, t):
    """A model that is certain, of a concept that turns at random times."""
    y = int(rng.random() < 0.5)
    p = float(np.clip(rng.beta(8, 1), 1e-6, 1 - 1e-6))
    says = y if (t // 500) % 2 == 0 else 1 - y
    return {says: p, 1 - says: 1 - p}, y


def noisy(rng, guard, t):
    """Probabilities that have nothing to do with the label, and a class that is rare."""
    p = float(rng.random())
    return {0: p, 1: 1 - p}, int(rng.random() < 0.02)


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("attack", [greedy, patient, turning, noisy])
def test_no_attack_breaks_the_promise(attack, alpha):
    """Among any m successive labelled records of a class, at most alpha m + K are wrong, and attacks come close."""
    rng, guard, wrong = np.random.default_rng(1), Guard(alpha, 1.0), {0: [], 1: []}
    for t in range(12_000):
        p, y = attack(rng, guard, t)
        said = decide(guard, p)
        wrong[y].append(said.is_wrong(y))
        guard.note(t, said, y)
    assert guard.excess == pytest.approx({0.1: 20, 0.02: 14.7, 0.01: 12.3}[alpha], abs=0.1)
    worst = max(worst_excess(wrong[y], alpha) for y in wrong)
    assert worst <= guard.excess
    if attack is greedy:
        assert worst > 0.5 * guard.excess, "the attack is one"


def test_a_guard_without_steering_would_fail():
    """The attack of the test above is strong enough: with a level that stays, it breaks the promise."""
    guard, wrong = Guard(0.1, 1.0), []
    for t in range(6000):
        p, y = patient(None, guard, t)
        said = decide(guard, p)
        wrong.append(said.is_wrong(y))
        guard.note(t, said, y)
        guard.classes[y].set_level(math.log(0.1))
    assert worst_excess(wrong, 0.1) > guard.excess


@pytest.mark.parametrize("alpha", [0.1, 0.02])
def test_late_labels_hold_in_the_long_run(alpha):
    """A model that is better than it says: 500 labels are always on their way."""
    rng, guard, waiting, wrong = np.random.default_rng(2), Guard(alpha, 1.0), deque(), []
    for t in range(20_000):
        y = int(rng.random() < 0.3)
        f = 2.5 * (2 * y - 1) + 2.0 * rng.normal()
        p = 1 / (1 + math.exp(-f))
        said = decide(guard, {0: 1 - p, 1: p})
        waiting.append((t, said, y))
        if len(waiting) > 500:
            guard.note(*waiting.popleft())
        wrong.append((y, said.is_wrong(y)))
    for c in (0, 1):
        assert np.mean([w for y, w in wrong[2000:] if y == c]) <= 1.15 * alpha


def test_scores_of_a_young_model_do_not_count_if_labels_are_late():
    guard = Guard(0.1, 1.0)
    early = decide(guard, {0: 0.5, 1: 0.5})
    for t in range(150):
        guard.note(t, early, t % 2)
    assert guard.classes[0].past.n_scores == 1  # the first label was not late
    guard.note(150, decide(guard, {0: 0.5, 1: 0.5}), 0)
    assert guard.classes[0].past.n_scores == 2


def test_an_audit_counts_each_of_its_errors_for_many():
    """Of the decided records one in 20 is labelled; without the weight, 20 times too many errors would be made."""
    rng = np.random.default_rng(3)
    found = {}
    for audit in (0.05, 1.0):
        guard, wrong = Guard(0.1, audit), []
        for t in range(30_000):
            y = int(rng.random() < 0.5)
            p = float(np.clip((y * 0.6 + 0.2) + 0.25 * rng.normal(), 0.001, 0.999))
            said = decide(guard, {0: 1 - p, 1: p})
            wrong.append(said.is_wrong(y))
            if not said.decided or rng.random() < 0.05:
                guard.note(t, said, y)
        found[audit] = np.mean(wrong[3000:])
    assert found[0.05] < 0.105
    assert found[1.0] > 1.1 * found[0.05]
    assert Guard(0.1, 0.05).eta == ETA_OF_AUDIT


def test_what_is_forgotten_or_corrected_is_taken_back():
    guard, other = Guard(0.1, 1.0), Guard(0.1, 1.0)
    rng = np.random.default_rng(4)
    for t in range(60):
        p = float(rng.random())
        said, y = decide(guard, {0: p, 1: 1 - p}), int(rng.random() < 0.5)
        guard.note(t, said, y)
        if t != 59:
            other.note(t, said, y)
    guard.forget([59, 1000])
    for c in (0, 1):
        np.testing.assert_array_equal(guard.classes[c].past.given()[1], other.classes[c].past.given()[1])
        assert guard.classes[c].log_level == pytest.approx(other.classes[c].log_level)
        assert guard.classes[c].tally == other.classes[c].tally
    before = guard.classes[0].tally.n, guard.classes[1].tally.n
    c = next(c for c in (0, 1) if 7 in guard.classes[c].past.given()[0])
    guard.relabel(7, 1 - c)
    after = guard.classes[0].tally.n, guard.classes[1].tally.n
    assert sorted(np.subtract(after, before)) == [-1, 1]
    assert guard.n == 59


def test_a_class_that_is_new_is_never_excluded():
    guard = Guard(0.1, 1.0)
    for t in range(200):
        guard.note(t, decide(guard, {0: 0.9, 1: 0.1}), 0)
    assert guard.labels({0: 0.999, 1: 0.001}) == (0, 1)
    assert guard.labels({}) == ()


def test_what_another_error_would_decide():
    """Of the last records of each class, those whose other label is below the class's share of scores."""
    rng, guard = np.random.default_rng(1), Guard(0.05, 1.0)
    assert math.isnan(guard.would_decide(0.1))
    given = {True: [], False: []}
    for i in range(3000):
        y = bool(rng.random() < 0.3)
        p = float(rng.beta(4, 2) if y else rng.beta(2, 4))
        given[y].append(p)
        guard.note(i, decide(guard, {False: 1.0 - p, True: p}), y)
    for alpha in (0.01, 0.05, 0.2):
        share = 0.0
        last = {y: given[y][-WINDOW:] for y in given}
        cut = {y: sorted(p if y else 1.0 - p for p in last[y])[int(alpha * (len(last[y]) + 1)) - 1] for y in given}
        for y in given:
            alone = np.mean([1.0 - p < cut[False] if p > 0.5 else p < cut[True] for p in last[y]])
            share += alone * len(given[y]) / 3000
        assert guard.would_decide(alpha) == pytest.approx(share)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_no_scores_by_leave_one_out_break_the_promise(alpha):
    """By these scores every class is improbable, and the guard never has enough of its own to do without them."""
    guard, wrong = Guard(alpha, 1.0), []
    guard.note(0, decide(guard, {0: 0.5, 1: 0.5}), 0)
    for t in range(WINDOW):
        guard.left_out = {0: [1.0], 1: [1.0]}
        said = decide(guard, {0: 1.0, 1: 0.0} if t > 0.7 * WINDOW else {0: 0.0, 1: 1.0})
        wrong.append(said.is_wrong(1))
        guard.note(t, said, 1, 0, counts=False)
    assert 0.5 * guard.excess < worst_excess(wrong, alpha) <= guard.excess
