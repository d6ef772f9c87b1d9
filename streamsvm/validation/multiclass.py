"""Cross-validation and grid search of a `OneVsOne`: the problem of each pair of classes, without each split.

All pairs, splits and values of C share one kernel matrix, if it fits into `cache_mb`; one is computed for each gamma.
If a split leaves out one example, only the pairs that lose a support vector are solved again.  The solutions of the
other pairs stay as they are.
"""

import copy
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streamsvm.batch import RowStore
from streamsvm.batch.kernels.features import Features
from streamsvm.batch.kernels.matrix import Gram, KernelSource
from streamsvm.batch.kernels.rows import require_small
from streamsvm.batch.multiclass.class_pairs import PairOptimum, optima_along, solved_pair
from streamsvm.core import arguments, storage
from streamsvm.core.inputs import matrix_of, squared_lengths
from streamsvm.core.kernels import make_kernel
from streamsvm.core.threads import one_blas_thread
from streamsvm.online.outputs.votes import best_classes, class_values
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.parallel import in_parts, in_processes, workers
from streamsvm.validation.held_out.problem import Setting
from streamsvm.validation.results import mean_of_tests
from streamsvm.validation.scores import OF_CLASSES

SEEDINGS = ("auto", "none", "skip")


class ClassFold(NamedTuple):
    """The outcome of one split.

    Attributes
    ----------
    test
        Numbers of the tested examples, (m,).
    predictions
        Their predicted classes, (m,).
    decision_values
        A value for each example and class, (m, n_classes), as `OneVsOne.decision_function_many` gives.
    converged
        Whether all solvers reached their tolerance.
    """

    test: np.ndarray
    predictions: np.ndarray
    decision_values: np.ndarray
    converged: bool


@dataclass(frozen=True, eq=False)
class ClassResult:
    """The outcome of a cross-validation of several classes.

    Attributes
    ----------
    y
        Labels, (n,).
    classes
        The classes, in their order.
    folds
        The splits.
    per_fold
        A `ClassFold` for each split.
    seconds
        Wall-clock time.

    Examples
    --------
    >>> from streamsvm import LASVM, OneVsOne
    >>> from streamsvm.validation import cross_validate
    >>> place = np.repeat([-1, 0, 1], 30)
    >>> X = np.random.default_rng(0).normal(size=(90, 2)) + np.outer(8.0 * place, [1.0, 0.0])
    >>> y = np.array(["left", "middle", "right"])[place + 1]
    >>> result = cross_validate(OneVsOne(LASVM(C=10.0, gamma=0.5)), X, y, k=5)
    >>> result.accuracy
    1.0
    >>> result.confusion
    array([[30,  0,  0],
           [ 0, 30,  0],
           [ 0,  0, 30]])
    """

    y: np.ndarray
    classes: np.ndarray
    folds: Folds
    per_fold: list[ClassFold]
    seconds: float

    @property
    def accuracy(self) -> float:
        """Share of right predictions, over all splits."""
        return round(float(np.trace(self.confusion) / self.confusion.sum()), 3)

    def scores(self, metric: Callable[[Any, Any], float] | str = "accuracy") -> np.ndarray:
        """A metric of each split, (n_splits,).

        It is ``"accuracy"``, ``"g_mean"`` or ``"balanced_accuracy"``, of the recalls of the classes that a split tests,
        or a function of the labels and the predictions.
        """
        measure = _measure_of(metric)
        return np.array([measure(y, predicted) for y, predicted in self._tests])

    def score(self, metric: Callable[[Any, Any], float] | str) -> float:
        """A metric, as for `scores`, over the tests of all splits together."""
        y, predicted = (np.concatenate(parts) for parts in zip(*self._tests, strict=True))
        return float(_measure_of(metric)(y, predicted))

    @property
    def _tests(self) -> list[tuple[np.ndarray, np.ndarray]]:
        return [(self.y[part.test], part.predictions) for part in self.per_fold]

    @property
    def confusion(self) -> np.ndarray:
        """Numbers of examples by their class (row) and predicted class (column), (n_classes, n_classes)."""
        counts = np.zeros((len(self.classes),) * 2, np.int64)
        for part in self.per_fold:
            places = (np.searchsorted(self.classes, labels) for labels in (self.y[part.test], part.predictions))
            np.add.at(counts, tuple(places), 1)
        return counts

    @property
    def decision_values(self) -> np.ndarray:
        """Mean decision values of each example over the splits that test it, (n, n_classes); NaN if no split does.

        They are those of `OneVsOne.decision_function_many`: the votes for each class, and a fraction of a vote.
        """
        return mean_of_tests(self.per_fold, "decision_values", len(self.y))

    @property
    def recalls(self) -> np.ndarray:
        """Share of each class's examples that are predicted right, (n_classes,); NaN for a class never tested."""
        with np.errstate(invalid="ignore"):
            return self.confusion.diagonal() / self.confusion.sum(axis=1)


def _measure_of(metric: Any) -> Callable[[Any, Any], float]:
    if callable(metric):
        return metric
    if metric not in OF_CLASSES:
        known = ", ".join(map(repr, OF_CLASSES))
        raise ValueError(f"metric={metric!r} is for two classes; use {known}, or a function (y, predicted)")
    return OF_CLASSES[metric]


class Problems(NamedTuple):
    """The problems of all pairs of classes over the same examples, for one value of C after another."""

    source: KernelSource
    places: np.ndarray
    weights: np.ndarray
    setting: Setting
    Cs: list[float]

    def on_one_matrix(self) -> "Problems":
        """The same, over the whole kernel matrix if it fits into the memory."""
        return self._replace(source=_shared(self.source, self.setting.options.cache_mb))

    def in_a_worker(self) -> "Problems":
        """The same, with arrays of its own: for read-only arrays, which joblib maps, numba would compile anew."""
        source = copy.copy(self.source)
        source.__dict__.update(storage.owned(vars(source)))
        return self._replace(source=source)

    def solve(self, out: np.ndarray) -> list[list[PairOptimum]]:
        """Train all pairs without these examples, for each C."""
        given = self._without(out), self._box(1.0), self.Cs, self.setting.options
        return [list(pairs) for pairs in zip(*optima_along(self.source, *given), strict=True)]

    def solve_again(self, full: list[list[PairOptimum]], out: np.ndarray) -> list[list[PairOptimum]]:
        """The same, from the solutions over all examples."""
        places = self._without(out)
        return [
            [self._again(pair, places, box, out) for pair in pairs]
            for pairs, box in zip(full, map(self._box, self.Cs), strict=True)
        ]

    def _again(self, pair: PairOptimum, places: np.ndarray, box: np.ndarray, out: np.ndarray) -> PairOptimum:
        if not np.isin(pair.members[pair.alpha != 0.0], out).any():
            return pair
        return solved_pair(self.source, places, pair.first, pair.second, box, self.setting.options)

    def _without(self, out: np.ndarray) -> np.ndarray:
        places = np.where(self.weights > 0.0, self.places, -1)
        places[out] = -1
        return places

    def _box(self, C: float) -> np.ndarray:
        return arguments.boxes_of(C, self.weights, np.ones(len(self.weights)))

    def margins(self, of_Cs: list[list[PairOptimum]], test: np.ndarray) -> np.ndarray:
        """f(x) of these examples by all pairs, for each C, (n_Cs, m, n_pairs)."""
        pairs = [pair for of_C in of_Cs for pair in of_C]
        of_pairs = np.concatenate([pair.members for pair in pairs])
        place_of = np.zeros(len(self.places), np.int64)
        place_of[of_pairs] = 1
        members = np.flatnonzero(place_of)
        place_of[members] = np.arange(len(members))
        coefficients = np.zeros((len(pairs), len(members)))
        of_pair = np.repeat(np.arange(len(pairs)), [len(pair.members) for pair in pairs])
        coefficients[of_pair, place_of[of_pairs]] = np.concatenate([pair.alpha for pair in pairs])
        f = np.tile(np.array([pair.bias for pair in pairs])[:, np.newaxis], len(test))
        with one_blas_thread():
            for r, c, P in self.source.kernel_values(test, members):
                f[:, r : r + len(P)] += coefficients[:, c : c + P.shape[1]] @ P.T.astype(np.float64)
        return f.reshape(len(of_Cs), -1, len(test)).transpose(0, 2, 1)


def require_plain(given: dict[str, Any]) -> None:
    """Raise a ValueError if an argument that several classes do not have is not at its default."""
    for name, value in given.items():
        if value not in (("auto",) if isinstance(value, str) else (None, 1)):
            raise ValueError(f"{name}={value!r} is for two classes; leave it at its default for several")


def problems_of(setting: Setting, Cs: list[float], X: Any, y: Any, sample_weight: Any) -> tuple[Problems, np.ndarray]:
    """The problems over these examples for each C, and the classes.

    Raises
    ------
    ValueError
        If y has fewer than two classes, if X is not finite, or if X, y and the weights do not match.
    TypeError
        If X does not hold numbers.
    """
    if isinstance(X, RowStore):
        raise ValueError("X is a RowStore, which two classes can share; give the features for several classes")
    if setting.pos_weight != 1.0:
        raise ValueError(f"pos_weight={setting.pos_weight!r} is not offered for several classes; use sample_weight")
    kernel = make_kernel(setting.kernel, gamma=setting.gamma, degree=setting.degree, coef0=setting.coef0)
    rows = matrix_of(X).astype(np.float64, copy=False)
    require_small(squared_lengths(rows).astype(np.float32), kernel)
    features = Features(rows, kernel)
    classes, places = np.unique(arguments.classes_of(y, features.n), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y holds {classes.tolist()}; examples of at least two classes are needed")
    weights = arguments.weights_of(sample_weight, features.n, "sample_weight")
    arguments.boxes_of(max(Cs), weights, np.ones(features.n), "sample_weight")
    return Problems(features, places, weights, setting, Cs), classes


def _shared(features: KernelSource, cache_mb: float) -> KernelSource:
    """The whole kernel matrix, if it fits into the memory."""
    if 4 * features.n**2 > cache_mb * 2**20:
        return features
    K, every = np.empty((features.n, features.n), np.float32), np.arange(features.n)
    with one_blas_thread():
        for r, c, P in features.kernel_values(every, every):
            K[r : r + P.shape[0], c : c + P.shape[1]] = P
    np.fill_diagonal(K, features.diagonal)
    return Gram(K)


class _Part(NamedTuple):
    """Some of the splits, for a worker; the solutions over all examples are empty if no split starts from them."""

    problems: Problems
    classes: np.ndarray
    folds: Folds
    splits: range
    full: list[list[PairOptimum]]

    def outcomes(self) -> Iterable[list[ClassFold]]:
        """The outcomes of each split for each C."""
        problems = self.problems
        for split in self.splits:
            test, out = self.folds.tests[split], self.folds.left_out[split]
            of_Cs = problems.solve_again(self.full, out) if self.full else problems.solve(out)
            yield [
                _fold(test, margins, self.classes, all(pair.converged for pair in pairs))
                for margins, pairs in zip(problems.margins(of_Cs, test), of_Cs, strict=True)
            ]


def _outcomes_in_a_worker(part: _Part) -> Iterable[list[ClassFold]]:
    return part._replace(problems=part.problems.in_a_worker().on_one_matrix()).outcomes()


def validated(
    problems: Problems, labels: np.ndarray, classes: np.ndarray, splits: Folds, seeding: str, n_jobs: int | None
) -> list[ClassResult]:
    """Test each split by the pairs that are trained without it; a result for each C.

    Parameters
    ----------
    problems, labels, classes, splits
        The problems, the label of each example, the classes, and what each split tests and leaves out.
    seeding
        ``"none"``: each split solves all pairs.  ``"skip"``: it solves those that lose a support vector, and the others
        are copied from the solution over all examples.  ``"auto"``: that, if each split leaves out one example;
        with more, most pairs lose one, and to solve all together is faster.
    n_jobs
        Number of workers, as for `cross_validate`; each computes a kernel matrix of its own.
    """
    begin = time.perf_counter()
    if seeding not in SEEDINGS:
        raise ValueError(
            f"seeding={seeding!r} is not offered for several classes; use one of {', '.join(map(repr, SEEDINGS))}"
        )
    jobs = workers(n_jobs)
    for split, out in enumerate(splits.left_out):
        _require_all(np.unique(problems._without(out)), classes, split)
    copied = seeding == "skip" or (seeding == "auto" and all(len(out) == 1 for out in splits.left_out))
    shared = problems.on_one_matrix() if copied or jobs == 1 else problems
    full = shared.solve(np.zeros(0, np.int64)) if copied else []
    every = _Part(shared, classes, splits, range(len(splits)), full)
    if jobs == 1:
        per_fold = list(every.outcomes())
    else:
        parts = [every._replace(problems=problems, splits=some) for some in in_parts(len(splits), jobs)]
        per_fold = list(in_processes(_outcomes_in_a_worker, parts, n_jobs))
    seconds = (time.perf_counter() - begin) / len(problems.Cs)
    return [ClassResult(labels, classes, splits, list(of_C), seconds) for of_C in zip(*per_fold, strict=True)]


def _require_all(left: np.ndarray, classes: np.ndarray, split: int) -> None:
    """Raise a ValueError unless a split trains on all classes; `left` are their places, and perhaps -1."""
    left = left[left >= 0]
    if len(left) < len(classes):
        raise ValueError(
            f"split {split} trains on the classes {classes[left].tolist()} only; all of "
            f"{classes.tolist()} are needed: use stratified folds, or fewer of them"
        )


def _fold(test: np.ndarray, margins: np.ndarray, classes: np.ndarray, converged: bool) -> ClassFold:
    """The outcome of a split by f(x) of each pair, (m, n_pairs)."""
    predictions = classes[best_classes(margins, len(classes))]
    return ClassFold(test, predictions, class_values(margins, len(classes)), converged)
