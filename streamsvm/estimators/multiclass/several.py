"""What classifiers for several classes have in common, however many models they have."""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.expansion import EVALUATIONS, SLOTS
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import SnapshotError, require
from streamsvm.estimators.inputs.checks import (
    array_of_labels,
    frame_like,
    is_frame,
    label_of,
    labels_of,
    n_rows,
    plain_names,
    require_plain,
    series_like,
    too_large,
)
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner import late, snapshots
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.explaining import Explanation, Part, of_classes
from streamsvm.estimators.learner.state import batches
from streamsvm.estimators.learner.validation import too_large_a_kernel
from streamsvm.estimators.learners import ALGORITHMS, not_a_model
from streamsvm.estimators.multiclass.forgetting import ForgettingModels
from streamsvm.online import union
from streamsvm.online.outputs.calibration import RUN
from streamsvm.online.outputs.sigmoid import probabilities


class MulticlassSVM(ForgettingModels):
    """What classifiers for several classes have in common, however many models they have."""

    _learners: ClassVar[dict[str, Any]]  # The classes that `model` may be of, by their names.

    def __init__(self, model: Any, classes: Iterable[Hashable] | None = None) -> None:
        if type(model) not in self._learners.values():
            own = type(self).__name__
            hint = f"; steps of a pipeline go before it, as in Records() | {own}(LASVM()), and a Mixture around it"
            raise not_a_model(model, self._learners, hint)
        if type(model) in ALGORITHMS.values() and model.budget is not None and model.on_budget == "merge":
            raise ValueError('on_budget="merge" makes members that only one model has; use "remove" or "project"')
        if getattr(model, "threshold", 0.0) != 0.0:
            raise ValueError(
                f"threshold={model.threshold!r} has no use for several classes: the most probable class is predicted; "
                "leave it at 0"
            )
        if isinstance(classes, str | Mapping) or is_frame(classes):
            raise TypeError(f"classes={classes!r:.60} must be a list of labels")
        super().__init__(model)
        self.classes = classes
        for label in () if classes is None else classes:
            label = label_of(label, "classes holds")
            if label in self.labels:
                raise ValueError(f"classes holds {label!r} twice")
            self._start(label)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict]:
        yield {"model": LASVM()}

    # --------------------------------------------------------------------------------- what the kinds tell differently

    @abstractmethod
    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        """The probabilities of the classes, (B, n_classes)."""

    @abstractmethod
    def _keys(self, labels: list[Hashable]) -> list:
        """The keys of the models for these classes, in their order."""

    @abstractmethod
    def _duel(self, label: int, rival: int) -> list[Part]:
        """The models whose decision values add up to the margin of one class over another."""

    def _probabilities_of_models(self, margins: np.ndarray) -> np.ndarray:
        """The probability of its positive class by each model alone, (B, n_models)."""
        sigmoids = np.reshape([state.sigmoid for state in self._predicting()], (-1, RUN))
        return probabilities(sigmoids, np.ascontiguousarray(margins))

    @property
    def _multiclass(self) -> bool:
        return True

    def _label_of(self, y: Any) -> Hashable:
        return label_of(y)

    def _labels_of(self, X: Any, y: Any, n: int) -> list[Hashable]:
        return labels_of(y, n)

    def _said_of(self, margin: Any) -> Mapping[Hashable, float]:
        return late.by_key(margin)

    @property
    def gamma_in_use(self) -> float:
        """The kernel's factor: `gamma` if that is a number, otherwise what ``"scale"`` stands for at present."""
        return self._common.kernel.gamma

    # ----------------------------------------------------------------------------------------------------- prediction

    def _decide_one(self, x: dict) -> np.ndarray:
        raw = self._row_of(x, learning=False)
        margins = np.full((1, 1), np.nan) if too_large(raw.sq) else self._decide(self._common.scale.queries(raw))
        if not np.isfinite(margins).all():
            self.validate_one(x)
            raise too_large_a_kernel(self._common, f"x={x!r}")
        return margins[0]

    def _decide_many(self, X: Any) -> np.ndarray:
        margins = np.empty((n_rows(X), len(self._keys(self.labels))))
        for rows, q in batches(self._common, X, learning=False):
            margins[rows] = self._decide(q)
        if not np.isfinite(margins).all():
            row = int(np.argmin(np.isfinite(margins).all(axis=1)))
            raise too_large_a_kernel(self._common, f"X[{row}]")
        return margins

    def decision_function_one(self, x: dict) -> dict:
        """The decision value of each class."""
        values = self._values(self._decide_one(x)[np.newaxis])
        return dict(zip(self.labels, values[0].tolist(), strict=True))

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The predicted class; None before there is a class."""
        margins, labels = self._decide_one(x)[np.newaxis], self.labels
        return labels[int(self._best(margins)[0])] if labels else None

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities of all classes."""
        p = self._probabilities(self._decide_one(x)[np.newaxis])
        return dict(zip(self.labels, p[0].tolist(), strict=True))

    def explain_one(self, x: dict, n: int = 3) -> Explanation:
        """Say why the most probable class is predicted and not the second most probable; see `LASVM.explain_one`.

        The margin is the difference of both classes' decision values for `OneVsRest`, and the decision value of the
        pair for `OneVsOne`.  It may be below 0, as another rule chooses the class.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, if `n` is not a number from 1 on, or if no class was learned yet.
        """
        arguments.require_count("n", n, 1)
        if not self.labels:
            raise ValueError("the model has learned no class yet, so there is no answer to explain")
        margins = self._decide_one(x)[np.newaxis]
        best = int(self._best(margins)[0])
        others = self._probabilities(margins)[0]
        others[best] = -np.inf
        rival = int(others.argmax())
        labels = self.labels[best], self.labels[rival] if rival != best else None, None
        return of_classes(self._duel(best, rival), x, n, labels, self._ids_of)

    def decision_function_many(self, X: Any) -> Any:
        """The decision values, a row for each example and a column for each of `labels`.

        A dataframe for a dataframe, otherwise an array (n, n_classes).
        """
        return frame_like(X, self.labels, self._values(self._decide_many(X)))

    def predict_many(self, X: Any) -> Any:
        """The predicted classes of all rows: a series for a dataframe, otherwise an array (n,)."""
        margins = self._decide_many(X)
        best = self._best(margins) if self.labels else np.zeros(len(margins), np.int64)
        return series_like(X, array_of_labels(self.labels or [None])[best], self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities, a row for each example and a column for each of `labels`.

        A dataframe for a dataframe, otherwise an array (n, n_classes).
        """
        return frame_like(X, self.labels, self._probabilities(self._decide_many(X)))

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def n_support(self) -> int:
        """Number of examples that are support vectors of at least one model."""
        return len(self._members(support=True)[0])

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the examples that are support vectors of at least one model, in the order of their arrival."""
        numbers, _ = self._members(support=True)
        return self._ids_of(numbers)

    @property
    def dual_coef(self) -> np.ndarray:
        """Coefficients, (n_models, n_support) float64: a row for each model, columns as in `support_ids`."""
        support, _ = self._members(support=True)
        coefficients = np.zeros((len(self._models), len(support)))
        for row, (numbers, alpha, _) in zip(coefficients, self._parts(), strict=True):
            row[np.searchsorted(support, numbers[alpha != 0.0])] = alpha[alpha != 0.0]
        return coefficients

    @property
    def bias(self) -> np.ndarray:
        """Constant terms of the models' decision functions, (n_models,) float64."""
        return np.array([bias for *_, bias in self._parts()])

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values computed so far, while learning and predicting: shared ones and each model's own."""
        own = sum(state.kernel_evaluations for state in self._current().values())
        return int(self._union.vectors.counts[EVALUATIONS]) + own

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        require_plain("label", [*self.labels, *(self.classes or ())])
        meta, arrays = self._content_with(self.model._get_params())
        meta["algorithm"], meta["labels"] = type(self.model).__name__, self.labels
        return meta | {"classes": None if self.classes is None else list(self.classes)}, arrays

    def _states(self) -> Content:
        sizes = len(self._features), self._common.scale.n_places
        states, arrays = [], {f"union.{name}": array for name, array in union.dump(self._union, *sizes).items()}
        for k, state in enumerate(self._models.values()):
            states.append(snapshots.counts_of(state))
            arrays |= {f"{k}.{name}": array for name, array in snapshots.arrays_of(state).items()}
        return {"states": states}, arrays

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        algorithm = snapshot.field(meta, "algorithm", str)
        if algorithm not in cls._learners:
            raise SnapshotError(f"the algorithm {algorithm!r} is unknown to this version")
        return cls(cls._learners[algorithm]._of_meta(meta, cache_mb, device))

    def _restore_states(self, meta: Mapping[str, Any], parts: Mapping[str, dict[str, np.ndarray]]) -> None:
        classes, labels = snapshot.field(meta, "classes", list, type(None)), plain_names(meta, "labels")
        states, keys = snapshot.field(meta, "states", list), self._keys(labels)
        require(len(keys) == len(states), f"there are {len(labels)} labels, {len(states)} states")
        require(labels[: len(classes or [])] == (classes or []), "the labels do not begin with the classes")
        vars(self)["classes"] = classes
        self._restore_models(dict(zip(keys, states, strict=True)), parts)

    def _restore_models(self, states: Mapping[Hashable, Any], parts: Mapping[str, dict[str, np.ndarray]]) -> None:
        """Take over the models by their keys, with the arrays of each model by its number."""
        sizes = len(self._features), self._common.scale.n_raw
        self._union = union.restore(parts.get("union", {}), self._common.kernel, *sizes, self.n_seen)
        live = self._union.live_slots()
        snapshots.go_on_above(self._common, self._union.user_ids[live])
        known = self._union.numbers[live]
        models = {}
        for k, (key, stored) in enumerate(states.items()):
            models[key] = state = self._new_model((0, 0))
            snapshots.restore(state, stored, parts.get(str(k), {}))
            s = state.expansion
            require(np.isin(s.ids[: s.counts[SLOTS]], known).all(), f"the vectors of {key!r} are not stored")
        self._models = models

    def _learned_content(self) -> Content:
        self._features.settle()
        live = self._union.live_slots()
        live = live[np.isin(self._union.numbers[live], self._members()[0])]  # others have left all models, and may go
        arrays = {
            "numbers": self._union.numbers[live],
            "user_ids": self._union.user_ids[live],
            "weights": self._union.weights[live],
        }
        meta = {
            "labels": [repr(label) for label in self.labels],
            "n_seen": self.n_seen,
            "next_id": self.next_id,
            "digests": [self._binary(key).digest() for key in self._models],
        }
        return meta, arrays
