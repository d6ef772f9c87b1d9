"""`OneVsRest`: several classes, with a model for each of them."""

from collections.abc import Hashable, Iterable, Iterator
from typing import Any, ClassVar

import numpy as np

from streamsvm.core.fixed import fixed_parameters
from streamsvm.estimators.learner import late
from streamsvm.estimators.learner.explaining import NEITHERS, OWN, RIVALS, Part
from streamsvm.estimators.learners import LEARNERS
from streamsvm.estimators.multiclass.binary_models import known_once
from streamsvm.estimators.multiclass.several import MulticlassSVM
from streamsvm.estimators.multiclass.tuned_classes import TunedClasses
from streamsvm.estimators.tuned.auto import AutoLASVM


@fixed_parameters
class OneVsRest(MulticlassSVM):
    """A classifier for several classes: one online support vector machine for each class.

    Each model learns every example: as positive if the example is of its class, as negative otherwise.  The prediction
    is the class with the largest probability, the first of equal ones.  The models share kernel values, which are
    computed once, and the scale of the features.  With ``classes=[...]`` and a number for `gamma`, each model equals
    one trained alone without a reservoir, bit for bit.

    A label is anything hashable, and a new class may appear at any time.  Its model learns the first example, then the
    members of the other models as negatives.

    Parameters
    ----------
    model
        The model that is copied for each class: a `LASVM`, `LASVMG`, `LASVMNC`, `LASVMI`, `FullSVM` or `AutoLASVM`.
        Its `budget`, `window` and `cache_mb` hold for each class; its `reservoir` is not used.
    classes
        Labels known beforehand; default: none.  Their models learn from the first example on.

    Raises
    ------
    ValueError, TypeError
        If the model is another one, has ``on_budget="merge"`` or a `threshold`, or if a label occurs twice.

    Notes
    -----
    **Cost.**  The models share the kernel values of common members.  With `FullSVM`, all members are common; otherwise
    fewer are.  Memory is not shared: each class's model stores the features of its members.

    **Models that tune themselves.**  With an `AutoLASVM`, each class has its own C, gamma and window: `champions_` has
    them by label, and `histories_` says when they took over.  These models share the scale and no kernel values.  A new
    class begins with a warm-up of its own.

    **Weights.**  With ``pos_weight="balanced"``, each class's model weights its own examples against all others.

    **Order.**  The classes' models have no `reservoir`: `finish` knows only the members.  Shuffle a stream that is
    sorted by class if you can.

    **Probabilities** are those of the classes' models, scaled to a sum of 1.  Each model fits a sigmoid of its own, so
    the most probable class may differ from the one with the largest decision value.  It is right more often: on 10 of
    14 streams.

    **Interruptions.**  If learning is interrupted (Ctrl-C), all classes first learn what some of them have learned: at
    most 256 examples.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVM, OneVsRest
    >>> model = OneVsRest(LASVM())
    >>> evaluate.progressive_val_score(datasets.ImageSegments().take(1000), model, metrics.Accuracy())
    Accuracy: 90.39%
    >>> model.labels[:3]
    ['path', 'foliage', 'sky']
    """

    _learners: ClassVar[dict[str, Any]] = {algorithm.__name__: algorithm for algorithm in LEARNERS.values()}

    def __new__(cls, model: Any = None, classes: Iterable[Hashable] | None = None) -> "OneVsRest":
        """Models that tune themselves learn in another way; see `tuned_classes`."""
        return super().__new__(TunedOneVsRest if isinstance(model, AutoLASVM) else cls)

    def __init__(self, model: Any, classes: Iterable[Hashable] | None = None) -> None:
        super().__init__(model, classes)  # So that a call without a model is told of this class.

    @property
    def labels(self) -> list[Hashable]:
        """The classes so far: first those known beforehand, then the others as they appeared."""
        return list(self._made)

    @property
    def class_counts(self) -> dict[Hashable, int]:
        """Number of examples of each class learned so far."""
        return {label: state.class_counts[1] for label, state in self._models.items()}

    def rename_class(self, label: Hashable, new: Hashable | None) -> int:
        """Give a class another name, join it to another class, or take it out.

        Parameters
        ----------
        label
            The class.  A class that the models do not know changes nothing.
        new
            Its new name.  If there is such a class, its model learns the members of `label` as its own, and `label` has
            no model any more.  None: the members of `label` are forgotten, and so is its model.

        Returns
        -------
        int
            Number of members of the class.

        Raises
        ------
        TypeError
            If the models tune themselves (`AutoLASVM`).

        Examples
        --------
        >>> from streamsvm import LASVM, OneVsRest
        >>> model = OneVsRest(LASVM())
        >>> for x, y in ((0.0, "cat"), (1.0, "dgo"), (1.1, "dog")):
        ...     model.learn_one({"a": x}, y)
        >>> model.rename_class("dgo", "dog")
        1
        >>> model.labels
        ['cat', 'dog']
        """
        if label not in self.labels or label == new:
            return 0
        expansion = self._models[label].expansion
        numbers, _ = known_once([(expansion, expansion.y > 0)])
        ids = self._ids_of(numbers)
        if new is None:
            self.forget(ids)
        elif new in self.labels:
            self.relabel(ids, new)
        models = self._models.items()
        is_kept = new is not None and new not in self.labels
        self._models = {new if key == label else key: state for key, state in models if is_kept or key != label}
        self._of_each(lambda state: None)
        return len(ids)

    def _keys(self, labels: list[Hashable]) -> list:
        return labels

    def _start(self, label: Hashable) -> None:
        self._all_know()  # that their counts are those of all examples
        others = next((sum(other.class_counts) for other in self._made.values()), 0)
        self._made[label] = self._new_model((others, 0))

    def _each_margin(self, margins: Any) -> Any:
        return late.each_row(margins, lambda n: self.labels[:n])

    def _signs(self) -> np.ndarray:
        return 2 * np.eye(len(self._current()), dtype=np.int8) - 1

    def _own_classes(self, key: Any) -> tuple:
        return (key,)

    def _pupils(self, label: Hashable) -> list:
        return [label]

    def _to_teach(self, label: Hashable) -> list[tuple[Any, np.ndarray, np.ndarray, bool]]:
        return [(label, *self._members(), False)]

    def _duel(self, label: int, rival: int) -> list[Part]:
        states = list(self._predicting())
        found = [Part(states[label], 1.0, OWN, NEITHERS), Part(states[rival], -1.0, RIVALS, NEITHERS)]
        return found[: len(states)]

    def _values(self, margins: np.ndarray) -> np.ndarray:
        return margins

    def _best(self, margins: np.ndarray) -> np.ndarray:
        return self._probabilities(margins).argmax(axis=1)

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        p = self._probabilities_of_models(margins)
        return p / p.sum(axis=1, keepdims=True)

    @classmethod
    def _name_in_snapshots(cls) -> str:
        return OneVsRest.__name__


class TunedOneVsRest(TunedClasses, OneVsRest):
    """What ``OneVsRest(AutoLASVM())`` makes."""

    def rename_class(self, label: Hashable, new: Hashable | None) -> int:
        raise TypeError("models that tune themselves cannot rename a class: each remembers examples of its own")

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict]:
        yield {"model": AutoLASVM()}
