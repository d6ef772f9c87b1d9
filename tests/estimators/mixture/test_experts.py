"""The compiled experts and the rule beside slow twins in plain Python."""

import math

import numpy as np
import pytest

from streamsvm.estimators.mixture.class_stack import ClassStack
from streamsvm.estimators.mixture.experts import NONE, Experts
from streamsvm.estimators.mixture.fitting import Fit, is_time_to_begin
from streamsvm.online.mixture import advice, experts


def sigmoid(f):
    return 1.0 / (1.0 + math.exp(-f))


class Slow:
    """The linear experts and the rule, from the formulas at the heads of their files."""

    def __init__(self, d, k):
        self.seen = []
        self.passive = np.zeros((2, d + 1))
        self.means, e = np.zeros((2, d + 3)), d + 3
        self.spreads = np.array([np.eye(e) / math.sqrt(d)] * 2)
        self.labels, self.chain = np.zeros(2), np.ones((2, 2))
        self.regressions = [(np.array([1.0, 0.0]), 0.05 * np.eye(2), 1e-5) for _ in range(k)]
        self.stacks = [(np.array([1.0 / k] * k + [0.0]), 0.05 * np.eye(k + 1), walk) for walk in (1e-5, 1e-3)]
        self.shares, self.bins = np.full(k + 2, 1.0 / (k + 2)), np.zeros((2, 20))

    def scaled(self, x):
        X = np.array(self.seen).reshape(len(self.seen), len(x))
        if not len(X):
            return np.zeros(len(x))
        deviation = X.std(axis=0)
        return np.where(deviation > 0.0, (x - X.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0), 0.0)

    def inputs(self, k, z):
        return np.concatenate([[1.0], self.labels * k, z])

    def predict(self, x):
        z = self.scaled(x)
        p = [sigmoid(w[:-1] @ z + w[-1]) for w in self.passive]
        for k in range(2):
            v = self.inputs(k, z)
            p.append(sigmoid(self.means[k] @ v / math.sqrt(1.0 + 0.3927 * v @ self.spreads[k] @ v)))
        row = self.chain[int(self.labels[0] > 0)]
        return np.array([*p, row[1] / row.sum()])

    @staticmethod
    def step(m, S, v, target, walk):
        p, s = sigmoid(m @ v), S @ v
        S = S - np.outer(s, s) / (1.0 / (p * (1.0 - p)) + v @ s) + walk * np.eye(len(v))
        return m + (target - p) * S @ v, S

    def learn(self, x, y):
        self.seen.append(x)
        z = self.scaled(x)
        for w, C in zip(self.passive, (1.0, 0.01), strict=True):
            loss = 1.0 - y * (w[:-1] @ z + w[-1])
            if loss > 0 and z @ z > 0:
                w += y * min(C, loss / (z @ z)) * np.append(z, 1.0)
        for k, walk in enumerate((1e-5, 1e-3)):
            v = self.inputs(k, z)
            self.means[k], self.spreads[k] = self.step(self.means[k], self.spreads[k], v, float(y > 0), walk)
        row = self.chain[int(self.labels[0] > 0)]
        row *= 0.999
        row[int(y > 0)] += 1.0
        self.labels = np.array([y, self.labels[0]])

    def answers(self, p):
        cut = np.clip(p, 0.02, 0.98)
        x = np.append(np.log(cut / (1.0 - cut)), 1.0)
        own = [(m, S, x) for m, S, _ in self.stacks]
        own += [(m, S, np.array([x[j], 1.0])) for j, (m, S, _) in enumerate(self.regressions)]
        return x, np.array([sigmoid(m @ v / math.sqrt(1.0 + 0.3927 * v @ S @ v)) for m, S, v in own])

    def advise(self, p):
        _, answers = self.answers(p)
        mean = self.shares @ answers
        b = min(int(20 * mean), 19)
        q = mean + self.bins[0, b] / (self.bins[1, b] + 20.0)
        return min(max(q, np.nextafter(0.5, 1)), 1 - 1e-6) if mean > 0.5 else max(min(q, 0.5), 1e-6)

    def learn_advice(self, p, y):
        x, answers = self.answers(p)
        b, target = min(int(20 * (self.shares @ answers)), 19), float(y > 0)
        self.bins *= 0.9998
        self.bins[:, b] += target - self.shares @ answers, 1.0
        shares = self.shares * np.maximum(np.where(y > 0, answers, 1.0 - answers), 0.02) ** 0.5
        self.shares = 0.999 * shares / shares.sum() + 0.001 / len(shares)
        self.stacks = [(*self.step(m, S, x, target, walk), walk) for m, S, walk in self.stacks]
        self.regressions = [
            (*self.step(m, S, np.array([x[j], 1.0]), target, walk), walk)
            for j, (m, S, walk) in enumerate(self.regressions)
        ]


def test_linear_experts_and_the_rule_are_those_of_slow_twins():
    rng, d = np.random.default_rng(0), 4
    fast, slow = Experts(), Slow(d, experts.K)
    for t in range(150):
        x = rng.normal(size=d) * [1.0, 10.0, 0.1, 0.0] + 3.0
        y, p = bool(x[0] + rng.normal() > 3.0), rng.uniform(0.2, 0.8)
        named = {f"f{j}": v for j, v in enumerate(x)}
        fast.predict(named, [p])
        fast.know(named)
        (answer,) = fast.predict(named, [p])
        assert fast.probabilities[0, 1 : experts.PAIRS] == pytest.approx(slow.predict(x), abs=1e-9), t
        assert answer == pytest.approx(slow.advise(fast.probabilities[0]), abs=1e-9), t
        slow.learn_advice(fast.probabilities[0], 1.0 if y else -1.0)
        slow.learn(x, 1.0 if y else -1.0)
        fast.learn(0 if y else NONE)
    assert fast.rules[0].shares == pytest.approx(slow.shares, abs=1e-9)


def test_spans_are_the_least_squares_fit_to_their_records():
    rng = np.random.default_rng(1)
    fast, n, later = Experts(), 256, 20
    X = rng.normal(size=(n + later, 2))
    y = X[:, 0] * X[:, 1] > 0.0
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        named = {"a": x[0], "b": x[1]}
        fast.predict(named, [0.5])
        fast.know(named)
        fast.learn(0 if label else NONE)
    for fit, memory in zip(fast.fits, (1.0, 0.999), strict=True):
        span = fit.span
        metric = span.metric if len(span.metric) == 2 else np.diag(span.metric[0])
        U, basis = (X - span.mean) * span.factor @ metric, span.basis.T
        K = np.exp(-span.gamma[0] * np.square(U[:, None] - basis).sum(axis=2))
        assert span.block[:later] == pytest.approx(K[n:], abs=1e-9)  # of the compiled code
        Z = np.exp(-span.gamma[0] * np.square(basis[:, None] - basis).sum(axis=2))
        K, signs, weights = K[:n], np.where(y[:n], 1.0, -1.0), memory ** np.arange(n - 1, -1, -1)
        for ridge, coef in zip((0.1, 1.0, 10.0), span.coef, strict=True):
            A = (K.T * weights) @ K + ridge * Z + 1e-2 * ridge * np.eye(len(Z))
            values = K @ np.linalg.solve(A, (K.T * weights) @ signs)
            assert K @ coef == pytest.approx(values, abs=1e-3)
        assert np.mean((K @ span.coef[0] > 0.0) == y[:n]) > 0.9


@pytest.mark.parametrize("is_full", [True, False])
def test_a_span_whose_gradients_are_nearly_0_gets_a_metric_of_numbers(is_full):
    rng, fit = np.random.default_rng(4), Fit(is_full=is_full, memory=1.0)
    fit.widen(3)
    X, Y = rng.normal(size=(64, 3)), np.where(rng.random((1, 64)) < 0.5, 1.0, -1.0)
    fit.begin_anew(X, Y)
    fit.span.coef[:] *= 1e-160  # squares of gradients are about 1e-320
    fit.begin_anew(X, Y)
    assert np.isfinite(fit.span.metric).all()
    assert np.square(fit.span.metric).sum() == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("n", "is_time"), [(1024, 1), (1056, 0), (2048, 1), (4096, 0), (8192, 1), (16384, 0), (32768, 1)]
)
def test_spans_begin_anew_less_often_when_no_longer_all_records_are_there(n, is_time):
    assert is_time_to_begin(n) == is_time


def test_pairs_of_bins_learn_what_no_single_feature_shows():
    rng, fast, right = np.random.default_rng(2), Experts(), 0
    for t in range(1500):
        a, b = rng.integers(2, size=2).tolist()
        named, y = {"a": float(a), "b": float(b), "c": rng.normal()}, a != b
        fast.predict(named, [0.5])
        fast.know(named)
        right += t >= 500 and (fast.probabilities[0, experts.PAIRS] > 0.5) == y
        fast.learn(0 if y else NONE)
    assert right / 1000 > 0.97


def test_missing_values_count_as_the_mean_and_are_not_learned():
    fast = Experts()
    for t in range(64):
        fast.know({"a": 1.0})
        fast.predict({"a": None if t % 2 else 3.0 + t}, [0.5])
        fast.learn(0 if t % 4 == 0 else NONE)
    counts, mean = fast.lines[0].moments[:2, 0]
    assert counts == 32
    assert mean == pytest.approx(np.mean(3.0 + np.arange(0, 64, 2)))
    assert advice.LEAST_ANSWER < fast.predict({"a": float("nan")}, [0.5])[0] < 1.0


def test_snapshots_keep_the_shapes_that_they_had_in_the_first_version():
    fast = Experts()
    fast.know({"a": 1.0})
    arrays = fast.dump()[1]
    shapes = [arrays[name].shape for name in ("lines.spreads", "rule.errors", "rule.spreads")]
    assert shapes == [(2, 4, 4), (experts.K, 2, 2), (2, experts.K + 1, experts.K + 1)]
    again = Experts()
    again.restore(*fast.dump())
    assert (again.lines[0].spreads == fast.lines[0].spreads).all()


def test_experts_of_several_classes_are_those_that_each_class_alone_would_have():
    """But for the metric of the spans, which all classes learn; these have one column, so there is none to learn."""
    rng = np.random.default_rng(3)
    several, alone = Experts(), [Experts() for _ in range(3)]
    several.know({"a": 0.0}, 3)
    for _ in range(600):
        x, p = {"a": rng.normal()}, rng.uniform(0.2, 0.8, size=3)
        number = int(np.digitize(x["a"] + rng.normal() / 4, (-0.5, 0.5)))
        found = several.predict(x, p)
        assert found == pytest.approx([one.predict(x, [own])[0] for one, own in zip(alone, p, strict=True)], abs=1e-6)
        for c, one in enumerate(alone):
            one.know(x)
            one.learn(0 if c == number else NONE)
        several.know(x, 3)
        several.learn(number)


def test_a_class_that_comes_late_is_learned_before_the_number_of_records_has_doubled():
    rng = np.random.default_rng(4)
    fast, found = Experts(), []
    for t in range(510):
        is_new = t >= 300 and t % 3 == 0
        x = {"a": rng.normal() + 5.0 * is_new, "b": rng.normal()}
        number = 2 if is_new else int(x["a"] * x["b"] > 0.0)
        fast.predict(x, [0.5] * 3)
        fast.know(x, 3 if t >= 300 else 2)
        if t >= 400:
            found.append((is_new, fast.probabilities[2, experts.FIRST_SPAN]))
        fast.learn(number)
    is_new, p = np.array(found).T
    assert p[is_new == 1.0].mean() > 0.7
    assert p[is_new == 0.0].mean() < 0.1


def test_the_softmax_over_classes_is_a_bayesian_regression():
    """One step in the space of w: the precision gains X^T (diag(p) - p p^T) X."""
    rng, stack = np.random.default_rng(5), ClassStack()
    w, S = stack.w, stack.S
    for number in (2, 0, 1, 1):
        logits, joint = rng.normal(size=(3, experts.K)), rng.uniform(0.1, 0.9, size=3)
        X = np.column_stack([logits, np.log(joint)])
        p = np.exp(X @ w) / np.exp(X @ w).sum()
        assert stack.predict(logits, joint) == pytest.approx(p, abs=1e-9)
        S = np.linalg.inv(np.linalg.inv(S) + X.T @ (np.diag(p) - np.outer(p, p)) @ X)
        w, S = w + S @ X.T @ (np.eye(3)[number] - p), S + 1e-5 * np.eye(len(w))
        stack.learn(logits, joint, number)
        assert stack.w == pytest.approx(w, abs=1e-9)
    assert ClassStack().predict(logits, joint) == pytest.approx(joint / joint.sum())
