"""Late labels: the probabilities learn from the margin of the time of the prediction.

The sigmoid and the threshold learn from margins of examples that are not learned yet.  Between the prediction of an
example and its late label, a model learns the example's neighbours.  So its margin at the time of learning is larger
than the predicted one was, and probabilities fitted to it promise too much.

A model learns a late example as any other.  Then each calibration that took note of the margin is put back, and takes
note of the predicted margin in its place.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.estimators.inputs.checks import n_rows
from streamsvm.estimators.learner.base import Learner
from streamsvm.online.outputs.calibration import note_margins


def learn(model: Learner, step: Callable[[], None], y: Any, margin: Any) -> None:
    """Learn an example, whose `step` does not know the predicted margin, and note that margin."""
    predicted = model._signed(y, margin)
    known = {key: [(c, c.copy()) for c in calibrations] for key, calibrations in model._calibrations().items()}
    try:
        step()
    finally:
        model._calibrations()  # models that learn later do it now
        for key, (positive, f) in predicted.items():
            for calibration, before in known.get(key, ()):
                if not np.array_equal(calibration, before):
                    note_margins(before, np.array([positive]), np.array([f]))
                    calibration[:] = before


def learn_many(model: Any, X: Any, y: Any, w: Any, ids: Any, t: Any, margins: Sequence[Any] | None) -> None:
    """Learn a batch one by one, each example with its own margin if there are any."""
    n = n_rows(X)
    labels, weights = model._labels_of(X, y, n), arguments.weights_of(w, n).tolist()
    numbers = [None] * n if ids is None else arguments.ids_of(ids, n).tolist()
    times = [t] * n if t is None or np.ndim(t) == 0 else list(t)
    margins = [None] * n if margins is None else margins
    for name, given in {"t": times, "margins": margins}.items():
        if len(given) != n:
            raise ValueError(f"{name} has {len(given)} entries for {n} rows of X; one for each row is needed")
    rows = model._features.rows(X, learning=True)
    for x, label, weight, number, time, margin in zip(rows, labels, weights, numbers, times, margins, strict=True):
        model.learn_one(x, label, weight, number, time, None if _is_unknown(margin) else margin)


def _is_unknown(margin: Any) -> bool:
    return margin is None or (isinstance(margin, float) and math.isnan(margin))


def finite(margin: Any, name: str = "margin") -> float:
    """A margin that the user gave, or an error."""
    if not arguments.is_number(margin):
        raise ValueError(f"{name}={margin!r} must be a finite number: f(x) when the example was predicted")
    return float(margin)


def by_class(margin: Any, labels: Sequence[Any]) -> dict[Any, float]:
    """Margins by key that the user gave, of keys that are known; those of others do not count."""
    if not isinstance(margin, Mapping):
        raise TypeError(f"margin={margin!r} must be a dict, as the model's answer to the prediction was")
    known = set(labels)
    return {key: finite(f, f"margin[{key!r}]") for key, f in margin.items() if key in known}


def each_row(margins: Any, keys_of: Callable[[int], Sequence[Any]]) -> Sequence[Any]:
    """Rows of margins as dicts; `keys_of` gives the keys of so many columns."""
    if not isinstance(margins, np.ndarray):
        return list(margins)
    if margins.ndim != 2:
        raise ValueError(f"margins has shape {margins.shape}; it must have a row for each example")
    keys = keys_of(margins.shape[1])
    return [dict(zip(keys, row, strict=True)) for row in margins.tolist()]
