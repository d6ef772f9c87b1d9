"""Questions on the topic log.questions: what the trainer writes there, and the labelling service reads.

A question's key is its id.  Its value is JSON, with the fields of `Question` but for the partition, which is the
record's own::

    {"query_id": "...", "id": ..., "x": {name: number, ...}, "margin": ..., "score": ..., "reason": ...,
     "asked_at": ms, "expires_at": ms, "unusual": {name: deviations, ...},
     "model": {"ver": ..., "n_support": ...}, "event": {...}}

With more than two classes, it also has ``"guess": the predicted class or null, "probabilities": {CLASS: ...}``.
If labelled events speak for the guess, it has ``"speaking": [{"id": ..., "label": ..., "share": ...}, ...]``.
If other events have the same text, it has ``"alike": [{"query_id": ..., "id": ...}, ...]``; with
``"almost": true``, they have almost the same one.
A record without a value closes the question of its key: it was answered, withdrawn or has expired.  The record with the
key "status" is no question: it tells how far the partition's labelling is.

Readers check every field, because a damaged record must not reach the page or the terminal.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ...logs.transport import Record
from ...runtime.numbers import MAX_INT64
from ..classes import ClassLabel, class_of
from ..codec import MAX_BYTES
from ..formats.base import BadRecord, Fields, show
from ..formats.json import read_json
from ..labels import MAX_QUERY_ID, Place
from .annotators import Annotator

STATUS = b"status"  # key of the record that tells how far the labelling is
MAX_QUESTION_BYTES = MAX_BYTES - (64 << 10)  # leaves room for what a record has beside its value
FOUND = "found"  # reason of a question that the trainer did not ask: a person has found the event
RECHECK = "recheck"  # reason of a question that asks again; people see no guess, for the model has learned the answer
OUTCOMES = ("asked", "answered", "skipped", "ignored", "expired", "withdrawn")  # of questions
LOOP_COUNTS = (*OUTCOMES, "open", "offered", "labels", "positive", "negative", "corrected", "retracted")
COUNTS = (*LOOP_COUNTS, "unresolved", "rechecks", "confirmed", "revised")  # in a status

_RECHECKED = f"-{RECHECK}"

Is = Callable[[Any], bool]  # whether a value of JSON is right


@dataclass(frozen=True)
class Question:
    """A request for the label of one event.

    Attributes
    ----------
    query_id
        Id of the question.
    id, partition
        Id of the event, and partition of both records.
    x
        Features by name, as the event has them.
    event
        The event's other fields, for people to read.
    margin, score
        Decision value, and probability of the positive class or None, when the question was asked.
    reason
        Why this event was chosen: "seed", "boundary", "novel", "explore", "audit", "review" or "hunt"; `RECHECK` asks
        again about an answer, and `FOUND` is a person's choice.
    asked_at, expires_at
        Milliseconds, by the clock of the events.
    unusual
        Features that are far from those of the first events, with their distance in standard deviations.
    model
        The model that asked: "ver", its number of lessons, and "n_support".
    guess, probabilities
        With more than two classes: the predicted one, None if the model knows none, and the probabilities by class, as
        text.  `score` is then that of the guess.
    speaking
        The labelled events that speak most for the guess: "id", "label", and "share", their part in the decision.
    alike
        Other events with the same text, which one answer may be for: "id", and "query_id", of the question that would
        be about it.
    almost
        Whether their text is only almost the same, so that one answer is for all of them only if a person says so.
    """

    query_id: str
    id: str | int
    partition: int
    x: Mapping[str, float]
    event: Mapping[str, Any]
    margin: float
    reason: str
    asked_at: int
    expires_at: int
    score: float | None = None
    unusual: Mapping[str, float] = field(default_factory=dict)
    model: Mapping[str, int] = field(default_factory=dict)
    guess: ClassLabel | None = None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    speaking: Sequence[Mapping[str, Any]] = ()
    alike: Sequence[Mapping[str, Any]] = ()
    almost: bool = False

    @property
    def place(self) -> Place:
        """Where its answer goes."""
        return Place(self.partition, self.id)


# --- writing ----------------------------------------------------------------------------------------------------------


def write_question(question: Question) -> bytes:
    """The value of a question's record.  It lacks `event` and `unusual` if it would be too large with them."""
    try:
        whole = _write(question)
    except ValueError:  # the event has an infinite number, such as 1e999
        return _write(replace(question, event={}))
    return whole if len(whole) <= MAX_QUESTION_BYTES else _write(replace(question, event={}, unusual={}))


def write_status(status: Mapping[str, Any]) -> bytes:
    """The value of the record that tells how far the labelling is; `read_status` says what it may hold."""
    return _dump({"status": status})


def recheck_id(query_id: str) -> str:
    """The id of the question that asks again about the event of a question, because its answer looks wrong."""
    return f"{query_id}{_RECHECKED}"


def is_recheck(query_id: str) -> bool:
    """Whether a question asks again; one answer is enough."""
    return query_id.endswith(_RECHECKED)


def without_recheck(query_id: str) -> str:
    """The id of the first question about the event of a question."""
    return query_id.removesuffix(_RECHECKED)


def fits_question(x: Mapping[str, float], n_bytes: int) -> bool:
    """Whether a question has room for the features of an event whose record's value has `n_bytes`."""
    is_small = n_bytes <= MAX_BYTES // 16  # however the numbers are written, they fit
    return is_small or len(json.dumps(dict(x))) <= MAX_QUESTION_BYTES // 2


def _write(question: Question) -> bytes:
    several = ("guess", "probabilities") if question.guess is not None or question.probabilities else ()
    others = [name for name in ("speaking", "alike", "almost") if getattr(question, name)]
    fields = {name: getattr(question, name) for name in (*_QUESTION, *several, *others)}
    return _dump(fields | {"x": dict(question.x)})  # JSON takes no other mapping


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


# --- reading ----------------------------------------------------------------------------------------------------------


def read_question(record: Record) -> Question:
    """The question in a record.

    Raises
    ------
    BadRecord
        If a field is missing or wrong, or if the key is not the question's id.  The detail names the field.
    """
    return read_json(record.value or b"", partial(_to_question, record))


def read_query_id(record: Record) -> str:
    """The id of the question that a record opens or closes.

    Raises
    ------
    BadRecord
        If the record's key is missing or is not UTF-8.
    """
    try:
        query_id = (record.key or b"").decode()
    except UnicodeDecodeError as error:
        raise BadRecord("bad-question", f"the key is not UTF-8: {error}") from None
    if not query_id:
        raise BadRecord("bad-question", "a question must have a key")
    return query_id


def read_status(record: Record) -> dict[str, Any]:
    """How far a partition's labelling is.

    Returns
    -------
    dict
        `COUNTS`; "remaining", the labels left of the quota, or None; "verdict" with "stop", "audit", "why" and "spent";
        "recall", what is proved of a promise of recall, if there is one;
        "missed", the fields of `streamsvm.active.Missed`; "curve", a list of points; "agreement" and "annotators" with
        the fields of the classes in `annotators`; with more than two classes, "classes", a list of each class and its
        number of labels.  A trainer of another version may leave some out, or add others.

    Raises
    ------
    BadRecord
        If a field is wrong.
    """
    return read_json(record.value or b"", _to_status)


def _to_question(record: Record, found: Fields) -> Question:
    for name, (is_right, wanted) in _QUESTION.items():
        _check_field(found, name, is_right, wanted)
    if found["query_id"] != read_query_id(record):
        raise BadRecord("bad-question", f"the key of question {show(found['query_id'])} is {show(record.key)}")
    others = {name: found[name] for name in _OTHERS if found.get(name) is not None}
    for name in others:
        _check_field(found, name, *_OTHERS[name])
    return Question(partition=record.partition, **{name: found[name] for name in _QUESTION}, **others)


def _to_status(found: Fields) -> dict[str, Any]:
    _check_field(found, "status", lambda value: type(value) is dict, "an object")
    status = {name: field for name, field in found["status"].items() if field is not None or name == "remaining"}
    for name in status.keys() & _STATUS.keys():
        _check_field(status, name, *_STATUS[name])
    return status


def _check_field(found: Fields, name: str, is_right: Is, wanted: str) -> None:
    if name not in found:
        raise BadRecord("missing-field", f"the record has no {name!r}")
    if not is_right(found[name]):
        raise BadRecord("bad-question", f"{name} must be {wanted}, got {show(found[name])}")


# --- what a field may be ----------------------------------------------------------------------------------------------


def _is_finite(value: Any) -> bool:
    """Whether this is a number that every JSON parser reads as a finite one."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max


def is_series(value: Any) -> bool:
    """Whether this is a list of such numbers, at least one."""
    return isinstance(value, list) and bool(value) and all(map(_is_finite, value))


def _is_share(value: Any) -> bool:
    return _is_finite(value) and 0 <= value <= 1


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MAX_INT64


def _is_time(value: Any) -> bool:
    return type(value) is int and -MAX_INT64 - 1 <= value <= MAX_INT64


def are_numbers(value: Any) -> bool:
    """Whether this is an object of finite numbers."""
    return type(value) is dict and all(map(_is_finite, value.values()))


def _is_query_id(value: Any) -> bool:
    return type(value) is str and 0 < len(value) <= MAX_QUERY_ID


def _is_plain(value: Any) -> bool:
    """Whether this is an object that can be written as JSON again."""
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        return False
    return type(value) is dict


def _is_class(value: Any) -> bool:
    try:
        return class_of(value) == value
    except ValueError:
        return False


def _is_verdict(value: Any) -> bool:
    if type(value) is not dict or not isinstance(value.get("why"), str):
        return False
    return all(isinstance(value.get(name, False), bool) for name in ("stop", "audit", "spent"))


def _is_missed(value: Any) -> bool:
    """Whether this is a `Missed`."""
    from streamsvm.active import Missed  # loads the engine, which most readers of this topic do not need

    return _object(**dict.fromkeys(Missed._fields, _is_count) | {"at_most": _or_null(_is_count)})(value)


def _is_of(*kinds: type) -> Is:
    return lambda value: type(value) in kinds


def _or_null(is_right: Is) -> Is:
    return lambda value: value is None or is_right(value)


def _list(is_right: Is) -> Is:
    return lambda value: type(value) is list and all(map(is_right, value))


def _row(*are_right: Is) -> Is:
    """A list of as many items, each of its own kind."""
    return lambda value: (
        type(value) is list
        and len(value) == len(are_right)
        and all(is_right(item) for is_right, item in zip(are_right, value, strict=True))
    )


def _object(**members: Is) -> Is:
    """An object with exactly these members."""
    return lambda value: (
        type(value) is dict
        and value.keys() == members.keys()
        and all(is_right(value[name]) for name, is_right in members.items())
    )


_IS_ID, _IS_TEXT, _IS_RATE = _is_of(str, int), _is_of(str), _or_null(_is_finite)
_IS_POINT = _row(_is_count, _is_count, _or_null(_is_share), _or_null(_is_share))  # a `CurvePoint`
_IS_AGREEMENT = _object(n_shared=_is_count, share=_IS_RATE, kappa=_IS_RATE, measure=_IS_TEXT)
_COUNTED = {name: _is_count for name in Annotator._fields if name.startswith("n_")}
_IS_ANNOTATOR = _object(name=_IS_TEXT, agreement=_IS_RATE, per_hour=_IS_RATE, **_COUNTED)
_IS_WITNESS = _object(id=_IS_ID, label=_is_of(str, int, bool), share=_is_share)  # an event that speaks for a guess
_Check = tuple[Is, str]
_COUNT: _Check = (_is_count, "a count")
_NUMBERS: _Check = (are_numbers, "an object of finite numbers")
_TIME: _Check = (_is_time, "whole milliseconds")
_QUESTION: dict[str, _Check] = {
    "query_id": (_is_query_id, f"1 to {MAX_QUERY_ID} characters"),
    "id": (_IS_ID, "a text or a whole number"),
    "x": _NUMBERS,
    "margin": (_is_finite, "a finite number"),
    "score": (_or_null(_is_share), "a number from 0 to 1, or null"),
    "reason": (_IS_TEXT, "a text"),
    "asked_at": _TIME,
    "expires_at": _TIME,
    "unusual": _NUMBERS,
    "model": (lambda value: type(value) is dict and all(map(_is_count, value.values())), "an object of counts"),
    "event": (_is_plain, "an object without infinite numbers"),
}
_OTHERS: dict[str, _Check] = {  # that a question may lack; the first two are of more than two classes
    "guess": (_or_null(_is_class), "a class or null"),
    "probabilities": _NUMBERS,
    "almost": (_is_of(bool), "true or false"),
    "alike": (_list(_object(query_id=_is_query_id, id=_IS_ID)), "a list of query_id and id"),
    "speaking": (_list(_IS_WITNESS), "a list of id, label and share"),
}
_STATUS: dict[str, _Check] = {
    "classes": (_list(_row(_is_class, _is_count)), "a list of classes, each with its number of labels"),
    **dict.fromkeys(COUNTS, _COUNT),
    "remaining": (_or_null(_is_count), "a count or null"),
    "verdict": (_is_verdict, "an object of stop, audit and why"),
    "missed": (_is_missed, "an object of at_most, n_audited, n_found and n_unlabelled"),
    "recall": (_IS_TEXT, "a text"),
    "curve": (_list(_IS_POINT), "a list of points"),
    "agreement": (_IS_AGREEMENT, "an agreement"),
    "annotators": (_list(_IS_ANNOTATOR), "a list of annotators"),
}
