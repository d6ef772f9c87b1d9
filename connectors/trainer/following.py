"""Requests to a partition, which come on topics of their own and are followed between two cuts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from ..logs.transport import Record
from ..records.formats.base import BadRecord
from .inputs import Input
from .state.state import State

Request = TypeVar("Request")


class Following:
    """Follows the requests of a partition.

    Parameters
    ----------
    items
        Read the topics of the requests.
    number
        Number of the partition.
    refuse
        Called with a record that is no request, and the reason.
    """

    def __init__(self, items: Sequence[Input], number: int, refuse: Callable[[Record, BadRecord, State], None]) -> None:
        self.items = items
        self._number = number
        self._refuse = refuse
        self._is_current = False  # all records of the time before this process are here

    def begin(self, state: State | None) -> None:
        """Read on from the first request that was not followed."""

    @property
    def is_ready(self) -> bool:
        """Whether records may be consumed: the requests of the time before this process are known."""
        self._is_current = self._is_current or all(item.is_exhausted for item in self.items)
        return self._is_current

    @property
    def is_finished(self) -> bool:
        """Whether every request up to the end was followed."""
        return self.is_empty and all(item.is_at_end for item in self.items)

    @property
    def is_empty(self) -> bool:
        """Whether no record waits here."""
        return not any(item.records for item in self.items)

    def _requests(
        self, records: Iterable[Record], read: Callable[[Record], Request], state: State
    ) -> Iterator[tuple[Record, Request]]:
        """What records ask for; those that are no requests are refused."""
        for record in records:
            try:
                yield record, read(record)
            except BadRecord as error:
                self._refuse(record, error, state)
