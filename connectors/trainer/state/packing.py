"""Byte strings in the arrays of a checkpoint."""

from collections.abc import Iterable, Mapping

import numpy as np

from streamsvm.core.saving.snapshot import require_array


def joined(items: Iterable[bytes]) -> np.ndarray:
    """Byte strings end to end, as an array."""
    return np.frombuffer(b"".join(items), dtype=np.uint8)


def separated(arrays: Mapping[str, np.ndarray], name: str, lengths: np.ndarray) -> list[bytes]:
    """The byte strings in an array that `joined` made; ValueError if they do not have these lengths."""
    data = require_array(arrays, name, "u", (None,)).tobytes()
    if lengths.min(initial=0) < 0 or lengths.sum() != len(data):
        raise ValueError(f"the lengths of {name!r} do not add up to its {len(data)} bytes")
    return [data[end - length : end] for length, end in zip(lengths.tolist(), lengths.cumsum().tolist(), strict=True)]
