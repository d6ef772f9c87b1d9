"""The labelling loop over examples in memory, with a function that knows the labels: for experiments and simulations.

What the loop decides is carried out here on a model; the daemon does the same with records of a log.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from river import compose
from river.utils import dataframe

from streamsvm.active.loop import Action, Answer, LabellingLoop, Question, Retract, SetLabel
from streamsvm.active.pool import ArrayPool
from streamsvm.active.selection import Selection, margins
from streamsvm.active.stopping import StoppingRule
from streamsvm.core import arguments

ORACLE = "oracle"  # the annotator


class Step(NamedTuple):
    """One label that was learned.

    key
        Number of the row.
    y
        Its label.
    margin
        f(x) when it was chosen, before it was learned.
    reason
        Why it was chosen: "initial", or a reason of the loop's.
    n_labels
        Labels learned so far, with this one.
    n_support
        Support vectors of the model that has learned it.
    """

    key: int
    y: bool
    margin: float
    reason: str
    n_labels: int
    n_support: int


def label_pool(
    model: Any,
    X: Any,
    oracle: Callable[[int], Any],
    *,
    selection: Selection | None = None,
    stopping: StoppingRule | None = None,
    explore: float = 0.1,
    seeds: int = 1,
    initial: Iterable[int] = (),
    seed: int = 0,
    weights: Any = None,
) -> Iterator[Step]:
    """Teach a model by asking for the labels of well-chosen rows, one after the other.

    Parameters
    ----------
    model
        A learner of ours, or a river pipeline that ends in one.  It is changed as the steps go on.
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a dataframe or a list of dicts.
    oracle
        Gives the label of a row by its number: True and False (or 1 and 0, or 1 and -1), or None to skip it.
    selection, stopping, explore, seeds, seed
        As in `LabellingLoop`.  The rule can be asked afterwards why it stopped: `stopping.verdict().why`.  A rule
        remembers what it has seen: it takes a new one for each call.
    initial
        Rows to learn first, in this order.  They cost nothing of the budget.
    weights
        Weights of the examples, one number for all or one for each row; default: 1.

    Yields
    ------
    Step
        After each label that was learned, until the rule stops or every row has been asked about.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or the oracle gives no label.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import MaxLabels, label_pool
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> y = np.hypot(*X.T) > 2.0
    >>> model = LASVM(C=100.0, gamma=0.5)
    >>> steps = list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(100)))
    >>> len(steps), float(np.mean(model.predict_many(X) == y)) > 0.97
    (100, True)
    """
    if hasattr(model, "validate_many"):
        model.validate_many(X)  # or a fault would be found in some batch of candidates, under another number
    pool = ArrayPool(X)
    loop = LabellingLoop(pool, selection=selection, stopping=stopping, explore=explore, seeds=seeds, seed=seed)
    w = arguments.weights_of(weights, len(pool))
    return _steps(model, loop, pool, oracle, _checked(initial, len(pool)), w)


def _checked(initial: Iterable[int], n: int) -> list[int]:
    rows = list(initial)
    for place, row in enumerate(rows):
        if not isinstance(row, int | np.integer) or not 0 <= row < n:
            raise ValueError(f"initial[{place}]={row!r} must be the number of a row of X, from 0 to {n - 1}")
    if len(set(rows)) < len(rows):
        raise ValueError(f"initial={rows!r} must not repeat a row")
    return rows


def _steps(
    model: Any, loop: LabellingLoop, pool: ArrayPool, oracle: Callable[[int], Any], initial: Iterable[int], w: Any
) -> Iterator[Step]:
    n_support = _last_step(model).n_support

    def learn(key: int, row: Any, margin: float, reason: str) -> Step | None:
        nonlocal n_support
        label = oracle(key)
        y = None if label is None else arguments.label_of(label)
        for action in loop.answer(Answer(key, "skip" if y is None else "label", y, ORACLE, 0), n_support, 0):
            carry_out(action, model, row, w[key])
        if y is None:
            pool.discard(key)
            return None
        n_support = _last_step(model).n_support
        return Step(key, y, margin, reason, loop.counts.n_labels, n_support)

    for key in initial:
        row = pool.rows([key])
        step = learn(key, row, float(margins(model, row)[0]), "initial")
        if step is not None:
            yield step
    while (question := _next(loop, model)) is not None:
        step = learn(question.key, loop.row(question.key), question.margin, question.reason)
        if step is not None:
            yield step


def _next(loop: LabellingLoop, model: Any) -> Question | None:
    loop.choose(model, 0)
    return next(iter(loop.open_questions()), None)


def carry_out(action: Action, model: Any, row: Any = None, w: float = 1.0) -> str | None:
    """Teach a model what the loop has decided.

    Parameters
    ----------
    action
        A label is learned under its key as id.  A correction or retraction takes out exactly what was learned, if the
        model can do that (`forget`).  Other actions change no model.
    model
        A learner of ours, or a river pipeline that ends in one.
    row
        The example as a batch of one; not needed for a retraction.
    w
        Its weight.

    Returns
    -------
    None, or one sentence that says what the model could not undo.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import Retract, SetLabel, carry_out
    >>> model = LASVM()
    >>> carry_out(SetLabel(7, True, "ann", is_correction=False), model, [{"a": 1.0}])
    """
    learner = _last_step(model)
    if isinstance(action, SetLabel):
        if action.is_correction and hasattr(learner, "forget"):
            learner.forget([action.key])
        _learn(model, row, action.y, w, action.key)
        if action.is_correction and not hasattr(learner, "forget"):
            return f"{_name(learner)} cannot forget: example {action.key} was learned again, beside its old label"
    if isinstance(action, Retract):
        if not hasattr(learner, "forget"):
            return f"{_name(learner)} cannot forget: what was learned from example {action.key} stays in the model"
        learner.forget([action.key])
    return None


def _learn(model: Any, row: Any, y: bool, w: float, key: int) -> None:
    if isinstance(model, compose.Pipeline):
        model.learn_one(_as_dict(row), y, w=float(w), id=key)  # the pipeline's learn_many would need a frame
    else:
        model.learn_many(row, np.array([y]), w, np.array([key]))


def _as_dict(row: Any) -> dict:
    if isinstance(row, list):
        return row[0]
    if isinstance(row, np.ndarray):
        return dict(enumerate(row[0].tolist()))
    if sp.issparse(row):
        return dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
    return next(iter(dataframe.into_frame(row).iter_rows(named=True)))


def _last_step(model: Any) -> Any:
    """The learner itself."""
    return _last_step(model[-1]) if isinstance(model, compose.Pipeline) else model


def _name(learner: Any) -> str:
    return type(learner).__name__
