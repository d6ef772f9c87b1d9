"""`Records`: raw records to numbers for a model, one at a time, in bounded memory."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from river import base

from streamsvm.core import arguments
from streamsvm.core.blocks import LARGEST_FEATURE
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.guesses import NUMBERS, N, guess, learn_values
from streamsvm.core.inputs import APART
from streamsvm.core.saving import snapshot
from streamsvm.estimators.learner.copies import Content, Saved
from streamsvm.features import saving
from streamsvm.features.embedding import Embedder, embeddings_of
from streamsvm.features.field import JUDGED, LONGEST_TEXT, Field
from streamsvm.features.given import given_kind, require_kinds, unknown_names
from streamsvm.features.nesting import NAMES, flat, order_of, rows_of, wrong_name
from streamsvm.features.notices import LONGEST_NAME, warn_of_fields, warn_of_unfit, warn_of_unknown
from streamsvm.features.numerals import require_thousands, ungrouped
from streamsvm.features.summary import Summary, summary_of
from streamsvm.features.values import (
    CATEGORY,
    EPOCHS,
    ID,
    IGNORE,
    LEFT_OUT,
    LIST,
    NUMBER,
    READERS,
    UNFIT,
)

COUNTED = 64  # records after which it is counted anew which fields are rare
MOST_NUMBERS = 2**16  # columns whose values are guessed if they are missing
SMALLEST, NAN = -LARGEST_FEATURE, math.nan
NO_WORDS: dict[str, str] = {}
# A field's name, the row of its guess if it is known to be a number, or -1, and the columns of a category's values.
Step = tuple[Hashable, int, dict[str, str], Field]


@fixed_parameters
@dataclass(eq=False, repr=False)
class Records(Saved, base.Transformer):
    """Turn raw records into numbers: tables, events and texts as they come.

    It takes dicts, also nested ones, and rows of data frames and of CSV files.  It finds out what each field is and
    gives a model columns: numbers, which a model scales, and columns that stand apart, whose names begin with ``~``.

    - A *number* is its column, also if it is written as a string.  A boolean is 0 or 1.
    - A *category* has a 0/1 column for each of the first 256 values.  All others share 256 columns.  A missing category
      is a value, too.
    - A *time* is the number of days since 1970, and where it stands in the day, the week and the year.
    - A *text* is hashed words and n-grams, its length, and its shares of digits and capitals.
    - A *list* of numbers has a column for each of them.

    A missing number, time or list is guessed: by the running mean of the field or by its last value, whichever has been
    closer so far.  None, NaN, blank strings, absent fields and values of another kind are missing.  A field that fewer
    than half of the records have is *rare*: where it is absent, nothing is guessed, and it has no columns.

    A field's kind is decided by its first 50 values, by the rule in `docs/records.md`, and never changes on its own.

    Parameters
    ----------
    kinds
        The kind of some fields by name: ``"number"``, ``"category"``, ``"time"``, ``"text"``, ``"list"``,
        ``"ignore"``, or ``"epoch_s"``, ``"epoch_ms"``, ``"epoch_us"`` for a time in seconds, milliseconds or
        microseconds since 1970.  Nested fields have dotted names; ``"ignore"`` for an object holds for all fields in
        it.  A warning names the fields that the first 50 records lack.  Default: all kinds are found out.
    indicators
        Whether a number, time, list or text has a further 0/1 column, ``~name?``, that tells that it was missing.
    thousands
        The sign between thousands in numbers that are written as strings, such as ``","`` in ``"1,234.5"``.  A string
        in which it stands elsewhere, such as ``"0,5"``, is no number.  Default: none.
    max_fields
        Largest number of fields.  Further ones are left out, with a warning.
    width
        Number of hashed columns of each text.
    embed
        The embedders of some texts by the names of their fields: ``"wordllama"`` (``pip install 'streamsvm[embed]'``),
        ``"package.module:NAME"``, or an `Embedder`.  Its numbers join the other columns of the text, and stand apart.
        A text that it cannot take counts as missing, with a warning.  Default: texts are not embedded.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range.
    ImportError
        If an embedder cannot be imported.

    Notes
    -----
    Learning looks at features only, never at labels, and transforming changes nothing.  Memory is bounded: for each
    field at most 256 values of at most 64 characters, and five numbers for each column that may be guessed.

    What a record leaves behind cannot be taken back: its part of a running mean, a last value until the next one comes,
    and the values of categories among the first 256 of a field, which also name the model's columns.  Give the kind
    ``"ignore"`` to fields that name people.

    Examples
    --------
    >>> from streamsvm import AutoLASVM
    >>> from streamsvm.features import Records
    >>> model = Records() | AutoLASVM()
    >>> model.learn_one({"age": "39", "job": "clerk", "home": {"zip": None}}, True)
    >>> model["Records"].transform_one({"age": "", "job": "smith"})
    {'age': 39.0, '~job=smith': 1.0}
    """

    kinds: dict[Hashable, str] | None = None
    _: KW_ONLY
    indicators: bool = False
    thousands: str | None = None
    max_fields: int = 1000
    width: int = 4096
    embed: dict[Hashable, str | Embedder] | None = None

    def __post_init__(self) -> None:
        require_kinds(self.kinds)
        require_thousands(self.thousands)
        arguments.require_count("max_fields", self.max_fields, 1)
        arguments.require_count("width", self.width, 1)
        self._embeddings = embeddings_of(self.embed, self.kinds)
        self._n_seen = 0
        self._n_refused = 0  # values of fields beyond the limits
        self._fields: dict[Hashable, Field] = {}
        self._plan: tuple[list[Step], dict[Hashable, tuple[int, Step]]] | None = None
        self._counted: list[tuple[Field, int]] = []  # fields whose numbers the guesses count, with their rows
        self._guesses = np.zeros((16, NUMBERS))
        self._n_numbers = 0  # rows of the guesses in use
        self._no_values = np.zeros(0)  # NaN for each of them

    # --------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: Mapping[Hashable, Any]) -> None:
        """Take note of one record.

        Raises
        ------
        TypeError
            If it is not a dict, or a name in it is neither a string nor a number.
        ValueError
            If two of its fields have one name, as in ``{"a.b": 1, "a": {"b": 2}}``.
        """
        given = flat(x)
        if not given.keys() <= self._fields.keys():
            self._know(given)
        self._learn(given)

    def transform_learn_one(self, x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
        """What `transform_one` gives for a record, of which it then takes note as `learn_one` does, in one pass.

        Examples
        --------
        >>> from streamsvm.features import Records
        >>> records = Records()
        >>> records.transform_learn_one({"age": 39})  # no field is known yet
        {}
        >>> records.transform_learn_one({"age": "40"})
        {'age': 40.0}
        """
        given = flat(x)
        if given.keys() <= self._fields.keys():
            out: dict[Hashable, float] = {}
            self._learn(given, out)
        else:
            out = self.transform_one(given)
            self._know(given)
            self._learn(given)
        return out

    def _learn(self, given: Mapping[Hashable, Any], out: dict[Hashable, float] | None = None) -> None:
        """Take note of a flat record, whose fields are known; write its numbers to `out`, as they are before."""
        self._n_seen += 1
        if self._n_seen == JUDGED and (self.kinds or self._embeddings):
            warn_of_unknown(self._fields, self.kinds or {}, self._embeddings)
        values = self._no_values.copy()
        known: Any = values.data  # half the time of writing into the array
        get = given.get
        guesses, indicators = self._guesses, self.indicators
        later: list[tuple[Field, Any]] = []
        for name, row, words, f in self._steps(given):
            v: Any = get(name)
            kind = type(v)
            if row >= 0:
                try:  # one line, without a call: a fifth of the time of strings
                    number = v if kind is float else float(v) if (kind is str and v) or kind is int else NAN
                except (ValueError, OverflowError):
                    number = NAN
                if SMALLEST < number < LARGEST_FEATURE and (kind is not str or "_" not in v):  # the guesses count it
                    known[row] = number
                    if out is not None:
                        out[name] = number
                    continue
            elif kind is str and v in words:
                f.n_present += 1
                f.counted += 1
                if out is not None:
                    out[words[v]] = 1.0
                continue
            if v is None or (kind is str and not v):
                f.n_blank += name in given
                if out is not None and row >= 0 and not indicators:
                    out[name] = guess(guesses[row])  # half the time of `_write`
                elif out is not None:
                    self._write(f, None, out)
                continue
            numbers = self._learn_value(f, v, out)
            if numbers is not None:
                later.append((f, numbers))
        if later:
            values = self._with_numbers(values, later)
        if len(values):
            learn_values(self._guesses, values)
        if self._n_seen % COUNTED == 0:
            self._note_rare()

    def _steps(self, given: Mapping[Hashable, Any]) -> list[Step]:
        """How to read a flat record: the fields that most records have, and then the rare ones that this one has."""
        usual, rare = self._plan or self._planned()
        return [*usual, *(step for _, step in sorted(rare[name] for name in given if name in rare))] if rare else usual

    def _planned(self) -> tuple[list[Step], dict[Hashable, tuple[int, Step]]]:
        """How to read each field, and rare ones with their places; planned anew after a field or its kind changes."""
        self._count()
        usual, rare, self._counted = [], {}, []
        for place, (name, f) in enumerate(self._fields.items()):
            kind = f.kind if f.is_fixed else None
            row, words = f.rows.get(NUMBER, -1) if kind == NUMBER else -1, f.values if kind == CATEGORY else NO_WORDS
            if row >= 0:
                f.n_others = f.n_present - int(self._guesses[row, N])
                self._counted.append((f, row))
            step = name, row, words, f
            if f.is_rare:
                rare[name] = place, step
            else:
                usual.append(step)
        self._plan = usual, rare
        return self._plan

    def _count(self) -> None:
        """Bring the numbers of values up to date where the guesses count them: a third of the time of each number."""
        for f, row in self._counted:
            f.n_present = f.n_others + int(self._guesses[row, N])

    def _note_rare(self) -> None:
        self._count()
        for f in self._fields.values():
            if f.is_rare != f.is_rare_after(self._n_seen):
                f.is_rare, self._plan = not f.is_rare, None

    def _learn_value(self, f: Field, v: Any, out: dict[Hashable, float] | None) -> Any:
        """Take in a value, and write its columns to `out`, as they are before; return its numbers, or None."""
        value = self._read(f, v)
        if out is not None:
            self._write(f, value, out)
        if not f.is_fixed:
            if f.judge(ungrouped(v, self.thousands)):
                self._plan = None
            value = self._read(f, v)
        if f.kind in (ID, IGNORE):
            value = READERS[CATEGORY](v)
            f.n_present += value is not None
            f.n_blank += value is None
            return None
        if value is None:
            f.n_blank += 1
            return None
        if value is UNFIT:
            f.n_unfit += 1
            if not f.told and (f.is_fixed or f.kind is None):
                f.told = True
                warn_of_unfit(f, v)
            return None
        f.n_present += 1
        numbers = f.take_in(value)
        if f.kind == ID:  # since this value
            self._plan = None
        return numbers

    def _read(self, f: Field, v: Any) -> Any:
        """A value as one of the field's kind: None if it is missing or the field is left out, or `UNFIT`."""
        kind = f.kind
        if v is None:
            return None
        if kind in LEFT_OUT:
            return UNFIT if kind is None and READERS[NUMBER](v) is UNFIT else None
        if kind == NUMBER or kind in EPOCHS:
            v = ungrouped(v, self.thousands)
        value = READERS[kind](v)
        if f.embedding is not None and isinstance(value, str):
            return UNFIT if f.embedding.columns(value[:LONGEST_TEXT]) is None else value
        if kind == LIST and value is not None and value is not UNFIT:
            has_room = f.length == len(value) or (f.length == 0 and self._n_numbers + len(value) <= MOST_NUMBERS)
            return value if has_room else UNFIT
        return value

    def _with_numbers(self, values: np.ndarray, later: list[tuple[Field, Any]]) -> np.ndarray:
        """The values of a record by row, with those of more fields, which get rows if they have none."""
        for f in sorted((f for f, _ in later if f.kind not in f.rows), key=lambda f: order_of(f.name)):
            f.rows[f.kind or ""], self._plan = self._n_numbers, None
            self._n_numbers += f.n_numbers
        if self._n_numbers > len(self._guesses):
            more = np.zeros((self._n_numbers, NUMBERS))
            self._guesses = np.concatenate([self._guesses, more])
        if self._n_numbers > len(values):
            self._no_values = np.full(self._n_numbers, math.nan)
            values = np.concatenate([values, self._no_values[len(values) :]])
        for f, numbers in later:
            row = f.rows[f.kind or ""]
            values[row : row + f.n_numbers] = numbers
        return values

    def _know(self, given: Mapping[Hashable, Any]) -> None:
        """Begin the fields that are new, in an order that does not depend on the record's."""
        new = sorted((name for name in given if name not in self._fields), key=order_of)
        for name in new:
            if type(name) not in NAMES or name != name:
                raise wrong_name(name)
        for name in new:
            if len(self._fields) >= self.max_fields or len(str(name)) > LONGEST_NAME:
                self._n_refused += 1
                if self._n_refused == 1:
                    warn_of_fields(name, self.max_fields)
                continue
            self._fields[name], self._plan = self._begun(name), None

    def _begun(self, name: Hashable) -> Field:
        kind = given_kind(name, self.kinds or {}, self._embeddings)
        return Field(name, kind, self._n_seen, self._embeddings.get(name))

    # ----------------------------------------------------------------------------------------------------- transforming

    def transform_one(self, x: Mapping[Hashable, Any]) -> dict[Hashable, float]:
        """The numbers of one record by the names of their columns; a new dict."""
        given = flat(x)
        get = given.get
        out: dict[Hashable, float] = {}
        for name, row, words, f in self._steps(given):
            v: Any = get(name)
            kind = type(v)
            if row >= 0:
                try:
                    number = v if kind is float else float(v) if (kind is str and v) or kind is int else NAN
                except (ValueError, OverflowError):
                    number = NAN
                if SMALLEST < number < LARGEST_FEATURE and (kind is not str or "_" not in v):
                    out[name] = number
                    continue
            elif kind is str and v in words:
                out[words[v]] = 1.0
                continue
            self._write(f, None if v is None else self._read(f, v), out)
        return out

    def _write(self, f: Field, value: Any, out: dict[Hashable, float]) -> None:
        """Write the columns of a value as `_read` gives it."""
        if f.kind in LEFT_OUT:
            return
        if value is UNFIT:
            value = None
        f.write(value, self._guesses, self.width, out)
        if value is None and self.indicators:
            out[f"{APART}{f.name}?"] = 1.0

    def learn_many(self, X: Any) -> None:
        """Take note of the rows of a data frame, or of a list of dicts, as `learn_one` does of each."""
        for x in rows_of(X):
            self.learn_one(x)

    def transform_many(self, X: Any) -> list[dict[Hashable, float]]:
        """The rows of a data frame, or of a list of dicts, each as `transform_one` turns it into numbers."""
        return [self.transform_one(x) for x in rows_of(X)]

    @property
    def n_fields(self) -> int:
        """Number of fields that are known."""
        return len(self._fields)

    @property
    def n_unfit(self) -> int:
        """Number of values so far that were not of their field's kind."""
        return sum(f.n_unfit for f in self._fields.values())

    def summary(self) -> Summary:
        """What became of each field; `print` shows a table."""
        self._count()
        unknown = [self._begun(name) for name in unknown_names(self._fields, self.kinds or {}, self._embeddings)]
        return summary_of([*self._fields.values(), *unknown], self._n_seen, self._guesses)

    # -------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        names = ("kinds", "indicators", "thousands", "max_fields", "width")
        meta = {name: getattr(self, name) for name in names} | {"n_seen": self._n_seen, "n_refused": self._n_refused}
        kinds: dict[Hashable, Any] | None = self.kinds
        if self._embeddings:  # among the kinds, where versions that know no embedders refuse them
            kinds = (kinds or {}) | {name: own.dumped() for name, own in self._embeddings.items()}
        meta["kinds"] = None if kinds is None else [list(item) for item in kinds.items()]
        self._count()
        meta["fields"] = [saving.dumped(f) for f in self._fields.values()]
        return meta, {"guesses": self._guesses[: self._n_numbers]}

    @classmethod
    def from_bytes(cls, data: bytes, embed: dict[Hashable, str | Embedder] | None = None) -> "Records":
        """Read what `to_bytes` wrote.

        Parameters
        ----------
        data
            The snapshot.
        embed
            The embedders, if the snapshot cannot find them: those that were given as objects, and those of modules
            that are not imported.  Each must have the name and the size of the one that was used before.

        Raises
        ------
        SnapshotError
            If the data are damaged or of another kind, or an embedder is missing or another one.
        """
        return cls._of_snapshot(snapshot.opened(data), embed or {})

    @classmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> "Records":
        kinds, embedders = saving.kinds_of(snapshot.field(meta, "kinds", list, type(None)), *(how or ({},)))
        records = cls(
            kinds,
            embed=embedders,
            indicators=snapshot.field(meta, "indicators", bool),
            thousands=snapshot.field(meta, "thousands", str, type(None)),
            max_fields=snapshot.count(meta, "max_fields"),
            width=snapshot.count(meta, "width"),
        )
        records._n_seen, records._n_refused = snapshot.count(meta, "n_seen"), snapshot.count(meta, "n_refused")
        fields = saving.fields_of(meta, records._embeddings)
        records._fields = {f.name: f for f in fields}
        records._guesses = saving.guesses_of(arrays, fields)
        records._n_numbers = len(records._guesses)
        records._no_values = np.full(records._n_numbers, math.nan)
        snapshot.require(len(records._fields) == len(fields) <= records.max_fields, "too many fields, or one twice")
        return records

    @classmethod
    def load(cls, path: str | Path, embed: dict[Hashable, str | Embedder] | None = None) -> "Records":
        """Read the transformer from a file that `save` wrote; `embed` is that of `from_bytes`."""
        return cls.from_bytes(snapshot.read(path), embed)
