"""What a cross-validation returns, and the comparison of two results over the same splits."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from streamsvm.core.rounding import SUM_ROUNDING
from streamsvm.validation.held_out.folds import Folds
from streamsvm.validation.held_out.outcome import Fold
from streamsvm.validation.scores import greater_is_better, measure, needs_values

DIGITS = round(-math.log10(SUM_ROUNDING))  # of scores that are compared: the rest is rounding of their sums


@dataclass(frozen=True, eq=False)
class Result:
    """The outcome of a cross-validation.

    Attributes
    ----------
    y
        Labels, (n,) bool.
    classes
        The caller's names of False and True.
    folds
        The splits.
    per_fold
        A `Fold` for each split.
    full
        The solution over all examples if the folds started from it, else None.  For a `SmoothSVM` it is the model of
        all examples.
    first
        Cost of `full`, or of the rough solution that tells which examples are near the margin, as a `Fold` without
        tested examples; None if there is neither.
    seeding
        The start that was chosen; for a `SmoothSVM` the solver.
    reason
        Why it was chosen.
    seconds
        Wall-clock time of the whole cross-validation.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> from streamsvm.validation import cross_validate
    >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 19
    >>> result = cross_validate(LASVM(C=10.0, gamma=0.01), X, y, k=4)
    >>> result.accuracy, result.scores("accuracy").shape, set(result.status)
    (0.95, (4,), {'converged'})
    """

    y: np.ndarray
    classes: np.ndarray
    folds: Folds
    per_fold: list[Fold]
    full: Any
    first: Fold | None
    seeding: str
    reason: str
    seconds: float

    @property
    def status(self) -> list[str]:
        """Why the solver stopped, for each fold; see `Fold`."""
        return [part.status for part in self.per_fold]

    @property
    def iterations(self) -> int:
        """Pair steps, including those of the full solution."""
        return sum(part.iterations for part in self._parts)

    @property
    def newton_steps(self) -> int:
        """Linear systems solved, including those of the full solution."""
        return sum(part.newton_steps for part in self._parts)

    @property
    def rows_computed(self) -> int:
        """Kernel rows computed, in all processes."""
        return sum(part.rows_computed for part in self._parts)

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed, in all processes."""
        return sum(part.kernel_evaluations for part in self._parts)

    @property
    def _parts(self) -> list[Fold]:
        return [*self.per_fold, *([] if self.first is None else [self.first])]

    @property
    def decision_values(self) -> np.ndarray:
        """Mean decision value of each example over the splits that test it, (n,); NaN if no split does."""
        return mean_of_tests(self.per_fold, "decision_values", len(self.y))

    @property
    def predictions(self) -> np.ndarray:
        """Class of each example by majority of the splits that test it, (n,); a tie goes to the first class.

        Raises
        ------
        ValueError
            If no split tests some of the examples.
        """
        share = mean_of_tests(self.per_fold, "predictions", len(self.y))
        if np.isnan(share).any():
            raise ValueError(f"no split tests {np.isnan(share).sum()} of the examples; per_fold has the others")
        return np.asarray(self.classes[(share > 0.5).astype(int)])

    @property
    def accuracy(self) -> float:
        """Share of right predictions over the tests of all splits."""
        return measure("accuracy", *self._tests)

    @property
    def g_mean(self) -> float:
        """Geometric mean of the recalls of both classes over the tests of all splits."""
        return measure("g_mean", *self._tests)

    @property
    def _tests(self) -> tuple[np.ndarray, np.ndarray]:
        """Labels and decision values of all tests; -1 or +1 where only the sign is known."""
        return (
            np.concatenate([self.y[part.test] for part in self.per_fold]),
            np.concatenate([_known(part) for part in self.per_fold]),
        )

    def __repr__(self) -> str:
        counts = Counter(self.status)
        status = repr(next(iter(counts))) if len(counts) == 1 else repr(dict(counts))
        return (
            f"Result({len(self.y)} examples, {len(self.per_fold)} splits, accuracy={self.accuracy:.4f}, "
            f"g_mean={self.g_mean:.4f}, status={status}, seeding={self.seeding!r}, iterations={self.iterations}, "
            f"seconds={self.seconds:.3f})"
        )

    def to_frame(self) -> Any:
        """A pandas data frame with a row for each test of an example.

        Its columns are split, example (its number), y, prediction (both by the caller's names) and decision_value (NaN
        where only the sign is known).

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        columns = {
            "split": np.repeat(np.arange(len(self.per_fold)), [len(part.test) for part in self.per_fold]),
            "example": np.concatenate([part.test for part in self.per_fold]),
            "decision_value": np.concatenate([part.decision_values for part in self.per_fold]),
        }
        predicted = np.concatenate([part.predictions for part in self.per_fold])
        names = {
            "y": self.classes[self.y[columns["example"]].astype(int)],
            "prediction": self.classes[predicted.astype(int)],
        }
        order = ("split", "example", "y", "prediction", "decision_value")
        return frame({name: (columns | names)[name] for name in order})

    def score(self, metric: Any) -> float:
        """A metric over the tests of all splits together; small folds need this for a curve.

        Parameters
        ----------
        metric
            See `streamsvm.validation.scores.measure`.

        Raises
        ------
        ValueError
            If the metric needs decision values, and ``values=False`` left some out.
        """
        self._require_values(metric)
        return measure(metric, *self._tests)

    def scores(self, metric: Any = "accuracy") -> np.ndarray:
        """A metric for each split, as `sklearn.model_selection.cross_val_score` gives it.

        Parameters
        ----------
        metric
            See `streamsvm.validation.scores.measure`.

        Raises
        ------
        ValueError
            If the metric needs decision values, and ``values=False`` left some out.
        """
        self._require_values(metric)
        return np.array([measure(metric, self.y[part.test], _known(part)) for part in self.per_fold])

    def _require_values(self, metric: Any) -> None:
        if needs_values(metric) and any(np.isnan(part.decision_values).any() for part in self.per_fold):
            raise ValueError(f"metric={metric!r} needs decision values that were not computed; use values=True")


def mean_of_tests(per_fold: Sequence[Any], name: str, n: int) -> np.ndarray:
    """The mean of what each split says of an example, by its name in the folds, (n, ...); NaN if no split tests it."""
    ids, values = (np.concatenate([getattr(part, what) for part in per_fold]) for what in ("test", name))
    total, times = np.zeros((n, *values.shape[1:])), np.bincount(ids, minlength=n)
    np.add.at(total, ids, values)
    total[times == 0] = np.nan
    return total / np.maximum(times, 1).reshape(-1, *[1] * (total.ndim - 1))


def frame(columns: dict[str, Any]) -> Any:
    """A pandas data frame of these columns; ImportError if pandas is missing."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas: pip install pandas") from None
    return pandas.DataFrame(columns)


def _known(part: Fold) -> np.ndarray:
    return np.where(np.isnan(part.decision_values), np.where(part.predictions, 1.0, -1.0), part.decision_values)


@dataclass(frozen=True, eq=False)
class Comparison:
    """The scores of two settings over the same splits.

    Attributes
    ----------
    first, second
        Scores of each split.
    greater_is_better
        Whether a larger score is better.
    """

    first: np.ndarray
    second: np.ndarray
    greater_is_better: bool

    @property
    def means(self) -> tuple[float, float]:
        """Mean score of each setting over the splits in which both have one; NaN if there is no such split."""
        both = np.isfinite(self.first) & np.isfinite(self.second)
        if not both.any():
            return float("nan"), float("nan")
        return float(self.first[both].mean()), float(self.second[both].mean())

    @property
    def wins(self) -> tuple[int, int, int]:
        """Number of splits in which the first is better, in which the second is, and in which they tie."""
        gain = np.round(self._gain, DIGITS)
        return int(np.sum(gain > 0)), int(np.sum(gain < 0)), int(np.sum(gain == 0))

    @property
    def _gain(self) -> np.ndarray:
        """Advantage of the first in each split; 0 where one of them has no score."""
        sign = 1.0 if self.greater_is_better else -1.0
        return np.asarray(sign * np.nan_to_num(self.first - self.second))

    @property
    def by_averaging(self) -> str | None:
        """``"first"`` or ``"second"``, the one with the better mean score; None if they are equal."""
        gain = round(float(np.sum(self._gain)), DIGITS)
        return None if gain == 0.0 else "first" if gain > 0.0 else "second"

    @property
    def by_voting(self) -> str | None:
        """``"first"`` or ``"second"``, the one that is better in more than half of the splits; None if neither is."""
        first, second, ties = self.wins
        half = (first + second + ties) / 2
        return "first" if first > half else "second" if second > half else None


def compare(first: Result, second: Result, metric: Any = "accuracy", *, greater: bool | None = None) -> Comparison:
    """Compare two settings by their mean scores and by the number of splits that each wins.

    Parameters
    ----------
    first, second
        Results over the same splits of the same examples.
    metric
        See `streamsvm.validation.scores.measure`.
    greater
        Whether a larger value of the metric is better.  Default: as a metric of river says.  A function is better when
        larger, unless its name ends with ``_loss`` or ``_error``.

    Returns
    -------
    Comparison
        Means, wins, and the better setting by each.

    Raises
    ------
    ValueError
        If the splits or the labels differ.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> from streamsvm.validation import cross_validate
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] > 0
    >>> curved, flat = (cross_validate(LASVM(kernel=kernel), X, y) for kernel in ("rbf", "linear"))
    >>> comparison = compare(curved, flat)
    >>> comparison.by_averaging, comparison.by_voting
    ('first', 'first')
    """
    same = len(first.folds) == len(second.folds) and np.array_equal(first.y, second.y)
    pairs = zip(
        [*first.folds.tests, *first.folds.left_out], [*second.folds.tests, *second.folds.left_out], strict=False
    )
    if not (same and all(np.array_equal(a, b) for a, b in pairs)):
        raise ValueError("the results are not over the same splits of the same examples; use the same folds= for both")
    up = greater_is_better(metric) if greater is None else greater
    return Comparison(first.scores(metric), second.scores(metric), up)
