"""Predictions on the topics log.predictions and log.scores.

A prediction is JSON::

    {"id": ..., "label": ..., "score": ..., "margin": ..., "model": {"ver": ..., "offset": ...},
     "src": "TOPIC-PARTITION-OFFSET", "ts": ...}

If challengers answer a share of the events, ``model`` also has the ``"name"`` of the one that has answered.

With more than two classes, ``label`` is the most probable one, null until the first class is learned, and ``score`` is
its probability.  ``margin`` is half the lead of its decision value over the best other one: at 1, the event is on the
margins of both classes; below 0, another class has a larger decision value and is less probable.  The object also has
``"probabilities": {CLASS: ...}`` and ``"values": {CLASS: ...}``, the decision values.

With [decide], it also has ``"decided": true`` or ``false``, and ``"labels": [...]``, those that cannot be excluded, the
most probable first.  Then ``label`` is the first of them, and ``score`` is corrected by recent errors.

A prediction depends on the event, the event's place in the log and the model alone.  So one that is repeated after a
crash has the same bytes, and readers recognise it by ``src``.
"""

import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import orjson

from streamsvm import AutoLASVM, Mixture
from streamsvm.active.choosing.decisions import leads_of
from streamsvm.conformal import ConformalClassifier, Decision
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.online.mixture.experts import K

from ..logs.transport import Headers, Record, Transport
from .classes import ClassLabel
from .codec import Codec, Event
from .decisions import fields_of
from .models import MULTICLASS, Scores, is_of, scores

TRACE = ("traceparent", "tracestate")  # headers of W3C Trace Context
_TRACE_BYTES = 1024  # of such a header; a longer one is left out
HEADERS: Headers = (("sv-schema", b"prediction:1"),)  # each header costs 3 microseconds to send


class Prediction(NamedTuple):
    """What a model says about an event.

    margin
        Its decision value minus its threshold: above 0, the event is predicted as positive.
    score
        Its probability of the positive class.
    value
        Its decision value.
    verdict
        What is decided with it, if [decide] asks for it.
    margins
        What the candidates of a model that tunes itself say, if the label comes later; see `AutoLASVM.margins_one`.
    """

    margin: float
    score: float
    value: float = 0.0
    verdict: Decision | None = None
    margins: tuple[float, ...] = ()

    @property
    def class_label(self) -> None:
        """There are two classes: the margin says which one is predicted."""

    @property
    def decision(self) -> tuple[float, ...]:
        """The decision value, or what the candidates say."""
        return self.margins or (self.value,)


class ClassPrediction(NamedTuple):
    """What a model of more than two classes says about an event.

    Attributes
    ----------
    label
        The most probable class, or None if the model knows no class.
    margin
        Half the lead of its decision value over the best other one; 0 without a second class.
    values, probabilities
        Decision values, and probabilities, by class.
    verdict
        What is decided with them, if [decide] asks for it.
    margins
        What a mixture takes when the label comes late, in one row; see `joined`.
    """

    label: ClassLabel | None
    margin: float
    values: dict[ClassLabel, float]
    probabilities: dict[ClassLabel, float]
    verdict: Decision | None = None
    margins: tuple[float, ...] = ()

    @property
    def class_label(self) -> ClassLabel | None:
        """The predicted class."""
        return self.label

    @property
    def decision(self) -> tuple[float, ...]:
        """The decision values in the order of the model's classes, or `margins`."""
        return self.margins or tuple(self.values.values())


Said = Prediction | ClassPrediction

WITH_MARGINS = AutoLASVM, Mixture  # models that are told what they said when a label comes late
UNTAUGHT = Prediction(margin=0.0, score=0.5)  # what a model says that has learned nothing
NO_CLASS = ClassPrediction(None, 0.0, {}, {})  # the same with more than two classes


def predictions_of(model: Any, rows: NamedRows | list[dict], *, to_be_learned: bool = False) -> list[Said]:
    """What a model of two classes, or of more, says about these events; dicts are taken one by one.

    A model that tunes itself also says what its candidates say of events that are to be learned later.
    """
    if is_of(model, MULTICLASS):
        classes = class_predictions(scores(model, rows))
        if to_be_learned and isinstance(model, Mixture):
            told = zip(classes, model.margins_many(rows), strict=True)
            return [each._replace(margins=joined(*own)) for each, own in told]
        return list(classes)
    cut = model.decision_threshold
    if to_be_learned and is_of(model, WITH_MARGINS):
        margins = model.margins_many(rows)
        values = margins[:, 0]
        table = zip(values.tolist(), model.probability(values).tolist(), margins.tolist(), strict=True)
        return [Prediction(value - cut, score, value, margins=tuple(said)) for value, score, said in table]
    if isinstance(rows, NamedRows):
        values = model.decision_function_many(rows)
        parts = (values - cut).tolist(), model.probability(values).tolist(), values.tolist()
        return list(map(Prediction, *parts))
    found = [model.decision_function_one(x) for x in rows]
    return [Prediction(value - cut, model.probability_one(value), value) for value in found]


def joined(values: Mapping[ClassLabel, float], said: Mapping[ClassLabel, list[float]]) -> tuple[float, ...]:
    """What a mixture of several classes has said of an event, in one row: a mark, the values, the probabilities."""
    return (math.inf, *values.values(), *chain.from_iterable(said.values()))


def margin_of(decision: tuple[float, ...], model: Any) -> Any:
    """What a model of several classes takes as its `margin`, whatever model has made the decision."""
    labels, n = model.labels, len(decision)  # classes may have come since
    of_mixture = decision[:1] == (math.inf,)
    if of_mixture:
        n = (n - 1) // (1 + K)
        decision = decision[1:]
    values = dict(zip(labels, decision[:n], strict=False))
    if not isinstance(model, Mixture):
        return values
    return (values, dict(zip(labels, np.reshape(decision[n:], (n, K)).tolist(), strict=False))) if of_mixture else None


def with_verdict(said: Said, decider: ConformalClassifier | None) -> Said:
    """A prediction with what the decider makes of it; the decision leaves the margin to the prediction."""
    if decider is None:
        return said
    if isinstance(said, ClassPrediction):
        return said._replace(verdict=decider.decide(None, said.probabilities))
    margin, p, value, _, margins = said
    return Prediction(margin, p, value, decider.decide(None, {False: 1.0 - p, True: p}), margins)


def class_predictions(found: Scores) -> list[ClassPrediction]:
    """Predictions, one for each row of the scores."""
    labels = list(found.labels)
    if not labels:
        return [NO_CLASS] * len(found.values)
    best = found.probabilities.argmax(axis=1)
    leads = leads_of(best, found.values)
    table = zip(best.tolist(), leads.tolist(), found.values.tolist(), found.probabilities.tolist(), strict=True)
    return [
        ClassPrediction(labels[k], lead, dict(zip(labels, f, strict=True)), dict(zip(labels, p, strict=True)))
        for k, lead, f, p in table
    ]


class ModelVersion(NamedTuple):
    """The model that made a prediction: its number of lessons, all from records before `offset`.

    It has a name if several models answer.
    """

    ver: int
    offset: int
    name: str = ""


def write_prediction(codec: Codec, event: Event, prediction: Said, model: ModelVersion, src: str) -> bytes:
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
    said = _of_classes(prediction) if isinstance(prediction, ClassPrediction) else _of_two(codec, prediction)
    if prediction.verdict is not None:
        said |= fields_of(codec, prediction.verdict)
    if not (math.isfinite(said["score"]) and math.isfinite(said["margin"])):
        raise ValueError(f"score={said['score']!r} and margin={said['margin']!r} must be finite numbers")
    made_by: dict[str, Any] = {"ver": model.ver, "offset": model.offset}
    if model.name:
        made_by["name"] = model.name
    fields = {"id": event.id, **said, "model": made_by, "src": src}
    if event.ts is not None:
        fields["ts"] = event.ts
    try:
        return orjson.dumps(fields, option=orjson.OPT_NON_STR_KEYS)  # a class may be a whole number
    except orjson.JSONEncodeError:  # an id or time of more than 64 bits
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def _of_two(codec: Codec, prediction: Prediction) -> dict[str, Any]:
    margin, verdict = prediction.margin, prediction.verdict
    if verdict is None:
        return {"label": codec.name_of(margin > 0), "score": prediction.score, "margin": margin}
    return {"label": codec.name_of(verdict.label), "score": verdict.p[True], "margin": margin}


def _of_classes(prediction: ClassPrediction) -> dict[str, Any]:
    label, margin, values, probabilities, verdict, _ = prediction
    label = label if verdict is None else verdict.label
    return {
        "label": label,
        "score": 0.0 if label is None else probabilities[label],
        "margin": margin,
        "probabilities": probabilities,
        "values": values,
    }


def send_prediction(log: Transport, topic: str, record: Record, value: bytes) -> None:
    """Produce the prediction for an event, with the event's key and to the partition of the same number.

    The event's trace context goes along, so that a trace shows the prediction.
    """
    log.produce(topic, value, key=record.key, headers=_headers(record), partition=record.partition)


def _headers(record: Record) -> Headers:
    if not record.headers:
        return HEADERS
    return (*HEADERS, *(item for item in record.headers if item[0] in TRACE and len(item[1]) <= _TRACE_BYTES))


def source(record: Record) -> str:
    """The place of a record in the log, as a prediction names it."""
    return f"{record.topic}-{record.partition}-{record.offset}"
