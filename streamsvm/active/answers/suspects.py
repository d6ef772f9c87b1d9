"""Suspects: the answers that look wrong, judged by a model that has not seen them."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm.active.choosing.decisions import leads_of
from streamsvm.batch import RowStore, SolverOptions
from streamsvm.core import arguments
from streamsvm.core.kernels import make_kernel
from streamsvm.validation.held_out import folds
from streamsvm.validation.held_out.problem import Problem
from streamsvm.validation.held_out.splits import outcomes, prepared

OPTIONS = SolverOptions(cache_mb=64.0)


class Suspect(NamedTuple):
    """An answer to look at again.

    place
        Its place among the answers, from 0.
    margin
        y f(x) by the model of all other answers; with more than two classes, half the lead of the answer's class over
        the best other one, by one-versus-rest.  Below 0, the other answers contradict this one.
    """

    place: int
    margin: float


def suspects(
    X: Any, y: Any, C: float = 1.0, gamma: float = 1.0, n: int | None = None, *, sample_weight: Any = None
) -> list[Suspect]:
    """The answers to look at again, the most doubtful first.

    Each answer is judged by the exact solution for all other answers.

    Parameters
    ----------
    X
        Examples as rows: a 2-D array, a SciPy sparse matrix, a frame of numbers or a list of dicts.  Scale the features
        as the model does.  A `RowStore` is taken as it is, with its kernel.
    y
        The answers: bool, -1 and +1, 0 and 1, or any two or more classes.
    C
        Weight of the losses; positive.
    gamma
        Factor of the RBF kernel; positive.  A `RowStore` has its own.
    n
        Largest number of suspects; None: all answers in their order of doubt.
    sample_weight
        Factor on C for each example; default: 1.

    Returns
    -------
    list of Suspect
        By margin, smallest first; of equal margins, the earlier answer first.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of its range.

    Notes
    -----
    Of 250 answers with 5 to 10 % wrong ones, about half of the first suspects are wrong.  Twice as many suspects as
    wrong answers hold 63 to 83 % of them.  Asking again cleans the answers.  For a better model, ask new questions.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm.active import suspects
    >>> X = np.arange(20.0)[:, None]
    >>> y = np.arange(20) >= 10
    >>> y[4] = True  # a slip
    >>> suspects(X, y, C=10.0, gamma=0.1, n=1)[0].place
    4
    """
    arguments.require_positive("C", C)
    if n is not None:
        arguments.require_count("n", n, 0)
    store = X if isinstance(X, RowStore) else RowStore(X, make_kernel("rbf", gamma=gamma), OPTIONS.cache_mb)
    boxes = float(C) * arguments.weights_of(sample_weight, len(store), "sample_weight")
    y = arguments.classes_of(y, len(store))
    classes = np.unique(y)
    if len(classes) > 2:
        margins = left_out_leads([store] * len(classes), np.searchsorted(classes, y), [boxes] * len(classes))
    else:
        signs = arguments.signs_of(y, len(store))
        margins = signs * left_out_values(store, signs, boxes)
    return ranked(margins)[:n]


def ranked(margins: np.ndarray) -> list[Suspect]:
    """All answers, by their margins, the smallest first."""
    return [Suspect(place, float(margins[place])) for place in np.argsort(margins, kind="stable").tolist()]


def left_out_leads(stores: Sequence[RowStore], places: np.ndarray, boxes: Sequence[np.ndarray]) -> np.ndarray:
    """Half the lead of each example's class over the best other one, by the exact solutions for all other examples.

    Parameters
    ----------
    stores
        For each class, the examples and the kernel of its model, which tells it from all other classes.
    places
        The class of each example, (n,).
    boxes
        For each class, the largest size of each coefficient of its model, (n,).
    """
    values = np.column_stack(
        [
            left_out_values(store, np.where(places == k, 1.0, -1.0), box)
            for k, (store, box) in enumerate(zip(stores, boxes, strict=True))
        ]
    )
    return leads_of(places, values)


def left_out_values(
    store: RowStore, signs: np.ndarray, boxes: np.ndarray, places: np.ndarray | None = None
) -> np.ndarray:
    """f of each example, or of those at some places, by the exact solution for all others.

    Parameters
    ----------
    store
        The examples and their kernel.
    signs
        Labels -1.0 and +1.0, (n,).
    boxes
        Largest size of each coefficient, (n,).
    places
        Which examples; default: all.
    """
    if len(store) < 2:
        return np.zeros(len(store))  # No example is left, and a model of nothing says 0.
    problem = Problem(store, signs, np.minimum(0.0, signs * boxes), np.maximum(0.0, signs * boxes), OPTIONS)
    every = folds.leave_one_out(len(store))
    splits = every if places is None else folds.Folds(len(store), places[:, np.newaxis])
    plan, _, _ = prepared(problem, splits, "auto", values=True)
    return np.concatenate([part.decision_values for part in outcomes(plan, n_jobs=1)])
