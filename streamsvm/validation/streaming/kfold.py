"""k-fold estimates of a model, while it learns.

A hash of an example's id decides its fold.  One fold after the other is left out of a copy of the model, and the copy
predicts the remembered examples of that fold.
"""

import math
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.core import arguments, snapshot
from streamsvm.core.snapshot import require
from streamsvm.metrics import prbep_score
from streamsvm.validation.scores import g_mean
from streamsvm.validation.streaming.estimates import FoldEstimate, Interval
from streamsvm.validation.streaming.memory import mixed
from streamsvm.validation.streaming.wrapper import StreamingEstimate


class Scored(NamedTuple):
    """A tested example: its label, its decision value without its fold, and its age."""

    y: bool
    f: float
    born: int


class StreamingKFold(StreamingEstimate):
    """k-fold estimates of a model, while it learns.

    The wrapper learns and predicts as the model does, and takes its place in a pipeline.  Each estimate leaves one fold
    out of a copy of the model, and combines the predictions of the last k folds.

    Parameters
    ----------
    model
        An online classifier of streamsvm.  Scalers and other steps of a pipeline go before the wrapper.
    k
        Number of folds, at least 2.
    every, memory, keep, share
        As for `StreamingLOO`; `memory` is divided among the folds.
    seed
        Seed of the hash that deals the examples out, and of the sample.

    Attributes
    ----------
    latest : FoldEstimate or None
        The last estimate.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the model is not an online classifier of streamsvm.

    Notes
    -----
    The copy has lost one support vector in k, and only remembered examples can take their places.  So it is worse than
    the model, and the estimate is too high.  More memory and a larger k make it better.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM, WarmupScaler
    >>> folds = StreamingKFold(LASVM(C=10, gamma=1.0), k=5, share=0)
    >>> model = WarmupScaler() | folds
    >>> for x, y in datasets.Bananas().take(1000):
    ...     model.learn_one(x, y)
    >>> estimates = [folds.estimate() for _ in range(5)]
    >>> estimates[-1].n, 0.05 < estimates[-1].error.value < 0.15
    (500, True)
    """

    def __init__(
        self,
        model: Any,
        k: int = 10,
        every: int = 1000,
        memory: int = 500,
        keep: str = "recent",
        share: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(model, every, memory, keep, share, seed)
        arguments.require_count("k", k, 2)
        self.k = k
        self.latest: FoldEstimate | None = None
        self._scored: deque[dict[int, Scored]] = deque(maxlen=k)  # by id, for each of the last turns

    def fold_of(self, id: int) -> int:
        """The fold of an example, from 0 to k - 1."""
        return mixed(id, self.seed) % self.k

    def estimate(self) -> FoldEstimate:
        """Leave out the next fold, and estimate from this one and the k - 1 folds before it.

        Raises
        ------
        ValueError
            If no example is remembered.
        """
        self._require_memory()
        estimate: FoldEstimate = self._estimate(None, None)
        return estimate

    def _made(self, removals: int | None, seconds: float | None, begin: float) -> tuple[FoldEstimate, float]:
        fold = self._n_turns % self.k
        model, slots, positive = self._remembered()
        left_out = np.flatnonzero([self.fold_of(number) == fold for number in model.ids.tolist()])
        model.prepare(1, int(np.count_nonzero(model.alpha[left_out])))
        f = model.without(left_out)
        tested = np.isin(slots, left_out)
        of_slot = dict(zip(left_out.tolist(), f.tolist(), strict=True))
        ids = [number for number, is_tested in zip(self._memory.ids, tested.tolist(), strict=True) if is_tested]
        born = [example.born for example in self._memory.of(ids)]
        values = [of_slot[slot] for slot in slots[tested].tolist()]
        found = map(Scored, positive[tested].tolist(), values, born)
        self._scored.append(dict(zip(ids, found, strict=True)))
        seconds = time.perf_counter() - begin
        self.latest = self._over_all_folds(seconds)
        return self.latest, seconds

    def _expire(self) -> None:
        super()._expire()
        if self.model.too_old is not None:
            for turn in self._scored:
                for number in [number for number, scored in turn.items() if scored.born <= self.model.too_old]:
                    del turn[number]

    def forgotten(self, ids: Sequence[int]) -> None:
        super().forgotten(ids)
        for turn in self._scored:
            for number in ids:
                turn.pop(int(number), None)

    def corrected(self, ids: Sequence[int], y: Sequence[Any]) -> None:
        super().corrected(ids, y)
        for turn in self._scored:
            for number, label in zip(map(int, ids), y, strict=True):
                if number in turn:
                    turn[number] = turn[number]._replace(y=arguments.label_of(label))

    def _over_all_folds(self, seconds: float) -> FoldEstimate:
        scored = [found for turn in self._scored for found in turn.values()]
        y = np.array([found.y for found in scored], bool)
        f = np.array([found.f for found in scored])
        errors = [np.mean([found.y != (found.f > 0.0) for found in turn.values()]) for turn in self._scored if turn]
        return FoldEstimate(
            n_seen=self.model.n_seen,
            n=len(y),
            error=_exactly(float(np.mean(y != (f > 0.0))) if len(y) else math.nan),
            g_mean=_exactly(g_mean(y, f > 0.0) if len(y) else math.nan),
            prbep=_exactly(prbep_score(y, f) if len(y) else math.nan),
            seconds=seconds,
            fold_errors=np.array(errors),
        )

    def _own_state(self) -> dict[str, Any]:
        turns = [[[number, *found] for number, found in turn.items()] for turn in self._scored]
        return {"turns_scored": turns, "latest": bool(self.latest)}

    def _take_state(self, meta: Mapping[str, Any]) -> None:
        if "turns_scored" not in meta:  # version 0.1.0 stored them without the ids: they are made anew
            return
        for turn in snapshot.field(meta, "turns_scored", list):
            self._scored.append({number: _scored(*found) for number, *found in turn})
        if snapshot.field(meta, "latest", bool) and self._scored:
            self.latest = self._over_all_folds(0.0)


def _exactly(value: float) -> Interval:
    """The interval of a value that was computed completely."""
    return Interval(value, value, value)


def _scored(y: Any, f: Any, born: Any) -> Scored:
    """An entry of a snapshot, checked."""
    require(type(y) is bool, f"the label {y!r} is neither true nor false")
    require(type(f) is float and math.isfinite(f), f"the decision value {f!r} is not finite")
    require(type(born) is int, f"the age {born!r} is not an integer")
    return Scored(y, f, born)
