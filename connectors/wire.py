"""Bytes on a topic <-> events and predictions.

An event is a JSON object ``{"id": ..., "x": {name: number, ...}, "y": ..., "w": ..., "ts": ...}``.  Only id and x are
required, x may be a list of numbers instead, and other fields are ignored.  A prediction is a pure function of the
event, its place in the log and the model, so that one repeated after a crash has the same bytes.
"""

import json
import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from types import NoneType
from typing import Any, NamedTuple

from .transport import Headers, Record

MAX_BYTES = 1 << 20  # Kafka's own default for the largest record
MAX_MAGNITUDE = 1e15  # sums of squares stay far inside float32, in which kernel values are computed
LABELS: Mapping[Any, bool] = {1: True, 0: False, -1: False}  # Python: True == 1 == 1.0 and False == 0

_MIN_INT64, _MAX_INT64 = -(1 << 63), (1 << 63) - 1
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Event(NamedTuple):
    """One decoded event."""

    id: str | int
    key: int  # the id as 64 bits, for the model
    x: dict[str, float]
    y: bool | None
    w: float
    ts: str | int | float | None


class ModelVersion(NamedTuple):
    """Which model made a prediction: the one that had learned `ver` examples, from records before `offset`."""

    ver: int
    offset: int


class BadRecord(ValueError):  # noqa: N818 - names the thing that goes to the dead-letter topic
    """A record that is no event: a short fixed `reason` for machines, a `detail` for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Codec:
    """Reads events and writes predictions.

    Parameters
    ----------
    names
        The features every event must have, no more and no less; empty: whatever an event brings.
    positive, negative
        Names of the two labels, accepted beside true/false, 0/1 and -1/+1, and used in predictions.
    """

    def __init__(self, names: Sequence[str] = (), positive: str | None = None, negative: str | None = None) -> None:
        self._names = tuple(names)
        self._expected = frozenset(names)
        self._labels = dict(LABELS)
        self._outputs: tuple[bool | str, bool | str] = (False, True)
        if positive is not None and negative is not None:
            self._labels |= {positive: True, negative: False}
            self._outputs = (negative, positive)

    def decode(self, value: bytes) -> Event:
        """Read an event.

        Raises
        ------
        BadRecord
            If the bytes are not exactly what the module describes; the detail names the field.
        """
        fields = _parse(value)
        if "id" not in fields or "x" not in fields:
            raise BadRecord("missing-field", f"the record has no {'x' if 'id' in fields else 'id'!r}")
        label = fields.get("y")
        return Event(
            id=fields["id"],
            key=_key(fields["id"]),
            x=self._features(fields["x"]),
            y=None if label is None else self._label(label),
            w=_weight(fields["w"]) if "w" in fields else 1.0,
            ts=_timestamp(fields["ts"]) if "ts" in fields else None,
        )

    def encode(self, event: Event, *, score: float, margin: float, model: ModelVersion, src: str) -> bytes:
        """Write the prediction for an event; `src` says which record it answers and is the same at every repetition."""
        fields = {
            "id": event.id,
            "label": self._outputs[margin > 0],
            "score": score,
            "margin": margin,
            "model": {"ver": model.ver, "offset": model.offset},
            "src": src,
        }
        if event.ts is not None:
            fields["ts"] = event.ts
        return _encode(fields).encode()

    def _features(self, x: Any) -> dict[str, float]:
        if type(x) is list:
            if self._names and len(x) != len(self._names):
                raise BadRecord("bad-features", f"x has {len(x)} numbers, expected {len(self._names)}")
            x = dict(zip(self._names or map(str, range(len(x))), x, strict=True))
        elif type(x) is not dict:
            raise BadRecord("bad-features", f"x must be an object or a list of numbers, got {_show(x)}")
        elif self._names and x.keys() != self._expected:
            raise BadRecord("bad-features", _difference(x, self._names))
        for name, number in x.items():
            if type(number) not in (float, int) or not -MAX_MAGNITUDE < number < MAX_MAGNITUDE:
                raise BadRecord(
                    "bad-feature", f"feature {name!r} must be a number below 1e15 in size, got {_show(number)}"
                )
        return x

    def _label(self, label: Any) -> bool:
        known = self._labels.get(label) if type(label) in (bool, int, float, str) else None
        if known is None:
            names = "" if self._outputs[1] is True else f", {self._outputs[1]!r}/{self._outputs[0]!r}"
            raise BadRecord("bad-label", f"y must be true/false, 0/1, -1/+1{names}, got {_show(label)}")
        return known


def dead_letter_headers(record: Record, stage: str, error: BadRecord) -> Headers:
    """Where a refused record came from and why, for the headers of its copy on the dead-letter topic."""
    content = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "stage": stage,
        "reason": error.reason,
        "error": error.detail,
    }
    return [(f"sv-dlq-{name}", str(value).encode()) for name, value in content.items()]


# --- strict JSON ------------------------------------------------------------------------------------------------------


def _parse(value: bytes) -> dict[str, Any]:
    if len(value) > MAX_BYTES:
        raise BadRecord("too-large", f"the record has {len(value)} bytes, at most {MAX_BYTES} are read")
    try:
        text = value.decode("utf-8")
        fields = _decode(text)
        if "\\u" in text:
            _encode_strictly(fields)
    except UnicodeError as error:
        raise BadRecord("not-utf8", str(error)) from None
    except RecursionError:
        raise BadRecord("not-json", "objects or lists are nested too deeply") from None
    except BadRecord:
        raise
    except ValueError as error:
        raise BadRecord("not-json", str(error)) from None
    if type(fields) is not dict:
        raise BadRecord("not-an-object", f"a record must be a JSON object, got {_show(fields)}")
    return fields


def _refuse_constant(name: str) -> Any:
    raise BadRecord("not-json", f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        raise BadRecord("duplicate-field", f"{max(names, key=names.count)!r} appears more than once")
    return result


_decode = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_object).decode


def _encode_strictly(fields: Any) -> None:
    """Half a surrogate pair is legal in JSON's escapes but is no text: nothing could write it out again."""
    json.dumps(fields, ensure_ascii=False).encode("utf-8")


# --- fields -----------------------------------------------------------------------------------------------------------


def _key(id_: Any) -> int:
    if type(id_) is int and _MIN_INT64 <= id_ <= _MAX_INT64:
        return id_
    if type(id_) not in (str, int) or id_ == "":
        raise BadRecord("bad-id", f"id must be a string or an integer, got {_show(id_)}")
    return int.from_bytes(blake2b(str(id_).encode(), digest_size=8).digest(), "little", signed=True)


def _weight(weight: Any) -> float:
    if type(weight) not in (int, float) or not 0 < weight < MAX_MAGNITUDE:
        raise BadRecord("bad-weight", f"w must be a positive number below 1e15, got {_show(weight)}")
    return float(weight)


def _timestamp(ts: Any) -> str | int | float | None:
    if type(ts) not in (str, int, float, NoneType) or ts in (math.inf, -math.inf):
        raise BadRecord("bad-ts", f"ts must be a string or a number, got {_show(ts)}")
    return ts


def _difference(x: Mapping[str, Any], names: Sequence[str]) -> str:
    missing = [name for name in names if name not in x]
    unknown = [name for name in x if name not in names]
    parts = [f"lacks {', '.join(map(repr, missing[:5]))}"] if missing else []
    parts += [f"has unknown {', '.join(map(repr, unknown[:5]))}"] if unknown else []
    return f"x {' and '.join(parts)}"


def _show(value: Any) -> str:
    text = repr(value) if not isinstance(value, float) or math.isfinite(value) else "a number too large for a float"
    return text if len(text) <= 60 else f"{text[:57]}..."
