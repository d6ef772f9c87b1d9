"""LASVM in a river pipeline: every example is predicted, then learned; then the model is finished."""
# ruff: noqa: T201 - an example answers by printing

from river import datasets, evaluate, metrics

from streamsvm import LASVM, WarmupScaler
from streamsvm.metrics import PRBEP

model = WarmupScaler("standard", warmup=200) | LASVM(C=10.0, gamma=0.5)
metric = metrics.Accuracy() + metrics.GeometricMean() + metrics.ROCAUC() + PRBEP()
evaluate.progressive_val_score(datasets.Bananas(), model, metric, print_every=1000)

svm = model["LASVM"]
print(f"{svm.n_support} support vectors after one pass")
svm.finish()
print(f"{svm.n_support} support vectors after finish(), bias {svm.bias:.3f}")
print(model.predict_proba_one({"1": 0.3, "2": -1.2}))
