"""The slow twin of all exports: it decides by the JSON text alone, as docs/export.md specifies it."""

import json
import math
from itertools import combinations

import numpy as np

from streamsvm.online.outputs.coupling import coupled, led_by
from streamsvm.online.outputs.votes import class_values


class Twin:
    """What the text of `to_json` says about examples, which are dicts."""

    def __init__(self, text):
        self.told = json.loads(text)
        assert (self.told["format"], self.told["version"]) == ("streamsvm model", 1)
        m = self.told["members"]
        self.names = [feature["name"] for feature in self.told["features"]]
        self.members = np.zeros((len(m["gamma"]), len(self.names)))
        for s in range(len(self.members)):
            own = slice(m["starts"][s], m["starts"][s + 1])
            self.members[s, m["columns"][own]] = m["values"][own]
        self.gamma = np.array(m["gamma"])

    def table(self, X):
        """The rows as an array whose columns are in the order of the features; unknown ones are left out."""
        return np.array([[x.get(name, np.nan) for name in self.names] for x in X])

    def row(self, x):
        """The features as the kernel sees them, and the squares of those that are unknown."""
        limit = math.inf if self.told["limit"] is None else self.told["limit"]
        z = [(x.get(f["name"], f["missing"]) - f["shift"]) * f["factor"] for f in self.told["features"]]
        unknown = [v for name, v in x.items() if name not in self.names]
        return np.clip(z, -limit, limit), float(np.square(np.clip(unknown, -limit, limit)).sum())

    def kernel(self, x):
        z, unknown = self.row(x)
        name, coef0 = self.told["kernel"]["name"], self.told["kernel"]["coef0"]
        if name == "rbf":
            return np.exp(-self.gamma * (np.square(self.members - z).sum(axis=1) + unknown))
        products = self.members @ z
        if name == "linear":
            return products
        base = self.gamma * products + coef0
        return base ** self.told["kernel"]["degree"] if name == "poly" else np.tanh(base)

    def margins(self, x):
        k = self.kernel(x)
        return np.array([machine["coefficients"] @ k + machine["bias"] for machine in self.told["machines"]])

    def answers(self, X):
        """For each row the decision values, the probabilities and the label."""
        F = np.array([self.margins(x) for x in X])
        below, above = np.array([machine["slopes"] for machine in self.told["machines"]]).T
        P = 1.0 / (1.0 + np.exp(-np.clip(np.where(F > 0, above, below) * F, -500, 500)))
        labels, n = self.told["labels"], len(self.told["labels"])
        if self.told["decision"] == "threshold":
            best = (F[:, 0] > self.told["threshold"]).astype(int)
            P = np.hstack([1.0 - P, P])
        elif self.told["decision"] == "one-vs-rest":
            P /= P.sum(axis=1, keepdims=True)
            best = P.argmax(axis=1)
        else:
            votes = np.zeros((len(F), n))
            for m, (i, j) in enumerate(combinations(range(n), 2)):
                votes[np.arange(len(F)), np.where(F[:, m] > 0, i, j)] += 1
            best = votes.argmax(axis=1)
            P, F = led_by(best, coupled(P, n)), class_values(F, n)
        if self.told["guarantee"] is not None:
            P = self.corrected(P)
            best = P.argmax(axis=1)
        return F, P, [labels[k] for k in best]

    def corrected(self, P):
        """The probabilities that recent errors correct."""
        if self.told["guarantee"]["correction"] is None:
            return P
        a, b = self.told["guarantee"]["correction"]
        q = 1.0 / (1.0 + np.exp(-np.clip(a + b * np.clip(np.log(P[:, 1] / P[:, 0]), -8, 8), -12, 12)))
        return np.column_stack([1.0 - q, q])

    def sets(self, X):
        """For each row the labels that cannot be excluded."""
        found, labels = [], self.told["labels"]
        for p, best in zip(*self.answers(X)[1:], strict=True):
            left = [(q, y) for q, y, t in zip(p, labels, self.told["guarantee"]["thresholds"], strict=True) if q >= t]
            ranked = [y for _, y in sorted(left, key=lambda each: -each[0]) if y != best]
            found.append([best, *ranked])
        return found
