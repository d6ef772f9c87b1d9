"""Where the error of a run has changed, by river's drift detector ADWIN."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from ..trainer.state.quality.prequential import Snapshot

MAX_SEEN = 100_000  # errors that the detector sees; of more errors it sees one in n


class Block(NamedTuple):
    """The predictions between two points of the curve."""

    start: int  # records before the block
    n: int  # records up to its end
    n_labels: int  # labelled events
    n_errors: int  # labelled events that were predicted wrongly


class Change(NamedTuple):
    """A change of the error that the detector found."""

    n: int  # records so far
    before: float  # error since the previous change
    after: float  # error up to the next change


def error_blocks(rows: Sequence[Snapshot]) -> list[Block]:
    """The predictions from each row of the history to the next."""
    known = [row for row in rows if not math.isnan(row.n_errors)]
    blocks = []
    if known and known[0].n_labels and known[0] is rows[0]:
        blocks.append(Block(0, known[0].n, int(known[0].n_labels), int(known[0].n_errors)))
    for before, after in pairwise(known):
        m, k = int(after.n_labels - before.n_labels), int(after.n_errors - before.n_errors)
        if m > 0:
            blocks.append(Block(before.n, after.n, m, k))
    return blocks


def find_changes(blocks: Sequence[Block]) -> tuple[list[Change], int]:
    """Find changes of the error with ADWIN (Bifet and Gavalda, 2007).

    The detector sees the errors of each block, 0 or 1, spread evenly over the block, because their order is not stored.

    Returns
    -------
    tuple
        The changes, and n if the detector saw one error in n.
    """
    from river.drift import ADWIN  # loads half of scikit-learn

    step = -(-sum(block.n_labels for block in blocks) // MAX_SEEN)
    detector, ends, n_seen, wrong = ADWIN(), [0], 0, 0.0
    for i, (*_, m, k) in enumerate(blocks):
        first, n_seen = n_seen // step, n_seen + m
        has_changed = False
        for _ in range(n_seen // step - first):
            wrong += k / m
            is_wrong = wrong > 1.0 - 1e-9
            wrong -= is_wrong
            detector.update(float(is_wrong))
            has_changed |= detector.drift_detected
        if has_changed and i + 1 < len(blocks):
            ends.append(i + 1)
    errors = [_error_of(blocks[start:end]) for start, end in pairwise([*ends, len(blocks)])]
    return [Change(blocks[end - 1].n, *around) for end, around in zip(ends[1:], pairwise(errors), strict=True)], step


def _error_of(blocks: Sequence[Block]) -> float:
    return sum(block.n_errors for block in blocks) / sum(block.n_labels for block in blocks)
