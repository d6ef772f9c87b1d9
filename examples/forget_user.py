"""Forgetting a user's records on request, and the check: the model is then what retraining without them gives.

Every example has an id of its own; who it belongs to is known outside of the model.
"""
# ruff: noqa: T201 - X is what everybody calls it; an example answers by printing

import numpy as np

from streamsvm import LASVM
from streamsvm.batch import SolverOptions, smo

rng = np.random.default_rng(0)
X = rng.normal(size=(1500, 4))
y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=1500) > 0
ids = np.arange(1500)
user = rng.integers(0, 50, size=1500)  # whose an example is

model = LASVM(C=5.0, gamma=0.3, tol=1e-6)
model.learn_many(X, y, ids=ids)
model.finish()
before = model.decision_function_many(X)

theirs = ids[user == 7]
n_members = model.forget(theirs)
model.finish()
after = model.decision_function_many(X)
print(f"user 7 has {len(theirs)} examples; {n_members} of them were in the model, and are forgotten")
print(f"decision values have changed by up to {np.abs(after - before).max():.3f}")
assert not set(theirs) & set(model.support_ids)

# A batch solver, which never sees the user's examples, trains on those that the model now rests on.
kept = model.support_ids
retrained = smo.solve(X[kept], y[kept], C=5.0, gamma=0.3, options=SolverOptions(tol=1e-6))
difference = np.abs(after - retrained.decision_function(X)).max()
print(f"retrained without the user, they differ by {difference:.1e} at most")
assert difference < 1e-4
