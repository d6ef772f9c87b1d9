"""Mini-batches of pandas frames: each batch is predicted, then learned."""
# ruff: noqa: T201 - an example answers by printing

import pandas as pd
from river import datasets, metrics

from streamsvm import LASVM

BATCH = 500
frame = pd.DataFrame([{"a": x["1"], "b": x["2"], "label": y} for x, y in datasets.Bananas()])

model = LASVM()
accuracy, rows = metrics.Accuracy(), []
for start in range(0, len(frame), BATCH):
    batch = frame[start : start + BATCH]
    X, y = batch[["a", "b"]], batch["label"]
    predicted = model.predict_many(X)  # a series with the frame's index, or an empty one before anything was learned
    for truth, guess in zip(y[predicted.index], predicted, strict=True):
        accuracy.update(truth, guess)
    model.learn_many(X, y)
    rows.append({"learned": start + len(batch), "support": model.n_support, "accuracy so far": accuracy.get()})
print(pd.DataFrame(rows[1::2]).round(3).to_string(index=False))

print(model.predict_proba_many(frame[["a", "b"]].tail(3)).round(2))
