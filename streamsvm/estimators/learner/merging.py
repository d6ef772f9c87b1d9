"""One model from several that learned parts of a stream side by side: a cascade of one layer.

The model of each part has kept the examples that matter there, its members, and a sample of all that it saw, its
reservoir.  The merged model is solved to the optimum over all of them.  The reservoirs are needed: a part that met few
examples of a region may have let go what its neighbours now need.

========= =========================================================== ================
symbol    name                                                        shape, dtype
========= =========================================================== ================
columns   the merged column of each feature of a part                 (D_k,) int64
========= =========================================================== ================

Source: Graf, Cosatto, Bottou, Durdanovic, Vapnik, "Parallel support vector machines: the cascade SVM", NIPS 17 (2004).
Deviations:

- One layer instead of a tree: the union of all members fits into memory.
- Reservoirs take the place of the second round there, which hands the merged support vectors back to the parts.
- The coefficients begin at 0.  Those of the parts add up to a decision function that is too large.  To go on from them,
  or from a third of them, took as long on two data sets and 1.3 times as long on a third.
- Models with a bias take the solution of the batch solver.  The others learn the members, and then those examples of
  the reservoirs that violate the margin.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streamsvm.batch.kernels.features import Features
from streamsvm.batch.options import SolverOptions
from streamsvm.batch.problem import penalties
from streamsvm.batch.working_set.solver import LOOSE, optimum
from streamsvm.core import sparse as sp
from streamsvm.core import storage
from streamsvm.core.expansion import CACHE_BYTES, EVALUATIONS, Expansion
from streamsvm.core.rounding import PRECISION
from streamsvm.core.scaling.pooling import pooled
from streamsvm.estimators.inputs.sample import Sample, joined, sparse_rows
from streamsvm.estimators.learner import finishing
from streamsvm.estimators.learner.eviction import make_way
from streamsvm.estimators.learner.state import State, share_scale
from streamsvm.online.outputs.calibration import pooled_calibration
from streamsvm.online.rescale import unscaled

# Two examples are the same one if no feature differs by more than half the digits of single precision, relative to its
# largest value.
SAME = PRECISION**0.5


class Part(NamedTuple):
    """What one model gives: its members, and the sample of its stream; features have merged columns."""

    members: Sample
    sample: Sample


def merge(state: State, models: Sequence[State], renumber: bool) -> None:
    """Become the model of all that these have learned; this one has learned nothing yet."""
    columns = take_names(state, models)
    take_scale(state, models, [model.expansion for model in models], columns)
    take_counts(state, models)
    parts = [part_of(model, own, shift_of(state, model)) for model, own in zip(models, columns, strict=True)]
    if renumber:
        parts = _renumbered(parts)
        state.next_id = max(state.n_seen, sum(len(_ids_of(part)) for part in parts))
    members, sample = young(state, distinct(parts))
    state.reservoir.pool([model.reservoir for model in models], sample, state.n_seen)
    if members.size:
        solve_over(state, members, sample)


def solve_over(state: State, members: Sample, sample: Sample) -> None:
    """Solve over these members, and over those of the sample that violate then, within the budget."""
    if state.problem.fixed_sum:
        _take_optimum(state, pooled_samples([members, sample]))
    else:
        state.expansion = finishing.with_examples(state, state.expansion, members)
        finishing.finish_members(state, max(state.tol, LOOSE))
        finishing.warn_unless_reached(state, state.tol, finishing.solve_with_all(state, state.tol, sample))
    if state.window:
        state.window.look(state.expansion)
    if state.budget is not None and state.n_members > state.budget:
        make_way(state, state.window.latest if state.window else 0)


def _take_optimum(state: State, examples: Sample) -> None:
    """Make those of these examples members that have a coefficient at the optimum over all of them, and finish."""
    q = state.scale.queries(finishing.raw_features(examples))
    X = sp.csr_matrix((q.values, q.indices, q.indptr), shape=(examples.size, len(state.features.columns)))
    lo, hi = np.where(examples.positive, 0.0, -examples.box), np.where(examples.positive, examples.box, 0.0)
    y, cache_mb = np.where(examples.positive, 1.0, -1.0), float(state.expansion.counts[CACHE_BYTES]) / 2**20
    options = SolverOptions(tol=state.tol, cache_mb=cache_mb)
    found, _ = optimum(Features(X, state.kernel), y, lo, hi, options)
    support = found.support
    s, n = finishing.with_examples(state, state.expansion, examples.take(support)), len(support)
    s.alpha[:n], s.g[:n] = found.dual_coef[support], found.g[support]
    s.up[:n], s.down[:n] = penalties(s.alpha[:n], s.lo[:n], s.hi[:n])
    s.counts[EVALUATIONS] += found.kernel_evaluations
    state.problem.note(s)
    state.expansion = s
    finishing.warn_unless_reached(state, state.tol, finishing.finish_members(state, state.tol))


def take_names(state: State, models: Sequence[State]) -> list[np.ndarray]:
    """Give the features of all models columns; return the column of each feature of each model."""
    names = [tuple(model.features.learned()) for model in models]
    for own in names:
        state.features.add(own)
    state.scale.fit_room(state.features)
    state.features.n_kept = len(state.features.columns)
    return [state.features.lookup(own).copy() for own in names]


def take_scale(state: State, models: Sequence[State], vectors: Sequence[Expansion], columns: list[np.ndarray]) -> None:
    """Use the scale of all models, which have their members among these vectors."""
    if not any(model.scale.tracks for model in models):
        return
    scale = state.scale.copy()
    states = [model.scale.awake(s).state for model, s in zip(models, vectors, strict=True)]
    scale.state = pooled(states, columns, len(state.features.columns))
    scale = scale.renewed(max(model.n_members for model in models))
    share_scale(state, scale, scale.adapted(state.kernel))


def take_counts(state: State, models: Sequence[State]) -> None:
    state.n_seen = sum(model.n_seen for model in models)
    negatives, positives = zip(*(model.class_counts for model in models), strict=True)
    state.class_counts = sum(negatives), sum(positives)
    state.next_id = max(state.n_seen, *(model.next_id for model in models))
    state.next_look += state.n_seen
    seen = np.array([model.n_seen for model in models], np.float64)
    state.calibration[:] = pooled_calibration([model.calibration for model in models], seen)
    if state.window:
        latest = max(model.window.latest for model in models if model.window)
        state.window.latest = latest if state.window.by_time else state.n_seen - 1


def shift_of(state: State, model: State) -> int:
    """What to add to the ages of a model's examples: those that count examples go on from its newest one."""
    if not state.window or state.window.by_time or not model.window or not model.n_seen:
        return 0
    return state.window.latest - model.window.latest


def young(state: State, part: Part) -> Part:
    """The examples that the window has not left behind."""
    if not state.window:
        return part
    edge = state.window.latest - state.window.span
    return Part(*(examples.take(examples.born > edge) for examples in part))


def part_of(state: State, columns: np.ndarray, shift: int) -> Part:
    """The members and the sample of this model; column d becomes columns[d], and `shift` is added to the ages."""
    s = storage.copy(storage.without_rows(state.expansion))
    s = storage.keep(s, storage.live_slots(s))
    n, rows = storage.n_members(s), unscaled(s, state.scale.state, state.scale.n_raw)
    fields = np.zeros(n, np.uint64), s.ids[:n], s.born[:n], s.y[:n] > 0, s.hi[:n] - s.lo[:n]
    members = Sample(np.arange(n), *fields, rows.indptr, rows.columns, rows.values)
    return Part(*(moved(examples, columns, shift) for examples in (members, state.reservoir.sample())))


def moved(examples: Sample, columns: np.ndarray, shift: int) -> Sample:
    starts, own, values = examples[-3:]
    rows = sparse_rows(starts, columns[own], values, np.arange(examples.size))
    return Sample(*examples[:3], examples.born + shift, *examples[4:6], *rows)


def _ids_of(part: Part) -> np.ndarray:
    return np.unique(np.concatenate([examples.id for examples in part]))


def _renumbered(parts: list[Part]) -> list[Part]:
    """The same examples with the ids 0, 1, ..., in the order of the parts and of the ids they had."""
    first, renumbered = 0, []
    for part in parts:
        ids = _ids_of(part)
        new = (examples._replace(id=first + np.searchsorted(ids, examples.id)) for examples in part)
        renumbered.append(Part(*new))
        first += len(ids)
    return renumbered


def distinct(parts: list[Part]) -> Part:
    """The examples of all parts, each id once; a ValueError if an id names two examples.

    Parts may know different labels for an example, as when one of them was told a correction: the first part counts.
    """
    kept, known = parts[:1], pooled_samples(parts[0])
    for part in parts[1:]:
        kept.append(Part(*(agreeing(examples, known) for examples in part)))
        known = pooled_samples([known, *kept[-1]])
    return Part(*(pooled_samples(examples) for examples in zip(*kept, strict=True)))


def agreeing(examples: Sample, known: Sample) -> Sample:
    """These examples, without those that are known with another label; a ValueError if an id names two examples."""
    order = np.argsort(known.id)
    at = np.searchsorted(known.id, examples.id, sorter=order)
    at[at == known.size] = 0
    shared = np.flatnonzero(known.id[order][at] == examples.id) if known.size else np.zeros(0, np.int64)
    own, other = examples.take(shared), known.take(order[at[shared]])
    if (other_features := _differ(own, other)).any():
        raise ValueError(
            f"the id {own.id[other_features][0]} names different examples of two models: give each model ids of its "
            "own when it learns (`ids`, `id`), or merge with renumber=True"
        )
    keep = np.ones(examples.size, bool)
    keep[shared] = own.positive == other.positive
    return examples if keep.all() else examples.take(keep)


def _differ(a: Sample, b: Sample) -> np.ndarray:
    """Which examples of a have other features than those of b, beyond the rounding of members that were scaled."""
    width = max((int(sample.columns.max(initial=-1)) for sample in (a, b)), default=-1) + 1
    rows = [sp.csr_matrix((s.values, s.columns, s.starts), shape=(a.size, width)) for s in (a, b)]
    largest = np.zeros(width)
    for sample in (a, b):
        np.maximum.at(largest, sample.columns, np.abs(sample.values))
    difference = sp.coo_matrix(rows[0] - rows[1])
    differs = np.zeros(a.size, bool)
    differs[difference.row[np.abs(difference.data) > SAME * largest[difference.col]]] = True
    return differs


def pooled_samples(samples: Sequence[Sample]) -> Sample:
    """All these examples, numbered anew, and of those with one id the first."""
    begins = np.cumsum([0, *(sample.size for sample in samples)])
    numbered = [s._replace(number=b + np.arange(s.size)) for s, b in zip(samples, begins, strict=False)]
    every = joined(numbered)
    return every.take(np.sort(np.unique(every.id, return_index=True)[1]))
