"""What a model's partition has counted since the first record."""

from collections import Counter
from dataclasses import dataclass

from .lesson import JoinCounters

USUAL = {  # losses that need no warning, as the log tells them
    "dropped models": "models were dropped to make room for those of other keys (daemon.max_keys)",
    "unmatched": "labels found no event (join.ttl_seconds, join.labels_mb)",
    "expired": "events expired without a label (join.ttl_seconds)",
}
LOSSES = USUAL | {
    "dropped": "events were dropped before their labels came: there was no room for them (join.pending_mb)",
    "doubted": "records had a time far ahead of the records before and after them: it was not believed",
    "cut": "records have a ts that is more than join.max_skew_seconds from their timestamp, and was moved there: for "
    "old data, raise it; otherwise correct the clocks of the producers",
    "unknown": "records have neither a ts nor a timestamp: they count as of the time of the newest record before them",
}


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


def losses_of(joined: JoinCounters, n_dropped_models: int, odd_times: Counter[str]) -> Counter[str]:
    """What was given up so far: numbers by the words of `LOSSES`; `odd_times` are those of the join."""
    unmatched, found = joined.unmatched + joined.dropped_labels, {"expired": joined.expired, "dropped": joined.dropped}
    return Counter({"dropped models": n_dropped_models, "unmatched": unmatched, **found}) + odd_times
