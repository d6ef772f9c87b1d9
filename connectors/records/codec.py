"""Bytes to events and labels.

An event has an ``id``, features ``x`` and, optionally, a label ``y``, a weight ``w`` and a time ``ts``.  Its format is
one of `FORMATS`.  In JSON it is ``{"id": ..., "x": {name: number, ...}, "y": ..., "w": ..., "ts": ...}``; x may be a
list of numbers instead, and other fields are ignored.  A field that may be missing may be null as well.  An id is a
string or an integer; the string "7" and the number 7 are different ids.  Raw events have other features: see `raw`.

Labels are JSON in every configuration; see `labels`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple, TypeVar

import numpy as np

from streamsvm.estimators.inputs.named_rows import NamedValues

from ..logs.transport import Record
from ..runtime.numbers import MAX_INT64
from ..runtime.text import number_in
from .class_changes import ClassChange, is_change, to_change
from .classes import ClassLabel, Vocabulary
from .formats.avro import AvroFormat
from .formats.base import BadRecord, Fields, Format, show
from .formats.float32 import LABELS as TEXTS
from .formats.float32 import Float32Format
from .formats.json import JsonFormat, read_json
from .formats.registry.client import Place
from .formats.registry.format import RegistryFormat, pause
from .labels import GIVING, LABELS, MAX_QUERY_ID, OPERATIONS, Label
from .raw import Reading
from .times import read_time

logger = logging.getLogger(__name__)

FORMATS = ("json", "float32", "avro", "registry")
MAX_BYTES = 1 << 20  # Kafka's own default for the largest record
MAX_FEATURE_NAME = 256  # characters of a feature's name
MAX_TEXT = 2048  # characters of an id, a time or a source; bytes of a key
MAX_MAGNITUDE = 1e15  # sums of squares stay far inside float32, in which kernel values are computed

DIFFERENT_IDS = 'the string "7" and the number 7 are different ids'

_CELLS = {**TEXTS, "True": True, "False": False}  # labels of tables, in which everything is text
_MANY = 32  # numbers of a list from which an array is quicker than a dict
_NUMBERS = {float, int}
_int64 = Struct("<q").unpack


class Event(NamedTuple):
    """One decoded event.

    Attributes
    ----------
    id, key
        The id, and the same as 64 bits for the model.
    x
        Features by name: numbers, or what a raw record has, without nested objects.
    y
        The event's own label, or None.
    w
        Weight.
    ts
        When it happened, as the record writes it, or None; see `times`.
    """

    id: str | int
    key: int
    x: Mapping[str, Any]
    y: ClassLabel | None
    w: float
    ts: str | int | float | None

    @property
    def time(self) -> int | None:
        """The same in milliseconds since 1970."""
        return None if self.ts is None else read_time(self.ts)


class Codec:
    """Reads events and labels.

    Parameters
    ----------
    names
        Exactly these features must be in every event; empty, the default: events may have any features.
    positive, negative
        Names of the two classes.  Labels may use them beside true/false, 0/1 and -1/+1, and predictions use them.
    classes
        The classes, if there are more than two; default: two.
    format
        Format of events, one of `FORMATS`; default "json".
    schemas
        Folder of the schemas, for the format "avro"; default: "schemas".
    registry
        The schema registry, for the format "registry".
    wait
        Called with the reason while it does not answer; default: wait a moment.
    max_features
        An event with more features is refused.
    reading
        How features are read; default: they are numbers, as the event has them.

    Attributes
    ----------
    n_strangers : int
        Labels whose id has another type than the ids of all events so far: they never find an event.

    Raises
    ------
    LibraryMissing
        If the format is "avro" and fastavro is not installed.
    SchemaError
        If the format is "avro" and the schemas cannot be used.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        positive: str | None = None,
        negative: str | None = None,
        *,
        classes: Vocabulary | None = None,
        format: str = "json",
        schemas: Path = Path("schemas"),
        registry: Place = Place(""),  # noqa: B008 - a constant
        wait: Callable[[str], None] | None = None,
        max_features: int = 100_000,
        reading: Reading = Reading(),  # noqa: B008 - a constant
    ) -> None:
        self._max_features = max_features
        self._reading = reading
        self._is_read_plainly = reading == Reading()
        self._names = tuple(names)
        self._expected = frozenset(names)
        self._classes = classes
        self._labels = dict(LABELS) | (_CELLS if reading.is_raw else {})
        self._outputs: tuple[bool | str, bool | str] = (False, True)
        named: dict[str, bool] = {}
        if positive is not None and negative is not None:
            named = {positive: True, negative: False}
            self._outputs = (negative, positive)
        self._labels |= named | _as_numbers(named)
        of_numbers, is_flat = not reading.is_raw and reading.transform is None, reading.is_flat
        formats: dict[str, Callable[[], Format]] = {
            "json": JsonFormat,
            "float32": lambda: Float32Format({} if classes else {**TEXTS, **named}),
            "avro": lambda: AvroFormat(schemas, of_numbers=of_numbers, is_flat=is_flat),
            "registry": lambda: RegistryFormat(registry, wait or pause, is_flat=is_flat),
        }
        self._format = formats[format]()
        self._id_types: set[type] = set()  # of events
        self.n_strangers = 0

    def decode(self, record: Record) -> Event:
        """Read an event.

        Raises
        ------
        BadRecord
            If the record is not what the format requires.  The detail names the field.
        """
        event = self._format.read(self._value(record), record.headers, lambda fields: self._to_event(fields, record))
        self._id_types.add(type(event.id))
        return event

    def features(self, value: bytes) -> Mapping[str, Any]:
        """The features of an event that was decoded before, from its record's value.

        Raises
        ------
        BadRecord
            If the user's function makes no features of it any more.
        """
        if self._is_read_plainly:
            return self._named(self._format.features(value))
        return self._format.read(value, (), lambda fields: self._features(self._reading.features(fields)))

    def decode_label(self, record: Record) -> Label | ClassChange:
        """Read a record of the topic of labels: a label, or a change of the classes.

        Raises
        ------
        BadRecord
            If the record is none as `labels` and `class_changes` describe it.  The detail names the field.
        """
        label = read_json(self._value(record), self._to_label)
        if isinstance(label, Label) and self._id_types and type(label.id) not in self._id_types:
            self._note_stranger(label.id)
        return label

    def _note_stranger(self, id_: str | int) -> None:
        if self.n_strangers == 0:
            logger.warning("a label has the id %r, but no event had an id of that type yet: %s", id_, DIFFERENT_IDS)
        self.n_strangers += 1

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self._classes is not None

    def name_of(self, label: ClassLabel) -> ClassLabel:
        """A class as predictions write it."""
        return label if self._classes else self._outputs[bool(label)]

    # --- fields -------------------------------------------------------------------------------------------------------

    def _to_event(self, fields: Fields, record: Record) -> Event:
        if not self._is_read_plainly:
            fields = self._reading.event(fields, f"{record.topic}-{record.partition}-{record.offset}")
        if "id" not in fields or "x" not in fields:
            raise BadRecord("missing-field", f"the record has no {'x' if 'id' in fields else 'id'!r}")
        label, weight = fields.get("y"), fields.get("w")
        return Event(
            fields["id"],
            key_of(fields["id"]),
            self._features(fields["x"]),
            None if label is None else self._label(label),
            1.0 if weight is None else _weight(weight, "w"),
            _timestamp(fields.get("ts")),
        )

    def _to_label(self, fields: Fields) -> Label | ClassChange:
        if is_change(fields):
            return to_change(fields, self._classes)
        if "id" not in fields:
            raise BadRecord("missing-field", "the record has no 'id'")
        op, weight, revision = fields.get("op"), fields.get("weight"), fields.get("rev")
        op = "set" if op is None else op
        if op not in OPERATIONS:
            raise BadRecord("bad-op", f"op must be one of {', '.join(map(repr, OPERATIONS))}, got {show(op)}")
        return Label(
            fields["id"],
            key_of(fields["id"]),
            self._label(fields.get("y")) if op in GIVING else None,
            None if weight is None else _weight(weight, "weight"),
            _timestamp(fields.get("ts")),
            None if revision is None else _revision(revision),
            op,
            _source(fields.get("source")),
            _source(fields.get("like")),
            _query_id(fields["query_id"]) if "query_id" in fields else None,
        )

    def _value(self, record: Record) -> bytes:
        value = record.value
        if value is None:
            raise BadRecord("null-value", "the record has no value")
        if len(value) > MAX_BYTES:
            raise BadRecord("too-large", f"the record has {len(value)} bytes, at most {MAX_BYTES} are read")
        if record.key and len(record.key) > MAX_TEXT:
            raise BadRecord("bad-key", f"the key has {len(record.key)} bytes, more than {MAX_TEXT}")
        return value

    def _features(self, x: Any) -> Mapping[str, Any]:
        if type(x) not in (dict, list):
            raise BadRecord("bad-features", f"x must be an object or a list of numbers, got {show(x)}")
        if len(x) > self._max_features:
            raise BadRecord("too-many-features", f"x has {len(x)} features, more than limits.event_features")
        if self._reading.is_raw:
            return self._named(x)
        if type(x) is list:
            if len(x) >= _MANY and _NUMBERS.issuperset(map(type, x)):
                array = _small_enough(x)
                if array is not None:
                    return NamedValues(self._names_of(x), array)
            x = self._named(x)
        elif self._names:
            if x.keys() != self._expected:
                raise BadRecord("bad-features", _difference(x, self._names))
        elif x and max(map(len, x)) > MAX_FEATURE_NAME:
            name = max(x, key=len)
            raise BadRecord(
                "long-feature-name", f"feature {show(name)} has {len(name)} characters, more than {MAX_FEATURE_NAME}"
            )
        low, high = -MAX_MAGNITUDE, MAX_MAGNITUDE
        for name, number in x.items():
            kind = type(number)
            if (kind is not float and kind is not int) or not low < number < high:
                raise BadRecord(
                    "bad-feature", f"feature {show(name)} must be a number below 1e15 in size, got {show(number)}"
                )
        return x

    def _named(self, x: Any) -> dict[str, float]:
        return dict(zip(self._names_of(x), x, strict=True)) if type(x) is list else x

    def _names_of(self, x: list) -> tuple[str, ...]:
        """The names of numbers without names."""
        if self._names and len(x) != len(self._names):
            raise BadRecord("bad-features", f"x has {len(x)} numbers, expected {len(self._names)}")
        return self._names or _positions(len(x))

    def _label(self, label: Any) -> ClassLabel:
        if self._classes:
            return self._classes.read(label)
        known = label if type(label) is bool else None  # a name "1" says nothing about true
        if type(label) in (int, float, str):
            known = self._labels.get(label)
        if known is None:
            names = "" if self._outputs[1] is True else f", {self._outputs[1]!r}/{self._outputs[0]!r}"
            raise BadRecord("bad-label", f"y must be true/false, 0/1, -1/+1{names}, got {show(label)}")
        return known


Message = TypeVar("Message")


def readable(records: Iterable[Record], decode: Callable[[Record], Message]) -> Iterator[tuple[Record, Message]]:
    """The records that a function such as `Codec.decode` can read, with what it makes of them."""
    for record in records:
        with suppress(BadRecord):
            yield record, decode(record)


def _as_numbers(named: Mapping[str, bool]) -> dict[float, bool]:
    """The names that are numbers, as numbers: if the positive class is "2" and the negative one "1", 1 is negative."""
    return {number: meaning for name, meaning in named.items() if (number := number_in(name)) is not None}


# --- fields -----------------------------------------------------------------------------------------------------------


def _small_enough(x: list) -> np.ndarray | None:
    """Numbers as an array; None if one of them is too large, or not a number."""
    try:
        array = np.array(x, np.float64)
    except OverflowError:
        return None
    return array if np.abs(array).max() < MAX_MAGNITUDE else None


@lru_cache(maxsize=8)
def _positions(n_features: int) -> tuple[str, ...]:
    return tuple(map(str, range(n_features)))


def key_of(id_: Any) -> int:
    """An id as 64 bits; BadRecord if it is none."""
    if type(id_) is int and -MAX_INT64 - 1 <= id_ <= MAX_INT64:
        return id_
    if type(id_) not in (str, int) or id_ == "":
        raise BadRecord("bad-id", f"id must be an integer, or a string that is not empty, got {show(id_)}")
    text = str(id_)
    if len(text) > MAX_TEXT:
        raise BadRecord("bad-id", f"id has {len(text)} characters, more than {MAX_TEXT}")
    key: int = _int64(blake2b(text.encode(), digest_size=8).digest())[0]
    return key


def _weight(weight: Any, name: str) -> float:
    if type(weight) not in (int, float) or not 0 < weight < MAX_MAGNITUDE:
        raise BadRecord("bad-weight", f"{name} must be a positive number below 1e15, got {show(weight)}")
    return float(weight)


def _timestamp(ts: Any) -> str | int | float | None:
    if ts is None:
        return None
    if type(ts) is str and len(ts) > MAX_TEXT:
        raise BadRecord("bad-ts", f"ts has {len(ts)} characters, more than {MAX_TEXT}")
    if type(ts) not in (str, int, float):
        raise BadRecord("bad-ts", f"ts must be a string or a number, got {show(ts)}")
    try:
        read_time(ts)
    except (ValueError, OverflowError):
        raise BadRecord(
            "bad-ts",
            "ts must be ISO 8601, or seconds, milliseconds, microseconds or nanoseconds since 1970, of a time from "
            f"1678 to 2261, got {show(ts)}",
        ) from None
    return ts


def _revision(rev: Any) -> int:
    if type(rev) is not int or not 0 <= rev <= MAX_INT64:
        raise BadRecord("bad-rev", f"rev must be an integer from 0 to 2**63 - 1, got {show(rev)}")
    return rev


def _source(source: Any) -> str | None:
    if source is None:
        return None
    if type(source) is not str:
        raise BadRecord("bad-source", f"source must be a string, got {show(source)}")
    if len(source) > MAX_TEXT:
        raise BadRecord("bad-source", f"source has {len(source)} characters, more than {MAX_TEXT}")
    return source


def _query_id(query_id: Any) -> str | None:
    return query_id if type(query_id) is str and len(query_id) <= MAX_QUERY_ID else None


def _difference(x: Mapping[str, Any], names: Sequence[str]) -> str:
    missing = [name for name in names if name not in x]
    unknown = [name for name in x if name not in names]
    parts = [f"lacks {', '.join(map(show, missing[:5]))}"] if missing else []
    parts += [f"has unknown {', '.join(map(show, unknown[:5]))}"] if unknown else []
    return f"x {' and '.join(parts)}"
