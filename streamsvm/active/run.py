"""The labelling loop over examples in memory, with a function that knows the labels: for experiments and simulations.

`carry_out` does to a model what the loop decides.  The trainer does the same with the records of a log.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from river import compose

from streamsvm.active.answers.events import Action, Answer, Label, Question, Retract, SetLabel
from streamsvm.active.choosing.alike import checked_groups
from streamsvm.active.choosing.cut import PoolCut, objective_of, pool_cut
from streamsvm.active.choosing.decisions import learner_of, margins
from streamsvm.active.choosing.kernel_width import GammaTuner
from streamsvm.active.choosing.pool import ArrayPool
from streamsvm.active.choosing.selection import Selection
from streamsvm.active.choosing.space import LABELLED
from streamsvm.active.choosing.stopping import StoppingRule
from streamsvm.active.loop import LabellingLoop
from streamsvm.core import arguments
from streamsvm.validation.rows import dicts_of, indexable, picked

ORACLE = "oracle"  # the annotator


class Step(NamedTuple):
    """One label that was learned.

    key
        Number of the row.
    y
        Its label.
    margin
        f(x) when the row was chosen, before it was learned.
    reason
        Why it was chosen: "initial", or one of the loop's reasons.
    n_labels
        Number of labels learned so far, with this one.
    n_support
        Support vectors of the model after learning it.
    """

    key: int
    y: Label
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
    explore: float | None = None,
    seeds: int = 1,
    initial: Iterable[int] = (),
    first: Iterable[int] = (),
    alike: Iterable[int] | None = None,
    seed: int = 0,
    sample_weight: Any = None,
    tune_gamma: int = 50,
    threshold: str | None = None,
    finish: bool = True,
) -> Iterator[Step]:
    """Teach a model by asking for the labels of well-chosen rows, one after the other.

    Parameters
    ----------
    model
        A learner such as `LASVM`, or `OneVsRest` for several classes, or a river pipeline that ends in one.  Each step
        teaches it.
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a dataframe or a list of dicts.
    oracle
        Gives the label of a row by its number: True and False, 1 and 0, 1 and -1; with several classes a string or an
        integer; or None to skip the row.
    selection, stopping, explore, seeds, seed
        As in `LabellingLoop`.  `stopping.verdict().why` tells afterwards why the rule stopped.  Make a new rule and a
        new selection for each call: they remember what they have seen.
    initial
        Numbers of rows to learn first, in this order.  They cost no label of the quota.
    first
        Numbers of rows to ask about first, in this order, such as those that `rows_with_words` finds.  Their reason is
        "seed"; no bound takes them for random.
    alike
        A number for each row, such as `near_duplicates` finds them: rows with the same number are near-duplicates.  The
        label of one of them is learned for all, and counts as one answer.  The threshold and all bounds take the others
        for neither asked nor random.  Default: each row is asked about alone.
    sample_weight
        Weights of the examples: one number for all rows, or one for each; default: 1.
    tune_gamma
        Number of labels after which gamma is chosen anew: 1/16, 1/4, 1 or 4 times the given one, by exact leave-one-out
        of the labels so far.  The model then learns all labels again, and its `gamma` has changed.  It needs an `LASVM`
        with an RBF kernel, and no pipeline; other models stay as they are.  0: gamma stays.
    threshold
        What the threshold for predictions is good for: ``"gmean"``, ``"recall"`` or ``"precision"``, see `pool_cut`.
        After the first labels, and then whenever 5 % of them are new, it is chosen by the labels and the pool, and the
        model's `threshold` has changed.  It needs an `LASVM` and no pipeline.  Questions are chosen at f(x) = 0 all the
        same.  None: ``"gmean"`` if the model has ``threshold="gmean"``, otherwise the model's threshold stays.
    finish
        Whether the model is finished after each answer, up to 1000 members: the next question is then about what the
        labels say.  False: it only learns the answer.  With ``LASVM(admission="all", reprocess=1)`` and
        ``tune_gamma=0``, that is one iteration for each question, as in the paper on LASVM (section 4.5).

    Yields
    ------
    Step
        One for each label that was learned, until the rule stops or every row has been asked about.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range, or if the oracle gives something other than a label.

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
    if isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}; it must be an instance such as {model.__name__}()")
    if not hasattr(learner_of(model), "decision_function_many"):
        raise TypeError(f"model={model!r:.60} must be a learner such as LASVM(), or a pipeline that ends in one")
    if not hasattr(oracle, "__call__"):  # noqa: B004 - mypy takes what follows `callable` for unreachable
        kind = type(oracle).__name__
        raise TypeError(f"oracle is a {kind}; it must be a function of a row's number, such as y.__getitem__")
    if hasattr(model, "validate_many"):
        model.validate_many(X)  # Otherwise a batch of candidates would show the fault, under another row number.
    pool = ArrayPool(X)
    given: dict[str, Any] = {"selection": selection, "stopping": stopping, "explore": explore, "seeds": seeds}
    loop = LabellingLoop(pool, **given, seed=seed, is_several=_is_several(model))
    weights = arguments.weights_of(sample_weight, len(pool))
    course = _Course(model, X, weights, GammaTuner(model, tune_gamma), PoolCut(objective_of(model, threshold)), finish)
    loop.suggest(_checked("first", first, len(pool)))
    groups = checked_groups(alike, len(pool))
    steps = _steps(course, loop, pool, oracle, _checked("initial", initial, len(pool)), groups)
    return (step for step in steps if step is not None)


def _checked(name: str, given: Iterable[int], n: int) -> list[int]:
    rows = list(given)
    for place, row in enumerate(rows):
        if not isinstance(row, int | np.integer) or not 0 <= row < n:
            raise ValueError(f"{name}[{place}]={row!r} must be the number of a row of X, from 0 to {n - 1}")
    if len(set(rows)) < len(rows):
        raise ValueError(f"{name}={rows!r} must not repeat a row")
    return [int(row) for row in rows]


class _Course:
    """The model and what it was taught.

    Parameters
    ----------
    model
        The model.
    X
        The examples.
    weights
        Their weights.
    tuner
        Chooses gamma.
    cut
        Chooses the threshold.
    finish
        Whether to finish the model after each label.
    """

    def __init__(self, model: Any, X: Any, weights: np.ndarray, tuner: GammaTuner, cut: PoolCut, finish: bool) -> None:
        self.model = model
        self._X = indexable(X)[0]
        self._weights = weights
        self._tuner = tuner
        self._cut = cut
        self._finish = finish
        self._keys: list[int] = []
        self._y: list[Label] = []

    def teach(self, action: Action, row: Any, key: int) -> None:
        """Carry out what the loop decided about a row."""
        carry_out(action, self.model, row, self._weights[key])
        if not isinstance(action, SetLabel):
            return
        self._keys.append(key)
        self._y.append(action.y)
        self._tune()
        if self._finish:
            finish_if_small(self.model)

    def _tune(self) -> None:
        weights = self._weights[self._keys]
        if not self._tuner.is_due(self._y, weights):
            return
        rows = picked(self._X, self._keys)
        fresh = self._tuner.choose(rows, self._y, weights)
        if fresh is None:
            return
        fresh.learn_many(rows, np.array(self._y), weights, np.array(self._keys))
        vars(self.model).clear()  # The caller has this object.
        vars(self.model).update(vars(fresh))
        self._cut.forget()

    def cut(self, loop: LabellingLoop) -> None:
        """Choose the threshold, if it is time."""
        objective = self._cut.objective
        if objective is None or not self._cut.is_due(loop.counts.n_changes):
            return
        keys, y = self._keys, self._y
        if loop.counts.alike:  # a positive that is left out has no near-duplicate that speaks for it
            alone = loop.labels(alike=False)
            kept = [i for i, key in enumerate(keys) if key in alone]
            keys, y = [keys[i] for i in kept], [y[i] for i in kept]
        rows, weights = picked(self._X, keys), self._weights[keys]
        f = loop.pool_values(self.model)
        self.model.set_threshold(pool_cut(self.model, rows, np.array(y), f, objective, sample_weight=weights))


def finish_if_small(model: Any) -> None:
    """Solve the model's problem exactly, if that costs little: a question is then about what the labels say."""
    learner = learner_of(model)
    if hasattr(learner, "finish") and getattr(learner, "n_members", LABELLED) < LABELLED:
        learner.finish()


def _steps(
    course: _Course,
    loop: LabellingLoop,
    pool: ArrayPool,
    oracle: Callable[[int], Any],
    initial: list[int],
    groups: Mapping[int, list[int]],
) -> Iterator[Step | None]:
    model = course.model
    n_support = learner_of(model).n_support
    label_of = _class_of if _is_several(model) else arguments.label_of

    def learn(key: int, row: Any, margin: float, reason: str) -> Step | None:
        nonlocal n_support
        label = oracle(key)
        y = None if label is None else label_of(label)
        for action in loop.answer(Answer(key, "skip" if y is None else "label", y, ORACLE, 0), n_support, 0):
            course.teach(action, row, key)
        if y is None:
            pool.discard(key)
            return None
        for other in groups.get(key, ()):
            if other in pool:
                row = pool.rows([other])
                for action in loop.answer(Answer(other, "label", y, ORACLE, 0, is_alike=True), n_support, 0):
                    course.teach(action, row, other)
        course.cut(loop)
        n_support = learner_of(model).n_support
        return Step(key, y, margin, reason, loop.counts.n_labels, n_support)

    for key in initial:
        row = pool.rows([key])
        yield learn(key, row, float(margins(model, row)[0]), "initial")
    while (question := _next(loop, model)) is not None:
        yield learn(question.key, loop.row(question.key), question.margin, question.reason)


def _is_several(model: Any) -> bool:
    return hasattr(learner_of(model), "labels")


def _class_of(label: Any) -> Label:
    """A label of one of several classes, in Python's own type."""
    label = label.item() if isinstance(label, np.generic) else label
    if type(label) not in (str, int):
        raise ValueError(f"y={label!r} must be a string or an integer")
    return label


def _next(loop: LabellingLoop, model: Any) -> Question | None:
    loop.choose(model, 0)
    return next(iter(loop.open_questions()), None)


def carry_out(action: Action, model: Any, row: Any = None, sample_weight: float = 1.0) -> str | None:
    """Teach a model what the loop has decided.

    Parameters
    ----------
    action
        The model learns a label under the example's key as id.  For a correction or a retraction it first forgets
        exactly what it learned from the example, if it can (`forget`).  Other actions change nothing.
    model
        A learner such as `LASVM`, or a river pipeline that ends in one.
    row
        The example as a batch of one; not needed for a retraction.
    sample_weight
        Its weight.

    Returns
    -------
    str or None
        A sentence that says what the model could not undo, if anything.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import Retract, SetLabel, carry_out
    >>> model = LASVM()
    >>> carry_out(SetLabel(7, True, "ann", is_correction=False), model, [{"a": 1.0}])
    """
    learner = learner_of(model)
    name = type(learner).__name__
    if isinstance(action, SetLabel):
        if action.is_correction and hasattr(learner, "forget"):
            learner.forget([action.key])
        _learn(model, row, action.y, sample_weight, action.key)
        if action.is_correction and not hasattr(learner, "forget"):
            return f"{name} cannot forget: example {action.key} was learned again, beside its old label"
    if isinstance(action, Retract):
        if not hasattr(learner, "forget"):
            return f"{name} cannot forget: what was learned from example {action.key} stays in the model"
        learner.forget([action.key])
    return None


def _learn(model: Any, row: Any, y: Label, w: float, key: int) -> None:
    if isinstance(model, compose.Pipeline):
        model.learn_one(next(dicts_of(row)), y, w=float(w), id=key)  # The pipeline's learn_many would need a dataframe.
    else:
        model.learn_many(row, np.array([y]), w, np.array([key]))
