"""Windows: which members are too old, and how they leave between two examples.

A member whose `born` is `span` or more behind the newest example leaves.  Members that will soon be as old leave with
it.  Compiled code calls `forget_old` between two examples of a block, so a window does not cut blocks.

They are forgotten as by `forget`, but within one compiled call: if so many steps are not enough, the next example goes
on.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
born     number of the example, or its time in microseconds; a merged (N,) int64
         member has that of its oldest part
clock    the span; the largest number or time so far; the number or   (3,) int64
         time from which on a member may be too old
======== ============================================================ ================
"""

import datetime
from typing import Any

import numpy as np

from streamsvm.batch.working_set.members import AT_ONCE
from streamsvm.core.compiling._jit import compiled, compiled_for, inner, shared
from streamsvm.core.expansion import G_DOWN, G_UP, SLOTS, Expansion
from streamsvm.core.saving.snapshot import LARGEST_COUNT
from streamsvm.core.storage import live_slots, owned
from streamsvm.online import gap, lasvm
from streamsvm.online.arrival import DUE, LATEST, SPAN, forget_old
from streamsvm.online.finish import note, solve_active
from streamsvm.online.removal.forget import AGED, HANDED_BACK, TOO_MANY, forget_here, note_steps, take_out

EARLY = 50  # a fiftieth of a window is forgotten early, so that many members leave at once
MICROSECOND = datetime.timedelta(microseconds=1)
FAR = LARGEST_COUNT  # from any number or time


def _number(place: int) -> Any:
    """An attribute that is a number of the clock."""
    return property(lambda self: int(self.clock[place]), lambda self, number: self.clock.__setitem__(place, number))


class Window:
    """The age at which members leave, and the time from which on one may have it.

    Parameters
    ----------
    window
        The age: a number of examples, or a time span.

    Attributes
    ----------
    by_time
        Whether examples need a time.
    clock
        The three numbers below, which compiled code reads and sets.
    span
        The window, as a count or in microseconds.
    latest
        The largest number or time so far.
    due
        The number or time from which on a member may be too old.
    """

    def __init__(self, window: int | datetime.timedelta) -> None:
        self.by_time = isinstance(window, datetime.timedelta)
        span = min(window // MICROSECOND if isinstance(window, datetime.timedelta) else int(window), FAR // 4)
        self.clock = np.array([span, -FAR, -FAR])

    def __setstate__(self, state: dict) -> None:
        """Copy the clock if it is mapped from a read-only file."""
        self.__dict__.update({name: owned(value) for name, value in state.items()})

    span: int = _number(SPAN)
    latest: int = _number(LATEST)
    due: int = _number(DUE)

    def now(self, born: np.ndarray) -> np.ndarray:
        """Return the largest number or time up to each of these examples."""
        return np.maximum(np.maximum.accumulate(born), self.latest)

    def passed(self, oldest: int, latest: int) -> None:
        """Note the oldest and the latest of the examples that were learned."""
        span, before, due = self.clock.tolist()
        self.clock[:] = span, max(before, latest), min(due, oldest + span)

    def look(self, s: Expansion) -> None:
        """Note the time from which on a member may be too old again."""
        self.due = int(s.born[live_slots(s)].min(initial=FAR)) + self.span


@inner
def _oldest(s):
    """The `born` of the oldest member; `FAR` if there is none."""
    oldest = FAR
    for t in range(s.counts[SLOTS]):
        if s.y[t] != 0 and s.born[t] < oldest:
            oldest = s.born[t]
    return oldest


@shared
def _forget_old(s, kernel, biased, tol, clock, now):
    """Forget the members that are too old, and those that will be soon, if there is one; note when the next may be."""
    n, edge = s.counts[SLOTS], now - clock[SPAN]
    if _oldest(s) <= edge:
        leaving = np.flatnonzero((s.y[:n] != 0) & (s.born[:n] <= edge + clock[SPAN] // EARLY))
        how, tol, expected = forget_here(s, kernel, biased, leaving, tol, AGED)
        if how == TOO_MANY:  # for a factor that compiled code makes
            how = HANDED_BACK
            take_out(s, kernel, biased, leaving, True)
        steps, most = 0, max(AT_ONCE, n)
        if not biased:
            steps = gap.optimise_active(s, kernel, tol, most)
        elif s.extremes[G_UP] - s.extremes[G_DOWN] > tol:
            steps = solve_active(s, kernel, tol, most)
            note(s, biased)
        if how == HANDED_BACK:
            note_steps(s, steps, expected)
    clock[DUE] = _oldest(s) + clock[SPAN]


@compiled_for(forget_old, lasvm.Rule)
def _forget_old_with_bias(rule, s, kernel, clock, now):
    _forget_old(s, kernel, True, rule.tau, clock, now)


@compiled_for(forget_old, gap.Rule)
def _forget_old_without_bias(rule, s, kernel, clock, now):
    _forget_old(s, kernel, False, rule.tau, clock, now)


@compiled
def let_old_leave(rule, s, kernel, clock, now):
    """`forget_old`, for Python: where a budget is full, the window comes first."""
    forget_old(rule, s, kernel, clock, now)
