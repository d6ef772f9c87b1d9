"""Byte strings in the arrays of a checkpoint."""

from collections.abc import Iterable, Mapping

import numpy as np

from streamsvm.core.saving.snapshot import require_array

from .lesson import ABSENT


def joined(items: Iterable[bytes]) -> np.ndarray:
    """Byte strings end to end, as an array."""
    return np.frombuffer(b"".join(items), dtype=np.uint8)


def separated(arrays: Mapping[str, np.ndarray], name: str, lengths: np.ndarray) -> list[bytes]:
    """The byte strings in an array that `joined` made; ValueError if they do not have these lengths."""
    data = require_array(arrays, name, "u", (None,)).tobytes()
    if lengths.min(initial=0) < 0 or lengths.sum() != len(data):
        raise ValueError(f"the lengths of {name!r} do not add up to its {len(data)} bytes")
    return [data[end - length : end] for length, end in zip(lengths.tolist(), lengths.cumsum().tolist(), strict=True)]


def packed(name: str, items: list[bytes | None]) -> dict[str, np.ndarray]:
    """Byte strings, some of which may be absent."""
    return {
        name: joined(item for item in items if item),
        f"{name}_length": np.array([ABSENT if item is None else len(item) for item in items], dtype=np.int64),
    }


def unpacked(arrays: Mapping[str, np.ndarray], name: str) -> list[bytes | None]:
    """The byte strings that `packed` took."""
    lengths = require_array(arrays, f"{name}_length", "i", (None,))
    is_absent = lengths == ABSENT
    items = separated(arrays, name, np.where(is_absent, 0, lengths))
    return [None if absent else item for absent, item in zip(is_absent, items, strict=True)]
