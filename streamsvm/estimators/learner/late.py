"""Late labels: the probabilities learn from the margin of the time of the prediction.

The sigmoid and the threshold learn from margins of examples that are not learned yet.  Between the prediction of an
example and its late label, a model learns the example's neighbours.  So its margin at the time of learning is larger
than the predicted one was, and probabilities fitted to it promise too much.

A model learns a late example as any other, but takes note of the margin that was predicted; see `online.arrival`.
"""

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.estimators.inputs.checks import is_frame, named_columns


def finite(margin: Any, name: str = "margin") -> float:
    """A margin that the user gave, or an error."""
    if not arguments.is_number(margin):
        raise ValueError(f"{name}={margin!r} must be a finite number: f(x) when the example was predicted")
    return float(margin)


def by_key(margin: Any) -> dict[Hashable, float]:
    """Margins by the key of a model that the user gave, or an error."""
    if not isinstance(margin, Mapping):
        raise TypeError(f"margin={margin!r} must be a dict, as the model's answer to the prediction was")
    return {key: finite(f, f"margin[{key!r}]") for key, f in margin.items()}


def each(margins: Any, n: int, said_of: Callable[[Any], Any]) -> list:
    """What the margins of a batch of n say, each on its own; None for one that is not known."""
    arguments.require_order("margins", margins)
    arguments.require_unmasked("margins", margins)
    is_text = isinstance(margins, str | bytes)
    if is_text or is_frame(margins) or not isinstance(margins, Iterable) or getattr(margins, "shape", None) == ():
        raise TypeError(f"margins={margins!r} must be a sequence of what `learn_one` takes as margin, one for each row")
    margins = margins.tolist() if isinstance(margins, np.ndarray) else list(margins)
    if len(margins) != n:
        raise ValueError(f"margins has {len(margins)} entries for {n} rows of X; one for each row is needed")
    unknown = [margin is None or (isinstance(margin, float) and math.isnan(margin)) for margin in margins]
    return [None if nothing else said_of(margin) for margin, nothing in zip(margins, unknown, strict=True)]


def each_row(margins: Any, keys_of: Callable[[int], Sequence[Any]]) -> Any:
    """Rows of an array or a frame of margins as dicts; `keys_of` gives the keys of so many columns."""
    names: Sequence[Any] = ()
    if is_frame(margins):
        names, margins = named_columns(margins)
    elif not isinstance(margins, np.ndarray):
        return margins
    if margins.ndim != 2:
        raise ValueError(f"margins has shape {margins.shape}; it must have a row for each example")
    arguments.require_unmasked("margins", margins)
    keys = keys_of(margins.shape[1])
    if len(keys) != margins.shape[1]:
        raise ValueError(f"margins has shape {margins.shape}; it must have a column for each of {list(keys)}")
    if names and set(names) != set(keys):
        raise ValueError(f"margins has the columns {list(names)}; they must be {list(keys)}")
    return [dict(zip(names or keys, row, strict=True)) for row in margins.tolist()]


def columns(said: Sequence[Mapping[Hashable, float] | None], keys: Collection[Hashable]) -> np.ndarray:
    """What the models with these keys said of each example, (n, n_keys); NaN where it is not known."""
    return np.array([[(one or {}).get(key, math.nan) for key in keys] for one in said])
