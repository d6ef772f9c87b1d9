"""What is known of the fields of a table after a look at its records."""

import re
from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from streamsvm.features import Records
from streamsvm.features.nesting import flat
from streamsvm.features.values import NUMBER, TIME

from ...records.classes import is_blank
from ...records.times import read_time

COMMAS = re.compile(r"[^\w,.]*[+-]?\d+(\.\d{3})*,\d+[^\w,.]*").fullmatch  # such as 1.234,50 €
GROUPS = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?").fullmatch
SURE_GROUPS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(,\d{3}|\.\d*)").fullmatch  # 1,234 alone may have a decimal comma
MOST_CLASSES = 1000  # different values of a field that are counted


class Field:
    """What is known of the values of a field.

    Attributes
    ----------
    n_present
        How many records have a value.
    values
        How often each value came; None if there are more than `MOST_CLASSES`.
    all_differ
        Whether each value came once.
    counts
        Whether each value is a whole number, and one more than the value before.
    has_commas
        Whether each value is a number with a decimal comma.
    has_groups
        Whether each value is a number, some with commas between thousands and a decimal point, or several commas.
    newest
        The last time, in milliseconds since 1970.
    n_falling
        How many times are before the time in the record before.
    kind
        As `Records` judges it.
    """

    def __init__(self) -> None:
        self.n_present = 0
        self.values: Counter[Any] | None = Counter()
        self.all_differ = True
        self.counts = self.has_commas = True
        self._may_have_groups, self._has_sure_group = True, False
        self.kind: str | None = None
        self.remark = ""
        self._known: set[int] = set()  # checksums, while all values differ
        self._count: int | None = None
        self.newest: int | None = None
        self._n_times = self.n_falling = 0

    def note(self, v: Any) -> None:
        """Take note of a value."""
        if is_blank(v):
            return
        self.n_present += 1
        v = v.strip() if isinstance(v, str) else repr(v) if isinstance(v, list | dict) else v
        if self.all_differ:
            self.all_differ = hash(v) not in self._known and not isinstance(v, float)
            self._known.add(hash(v))
            if not self.all_differ:
                self._known.clear()
        if self.values is not None:
            self.values[v, type(v)] += 1  # True is not 1
            if len(self.values) > MOST_CLASSES:
                self.values = None
        self.has_commas = self.has_commas and bool(COMMAS(str(v)))
        if self._may_have_groups:
            self._may_have_groups = bool(GROUPS(str(v)))
            self._has_sure_group |= bool(SURE_GROUPS(str(v)))
        self._note_count(v)
        self._note_time(v)

    def _note_count(self, v: Any) -> None:
        if self.counts:
            count = int(v) if re.fullmatch("[0-9]{1,18}", str(v)) else None
            self.counts = count is not None and (self._count is None or count == self._count + 1)
            self._count = count

    def _note_time(self, v: Any) -> None:
        if self._n_times < self.n_present - 1:  # An earlier value was no time.
            return
        try:
            time = read_time(v)
        except (ValueError, OverflowError, TypeError):
            return
        self._n_times += 1
        self.n_falling += self.newest is not None and time < self.newest
        self.newest = time

    @property
    def has_groups(self) -> bool:
        return self._may_have_groups and self._has_sure_group

    @property
    def classes(self) -> dict[Any, int]:
        """The values and how often they came, the most frequent first; empty if they are too many."""
        return {} if self.values is None else {v: n for (v, _), n in self.values.most_common()}

    @property
    def is_of_digits(self) -> bool:
        """Whether its texts are mostly digits, so that they may be numbers or times in another notation."""
        return "digits" in self.remark or (self.has_commas and self.n_present > 0)

    def tells_time(self, n_records: int) -> bool:
        """Whether it is the time at which records came: all have it, and it rises but for one step in twenty."""
        return self.kind == TIME and self._n_times == n_records and 20 * self.n_falling <= n_records


class Table:
    """What is known of a table's fields, by name."""

    def __init__(self) -> None:
        self.n_records = 0
        self.fields: dict[Hashable, Field] = {}
        self.labels = Field()  # of events, which have them beside their features
        self._records = Records()

    def note(self, record: Mapping[Hashable, Any], label: Any = None) -> None:
        """Take note of a record, and of the label beside it."""
        self.labels.note(label)
        self._records.learn_one(record)
        for name, v in flat(record).items():
            self.fields.setdefault(name, Field()).note(v)
        self.n_records += 1

    def judged(self) -> dict[str, Field]:
        """The fields, with the kinds that `Records` gives them."""
        for found in self._records.summary():
            field = self.fields[found.name]
            field.kind, field.remark = found.kind, found.remark
            if field.has_groups:
                field.kind, field.remark = NUMBER, ""
            elif found.n_unfit:
                field.remark = ", ".join(filter(None, [found.remark, f"{found.n_unfit} values are of another kind"]))
        return {str(name): field for name, field in self.fields.items()}
