"""Predictions on the topics log.predictions and log.scores.

A prediction is JSON::

    {"id": ..., "label": ..., "score": ..., "margin": ..., "model": {"ver": ..., "offset": ...},
     "src": "TOPIC-PARTITION-OFFSET", "ts": ...}

It depends on the event, the event's place in the log and the model alone.  So one that is repeated after a crash has
the same bytes, and readers recognise it by ``src``.
"""

import json
import math
from typing import NamedTuple

import orjson

from ..logs.transport import Headers, Record, Transport
from .codec import Codec, Event

HEADERS: Headers = (("sv-schema", b"prediction:1"),)  # each header costs 3 microseconds to send


class Prediction(NamedTuple):
    """What a model says about an event.

    margin
        Its decision value minus its threshold: above 0, the event is predicted as positive.
    score
        Its probability of the positive class.
    """

    margin: float
    score: float


class ModelVersion(NamedTuple):
    """The model that made a prediction: its number of lessons, all from records before `offset`."""

    ver: int
    offset: int


def write_prediction(codec: Codec, event: Event, prediction: Prediction, model: ModelVersion, src: str) -> bytes:
    """The value of a prediction's record.

    Parameters
    ----------
    codec
        Names the classes.
    event, prediction, model
        The event, what was predicted, and by which model.
    src
        The event's record; see `source`.

    Raises
    ------
    ValueError
        If the margin or the score is not finite.
    """
    margin, score = prediction
    if not (math.isfinite(score) and math.isfinite(margin)):
        raise ValueError(f"score={score!r} and margin={margin!r} must be finite numbers")
    fields = {
        "id": event.id,
        "label": codec.name_of(margin > 0),
        "score": score,
        "margin": margin,
        "model": {"ver": model.ver, "offset": model.offset},
        "src": src,
    }
    if event.ts is not None:
        fields["ts"] = event.ts
    try:
        return orjson.dumps(fields)
    except orjson.JSONEncodeError:  # an id or time of more than 64 bits
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def send_prediction(log: Transport, topic: str, record: Record, value: bytes) -> None:
    """Produce the prediction for an event, with the event's key and to the partition of the same number."""
    log.produce(topic, value, key=record.key, headers=HEADERS, partition=record.partition)


def source(record: Record) -> str:
    """The place of a record in the log, as a prediction names it."""
    return f"{record.topic}-{record.partition}-{record.offset}"
