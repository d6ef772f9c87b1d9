"""Copies of a model that share nothing with it."""

import copy
from typing import Self

from streamsvm.core import storage


class Copies:
    """Copying and unpickling of models."""

    def __setstate__(self, state: dict) -> None:
        """Copy read-only arrays: joblib's workers get theirs mapped from a file."""
        self.__dict__.update({name: storage.owned(value) for name, value in state.items()})

    def __copy__(self) -> Self:
        """A deep copy: two models that shared arrays, each with its own counts, would both be wrong."""
        return copy.deepcopy(self)

    @property
    def _mutable_attributes(self) -> set[str]:
        return set()
