"""What models said about events whose labels may come later, as bytes in a checkpoint."""

from collections.abc import Mapping
from typing import Any

import orjson

from .classes import ClassLabel
from .decisions import from_json, to_json
from .predictions import ClassPrediction, Prediction, Said


def answer_of(said: Said) -> ClassLabel | None:
    """The label that a prediction gives; None if the model knew no class."""
    if said.verdict is not None:
        return said.verdict.label
    return said.label if isinstance(said, ClassPrediction) else said.margin > 0.0


def probability_of(said: Said, y: ClassLabel) -> float:
    """The probability that a prediction gave to this label; 0 to a class that the model did not know."""
    if said.verdict is not None:
        return said.verdict.p.get(y, 0.0)
    if isinstance(said, ClassPrediction):
        return said.probabilities.get(y, 0.0)
    return said.score if y else 1.0 - said.score


def write_said(found: Mapping[int, Said]) -> bytes:
    """Predictions by the key of their event."""
    return orjson.dumps([[key, *_fields(said)] for key, said in found.items()])


def read_said(data: bytes) -> dict[int, Said]:
    """What `write_said` wrote; ValueError, LookupError or TypeError if it is damaged."""
    return {int(key): _said(*parts) for key, *parts in orjson.loads(data)}


def _fields(said: Said) -> list:
    decided = said.verdict and to_json(said.verdict).decode()
    if isinstance(said, ClassPrediction):
        return [decided, said.label, said.margin, [*said.values.items()], [*said.probabilities.items()]]
    return [decided, said.margin, said.score, said.value, *said.margins]


def _said(decided: str | None, *parts: Any) -> Said:
    verdict = None if decided is None else from_json(decided.encode())
    if not isinstance(parts[-1], list):
        margin, score, value, *margins = map(float, parts)
        return Prediction(margin, score, value, verdict, tuple(margins))
    label, margin, values, probabilities = parts
    return ClassPrediction(label, float(margin), dict(values), dict(probabilities), verdict)
