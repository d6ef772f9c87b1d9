"""Decisions in records: what a prediction says of them, and as bytes in a checkpoint.

The label of an event may come much later, and says whether the decision was wrong.  So the decision waits with its
event.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from streamsvm.conformal import Decision

from .classes import ClassLabel
from .codec import Codec


def undecided(labels: tuple[ClassLabel, ...]) -> Decision:
    """What is decided without a model: nothing."""
    return Decision(labels, dict.fromkeys(labels, 1.0 / len(labels)) if labels else {}, None, None, 0)


def union(parts: Sequence[Decision]) -> Decision:
    """What several models decide together: a class is excluded if each of them excludes it."""
    if len(parts) == 1:
        return parts[0]
    p = {label: sum(part.p.get(label, 0.0) for part in parts) / len(parts) for part in parts for label in part.p}
    left = {label: None for part in parts for label in part.labels}
    return Decision(tuple(sorted(left, key=p.__getitem__, reverse=True)), p, None, None, 0)


def fields_of(codec: Codec, decision: Decision) -> dict[str, Any]:
    """The fields of a prediction that show a decision."""
    labels: Any = decision.labels
    return {"decided": decision.decided, "labels": [codec.name_of(label) for label in labels]}


def to_json(decision: Decision) -> bytes:
    """A decision as bytes, without the model's decision values."""
    return orjson.dumps([decision.labels, list(decision.p.items()), decision.own, decision.known])


def from_json(data: bytes) -> Decision:
    """The decision that `to_json` wrote."""
    labels, p, own, known = orjson.loads(data)
    return Decision(tuple(labels), dict(p), None, own and (float(own[0]), float(own[1])), int(known))
