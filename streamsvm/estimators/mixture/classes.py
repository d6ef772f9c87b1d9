"""The mixture of several classes: a set of experts for each class, and one softmax over all classes."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import numpy as np

from streamsvm.estimators.inputs.checks import array_of_labels, frame_like, label_of, series_like
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.mixture.asking import Asking
from streamsvm.estimators.mixture.class_stack import ClassStack
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest
from streamsvm.online.mixture.experts import K

NO_CLASS = np.ones(0)


class MixtureOfClasses(Asking):
    """What differs from a mixture for two classes."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self._stack = ClassStack()
        self._make_room()

    def _make_room(self) -> None:
        """Let each class of the model have experts."""
        self._experts.know({}, len(self.labels))

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict]:
        yield {"model": OneVsRest(LASVM())}

    @property
    def _multiclass(self) -> bool:
        return True

    # ----------------------------------------------------------------------------------------------------- prediction

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probabilities of all classes."""
        return dict(zip(self.labels, self._ask(x).tolist(), strict=True))

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The most probable class; None before there is a class."""
        p = self._ask(x)
        return self.labels[int(p.argmax())] if len(p) else None

    def decision_function_one(self, x: dict) -> dict:
        """The log of the probability of each class."""
        return dict(zip(self.labels, np.log(self._ask(x)).tolist(), strict=True))

    def predict_proba_many(self, X: Any) -> Any:
        """The probabilities, a row for each example and a column for each of `labels`.

        A dataframe for a dataframe, otherwise an array (n, n_classes).
        """
        return frame_like(X, self.labels, self._table(X))

    def predict_many(self, X: Any) -> Any:
        """The most probable classes of all rows: a series for a dataframe, otherwise an array (n,)."""
        p, labels = self._table(X), self.labels
        best = p.argmax(axis=1) if labels else np.zeros(len(p), np.int64)
        return series_like(X, array_of_labels(labels or [None])[best], self._y_name)

    def decision_function_many(self, X: Any) -> np.ndarray:
        """The logs of the probabilities, (n, n_classes)."""
        return np.log(self._table(X))

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        return np.exp(margins)

    def _table(self, X: Any) -> np.ndarray:
        answers = self._answers(X)
        return np.reshape(answers, (len(answers), len(self.labels)))

    def _together(self, x: dict) -> Any:
        of_model = self._model.predict_proba_one(x)
        joint = self._experts.predict(x, of_model.values())
        return self._stack.predict(self._experts.logits, joint) if joint else NO_CLASS

    # ------------------------------------------------------------------------------------------------------- learning

    def margins_one(self, x: dict) -> tuple[Any, dict[Hashable, list[float]]]:
        """What the model and the experts say of an example whose label will come late.

        Keep it, and give it to `learn_one` as `margin` when the label has come.

        Parameters
        ----------
        x
            Features by name.

        Returns
        -------
        tuple
            What the model takes as its `margin`, and the probabilities of the model and the experts by class.
        """
        self._ask(x)
        model = self._model
        of_model = model.pair_values_one(x) if isinstance(model, OneVsOne) else model.decision_function_one(x)
        said = self._experts.probabilities[: len(self.labels)].tolist()
        return of_model, dict(zip(self.labels, said, strict=True))

    def margins_many(self, X: Any) -> list:
        """What `margins_one` returns for each row."""
        return [self.margins_one(x) for x in self._rows(X)]

    def _said(self, margin: Any) -> tuple[Any, Any]:
        of_model, by_class = margin if isinstance(margin, tuple) and len(margin) == 2 else (None, None)
        said = {label: np.array(p, float) for label, p in by_class.items()} if isinstance(by_class, Mapping) else None
        if said is None or any(p.shape != (K,) or not ((p >= 0.0) & (p <= 1.0)).all() for p in said.values()):
            raise ValueError(f"margin={margin!r:.100} must be what margins_one or margins_many returned")
        return said, of_model

    def _have_experts_learn(self, x: dict, y: Any, said: Any) -> None:
        labels, experts = self.labels, self._experts
        experts.know(x, len(labels))
        if said is not None:
            said = [said.get(label, p) for label, p in zip(labels, experts.probabilities, strict=True)]
        number = labels.index(label_of(y))
        joint = experts.learn(number, said)
        self._stack.learn(experts.logits, joint, number)

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples in the model; the experts keep what they have learned."""
        known = super().relabel(ids, y)
        self._make_room()
        return known

    @property
    def shares_(self) -> dict:
        """How much each part counts for each class, by label; see `Mixture.shares_`."""
        return dict(zip(self.labels, map(self._shares, self._experts.rules), strict=False))

    # ------------------------------------------------------------------------------------------------------ snapshots

    def _content(self) -> Content:
        meta, arrays = super()._content()
        return meta, arrays | self._stack.dump()

    def _learned_content(self) -> Content:
        meta, arrays = super()._learned_content()
        return meta, arrays | self._stack.dump()

    def _take_over(self, meta: Any, arrays: dict[str, np.ndarray]) -> None:
        super()._take_over(meta, arrays)
        self._stack.restore(arrays)
