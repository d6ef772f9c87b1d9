"""What a model's partition has counted since the first record."""

from dataclasses import dataclass


@dataclass
class Counters:
    """Counts since the first record, over all restarts."""

    predicted: int = 0
    learned: int = 0
    bad: int = 0
    lost: int = 0  # records that were removed from the log before they were read
    erased: int = 0  # requests to forget that were followed
    renamed: int = 0  # classes that people renamed, merged or removed
    late: int = 0  # labels that changed a model after the join had forgotten their events
    seconds: float = 0.0  # of work, not of waiting
