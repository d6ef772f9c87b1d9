"""Probabilities that are corrected by recent errors, beside a slow twin."""

from math import exp, log

import numpy as np
import pytest

from streamsvm.online.outputs.recent import corrected, is_better, new_recent, note_label

RATES = np.array([0.1, 0.005])


class Twin:
    """The same in numpy, by a solver for H v = g."""

    def __init__(self):
        self.w, self.prior = np.array([0.0, 1, 0, 0, 0, 0]), 5.0 * np.eye(6)
        self.H, self.bias, self.error = self.prior.copy(), np.zeros(2), np.full(2, 0.1)
        self.loss = np.full((2, 2), 0.5)

    def features(self, p):
        z = min(max(log(max(p, 1e-5) / max(1 - p, 1e-5)), -8.0), 8.0)
        return np.array([1.0, z, *(3 * self.bias), *(3 * z * (self.error - 0.1))])

    def corrected(self, p):
        return 1 / (1 + exp(-min(max(float(self.w @ self.features(p)), -12.0), 12.0)))

    def note(self, p, said, y):
        x, q = self.features(p), self.corrected(p)
        losses = np.array([-log(max(v if y else 1 - v, exp(-12))) for v in (p, said)])
        self.loss[:, y] += 0.005 * (losses - self.loss[:, y])
        self.H = 0.9995 * self.H + q * (1 - q) * np.outer(x, x) + 0.0005 * self.prior
        self.w = self.w + np.linalg.solve(self.H, (y - q) * x)
        self.bias += RATES * ((y - p) - self.bias)
        self.error += RATES * (abs(y - p) - self.error)


def in_waves(n, seed=0):
    """Probabilities of a model that does not see that labels come in waves."""
    rng = np.random.default_rng(seed)
    for t in range(n):
        f = rng.normal()
        yield float(1 / (1 + exp(-f))), int(rng.random() < 1 / (1 + exp(-f - 2.5 * np.sign(np.sin(t / 40)))))


def test_it_is_its_twin():
    recent, twin = new_recent(), Twin()
    for p, y in in_waves(1500):
        said = corrected(recent, p)
        assert said == pytest.approx(twin.corrected(p), rel=1e-7)
        note_label(recent, p, said, bool(y))
        twin.note(p, said, y)
    assert is_better(recent) == (twin.loss[1].sum() < 0.97 * twin.loss[0].sum())


def test_it_is_used_where_it_pays():
    for waves in (True, False):
        recent, rng = new_recent(), np.random.default_rng(1)
        for p, y in in_waves(3000):
            label = bool(y) if waves else bool(rng.random() < p)
            note_label(recent, p, corrected(recent, p), label)
        assert is_better(recent) == waves
