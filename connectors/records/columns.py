"""The columns of a file of events: which one is the id, which one the label, and how a label is read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..runtime.folders import FileError
from .classes import ClassLabel, Vocabulary
from .formats.base import BadRecord
from .labels import LABELS

MEANINGS = {f"{number:g}": meaning for number, meaning in LABELS.items()}


@dataclass
class Columns:
    """The meaning of a file's columns.

    Parameters
    ----------
    label
        Column (CSV) or field (flat JSON lines) of the label; default None: events have no label.
    id
        Column or field of the id; default None: ids are ``NAME:LINE``.
    positive
        Label of the positive class; all others are negative.  Default None: labels are 0/1, -1/+1 or true/false.
    group
        Column or field of the group that an example belongs to, such as a person; default None.  It is not a feature.
    shown
        Columns or fields that people look at, by their field in an event; default: none.  They are no features.
    series
        Columns of lists of numbers that people look at, by their field in an event; default: none.
    hint
        What to do about a feature that is not a number, for the error message; ``{column}`` is its name.  Default:
        nothing.
    classes
        The classes, if there are more than two; default None: two.
    several_hint
        What to do if there are more than two classes, for the error message about a third label.  Default: nothing.
    """

    label: str | None = None
    id: str | None = None
    positive: str | None = None
    group: str | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""
    classes: Vocabulary | None = None
    several_hint: str = ""
    _seen: set[str] = field(default_factory=set, init=False)
    _found_positive: bool = field(default=False, init=False)

    @property
    def special(self) -> dict[str, str]:
        """The columns of the id, the label and the group, by their part in an event."""
        parts = {"id": self.id, "y": self.label, "group": self.group}
        return {part: name for part, name in parts.items() if name is not None}

    @property
    def beside_x(self) -> Mapping[str, str]:
        """The fields that are read from an object that is an event already, by their part in the event."""
        return self.looked_at if self.group is None else {"group": self.group, **self.looked_at}

    @property
    def looked_at(self) -> dict[str, str]:
        """The columns that only people look at, by their field in an event."""
        return {**self.shown, **self.series}

    def to_label(self, label: Any, where: str) -> ClassLabel:
        """Read a label.  Numbers compare by value: +1 is 1.0.  A third label is refused unless `positive` is given.

        With more than two classes, a label is that of a class.
        """
        if self.classes:
            try:
                return self.classes.read(label)
            except BadRecord as error:
                raise FileError(f"{where}: {error.detail}") from None
        text = canonical(label)
        if self.positive is not None:
            is_positive = text == canonical(self.positive)
            self._found_positive |= is_positive
            return is_positive
        self._seen.add(text)
        known = MEANINGS.get(text)
        if known is None or len(self._seen) > 2:
            raise FileError(
                f"{where}: label {str(label)!r} is not one of two labels 0/1, -1/+1 or true/false; "
                f"name the positive label, as in --positive {label}{self.several_hint}"
            )
        return known

    def check_positive(self, path: Path) -> None:
        """Refuse a file without the positive label, which is probably misspelled."""
        if self.positive is not None and not self._found_positive:
            raise FileError(f"{path}: no record has the label {self.positive!r} given as --positive")


def canonical(label: Any) -> str:
    """A label as text that is equal for equal labels: 1, "+1", 1.0 and True are all "1"."""
    text = str(label).strip()
    try:
        return f"{float({'true': '1', 'false': '0'}.get(text.lower(), text)):g}"
    except ValueError:
        return text
