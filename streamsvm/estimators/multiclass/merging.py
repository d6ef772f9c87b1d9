"""One model of several classes from models that learned parts of a stream side by side.

Each class, or each pair of classes, has a model of its own.  The merged one is solved over the members that the models
of this class, or of this pair, have in all parts; see `learner.merging`.  These models have no reservoirs.

A part may not have met a class.  For the model of this class, all members of the part are then negative examples, as
for a class that appears later.  For a pair with this class, the part gives its members of the other class only.

The vectors of all parts, each once and in the order of the parts, are numbered from 0.  The merged models know them by
these numbers, as `online.union` requires.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamsvm.core import storage
from streamsvm.estimators.inputs.sample import NOTHING, Sample, joined
from streamsvm.estimators.learner import merging
from streamsvm.estimators.learner.finishing import raw_features
from streamsvm.estimators.learner.learning import boxes_of
from streamsvm.estimators.learner.merging import Part
from streamsvm.estimators.learner.sharing import begin_beside
from streamsvm.estimators.learner.state import State
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.several import MulticlassSVM
from streamsvm.online import union
from streamsvm.online.outputs.calibration import pooled_calibration
from streamsvm.online.rescale import unscaled


def merge_classes(models: Sequence[Any], *, renumber: bool) -> Any:
    """The model of all that these have learned; they are of one class, and have the same parameters.

    Raises
    ------
    ValueError
        If an id names two examples.
    """
    labels = list(dict.fromkeys(label for model in models for label in model.labels))
    merged = type(models[0])(models[0].model.clone(), labels)
    vars(merged)["classes"] = models[0].classes
    common, commons = merged._common, [model._common for model in models]
    columns = merging.take_names(common, commons)
    merging.take_scale(common, commons, [model._union.vectors for model in models], columns)
    merging.take_counts(common, commons)
    parts = [_vectors_of(model, own) for model, own in zip(models, columns, strict=True)]
    if renumber:
        ends = np.cumsum([0, *(part.size for part in parts)])
        parts = [part._replace(id=b + np.arange(part.size)) for part, b in zip(parts, ends, strict=False)]
    every = _all_of(parts)
    common.n_seen = max(common.n_seen, every.size)
    common.next_id = common.n_seen if renumber else max(common.next_id, common.n_seen)
    for key, state in merged._models.items():
        _solve(merged, key, state, models, [_renumbered(part, every) for part in parts])
    merged._union = _union_of(merged, every)
    return merged


def _vectors_of(model: MulticlassSVM, columns: np.ndarray) -> Sample:
    """The vectors of a part by their numbers, which rise; column d becomes columns[d], and `box` has the weights."""
    U, scale = model._union, model._common.scale
    live = U.live_slots()
    rows = unscaled(storage.keep(storage.copy(U.vectors), live), scale.state, scale.n_raw)
    zeros = np.zeros(len(live), np.int64)
    fields = U.numbers[live], zeros.astype(np.uint64), U.user_ids[live], zeros, zeros == 0, U.weights[live]
    return merging.moved(Sample(*fields, rows.indptr, rows.columns, rows.values), columns, 0)


def _all_of(parts: Sequence[Sample]) -> Sample:
    """The vectors of all parts, each id once: an example's place is its number from now on."""
    every = merging.pooled_samples(parts[:1])
    for part in parts[1:]:
        every = merging.pooled_samples([every, merging.agreeing(part, every)])
    return every._replace(number=np.arange(every.size))


def _renumbered(part: Sample, every: Sample) -> Sample:
    """The same vectors with their numbers among all of them as ids."""
    order = np.argsort(every.id)
    return part._replace(id=order[np.searchsorted(every.id, part.id, sorter=order)])


def _solve(merged: Any, key: Any, state: State, models: Sequence[Any], parts: Sequence[Sample]) -> None:
    """Make one of the merged models what all parts have learned of its class, or of its pair."""
    common = merged._common
    begin_beside(state, common, common.kernel, common.n_seen, common.n_seen, (0, 0))
    same = [(one.n_seen, one._models[own]) for one in models if (own := _own_key(one, key)) is not None]
    if same:
        seen, known = zip(*same, strict=True)
        state.calibration[:] = pooled_calibration([one.calibration for one in known], np.array(seen, np.float64))
    state.class_counts = tuple(np.sum([_counts_of(one, key) for one in models], axis=0).tolist())
    found = [
        _examples_of(one, key, state, part, merging.shift_of(common, one._common))
        for one, part in zip(models, parts, strict=True)
    ]
    members, _ = merging.young(state, merging.distinct([Part(examples, NOTHING) for examples in found]))
    members = members.take(np.argsort(members.id))._replace(number=np.arange(members.size))
    if members.size:
        merging.solve_over(state, members, NOTHING)


def _examples_of(one: Any, key: Any, state: State, part: Sample, shift: int) -> Sample:
    """What a part has learned of a class, or of a pair: the members of its own model.

    Without one, those of its members that tell what the others are like.
    """
    own = _own_key(one, key)
    if own is not None:
        s = one._models[own].expansion
        live = storage.live_slots(s)
        positive, box = (s.y[live] > 0) == (own == key), s.hi[live] - s.lo[live]
        return _with_box(part, s.ids[live], s.born[live] + shift, positive, box)
    if not isinstance(one, OneVsOne):
        return _taught(one, state, part, one._members(), shift, positive=False)
    known = [label for label in key if label in one.labels]
    return joined(
        [_taught(one, state, part, one._members_of_class(label), shift, positive=label == key[0]) for label in known]
    )


def _taught(
    one: Any, state: State, part: Sample, members: tuple[np.ndarray, np.ndarray], shift: int, *, positive: bool
) -> Sample:
    """Members of a part, by their numbers and ages, as examples of one sign."""
    numbers, born = members
    signs = np.full(len(numbers), positive)
    lo, hi, _ = boxes_of(state, signs, one._union.weights[one._union.slots_of(numbers)], born)
    return _with_box(part, numbers, born + shift, signs, hi - lo)


def _with_box(part: Sample, numbers: np.ndarray, born: np.ndarray, positive: np.ndarray, box: np.ndarray) -> Sample:
    """The vectors of a part with these numbers as examples."""
    return part.take(np.searchsorted(part.number, numbers))._replace(born=born, positive=positive, box=box)


def _own_key(one: Any, key: Any) -> Any:
    """The key that a part has for a class, or for a pair, which may be the other way round; None if it has no model."""
    if key in one._models:
        return key
    return key[::-1] if isinstance(one, OneVsOne) and key[::-1] in one._models else None


def _counts_of(one: Any, key: Any) -> tuple[int, int]:
    """How many negative and positive examples of a class, or of a pair, a part has learned."""
    own = _own_key(one, key)
    if own is not None:
        counts = one._models[own].class_counts
        return counts if own == key else counts[::-1]
    if isinstance(one, OneVsOne):
        first, *second = (one._n_learned(label) if label in one.labels else 0 for label in key)
        return sum(second), first
    return next((sum(other.class_counts) for other in one._models.values()), 0), 0


def _union_of(merged: Any, every: Sample) -> union.Union:
    """The union of the vectors that the merged models have as members."""
    common, U = merged._common, union.empty()
    scale = common.scale
    if scale.is_active:
        U = U._replace(vectors=storage.with_raw(U.vectors, len(scale.state.m)))
    numbers, _ = merged._members()
    chosen = every.take(numbers)
    raw = raw_features(chosen)
    of_user = numbers, chosen.id, chosen.box
    return union.with_vectors(U, common.kernel, scale.queries(raw), *of_user, len(common.features), scale.kept(raw))
