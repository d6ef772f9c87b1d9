"""`ConformalClassifier`: a classifier that decides alone where that is safe."""

import hashlib
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from river import base

from streamsvm.conformal import saving
from streamsvm.conformal.decision import Decision
from streamsvm.conformal.guard import LARGEST_LEVEL, Guard, Tally
from streamsvm.conformal.left_out import can_leave_out, left_out_scores
from streamsvm.conformal.probabilities import said_of, takes_margins
from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs.checks import array_of_labels, frame_like, label_of, labels_of, n_rows, series_like
from streamsvm.estimators.lasvm import LASVM
from streamsvm.estimators.learner.copies import Content, Saved
from streamsvm.validation.rows import dicts_of

RENEWED = 20  # while labels are few, scores by leave-one-out are renewed after each 20th part of them


@fixed_parameters
class ConformalClassifier(Saved, base.Wrapper, base.MiniBatchClassifier):
    """Decide alone where that is safe, and say where a person must be asked.

    For each example it says which labels cannot be excluded.  If one is left, the example is *decided*.  Of the
    examples of each class, at most a share `error` is decided wrongly, also of a rare class, and also on a stream that
    changes; see Notes.

    Parameters
    ----------
    model
        A classifier with probabilities: a learner of this package, a `OneVsRest`, a `OneVsOne`, or one of river.
    error
        Largest share of the examples of each class that may be decided wrongly; above 0, at most 0.5.
    audit
        If only some labels come: the share of the decided examples that you draw at random and have labelled.  All
        examples that are not decided must get their labels.  Default: 1, every label comes.

    Raises
    ------
    ValueError, TypeError
        If a parameter is out of its range, or the model has no probabilities.

    Notes
    -----
    **The promise.**  Among any m successive labelled examples of a class, at most ``error * m + K`` are decided
    wrongly.  K is 20, 15 and 12 for an `error` of 0.1, 0.02 and 0.01; `promised` computes the sum.  It holds on every
    sequence of examples, and for every model.  A poor model asks more often.

    **Late labels.**  Keep what `decide_one` returned, and give it to `learn_one` when the label comes.  The errors of
    examples whose labels are on their way come on top, and K grows with the delay.

    **From few labels**, two classes are compared with leave-one-out scores as well: each member's, by the model without
    it.  This is for labels that come at once, and for all learners but `AutoLASVM`.  It ends when each class has
    ``3 / error`` scores, when there are ``6 / error`` labels, or when a `window` or a `budget` is full.

    **Probabilities** of two classes are corrected by the recent errors, while that makes them better.  `forget` leaves
    what these errors have changed as it is; it fades within some hundred examples.

    **Predictions** are the most probable labels.  A `threshold` of the model does not change them.

    **Cost**: 4 microseconds an example beside the model, and memory for 1000 examples of each class.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVM
    >>> from streamsvm.conformal import ConformalClassifier
    >>> model = ConformalClassifier(LASVM(), error=0.02)
    >>> for x, y in datasets.Bananas().take(3000):
    ...     labels = model.predict_set_one(x)  # (True,), (False,), or both: ask
    ...     model.learn_one(x, y)
    >>> model.tallies[True]
    Tally(n=1347, decided=996, wrong=28)
    """

    def __init__(self, model: Any, error: float = 0.1, audit: float = 1.0) -> None:
        if not (hasattr(model, "predict_proba_one") and hasattr(model, "learn_one")):
            raise TypeError(f"model={model!r} must be a classifier with predict_proba_one and learn_one, as LASVM()")
        _require_error(error)
        if not (arguments.is_number(audit) and 0.0 < audit <= 1.0):
            raise ValueError(f"audit={audit!r} must be a share above 0 and at most 1")
        self.model = model
        self.error = error
        self.audit = audit
        self._guard = Guard(float(error), float(audit))
        self._is_ours = takes_margins(model)
        self._y_name: Any = None

    @property
    def _wrapped_model(self) -> Any:
        return self.model

    @property
    def _multiclass(self) -> bool:
        return bool(self.model._multiclass)

    @classmethod
    def _unit_test_params(cls) -> Any:
        yield {"model": LASVM()}

    # ------------------------------------------------------------------------------------------------------- deciding

    def decide_one(self, x: dict) -> Decision:
        """What is said about an example: the labels that cannot be excluded, and what a late label needs.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> from streamsvm.conformal import ConformalClassifier
        >>> model = ConformalClassifier(LASVM())
        >>> said = model.decide_one({"a": 1.0})
        >>> said.decided, said.labels
        (False, (False, True))
        >>> model.learn_one({"a": 1.0}, True, said=said)  # its label came much later
        """
        return self._guard.decide(*said_of(self.model, x))

    def decide(self, margin: Any, p: dict[Any, float]) -> Decision:
        """What is said about an example of which the model has said this; see `decide_one`.

        Parameters
        ----------
        margin
            Its decision value, or values by label, as `learn_one` of the model takes them; None: not known.
        p
            The probability of each label.
        """
        return self._guard.decide(margin, p)

    def predict_set_one(self, x: dict) -> tuple[Hashable, ...]:
        """The labels that cannot be excluded, the most probable first.  One label: decided; several: ask."""
        return self.decide_one(x).labels

    def explain_one(self, x: dict, n: int = 3) -> Any:
        """Say why the model gives its answer; see `LASVM.explain_one`.

        The answer is that of `model`, which recent errors do not correct.
        """
        return self.model.explain_one(x, n)

    def predict_set_many(self, X: Any) -> list[tuple[Hashable, ...]]:
        """The labels that cannot be excluded for each row; see `predict_set_one`."""
        return [said.labels for said in self.decide_many(X)]

    def decide_many(self, X: Any) -> list[Decision]:
        """What is said about each row; see `decide_one`."""
        return [self.decide_one(x) for x in dicts_of(X)]

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The most probable label; None before there is one."""
        return self.decide_one(x).label

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """The probability of each label."""
        return self.decide_one(x).p

    def predict_many(self, X: Any, **kwargs: Any) -> Any:
        """The most probable labels: a series for a dataframe, otherwise an array (n,)."""
        return series_like(X, array_of_labels([said.label for said in self.decide_many(X)]), self._y_name)

    def predict_proba_many(self, X: Any, **kwargs: Any) -> Any:
        """The probabilities, a column for each label: a dataframe for a dataframe, otherwise an array."""
        found = [said.p for said in self.decide_many(X)]
        labels = list(found[0]) if found else []
        values = np.array([[p[label] for label in labels] for p in found]).reshape(n_rows(X), len(labels))
        return frame_like(X, labels, values)

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Hashable, *given: Any, said: Decision | None = None, **others: Any) -> None:
        """Learn an example and what its label says of the decision.

        Parameters
        ----------
        x, y
            Features by name, and the label.
        *given, **others
            Weight, id and time, as the model's `learn_one` takes them.
        said
            What `decide_one` returned for the example, if the label came late; default: what it says now.

        Raises
        ------
        ValueError, TypeError
            As the model raises them; nothing is learned then.
        """
        guard = self._guard
        if said is None:
            said = self.decide_one(x)
        elif not isinstance(said, Decision):
            raise TypeError(f"said={said!r:.60} must be what `decide_one` returned for this example")
        elif said.known != guard.n and said.margin is not None and self._is_ours:
            others["margin"] = said.margin  # the model has changed since
        number: Any = given[1] if len(given) > 1 else others.get("id")
        if number is None:  # what the model counts; one without ids gets numbers
            number = getattr(self.model, "next_id", guard.n)
        self.model.learn_one(x, y, *given, **others)
        label = y if type(y) is bool else self._label_of(y)
        guard.note(int(number), said, label)
        if guard.n <= guard.few_until or guard.left_out:
            self._look_at_few(said.known + 1 < guard.n)

    def _look_at_few(self, is_late: bool) -> None:
        """Renew the scores by leave-one-out, or drop them: a late label's model knew less than they suppose."""
        guard = self._guard
        if is_late or guard.is_better or not (guard.needs_few and can_leave_out(self.model)):
            guard.left_out = {}
        elif guard.n % max(1, guard.n // RENEWED) == 0:
            guard.left_out = left_out_scores(self.model)

    def _label_of(self, y: Any) -> Hashable:
        """A label as the model names it in its probabilities."""
        if not self._is_ours or self._multiclass:
            return label_of(y)
        return arguments.label_of(y)

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, said: Any = None, **others: Any) -> None:
        """Learn a batch in sequence, as a loop of `learn_one` would.

        Parameters
        ----------
        X, y
            The rows and their labels.
        w, ids
            Weights and ids, as the model's `learn_many` takes them.
        said
            What `decide_many` returned for the rows, if the labels came late.
        **others
            What the model's `learn_one` takes beside, the same for all rows.
        """
        n = n_rows(X)
        labels = labels_of(y, n)
        if said is not None and len(said) != n:
            raise ValueError(f"said has {len(said)} entries for {n} rows of X; one for each row is needed")
        numbers = None if ids is None else arguments.ids_of(ids, n).tolist()
        weights = None if w is None else arguments.weights_of(w, n).tolist()
        for i, x in enumerate(dicts_of(X)):
            given = ({} if numbers is None else {"id": numbers[i]}) | ({} if weights is None else {"w": weights[i]})
            self.learn_one(x, labels[i], said=None if said is None else said[i], **given, **others)
        self._y_name = getattr(y, "name", None)

    def forget(self, ids: Any) -> int:
        """Make the model forget examples, and take back what their labels said; see `LASVM.forget`.

        Of each class, the last 1000 labels can be taken back.  Older ones have no effect any more.
        """
        numbers = arguments.numbers_of(ids)
        n = int(self.model.forget(numbers))
        self._guard.forget(numbers.tolist())
        self._renew_few()
        return n

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct labels in the model, and what they said of the decisions; see `LASVM.relabel` and `forget`."""
        numbers = arguments.numbers_of(ids, in_order=np.ndim(y) > 0)
        n = int(self.model.relabel(numbers, y))
        for number, label in zip(numbers.tolist(), np.broadcast_to(np.array(y, object), numbers.shape), strict=True):
            self._guard.relabel(number, self._label_of(label))
        self._renew_few()
        return n

    def _renew_few(self) -> None:
        if self._guard.left_out:
            self._guard.left_out = left_out_scores(self.model) if self._guard.needs_few else {}

    # ------------------------------------------------------------------------------------------------------ the promise

    @property
    def tallies(self) -> dict[Hashable, Tally]:
        """How each class fared: its labelled examples, how many were decided alone, and how many of these wrongly."""
        return {label: own.tally for label, own in self._guard.classes.items()}

    def promised(self, m: int) -> float:
        """How many of m successive labelled examples of a class are decided wrongly at most.

        With an `audit`, in 19 of 20 cases: the audited examples are a sample.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> from streamsvm.conformal import ConformalClassifier
        >>> round(ConformalClassifier(LASVM(), error=0.02).promised(1000))
        35
        """
        arguments.require_count("m", m, 0)
        return self._guard.promised(m)

    def would_decide(self, error: float) -> float:
        """The share of examples like the last ones that another `error` would decide; NaN before the first label.

        It judges the last 1000 labelled examples of each class by the thresholds that let this share of them go wrong.

        Examples
        --------
        >>> from river import datasets
        >>> from streamsvm import LASVM
        >>> from streamsvm.conformal import ConformalClassifier
        >>> model = ConformalClassifier(LASVM(), error=0.02)
        >>> for x, y in datasets.Bananas().take(3000):
        ...     model.learn_one(x, y)
        >>> [round(model.would_decide(error), 2) for error in (0.01, 0.02, 0.05, 0.1)]
        [0.63, 0.71, 0.86, 0.96]
        """
        _require_error(error)
        return self._guard.would_decide(error)

    # ------------------------------------------------------------------------------------------------------- snapshots

    @classmethod
    def load(cls, path: str | Path, cache_mb: float | None = None, device: str | None = None) -> Self:
        """Read from a file that `save` wrote; for the parameters see `LASVM.from_bytes`."""
        return cls.from_bytes(snapshot.read(path), cache_mb, device)

    @classmethod
    def from_bytes(cls, data: bytes, cache_mb: float | None = None, device: str | None = None) -> Self:
        """Read what `to_bytes` wrote, with the model inside; for the parameters see `LASVM.from_bytes`."""
        return cls._of_snapshot(snapshot.opened(data), cache_mb, device)

    def _content(self) -> Content:
        meta, arrays = self._learned_content()
        return meta, arrays | {"model": saving.model_bytes(self.model)}

    def _learned_content(self) -> Content:
        """What the wrapper has learned, without the model."""
        meta, arrays = saving.dumped(self._guard)
        return meta | {"error": self.error, "audit": self.audit}, arrays

    @classmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> Self:
        model = saving.model_of(snapshot.blob_of(arrays, "model"), *how)
        self = cls(model, snapshot.field(meta, "error", float), snapshot.field(meta, "audit", float, int))
        saving.restore(self._guard, meta, arrays)
        return self

    def digest(self) -> str:
        """SHA-256 of what was learned, by the model and by the wrapper."""
        own = snapshot.pack(self._name_in_snapshots(), *self._learned_content())
        return hashlib.sha256(own + self.model.digest().encode()).hexdigest()


def _require_error(error: float) -> None:
    if not (arguments.is_number(error) and 0.0 < error <= LARGEST_LEVEL):
        raise ValueError(f"error={error!r} must be a share above 0 and at most {LARGEST_LEVEL}")
