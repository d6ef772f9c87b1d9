"""Models as bytes and files: everything a model needs to go on bit for bit, and what version 0.1.0 wrote differently.

Tests keep snapshots of version 0.1.0.  They differ in three ways: the tolerance was called `tau`; learners took a
`seed` that they did not use; and LASVM had another `delta_max` and admitted all examples that violate.
"""

import datetime
import json
import math
from collections.abc import Hashable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from streamsvm.core import arguments, storage
from streamsvm.core.class_weights import Counts
from streamsvm.core.expansion import CACHE_BYTES, EVALUATIONS, HAND, LISTED, ROWS
from streamsvm.core.saving import dumping, snapshot
from streamsvm.core.saving.snapshot import require, require_array
from streamsvm.estimators.inputs.checks import plain_names
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.learner.state import LOOK_EVERY, NEVER, State
from streamsvm.online.outputs.calibration import THRESHOLD
from streamsvm.online.outputs.sigmoid import MAX_SLOPE, MIN_SLOPE
from streamsvm.online.outputs.threshold import BINS, HEAD, LARGEST, LARGEST_WEIGHT, PERIOD, SINCE, VALUE, WEIGHT
from streamsvm.online.removal.window import FAR, MICROSECOND


def described(state: State, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The plain values of a model with these parameters, whose features these are."""
    given = {name: _plain(value) for name, value in parameters.items()}
    return {"parameters": given, "features": state.features.names(), **counts_of(state)}


def counts_of(state: State) -> dict[str, Any]:
    """The numbers of examples, the next id and the clock."""
    counts = {"n_seen": state.n_seen, "class_counts": list(state.class_counts), "next_id": state.next_id}
    return counts | ({"latest": state.window.latest} if state.window else {})


def arrays_of(state: State) -> dict[str, np.ndarray]:
    """What was learned, except the scale, which several models may share."""
    arrays = dumping.dump(state.expansion, len(state.features), state.scale.n_places)
    arrays |= {"sigmoid": state.sigmoid, **state.reservoir.dump()}
    return arrays | ({"threshold": state.calibration[THRESHOLD:]} if _learns_threshold(state) else {})


def forget_work(meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Take out of a model's content what may differ between models that continue alike."""
    arrays["counts"][[EVALUATIONS, ROWS, HAND, CACHE_BYTES, LISTED]] = 0
    for name in ("cache_mb", "device"):
        meta["parameters"].pop(name)


# -------------------------------------------------------------------------------------------------------------- reading


def untaught(model: type, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Any:
    """A model with the stored parameters that has learned nothing.  It may be given again, and must not be changed."""
    stored = snapshot.field(meta, "parameters", dict)
    can_be_kept = isinstance(cache_mb, Hashable) and isinstance(device, Hashable)
    make = _untaught if can_be_kept else _untaught.__wrapped__  # The constructor says what is wrong with the others.
    return make(model, json.dumps(stored), cache_mb, device)


def restore_columns(state: State, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Take over the features and their scale."""
    state.features = FeatureTable.of_names(plain_names(meta, "features"))
    state.features.takes_gaps = state.scale.scales
    state.scale.restore(arrays, len(state.features.columns))
    state.kernel = state.scale.adapted(state.kernel)


def restore(state: State, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Take over what `counts_of` and `arrays_of` gave, by a state that has its features and its scale already."""
    restore_counts(state, meta)
    restore_arrays(state, arrays)
    if "class_counts" not in meta:  # written by version 0.1.0
        y = state.expansion.y
        state.class_counts = int(np.count_nonzero(y < 0)), int(np.count_nonzero(y > 0))


def restore_arrays(state: State, arrays: dict[str, np.ndarray]) -> None:
    """Take over the members, the reservoir and the calibration."""
    n_features, cache_bytes = len(state.features.columns), int(state.expansion.counts[CACHE_BYTES])
    state.expansion = dumping.restore(arrays, cache_bytes, state.kernel, n_features, state.scale.n_raw)
    state.sigmoid[:] = _sigmoid(arrays)
    if _learns_threshold(state):
        state.calibration[THRESHOLD:] = _threshold(arrays)
    seen = None if state.scale.is_active else state.kernel
    state.reservoir.restore(arrays, seen, n_features, state.n_seen)
    go_on_above(state, state.expansion.ids[storage.live_slots(state.expansion)])


def restore_counts(state: State, meta: Mapping[str, Any]) -> None:
    """Take over the numbers of examples, the next id and the clock."""
    state.n_seen = snapshot.count(meta, "n_seen")
    if state.next_look != NEVER:
        state.next_look = state.n_seen - state.n_seen % LOOK_EVERY + LOOK_EVERY
    if "class_counts" in meta:
        state.class_counts = _class_counts(meta, state.n_seen)
    state.next_id = snapshot.field(meta, "next_id", int) if "next_id" in meta else 0
    require(0 <= state.next_id <= arguments.LARGEST_ID + 1, f"next_id={state.next_id} is not an id")
    if state.window:
        state.window.latest = _latest(meta)


def by_prefix(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """The arrays in groups: by the part of their names before the first dot, under the rest of their names."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        prefix, _, rest = name.partition(".")
        parts.setdefault(prefix, {})[rest] = array
    return parts


def _learns_threshold(state: State) -> bool:
    return len(state.calibration) > THRESHOLD + HEAD


def go_on_above(state: State, ids: np.ndarray) -> None:
    """Let `next_id` be above these ids: the first snapshots do not store it."""
    state.next_id = max(state.next_id, state.n_seen, int(ids.max(initial=-1)) + 1)


@lru_cache(maxsize=16, typed=True)
def _untaught(model: type, text: str, cache_mb: float | None, device: str | None) -> Any:
    """A model that has learned nothing, with these stored parameters, as JSON.

    Checking parameters takes longer than copying the model, and thousands of models by key have the same ones.
    """
    stored = json.loads(text)
    if "tau" in stored:  # written by version 0.1.0
        stored["tol"] = stored.pop("tau")
        stored.pop("seed", None)
        if "reprocess" in stored:
            stored["admission"] = "violation"  # the only rule of that version
            if stored["reprocess"] == "adaptive" and stored.get("delta_max") is None:
                stored["delta_max"] = 2.0
    parameters = {name: _given(stored, name) for name in stored}
    instead = {"cache_mb": cache_mb, "device": device}
    return model(**parameters | {name: value for name, value in instead.items() if value is not None})


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it: numpy's numbers as Python's, a time span in microseconds."""
    if isinstance(value, datetime.timedelta):
        return {"microseconds": value // MICROSECOND}
    return value.item() if isinstance(value, np.generic) else value


def _given(parameters: Mapping[str, Any], name: str) -> Any:
    """The parameter that `_plain` wrote."""
    value = snapshot.field(parameters, name, str, int, float, bool, type(None), dict)
    require(type(value) is not int or abs(value) <= arguments.LARGEST_ID, f"the parameter {name!r} is too large")
    return datetime.timedelta(microseconds=snapshot.count(value, "microseconds")) if type(value) is dict else value


def _latest(meta: Mapping[str, Any]) -> int:
    """The number or time of the newest example that a window has seen."""
    latest: int = snapshot.field(meta, "latest", int)
    require(abs(latest) <= FAR, f"the latest example has the number or time {latest}")
    return latest


def _class_counts(meta: Mapping[str, Any], n_seen: int) -> Counts:
    """The numbers of examples of both classes."""
    counts = snapshot.field(meta, "class_counts", list)
    require(len(counts) == 2 and all(type(n) is int and n >= 0 for n in counts), f"class_counts={counts} are no counts")
    require(sum(counts) <= n_seen, f"class_counts={counts} are more than n_seen={n_seen}")
    return counts[0], counts[1]


def _sigmoid(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The state of the sigmoid for probabilities."""
    state = require_array(arrays, "sigmoid", np.float64, (4,))
    slopes, curvatures = state[::2].tolist(), state[1::2].tolist()
    require(all(MIN_SLOPE <= slope <= MAX_SLOPE for slope in slopes), f"the sigmoid has the slopes {slopes}")
    require(all(0.0 <= c < math.inf for c in curvatures), f"the sigmoid has the curvatures {curvatures}")
    return state


def _threshold(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """The state of a threshold that is learned."""
    state = require_array(arrays, "threshold", np.float64, (HEAD + 2 * BINS,))
    require(
        np.isfinite(state).all() and (state[WEIGHT:] >= 0.0).all(), "the threshold's state is no weights and counts"
    )
    require(abs(state[VALUE]) <= LARGEST, f"the learned threshold is {state[VALUE]}")
    require(1.0 <= state[WEIGHT] <= 2.0 * LARGEST_WEIGHT, f"the newest margin weighs {state[WEIGHT]}")
    counts = state[SINCE:HEAD]
    is_valid = (counts == np.floor(counts)).all() and state[SINCE] < PERIOD
    require(is_valid, f"the threshold has the counts {counts.tolist()}")
    return state
