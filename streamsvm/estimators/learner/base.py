"""What a learner of one model and one of several have in common: what they know of their stream."""

from abc import abstractmethod
from collections.abc import Collection, Hashable, Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from river import base

from streamsvm.core import arguments, storage
from streamsvm.core.kernels import is_bounded
from streamsvm.core.saving import snapshot
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.learner.copies import Saved
from streamsvm.estimators.learner.state import State
from streamsvm.estimators.learner.validation import validate_many, validate_one


class Learner(Saved, base.MiniBatchClassifier):
    """A river classifier that counts its stream in one state: its own, or one that its models share."""

    _common: State
    _y_name: Any = None  # of the labels learned last, if they were a series

    @property
    def _seen(self) -> State:
        """The state whose scale and kernel the user sees."""
        return self._common

    @property
    def _features(self) -> FeatureTable:
        return self._common.features

    def validate_one(self, x: dict) -> None:
        """Raise the ValueError or TypeError that `learn_one` would raise for these features; learn nothing."""
        validate_one(self._common, x)

    def validate_many(self, X: Any) -> None:
        """Raise the ValueError or TypeError that `learn_many` would raise for these features; learn nothing."""
        validate_many(self._common, X)

    def takes_all(self, names: Collection[Hashable]) -> bool:
        """Whether no example with these features is refused, unless one of its numbers is missing or too large."""
        known = self._features
        return is_bounded(self._common.kernel) and len(known.columns) + len(names) <= known.max_features

    def _tol(self, tol: float | None) -> float:
        """The tolerance that a method was given, or that of the model."""
        tol = self._common.tol if tol is None else tol
        arguments.require_positive("tol", tol)
        return tol

    @property
    def n_seen(self) -> int:
        """Number of examples learned so far, whether they are members or not."""
        return self._common.n_seen

    @property
    def next_id(self) -> int:
        """The id that the next example gets unless you give one: 0 at first, then 1 more than the largest id so far."""
        return self._common.next_id

    @property
    def max_features(self) -> int:
        """The largest number of features, 2**20 unless you set it; an example that would exceed it is refused.

        Snapshots do not store it.
        """
        return self._features.max_features

    @max_features.setter
    def max_features(self, limit: int) -> None:
        arguments.require_count("max_features", limit, 1)
        self._features.max_features = int(limit)

    @property
    def too_old(self) -> int | None:
        """The newest number, or time in microseconds, that has left the window; None without a window."""
        window = self._common.window
        return None if window is None else window.latest - window.span

    @property
    def feature_names(self) -> list[Hashable]:
        """Names of the features learned so far, in the order of their columns."""
        return self._features.learned()

    def scale_of(self, name: Hashable) -> tuple[float, float]:
        """The present shift and factor of a feature: its scaled value is (value - shift) * factor, cut to -3..3.

        They are 0 and 1 if the model does not scale the feature.  The factor of an `AutoLASVM` includes the feature's
        weight, see `AutoLASVM.feature_weights_`.
        """
        return self._seen.scale.of(self._features.columns.get(name, -1))

    @property
    def is_scaling(self) -> bool:
        """Whether the model scales features at present: it scales none of sparse input."""
        return self._common.scale.is_active

    def _labels_of(self, X: Any, y: Any, n: int) -> list[Hashable]:
        """The labels of a batch of n examples, or an error."""
        labels: list[Hashable] = arguments.labels_of(X, y, n).tolist()
        return labels

    # ------------------------------------------------------------------------------------------------------- snapshots

    @classmethod
    def load(cls, path: str | Path, cache_mb: float | None = None, device: str | None = None) -> Self:
        """Read the model from a file that `save` wrote; for the parameters see `from_bytes`."""
        return cls.from_bytes(snapshot.read(path), cache_mb, device)

    @classmethod
    def from_bytes(cls, data: bytes, cache_mb: float | None = None, device: str | None = None) -> Self:
        """Read a model that `to_bytes` wrote.  It goes on bit for bit as the stored model would.

        Parameters
        ----------
        data
            A snapshot.
        cache_mb
            Size of each row cache in megabytes; default: the stored one.
        device
            Where kernel values are computed; default: the stored device.

        Raises
        ------
        SnapshotError
            If the snapshot is damaged, of another class, or from a newer format.
        """
        return cls._of_snapshot(snapshot.opened(data), cache_mb, device)

    def __setstate__(self, state: dict) -> None:
        """Copy read-only arrays: joblib's workers get theirs mapped from a file."""
        self.__dict__.update({name: storage.owned(value) for name, value in state.items()})

    @classmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> Self:
        model = cls._of_meta(meta, *how)
        model._take_over(meta, arrays)
        return model

    @classmethod
    @abstractmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        """A model with the stored parameters that has learned nothing."""

    @abstractmethod
    def _take_over(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Take over what was learned, as `_content` gave it."""
