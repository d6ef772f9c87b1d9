"""k-fold estimates of a model, while it learns.

A hash of an example's id decides its fold.  One fold after the other is left out of a copy of the model, and the copy
predicts the remembered examples of that fold.  An estimate tests as many folds as `share` allows, and takes the others'
predictions from the last estimates that tested them.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.saving import snapshot
from streamsvm.validation.streaming.estimates import Estimate, exactly
from streamsvm.validation.streaming.held_out_margins import LeftOut
from streamsvm.validation.streaming.memory import mixed
from streamsvm.validation.streaming.wrapper import StreamingEstimate, Tested

FEWEST_TESTED = 100  # examples that the smallest estimate tests
MOST_FOLDS = 1000  # An estimate goes through all of them.


@fixed_parameters
class StreamingKFold(StreamingEstimate):
    """k-fold estimates of a model, while it learns.

    The wrapper learns and predicts as the model does, and takes its place in a pipeline.

    Parameters
    ----------
    model
        As for `StreamingLOO`.
    k
        Number of folds, at least 2 and at most 1000.
    every, memory, keep
        As for `StreamingLOO`.
    share
        As for `StreamingLOO`.  An estimate leaves out as many folds as this allows, and at least the folds of 100
        examples.  The method `estimate` leaves out all folds.
    seed
        Seed of the hash that deals the examples out, and of the sample.

    Attributes
    ----------
    latest : Estimate or None
        The last estimate.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the model is not an online classifier of streamsvm.

    Notes
    -----
    The copy has lost one support vector in k, and only remembered examples can take their places.  So it is worse than
    the model, and the estimated error is too high.  More memory and a larger k bring it closer.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM
    >>> folds = StreamingKFold(LASVM(), k=5, share=0)
    >>> for x, y in datasets.Bananas().take(1000):
    ...     folds.learn_one(x, y)
    >>> print(folds.estimate())
    error ...%, g-mean ...%, PRBEP ...%; 500 examples tested after 1000 learned
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
        if k > MOST_FOLDS:
            raise ValueError(f"k={k} must be at most {MOST_FOLDS}; StreamingLOO leaves out single examples")
        self.k = k
        self._n_tested = 0  # folds

    def fold_of(self, id: int) -> int:
        """The fold of an example, from 0 to k - 1."""
        return mixed(id, self.seed) % self.k

    @property
    def fold_errors(self) -> dict[int, float]:
        """The error of each fold that was tested: their spread tells how sure the estimate is."""
        wrong: dict[int, list[bool]] = {}
        for number, example in self._memory.tested():
            wrong.setdefault(self.fold_of(number), []).append(example.margin <= 0.0)
        return {fold: float(np.mean(wrong[fold])) for fold in sorted(wrong)}

    def _tested(self, model: LeftOut, allowed: float) -> Tested:
        each = model.cost_of_fold(self.k)
        few = math.ceil(self.k * min(1.0, FEWEST_TESTED / len(model.places)))
        times = max(few, math.floor(min(allowed / each, self.k)))
        model.prepare(times, self.k)
        fold_of = {number: self.fold_of(number) for number in model.ids}
        margins = np.full(len(model.places), np.nan)
        for fold in range(self._n_tested, self._n_tested + times):
            found = model.without([number for number, own in fold_of.items() if own == fold % self.k])
            margins = np.where(np.isnan(found), margins, found)
        self._n_tested += times
        self._memory.note_tests(margins.tolist())
        return Tested(self._over_all_folds(), each * few)

    def _over_all_folds(self) -> Estimate:
        tested = [example for _, example in self._memory.tested()]
        places, margins = np.array([(example.y, example.margin) for example in tested]).reshape(-1, 2).T
        scores = exactly(places.astype(np.int64), margins, not self._is_several)
        return Estimate(self.model.n_seen, len(tested), *scores, n_removed=len(tested), n_undecided=0)

    def _own_state(self) -> dict[str, Any]:
        return {"folds_tested": self._n_tested, "latest": bool(self.latest)}

    def _take_state(self, meta: Mapping[str, Any]) -> None:
        if "folds_tested" not in meta:  # version 0.1.0 stored no decision values of examples: they are made anew
            return
        self._n_tested = snapshot.count(meta, "folds_tested")
        if snapshot.field(meta, "latest", bool) and any(True for _ in self._memory.tested()):
            self.latest = self._over_all_folds()
