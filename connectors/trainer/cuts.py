"""Cuts: which records are consumed together.

A cut has at most `batch` records: those with the earliest timestamps of both topics, events before labels of the same
time.  They are processed in this order, one after another, so the model does not depend on where a cut ends.  A cut
ends sooner with the record that reaches 4 MB, because a decoded record takes many times its bytes.  Records without a
timestamp come first, in the order of their offsets.

While the log is known to have more records, a cut is always full, so the cuts are a function of the log.  When the
partition has caught up, the records at hand make a cut at once, and the journal remembers it.
"""

from collections import deque
from collections.abc import Iterable, Sequence

from ..runtime.numbers import MAX_INT64
from . import inputs
from .inputs import Input
from .state.journal import Cut, Journal, Kind


class Cuts:
    """Makes the cuts of a partition; each is in the journal before it is consumed.

    Parameters
    ----------
    queues
        Of events, and of labels if they have a topic of their own.
    batch
        The most records that a cut has.
    again
        Cuts that were taken before a restart, and are taken again first.
    suspect
        The cut after these if it has killed the process: its records are taken one by one.
    """

    def __init__(
        self, queues: Sequence[Input], batch: int, again: Iterable[Cut] = (), suspect: Cut | None = None
    ) -> None:
        self._queues = queues
        self._batch = batch
        self._again = deque(again)
        self._suspect = suspect

    @property
    def again(self) -> list[Cut]:
        """The cuts that still have to be taken again."""
        return list(self._again)

    def next(self, offsets: tuple[int, int], journal: Journal, stop: tuple[int, int] | None = None) -> Cut | None:
        """The next cut, which is in the journal by then; None if its records have to be polled first.

        Parameters
        ----------
        offsets
            Offsets of the next event and of the next label.
        journal
            Where the cut is written down.
        stop
            Offsets of an event and of a label that the cut must not have; None: it may have any.
        """
        if self._again:
            return self._repeated(journal)
        counts = self._earliest(1 if self._suspect else self._batch, stop or (MAX_INT64, MAX_INT64))
        if not any(counts):
            return None
        ends = [*offsets]
        for i, (item, n) in enumerate(zip(self._queues, counts, strict=False)):
            ends[i] = item.records[n - 1].offset + 1 if n else ends[i]
        cut = Cut(Kind.ONE if self._suspect else Kind.CUT, *ends)
        journal.append(cut)
        if self._suspect and cut.events >= self._suspect.events and cut.labels >= self._suspect.labels:
            self._suspect = None
        return cut

    def _repeated(self, journal: Journal) -> Cut | None:
        cut = self._again[0]
        if not all(item.reach(end) for item, end in zip(self._queues, cut.ends, strict=False)):
            return None  # the batch of the run before may have been larger
        self._again.popleft()
        if not self._again:
            journal.retry()
        return cut

    def _earliest(self, limit: int, stop: tuple[int, int]) -> tuple[int, int]:
        """How many events and labels have the earliest timestamps; 0, 0 if the log may have an earlier one."""
        heads = [item.heads(limit, before) for item, before in zip(self._queues, stop, strict=False)]
        (events, has_events), (labels, has_labels) = (*heads, ([], True))[:2]
        n_events = n_labels = n_bytes = 0
        while n_events + n_labels < limit and n_bytes < inputs.CUT_BYTES:
            has_event, has_label = n_events < len(events), n_labels < len(labels)
            if not (has_event or has_events) or not (has_label or has_labels):
                return 0, 0
            if not has_event and not has_label:
                break
            if not has_label or (has_event and events[n_events][0] <= labels[n_labels][0]):
                n_bytes += events[n_events][1]
                n_events += 1
            else:
                n_bytes += labels[n_labels][1]
                n_labels += 1
        return n_events, n_labels
