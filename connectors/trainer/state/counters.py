"""What a model's partition has counted since the first record."""

from collections import Counter
from dataclasses import dataclass

from .lesson import JoinCounters

# Losses, as the log tells them:
_DROPPED_MODELS = "models were dropped to make room for those of other keys (daemon.max_keys)"
_UNMATCHED = "labels found no event (join.ttl_seconds, join.labels_mb)"
_DROPPED = "events were dropped before their labels came: there was no room for them (join.pending_mb)"
_DOUBTED = "records had a time far ahead of the records before and after them: it was not believed"
_CUT = (
    "records have a ts that is more than join.max_skew_seconds from their timestamp, and was moved there: for old "
    "data, raise it; otherwise correct the clocks of the producers"
)
_UNKNOWN = "records have neither a ts nor a timestamp: they count as of the time of the newest record before them"
_EXPIRED = "events expired without a label (join.ttl_seconds)"
USUAL = {  # no warning
    _DROPPED_MODELS,
    _UNMATCHED,
    _EXPIRED,
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
    """What was given up so far: numbers by what they count, in words; `odd_times` are those of `Times`."""
    return Counter(
        {
            _DROPPED_MODELS: n_dropped_models,
            _UNMATCHED: joined.unmatched + joined.dropped_labels,
            _EXPIRED: joined.expired,
            _DROPPED: joined.dropped,
            _DOUBTED: odd_times["doubted"],
            _CUT: odd_times["cut"],
            _UNKNOWN: odd_times["unknown"],
        }
    )
