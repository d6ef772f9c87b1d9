"""Changes of the classes by people: a class gets another name, becomes part of another one, or is taken out.

A change is a record of the topic of labels, ``{"op": "rename", "from": ..., "to": ..., "rev": ..., "source": ...}``.
Every partition gets it.  The records before it stay as they are: they keep what was said.  From this record on, labels
of the old class count as those of the new one, also labels that were given earlier and come late.

The operations: "rename" gives a name that no class has; "merge" names a class that there is; "remove", whose "to" is
null, takes the labels of the class back; "restore" lets a removed class come again.
"""

import json
from collections.abc import Iterable, MutableMapping
from typing import Any, Literal, NamedTuple, get_args

from .classes import ClassLabel, Vocabulary
from .formats.base import BadRecord, Fields
from .labels import Label

Operation = Literal["rename", "merge", "remove", "restore"]

MOST = 1_000  # changes that are remembered


class ClassChange(NamedTuple):
    """A change of the classes.

    Attributes
    ----------
    op
        What was done.
    old, new
        The class, and the one that its labels belong to from now on; None: they are no labels any more.
    rev
        When it was done, in milliseconds since 1970.
    who
        Who did it: the source of the record.
    """

    op: Operation
    old: ClassLabel
    new: ClassLabel | None
    rev: int
    who: str


def write_change(change: ClassChange) -> bytes:
    """The value of the record of a change."""
    fields = {"op": change.op, "from": change.old, "to": change.new, "rev": change.rev, "source": change.who}
    return json.dumps(fields, separators=(",", ":")).encode()


def is_change(fields: Fields) -> bool:
    """Whether a record of the topic of labels changes the classes."""
    return "from" in fields and fields.get("op") in get_args(Operation)


def to_change(fields: Fields, vocabulary: Vocabulary | None) -> ClassChange:
    """The change in the fields of a record, for which `is_change` holds.

    Raises
    ------
    BadRecord
        If the record is a damaged change, or if there are only two classes.
    """
    if vocabulary is None:
        raise BadRecord("bad-label", "label.positive and label.negative name the two classes")
    op: Operation = fields["op"]
    new, rev, who = (fields.get(name) for name in ("to", "rev", "source"))
    if (new is None) is not (op == "remove") or type(rev) is not int or not isinstance(who, str):
        raise BadRecord("bad-label", "a change of classes needs from, to, rev and source, and no to if it removes one")
    read = vocabulary.read
    return ClassChange(op, read(fields.get("from")), None if new is None else read(new), rev, who)


class ClassChanges:
    """The changes so far, and what the labels of the changed classes count as.

    Parameters
    ----------
    stored
        Changes, in order, as tuples or lists.
    """

    def __init__(self, stored: Iterable[Iterable[Any]] = ()) -> None:
        self.all: list[ClassChange] = []
        self._now: dict[ClassLabel, ClassLabel | None] = {}
        for each in stored:
            self.add(ClassChange(*each))

    def add(self, change: ClassChange) -> None:
        """Take up a change, which comes after all others."""
        self.all = [*self.all, change][-MOST:]
        self._now = {name: change.new if now == change.old else now for name, now in self._now.items()}
        self._now[change.old] = change.new
        if change.new is not None:
            self._now.pop(change.new, None)  # it is a class of its own

    @property
    def gone(self) -> set[ClassLabel]:
        """The classes that were renamed, merged or removed."""
        return set(self._now)

    def meaning(self, label: ClassLabel | None) -> ClassLabel | None:
        """The class that a label counts as; None: it counts no longer."""
        return label if label is None else self._now.get(label, label)

    def as_now(self, label: Label) -> Label:
        """A label as it counts now; that of a removed class takes back what was said before."""
        y = self.meaning(label.y) if self._now else label.y
        return label if y == label.y else label._replace(y=y, op="retract" if y is None else label.op)


def rename_values(labels: MutableMapping[Any, ClassLabel], old: ClassLabel, new: ClassLabel | None) -> None:
    """Let the values that are a class be another one; None: remove them."""
    for key in [key for key, y in labels.items() if y == old]:
        if new is None:
            del labels[key]
        else:
            labels[key] = new


def arranged(known: Iterable[ClassLabel], changes: Iterable[ClassChange]) -> dict[ClassLabel, ClassLabel | None]:
    """The places of the classes, and which class is at each of them now, so that a class keeps its place and its key.

    A renamed class stays where it was.  A merged or removed one leaves its place empty.

    Parameters
    ----------
    known
        All classes that have come so far, in order.
    changes
        The changes, in order.
    """
    places: dict[ClassLabel, ClassLabel | None] = {label: label for label in known}
    for op, old, new, _, _ in changes:
        at = next((place for place, label in places.items() if label == old), old)
        if op == "rename" and new is not None:
            places = {place: None if label == new else label for place, label in places.items()}
            places[at] = new
        else:
            places[at] = new if op == "restore" else None
    return places
