"""LASVM as a river classifier: every example is predicted, then learned; then the model is finished."""
# ruff: noqa: T201 - an example answers by printing

from river import datasets, evaluate, metrics

from streamsvm import LASVM
from streamsvm.metrics import PRBEP

model = LASVM()
metric = metrics.Accuracy() + metrics.GeometricMean() + metrics.ROCAUC() + PRBEP()
evaluate.progressive_val_score(datasets.Bananas(), model, metric, print_every=1000)

print(f"{model.n_support} support vectors after one pass")
model.finish()
print(f"{model.n_support} support vectors after finish(), bias {model.bias:.3f}")
print(model.predict_proba_one({"1": 0.3, "2": -1.2}))
