"""Labels on the topic log.labels: what an event's label is, and how an answer to a question is written.

A label is JSON, ``{"id": ..., "y": ..., "weight": ..., "ts": ..., "source": ..., "rev": ..., "op": ...}``.  Only the id
is always required, and y if there is no ``op``; null means that a field is missing.  `Codec.decode_label` reads labels,
because a configuration may give the two classes names.

The labels of an event are ordered by revision, and labels of the same revision by offset; the last one holds.  A label
without a revision, such as a line of a file, takes the highest one so far: it comes after all labels before it.

An answer to a question is a label with one more field, ``query_id``.  If it was given with the answer to another
question, because the events are near-duplicates, it also has ``like``, the id of that one.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from .classes import ClassLabel
from .times import read_time

LABELS: Mapping[Any, bool] = {1: True, 0: False, -1: False}  # Python: True == 1 == 1.0 and False == 0
OPERATIONS = ("set", "retract", "skip", "ignore", "decide")
GIVING = ("set", "decide")  # those that give a label
MAX_QUERY_ID = 300  # characters of a question's id


class Label(NamedTuple):
    """One decoded label.

    Attributes
    ----------
    id, key
        Id of the event, and the same as 64 bits.
    y
        The class: with two, whether the event is positive.  None unless the operation is "set" or "decide".
    w
        Weight in place of the event's, or None.
    ts
        When it was given, as the record writes it, or None; see `times`.
    rev
        Revision: of two labels of an event, the one with the higher revision holds.  None: the label has the revision
        of the one that holds, so that it replaces whatever came before it on the topic.
    op
        "set" gives a label, "retract" takes it back, "skip" and "ignore" answer a question without a label.  "decide"
        gives the label that holds whatever the annotators of the question say.
    source
        Where it comes from, or None.
    like
        The question whose answer also gave this label, because the events are near-duplicates; None: it was given
        alone.
    query_id
        The question that it answers; None if no question asked for it.
    """

    id: str | int
    key: int
    y: ClassLabel | None
    w: float | None
    ts: str | int | float | None
    rev: int | None
    op: str
    source: str | None
    like: str | None = None
    query_id: str | None = None

    @property
    def time(self) -> int | None:
        """The time `ts` in milliseconds since 1970."""
        return None if self.ts is None else read_time(self.ts)


def as_set(label: Label) -> Label:
    """A label that decides, as one that is set."""
    return label._replace(op="set") if label.op == "decide" else label


class Place(NamedTuple):
    """Where the answer to a question goes: the partition, and the id of the event."""

    partition: int
    id: str | int


def write_answer(
    query_id: str, place: Place, op: str, y: ClassLabel | None, rev: int, source: str, like: str | None = None
) -> bytes:
    """The value of the label that answers a question; `y` is None unless the operation gives a label."""
    given = {} if y is None else {"y": y}
    fields = {"id": place.id, **given, "op": op, "rev": rev, "source": source, "query_id": query_id}
    if like is not None:
        fields["like"] = like
    return json.dumps(fields, separators=(",", ":")).encode()
