"""What the models said of an example long before its label came, as numbers that a user can keep."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from streamsvm.estimators.learner import late


class Said(NamedTuple):
    """Decision values from before the example was learned.

    Attributes
    ----------
    f
        That of the model that predicted.
    n_seen
        How many examples had been learned then.
    by_number
        Those of all models, by their numbers.
    """

    f: float
    n_seen: int
    by_number: Mapping[int, float]

    @classmethod
    def of(cls, row: Sequence[float]) -> Self:
        """A row of `rows_of`, or an error."""
        numbers = [late.finite(value) for value in row]
        counts = [*numbers[1:2], *numbers[2::2]]
        if len(numbers) < 2 or len(numbers) % 2 or any(value < 0 or value != int(value) for value in counts):
            raise ValueError(f"margin={list(row)!r} must be what margins_one or margins_many returned")
        by_number = dict(zip(map(int, numbers[2::2]), numbers[3::2], strict=True))
        return cls(numbers[0], int(numbers[1]), by_number)


def rows_of(f: np.ndarray, n_seen: int, by_number: Mapping[int, np.ndarray]) -> np.ndarray:
    """A row for each example: f, the number of examples learned, then the number and the value of each model."""
    parts = [f, np.full(len(f), n_seen)]
    for number, own in by_number.items():
        parts += [np.full(len(f), number), own]
    return np.column_stack(parts).astype(np.float64)


def is_row(margin: Any) -> bool:
    """Whether a margin is such a row, rather than one number."""
    return isinstance(margin, list | tuple | np.ndarray)
