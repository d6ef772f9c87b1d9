"""A classifier around a model that remembers examples, and estimates the model's error on them.

A prequential error rates predictions made before learning, so it is an average over all earlier models.  The estimates
here rate the current model.  They leave training examples out of a copy of it, and test the copy on them.

The copy is solved over the members of the model.  It has no reservoir: after drift, `finish` would bring back examples
of the old concept, and the estimate would be about another model than the one that predicts.

An estimate is due after `every` examples.  It leaves out as much as `share` of the cost of learning these examples
allows, but always a few.  It waits only if even these few would cost more than learning did, as they do if `every` is
small.  `cost` computes these costs from counts.

Both wrappers remember a bounded number of examples.  When examples are left out, remembered examples that are not
members may take their place, as they would have done in a stream without them.  A model that knows only its support
vectors could not do that: with 400 examples in five folds, an error of 10 % would be estimated as 16 %.

An example that has left the model's window is forgotten here too: it is neither predicted nor a stand-in.

To leave an example out means to take it out of the kernel expansion.  Its effect on arrival stays, and so do the
removals of others that it caused; see `OnlineSVM.forget`.
"""

import copy
import datetime
import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from river import base

from streamsvm.core import arguments
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import LARGEST_COUNT, require
from streamsvm.validation.rows import indexable, picked
from streamsvm.validation.streaming import cost
from streamsvm.validation.streaming.estimates import Estimate
from streamsvm.validation.streaming.held_out_margins import LeftOut, of_two
from streamsvm.validation.streaming.memory import Example, Memory


class Tested(NamedTuple):
    """An estimate, and the expected seconds of the fewest removals that would have done."""

    estimate: Estimate
    smallest: float


@dataclass(eq=False, repr=False)
class StreamingEstimate(base.Wrapper, base.MiniBatchClassifier):
    """What `StreamingLOO` and `StreamingKFold` share.

    Attributes
    ----------
    latest : Estimate or None
        The last estimate.
    """

    model: Any
    every: int = 1000
    memory: int = 500
    keep: str = "recent"
    share: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        model, every, share, seed = self.model, self.every, self.share, self.seed
        if not hasattr(getattr(model, "model", model), "leave_out"):
            raise TypeError(
                f"model is {model!r}; it must be an online classifier such as LASVM() or OneVsRest(LASVM()); "
                f"put other steps of a pipeline before the estimate: scaler | {type(self).__name__}(LASVM())"
            )
        if not self._is_several and model.threshold != 0.0:
            raise ValueError(
                f"threshold={model.threshold!r} cannot be estimated: examples that are left out are predicted by the "
                "sign of f(x); leave it at 0"
            )
        arguments.require_count("every", every, 1)
        if not (arguments.is_number(share) and share >= 0):
            raise ValueError(
                f"share={share!r} must be a share of the cost of learning, at least 0; with 0, estimates are made only "
                "when asked for"
            )
        arguments.require_seed(seed)
        self._memory = Memory(self.memory, self.keep, int(seed))
        self.latest: Estimate | None = None
        self._work = 0.0  # expected seconds of learning since the last estimate that was due
        self._smallest = 0.0  # expected seconds of the last estimate, had it been the smallest
        self._n_turns, self._since = 0, 0

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _is_several(self) -> bool:
        """Whether the model may have more than two classes."""
        return hasattr(self.model, "labels")

    @property
    def _labels(self) -> list:
        """The classes by their places."""
        return self.model.labels if self._is_several else [False, True]

    @property
    def _learner(self) -> Any:
        """The model; with several classes, the one that they have the parameters of."""
        return self.model.model if self._is_several else self.model

    @property
    def _n_models(self) -> int:
        """Number of models that learn an example, or nearly."""
        return len(self.model.labels) if self._is_several else 1

    def _place_of(self, y: Any) -> int:
        """The place of a label, or an error."""
        return self._labels.index(y if self._is_several else arguments.label_of(y))

    def __copy__(self) -> Self:
        """A copy that shares neither the model nor the remembered examples."""
        return copy.deepcopy(self)

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Any, w: float = 1.0, id: int | None = None, **others: Any) -> None:
        """Learn and remember an example, and make an estimate if one is due; parameters as for `LASVM.learn_one`."""
        number = self.model.next_id if id is None else id
        self.model.learn_one(x, y, w=w, id=id, **others)
        self.learned([x], [y], [w], [number], others.get("t"))

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, **others: Any) -> None:
        """Learn and remember a batch, and make an estimate if one is due; parameters as for `LASVM.learn_many`."""
        first, n_seen = self.model.next_id, self.model.n_seen
        self.model.learn_many(X, y, w=w, ids=ids, **others)
        n = self.model.n_seen - n_seen
        numbers = range(first, first + n) if ids is None else list(ids)
        weights = np.broadcast_to(1.0 if w is None else w, n).tolist()
        self.learned(X, list(y), weights, numbers, others.get("t"))

    def learned(
        self, X: Any, y: Sequence[Any], w: Sequence[float], ids: Sequence[int], t: Any = None
    ) -> Estimate | None:
        """Remember examples that the model has learned, and make an estimate if one is due.

        Call it if you call the model's own `learn_one` or `learn_many`.

        Parameters
        ----------
        X
            Features by name, for each example, or what else `learn_many` takes.
        y, w, ids
            Labels, weights and ids of the examples.
        t
            Times of the examples: one datetime for all, or one for each.  A model with a `window` of time needs them.

        Returns
        -------
        Estimate or None
            The estimate, if one was made.
        """
        counted, born = [i for i, weight in enumerate(w) if weight > 0.0], self._ages(t, len(ids))
        places = self._memory.of_interest(counted)
        for i, x in zip(places, self._rows_at(X, places), strict=True):
            example = Example(dict(x), self._place_of(y[i]), float(w[i]), int(born[i]))
            self._memory.add(int(ids[i]), example)
        self._expire()
        self._work += cost.of_learning(len(ids), self.model.n_members, self._n_models)
        self._since += len(ids)
        if not self.share or self._since < self.every or not len(self._memory):
            return None
        if self._smallest > max(1.0, self.share) * self._work:
            return None
        estimate = self._estimate(self.share * self._work)
        self._since, self._work = 0, 0.0
        return estimate

    def _rows_at(self, X: Any, places: Sequence[int]) -> Iterable[Mapping]:
        """These rows by feature name, one at a time: of a large batch only a few are kept."""
        if isinstance(X, Sequence):
            return map(X.__getitem__, places)
        X = X if isinstance(X, np.ndarray) else indexable(X)[0]
        rows: Iterable[Mapping] = self.model._features.rows(picked(X, places), learning=True)
        return rows

    def _ages(self, t: Any, n: int) -> np.ndarray:
        """Numbers or times of the last n examples that the model has learned, (n,) int64."""
        if isinstance(getattr(self._learner, "window", None), datetime.timedelta):
            return arguments.times_of(t, n)
        return np.arange(self.model.n_seen - n, self.model.n_seen)

    def _expire(self) -> None:
        """Forget examples that have left the model's window."""
        if self.model.too_old is not None:
            self._memory.expire(self.model.too_old)

    def forget(self, ids: Any) -> int:
        """Make the model and the memory forget examples; see `LASVM.forget`."""
        numbers = arguments.numbers_of(ids)
        n = int(self.model.forget(numbers))
        self.forgotten(numbers.tolist())
        return n

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct labels in the model and in the memory; see `LASVM.relabel`."""
        numbers = arguments.numbers_of(ids, in_order=np.ndim(y) > 0)
        n = int(self.model.relabel(numbers, y))
        self.corrected(numbers.tolist(), np.broadcast_to(y, numbers.shape).tolist())
        return n

    def forgotten(self, ids: Sequence[int]) -> None:
        """Forget examples that the model itself has already forgotten."""
        for number in ids:
            self._memory.drop(int(number))

    def corrected(self, ids: Sequence[int], y: Sequence[Any]) -> None:
        """Correct labels that are already corrected in the model.

        An example of a class that the model has not met is forgotten: the model cannot predict it.
        """
        for number, label in zip(ids, y, strict=True):
            if self._is_several and label not in self.model.labels:
                self._memory.drop(int(number))
            else:
                self._memory.relabel(int(number), self._place_of(label), math.nan if self._is_several else -1.0)

    def estimate(self, seconds: float | None = None) -> Estimate:
        """Estimate the current model now, whether an estimate is due or not.

        Parameters
        ----------
        seconds
            Expected seconds that it may take, computed from counts; at least the smallest estimate is made.  None: no
            limit.

        Raises
        ------
        ValueError
            If no example is remembered.
        """
        self._expire()
        if not len(self._memory):
            raise ValueError(
                "no example is remembered: nothing was learned through this wrapper yet, or everything has left the "
                "model's window; learn some examples first"
            )
        return self._estimate(math.inf if seconds is None else seconds)

    def _estimate(self, allowed: float) -> Estimate:
        begin = time.perf_counter()
        model, prepared = self._remembered()
        tested = self._tested(model, allowed - prepared)
        self._smallest = prepared + tested.smallest
        self._n_turns += 1
        self.latest = tested.estimate._replace(seconds=time.perf_counter() - begin)
        return self.latest

    def _remembered(self) -> tuple[LeftOut, float]:
        """A copy of the model, solved over its members, with the remembered examples; and its expected cost."""
        model, ids = self.model._without_reservoir(), self._memory.ids
        before = model.kernel_evaluations
        model.finish(max(cost.FINISHED, self._learner.tol))
        examples = self._memory.of(ids)
        xs, weights = [example.x for example in examples], np.array([example.w for example in examples])
        labels, places = self._labels, np.array([example.y for example in examples])
        found: Any = model.leave_out(xs, [labels[place] for place in places], weights, ids)
        copied = found if self._is_several else of_two(found, np.array(ids), places)
        return copied, cost.of_copying(len(ids), model.kernel_evaluations - before, self._n_models)

    @abstractmethod
    def _tested(self, model: LeftOut, allowed: float) -> Tested:
        """An estimate whose removals take the allowed seconds, or as few as possible."""

    # ------------------------------------------------------------------------------------------------------ the model's

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The model's answer."""
        return self.model.predict_one(x, **kwargs)

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The model's answer."""
        return self.model.predict_proba_one(x, **kwargs)

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """The model's answer."""
        return self.model.predict_many(X, **kwargs)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """The model's answer."""
        return self.model.predict_proba_many(X, **kwargs)

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_bytes(self) -> bytes:
        """A snapshot of what is remembered; the model is not part of it and has its own."""
        names, arrays = self._memory.to_arrays()
        meta = {
            "parameters": {name: value for name, value in self._get_params().items() if name != "model"},
            "names": names,
            "work": [self._work, self._smallest],
            "turns": [self._n_turns, self._since],
            **self._own_state(),
        }
        return snapshot.pack(type(self).__name__, meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, model: Any) -> Self:
        """The wrapper that `to_bytes` stored.

        Parameters
        ----------
        data
            What `to_bytes` returned.
        model
            The model that was stored at the same time.

        Raises
        ------
        SnapshotError
            If the data are damaged, of another class, or from a newer format.
        """
        meta, arrays = snapshot.unpack(data, cls.__name__)
        with snapshot.reading(cls.__name__):
            estimate = cls(model, **snapshot.field(meta, "parameters", dict))
            estimate._memory.restore(snapshot.field(meta, "names", list), arrays)
            work = snapshot.field(meta, "work", list) if "work" in meta else [0.0, 0.0]  # version 0.1.0 has none
            turns = snapshot.field(meta, "turns", list)
            require(all(type(value) is float and 0.0 <= value < math.inf for value in work), f"work={work}")
            require(all(type(value) is int and 0 <= value <= LARGEST_COUNT for value in turns), f"turns={turns}")
            estimate._work, estimate._smallest = work
            estimate._n_turns, estimate._since = turns[:2]  # version 0.1.0 has a third
            estimate._take_state(meta)
        return estimate

    def _own_state(self) -> dict[str, Any]:
        return {}

    def _take_state(self, meta: Mapping[str, Any]) -> None:
        pass
