"""Several classes: one binary model for each, which share the kernel values that they learn and predict from."""

import copy
import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from river import base
from river.utils import dataframe

from streamsvm.core import arguments, blocks, dumping, snapshot, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import EVALUATIONS, SLOTS, Expansion
from streamsvm.core.kernels import LARGEST_KERNEL_VALUE, largest_self_product
from streamsvm.core.snapshot import SnapshotError, require
from streamsvm.estimators.classifier import Examples, OnlineSVM, is_frame, n_learned, series_like
from streamsvm.estimators.features import PLAIN, FeatureTable, n_rows, too_large
from streamsvm.estimators.learners import ALGORITHMS, LASVM
from streamsvm.online import arrival, union

BY_CLASS_NAME: dict[str, type[OnlineSVM]] = {algorithm.__name__: algorithm for algorithm in ALGORITHMS.values()}


class OneVsRest(base.MiniBatchClassifier):
    """A classifier for several classes, made of one online support vector machine for each.

    Every example is learned by all of them: as positive by that of its class, as negative by the others.  The class
    whose decision value is largest is predicted.  Each model is, bit for bit, the one that would have learned these
    labels alone; but the kernel values of an example with the members of all are computed once, and not once for each.

    Labels may be anything hashable, and classes may appear at any time.  The model of a class that appears in
    mid-stream first learns its example, and then the members of the other models as negatives, in the order of their
    arrival; so it knows from the start what it is not.

    Parameters
    ----------
    model
        The model that each class gets a copy of, before it has learned: one of `LASVM`, `LASVMG`, `LASVMNC`, `LASVMI`
        and `FullSVM`.  Its `budget`, `window` and `cache_mb` are those of each class.
    classes
        Labels that are known beforehand; their models learn from the first example on.  Default: none.

    Raises
    ------
    ValueError, TypeError
        If the model is another one, merges members (they would no longer be everybody's), or a label occurs twice.

    Notes
    -----
    So many kernel values are saved as members are shared: where every example is a member of every class's model, as
    with `FullSVM`, all but those of one; few of them where each class has members of its own.  Memory is not saved: the
    features of a member are held by the models of all classes that have it, and once more by what these share.

    Probabilities are those of the classes' models, scaled to a sum of 1.

    If learning is interrupted (Ctrl-C), the classes first learn to its end what some of them have learned: at most 256
    examples.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVM, OneVsRest, WarmupScaler
    >>> model = WarmupScaler() | OneVsRest(LASVM(C=10, gamma=0.1))
    >>> evaluate.progressive_val_score(datasets.ImageSegments().take(1000), model, metrics.Accuracy())
    Accuracy: ...%
    """

    def __init__(self, model: Any, classes: Iterable[Hashable] | None = None) -> None:
        if type(model) not in ALGORITHMS.values():
            raise TypeError(
                f"model={model!r} must be one of {', '.join(BY_CLASS_NAME)}; put other steps of a pipeline before: "
                "scaler | OneVsRest(LASVM())"
            )
        if model.budget is not None and model.on_budget == "merge":
            raise ValueError('on_budget="merge" makes members that only one class has; use "remove" or "project"')
        if isinstance(classes, str):
            raise TypeError(f"classes={classes!r} must be a list of labels")
        self.model = model
        self.classes = classes
        self._blank = model.clone()  # learns nothing; what is the same for all classes is asked of it
        self._features = self._blank._features
        self._union = storage.empty(0)
        self._evaluator = Evaluator(model.device)
        self._models: dict[Hashable, OnlineSVM] = {}
        self._columns: list[np.ndarray] | None = None  # of each model in the union; None: to be looked up
        self._y_name: Any = None
        for label in () if classes is None else classes:
            label = label_of(label, "classes holds")
            if label in self._models:
                raise ValueError(f"classes holds {label!r} twice")
            self._start(label)

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict]:
        yield {"model": LASVM()}

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()

    def _start(self, label: Hashable) -> OnlineSVM:
        """A model for another class."""
        model = self._blank.clone()
        model._features = _CommonColumns(self._features)
        model._n_seen = model._next_id = self.n_seen
        if model._window and self._blank._window:
            model._window.latest = self._blank._window.latest
        self._models[label] = model
        return model

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(self, x: dict, y: Hashable, w: float = 1.0, id: int | None = None, t: Any = None) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name; those that are missing are 0.
        y
            Label: anything hashable but None and NaN.
        w, id, t
            Weight, id and time, as for `LASVM.learn_one`.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or the label, the weight, the id or the time is invalid.  The model is
            then as before.
        """
        label = label_of(y)
        arguments.box_of(self._blank.C, w, max(1.0, self._blank.pos_weight))
        number = self._blank._number_of(id)
        born, _ = self._blank._age_of(t)
        q = self._query(x, learning=True)
        if too_large(q.sq):
            raise self._blank._too_large(x)
        if largest_self_product(self._blank._kernel, q.sq) > LARGEST_KERNEL_VALUE:
            raise self._blank._overflow(self.n_seen)
        one = (np.array([float(w)]), np.array([number]), id is not None, np.array([born]))
        self._learn(_Block(q, [label], *one, np.array([len(self._features)])))

    def learn_many(self, X: Any, y: Any, w: Any = None, ids: Any = None, t: Any = None) -> None:
        """Learn a batch of examples, in sequence; the result is that of a loop of `learn_one`, bit for bit.

        Parameters
        ----------
        X
            Examples as rows: a dataframe, a 2-D array, a SciPy sparse matrix, or a list of dicts.
        y
            Labels, one for each row.
        w, ids, t
            Weights, ids and times, as for `LASVM.learn_many`.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is invalid, or lengths differ.  Blocks of rows before the one
            with the fault have been learned.
        """
        if getattr(X, "ndim", 2) != 2:
            raise ValueError(f"X has shape {X.shape}; a batch is a 2-D array (examples, features)")
        n = n_rows(X)
        labels, weights, born = labels_of(y, n), arguments.weights_of(w, n), self._blank._ages_of(t, n)
        arguments.boxes_of(self._blank.C, weights, np.array(max(1.0, self._blank.pos_weight)))
        numbers = self._blank._next_ids(n) if ids is None else arguments.ids_of(ids, n)
        self._y_name = getattr(y, "name", None)
        for rows, q in self._features.batches(X, learning=True):
            if largest_self_product(self._blank._kernel, q.sq) > LARGEST_KERNEL_VALUE:
                raise self._blank._overflow(rows.start + int(np.argmax(q.sq)))
            others = (weights[rows], numbers[rows], ids is not None, born[rows], self._features.growth)
            self._learn(_Block(q, labels[rows], *others))

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        self._blank.validate_one(x)

    def validate_many(self, X: Any) -> None:
        """Raise the ValueError or TypeError that `learn_many` would raise for these features; learn nothing."""
        self._blank.validate_many(X)

    def _query(self, x: dict, learning: bool) -> Queries:
        columns, values = self._features.example(x, learning)
        return blocks.from_sparse(np.array([0, len(values)]), np.arange(len(values)), values, columns)

    def _learn(self, block: "_Block") -> None:
        """Learn a block, in parts whose examples can be learned together."""
        while len(block.labels):
            self._union = arrival.make_room(self._union, block.q, len(self._features))
            n_fitting = arrival.n_fitting(self._union, block.q)
            numbers, replaced = self._numbered(block.part(0, self._together(block.labels[:n_fitting])))
            part, block = block.part(0, len(numbers)), block.part(len(numbers), len(block.labels))
            self._learn_part(part, numbers, replaced)

    def _together(self, labels: Sequence[Hashable]) -> int:
        """How many of the next examples: one that begins a class alone, else as many as there is room for."""
        room = min(len(labels), len(self._union.alpha) - int(self._union.counts[SLOTS]))
        begins = next((t for t in range(room) if labels[t] not in self._models), room)
        return max(1, begins)

    def _numbered(self, part: "_Block") -> tuple[np.ndarray, np.ndarray]:
        """The numbers by which the classes are to know these examples, and those of others that the first one replaces.

        An example that is a vector of the union already, by id and features, keeps its number: a class that has it as a
        member with the same label and weight does not learn it again.  There are fewer numbers than examples if an id
        is another vector's, or occurs twice: which vectors it replaces is known when those before it have been learned.
        """
        numbers = np.arange(self.n_seen, self.n_seen + len(part.labels))
        slots = self._slots_of(part.ids) if part.own_ids else {}
        seen: set[int] = set()
        for t, user_id in enumerate(part.ids.tolist() if part.own_ids else ()):
            known = slots.get(user_id, [])
            same = [slot for slot in known if self._is_stored(slot, part, t)]
            if t and (user_id in seen or len(known) > 1 or len(same) < len(known)):
                numbers = numbers[:t]
                break
            if same:
                numbers[t] = self._union.ids[same[0]]
            seen.add(user_id)
        others = self._union.ids[slots.get(int(part.ids[0]), [])]
        return numbers, others[others != numbers[0]]

    def _slots_of(self, ids: np.ndarray) -> dict[int, list[int]]:
        """The slots of the union that have these ids of the user's."""
        live = storage.live_slots(self._union)
        slots: dict[int, list[int]] = {}
        for slot in live[np.isin(self._union.born[live], ids)].tolist():
            slots.setdefault(int(self._union.born[slot]), []).append(slot)
        return slots

    def _is_stored(self, slot: int, part: "_Block", t: int) -> bool:
        """Whether the vector in a slot of the union is the t-th of these examples."""
        own = slice(part.q.indptr[t], part.q.indptr[t + 1])
        return storage.is_stored(self._union, slot, part.q.indices[own], part.q.values[own])

    def _learn_part(self, part: "_Block", numbers: np.ndarray, replaced: np.ndarray) -> None:
        """Have all classes learn these examples, and the union keep those that one of them keeps."""
        U, kernel, first = self._union, self._blank._kernel, int(self._union.counts[SLOTS])
        fresh = np.arange(self.n_seen, self.n_seen + len(numbers))
        self._columns = None
        try:
            storage.require_room(U, len(self._features))
            union.add_block(U, kernel, *part.q, fresh, part.ids, part.weights)
            W = union.kernel_values(U, kernel, part.q, first, self._evaluator)
            lesson = _Lesson(part, numbers, replaced, W, first, self.n_seen, part.labels[0] not in self._models, {})
            _to_the_end(partial(self._have_all_learn, lesson))
            self._settle_block(part.q, first)
        except BaseException:
            self._settle_block(part.q, first)
            raise

    def _have_all_learn(self, lesson: "_Lesson") -> None:
        """Have all classes learn some examples; a second time, it goes on where it was interrupted."""
        part, numbers, margins = lesson.part, lesson.numbers, lesson.margins
        if lesson.begins_class and part.labels[0] not in self._models:
            self._start(part.labels[0])
        for label, model in self._models.items():
            own = margins.setdefault(("example", label), np.full(len(numbers), math.nan))
            self._have_one_learn(label, model, lesson, n_learned(own), own)
        if lesson.begins_class:
            self._teach_members(self._models[part.labels[0]], int(numbers[0]), margins)
        again = (numbers < lesson.n_seen) & (part.weights > 0.0)
        U = self._union
        U.hi[np.searchsorted(U.ids[: U.counts[SLOTS]], numbers[again])] = part.weights[again]
        window, oldest = self._blank._window, int(part.born.min())
        latest = int(window.now(part.born)[-1]) if window else oldest
        n_seen = lesson.n_seen + len(numbers)
        self._blank._note(n_seen, int(part.ids.max()), int(part.growth[-1]), oldest, latest)

    def _have_one_learn(
        self, label: Hashable, model: OnlineSVM, lesson: "_Lesson", done: int, margins: np.ndarray
    ) -> None:
        """Have the model of a class learn examples from the one numbered `done` on."""
        part, n = lesson.part.part(done, len(margins)), len(margins)
        if done == n:
            return
        positive = np.array([other == label for other in part.labels])
        lo, hi, born = model._boxes_of(positive, part.weights, part.born)
        if done == 0 and len(lesson.replaced) and lo[0] < hi[0]:
            model.forget(lesson.replaced)
        block = Examples(part.q, lo, hi, lesson.numbers[done:], part.own_ids, born)
        values_of = partial(union.values_of, self._union, lesson.W[done:], lesson.first + done)
        model._learn_queries(block, margins[done:], values_of=values_of)

    def _teach_members(self, model: OnlineSVM, own: int, margins: dict[Any, np.ndarray]) -> None:
        """Have the model of a new class learn the other classes' members as negatives, but for its own example."""
        numbers, born = self._members()
        numbers, born = numbers[numbers != own], born[numbers != own]
        taught = margins.setdefault("members", np.full(len(numbers), math.nan))
        for b in range(n_learned(taught), len(numbers), blocks.BLOCK):
            chunk = slice(b, b + blocks.BLOCK)
            slots = np.searchsorted(self._union.ids[: self._union.counts[SLOTS]], numbers[chunk])
            negative = np.zeros(len(slots), bool)
            lo, hi, ages = model._boxes_of(negative, self._union.hi[slots], born[chunk])
            block = Examples(_stored(self._union, slots), lo, hi, numbers[chunk], False, ages)
            model._learn_queries(block, taught[chunk], counts=False)

    def _settle_block(self, q: Queries, first: int) -> None:
        union.settle_block(self._union, self._blank._kernel, q, first, self._expansions())

    def _expansions(self) -> list[Expansion]:
        return [model._expansion for model in self._models.values()]

    def _settle(self) -> None:
        """Let the union have what the classes have."""
        union.settle(self._union, self._expansions())

    def _members(self, support: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of all members, or of the support vectors, rising; and when they were born."""
        kept = [(s, s.alpha != 0.0 if support else s.y != 0) for s in self._expansions()]
        numbers = np.concatenate([np.zeros(0, np.int64), *(s.ids[own] for s, own in kept)])
        born = np.concatenate([np.zeros(0, np.int64), *(s.born[own] for s, own in kept)])
        numbers, first = np.unique(numbers, return_index=True)
        return numbers, born[first]

    # ------------------------------------------------------------------------------------------ finishing, forgetting

    def finish(self, tol: float | None = None) -> None:
        """Optimise the model of each class over its members; see `LASVM.finish`."""
        arguments.require_positive("tol", self._blank.tol if tol is None else tol)
        self._of_each(lambda model: model.finish(tol))

    def _of_each(self, step: Callable[[OnlineSVM], Any]) -> None:
        """Take a step with the model of each class, after which members may have left; as far as it comes."""
        self._columns = None
        try:
            for model in self._models.values():
                step(model)
            self._settle()
        except BaseException:
            self._settle()
            raise

    def forget(self, ids: Any) -> int:
        """Take examples out of the models of all classes, as if they had never kept them; see `LASVM.forget`.

        Parameters
        ----------
        ids
            One id, or several.

        Returns
        -------
        int
            How many members have left: an example counts once, however many classes had it.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer.
        """
        slots = self._slots_of(arguments.numbers_of(ids))
        numbers = self._union.ids[[slot for of_id in slots.values() for slot in of_id]]
        before = self.n_members
        _to_the_end(lambda: self._of_each(lambda model: model.forget(numbers)))
        return before - self.n_members

    # ----------------------------------------------------------------------------------------------------- prediction

    def _decide(self, q: Queries) -> np.ndarray:
        """f(x) of each query for each class, (B, n_classes)."""
        U = storage.require_room(self._union, len(self._features))
        if self._columns is None:
            self._columns = [union.columns_of(U, s) for s in self._expansions()]
        W = union.kernel_values(U, self._blank._kernel, q, int(U.counts[SLOTS]), self._evaluator)
        out = np.empty((len(self._models), len(q.sq)))
        for k, (model, columns) in enumerate(zip(self._models.values(), self._columns, strict=True)):
            union.decide(W, columns, model._expansion.alpha[: len(columns)], model.bias, out[k])
        return out.T

    def _decide_one(self, x: dict) -> np.ndarray:
        q = self._query(x, learning=False)
        margins = np.full((1, 1), np.nan) if too_large(q.sq) else self._decide(q)
        if not np.isfinite(margins).all():
            self.validate_one(x)
            raise ValueError(f"x={x!r}: {self._too_large_a_kernel}")
        return margins[0]

    def _decide_many(self, X: Any) -> np.ndarray:
        margins = np.empty((n_rows(X), len(self._models)))
        for rows, q in self._features.batches(X, learning=False):
            margins[rows] = self._decide(q)
        if not np.isfinite(margins).all():
            row = int(np.argmin(np.isfinite(margins).all(axis=1)))
            raise ValueError(f"X[{row}]: {self._too_large_a_kernel}")
        return margins

    @property
    def _too_large_a_kernel(self) -> str:
        return f"the {self._blank.kernel} kernel is too large for single precision; scale the features"

    def decision_function_one(self, x: dict) -> dict:
        """f(x) of each class."""
        return dict(zip(self._models, self._decide_one(x).tolist(), strict=True))

    def predict_one(self, x: dict, **kwargs: Any) -> Any:
        """The class whose decision value is largest, the first of several; None before there is a class."""
        margins = self.decision_function_one(x)
        return max(margins, key=lambda label: margins[label], default=None)

    def predict_proba_one(self, x: dict, **kwargs: Any) -> dict:
        """Probabilities of all classes: those of their models, see `LASVM.predict_proba_one`, scaled to a sum of 1."""
        p = self._probabilities(self._decide_one(x)[np.newaxis])
        return dict(zip(self._models, p[0].tolist(), strict=True))

    def _probabilities(self, margins: np.ndarray) -> np.ndarray:
        p = np.empty(margins.shape)
        for k, model in enumerate(self._models.values()):
            p[:, k] = model.probability(margins[:, k])
        return p / p.sum(axis=1, keepdims=True)

    def decision_function_many(self, X: Any) -> Any:
        """f(x) of each class, in the order of `labels`: a frame of the kind given, else an array (n, n_classes)."""
        return self._frame_like(X, self._decide_many(X))

    def predict_many(self, X: Any) -> Any:
        """The class whose decision value is largest for each row: a series of the frame's kind, else an array (n,)."""
        margins = self._decide_many(X)
        best = margins.argmax(axis=1) if self._models else np.zeros(len(margins), np.int64)
        return series_like(X, _array_of(self.labels or [None])[best], self._y_name)

    def predict_proba_many(self, X: Any) -> Any:
        """Probabilities, in the order of `labels`: a frame of the kind given, else an array (n, n_classes)."""
        return self._frame_like(X, self._probabilities(self._decide_many(X)))

    def _frame_like(self, X: Any, values: np.ndarray) -> Any:
        if not is_frame(X):
            return values
        columns = {label: values[:, k] for k, label in enumerate(self._models)}
        return dataframe.to_native_frame(columns, like=dataframe.into_frame(X))

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def labels(self) -> list[Hashable]:
        """The classes so far: those known beforehand, then the others in the order of their appearance."""
        return list(self._models)

    @property
    def n_seen(self) -> int:
        """Examples learned so far."""
        return self._blank._n_seen

    @property
    def next_id(self) -> int:
        """The id of the next example, unless it is given one: above all ids so far, from 0."""
        return self._blank.next_id

    @property
    def max_features(self) -> int:
        """The largest number of features; an example that would bring more is refused.  It is no part of a snapshot."""
        return self._blank.max_features

    @max_features.setter
    def max_features(self, limit: int) -> None:
        self._blank.max_features = limit

    @property
    def n_members(self) -> int:
        """Examples that are members of the model of at least one class."""
        return len(self._members()[0])

    @property
    def n_support(self) -> int:
        """Examples that are support vectors of at least one class."""
        return len(self._members(support=True)[0])

    @property
    def support_ids(self) -> np.ndarray:
        """Ids of the examples that are support vectors of at least one class, in the order of their arrival."""
        numbers, _ = self._members(support=True)
        return self._union.born[np.searchsorted(self._union.ids[: self._union.counts[SLOTS]], numbers)]

    @property
    def kernel_evaluations(self) -> int:
        """Kernel values computed so far, in learning and prediction: those of all classes and those of each."""
        return int(self._union.counts[EVALUATIONS]) + sum(m.kernel_evaluations for m in self._models.values())

    # ------------------------------------------------------------------------------------------------------- snapshots

    def to_bytes(self) -> bytes:
        """The model as a snapshot; see `streamsvm.core.snapshot` for the format.

        Raises
        ------
        SnapshotError
            If a label or a feature's name is none of str, int, float and bool.
        """
        for label in [*self._models, *(self.classes or ())]:
            if type(label) not in (str, int, float, bool):
                raise SnapshotError(
                    f"label {label!r} is a {type(label).__name__}; str, int, float and bool can be saved"
                )
        common, _ = self._blank._state()
        meta: dict[str, Any] = {
            **common,
            "algorithm": type(self._blank).__name__,
            "classes": None if self.classes is None else list(self.classes),
            "labels": self.labels,
            "states": [],
        }
        arrays = {f"union.{name}": array for name, array in dumping.dump(self._union, len(self._features)).items()}
        for k, model in enumerate(self._models.values()):
            state, own = model._state()
            meta["states"].append({name: state[name] for name in state if name not in ("parameters", "features")})
            arrays |= {f"{k}.{name}": array for name, array in own.items()}
        return snapshot.pack(type(self).__name__, meta, arrays)

    @classmethod
    def from_bytes(cls, data: bytes, cache_mb: float | None = None, device: str | None = None) -> Self:
        """The model that `to_bytes` stored; it goes on bit for bit as the stored one would.

        Parameters
        ----------
        data
            A snapshot.
        cache_mb
            Another size of each class's row cache than the stored one.
        device
            Another device than the stored one.

        Raises
        ------
        SnapshotError
            If the data are damaged, of another kind, or from a newer format.
        """
        meta, arrays = snapshot.unpack(data, cls.__name__)
        with snapshot.reading(cls.__name__):
            algorithm = snapshot.field(meta, "algorithm", str)
            if algorithm not in BY_CLASS_NAME:
                raise SnapshotError(f"the algorithm {algorithm!r} is unknown to this version")
            model = cls(BY_CLASS_NAME[algorithm]._of_meta(meta, cache_mb, device))
            model._restore(meta, arrays)
        return model

    def _restore(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what was learned, as `to_bytes` stored it."""
        classes, labels = snapshot.field(meta, "classes", list, type(None)), snapshot.field(meta, "labels", list)
        blank, states = self._blank, snapshot.field(meta, "states", list)
        require(all(type(label) in PLAIN for label in labels), "a label is not a string, a number or a boolean")
        require(len(set(labels)) == len(labels) == len(states), f"there are {len(labels)} labels, {len(states)} states")
        require(labels[: len(classes or [])] == (classes or []), "the labels do not begin with the classes")
        self.classes = classes
        blank._features = self._features = FeatureTable.of_names(snapshot.field(meta, "features", list))
        blank._restore_counts(meta)
        parts = _by_prefix(arrays)
        engine = (blank._kernel, len(self._features), blank._n_seen)
        self._union = dumping.restore(parts.get("union", {}), 0, *engine)
        blank._go_on_above(self._union.born[storage.live_slots(self._union)])
        known = self._union.ids[storage.live_slots(self._union)]
        for k, (label, state) in enumerate(zip(labels, states, strict=True)):
            self._models[label] = model = blank.clone()
            model._restore(state, parts.get(str(k), {}), _CommonColumns(self._features))
            s = model._expansion
            require(np.isin(s.ids[: s.counts[SLOTS]], known).all(), f"the vectors of class {label!r} are not stored")

    def save(self, path: str | Path) -> None:
        """Write the snapshot to a file, atomically."""
        snapshot.write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path, cache_mb: float | None = None, device: str | None = None) -> Self:
        """The model in a file that `save` wrote; the parameters are those of `from_bytes`."""
        return cls.from_bytes(snapshot.read(path), cache_mb, device)

    def __getstate__(self) -> dict:
        """Everything but what is on a device."""
        return {**self.__dict__, "_evaluator": Evaluator(self._blank.device)}

    def __setstate__(self, state: dict) -> None:
        """Have arrays of its own: joblib maps those of its workers from files that are read-only."""
        self.__dict__.update({name: storage.owned(value) for name, value in state.items()})

    def __copy__(self) -> Self:
        """A copy that shares nothing, as of `LASVM`."""
        return copy.deepcopy(self)

    def digest(self) -> str:
        """SHA-256 of what was learned; equal for models that continue alike, whatever their caches and counters."""
        self._features.settle()
        live = storage.live_slots(self._union)
        arrays = {name: getattr(self._union, name)[live] for name in ("ids", "born", "hi")}
        digests = [model.digest() for model in self._models.values()]
        meta = {"labels": [repr(label) for label in self._models], "n_seen": self.n_seen, "next_id": self.next_id}
        meta["digests"] = digests
        return hashlib.sha256(snapshot.pack(type(self).__name__, meta, arrays)).hexdigest()


class _CommonColumns(FeatureTable):
    """The columns of all classes, as the model of one has them: it takes none of them back."""

    def __init__(self, common: FeatureTable) -> None:
        super().__init__()
        self.columns = common.columns

    def settle(self) -> None:
        pass


class _Block(NamedTuple):
    """Examples to be learned: features, labels, weights, ids, whether these are the user's own, numbers or times.

    `growth` is how many columns there are after each of them.
    """

    q: Queries
    labels: list[Hashable]
    weights: np.ndarray
    ids: np.ndarray
    own_ids: bool
    born: np.ndarray
    growth: np.ndarray

    def part(self, t: int, end: int) -> "_Block":
        """The examples from t on, before `end`."""
        own = slice(t, end)
        others = (self.ids[own], self.own_ids, self.born[own], self.growth[own])
        return _Block(self.q.part(t, end), self.labels[own], self.weights[own], *others)


class _Lesson(NamedTuple):
    """What all classes learn together.

    Attributes
    ----------
    part, numbers
        The examples, and the numbers by which the classes know them.
    replaced
        Numbers of the vectors that the first of them replaces.
    W, first
        See `online.union`.
    n_seen
        Examples learned before.
    begins_class
        Whether the first one, then the only one, is the first of its class.
    margins
        Margins of the examples that a class has learned, and of the members that it was taught.
    """

    part: _Block
    numbers: np.ndarray
    replaced: np.ndarray
    W: np.ndarray
    first: int
    n_seen: int
    begins_class: bool
    margins: dict[Any, np.ndarray]


def _to_the_end(step: Callable[[], None]) -> None:
    """Take a step; if it is interrupted, take it again, which goes on where it was, and then raise."""
    try:
        step()
    except BaseException:
        step()
        raise


def _stored(U: Expansion, slots: np.ndarray) -> Queries:
    """The vectors in these slots, as queries."""
    rows = storage.rows_of(U, slots, len(U.member_indices))
    return Queries(rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data, U.sq[slots])


def _by_prefix(arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """The arrays by what comes before the first dot of their names, and what comes behind it."""
    parts: dict[str, dict[str, np.ndarray]] = {}
    for name, array in arrays.items():
        prefix, _, rest = name.partition(".")
        parts.setdefault(prefix, {})[rest] = array
    return parts


def _array_of(labels: Sequence[Any]) -> np.ndarray:
    """Labels as an array (n,), of their type if they have one that numpy knows."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return np.array(labels)
    array = np.empty(len(labels), object)
    array[:] = labels
    return array


def label_of(label: Any, where: str = "y is") -> Hashable:
    """A label in Python's own type; what cannot be one is refused."""
    label = label.item() if isinstance(label, np.generic) else label
    try:
        hash(label)
    except TypeError:
        raise TypeError(f"{where} {label!r}, a {type(label).__name__}; labels must be hashable") from None
    if label is None or label != label:
        raise ValueError(f"{where} {label!r}; a label is anything hashable but None and NaN")
    return label


def labels_of(y: Any, n: int) -> list[Hashable]:
    """The labels of a batch of n examples."""
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise TypeError(f"y={y!r} must be a sequence of labels, one for each row of X")
    arguments.require_unmasked("y", y)
    labels = [label_of(label, f"y[{row}] is") for row, label in enumerate(y)]
    if len(labels) != n:
        raise ValueError(f"y has {len(labels)} labels for {n} rows of X; one label for each row is needed")
    return labels
