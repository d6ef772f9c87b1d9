"""Where the time of a pass of the gap family goes."""

import itertools
import time

import numpy as np
from datasets import Data, Task
from numba import njit
from pieces import _microseconds, _rows, _sums
from shared.clock import cpu_seconds

from gap.fits import new_model
from streamsvm.core import expansion
from streamsvm.core.rows import member_row
from streamsvm.estimators.learner.learning import learn_batch
from streamsvm.estimators.learner.state import batches
from streamsvm.online import arrival, gap_steps

PIECES = ("row of the example", "f = sum alpha K", "rows of members", "second-order partner", "gradient, extremes, gap")


def split(data: Data, task: Task, engine: str, parts: int = 16) -> dict:
    """Where the time of a pass goes: what each piece takes at the sizes the model has had, times how often it ran.

    After each sixteenth of the pass, the pieces are timed by themselves at the size of that moment; but squeezing holes
    out and growing are clocked where they happen.  What is left are copies of rows into the cache, the first touch of
    its memory, CLEAN, and the steps themselves.
    """
    model, n, clock = new_model(task, engine), data.X.shape[0], Clock(arrival.reserve)
    arrival.reserve = clock
    s_min = model._state.rule.ramp_s if model._state.rule.ramp else -np.inf
    pieces, seconds, steps = dict.fromkeys(PIECES, 0.0), 0.0, 0
    for begin, end in itertools.pairwise(np.linspace(0, n, parts + 1).astype(int)):
        values, reprocessed, start = model.kernel_evaluations, model.n_reprocess, time.process_time()
        margins = learn_batch(model._state, data.X[begin:end], data.y[begin:end], None, None) * data.y[begin:end]
        seconds += time.process_time() - start
        processed, reprocessed = int(((margins < 1) & (margins >= s_min)).sum()), model.n_reprocess - reprocessed
        fetched, size = processed + 2 * reprocessed, int(model._state.expansion.counts[expansion.SLOTS])
        missing = max(1, (model.kernel_evaluations - values - (end - begin) * size) // fetched)
        counts = (end - begin, end - begin, fetched, reprocessed, processed + reprocessed)
        for piece, count, took in zip(PIECES, counts, piece_times(model, data.X[begin], missing), strict=True):
            pieces[piece] += count * took / n
        steps += processed + reprocessed
    each, pieces["squeezing and growing"] = 1e6 * seconds / n, 1e6 * clock.seconds / n
    return {"each": each, **pieces, "rest": each - sum(pieces.values()), "slots": size, "steps": steps / n}


class Clock:
    """A function that adds up the CPU seconds it takes."""

    def __init__(self, call) -> None:
        self.call, self.seconds = call, 0.0

    def __call__(self, *arguments):
        start = time.process_time()
        answer = self.call(*arguments)
        self.seconds += time.process_time() - start
        return answer


def piece_times(model, x, missing: int) -> list[float]:
    """Microseconds of each piece, at random members with cached rows: most of those are not in the processor's cache.

    The end of a member's row is completed, by so many `missing` values.
    """
    s, kernel = model._state.expansion, model._state.kernel
    n, evaluations = int(s.counts[expansion.SLOTS]), int(s.counts[expansion.EVALUATIONS])
    _, q = next(batches(model._state, x.reshape(1, -1), learning=False))
    members = np.random.default_rng(0).permutation(np.flatnonzero(s.row_of[:n] >= 0))[:4096]
    took = [
        _microseconds(_rows, s, kernel, q.indices, q.values, q.sq[0], n),
        _microseconds(_sums, s.alpha[:n], s.scratch[:n]),
        *(_microseconds_each(piece, s, kernel, members, missing) for piece in (_completions, _partners, _scans)),
    ]
    s.counts[expansion.EVALUATIONS] = evaluations
    return took


def _microseconds_each(piece, s, kernel, members, missing) -> float:
    """Microseconds for one of the members; the fastest of a few passes over all of them."""
    piece(s, kernel, members[:1], missing)
    return 1e6 * min(cpu_seconds(piece, s, kernel, members, missing) for _ in range(5)) / len(members)


@njit(nogil=True)
def _completions(s, kernel, members, missing):
    n = s.counts[expansion.SLOTS]
    for i in members:
        r = s.row_of[i]
        s.row_length[r] = min(s.row_length[r], max(n - missing, 0))
        member_row(s, kernel, i, -1)


@njit(nogil=True)
def _partners(s, kernel, members, missing):
    n, total = s.counts[expansion.SLOTS], 0
    for i in members:
        row = s.rows[s.row_of[i], :n]
        total += gap_steps.second_order_partner(s.g[:n], s.up[:n], s.down[:n], s.self_k[:n], i, row)
    return total


@njit(nogil=True)
def _scans(s, kernel, members, missing):
    n = s.counts[expansion.SLOTS]
    for i in members:
        gap_steps.scan(s, 0.0, 0.0, s.scratch[:n], s.rows[s.row_of[i], :n])
