"""The columns of a file of events: which one is the id, which one the label, and how a label is read."""

import re
import shlex
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from ..runtime.folders import FileError
from .classes import ClassLabel, Vocabulary, alike, is_blank
from .formats.base import BadRecord, show
from .labels import LABELS
from .text_files import Mistakes

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_MOST_DIGITS = 28  # of a number that decimals compare exactly


@lru_cache(100, typed=True)
def canonical(label: str | float | Decimal) -> str:
    """A label as text that is equal for equal labels: 1, "+1", 1.0 and True are all "1"."""
    text = str(label).strip()
    digits = {"true": "1", "false": "0"}.get(text.lower(), text)
    is_exact = len(digits) <= _MOST_DIGITS and _NUMBER.fullmatch(digits)
    return str(Decimal(digits).normalize() + 0) if is_exact else text


MEANINGS = {canonical(number): meaning for number, meaning in LABELS.items()}


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
        Label of the positive class; the other label is negative.  Default None: labels are 0/1, -1/+1 or true/false.
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
    multiclass_hint
        What to do if there are more than two classes, for the error message about a third label.  Default: nothing.
    names
        What the configuration's names of two classes mean; default: it names none.
    time
        Column or field of the time; default None.  Only of raw records, and it is a feature as well.
    raw
        The shape of raw records as events, ``"event"`` or ``"flat"``; see `tables`.  Default: features are numbers.
    learned
        Columns that people look at, and that are features as well.  Only of raw records.
    rest
        Whether, with `positive`, all other labels are negative, however many there are.  Default: a third label is a
        mistake.

    Attributes
    ----------
    blanks : Counter
        How often a label was missing, by the text in its place.
    absent : list of str
        A line for each field with a name of these that no record of a file has.
    """

    label: str | None = None
    id: str | None = None
    positive: str | None = None
    group: str | None = None
    shown: Mapping[str, str] = field(default_factory=dict)
    series: Mapping[str, str] = field(default_factory=dict)
    hint: str = ""
    classes: Vocabulary | None = None
    multiclass_hint: str = ""
    names: Mapping[str, bool] = field(default_factory=dict)
    time: str | None = None
    raw: str = ""
    learned: tuple[str, ...] = ()
    rest: bool = False
    blanks: Counter[str] = field(default_factory=Counter, init=False)
    absent: list[str] = field(default_factory=list, init=False)
    _seen: dict[str, str] = field(default_factory=dict, init=False)  # labels of one class each, as the file has them
    _found_positive: bool = field(default=False, init=False)

    @cached_property
    def special(self) -> dict[str, str]:
        """The columns of the id, the label and the group, by their part in an event."""
        parts = {"id": self.id, "y": self.label, "group": self.group}
        return {part: name for part, name in parts.items() if name is not None}

    @cached_property
    def named(self) -> dict[str, str]:
        """The same, and the column of the time."""
        return self.special if self.time is None else {**self.special, "ts": self.time}

    @cached_property
    def not_learned(self) -> list[str]:
        """The columns of raw records that are no features."""
        return [name for name in [*self.special.values(), *self.looked_at.values()] if name not in self.learned]

    @cached_property
    def beside_x(self) -> Mapping[str, str]:
        """The fields that are read from an object that is an event already, by their part in the event."""
        return self.looked_at if self.group is None else {"group": self.group, **self.looked_at}

    @cached_property
    def looked_at(self) -> dict[str, str]:
        """The columns that only people look at, by their field in an event."""
        return {**self.shown, **self.series}

    def to_label(self, label: Any, where: str) -> ClassLabel | None:
        """Read a label; None for a blank, which means that there is no label yet.

        Numbers compare by value: +1 is 1.0.  With more than two classes, a label is that of a class.
        """
        if self.is_missing(label):
            self.blanks["" if label is None else str(label).strip()] += 1
            return None
        if not isinstance(label, str | int | float | Decimal):
            raise FileError(f"{where}: a label must be a text, a number or a boolean, got {show(label)}")
        if self.classes:
            try:
                return self.classes.read(label)
            except BadRecord as error:
                raise FileError(f"{where}: {error.detail}") from None
        return self._usual(label, where) if self.positive is None else self._chosen(self.positive, label, where)

    def spelled(self, label: ClassLabel | None) -> ClassLabel | None:
        """A label that was read, as the configuration names it."""
        return next((name for name, meaning in self.names.items() if meaning is label), label)

    def is_missing(self, label: Any) -> bool:
        """Whether this is no label; a class may have the name "None", for example, if something says so."""
        if not is_blank(label):
            return False
        return str(label).strip() not in [*self.names, *(self.classes.listed if self.classes else ()), self.positive]

    def _usual(self, label: str | float | Decimal, where: str) -> bool:
        """The meaning of a label that the configuration names, or that needs no name."""
        text = canonical(label)
        for name, meaning in self.names.items():
            if text == canonical(name) and not isinstance(label, bool):
                return meaning
        if text in MEANINGS and self._is_one_of(2, text, label):
            return MEANINGS[text]
        if self.names:
            known = "/".join(map(repr, self.names))
            raise FileError(
                f"{where}: label {show(str(label))} is not one of [label]'s {known}, 0/1, -1/+1 or true/false"
            )
        raise FileError(
            f"{where}: label {show(str(label))} is not one of two labels 0/1, -1/+1 or true/false; "
            f"--positive LABEL names the positive one{self.multiclass_hint}"
        )

    def _chosen(self, positive: str, label: str | float | Decimal, where: str) -> bool:
        """Whether a label is the positive one; a misspelt one must not become a negative."""
        text, wanted = canonical(label), canonical(positive)
        if text == wanted:
            self._found_positive = True
            return True
        if alike(text) == alike(wanted):
            raise FileError(f"{where}: label {show(str(label))} is almost {positive!r}; write it in one way only")
        if self._is_one_of(1, text, label) or self.rest:
            return False
        raise FileError(
            f"{where}: label {show(str(label))} is a third one, beside {positive!r} and "
            f"{show(next(iter(self._seen.values())))}; correct it, or make every label but {shlex.quote(positive)} "
            f"negative with --rest{self.multiclass_hint}"
        )

    def _is_one_of(self, limit: int, text: str, label: Any) -> bool:
        """Whether a label is among the first so many."""
        if len(self._seen) < limit:
            self._seen.setdefault(text, str(label))
        return text in self._seen

    def absence(self, path: Path, mistakes: Mistakes) -> list[str]:
        """What no record of a file has that was read to its end: fields, and the label that --positive may misspell."""
        found, was_read = self.absent, bool(self._seen) or not mistakes.n
        if self.positive is not None and not self._found_positive and was_read:
            found = [*found, f"no record has the label {self.positive!r} given as --positive"]
        return [f"{path}: {what}" for what in found]
