"""How well does the running model do?  Leave-one-out and k-fold estimates, while it learns.

A prequential error, that of predictions made before learning, is one of all the models that there have been.  These
estimates are of the model as it is now, by examples that it was taught, with what they have done to it undone.

`StreamingLOO` predicts each of the remembered examples by the model without it.  What is no support vector is predicted
as it is; bounds tell the fate of many support vectors; the rest are left out one by one (`online.leave_out`), in a
random order, as long as there is time.  For those that no time was left for, an estimate is made from those that were,
and an interval covers what they might have been.

`StreamingKFold` deals the examples out to k folds by a hash of their ids.  One fold after the other is left out of a
copy of the model, which then predicts what is remembered of it.

In both, examples that are remembered and are no members may take the place of those that are left out, as they would
have had these never come.  A model that has kept nothing but its support vectors would miss them: with 400 examples in
five folds, an error of 10 % would be taken for one of 16 %.

Both estimate a finished copy of the model, remember a bounded number of examples, and work in the intervals of
learning for at most a share of its time.

========= ============================================================== ================
symbol    name                                                           shape, dtype
========= ============================================================== ================
f         decision values by the model as it is                          (n,) float64
m         margins y f                                                    (n,) float64
low, high what the margin without the example may be                     (n,) float64
guess     what it probably is: m - r |alpha|                             (n,) float64
r         how much a margin falls per unit of alpha, as measured before  float
U, S      undecided by bounds; those of them that were left out          sets
L         the 200 left out last, by this estimate and those before       set
========= ============================================================== ================

With the guesses as a control variate, the number of errors in U is estimated, class by class, by

    sum_S error + sum_U-S guessed error + |U-S| mean_L (error - guessed error),

the difference estimator of Cochran, "Sampling techniques", section 7.  It is unbiased over the random order if r does
not depend on it: r is that of the estimate before; the first one has its own, and a little bias.  L has outcomes from
before in it, of a model that was hardly another one, because a running model affords few removals for each estimate.

What has left the model's window is forgotten here, too: it is neither predicted nor a stand-in.

"Never seen" means: not in the kernel expansion.  What an example did on its way in, and which others were dropped for
it, stays done; see `OnlineSVM.forget`.
"""

import copy
import datetime
import math
import time
from abc import abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from river import base
from river.utils import dataframe

from streamsvm.core import arguments, snapshot
from streamsvm.core.snapshot import LARGEST_COUNT, require
from streamsvm.metrics import prbep_score
from streamsvm.online.leave_out import RIGHT, UNCHANGED, UNKNOWN, WRONG, LeaveOut
from streamsvm.validation.memory import Example, Memory, mixed
from streamsvm.validation.scores import g_mean

TINY = 1e-12  # a margin that is known to be right, or wrong, and no more
FEW = 20  # removals without which an estimate that nobody asked for is not begun
POOL = 200  # outcomes that tell how good the guesses are

__all__ = ["FoldEstimate", "Interval", "LOOEstimate", "StreamingKFold", "StreamingLOO"]


class Interval(NamedTuple):
    """An estimate, and what it is sure to lie between."""

    value: float
    low: float
    high: float


class LOOEstimate(NamedTuple):
    """Leave-one-out estimates of a model.

    Attributes
    ----------
    n_seen
        Examples that had been learned.
    n
        Examples that were predicted.
    error, g_mean, prbep
        Share of wrong predictions; geometric mean of the recalls of both classes; precision-recall break-even point.
        The intervals cover all that the undecided might be; they are of no width when there are none.  For the
        break-even point, which needs more than signs, those that bounds decided are undecided as well.
    n_unchanged, n_bounded, n_removed, n_undecided
        How many are no support vectors, are decided by bounds, were left out, and are neither.
    seconds
        What it took.
    """

    n_seen: int
    n: int
    error: Interval
    g_mean: Interval
    prbep: Interval
    n_unchanged: int
    n_bounded: int
    n_removed: int
    n_undecided: int
    seconds: float


class FoldEstimate(NamedTuple):
    """Cross-validated estimates of a model, over the last turn of each fold.

    Attributes
    ----------
    n_seen
        Examples that had been learned.
    n
        Predictions that it rests on.
    error, g_mean, prbep
        Of all these predictions together.
    fold_errors
        The errors of the folds, (at most k,), the latest last: their spread tells how sure the estimate is.
    seconds
        What the latest fold took.
    """

    n_seen: int
    n: int
    error: float
    g_mean: float
    prbep: float
    fold_errors: np.ndarray
    seconds: float


class StreamingEstimate(base.Wrapper, base.MiniBatchClassifier):
    """What both estimates share: a classifier around a model that remembers, and finds the time to estimate."""

    def __init__(self, model: Any, every: int, memory: int, keep: str, share: float, seed: int) -> None:
        if not hasattr(model, "leave_out"):
            raise TypeError(
                f"model={model!r} is none of streamsvm's online classifiers; put other steps of a pipeline around the "
                f"estimate: scaler | {type(self).__name__}(LASVM())"
            )
        arguments.require_count("every", every, 1)
        if not (arguments.is_number(share) and share >= 0):
            raise ValueError(f"share={share!r} must be a share of the learning time, at least 0; 0: only when asked")
        self.model = model
        self.every = every
        self.memory = memory
        self.keep = keep
        self.share = share
        self.seed = seed
        arguments.require_seed(seed)
        self._memory = Memory(memory, keep, int(seed))
        self._learning, self._spent, self._expected = 0.0, 0.0, 0.0  # seconds
        self._members = 0  # of the model, when one took as long as expected
        self._n_turns, self._since = 0, 0

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()

    def __copy__(self) -> Self:
        """A copy that shares nothing: neither the model nor what is remembered."""
        return copy.deepcopy(self)

    @property
    def seconds(self) -> tuple[float, float]:
        """Time spent so far on learning and on estimates."""
        return self._learning, self._spent

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Any, w: float = 1.0, id: int | None = None, **others: Any) -> None:
        """Have the model learn an example, remember it, and make an estimate if it is time; see `LASVM.learn_one`."""
        number, begin = self.model.next_id if id is None else id, time.perf_counter()
        self.model.learn_one(x, y, w=w, id=id, **others)
        seconds = time.perf_counter() - begin
        self.learned([x], [y], [w], [number], seconds, others.get("t"))

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, **others: Any) -> None:
        """Have the model learn a batch, remember its examples, and make an estimate if it is time."""
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

        For those who have the model learn by themselves.

        Parameters
        ----------
        X
            Features by name, for each example.
        y, w, ids
            Their labels, weights and ids.
        seconds
            How long it took to learn them, of which estimates may take a share.
        t
            Their times, one datetime for all or one for each, which a model with a `window` of time needs.

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
        """The numbers or times of the examples that the model has learned last, (n,) int64."""
        if isinstance(self.model.window, datetime.timedelta):
            return arguments.times_of(t, n)
        return np.arange(self.model.n_seen - n, self.model.n_seen)

    def _expire(self) -> None:
        """Forget what has left the model's window."""
        if self.model.too_old is not None:
            self._memory.expire(self.model.too_old)

    def forget(self, ids: Any) -> int:
        """Have the model and the memory forget examples; see `LASVM.forget`."""
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
        """Forget examples that the model was made to forget by somebody else."""
        for number in ids:
            self._memory.drop(int(number))

    def corrected(self, ids: Sequence[int], y: Sequence[Any]) -> None:
        """Correct labels that somebody else has corrected in the model."""
        for number, label in zip(ids, y, strict=True):
            self._memory.relabel(int(number), arguments.label_of(label))

    def _require_memory(self) -> None:
        self._expire()
        if not len(self._memory):
            raise ValueError(
                "there is no example to estimate with: nothing was learned through this object yet, or all of it has "
                "left the model's window"
            )

    def _remembered(self) -> tuple[LeaveOut, np.ndarray, np.ndarray]:
        """A finished copy of the model, what is remembered beside its members; the slots of that, and its labels."""
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
        """The estimate, and how many seconds one takes that is good for something."""

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
        """What is remembered, as a snapshot; the model, which is not part of it, has its own."""
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
        """The estimate that `to_bytes` stored, around the model that was stored with it.

        Raises
        ------
        SnapshotError
            If the data are damaged, of another kind, or from a newer format.
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


class StreamingLOO(StreamingEstimate):
    """Leave-one-out estimates of a model, while it learns.

    A classifier around the model: it learns and predicts as the model does, and goes into pipelines in its place.

    Parameters
    ----------
    model
        One of streamsvm's online classifiers.  Scalers and the like go before this one.
    every
        Examples between two estimates, at least.  They are made when there is time for them.
    memory
        How many examples are remembered, and predicted at each estimate.
    keep
        ``"recent"``: the estimate is of what the stream is like now; ``"sample"``, a uniform one: of all that it has
        been.
    share
        The share of the learning time that estimates may take; 0: they are made only when asked for.  The first one is
        made after `every` examples, whatever it takes; then there is none until that is made up for.
    seed
        For the order in which the undecided are left out, and the sample.

    Attributes
    ----------
    latest : LOOEstimate or None
        The last estimate.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the model is another one.

    Notes
    -----
    The estimate is of a finished copy of the model.  While it learns, `LASVM` leaves violations up to `delta_max`; with
    these, bounds decide little, a removal takes ten times as long, and as the others make up for the one that is
    removed more than they would have learned to, the error comes out too low.

    Where examples resemble those just before and after them, as in a time series, one that is left out is still known
    by its neighbours: the error comes out too low, and that of predictions made before learning is the one to watch.

    Around a model with a `budget` that projects or merges, it is too low: an example that has joined another one cannot
    be left out, and what others have joined is predicted, and left out, as one.

    An estimate of the last 500 predictions is off by what a sample of 500 is off.  The interval does not tell: it
    covers what was not computed.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM, WarmupScaler
    >>> loo = StreamingLOO(LASVM(C=10, gamma=1.0), share=0)
    >>> model = WarmupScaler() | loo
    >>> for x, y in datasets.Bananas().take(1000):
    ...     model.learn_one(x, y)
    >>> estimate = loo.estimate()
    >>> estimate.n, estimate.n_undecided, 0.05 < estimate.error.value < 0.15
    (500, 0, True)
    """

    def __init__(
        self,
        model: Any,
        every: int = 1000,
        memory: int = 500,
        keep: str = "recent",
        share: float = 0.1,
        seed: int = 0,
    ) -> None:
        super().__init__(model, every, memory, keep, share, seed)
        self.latest: LOOEstimate | None = None
        self._slope: float | None = None  # r
        self._surprises: deque[tuple[bool, int]] = deque(maxlen=POOL)  # of L: the label, and error - guessed error

    def estimate(self, removals: int | None = None, seconds: float | None = None) -> LOOEstimate:
        """An estimate of the model as it is, now.

        Parameters
        ----------
        removals
            How many support vectors may be left out; None: all that bounds do not decide.
        seconds
            After what time, and the first, no more are left out; None: any.

        Raises
        ------
        ValueError
            If nothing is remembered.
        """
        self._require_memory()
        estimate: LOOEstimate = self._estimate(removals, seconds)
        return estimate

    def _made(self, removals: int | None, seconds: float | None, begin: float) -> tuple[LOOEstimate, float]:
        model, slots, positive = self._remembered()
        y = np.where(positive, 1.0, -1.0)
        margin, bounds = y * model.decision_values()[slots], model.bounds()[slots]
        fixed = time.perf_counter() - begin
        found = np.where(bounds == UNCHANGED, margin, np.nan)
        undecided = np.flatnonzero(bounds == UNKNOWN)
        order = np.random.default_rng([self.seed % 2**63, self._n_turns]).permutation(undecided)
        removed = order[: len(order) if removals is None else removals]
        model.prepare(len(removed), seconds=math.inf if seconds is None else seconds - fixed)
        for t, i in enumerate(removed.tolist(), 1):
            found[i] = y[i] * model.without(slots[i : i + 1])[0]
            if seconds is not None and time.perf_counter() - begin > seconds:
                removed = removed[:t]
                break
        alpha = np.abs(model.alpha[slots])
        fall = alpha * self._slope_for(margin - found, alpha, removed)
        score = _Scores(positive, margin, found, bounds, fall, model.slack, removed)
        self._surprises.extend(score.surprises())
        score.pool = list(self._surprises)
        self.latest = LOOEstimate(
            n_seen=self.model.n_seen,
            n=len(slots),
            error=score.error(),
            g_mean=score.g_mean(),
            prbep=score.prbep(),
            n_unchanged=int(np.count_nonzero(bounds == UNCHANGED)),
            n_bounded=int(np.count_nonzero((bounds == WRONG) | (bounds == RIGHT))),
            n_removed=len(removed),
            n_undecided=len(undecided) - len(removed),
            seconds=time.perf_counter() - begin,
        )
        few = min(FEW, len(undecided)) / max(1, len(removed))
        return self.latest, fixed + few * (self.latest.seconds - fixed)

    def _slope_for(self, falls: np.ndarray, alpha: np.ndarray, removed: np.ndarray) -> float:
        """r for this estimate: as measured before, or now if it is the first time; and measure it for the next one."""
        before, total = self._slope, float(alpha[removed].sum())
        if total > 0.0:
            self._slope = max(0.0, float(falls[removed].sum()) / total)
        return (self._slope or 0.0) if before is None else before

    def _own_state(self) -> dict[str, Any]:
        surprises = [[int(label), surprise] for label, surprise in self._surprises]
        return {"slope": self._slope, "surprises": surprises, "latest": _plain(self.latest)}

    def _take_state(self, meta: Mapping[str, Any]) -> None:
        self._slope = snapshot.field(meta, "slope", float, type(None))
        require(self._slope is None or 0.0 <= self._slope < math.inf, f"slope={self._slope}")
        for label, surprise in snapshot.field(meta, "surprises", list):
            require(label in (0, 1) and surprise in (-1, 0, 1), f"a surprise of {surprise!r} for the label {label!r}")
            self._surprises.append((bool(label), int(surprise)))
        latest = snapshot.field(meta, "latest", dict, type(None))
        if latest:
            given: dict[str, Any] = {name: _interval(latest[name]) for name in ("error", "g_mean", "prbep")}
            given["seconds"] = snapshot.field(latest, "seconds", float)
            given |= {name: snapshot.count(latest, name) for name in LOOEstimate._fields if name not in given}
            self.latest = LOOEstimate(**given)


class _Scores:
    """Estimates with intervals, from margins that are known, bounded, or guessed."""

    def __init__(
        self,
        positive: np.ndarray,
        margin: np.ndarray,
        found: np.ndarray,  # margins without the examples, NaN where they are not known
        bounds: np.ndarray,
        fall: np.ndarray,  # of the margins, as guessed
        slack: float,
        removed: np.ndarray,
    ) -> None:
        self.positive = positive
        known, wrong, right = ~np.isnan(found), bounds == WRONG, bounds == RIGHT
        low, high = np.where(right, TINY, -np.inf), np.where(wrong, -TINY, margin + slack)
        self.low, self.high = np.where(known, found, low), np.where(known, found, high)
        guess = np.where(wrong, np.minimum(margin - fall, -TINY), margin - fall)
        guess = np.where(right, np.maximum(guess, TINY), guess)
        self.guess = np.where(known, found, guess)
        self.unknown, self.removed = (bounds == UNKNOWN) & ~known, removed
        self.first_guess = guess
        self.pool: list[tuple[bool, int]] = []  # surprises, of earlier estimates as well

    def _wrong(self, margin: np.ndarray) -> np.ndarray:
        """Whether margins are of wrong predictions: f > 0 predicts the positive class."""
        return np.where(self.positive, margin <= 0.0, margin < 0.0)

    def surprises(self) -> list[tuple[bool, int]]:
        """For each of those left out its label, and the error less the guessed error."""
        surprise = self._wrong(self.guess).astype(int) - self._wrong(self.first_guess)
        return list(zip(self.positive[self.removed].tolist(), surprise[self.removed].tolist(), strict=True))

    def _errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Estimated, fewest and most errors of each class, (2,) each."""
        estimated, fewest, most = (np.empty(2) for _ in range(3))
        for c in (0, 1):
            own, surprises = self.positive == bool(c), [surprise for label, surprise in self.pool if label == bool(c)]
            fewest[c], most[c] = self._wrong(self.high)[own].sum(), self._wrong(self.low)[own].sum()
            unknown = np.count_nonzero(self.unknown & own)
            total = self._wrong(self.guess)[own].sum() + unknown * float(np.mean(surprises or [0]))
            estimated[c] = np.clip(total, fewest[c], most[c])
        return estimated, fewest, most

    def error(self) -> Interval:
        n = len(self.positive)
        return Interval(*(float(errors.sum()) / n for errors in self._errors()))

    def g_mean(self) -> Interval:
        sizes = np.array([np.count_nonzero(~self.positive), np.count_nonzero(self.positive)])

        def mean(errors: np.ndarray) -> float:
            recalls = 1.0 - errors[sizes > 0] / sizes[sizes > 0]
            return float(np.prod(recalls) ** (1.0 / len(recalls)))

        estimated, fewest, most = self._errors()
        return Interval(mean(estimated), mean(most), mean(fewest))

    def prbep(self) -> Interval:
        sign = np.where(self.positive, 1.0, -1.0)
        value, low, high = (prbep_score(self.positive, sign * m) for m in (self.guess, self.low, self.high))
        return Interval(min(max(value, low), high), low, high)


class Scored(NamedTuple):
    """What an example's fold has given: its label, its decision value, and the example's age."""

    y: bool
    f: float
    born: int


class StreamingKFold(StreamingEstimate):
    """k-fold estimates of a model, while it learns.

    A classifier around the model: it learns and predicts as the model does, and goes into pipelines in its place.  An
    example belongs to the fold that a hash of its id tells.  Each time, one fold is left out of a copy of the model,
    which predicts the remembered examples of that fold; the next time it is the next fold's turn.

    Parameters
    ----------
    model
        One of streamsvm's online classifiers.  Scalers and the like go before this one.
    k
        How many folds there are, at least 2.
    every, memory, keep, share
        As for `StreamingLOO`; `memory` is divided among the folds.
    seed
        Of the hash.

    Attributes
    ----------
    latest : FoldEstimate or None
        The last estimate.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the model is another one.

    Notes
    -----
    The copy has lost one support vector in k, and of what else the model has seen only the remembered examples can take
    their place: it is worse than the model, and the estimate too high.  More memory and larger k make it better.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM, WarmupScaler
    >>> folds = StreamingKFold(LASVM(C=10, gamma=1.0), k=5, share=0)
    >>> model = WarmupScaler() | folds
    >>> for x, y in datasets.Bananas().take(1000):
    ...     model.learn_one(x, y)
    >>> estimates = [folds.estimate() for _ in range(5)]
    >>> estimates[-1].n, 0.05 < estimates[-1].error < 0.15
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
        self._scored: deque[dict[int, Scored]] = deque(maxlen=k)  # by id, for each turn

    def fold_of(self, id: int) -> int:
        """The fold of an example, from 0 to k - 1."""
        return mixed(id, self.seed) % self.k

    def estimate(self) -> FoldEstimate:
        """Leave out the fold whose turn it is, and estimate from this one and the last k - 1 before it.

        Raises
        ------
        ValueError
            If nothing is remembered.
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
            error=float(np.mean(y != (f > 0.0))) if len(y) else math.nan,
            g_mean=g_mean(y, f > 0.0) if len(y) else math.nan,
            prbep=prbep_score(y, f) if len(y) else math.nan,
            fold_errors=np.array(errors),
            seconds=seconds,
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


def _scored(y: Any, f: Any, born: Any) -> Scored:
    """What an example's fold has given, as it was stored."""
    require(type(y) is bool, f"the label {y!r} is neither true nor false")
    require(type(f) is float and math.isfinite(f), f"the decision value {f!r} is not finite")
    require(type(born) is int, f"the age {born!r} is not an integer")
    return Scored(y, f, born)


def _plain(estimate: LOOEstimate | None) -> dict[str, Any] | None:
    """An estimate as JSON can hold it."""
    if estimate is None:
        return None
    return {name: list(v) if isinstance(v, Interval) else v for name, v in estimate._asdict().items()}


def _interval(value: Any) -> Interval:
    """The interval that `_plain` wrote."""
    value, low, high = (float(number) for number in value)
    require(math.isfinite(value) and math.isfinite(low) and math.isfinite(high), "an interval is not finite")
    return Interval(value, low, high)


class _Rows(Sequence):
    """The examples of a batch as features by name, made when they are asked for: few of a large batch are kept."""

    def __init__(self, X: Any) -> None:
        self._names: Sequence[Any] = ()
        if sp.issparse(X):
            X = sp.coo_matrix(X).tocsr()  # entries of one place add up, as in the model
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
