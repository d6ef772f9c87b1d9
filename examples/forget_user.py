"""Forget a user's examples, and compare the model with one that never met the user.

Every example has its own id. Which user it belongs to is known outside of the model. "Exact" has a precise meaning:
the coefficients are those of training on the other members. Which examples are members is another question: some were
dropped because the user's examples said the same. The model looks for them in its reservoir. The comparison shows how
many predictions differ, with and without a reservoir. It also shows how many differ if the other users' examples only
come in another order, which is what no model can avoid.
"""
# ruff: noqa: T201 - an example answers by printing

import numpy as np

from streamsvm import LASVM

rng = np.random.default_rng(0)
X = rng.normal(size=(6000, 4))
y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=6000) > 0
ids = np.arange(6000)
user = rng.integers(0, 50, size=6000)  # whose an example is
new = rng.normal(size=(20000, 4))  # to compare predictions on


def trained(rows: np.ndarray, reservoir: int = 4000) -> LASVM:
    """A model that has learned these examples in this order."""
    model = LASVM(C=5.0, gamma=0.3, reservoir=reservoir)
    model.learn_many(X[rows], y[rows], ids=rows)
    model.finish()
    return model


theirs, others = ids[user == 7], ids[user != 7]
without = trained(others).predict_many(new)  # The user never was.
in_another_order = trained(rng.permutation(others)).predict_many(new)

for reservoir in (0, 4000):
    model = trained(ids, reservoir)
    before = model.predict_many(new)
    n_members = model.forget(theirs)
    model.finish()
    after = model.predict_many(new)
    assert not set(theirs) & set(model.support_ids)
    print(f"reservoir of {reservoir}: user 7 has {len(theirs)} examples; {n_members} of them were members")
    print(f"  predictions that differ from a model without the user: {np.sum(before != without)} before", end="")
    print(f", {np.sum(after != without)} after forgetting")
print(f"without the user, but in another order: {np.sum(in_another_order != without)} (of {len(new)})")
