"""One-versus-one: a model for each pair of classes, which vote."""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from streamsvm.batch.multiclass.class_pairs import PairOptimum
from streamsvm.core import sparse as sp
from streamsvm.core.expansion import EVALUATIONS
from streamsvm.core.fixed import fixed_parameters
from streamsvm.estimators.learner import late
from streamsvm.estimators.learner.explaining import NEITHERS, OWN, RIVALS, Part
from streamsvm.estimators.learner.state import State, batches, note
from streamsvm.estimators.learners import ALGORITHMS
from streamsvm.estimators.multiclass.binary_models import known_once
from streamsvm.estimators.multiclass.several import MulticlassSVM
from streamsvm.estimators.multiclass.trained_pairs import TrainedPair, give_solution, trained
from streamsvm.online import union
from streamsvm.online.outputs.coupling import coupled, led_by
from streamsvm.online.outputs.votes import best_classes, class_values

Train = Callable[[Any, Any, np.ndarray, np.ndarray, np.ndarray], Any]


def _are_class_values(given: Any) -> bool:
    """Whether an array holds what `class_values` makes of three pairs, and not the pairs, which have as many columns.

    In each row, the votes are those of three duels.  Each f(x) counts for one class and against another, so the sums
    that the fractions were made of add up to 0.  The f(x) of pairs, of which one does not follow from the others, do
    neither.
    """
    if not isinstance(given, np.ndarray) or given.dtype.kind != "f" or given.shape[1:] != (3,):
        return False
    values = given[np.isfinite(given).all(axis=1)]
    votes = np.rint(values)
    parts = 3.0 * (values - votes)
    if (votes.sum(axis=1) != 3).any() or (np.abs(votes - 1) > 1).any() or (np.abs(parts) >= 1).any():
        return False
    sums = parts / (1.0 - np.abs(parts))
    off = np.abs(sums.sum(axis=1)) > 1e-6 * (1.0 + np.abs(sums).sum(axis=1))
    return bool((values != 1.0).any() and not off.any())


@fixed_parameters
class OneVsOne(MulticlassSVM):
    """A classifier for several classes: one online support vector machine for each pair of classes.

    Each model learns the examples of its two classes, with the first of them as positive.  The class with the most
    votes is predicted, the first of equal ones, as by `sklearn.svm.SVC`.  The kernel values of an example are computed
    once for all models, which also share the scale of the features.  With ``classes=[...]`` and a number for `gamma`,
    each model equals one trained alone on its two classes, without a reservoir.

    A label is anything hashable, and a new class may appear at any time.  Its models learn the first example, then the
    members of the other class.

    Parameters
    ----------
    model
        The model that is copied for each pair: a `LASVM`, `LASVMG`, `LASVMNC`, `LASVMI` or `FullSVM`.  Its `budget`,
        `window` and `cache_mb` hold for each pair; its `reservoir` is not used.
    classes
        Labels known beforehand; default: none.

    Raises
    ------
    ValueError, TypeError
        If the model is another one, has ``on_budget="merge"``, a `threshold` or a number other than 1 for
        `pos_weight`, or if a label occurs twice.

    Notes
    -----
    **Or one-versus-rest?**  Each pair is a smaller problem than a class against all others, and it is easier to tell
    two classes apart.  So this classifier is often more accurate and faster than `OneVsRest`.  But k classes need
    k (k - 1) / 2 models.

    **Decision values.**  `decision_function_one` and `decision_function_many` have one value for each class: its votes,
    and a fraction of a vote by the sum of its models' f(x).  This is scikit-learn's ``decision_function_shape="ovr"``.
    `pair_values_many` has f(x) for each of `pairs`.  If f(x) is exactly 0, the vote goes to the first class in decision
    values, and to the second in predictions, as in scikit-learn and LIBSVM.

    **Windows.**  A window counts all examples, not only those of a pair.

    **Weights.**  With ``pos_weight="balanced"``, each model weights the rarer of its two classes.

    **Probabilities** are coupled from those of the pairs, by the second method of [^1].  If another class than the
    predicted one would be the most probable, they are moved by as little as makes the predicted one the most probable.

    **Interruptions.**  If learning is interrupted (Ctrl-C), all models first learn what some of them have learned: at
    most 256 examples.

    References
    ----------
    [^1]: Wu, T.-F., Lin, C.-J., Weng, R. C., 2004. Probability estimates for multi-class classification by pairwise
    coupling. Journal of Machine Learning Research 5, 975-1005.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVM, OneVsOne
    >>> model = OneVsOne(LASVM())
    >>> evaluate.progressive_val_score(datasets.ImageSegments().take(1000), model, metrics.Accuracy())
    Accuracy: 90.8%
    >>> model.pairs[:2]
    [('path', 'foliage'), ('path', 'sky')]
    """

    _learners: ClassVar[dict[str, Any]] = {algorithm.__name__: algorithm for algorithm in ALGORITHMS.values()}

    def __init__(self, model: Any, classes: Iterable[Hashable] | None = None) -> None:
        if getattr(model, "pos_weight", 1.0) not in (1.0, "balanced"):
            raise ValueError(
                f"pos_weight={model.pos_weight!r} has no use for pairs of classes, none of which is the positive one; "
                'leave it at 1, use "balanced", or give the examples of a class another weight w'
            )
        self._labels: list[Hashable] = []
        self._n_made = 0  # How many of the labels have their models.
        self._trained: list[TrainedPair] | None = None
        super().__init__(model, classes)

    @property
    def labels(self) -> list[Hashable]:
        """The classes so far: first those known beforehand, then the others as they appeared."""
        return list(self._labels)

    @property
    def pairs(self) -> list[tuple[Hashable, Hashable]]:
        """The pairs of classes, in the order of `labels`; f(x) > 0 is a vote for the first of the two."""
        return list(combinations(self._labels, 2))

    @property
    def class_counts(self) -> dict[Hashable, int]:
        """Number of examples of each class learned so far."""
        self._all_know()
        self._make_models()
        return {label: self._n_learned(label) for label in self._labels}

    # --------------------------------------------------------------------------------------------------------- classes

    def _keys(self, labels: list[Hashable]) -> list:
        """All pairs; as long as there is one class, that class alone."""
        return list(combinations(labels, 2)) or [(label,) for label in labels]

    def _start(self, label: Hashable) -> None:
        if self._trained is not None:
            self._make_models()  # of the pairs of the classes before
        self._labels = [*self._labels, label]

    def _current(self) -> dict[Any, State]:
        """The models of all pairs, which are made when they are first needed."""
        self._make_models()
        return self._made

    def _make_models(self) -> None:
        """Make the models of pairs that have none yet."""
        if self._trained is not None:
            self._take({key: self._model_of(pair) for key, pair in zip(self.pairs, self._trained, strict=True)})
        if len(self._labels) > self._n_made:
            self._take(self._with_new_models())

    def _take(self, models: dict[Any, State]) -> None:
        # At once: no interruption may come in between.
        self.__dict__.update(_made=models, _n_made=len(self._labels), _trained=None)

    def _with_new_models(self) -> dict[Any, State]:
        """The models, with those of the new classes.  The second class makes a pair of the first one's model."""
        known, second = self._made, self._labels[1:2]
        if self._n_made == 1 and second:
            known = {(*key, *second): state for key, state in known.items()}
        return {
            key: known.get(key) or self._new_model((0, self._n_learned(key[0]))) for key in self._keys(self._labels)
        }

    def _model_of(self, pair: TrainedPair) -> State:
        """The model of a pair of a training set."""
        state = self._new_model(pair.counts)
        give_solution(state, pair, self._union)
        return state

    def _n_learned(self, label: Hashable) -> int:
        """How many examples of a class were learned."""
        found = ((key, state) for key, state in self._made.items() if label in key)
        return next((state.class_counts[key[0] == label] for key, state in found), 0)

    def _each_margin(self, margins: Any) -> Any:
        if len(self._labels) == 3 and _are_class_values(margins):
            raise ValueError(
                f"margins has decision values of the classes {self._labels}; it must have f(x) for each of "
                f"{self.pairs}, as pair_values_many returns it"
            )
        return late.each_row(margins, self._first_pairs)

    def _said_of(self, margin: Any) -> Mapping[Hashable, float]:
        said = super()._said_of(margin)
        if said and said.keys() <= {*self._labels} - {*self.pairs}:
            raise ValueError(
                f"margin has the keys {[*said]}; it must have pairs of classes, as pair_values_one returns them"
            )
        return said

    def _first_pairs(self, n: int) -> list[tuple[Hashable, Hashable]]:
        """The pairs that there were when there were n."""
        n_labels = (1 + math.isqrt(1 + 8 * n)) // 2
        return list(combinations(self._labels[:n_labels], 2))

    def _signs(self) -> np.ndarray:
        n = len(self._labels)
        if n == 1:
            return np.ones((1, 1), np.int8)
        first, second = np.triu_indices(n, 1)
        signs, models = np.zeros((len(first), n), np.int8), np.arange(len(first))
        signs[models, first], signs[models, second] = 1, -1
        return signs

    def _own_classes(self, key: Any) -> tuple:
        return tuple(key)

    def _pupils(self, label: Hashable) -> list:
        others = self._labels[:-1]  # The model of the first pair has learned the first class from its beginning.
        return [(other, label) for other in others] if len(others) > 1 else []

    def _to_teach(self, label: Hashable) -> list[tuple[Any, np.ndarray, np.ndarray, bool]]:
        return [(key, *self._members_of_class(key[0]), True) for key in self._pupils(label)]

    def _members_of_class(self, label: Hashable) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the members of one class, rising, and their ages."""
        found = ((key, state.expansion) for key, state in self._models.items() if label in key)
        return known_once([(s, s.y > 0 if key[0] == label else s.y < 0) for key, s in found])

    # -------------------------------------------------------------------------------------------------- a training set

    def train_pairs(self, X: Any, places: np.ndarray, weights: np.ndarray, ids: np.ndarray, train: Train) -> list:
        """Train the models of all pairs on a whole training set with a batch solver, not as a stream.

        Parameters
        ----------
        X
            The examples as rows, a 2-D array or a CSR matrix.  The model has learned nothing yet.
        places, weights, ids
            The place of each example's class in `labels`, its weight, and its id, which is at least 0; no id twice.
        train
            Trains a learner on the examples of two classes: ``train(model, X, positive, weights, ids)``.

        Returns
        -------
        list
            What `train` returned for each of `pairs`.
        """
        self._know_columns(X)
        outcomes = []
        for signs, key in zip(self._signs()[:, places], self._models, strict=True):
            rows = np.flatnonzero(signs)
            outcomes.append(train(self._binary(key), X[rows], signs[rows] > 0, weights[rows], ids[rows]))
        self._keep_vectors(X, weights, ids, self._members()[0])
        return outcomes

    def take_solutions(
        self,
        X: Any,
        places: np.ndarray,
        weights: np.ndarray,
        ids: np.ndarray,
        found: list[PairOptimum],
        kernel_evaluations: int,
    ) -> None:
        """Take over the solutions of all pairs over a training set; for the arguments see `train_pairs`.

        `kernel_evaluations` is the number of kernel values that were computed to find them.
        """
        self._know_columns(X)
        largest = np.zeros(len(self._labels), np.int64)
        np.maximum.at(largest, places, ids)
        solved = trained(found, ids, np.bincount(places).tolist(), largest.tolist())
        self._keep_vectors(X, weights, ids, np.unique(np.concatenate([pair.numbers for pair in solved])))
        self._union.vectors.counts[EVALUATIONS] += kernel_evaluations
        self._trained = solved

    def _know_columns(self, X: Any) -> None:
        """Know the features of a training set."""
        self._features.add(np.unique(X.indices).tolist() if sp.issparse(X) else range(X.shape[1]))
        self._features.n_kept = len(self._features)

    def _keep_vectors(self, X: Any, weights: np.ndarray, ids: np.ndarray, numbers: np.ndarray) -> None:
        """Let the union keep the vectors that have these ids, of a training set that was learned."""
        order = np.argsort(ids)
        kept = order[np.searchsorted(ids[order], numbers)]
        for part, q in batches(self._common, X[kept], learning=False):
            of_user = (numbers[part], numbers[part], weights[kept[part]])
            self._union = union.with_vectors(self._union, self._common.kernel, q, *of_user, len(self._features))
        n_seen, largest = len(ids), int(ids.max(initial=-1))
        note(self._common, max(n_seen, largest + 1), (0, 0), largest, len(self._features), 0, 0)

    def _parts(self) -> list[tuple[np.ndarray, np.ndarray, float]]:
        if self._trained is not None:
            return [pair.function for pair in self._trained]
        return super()._parts()

    # ------------------------------------------------------------------------------------------------------ prediction

    def _values(self, margins: np.ndarray) -> np.ndarray:
        return class_values(margins, len(self._labels))

    def _duel(self, label: int, rival: int) -> list[Part]:
        states = list(self._models.values())
        if label == rival:
            return [Part(states[0], 1.0, OWN, NEITHERS)]
        first, second = sorted((label, rival))
        state = states[list(combinations(range(len(self._labels)), 2)).index((first, second))]
        return [Part(state, 1.0, OWN, RIVALS) if first == label else Part(state, -1.0, RIVALS, OWN)]

    def _best(self, margins: np.ndarray) -> np.ndarray:
        return best_classes(margins, len(self._labels))

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        if len(self._labels) < 2:
            return np.ones((len(margins), len(self._labels)))
        p = coupled(self._probabilities_of_models(margins), len(self._labels))
        return led_by(self._best(margins), p)

    def pair_values_one(self, x: dict) -> dict:
        """f(x) for each of `pairs`: above 0 for the first class of the pair."""
        return dict(zip(self.pairs, self._decide_one(x).tolist(), strict=len(self._labels) != 1))

    def pair_values_many(self, X: Any) -> np.ndarray:
        """f(x) of all rows for each of `pairs`, (n, n_pairs): above 0 for the first class of the pair."""
        return self._decide_many(X)[:, : len(self.pairs)]

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _restore_models(self, states: Any, parts: Any) -> None:
        super()._restore_models(states, parts)
        self._labels = list(dict.fromkeys(label for key in states for label in key))
        self._models = self._made
