"""Digests of a whole state: equal for two states that go on alike."""

from collections.abc import Iterable, Mapping
from hashlib import blake2b

import numpy as np
import orjson

from .state import State

_COUNTED = ("predicted", "learned", "bad", "late")


def digests(state: State) -> dict[str, str]:
    """What identifies a state, by part; where the work was done, and how long it took, is left out.

    Parameters
    ----------
    state
        The state of a partition between two cuts.

    Returns
    -------
    dict
        Hexadecimal digests under ``"models"`` (with the scale, the calibration, the decider and what `Records` has
        counted), ``"running error"``, ``"join"``, ``"alarms"``, ``"estimates"`` and ``"counts"``.
    """
    models = state.models.digest()
    counts = [getattr(state.counters, name) for name in _COUNTED]
    estimates = state.estimates.to_arrays()["history"][:, :-1].tobytes() if state.estimates is not None else b""
    return {
        "models": _digest([models.encode(), *state.models.order]),
        "running error": _of_arrays(state.metrics.to_arrays()),
        "join": _of_arrays(state.join.to_arrays()),
        "alarms": _digest(state.alarms.to_blobs().values()),
        "estimates": _digest([estimates]),
        "counts": _digest(
            [
                orjson.dumps([counts, state.offset, state.labels_offset, state.classes.labels]),
                state.breaker.to_arrays()["recent"].tobytes(),
            ]
        ),
    }


def _of_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    parts: list[bytes] = []
    for name in sorted(arrays):
        parts += [name.encode(), str(arrays[name].dtype).encode(), arrays[name].tobytes()]
    return _digest(parts)


def _digest(parts: Iterable[bytes]) -> str:
    total = blake2b(digest_size=32)
    for part in parts:
        total.update(len(part).to_bytes(8, "little") + part)
    return total.hexdigest()
