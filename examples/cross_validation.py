"""Find C and gamma, measure them on unseen examples, and compare them with another setting."""
# ruff: noqa: T201 - an example answers by printing

import numpy as np
from river import datasets

from streamsvm import LASVM
from streamsvm.validation import compare, cross_validate, folds, grid_search, leave_one_out

stream = list(datasets.Bananas().take(1000))
X = np.array([[x["1"], x["2"]] for x, _ in stream])
y = np.array([label for _, label in stream])

search = grid_search(LASVM(), X, y, Cs=[0.1, 1.0, 10.0, 100.0], gammas=[0.1, 1.0, 10.0], k=3)
C, gamma = search.best.C, search.best.gamma
print("a row for each C, a column for each gamma:", search.scores.round(3), sep="\n")

model = LASVM(C=C, gamma=gamma)
ten = cross_validate(model, X, y, k=10)
one = leave_one_out(model, X, y)
print(f"C = {C:g}, gamma = {gamma:g}: accuracy {ten.accuracy:.3f} in ten folds, {one.accuracy:.3f} leaving one out")
print(f"ten folds took {ten.kernel_evaluations:,} kernel values, a thousand {one.kernel_evaluations:,}")

same_folds = folds.repeated(lambda seed: folds.stratified(y, 5, seed=seed), 2)
best = cross_validate(model, X, y, folds=same_folds)
linear = cross_validate(LASVM(C=C, kernel="linear"), X, y, folds=same_folds)
comparison = compare(best, linear)
print(f"RBF or linear? folds won, lost and drawn: {comparison.wins}; better is the {comparison.by_averaging}")

model.learn_many(X, y)  # It goes on learning as more examples come.
print(f"the stream goes on with {model.n_support} support vectors")
