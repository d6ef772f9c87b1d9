"""The classes of a configuration with more than two: which values are labels, and which classes have come so far.

A label is a string or an integer.  A string that is a whole number, as CSV files and web pages have it, is that
integer: "7" and 7 are one class.

A configuration lists its classes, or leaves it to the labels that come, up to a limit, or both.
"""

import logging
import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from .formats.base import BadRecord, show

logger = logging.getLogger(__name__)

ClassLabel = bool | str | int  # with two classes, whether the event is positive

MAX_LENGTH = 100  # characters of a class's name
RESERVED = ("skip", "ignore")  # what an answer says in place of a class
BLANK = {  # what tables have in place of a missing value, in small letters, as pandas reads them
    "", "na", "n/a", "<na>", "#na", "#n/a", "#n/a n/a", "nan", "-nan", "nat", "null", "none", "1.#ind", "-1.#ind",
    "1.#qnan", "-1.#qnan",
}  # fmt: skip

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LARGEST = 10**18  # of whole numbers as classes: they stay far inside 64 bits


def is_blank(value: Any) -> bool:
    """Whether a value of a table stands for a missing one: it is null, NaN, blank, or spelled as tables spell it."""
    if isinstance(value, str):
        return value.strip().lower() in BLANK
    return value is None or bool(value != value)  # only NaN differs from itself


def alike(text: str) -> str:
    """A text without what a reader does not see: case, spaces, and the ways to write one character."""
    return "".join(
        mark for mark in unicodedata.normalize("NFKC", text).casefold() if mark.isprintable() and mark != " "
    )


class Vocabulary:
    """Which values are labels, with more than two classes.

    Parameters
    ----------
    listed
        The classes that the configuration lists.
    limit
        The largest number of classes; at most the listed ones: no other class may come.

    Raises
    ------
    ValueError
        If a listed class is no label, or is listed twice.
    """

    def __init__(self, listed: Sequence[str | int], limit: int = 0) -> None:
        self.listed: tuple[str | int, ...] = tuple(map(class_of, listed))
        self.limit = max(limit, len(listed))
        self._known = frozenset(self.listed)
        twice = [label for label in self.listed if self.listed.count(label) > 1]
        if twice:
            raise ValueError(f"classes holds {twice[0]!r} twice; a text that is a whole number is that number")

    @property
    def is_open(self) -> bool:
        """Whether other classes than the listed ones may come."""
        return self.limit > len(self.listed)

    def read(self, value: object) -> str | int:
        """The class that a value names.

        Raises
        ------
        BadRecord
            If the value is no label, or names a class that must not come.
        """
        try:
            label = class_of(value)
        except ValueError as error:
            raise BadRecord("bad-label", f"y {error}") from None
        if label not in self._known and not self.is_open:
            raise BadRecord("bad-label", f"y must be one of label.classes, got {show(value)}")
        return label

    def begun(self) -> "KnownClasses":
        """The classes that are known before the first record."""
        return KnownClasses(self.listed, self.limit)


def class_of(value: object) -> str | int:
    """A value as the label of a class; a ValueError if it is none."""
    if value in RESERVED:
        raise ValueError(f"must not be {show(value)}: an answer says that in place of a class")
    if isinstance(value, float) and value.is_integer():  # as tables have whole numbers
        value = int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value)
    if type(value) is int and abs(value) < _LARGEST:
        return value
    if isinstance(value, str) and 0 < len(value) <= MAX_LENGTH and value.isprintable() and value == value.strip():
        return value
    raise ValueError(
        f"must be a whole number of up to 18 digits, or 1 to {MAX_LENGTH} printable characters without spaces around "
        f"them, got {show(value)}"
    )


class KnownClasses:
    """The classes of a partition in the order of their numbers: the listed ones, then the others as they came.

    Parameters
    ----------
    labels
        The labels in this order.
    limit
        The largest number of classes.
    """

    def __init__(self, labels: Sequence[ClassLabel], limit: int = 0) -> None:
        self._numbers: dict[ClassLabel, int] = {label: number for number, label in enumerate(labels)}
        self.labels: list[ClassLabel] = list(labels)
        self.gone: set[ClassLabel] = set()  # classes that were renamed, merged or removed; they keep their numbers
        self._limit = limit

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def present(self) -> list[ClassLabel]:
        """The classes that were not renamed, merged or removed."""
        return [label for label in self.labels if label not in self.gone]

    @property
    def are_two(self) -> bool:
        """Whether labels are booleans: negative and positive."""
        return self.labels == [False, True]

    def number_of(self, label: ClassLabel) -> int:
        """The number of a class, from 0."""
        return self._numbers[label]

    def label_of(self, number: int) -> ClassLabel:
        """The class with a number; a ValueError if there is none."""
        if not 0 <= number < len(self.labels):
            raise ValueError(f"there is no class {number}; there are {len(self.labels)}, from 0 on")
        return self.labels[number]

    def admit(self, label: ClassLabel) -> None:
        """Take in a class, if it is new.

        Raises
        ------
        BadRecord
            If there is no room for it.
        """
        if label in self._numbers:
            return
        self._require_room(label)
        self._doubt(label)
        self._numbers[label] = len(self.labels)
        self.labels.append(label)

    def make_way(self, old: ClassLabel, new: ClassLabel | None) -> None:
        """Give up a class, and take in the one that takes its place; None: there is none.

        Raises
        ------
        BadRecord
            If there is no room for the other one.
        """
        before = set(self.gone)
        self.gone.add(old)
        if new is None or (new in self._numbers and new not in self.gone):
            return
        try:
            self._require_room(new)
        except BadRecord:
            self.gone = before
            raise
        self.gone.discard(new)
        self.admit(new)

    def _require_room(self, label: ClassLabel) -> None:
        if len(self.present) >= self._limit:
            raise BadRecord(
                "too-many-classes", f"y = {show(label)} would be class {len(self.present) + 1}; see label.max_classes"
            )

    def _doubt(self, label: ClassLabel) -> None:
        """Say so if a new class is probably a mistake."""
        twins = [known for known in self.present if alike(str(known)) == alike(str(label))]
        if twins:
            logger.warning("the new class %r looks like the class %r in other letters", label, twins[0])
        if is_blank(label):
            logger.warning("the new class %r looks like a label that is missing", label)


def two_classes() -> KnownClasses:
    """The classes of a configuration with two: the labels False and True."""
    return KnownClasses((False, True))
