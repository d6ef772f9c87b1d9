"""Events as rows of features, as their models take them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from streamsvm.estimators.inputs.checks import too_large
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.inputs.raw_rows import from_named
from streamsvm.features import Records

from ..records.formats.base import BadRecord
from ..records.models import Model, Trained
from ..records.predictions import Said, predictions_of, with_verdict

Owner = TypeVar("Owner")

ONE_BY_ONE = 3  # rows that a model takes one by one in less time than as a batch


class RawRows:
    """Raw events, of which `Records` makes rows of numbers when they are used.

    Parameters
    ----------
    xs
        The features of the events.
    """

    def __init__(self, xs: Sequence[Mapping[Any, Any]]) -> None:
        self._xs = xs

    def __len__(self) -> int:
        return len(self._xs)

    def beside(self, others: "RawRows") -> "RawRows":
        """These rows, and then others."""
        return RawRows([*self._xs, *others._xs])

    def observed(self, places: Iterable[int], records: Records | None) -> list[dict[Any, float]]:
        """The numbers of the events at these places; each is made before `records` takes note of its event."""
        assert records is not None  # events are raw
        return [records.transform_learn_one(self._xs[place]) for place in places]

    def numbers(self, places: Sequence[int], records: Records | None) -> NamedRows:
        """The numbers of the events at these places, as they are now."""
        assert records is not None  # events are raw
        return NamedRows.of(records.transform_many([self._xs[place] for place in places]))


Rows = NamedRows | RawRows


def rows_at(rows: NamedRows, places: Sequence[int]) -> NamedRows | list[dict]:
    """The rows at these places, in this order: a batch, or dicts if they are few."""
    return rows.take(places) if len(places) > ONE_BY_ONE else [rows[i] for i in places]


def have_small_numbers(rows: NamedRows) -> bool:
    """Whether no number of these rows is missing, or too large for models that take all others."""
    return not too_large(from_named(rows, np.zeros(len(rows.names), np.int64)).sq)


def unusable_rows(rows: NamedRows | list[dict], model: Model) -> dict[int, BadRecord]:
    """What is wrong with the rows that a model can neither predict nor learn, by their places."""
    if isinstance(rows, NamedRows):
        try:
            model.validate_many(rows)
            return {}
        except ValueError:
            pass  # The rows say one by one which of them are to blame.
    problems = ((i, _problem(x, model)) for i, x in enumerate(rows))
    return {i: problem for i, problem in problems if problem}


def _problem(x: dict, model: Model) -> BadRecord | None:
    try:
        model.validate_one(x)
    except ValueError as error:
        return BadRecord("bad-feature", str(error))
    return None


def predicted(
    trained: Trained, rows: NamedRows, row_of: Mapping[int, int], *, to_be_learned: bool
) -> tuple[dict[int, Said], dict[int, BadRecord]]:
    """What a model says of events by their places, and decides, given their rows; and why it cannot take the others.

    If it cannot take one of them, they are taken one by one: it may have learned since they were looked at.
    """
    try:
        found = predictions_of(trained.model, rows_at(rows, list(row_of.values())), to_be_learned=to_be_learned)
    except ValueError as error:
        if len(row_of) == 1:
            return {}, dict.fromkeys(row_of, BadRecord("bad-feature", str(error)))
    else:
        if trained.decider is not None:
            found = [with_verdict(said, trained.decider) for said in found]
        return dict(zip(row_of, found, strict=True)), {}
    said: dict[int, Said] = {}
    refused: dict[int, BadRecord] = {}
    for place, row in row_of.items():
        one, problem = predicted(trained, rows, {place: row}, to_be_learned=to_be_learned)
        said |= one
        refused |= problem
    return said, refused


def by_owner(owners: Mapping[int, Owner]) -> dict[Owner, list[int]]:
    """Places by owner, each in order, from the owner of each place: an entity, or a committee."""
    if len(set(owners.values())) == 1:  # as most often
        return {next(iter(owners.values())): list(owners)}
    places: dict[Owner, list[int]] = {}
    for place, owner in owners.items():
        places.setdefault(owner, []).append(place)
    return places
