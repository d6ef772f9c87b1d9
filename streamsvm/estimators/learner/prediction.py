"""What a model says about examples, and what it has learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamsvm.core import arguments
from streamsvm.core import sparse as sp
from streamsvm.core.expansion import SLOTS
from streamsvm.core.storage import rows_of
from streamsvm.estimators.inputs.checks import frame_like, n_rows, series_like
from streamsvm.estimators.learner.explaining import Explanation, of_two_labels
from streamsvm.estimators.learner.state import State, asked, batches, in_room
from streamsvm.estimators.learner.validation import too_large_a_kernel, validate_one
from streamsvm.online import arrival
from streamsvm.online.outputs.calibration import CUT
from streamsvm.online.outputs.sigmoid import probabilities, probability


class Predictor:
    """What a model answers from its state, which it does not change."""

    _state: State
    _y_name: Any

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_members(self) -> int:
        """Number of examples that the model stores: support vectors, and candidates with coefficient 0."""
        return self._state.n_members

    @property
    def n_support(self) -> int:
        """Number of support vectors: members with a coefficient other than 0."""
        return int(np.count_nonzero(self._state.expansion.alpha[: self._state.expansion.counts[SLOTS]]))

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the support vectors, (n_support,) int64."""
        return self._state.expansion.ids[np.flatnonzero(self._state.expansion.alpha)]

    @property
    def dual_coef(self) -> np.ndarray:
        """Coefficients of the support vectors, (n_support,) float64, in the order of `support_ids`.

        They carry the sign of the label: f(x) is their sum over the kernel values, plus `bias`.
        """
        return self._state.expansion.alpha[np.flatnonzero(self._state.expansion.alpha)]

    @property
    def support_vectors(self) -> sp.csr_matrix:
        """Features of the support vectors as the kernel sees them, that is scaled if the model scales them.

        Rows as in `support_ids`, columns as in `feature_names`.
        """
        return self.support_vectors_of(self.support_ids)

    def support_vectors_of(self, ids: Sequence[int] | np.ndarray) -> sp.csr_matrix:
        """The rows of `support_vectors` with these ids, in the order of `support_ids`; others are left out.

        The cost depends on the number of ids, and hardly on the number of support vectors.
        """
        s = self._state.expansion
        wanted = np.isin(s.ids, arguments.numbers_of(ids)) & (s.alpha != 0.0)
        return self._state.scale.unshifted(rows_of(s, np.flatnonzero(wanted), len(self._state.features.learned())))

    @property
    def decision_threshold(self) -> float:
        """Above this f(x) the prediction is True: `threshold`, or what was learned so far if that is ``"gmean"``."""
        return float(self._state.calibration[CUT])

    @property
    def slopes(self) -> tuple[float, float]:
        """Slopes a of the probability 1 / (1 + exp(-a f)), for f <= 0 and for f > 0."""
        return float(self._state.sigmoid[0]), float(self._state.sigmoid[2])

    @property
    def bias(self) -> float:
        """The constant term b of the decision function f(x); always 0 without a bias."""
        return self._state.bias

    @property
    def gamma_in_use(self) -> float:
        """The kernel's factor: `gamma` if that is a number, otherwise what ``"scale"`` stands for at present."""
        return self._state.kernel.gamma

    # ----------------------------------------------------------------------------------------------------- prediction

    def decision_function_one(self, x: dict) -> float:
        """The decision value f(x): above 0 for the positive class, and beyond 1 or -1 outside the margin."""
        return decide_one(self._state, x)

    def predict_one(self, x: dict, **kwargs: Any) -> bool:
        """The predicted label: True if f(x) is above `decision_threshold`.  False before anything was learned."""
        return bool(decide_one(self._state, x) > self._state.calibration[CUT])

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
        return probability(self._state.sigmoid, margin)

    def probability(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of True that belong to these decision values, an array of the same shape."""
        return probabilities(self._state.sigmoid, margins)

    def explain_one(self, x: dict, n: int = 3) -> Explanation:
        """Say why the model gives its answer: which members carry it, and which features would change it.

        Parameters
        ----------
        x
            Features by name.
        n
            How many members for and against the answer, and how many features to name; at least 1.

        Returns
        -------
        Explanation
            The label, its margin, the members with their ids and shares, and the features with their slopes.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or if `n` is not a number from 1 on.

        Examples
        --------
        >>> from river import datasets
        >>> from streamsvm import LASVM
        >>> model, rows = LASVM(), list(datasets.Phishing())
        >>> for number, (x, y) in enumerate(rows[:1200]):
        ...     model.learn_one(x, y, id=number)
        >>> model.finish()
        >>> why = model.explain_one(rows[1200][0])
        >>> why.label, round(why.margin, 1), why.members[0].id, why.features[0].name
        (True, 2.0, 1002, 'ip_in_url')
        """
        arguments.require_count("n", n, 1)
        return of_two_labels(self._state, x, n)

    def decision_function_many(self, X: Any) -> Any:
        """The decision values of all rows: a series for a dataframe, otherwise an array (n,)."""
        return series_like(X, decide(self._state, X), None)

    def predict_many(self, X: Any) -> Any:
        """The predicted labels of all rows: a series for a dataframe, otherwise an array (n,) of bool."""
        return series_like(X, decide(self._state, X) > self.decision_threshold, self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities of False and True for all rows: a dataframe for a dataframe, otherwise an array (n, 2)."""
        p = self.probability(decide(self._state, X))
        return frame_like(X, [False, True], np.column_stack([1.0 - p, p]))


def decide_one(state: State, x: dict) -> float:
    """f(x) of one example."""
    features = asked(state, x)
    bias = state.problem.bias(state.expansion)
    margin = arrival.decide_example(in_room(state), state.scale.state, state.kernel, features, bias)
    if not math.isfinite(margin):
        validate_one(state, x)
        raise too_large_a_kernel(state, f"x={x!r}")
    return margin


def decide(state: State, X: Any) -> np.ndarray:
    """f(x) of all rows, (n,)."""
    n = n_rows(X)
    state.features.settle()
    engine, bias = (in_room(state), state.kernel), state.bias
    table = None if state.scale.is_active else state.features.table(X)
    if table is not None:
        found = state.evaluator.decide_table(*engine, *table, bias)
        if found is not None and np.isfinite(found).all():
            return found
    at_once = state.evaluator.queries_at_once(state.expansion, n)
    queries = (q for _, q in batches(state, X, learning=False, at_once=at_once))
    margins = np.concatenate([np.empty(0), *state.evaluator.decide_blocks(*engine, queries, bias, n)])
    if not np.isfinite(margins).all():
        raise too_large_a_kernel(state, f"X[{int(np.argmin(np.isfinite(margins)))}]")
    return margins
