"""Models of more than two classes: their classes in the engine, and their predictions of events."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from streamsvm import OneVsRest
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.classifier import OnlineSVM

SeveralClassModel = OneVsRest  # the only place that chooses it
Model = OnlineSVM | OneVsRest

ALGORITHM = "several"  # its name in a publication


class Scores(NamedTuple):
    """What a model says about events.

    Attributes
    ----------
    labels
        The labels of the classes that it knows.
    values
        Decision values: a row for each event, a column for each class.
    probabilities
        Probabilities, in the same order.
    """

    labels: Sequence[Any]
    values: np.ndarray
    probabilities: np.ndarray


def scores(model: SeveralClassModel, rows: NamedRows | list[dict]) -> Scores:
    """What a model says about these events."""
    values = model.decision_function_many(rows)
    if not model.labels:
        return Scores([], values, values)
    return Scores(model.labels, values, model._probabilities(values))  # predict_proba_many would decide again


def mean(parts: Sequence[Scores]) -> Scores:
    """The means of what several models say; a model that does not know a class says -1 about it."""
    labels = list(dict.fromkeys(label for part in parts for label in part.labels))
    numbers = {label: number for number, label in enumerate(labels)}
    shape = (len(parts[0].values), len(labels))
    values, probabilities = np.zeros(shape), np.zeros(shape)
    for part in parts:
        own_values, own = np.full(shape, -1.0), np.zeros(shape)
        columns = [numbers[label] for label in part.labels]
        own_values[:, columns], own[:, columns] = part.values, part.probabilities
        values += own_values / len(parts)
        probabilities += own / len(parts)
    return Scores(labels, values, probabilities)
