"""A classifier around a model that remembers examples, and finds the time for estimates.

A prequential error rates predictions made before learning, so it is an average over all earlier models.  The estimates
here rate the current model.  They leave training examples out of a finished copy of it, and test the copy on them.

Both wrappers remember a bounded number of examples, and spend at most a share of the learning time.

Remembered examples that are not members may take the place of those that are left out, as they would have done without
them.  A model that keeps only its support vectors would miss them: with 400 examples in five folds, an error of 10 %
would be estimated as 16 %.

An example that has left the model's window is forgotten here too: it is neither predicted nor a stand-in.

To leave an example out means to take it out of the kernel expansion.  Its effect on arrival stays, and so do the
removals of others that it caused; see `OnlineSVM.forget`.
"""

import copy
import datetime
import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from river import base
from river.utils import dataframe

from streamsvm.core import arguments, snapshot
from streamsvm.core.snapshot import LARGEST_COUNT, require
from streamsvm.online.leave_out import LeaveOut
from streamsvm.validation.streaming.memory import Example, Memory

FEW = 20  # The first estimate makes as many removals; with fewer, an estimate is not worth its time.


class StreamingEstimate(base.Wrapper, base.MiniBatchClassifier):
    """What `StreamingLOO` and `StreamingKFold` share.

    Attributes
    ----------
    latest : LOOEstimate, FoldEstimate or None
        The last estimate.
    """

    latest: Any

    def __init__(self, model: Any, every: int, memory: int, keep: str, share: float, seed: int) -> None:
        if not hasattr(model, "leave_out"):
            raise TypeError(
                f"model={model!r} must be an online classifier of streamsvm, such as LASVM(); put other steps of a "
                f"pipeline before the estimate: scaler | {type(self).__name__}(LASVM())"
            )
        if model.threshold != 0.0:
            raise ValueError(
                f"threshold={model.threshold!r} cannot be estimated: examples that are left out are predicted by the "
                "sign of f(x); leave it at 0"
            )
        arguments.require_count("every", every, 1)
        if not (arguments.is_number(share) and share >= 0):
            raise ValueError(
                f"share={share!r} must be a share of the learning time, at least 0; 0 makes estimates only when asked"
            )
        self.model = model
        self.every = every
        self.memory = memory
        self.keep = keep
        self.share = share
        self.seed = seed
        arguments.require_seed(seed)
        self._memory = Memory(memory, keep, int(seed))
        self._learning, self._spent, self._expected = 0.0, 0.0, 0.0  # seconds
        self._members = 0  # of the model when an estimate took as long as expected
        self._n_turns, self._since = 0, 0

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()

    def __copy__(self) -> Self:
        """A copy that shares neither the model nor the remembered examples."""
        return copy.deepcopy(self)

    @property
    def seconds(self) -> tuple[float, float]:
        """Seconds spent so far on learning and on estimates."""
        return self._learning, self._spent

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Any, w: float = 1.0, id: int | None = None, **others: Any) -> None:
        """Learn and remember an example, and make an estimate if it is time; parameters as for `LASVM.learn_one`."""
        number, begin = self.model.next_id if id is None else id, time.perf_counter()
        self.model.learn_one(x, y, w=w, id=id, **others)
        seconds = time.perf_counter() - begin
        self.learned([x], [y], [w], [number], seconds, others.get("t"))

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, **others: Any) -> None:
        """Learn and remember a batch, and make an estimate if it is time; parameters as for `LASVM.learn_many`."""
        begin, first, n_seen = time.perf_counter(), self.model.next_id, self.model.n_seen
        self.model.learn_many(X, y, w=w, ids=ids, **others)
        seconds, n = time.perf_counter() - begin, self.model.n_seen - n_seen
        numbers = range(first, first + n) if ids is None else list(ids)
        weights = np.broadcast_to(1.0 if w is None else w, n).tolist()
        self.learned(_Rows(X), list(y), weights, numbers, seconds, others.get("t"))

    def learned(
        self,
        X: Sequence[Mapping],
        y: Sequence[Any],
        w: Sequence[float],
        ids: Sequence[int],
        seconds: float,
        t: Any = None,
    ) -> Any:
        """Remember examples that the model has learned, and make an estimate if it is time.

        Call it if you call the model's own `learn_one` or `learn_many`.

        Parameters
        ----------
        X
            Features by name, for each example.
        y, w, ids
            Labels, weights and ids of the examples.
        seconds
            Time that learning them took; estimates may take a share of it.
        t
            Times of the examples: one datetime for all, or one for each.  A model with a `window` of time needs them.

        Returns
        -------
        LOOEstimate, FoldEstimate or None
            The estimate, if one was made.
        """
        heeded, born = [i for i, weight in enumerate(w) if weight > 0.0], self._ages(t, len(ids))
        for i in self._memory.of_interest(heeded):
            example = Example(dict(X[i]), arguments.label_of(y[i]), float(w[i]), int(born[i]))
            self._memory.add(int(ids[i]), example)
        self._expire()
        self._learning += seconds
        self._since += len(ids)
        if self._since < self.every or not len(self._memory):
            return None
        allowance = self.share * self._learning - self._spent
        if allowance <= self._expected * max(1.0, self.model.n_members / max(1, self._members)) ** 2:
            return None
        return self._estimate(None, allowance) if self._n_turns else self._estimate(FEW, None)

    def _ages(self, t: Any, n: int) -> np.ndarray:
        """Numbers or times of the last n examples that the model has learned, (n,) int64."""
        if isinstance(self.model.window, datetime.timedelta):
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
        numbers = arguments.numbers_of(ids)
        n = int(self.model.relabel(numbers, y))
        self.corrected(numbers.tolist(), np.broadcast_to(y, numbers.shape).tolist())
        return n

    def forgotten(self, ids: Sequence[int]) -> None:
        """Forget examples that the model itself has already forgotten."""
        for number in ids:
            self._memory.drop(int(number))

    def corrected(self, ids: Sequence[int], y: Sequence[Any]) -> None:
        """Correct labels that are already corrected in the model."""
        for number, label in zip(ids, y, strict=True):
            self._memory.relabel(int(number), arguments.label_of(label))

    def _require_memory(self) -> None:
        self._expire()
        if not len(self._memory):
            raise ValueError(
                "no example is remembered: nothing was learned through this wrapper yet, or everything has left the "
                "model's window; learn some examples first"
            )

    def _remembered(self) -> tuple[LeaveOut, np.ndarray, np.ndarray]:
        """A finished copy of the model with the remembered examples added, their slots, and their labels."""
        model, ids = copy.copy(self.model), self._memory.ids
        model.finish()
        examples = self._memory.of(ids)
        positive = np.array([example.y for example in examples], bool)
        weights = np.array([example.w for example in examples])
        copied, slots = model.leave_out([example.x for example in examples], positive, weights, ids)
        return copied, slots, positive

    def _estimate(self, removals: int | None, seconds: float | None) -> Any:
        begin = time.perf_counter()
        self._since = 0
        estimate, self._expected = self._made(removals, seconds, begin)
        self._members = self.model.n_members
        self._n_turns += 1
        self._spent += time.perf_counter() - begin
        return estimate

    @abstractmethod
    def _made(self, removals: int | None, seconds: float | None, begin: float) -> tuple[Any, float]:
        """The estimate, and the seconds that a useful one takes."""

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
            "seconds": [self._learning, self._spent, self._expected],
            "turns": [self._n_turns, self._since, self._members],
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
            seconds, turns = snapshot.field(meta, "seconds", list), snapshot.field(meta, "turns", list)
            require(all(type(value) is float and 0.0 <= value < math.inf for value in seconds), f"seconds={seconds}")
            require(all(type(value) is int and 0 <= value <= LARGEST_COUNT for value in turns), f"turns={turns}")
            estimate._learning, estimate._spent, estimate._expected = seconds
            estimate._n_turns, estimate._since, estimate._members = turns
            estimate._take_state(meta)
        return estimate

    def _own_state(self) -> dict[str, Any]:
        return {}

    def _take_state(self, meta: Mapping[str, Any]) -> None:
        pass


class _Rows(Sequence):
    """The examples of a batch as features by name.

    They are made on demand, because only a few of a large batch are kept.
    """

    def __init__(self, X: Any) -> None:
        self._names: Sequence[Any] = ()
        if sp.issparse(X):
            X = sp.coo_matrix(X).tocsr()  # Entries of the same cell add up, as in the model.
        elif isinstance(X, np.ndarray):
            self._names = range(X.shape[1])
        elif not isinstance(X, list | tuple):
            frame = dataframe.into_frame(X)
            self._names, X = list(frame.columns), dataframe.to_numpy(frame)
        self._X = X

    def __len__(self) -> int:
        return int(self._X.shape[0]) if hasattr(self._X, "shape") else len(self._X)

    def __getitem__(self, i: Any) -> Any:
        X = self._X
        if sp.issparse(X):
            own = slice(X.indptr[i], X.indptr[i + 1])
            return dict(zip(X.indices[own].tolist(), X.data[own].tolist(), strict=True))
        return dict(zip(self._names, X[i].tolist(), strict=True)) if len(self._names) else X[i]
