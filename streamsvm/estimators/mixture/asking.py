"""What a mixture for two classes and one for several have in common: it asks a model, then the experts beside it."""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs.checks import n_rows
from streamsvm.estimators.learner import late
from streamsvm.estimators.learner.base import Learner
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.explaining import Explanation
from streamsvm.estimators.learner.state import State
from streamsvm.estimators.learners import LEARNERS, not_a_model
from streamsvm.estimators.mixture.experts import Experts
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest
from streamsvm.estimators.tuned.auto import AutoLASVM
from streamsvm.online.mixture.advice import Advice
from streamsvm.online.mixture.experts import NAMES

KINDS = {kind.__name__: kind for kind in (*LEARNERS.values(), OneVsRest, OneVsOne)}
OF_THE_MODEL = (
    *("n_members", "n_support", "support_ids", "dual_coef", "kernel_evaluations", "class_counts"),
    *("champion_", "champions_", "feature_weights_", "labels"),
)


class Asking(Learner):
    """A model, and experts beside it."""

    def __init__(self, model: Any = None) -> None:
        if model is not None and not isinstance(model, tuple(KINDS.values())):
            raise not_a_model(model, KINDS)
        self.model = model
        self._model: Any = AutoLASVM() if model is None else model
        self._experts = Experts()
        self._asked: dict[Hashable, Any] | None = None  # the features that were predicted last
        self._answer: Any = None

    def __getattr__(self, name: str) -> Any:
        """What only the model has: members and labels; see `OF_THE_MODEL`."""
        if name in OF_THE_MODEL:
            return getattr(self._model, name)
        raise AttributeError(f"a {type(self).__name__} has no {name!r}")

    @property
    def _common(self) -> State:  # type: ignore[override]  # that of the model
        common: State = self._model._common
        return common

    @property
    def _seen(self) -> State:
        seen: State = self._model._seen
        return seen

    def _labels_of(self, X: Any, y: Any, n: int) -> list[Hashable]:
        labels: list[Hashable] = self._model._labels_of(X, y, n)
        return labels

    @abstractmethod
    def _together(self, x: dict) -> Any:
        """What the model and all experts make of an example."""

    @abstractmethod
    def _said(self, margin: Any) -> tuple[Any, Any]:
        """The part of the experts and that of the model of what `margins_one` returned, or an error."""

    @abstractmethod
    def _have_experts_learn(self, x: dict, y: Any, said: Any) -> None:
        """Let the experts learn an example that the model has learned."""

    def _ask(self, x: dict) -> Any:
        """The answer of all experts together, computed once for a record that is predicted and then learned."""
        if x != self._asked:
            self._asked = None
            self._answer = self._together(x)
            self._asked = dict(x)
        return self._answer

    def _answers(self, X: Any) -> list:
        return [self._ask(x) for x in self._rows(X)]

    def _rows(self, X: Any) -> Iterator[dict]:
        """The examples of a batch to predict."""
        rows: Iterator[dict] = self._features.rows(X, learning=False)
        return rows

    def explain_one(self, x: dict, n: int = 3) -> Explanation:
        """Explain the answer of the model, as `LASVM.explain_one`: it may be another than that of all experts.

        Its `label` is the model's.  No expert can be explained by members.
        """
        why: Explanation = self._model.explain_one(x, n)
        return why

    @property
    def _is_tuned(self) -> bool:
        return isinstance(self._model, AutoLASVM)

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(
        self, x: dict, y: Any, w: float = 1.0, id: int | None = None, t: Any = None, margin: Any = None
    ) -> None:
        """Learn one example.

        Parameters
        ----------
        x, y, w, id, t
            As for `LASVM.learn_one`.
        margin
            If the label came late: what `margins_one` returned when the example was predicted.

        Raises
        ------
        ValueError, TypeError
            As `LASVM.learn_one`.
        """
        said, of_model = (None, None) if margin is None else self._said(margin)
        self._ask(x)
        self._model.learn_one(x, y, w, id, t, of_model)
        self._have_experts_learn(x, y, said)
        self._asked = None

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None, margins: Any = None) -> None:
        """Learn a batch of examples in sequence, as a loop of `learn_one`; see `LASVM.learn_many`."""
        n = n_rows(X)
        labels, weights = self._labels_of(X, y, n), arguments.weights_of(w, n).tolist()
        numbers = [None] * n if ids is None else arguments.ids_of(ids, n).tolist()
        times = [t] * n if t is None or np.ndim(t) == 0 else list(t)
        if len(times) != n:
            raise ValueError(f"t has {len(times)} entries for {n} rows of X; one for each row is needed")
        said = [None] * n if margins is None else late.each(margins, n, lambda margin: margin)
        rows = self._features.rows(X, learning=True)
        for each in zip(rows, labels, weights, numbers, times, said, strict=True):
            self.learn_one(*each)
        self._y_name = getattr(y, "name", None)

    def forget(self, ids: int | Iterable[int]) -> int:
        """Take examples out of the model, exactly; for what stays in the experts see the notes of the class."""
        self._asked = None
        left: int = self._model.forget(ids)
        return left

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples in the model, as `LASVM.relabel`; the experts keep what they have learned."""
        self._asked = None
        known: int = self._model.relabel(ids, y)
        return known

    @property
    def shares_(self) -> dict:
        """How much each part counts: the two stacks, which see all experts, and each expert alone."""
        return self._shares(self._experts.rules[0])

    def _shares(self, rule: Advice) -> dict[str, float]:
        return dict(zip(("stack, slow", "stack, fast", *NAMES), rule.shares.tolist(), strict=True))

    # ------------------------------------------------------------------------------------------------------ snapshots

    def _content(self) -> Content:
        (meta, arrays), (own, of_model) = self._experts.dump(), self._model._content()
        kind = self._model._name_in_snapshots()
        meta |= {"kind": kind, "is_given": self.model is not None, "model": own}
        return meta, arrays | {f"model.{name}": array for name, array in of_model.items()}

    def _learned_content(self) -> Content:
        meta, arrays = self._experts.dump()
        return meta | {"model": self._model.digest()}, arrays

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        kind = snapshot.field(meta, "kind", str)
        snapshot.require(kind in KINDS, f"a model of kind {kind!r}")
        model: Any = KINDS[kind]._of_meta(snapshot.field(meta, "model", dict), cache_mb, device)
        mixture = cls(model if snapshot.field(meta, "is_given", bool) else None)
        mixture._model = model
        return mixture

    def _take_over(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        of_model = {name[len("model.") :]: array for name, array in arrays.items() if name.startswith("model.")}
        self._model._take_over(meta["model"], of_model)
        self._experts.restore(meta, arrays)

    @classmethod
    def _name_in_snapshots(cls) -> str:
        return "Mixture"
