"""The problem that a model stands for, as the batch solver takes it.

A learner is recognised by its attributes, because this room may not import learners: the `PARAMETERS` below, and its
`online.finish.Problem`, which tells whether there is a bias.  Learners without a bias are refused: the batch solver
solves problems with a bias only.
"""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch import RowStore, Solution, SolverOptions, seeding
from streamsvm.batch.options import DEFAULTS
from streamsvm.core import arguments
from streamsvm.core.class_weights import class_weight, require_pos_weight
from streamsvm.core.kernels import make_kernel

PARAMETERS = ("C", "kernel", "gamma", "degree", "coef0", "pos_weight", "tol", "cache_mb", "device")
OF_THE_MODEL = ("tol", "cache_mb", "device")  # the options of the solver that are parameters of a model
NO_EXAMPLES = np.zeros(0, np.int64)


class Problem(NamedTuple):
    """A support vector machine over all examples; each split leaves some of them out."""

    store: RowStore
    y: np.ndarray  # -1.0 and +1.0
    lo: np.ndarray
    hi: np.ndarray
    options: SolverOptions

    def boxes_without(self, out: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The boxes in which these examples are held out."""
        lo, hi = self.lo.copy(), self.hi.copy()
        lo[out] = hi[out] = 0.0
        return lo, hi

    def members(self, start: seeding.Start | None = None) -> tuple[seeding.Members, Solution]:
        """The members for all folds, and the rough solution over all examples that says who they are."""
        return seeding.members_of(self.store, self.y, self.lo, self.hi, self.options, start)


class Setting(NamedTuple):
    """The parameters of a model that define its problem, and the options of the solver."""

    C: float
    kernel: str
    gamma: float
    degree: int
    coef0: float
    pos_weight: float | str
    options: SolverOptions

    def store(self, X: Any) -> RowStore:
        """The kernel rows of these examples; a `RowStore` is returned as it is."""
        kernel = make_kernel(self.kernel, gamma=self.gamma, degree=self.degree, coef0=self.coef0)
        if not isinstance(X, RowStore):
            return RowStore(X, kernel, self.options.cache_mb, self.options.device)
        if X.kernel != kernel:
            raise ValueError(f"X is a RowStore of {X.kernel}, but the model has {kernel}; both need the same kernel")
        return X

    def problem(self, store: RowStore, y: np.ndarray, weights: np.ndarray) -> Problem:
        """The problem over the examples of the store.

        Parameters
        ----------
        store
            What `store` returned, for this kernel.
        y
            Labels -1.0 and +1.0, (n,).
        weights
            Weights of the examples, (n,).
        """
        counted = y[weights > 0.0] > 0.0
        counts = int(np.count_nonzero(~counted)), int(np.count_nonzero(counted))
        negative, positive = (class_weight(self.pos_weight, counts, own) for own in (False, True))
        boxes = arguments.boxes_of(float(self.C), weights, np.where(y > 0.0, positive, negative))
        return Problem(store, y, np.minimum(0.0, y * boxes), np.maximum(0.0, y * boxes), self.options)


def setting_of(model: Any, options: SolverOptions | None) -> Setting:
    """The setting of a learner.

    Parameters
    ----------
    model
        A learner such as ``LASVM(C=10.0)``; what it has learned plays no part.
    options
        Options of the solver; `tol`, `cache_mb` and `device` are the model's.  None: the defaults.

    Raises
    ------
    TypeError
        If the model is not a learner.
    ValueError
        If the batch solver cannot solve the model's problem, or if an option contradicts the model.
    """
    require_solvable(model)
    own = {name: getattr(model, name) for name in PARAMETERS}
    arguments.require_positive("C", own["C"])
    require_pos_weight(own["pos_weight"])
    solver = _options(options, {name: own.pop(name) for name in OF_THE_MODEL})
    return Setting(**own, options=solver)


def require_solvable(model: Any) -> None:
    """Refuse what is no learner, and a learner whose problem the batch solver does not solve."""
    name = type(model).__name__
    if isinstance(model, type):
        raise TypeError(f"model={model.__name__} is a class; an instance is needed, such as {model.__name__}(C=1.0)")
    if hasattr(model, "classes") and hasattr(model, "model"):
        raise ValueError(
            f"model={name}(...) is for several classes; use OneVsOne(LASVM(...)), or validate one class at a time: "
            "model=LASVM(...) with y == label"
        )
    problem = getattr(model, "_problem", None)
    if problem is None or not all(hasattr(model, parameter) for parameter in PARAMETERS):
        raise TypeError(
            f"model is of type {name}; it must be LASVM(...) or SmoothSVM(...). Other steps of a pipeline go before: "
            "give the features that they return as X"
        )
    if not problem.fixed_sum:
        raise ValueError(
            f"model={name}(...) has no bias, and the batch solver solves problems with a bias only; use LASVM(...) "
            f"with the same parameters, or estimate this model while it learns: StreamingKFold({name}(...))"
        )


def is_one_vs_one(model: Any) -> bool:
    """Whether a model has a learner for each pair of classes, told by its attributes."""
    return not isinstance(model, type) and hasattr(model, "pairs") and hasattr(model, "model")


def _options(options: SolverOptions | None, own: dict[str, Any]) -> SolverOptions:
    """The options with those of the model, which they may not contradict."""
    if options is None:
        return SolverOptions(**own)
    if not isinstance(options, SolverOptions):
        raise TypeError(f"options={options!r} must be SolverOptions(...) of streamsvm.batch")
    for name, value in own.items():
        if getattr(options, name) not in (value, getattr(DEFAULTS, name)):
            raise ValueError(
                f"options.{name}={getattr(options, name)!r} contradicts {name}={value!r} of the model; "
                f"set {name} of the model"
            )
    return replace(options, **own)


def labelled(X: Any, y: Any, sample_weight: Any, setting: Setting) -> tuple[Problem, np.ndarray]:
    """The problem over these examples, and the caller's names of its two classes."""
    store = setting.store(X)
    signs, classes = signs_of(y, len(store))
    return setting.problem(store, signs, arguments.weights_of(sample_weight, len(store), "sample_weight")), classes


def signs_of(y: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels -1.0 and +1.0, and the caller's names of the two classes; a ValueError if there are not two."""
    labels = arguments.vector_of("y", y)
    names = _names_of(labels) if labels.ndim == 1 else []
    if len(names) > 2:
        raise ValueError(
            f"y holds {len(names)} classes, such as {names[:3]}; two are needed: use OneVsOne(LASVM(...)), or "
            "validate one class at a time with y == label"
        )
    signs = arguments.signs_of(y, n)
    if len(names) != 2:
        raise ValueError(f"y holds {names}; examples of two classes are needed")
    return signs, np.unique(np.array(names, labels.dtype))


def _names_of(labels: np.ndarray) -> list[Any]:
    """The classes, without missing labels."""
    if labels.dtype.kind in "biuf":
        return np.unique(labels[labels == labels]).tolist()
    return list(dict.fromkeys(label for label in labels.tolist() if not arguments.is_missing(label)))
