"""What a model says about candidates: how far they lie from the boundary, of two classes or between several."""

from typing import Any

import numpy as np
from river import compose

from streamsvm.validation.rows import dicts_of


def margins(model: Any, X: Any) -> np.ndarray:
    """f(x) of each row of X; with more than two classes, half the lead of the best class over the second best.

    Half the lead is 1 if an example lies on the margins of both classes.  With `OneVsOne`, the value of a class is the
    smallest decision value of its pairs.

    Parameters
    ----------
    model
        A learner with `decision_function_many`, or a river pipeline that ends in one.
    X
        Rows as the learner takes them.  For a pipeline, arrays become dicts that name the columns 0, 1, 2, ...

    Returns
    -------
    np.ndarray
        Decision values, or half the leads, (n,) float64.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import margins
    >>> model = LASVM()
    >>> model.learn_many(np.array([[-1.0], [1.0]]), [False, True])
    >>> margins(model, np.array([[-0.5], [0.0], [0.5]])) > 0.0
    array([False, False,  True])
    """
    values = decisions(model, X)
    return values if values.ndim == 1 else half_leads(values)


def decisions(model: Any, X: Any) -> np.ndarray:
    """f(x) of each row of X, (n,); of a model of several classes, a column for each; parameters as of `margins`."""
    learner, rows = learner_of(model), _as_learned(model, X)
    if hasattr(learner, "pair_values_many"):
        return _values_of_pairs(np.asarray(learner.pair_values_many(rows), np.float64), len(learner.labels))
    return np.asarray(learner.decision_function_many(rows), np.float64)


def _values_of_pairs(of_pairs: np.ndarray, n_classes: int) -> np.ndarray:
    """Decision values of classes: the smallest of a class's pairs.  Votes would say nothing about the margin."""
    if n_classes < 2:
        return np.zeros((len(of_pairs), n_classes))
    values = np.full((len(of_pairs), n_classes), np.inf)
    for first, second, f in zip(*np.triu_indices(n_classes, 1), of_pairs.T, strict=True):
        np.minimum(values[:, first], f, out=values[:, first])
        np.minimum(values[:, second], -f, out=values[:, second])
    return values


def _as_learned(model: Any, X: Any) -> Any:
    """Rows as the learner at the end of a pipeline takes them."""
    if not isinstance(model, compose.Pipeline):
        return X
    *transformers, last = model.steps.values()
    if transformers and not hasattr(X, "columns"):
        X = list(dicts_of(X))
    for step in transformers:
        X = [step.transform_one(x) for x in X] if isinstance(X, list) else step.transform_many(X)
    return _as_learned(last, X)


def half_leads(values: np.ndarray) -> np.ndarray:
    """Half the lead of the best class over the second best, given a column of decision values for each class."""
    if values.shape[1] < 2:
        return np.zeros(len(values))
    second, best = np.partition(values, -2, axis=1)[:, -2:].T
    return 0.5 * (best - second)


def leads_of(places: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Half the lead of each row's class over the best other one; below 0 where another one has a larger value."""
    every, others = np.arange(len(places)), values.copy()
    own = others[every, places]
    others[every, places] = -np.inf
    return 0.5 * (own - others.max(axis=1)) if values.shape[1] > 1 else np.zeros(len(places))


def guesses(model: Any, X: Any) -> list[Any]:
    """The classes that a model of more than two classes predicts for rows; None if it knows no class."""
    return np.asarray(learner_of(model).predict_many(_as_learned(model, X))).tolist()


def owner_of_kernel(model: Any) -> Any:
    """The learner with the parameters that count: the last step of a pipeline; with several classes, that of each."""
    learner = learner_of(model)
    return learner.model if hasattr(learner, "labels") and hasattr(learner, "gamma_in_use") else learner


def learner_of(model: Any) -> Any:
    """The learner itself: the last step of a pipeline."""
    return learner_of(model[-1]) if isinstance(model, compose.Pipeline) else model


def closest_of_rare(model: Any, values: np.ndarray, f: np.ndarray, rng: np.random.Generator) -> int:
    """The candidate closest to the boundary of a drawn class, if one lies inside the margin; otherwise of all.

    A class is drawn with a weight of 1 / (1 + its examples).  A candidate is at the boundary of its two best classes.

    Parameters
    ----------
    model
        A model of several classes, or a pipeline that ends in one.
    values, f
        The candidates' decision values, a column for each class, and half the leads.
    rng
        Draws the class.

    Raises
    ------
    ValueError
        If the model has two classes.
    """
    if values.ndim == 1:
        raise ValueError("rare_first=True needs a model of several classes, such as OneVsRest(LASVM())")
    inside = np.flatnonzero(f < 1.0)
    if values.shape[1] < 2 or not len(inside):
        return int(np.argmin(f))
    two_best = np.argpartition(values[inside], -2, axis=1)[:, -2:]
    return int(inside[closest_of_drawn(model, two_best, f[inside], rng)])


def closest_of_drawn(model: Any, places: np.ndarray, f: np.ndarray, rng: np.random.Generator) -> int:
    """The candidate with the smallest f of those that belong to the first drawn class that has any.

    A class is drawn with a weight of 1 / (1 + its examples), and then others in turn, without replacement, by
    exponential keys: Efraimidis, Spirakis, "Weighted random sampling with a reservoir", Information Processing Letters
    97 (2006).

    Parameters
    ----------
    model
        A model of several classes, or a pipeline that ends in one.
    places
        The places of the classes to which each candidate belongs, (n, k).
    f
        Half the leads, (n,).
    rng
        Draws the classes.
    """
    counts = np.array(list(learner_of(model).class_counts.values()))
    order = np.argsort(rng.exponential(size=len(counts)) * (1.0 + counts), kind="stable")
    turns = np.argsort(order)[places].min(axis=1)  # the first in which a class of the candidate is drawn
    return int(np.argmin(np.where(turns == turns.min(), f, np.inf)))
