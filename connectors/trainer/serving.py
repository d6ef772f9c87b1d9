"""Promotion: which model of a partition serves, as the topic log.control says, or as the comparison does.

A request is followed between two cuts.  The trainer first writes from which records on, then changes the models, then
writes a checkpoint, and only then consumes the next cut.  So no event is predicted by the promoted model before its
place is known.  A trainer that is killed in between finds its own answer, and follows it at that place.
"""

import logging
from collections.abc import Callable, Sequence

from ..logs.transport import Record, Transport
from ..records.formats.base import BadRecord
from ..records.promotions import Begun, Divided, Promotion, Request, Served, read_promotion, write_promotion
from ..runtime.numbers import MAX_INT64
from ..settings.sections import Settings
from .following import Following
from .inputs import Input
from .state.challengers import Challenger, why_not
from .state.state import State

logger = logging.getLogger(__name__)

Place = tuple[int, int]  # offsets of the next event and of the next label
_NOWHERE = (1 << 63, 1 << 63)  # behind every place
_REQUESTS = 1 << 63  # more than there are: what a trainer has noted comes before them, in its order


class Serving(Following):
    """Follows the requests for another model that serves, where an earlier run over the log has followed them.

    Parameters
    ----------
    items, number, refuse
        As for `Following`; the topics are log.control and that of the answers, if there are any.
    settings
        The configuration.
    log
        Takes the answers; an `Excerpt` is read again, and only what was noted is followed.
    catch_up
        Called before another model serves, so that all models are at the same place.
    """

    def __init__(
        self,
        items: Sequence[Input],
        number: int,
        refuse: Callable[[Record, BadRecord, State], None],
        settings: Settings,
        log: Transport,
        catch_up: Callable[[], None],
    ) -> None:
        super().__init__(items, number, refuse)
        self._settings = settings
        self._log = log
        self._catch_up = catch_up
        self._is_past = getattr(log, "is_past", False)  # as an `Excerpt` says
        self._has_read = False  # what comes now, this process has written, or its checkpoint has followed
        self._is_new = False  # there is no checkpoint
        self._waiting: dict[int, Request | Begun | Divided] = {}  # by offset; below 0, what a trainer did by itself
        self._places: dict[int, Place] = {}  # of those that were answered

    def begin(self, state: State | None) -> None:
        """Read on from the first request that was not followed, and all answers."""
        self._is_new = state is None
        first = 0 if state is None else state.challengers.next_request
        for item, offset in zip(self.items, (first, 0), strict=False):
            item.begin(max(offset, item.start))
            if self._is_new and item.wait_for_hidden():  # A checkpoint has followed what its transaction has noted.
                logger.info(
                    "partition %d: waiting until a transaction ends that hides notes on %s", self._number, item.topic
                )

    @property
    def stop(self) -> Place | None:
        """The place before which the next request must be followed; None: there is none."""
        return self._places.get(self._next) if self._next is not None else None

    @property
    def _next(self) -> int | None:
        """The request to follow next: the answered ones by their places, then the others."""
        return min(self._waiting, key=lambda at: (self._places.get(at, _NOWHERE), at), default=None)

    def follow(self, state: State, *, is_repeating: bool) -> bool:
        """Follow what is due at this place; return whether another model serves now.

        A run that repeats its cuts after a restart follows only what it has answered before.
        """
        self._read(state)
        self._has_read = True
        self._note_beginnings(state)
        has_changed = False
        while (at := self._next) is not None:
            place = self._places.get(at)
            if place is None and is_repeating:
                break
            if place is not None and (state.offset < place[0] or state.labels_offset < place[1]):
                break
            has_changed |= self._follow(state, self._waiting.pop(at), at, is_answered=place is not None)
            state.challengers.next_request = max(state.challengers.next_request, at + 1)
        if not (has_changed or is_repeating or self._waiting):
            has_changed = self._serve_better(state)
        if not (is_repeating or any(isinstance(each, Divided) for each in self._waiting.values())):
            has_changed |= self._divide(state)
        return has_changed

    def _read(self, state: State) -> None:
        records = (record for item in self.items for record in item.take(MAX_INT64))
        for record, found in self._requests(records, read_promotion, state):
            if isinstance(found, Request):
                self._waiting.setdefault(record.offset, found)
                continue
            if isinstance(found, Begun | Divided):
                self._wait_for(found, record.offset - _REQUESTS, state)
                continue
            at = record.offset - _REQUESTS if found.request is None else found.request
            was_followed = any(term[:2] == (found.name, found.events) for term in state.challengers.terms)
            if not was_followed if at < 0 else at >= state.challengers.next_request:
                self._waiting[at] = Request(found.name)  # as an earlier run over the log did
                self._places.setdefault(at, (found.events, found.labels))

    def _wait_for(self, note: Begun | Divided, at: int, state: State) -> None:
        """Wait for the place of a note, unless it was passed: then the checkpoint has followed it, if there is one."""
        is_ahead = state.offset < note.events or state.labels_offset < note.labels
        is_open = self._is_new or (state.offset, state.labels_offset) == (note.events, note.labels)
        if is_ahead:
            self._waiting[at] = note
            self._places[at] = (note.events, note.labels)
            if isinstance(note, Begun):
                state.challengers.await_(note.name)
        elif isinstance(note, Divided) and is_open and not self._has_read:
            state.challengers.divide(note.split)  # the last one holds

    def _divide(self, state: State) -> bool:
        """Let the challengers answer the shares of the settings; return whether they are others than before."""
        wanted = state.challengers.wanted_split
        if self._is_past or not self.items or wanted == state.challengers.split:
            return False
        self._answer(Divided(wanted.shares, wanted.by_key, state.offset, state.labels_offset))
        state.challengers.divide(wanted)
        return True

    def _note_beginnings(self, state: State) -> None:
        """Write where challengers begin, so that they begin there again whenever the log is read again."""
        for name in state.challengers.fresh if self.items and not self._is_past else ():
            self._answer(Begun(name, state.offset, state.labels_offset))
        state.challengers.fresh.clear()

    def _answer(self, said: Promotion) -> None:
        self._log.produce(self._settings.log.control_topics[-1], write_promotion(said), partition=self._number)

    def _follow(self, state: State, request: Request | Begun | Divided, at: int, *, is_answered: bool) -> bool:
        if isinstance(request, Request):
            return self._serve(state, request, at, is_answered=is_answered)
        self._catch_up()
        if isinstance(request, Divided):
            state.challengers.divide(request.split)
            return True
        state.challengers.begin_empty(request.name)
        logger.info("partition %d: challenger %r begins at offset %d", self._number, request.name, state.offset)
        return False

    def _serve(self, state: State, request: Request, at: int, *, is_answered: bool) -> bool:
        self._catch_up()
        name, serving = request.name or state.challengers.before, state.challengers.serving
        if name == serving:
            logger.info("partition %d: %r serves already, and goes on", self._number, name)
        elif why := _why_not(state, name):
            logger.error("partition %d: %r cannot serve: it %s", self._number, name, why)
            name = serving
        if not is_answered:  # what changes nothing too, or a later run would follow it after all others
            self._answer(Served(name, at, state.offset, state.labels_offset))
        if name != serving:
            self._change(state, name, at)
        return name != serving

    def _serve_better(self, state: State) -> bool:
        """Let a challenger serve that is better, if the settings want that."""
        metric = self._settings.comparison.promote
        if not metric or not _better(metric, state):
            return False
        self._catch_up()
        better = _better(metric, state)
        if better:
            best = max(better, key=lambda each: each.comparison.gain(metric))
            logger.warning("partition %d: challenger %r is better in %s", self._number, best.name, metric)
            if self.items:
                self._answer(Served(best.name, None, state.offset, state.labels_offset))
            self._change(state, best.name, -1)
        return bool(better)

    def _change(self, state: State, name: str, at: int) -> None:
        logger.info(
            "partition %d: %r serves from offset %d on, in the place of %r",
            *(self._number, name, state.offset, state.challengers.serving),
        )
        state.serve(name, self._settings, max(at, -1))


def _better(metric: str, state: State) -> list[Challenger]:
    """The challengers that are better in a metric, by the labels that they have followed so far."""
    return [each for each in state.challengers.active if each.comparison.is_better(metric)]


def _why_not(state: State, name: str) -> str:
    """Why a model cannot serve; empty if it can."""
    found = {each.name: each for each in state.challengers.all if not each.is_awaited}.get(name)
    return "is not in the shadow" if found is None else why_not(found, state.offset)
