"""The requests to forget that come to a partition: they are followed between two cuts, each one exactly once.

A checkpoint has the offset of the next request beside the models, and it is written before the next cut.  So a trainer
that is killed has either followed a request, or follows it after its restart, at the same place of its stream.
"""

import logging
import time
from collections.abc import Callable

from ..logs.transport import Record
from ..records.erasures import Erasure, Swap, read_request
from ..records.formats.base import BadRecord
from .inputs import Input
from .state.state import State

logger = logging.getLogger(__name__)


class Erasing:
    """Follows the requests of a partition.

    Parameters
    ----------
    item
        Reads them.
    number
        Number of the partition.
    refuse
        Called with a record that is no request, and the reason.

    Attributes
    ----------
    swap : Swap or None
        The rebuilt state that has to take the place of this one before anything else happens.
    """

    def __init__(self, item: Input, number: int, refuse: Callable[[Record, BadRecord, State], None]) -> None:
        self.item = item
        self._number = number
        self._refuse = refuse
        self.swap: Swap | None = None
        self._is_current = False  # all requests of the time before this process are here

    def begin(self, state: State | None) -> None:
        """Read on from the first request that was not followed."""
        first = 0 if state is None else state.erased.offset
        self.item.begin(max(first, self.item.start) if state is None else first)

    @property
    def is_ready(self) -> bool:
        """Whether records may be consumed: a model must not learn what was erased before it began."""
        self._is_current = self._is_current or self.item.is_exhausted
        return self._is_current

    @property
    def is_finished(self) -> bool:
        """Whether every request up to the end was followed."""
        return self.item.is_at_end and not self.item.records and self.swap is None

    def follow(self, state: State) -> bool:
        """Follow the requests that are here, up to a swap; return whether the state has changed."""
        begun = state.erased.offset
        while self.item.records and self.swap is None:
            [record] = self.item.take(self.item.records[0].offset + 1)
            try:
                request = read_request(record)
            except BadRecord as error:
                self._refuse(record, error, state)
                request = None
            if isinstance(request, Swap):
                self.swap = request
                break
            if request is not None:
                self._erase(record, request, state)
            state.erased.offset = record.offset + 1
        return state.erased.offset > begun

    def swapped(self, state: State) -> None:
        """Note that the swap is done, or given up."""
        self.swap = None
        state.erased.offset += 1

    def _erase(self, record: Record, request: Erasure, state: State) -> None:
        started = time.process_time()
        n_forgotten = erase(state, request)
        logger.info(
            "partition %d: %d events and %d labels are erased by request %d: models forgot %d members, in %.1f ms",
            self._number,
            len(request.events),
            len(request.labels),
            record.offset,
            n_forgotten,
            1000 * (time.process_time() - started),
        )


def erase(state: State, erasure: Erasure) -> int:
    """Forget records everywhere in a state; return how many examples of models that were.

    The models, the estimates, the events and labels that wait, and the candidates for questions forget them.  The
    scale, the calibration, the counts and the running error keep their traces.
    """
    state.erased.events.update(at for at in erasure.events if at >= state.offset)
    state.erased.labels.update(at for at in erasure.labels if at >= state.labels_offset)
    n_forgotten = sum(state.models.drop(key) for key in erasure.models)
    for key, numbers in erasure.examples.items():
        state.join.erase(numbers)
        if state.labelling is not None:
            state.labelling.erase(numbers)
        n_forgotten += state.challengers.erase(numbers)
        if not state.models.has(key):
            continue
        state.models.to_learn(key)  # notes that the model changes
        n_forgotten += state.models.trained(key).learner.forget(list(numbers))
        if state.estimates is not None:
            state.estimates.forgotten(list(numbers))
    state.counters.erased += 1
    return n_forgotten
