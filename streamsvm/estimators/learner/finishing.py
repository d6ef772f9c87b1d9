"""How a model is optimised over its members, and over those of the reservoir that they no longer represent.

Examples of the reservoir become members with coefficient 0, and the solver does the rest.  They do not count as new
examples.  The sigmoid of the probabilities ignores them, because they are the worst examples only and would bias it.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from streamsvm.core import blocks, storage
from streamsvm.core.blocks import Queries
from streamsvm.core.expansion import Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.rounding import ROUNDS
from streamsvm.core.scaling.state import RawRows
from streamsvm.core.stream_warning import warn
from streamsvm.estimators.inputs import raw_rows
from streamsvm.estimators.inputs.sample import NOTHING, Sample, priorities
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.examples import Examples, no_margins
from streamsvm.estimators.learner.state import Solver, State, in_room, solve
from streamsvm.online import arrival, cccp
from streamsvm.online.finish import WithoutBias
from streamsvm.online.lasvm import keep_block
from streamsvm.online.removal.tracked_values import Beside
from streamsvm.online.removal.window import FAR


class _Watched(NamedTuple):
    """Examples of the reservoir beside the model, and the state for which they were looked up."""

    state: tuple[int, int, RunningScale, Kernel]
    examples: Sample
    sign: np.ndarray
    beside: Beside


def finish(state: State, tol: float, least_margin: float | None = None) -> None:
    """Solve over the members and the examples of the reservoir, until none of either violates by more than `tol`.

    An example with y f(x) < `least_margin` counts as noise; default: the model's own.
    """
    examples = state.reservoir.sample() if state.reservoir.n_put else NOTHING
    steps = solve_with_all(state, tol, examples, least_margin)
    warn_unless_reached(state, tol, steps)


def sparsify(state: State, tol: float, ramp_s: float) -> None:
    """Solve until the ramp loss gives up no more members; the reservoir loses its examples that are noise."""
    problem = state.problem
    if isinstance(problem, WithoutBias):
        steps = solve(state, lambda s: cccp.sparsify(s, state.kernel, tol, problem.max_non_sv, ramp_s))
        warn_unless_reached(state, tol, steps)
    else:
        finish(state, tol)
        for _ in range(ROUNDS):
            noise = _slots_below(state, ramp_s)
            if not len(noise):
                break
            solve(state, partial(cccp.without_noise, kernel=state.kernel, tol=tol, noise=noise))
            finish(state, tol, ramp_s)
    examples = state.reservoir.sample()
    state.reservoir.forget(examples.id[margins_of(state, examples, in_room(state), state.bias) < ramp_s])


def _slots_below(state: State, margin: float) -> np.ndarray:
    """The slots of the members with a smaller y f(x)."""
    s, slots = state.expansion, storage.live_slots(state.expansion)
    y = s.y[slots].astype(np.float64)
    return slots[y * (y - s.g[slots] + state.bias) < margin]


def finish_members(state: State, tol: float) -> int:
    """Solve over the members alone, and let useless ones go; return the number of steps."""
    return solve(state, partial(state.problem.finish, kernel=state.kernel, tol=tol))


def warn_unless_reached(state: State, tol: float, steps: int) -> None:
    """Warn if a member still violates by more than `tol` after so many steps."""
    left = state.problem.violation(state.expansion)
    if left > tol:
        warn(
            f"finish stopped after {steps} steps with a violation of {left:.3g}, above tol={tol:g}: "
            "kernel values in single precision allow no more; scale the features or raise tol",
            RuntimeWarning,
        )


def solve_with_all(state: State, tol: float, examples: Sample, least_margin: float | None = None) -> int:
    """Solve with those of these examples that violate, until none does; return the number of steps.

    Where no step moves anything, it is rounding that makes an example violate.
    """
    solver = partial(state.problem.finish, kernel=state.kernel, tol=tol)
    late = violators(state, tol, examples, least_margin)
    steps = done = solve_with(state, late, solver)
    for _ in range(ROUNDS):
        late = violators(state, tol, examples, least_margin)
        if not done or not late.size:
            return steps
        done = solve_with(state, late, solver)
        steps += done
    warn(
        f"finish looked at the reservoir {ROUNDS} times, and {late.size} of its examples still violate the "
        f'margin by more than tol={tol:g}; use a larger tol, or another kernel than "sigmoid"'
    )
    return steps


def violators(state: State, tol: float, examples: Sample, least_margin: float | None = None) -> Sample:
    """Those of these examples that are no members and violate, without noise, shuffled.

    They are no more than the budget has room for.
    """
    if not examples.size:
        return examples
    least = state.least_margin if least_margin is None else least_margin
    slack = 0.5 * tol if state.problem.fixed_sum else tol  # the bias is half-way between two members
    margins = margins_of(state, examples, in_room(state), state.bias)
    places = np.flatnonzero((margins < 1.0 - slack) & (margins >= least))
    return _shuffled(state, examples, places[~_are_members(state, examples.id[places])])


def watch(state: State) -> _Watched | None:
    """The examples of the reservoir, with decision values by the model as it is; None if there are none.

    `uncovered` keeps them for the next time.  If it is interrupted before, they are found anew.
    """
    looked = state.reservoir.n_put, len(state.features.columns), state.scale, state.kernel
    watched, state.watched = state.watched, None
    if watched is None or any(a is not b and a != b for a, b in zip(watched.state, looked, strict=True)):
        examples = state.reservoir.sample()
        if not examples.size:
            return None
        q = queries_of(state, examples)
        sign = np.where(examples.positive, 1.0, -1.0)
        watched = _Watched(looked, examples, sign, Beside(q, looked[1], state.kernel, state.evaluator.decide))
    watched.beside.follow(in_room(state))
    return watched


def uncovered(state: State, watched: _Watched | None, before: Expansion, bias: float) -> Sample:
    """Those of the reservoir that are no members and violate the margin, but did not before, shuffled.

    `before` is the expansion with the members that have left since, by which the decision values of `watched` are.
    Where the rounding of these values leaves a doubt, the decision values are computed.
    """
    if watched is None:
        return NOTHING
    beside, sign = watched.beside, watched.sign
    margins, doubt = sign * (beside.f + bias), beside.doubt
    before = storage.require_room(before, len(state.features.columns))
    beside.follow(in_room(state), before)
    state.watched = watched
    now, doubt = sign * (beside.f + state.bias), max(doubt, beside.doubt)
    suspects = np.flatnonzero(_may_violate(state, now, doubt) & ~_may_violate(state, margins, -doubt))
    suspects = suspects[~_are_members(state, watched.examples.id[suspects])]
    suspects = suspects[state.reservoir.holds(watched.examples, suspects)]
    if not len(suspects):
        return NOTHING
    violates, violated = _may_violate(state, now[suspects], -doubt), _may_violate(state, margins[suspects], doubt)
    in_doubt = np.flatnonzero(~violates | violated)
    if len(in_doubt):
        others = watched.examples.take(suspects[in_doubt])
        violated[in_doubt] = _may_violate(state, margins_of(state, others, before, bias), 0.0)
        violates[in_doubt] = _may_violate(state, margins_of(state, others, in_room(state), state.bias), 0.0)
    return _shuffled(state, watched.examples, suspects[violates & ~violated])


def _may_violate(state: State, margins: np.ndarray, doubt: float) -> np.ndarray:
    """Which of these y f(x), right up to `doubt`, may be those of violators that are no noise, (n,) bool.

    With -doubt: which surely are.
    """
    return (margins < 1.0 - state.tol + doubt) & (margins >= state.least_margin - doubt)


def _are_members(state: State, ids: np.ndarray) -> np.ndarray:
    """Which of these ids members have, (n,) bool."""
    return np.isin(ids, state.expansion.ids[state.expansion.y != 0])


def margins_of(state: State, examples: Sample, s: Expansion, bias: float) -> np.ndarray:
    """y f(x) of these examples by a model with these members."""
    if not examples.size:
        return np.empty(0)
    f = state.evaluator.decide(s, state.kernel, queries_of(state, examples), bias)
    return np.where(examples.positive, f, -f)


def queries_of(state: State, examples: Sample) -> Queries:
    """These examples as the kernel sees them."""
    state.features.settle()
    return state.scale.queries(raw_features(examples))


def _shuffled(state: State, examples: Sample, places: np.ndarray) -> Sample:
    """As many of the examples in these places as the budget has room for, in an order that the stream does not know."""
    if not len(places):
        return NOTHING
    order = np.argsort(priorities(examples.priority[places]))
    return examples.take(
        places[order if state.budget is None else order[: max(0, int(state.budget) - state.n_members)]]
    )


def solve_with(state: State, examples: Sample, solver: Solver, stay: bool = False) -> int:
    """Solve with these examples as further members; return the number of steps.  For `stay` see `state.solve`."""
    if state.window and examples.size:
        state.window.passed(int(examples.born.min()), state.window.latest)
    return solve(state, lambda s: solver(with_examples(state, s, examples) if examples.size else s), stay)


def with_examples(state: State, s: Expansion, examples: Sample) -> Expansion:
    """The expansion with these examples as members, with coefficient 0; the solver must follow."""
    raw, n = raw_features(examples), examples.size
    q = state.scale.queries(raw)
    lo, hi = np.where(examples.positive, 0.0, -examples.box), np.where(examples.positive, examples.box, 0.0)
    margins, t = no_margins(n), 0
    while t < n:
        part = slice(t, min(t + blocks.BLOCK, n))
        q_part = q.part(part.start, part.stop)
        s = arrival.make_room(s, q_part, len(state.features))
        products = state.evaluator.products(s, q_part)
        kept = state.scale.kept(raw.part(part.start, part.stop))
        block = Examples(q_part, lo[part], hi[part], examples.id[part], False, examples.born[part], kept).compiled()
        t += keep_block(s, state.kernel, block, False, *products, False, FAR, margins[part])
    return s


def raw_features(examples: Sample) -> RawRows:
    """The features of examples of the reservoir."""
    return raw_rows.from_rows(examples.starts, examples.columns, examples.values)
