"""The requests to forget that come to a partition: they are followed between two cuts, each one exactly once.

A checkpoint has the offset of the next request beside the models, and it is written before the next cut.  So a trainer
that is killed has either followed a request, or follows it after its restart, at the same place of its stream.
"""

import logging
import time

from ..logs.transport import Record
from ..records.erasures import Erasure, Swap, read_request
from .following import Following
from .state.state import State

logger = logging.getLogger(__name__)


class Erasing(Following):
    """Follows the requests to forget: no model must learn what was erased before it began.

    Attributes
    ----------
    swap : Swap or None
        The rebuilt state that has to take the place of this one before anything else happens.
    """

    swap: Swap | None = None

    def begin(self, state: State | None) -> None:
        (item,) = self.items
        item.begin(item.start if state is None else state.erased.offset)

    @property
    def is_finished(self) -> bool:
        return super().is_finished and self.swap is None

    def follow(self, state: State) -> bool:
        """Follow the requests that are here, up to a swap; return whether the state has changed."""
        (item,) = self.items
        begun = state.erased.offset
        while item.records and self.swap is None:
            taken = item.take(item.records[0].offset + 1)
            for record, request in self._requests(taken, read_request, state):
                if isinstance(request, Swap):
                    self.swap = request
                else:
                    self._erase(record, request, state)
            if self.swap is None:
                state.erased.offset = taken[-1].offset + 1
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
