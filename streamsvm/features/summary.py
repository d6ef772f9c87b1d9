"""What became of a field: the rows of `Records.summary`."""

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.core.guesses import ERROR_OF_LAST, MEAN, N
from streamsvm.features.field import JUDGED, OWN_VALUES, Field
from streamsvm.features.values import CATEGORY, EPOCHS, ID, IGNORE, KEPT, LIST, TEXT

HEADS = ("field", "kind", "present", "missing", "unfit", "remark")
DIGITS_OF_TEXT = 0.35  # mean share of digits from which texts are rather times or codes


class FieldSummary(NamedTuple):
    """What became of a field.

    Attributes
    ----------
    name
        The field, with a dot before each nested name.
    kind
        Its kind; None while no value was present.
    n_present, n_missing, n_unfit
        How many records had a value of the kind, had none, or had a value of another kind, which counts as missing.
    remark
        Why the kind is what it is, or what to know of the field.
    """

    name: Hashable
    kind: str | None
    n_present: int
    n_missing: int
    n_unfit: int
    remark: str


class Summary(tuple[FieldSummary, ...]):
    """The fields in the order in which they came; printed, a table."""

    __slots__ = ()

    def __str__(self) -> str:
        """A table with a line for each field."""
        rows = [HEADS, *((str(f.name)[:KEPT], f.kind or "-", *map(str, f[2:5]), f.remark) for f in self)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def summary_of(fields: Sequence[Field], n_seen: int, guesses: np.ndarray) -> Summary:
    """The summary of these fields, after so many records."""
    return Summary(
        FieldSummary(
            *(f.name, f.kind, f.n_present, n_seen - f.began - f.n_present - f.n_unfit, f.n_unfit),
            _remark(f, guesses, n_seen),
        )
        for f in fields
    )


def _has_one_value(f: Field, guesses: np.ndarray) -> bool:
    """Whether a number, a time or a category has had one value only, so that no model can learn from it."""
    if f.kind == CATEGORY:
        return len(f.values) == 1
    row = f.rows.get(f.kind or "")
    return (
        row is not None and f.kind not in (TEXT, LIST) and guesses[row, N] > 1.0 and guesses[row, ERROR_OF_LAST] == 0.0
    )


def _is_of_digits(f: Field, guesses: np.ndarray) -> bool:
    """Whether the values of a category or text hold more digits than letters: its words may miss what they mean."""
    if f.kind == TEXT:
        return TEXT in f.rows and guesses[f.rows[TEXT] + 1, MEAN] > DIGITS_OF_TEXT
    return f.kind == CATEGORY and 2 * sum(map(_has_more_digits, f.values)) > len(f.values) > 1


def _has_more_digits(v: str) -> bool:
    return sum(map(str.isdigit, v)) > sum(map(str.isalpha, v))


def _remark(f: Field, guesses: np.ndarray, n_seen: int) -> str:
    if f.began == n_seen:
        return "given, but no record has had it"
    if f.kind == IGNORE:
        return "left out, as given"
    if f.kind == ID:
        form = "".join(f" ({form})" for form in f.values)
        return f"left out: the first {OWN_VALUES} values all differ{form}"
    if f.kind is None:
        return "left out: no value that can be read" if f.n_unfit else "no value yet"
    remarks = (
        ["given"] if f.is_given else [] if f.is_fixed else [f"judged by {sum(f.votes.values())} of {JUDGED} values"]
    )
    if f.embedding is not None:
        remarks.append(f"embedded by {f.embedding.embedder.name}")
    if _has_one_value(f, guesses):
        remarks.append("one value so far")
    if not f.is_given and _is_of_digits(f, guesses):
        remarks.append("mostly digits: codes, numbers or times?")
    if f.kind == CATEGORY and len(f.values) == OWN_VALUES:
        remarks.append(f"{OWN_VALUES} values have columns of their own, the others share some")
    if f.kind in EPOCHS:
        remarks.append("a time")
    if f.is_rare:
        remarks.append("rare: no columns where it is absent")
    return ", ".join(remarks)
