"""How far a partition has followed the topic of erasures, and the records that it passes over."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from streamsvm.core.saving.snapshot import require_array

from ...logs.transport import Record


@dataclass
class Erased:
    """How far a partition has followed the topic of erasures, and which records it has still to pass over.

    Attributes
    ----------
    offset
        Offset of the next request.
    events, labels
        Offsets of records that were erased before they were consumed.
    """

    offset: int = 0
    events: set[int] = field(default_factory=set)
    labels: set[int] = field(default_factory=set)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The records to pass over, for a checkpoint; nothing before the first request."""
        names = ("events", "labels") if self.offset else ()
        return {name: np.array(sorted(getattr(self, name)), np.int64) for name in names}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Go on from a checkpoint."""
        for name in arrays and ("events", "labels"):
            setattr(self, name, set(require_array(arrays, name, "i", (None,)).tolist()))


def without(records: list[Record], erased: set[int]) -> list[Record]:
    """These records, with erased ones as tombstones: as compaction would leave them, so nothing depends on them."""
    if not erased:
        return records
    found = [record._replace(value=None) if record.offset in erased else record for record in records]
    erased.difference_update(record.offset for record in records)
    return found
