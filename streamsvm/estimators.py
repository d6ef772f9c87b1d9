"""The engine as river classifiers.

Here and in `features`, names become columns and labels become signs; everything below works on arrays.
"""

import hashlib
import itertools
import math
import warnings
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from river import base
from river.utils import dataframe

from streamsvm import blocks, snapshot, storage
from streamsvm.expansion import CACHE_BYTES, EVALUATIONS, HAND, ROWS, SLOTS, is_binary
from streamsvm.features import FeatureTable, culprit, n_rows, not_finite, too_large
from streamsvm.kernels import LARGEST_KERNEL_VALUE, largest_self_product, make_kernel
from streamsvm.online import lasvm
from streamsvm.online.finish import finish
from streamsvm.online.sigmoid import new_sigmoid, probabilities

DEFAULT_DELTA_MAX = 2.0  # an example then enters the expansion if y f(x) < 2: the margin is 2 wide
SLACK = 0.5  # see `lasvm.Rule`; from 0.25 to 1 the error on banana is within 0.25 points of a batch solution


class LASVM(base.MiniBatchClassifier):
    """Online kernel support vector machine with a bias.

    LASVM goes through the stream once.  An example that violates the margin joins the kernel expansion, and a few
    steps of sequential minimal optimisation re-balance the coefficients; members that have become useless leave.
    After one pass and `finish` the model is about as accurate as a support vector machine trained on all the data.

    Scale the features upstream, with a scaler that stops moving (`streamsvm.WarmupScaler`): the model stores
    examples, and a scaler that keeps drifting moves new examples away from those stored.  Features are kept in single
    precision.

    Parameters
    ----------
    C
        Bound on the coefficients: how much one example on the wrong side may count.  Positive.
    kernel
        ``"rbf"`` exp(-gamma ||x-z||²), ``"linear"`` <x,z>, ``"poly"`` (gamma <x,z> + coef0)^degree or ``"sigmoid"``
        tanh(gamma <x,z> + coef0).
    gamma
        Width of the kernel; positive.
    degree
        Degree of the polynomial kernel.
    coef0
        Constant of the polynomial and sigmoid kernels.
    pos_weight
        Factor on C for examples of the positive class; above 1 for a rare class.
    tau
        Tolerance: a pair of members is worked on if its gradients differ by more than this, and `finish` stops there.
    cache_mb
        Memory for cached kernel rows, in megabytes.  It changes the speed, never the result.
    reprocess
        ``"adaptive"``: after each example, REPROCESS at least once and until the largest violation is at most
        `delta_max`. A number: that many times (the paper's algorithm is 1), and further only if `delta_max` is given.
    delta_max
        The largest violation left after an example; default 2 when adaptive.  Smaller is more exact and slower.
    seed
        LASVM draws no random numbers; the parameter is there because river looks for it.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    `learn_many` gives what a loop of `learn_one` gives, up to the rounding of a float32 kernel value.

    An example with weight `w` has its box scaled: it may count w times as much.  Labels are ``True``/``False``; 1 and
    0 or 1 and -1 are taken as well.

    Every example has an id, by which `support_ids` tells which examples the model rests on.  Without `id`, the
    examples are numbered from 0.  An example with an `id` that is a member already is not learned again.

    One model is for one thread at a time: prediction uses the model's scratch memory.

    References
    ----------
    [^1]: Bordes, A., Ertekin, S., Weston, J., Bottou, L., 2005. Fast kernel classifiers with online and active
    learning. Journal of Machine Learning Research 6, 1579-1619.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVM, WarmupScaler
    >>> model = WarmupScaler() | LASVM(C=10, gamma=1.0)
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: ...%
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str = "rbf",
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        pos_weight: float = 1.0,
        tau: float = 1e-3,
        cache_mb: float = 256.0,
        reprocess: str | int = "adaptive",
        delta_max: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.pos_weight = pos_weight
        self.tau = tau
        self.cache_mb = cache_mb
        self.reprocess = reprocess
        self.delta_max = delta_max
        self.seed = seed
        for name in ("C", "pos_weight", "tau", "cache_mb"):
            _require_positive(name, getattr(self, name))
        self._kernel = make_kernel(kernel, gamma, degree, coef0)
        self._rule = _rule(tau, reprocess, delta_max)
        self._expansion = storage.empty(int(cache_mb * 2**20))
        self._features = FeatureTable()
        self._sigmoid = new_sigmoid()
        self._n_seen = 0
        self._y_name: Any = None

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Any, w: float = 1.0, id: int | None = None) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name; those that are missing are 0.
        y
            Label: True or False (or 1 and 0, or 1 and -1).
        w
            Weight, a factor on the example's C; 0 leaves it out.
        id
            64-bit id of the example; default: its number, from 0.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or the label or weight is none.  The model is then as before.
        """
        positive, box = _label(y), self._box(y, w)
        own_id, n_features = id is not None, len(self._features)
        number = self._n_seen if id is None else _id(id)
        columns, values = self._features.example(x, learning=True)
        lo, hi = (0.0, box) if positive else (-box, 0.0)
        arguments = (self._kernel, self._rule, columns, values, lo, hi, number, own_id, self._sigmoid)
        if len(self._features) > len(self._expansion.member_indices):
            self._reserve(values)
        status, _ = lasvm.learn_example(self._expansion, *arguments)
        if status == lasvm.NO_ROOM:
            self._reserve(values)
            status, _ = lasvm.learn_example(self._expansion, *arguments)
        if status != lasvm.LEARNED:
            self._features.truncate(n_features)
            raise self._too_large(x) if status == lasvm.NOT_FINITE else self._overflow(self._n_seen)
        self._n_seen += 1

    def _reserve(self, values: np.ndarray) -> None:
        binary = is_binary(self._expansion) and bool(np.isin(values, (0.0, 1.0)).all())
        nnz = int(np.count_nonzero(values))
        self._expansion = storage.reserve(self._expansion, 1, len(self._features), binary, nnz)

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        _, values = self._features.example(x, learning=False)
        with np.errstate(over="ignore", invalid="ignore"):
            sq = np.square(values).sum(keepdims=True)
        if too_large(sq):
            raise self._too_large(x)
        if largest_self_product(self._kernel, sq) > LARGEST_KERNEL_VALUE:
            raise self._overflow(self._n_seen)

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None) -> None:
        """Learn a batch of examples, in sequence.

        Parameters
        ----------
        X
            Examples as rows: a pandas, polars or other dataframe (features by column name), a 2-D array or a SciPy
            sparse matrix (features named 0, 1, 2, ...), or a list of dicts.
        y
            Labels, one for each row.
        w
            Weights, one number for all or one for each row.
        ids
            Ids, one for each row; default: the examples' numbers.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is none, or lengths differ.  Blocks of rows before the one
            with the fault have been learned.
        """
        self._learn_many(X, y, w, ids)

    def _learn_many(self, X: Any, y: Any, w: Any, ids: Any) -> np.ndarray:
        n = n_rows(X)
        self._y_name = getattr(y, "name", None)
        positive = _labels(X, y, n)
        weights = _weights(w, n)
        with np.errstate(over="ignore"):
            box = self.C * weights * np.where(positive, self.pos_weight, 1.0)
        if not np.isfinite(box).all():
            largest = weights.max().item()
            raise ValueError(
                f"w holds {largest!r}, too large: with C={self.C!r} the bound on a coefficient is infinite"
            )
        lo, hi = np.where(positive, 0.0, -box), np.where(positive, box, 0.0)
        numbers = np.arange(self._n_seen, self._n_seen + n) if ids is None else _ids(ids, n)
        margins = np.empty(n)
        n_features = len(self._features)
        for rows, q in self._features.batches(X, learning=True):
            if largest_self_product(self._kernel, q.sq) > LARGEST_KERNEL_VALUE:
                self._features.truncate(n_features)
                raise self._overflow(rows.start + int(np.argmax(q.sq)))
            self._expansion, margins[rows] = lasvm.learn(
                self._expansion,
                self._kernel,
                self._rule,
                q,
                lo[rows],
                hi[rows],
                numbers[rows],
                ids is not None,
                len(self._features),
                self._sigmoid,
            )
            self._n_seen += len(q.sq)
            n_features = len(self._features)
        return margins

    def _too_large(self, x: Mapping[Hashable, Any]) -> ValueError:
        name = list(x)[culprit(self._features.example(x, learning=False)[1])]
        return not_finite(name, x[name])

    def _overflow(self, row: int) -> ValueError:
        limit = f"{LARGEST_KERNEL_VALUE:g}"
        return ValueError(f"the {self.kernel} kernel of example {row} with itself is above {limit}; scale the features")

    def _box(self, y: Any, w: float) -> float:
        if not isinstance(w, int | float | np.number) or not (w >= 0.0 and math.isfinite(w)):
            raise ValueError(f"w={w!r} must be a finite number, at least 0")
        box = self.C * w * (self.pos_weight if y == 1 else 1.0)
        if not math.isfinite(box):
            raise ValueError(f"w={w!r} is too large: with C={self.C!r} the bound on the coefficient is infinite")
        return box

    def finish(self, tol: float | None = None) -> None:
        """Optimise over the members until no pair of them violates by more than `tol` (default `tau`).

        Call it after the stream, or now and then.  Members that have become useless leave; learning may go on.
        """
        tol = self.tau if tol is None else tol
        _require_positive("tol", tol)
        self._expansion, steps = finish(self._expansion, self._kernel, tol)
        left = lasvm.delta(self._expansion)
        if left > tol:
            warnings.warn(
                f"finish stopped after {steps} steps with a violation of {left:.3g}, above tol={tol:g}: "
                "kernel values in single precision allow no more; scale the features or raise tol",
                RuntimeWarning,
                stacklevel=2,
            )

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function_one(self, x: dict) -> float:
        """f(x): positive for the positive class; the margin of the model is at -1 and 1."""
        columns, values = self._features.example(x, learning=False)
        margin = lasvm.decide_example(self._expansion, self._kernel, columns, values)
        if math.isnan(margin):
            raise self._too_large(x)
        return margin

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The label of the more probable class; False before anything was learned."""
        return self.decision_function_one(x) > 0.0

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """Probabilities of both labels, from a sigmoid fitted online to margins of examples not yet learned."""
        p = float(self.probability(np.array(self.decision_function_one(x))))
        return {False: 1.0 - p, True: p}

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probability of True for margins that a decision function has given, of the same shape."""
        return probabilities(self._sigmoid, margins)

    def _decide_many(self, X: Any) -> np.ndarray:
        margins = np.empty(n_rows(X))
        b = lasvm.bias(self._expansion)
        for rows, q in self._features.batches(X, learning=False):
            margins[rows] = blocks.decide(self._expansion, self._kernel, q, b)
        return margins

    def decision_function_many(self, X: Any) -> Any:
        """f(x) for each row; a series of the frame's kind for a frame, else an array (n,)."""
        return _series_like(X, self._decide_many(X), None)

    def predict_many(self, X: Any) -> Any:
        """Labels; a series of the frame's kind for a frame, else an array (n,) of bool."""
        return _series_like(X, self._decide_many(X) > 0.0, self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities of False and True: a frame of the kind given, else an array (n, 2)."""
        p = self.probability(self._decide_many(X))
        if _is_frame(X):
            return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=dataframe.into_frame(X))
        return np.column_stack([1.0 - p, p])

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_members(self) -> int:
        """Examples in the expansion, support vectors and candidates."""
        return storage.n_members(self._expansion)

    @property
    def n_support(self) -> int:
        """Support vectors: members with a coefficient other than 0."""
        return int(np.count_nonzero(self._expansion.alpha[: self._expansion.counts[SLOTS]]))

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the support vectors, (n_support,) int64."""
        return self._expansion.ids[np.flatnonzero(self._expansion.alpha)]

    @property
    def dual_coef(self) -> np.ndarray:
        """Signed coefficients of the support vectors, (n_support,) float64, in the order of `support_ids`."""
        return self._expansion.alpha[np.flatnonzero(self._expansion.alpha)]

    @property
    def bias(self) -> float:
        """The constant term of the decision function."""
        return float(lasvm.bias(self._expansion))

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far, in learning and prediction."""
        return int(self._expansion.counts[EVALUATIONS])

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_bytes(self) -> bytes:
        """The model as a snapshot; see `streamsvm.snapshot` for the format."""
        meta, arrays = self._state()
        return snapshot.pack(type(self).__name__, meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, cache_mb: float | None = None) -> "LASVM":
        """The model that `to_bytes` stored; it goes on bit for bit as the stored one would.

        Parameters
        ----------
        data
            A snapshot.
        cache_mb
            Another size of the row cache than the stored one.

        Raises
        ------
        SnapshotError
            If the data are damaged, of another kind, or from a newer format.
        """
        meta, arrays = snapshot.unpack(data, cls.__name__)
        parameters = meta["parameters"] if cache_mb is None else {**meta["parameters"], "cache_mb": cache_mb}
        model = cls(**parameters)
        model._n_seen = meta["n_seen"]
        model._features = FeatureTable.of_names(meta["features"])
        model._sigmoid = arrays["sigmoid"]
        model._expansion = storage.restore(arrays, int(model.cache_mb * 2**20))
        return model

    def save(self, path: str | Path) -> None:
        """Write the snapshot to a file, atomically."""
        snapshot.write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> "LASVM":
        """The model in a file that `save` wrote."""
        return cls.from_bytes(snapshot.read(path))

    def digest(self) -> str:
        """SHA-256 of what was learned; equal for models that continue alike, whatever their caches and counters."""
        meta, arrays = self._state()
        arrays["counts"][[EVALUATIONS, ROWS, HAND, CACHE_BYTES]] = 0
        meta["parameters"].pop("cache_mb")
        return hashlib.sha256(snapshot.pack(type(self).__name__, meta, arrays)).hexdigest()

    def _state(self) -> tuple[dict, dict[str, np.ndarray]]:
        parameters = {name: _plain(value) for name, value in self._get_params().items()}
        meta = {"parameters": parameters, "n_seen": self._n_seen, "features": self._features.names()}
        return meta, {**storage.dump(self._expansion, len(self._features)), "sigmoid": self._sigmoid}

    def __getstate__(self) -> dict:
        """Everything but the cached rows, which can be computed again."""
        return {**self.__dict__, "_expansion": storage.without_rows(self._expansion)}

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()


# ---------------------------------------------------------------------------------------------- checking what is given


def _require_positive(name: str, value: Any) -> None:
    if not isinstance(value, int | float | np.number) or not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name}={value!r} must be a positive finite number")


def _rule(tau: float, reprocess: str | int, delta_max: float | None) -> lasvm.Rule:
    if delta_max is not None:
        _require_positive("delta_max", delta_max)
    if reprocess == "adaptive":
        return lasvm.Rule(float(tau), -1, DEFAULT_DELTA_MAX if delta_max is None else float(delta_max), SLACK)
    if isinstance(reprocess, int) and not isinstance(reprocess, bool) and reprocess >= 0:
        return lasvm.Rule(float(tau), reprocess, math.inf if delta_max is None else float(delta_max), 0.0)
    raise ValueError(f'reprocess={reprocess!r} must be "adaptive" or a number of steps, at least 0')


def _label(y: Any) -> bool:
    if isinstance(y, bool | np.bool_):
        return bool(y)
    if isinstance(y, int | float | np.number) and y in (0, 1, -1):
        return bool(y == 1)
    raise ValueError(f"y={y!r} is not a binary label; use True and False (or 1 and 0, or 1 and -1)")


def _labels(X: Any, y: Any, n: int) -> np.ndarray:
    if getattr(X, "ndim", 2) != 2:
        raise ValueError(f"X has shape {X.shape}; a batch is a 2-D array (examples, features)")
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise ValueError(f"y has shape {labels.shape} for {n} rows of X; one label for each row is needed")
    if labels.dtype.kind == "b":
        return labels
    if labels.dtype.kind == "O":
        for row, label in enumerate(labels):
            if not isinstance(label, bool | np.bool_ | int | float | np.number):
                raise ValueError(f"y holds {label!r} in row {row}; labels must be True and False, 1 and 0, or 1 and -1")
        return np.fromiter((_label(label) for label in labels), bool, n)
    values = set(np.unique(labels).tolist())
    if labels.dtype.kind in "fiu" and (values <= {-1, 1} or values <= {0, 1}):
        return labels == 1
    shown = ", ".join(map(repr, itertools.islice(sorted(values, key=str), 5)))
    raise ValueError(f"y holds {shown}; labels must be True and False, 1 and 0, or 1 and -1")


def _weights(w: Any, n: int) -> np.ndarray:
    """Weights as an array (n,)."""
    try:
        weights = np.asarray(1.0 if w is None else w, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"w is {w!r}; weights must be numbers") from error
    weights = np.broadcast_to(weights, (n,)) if weights.ndim == 0 else weights
    if weights.shape != (n,):
        raise ValueError(f"w has shape {weights.shape} for {n} rows of X; one weight, or one for each row, is needed")
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise ValueError(f"w holds {weights[bad][0]}; weights are finite and at least 0")
    return weights


def _id(id: Any) -> int:
    if not isinstance(id, int | np.integer) or not -(2**63) <= id < 2**63:
        raise ValueError(f"id={id!r} must be a signed 64-bit integer")
    return int(id)


def _ids(ids: Any, n: int) -> np.ndarray:
    numbers = np.asarray(ids)
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise ValueError(f"ids has shape {numbers.shape} and dtype {numbers.dtype}; {n} integers are needed")
    if numbers.dtype == np.uint64 and (numbers > np.iinfo(np.int64).max).any():
        raise ValueError(f"ids holds {numbers.max()}; ids are signed 64-bit integers, at most {np.iinfo(np.int64).max}")
    return numbers.astype(np.int64)


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it: numpy's numbers as Python's."""
    return value.item() if isinstance(value, np.generic) else value


def _is_frame(X: Any) -> bool:
    return not isinstance(X, np.ndarray | list | tuple) and hasattr(X, "columns")


def _series_like(X: Any, values: np.ndarray, name: Any) -> Any:
    return dataframe.to_native_series(values, name=name, like=dataframe.into_frame(X)) if _is_frame(X) else values
