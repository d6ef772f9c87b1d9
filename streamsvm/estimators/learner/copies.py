"""A model as a copy that shares nothing with it, as bytes, and as a file."""

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from streamsvm.core import storage
from streamsvm.core.saving import snapshot

Content = tuple[dict[str, Any], dict[str, Any]]  # of a snapshot: plain values, and arrays or bytes by name


class Saved:
    """Copying and saving of what has snapshots."""

    def __copy__(self) -> Self:
        """A deep copy: two models that shared arrays, each with its own counts, would both be wrong."""
        return copy.deepcopy(self)

    def save(self, path: str | Path) -> None:
        """Write the model to a file, atomically.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> model.learn_one({"a": 1.0}, True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "model.svm"
        ...     model.save(path)
        ...     LASVM.load(path).digest() == model.digest()
        True
        """
        snapshot.write_atomic(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read from a file that `save` wrote."""
        return cls.from_bytes(snapshot.read(path))

    def to_bytes(self) -> bytes:
        """The whole as a snapshot; see `streamsvm.core.saving.snapshot` for the format.

        Raises
        ------
        SnapshotError
            If a label or a name is not a str, int, float or bool.
        """
        return snapshot.pack(self._name_in_snapshots(), *self._content())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote.  It goes on bit for bit as the stored one would.

        Raises
        ------
        SnapshotError
            If the data are damaged, of another class, or from a newer format.
        """
        return cls._of_snapshot(snapshot.opened(data))

    def digest(self) -> str:
        """SHA-256 of what was learned.

        Two with the same digest continue alike.  Caches, devices and counters do not change it.
        """
        return hashlib.sha256(snapshot.pack(self._name_in_snapshots(), *self._learned_content())).hexdigest()

    @classmethod
    def _name_in_snapshots(cls) -> str:
        return cls.__name__

    @classmethod
    def _of_snapshot(cls, found: snapshot.Opened, *how: Any) -> Self:
        """What a snapshot holds; `how` is what else `_of_content` needs."""
        kind = cls._name_in_snapshots()
        meta, arrays = found.of(kind)
        with snapshot.reading(kind):
            return cls._of_content(meta, arrays, *how)

    @abstractmethod
    def _content(self) -> Content:
        """Everything that it takes to go on."""

    def _learned_content(self) -> Content:
        """What was learned, without what may differ between two that continue alike."""
        return self._content()

    @classmethod
    @abstractmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> Self:
        """Make it of what `_content` gave."""


class Computing(Saved):
    """Saving of what computes kernel values, whose reader may choose other caches and another device."""

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


class Storable(Computing):
    """Copying, unpickling and saving of models."""

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
