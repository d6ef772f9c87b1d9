"""A model as a copy that shares nothing with it, as bytes, and as a file."""

import copy
import hashlib
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

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
