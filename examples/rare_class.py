"""Label a rare class: the model chooses which examples to ask about, and a simulated oracle answers.

The table shows the g-mean on fresh examples after 50, 100 and 200 labels, chosen by the model or at random.
"""
# ruff: noqa: N803, N806, T201 - X is the usual name; an example answers by printing

import numpy as np

from streamsvm import LASVM
from streamsvm.active import Audited, MaxLabels, RandomSelection, label_pool


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 2))
    return X, np.hypot(X[:, 0], X[:, 1]) > 2.5


def g_mean(model: LASVM, X: np.ndarray, y: np.ndarray) -> float:
    right = model.predict_many(X) == y
    return float(np.sqrt(right[y].mean() * right[~y].mean()))


X, y = draw(5000, seed=0)
X_test, y_test = draw(5000, seed=1)
everything = LASVM(C=100.0, gamma=0.5)
everything.learn_many(X, y)
print(f"{y.sum()} of {len(y)} examples are positive; all labels: g-mean {g_mean(everything, X_test, y_test):.3f}")

chosen, drawn = LASVM(C=100.0, gamma=0.5), LASVM(C=100.0, gamma=0.5)
rule = Audited() | MaxLabels(400)
ways = {
    "chosen": (chosen, label_pool(chosen, X, y.__getitem__, stopping=rule)),
    "random": (drawn, label_pool(drawn, X, y.__getitem__, selection=RandomSelection(), stopping=MaxLabels(200))),
}
print("labels   " + "".join(f"{n:>8}" for n in (50, 100, 200)) + "   positive")
for name, (model, steps) in ways.items():
    reached, found = [], 0
    for step in steps:
        found += step.y
        if step.n_labels in (50, 100, 200):
            reached.append(g_mean(model, X_test, y_test))
    print(f"{name:9}" + "".join(f"{quality:8.3f}" for quality in reached) + f"{found:8}")
print("it stopped asking because", rule.verdict().why)
