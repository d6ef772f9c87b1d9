"""What a model says about examples without learning them: labels, probabilities, decision values."""

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from river.utils import dataframe

from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, is_bounded, largest_self_product
from streamsvm.estimators.inputs.checks import culprit, is_frame, n_rows, not_finite, series_like, too_large
from streamsvm.estimators.inputs.raw_rows import one_row
from streamsvm.estimators.learner.model import OnlineModel
from streamsvm.online import arrival
from streamsvm.online.outputs.calibration import CUT
from streamsvm.online.outputs.sigmoid import probabilities, probability


class KernelOverflow(ValueError):  # noqa: N818 - names the condition
    """The kernel of an example with itself is too large, by the gamma that is in use when the example's turn comes."""


class Prediction(OnlineModel):
    """Validation and prediction."""

    # ------------------------------------------------------------------------------------------------------ validation

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        self._features.require_room(x)
        self._require_learnable(x, *self._features.example(x, learning=False))

    def validate_many(self, X: Any) -> None:
        """Raise the ValueError or TypeError that `learn_many` would raise for these features; learn nothing."""
        features, scale = self._features.copy(), self._scale.copy()
        for rows, raw in features.raw_batches(X, learning=True):
            scale.fit_room(features)
            if not is_bounded(self._kernel):
                self._require_kernel(rows.start, scale.queries(raw).sq)

    def _require_learnable(self, x: Mapping[Hashable, Any], columns: np.ndarray, values: np.ndarray) -> None:
        """Raise a ValueError if an example is to be refused; its new columns stay provisional."""
        raw = one_row(columns, values)
        if too_large(raw.sq):
            raise self._too_large(x)
        if not is_bounded(self._kernel):
            self._require_kernel(self._n_seen, self._scale.queries(raw).sq if self._scale.is_active else raw.sq)

    def _require_kernel(self, first: int, sq: np.ndarray) -> None:
        """Raise a ValueError if k(x, x) is too large for an example, given squared norms from number `first` on."""
        if largest_self_product(self._kernel, sq) > LARGEST_KERNEL_VALUE:
            raise self._overflow(first + int(np.argmax(sq)))

    def _too_large(self, x: Mapping[Hashable, Any]) -> ValueError:
        name = list(x)[culprit(self._features.example(x, learning=False)[1])]
        return not_finite(name, x[name])

    def _overflow(self, row: int) -> ValueError:
        limit = f"{LARGEST_KERNEL_VALUE:g}"
        return KernelOverflow(
            f"the {self.kernel} kernel of example {row} with itself is above {limit}; scale the features"
        )

    def _too_large_a_kernel(self, which: str) -> ValueError:
        return ValueError(f"{which}: the {self.kernel} kernel is too large for single precision; scale the features")

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function_one(self, x: dict) -> float:
        """The decision value f(x): above 0 for the positive class, and beyond 1 or -1 outside the margin."""
        features = arrival.Features(*self._features.example(x, learning=False))
        if len(features.columns) < len(self._features.columns):
            self._notice_lacking(features.columns, 1)
        margin = arrival.decide_example(self._in_room, self._scale.state, self._kernel, features, self.bias)
        if not math.isfinite(margin):
            self.validate_one(x)
            raise self._too_large_a_kernel(f"x={x!r}")
        return margin

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The predicted label: True if f(x) is above `decision_threshold`.  False before anything was learned."""
        return bool(self.decision_function_one(x) > self._calibration[CUT])

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities of False and True.

        A sigmoid turns f(x) into a probability.  It is fitted while learning, to each example's f(x) before the example
        is learned, and costs no extra kernel values.  It does not depend on the `threshold`: the more probable label is
        that of f(x) > 0, so with another threshold than 0 it may differ from the predicted one.
        """
        p = self.probability_one(self.decision_function_one(x))
        return {False: 1.0 - p, True: p}

    def probability_one(self, margin: float) -> float:
        """The probability of True that belongs to this decision value."""
        return probability(self._sigmoid, margin)

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of True that belong to these decision values, an array of the same shape."""
        return probabilities(self._sigmoid, margins)

    def _decide_many(self, X: Any) -> np.ndarray:
        n = n_rows(X)
        self._features.settle()
        engine, b = (self._in_room, self._kernel), self.bias
        table = None if self._scale.is_active else self._features.table(X)
        if table is not None:
            found = self._evaluator.decide_table(*engine, *table, b)
            if found is not None and np.isfinite(found).all():
                return found
        at_once = self._evaluator.queries_at_once(self._expansion, n)
        queries = (q for _, q in self._batches(X, learning=False, at_once=at_once))
        margins = np.concatenate([np.empty(0), *self._evaluator.decide_blocks(*engine, queries, b, n)])
        if not np.isfinite(margins).all():
            raise self._too_large_a_kernel(f"X[{int(np.argmin(np.isfinite(margins)))}]")
        return margins

    def decision_function_many(self, X: Any) -> Any:
        """The decision values of all rows: a series for a dataframe, otherwise an array (n,)."""
        return series_like(X, self._decide_many(X), None)

    def predict_many(self, X: Any) -> Any:
        """The predicted labels of all rows: a series for a dataframe, otherwise an array (n,) of bool."""
        return series_like(X, self._decide_many(X) > self.decision_threshold, self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of False and True for all rows: a dataframe for a dataframe, otherwise an array (n, 2)."""
        p = self.probability(self._decide_many(X))
        if is_frame(X):
            return dataframe.to_native_frame({False: 1.0 - p, True: p}, like=dataframe.into_frame(X))
        return np.column_stack([1.0 - p, p])
