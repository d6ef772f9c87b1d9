"""What the models said of an example long before its label came, as numbers that a user can keep."""

from collections.abc import Mapping
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
        How many examples had been learned then; None if only f is known, by which models cannot be judged.
    by_number
        Those of all models, by their numbers.
    """

    f: float
    n_seen: int | None = None
    by_number: Mapping[int, float] = {}

    @classmethod
    def of(cls, margin: Any) -> Self:
        """A decision value alone or a row of `rows_of`, or an error."""
        if not isinstance(margin, list | tuple | np.ndarray):
            return cls(late.finite(margin))
        numbers = [late.finite(value) for value in margin]
        counts = [*numbers[1:2], *numbers[2::2]]
        if len(numbers) < 2 or len(numbers) % 2 or any(value < 0 or value != int(value) for value in counts):
            raise ValueError(f"margin={list(margin)!r} must be what margins_one or margins_many returned")
        by_number = dict(zip(map(int, numbers[2::2]), numbers[3::2], strict=True))
        return cls(numbers[0], int(numbers[1]), by_number)

    @property
    def judged(self) -> tuple[int, ...] | None:
        """The numbers of the models that it judges; None if it judges none."""
        return None if self.n_seen is None else tuple(self.by_number)

    def of_model(self, number: int) -> float:
        """What a model said; if that is not known, what the one said that predicted: by now it would say more."""
        return self.by_number.get(number, self.f)


def rows_of(f: np.ndarray, n_seen: int, by_number: Mapping[int, np.ndarray]) -> np.ndarray:
    """A row for each example: f, the number of examples learned, then the number and the value of each model."""
    parts = [f, np.full(len(f), n_seen)]
    for number, own in by_number.items():
        parts += [np.full(len(f), number), own]
    return np.column_stack(parts).astype(np.float64)
