"""The warm-up: the first events of a partition give the scale of the features."""

import logging
from itertools import islice

from streamsvm import WarmupScaler

from ..logs.transport import Record
from ..records.codec import Codec
from ..records.formats.base import BadRecord
from ..settings.sections import Settings
from .inputs import Input, record_size
from .state.state import Breaker, TooManyBadRecords

logger = logging.getLogger(__name__)


class WarmUp:
    """Fits the scaler on the first events.  They stay queued, and are consumed afterwards.

    The scaler is fitted on fewer than `features.warmup` events if more would exceed a limit.  It is a function of the
    log in any case.
    """

    def __init__(self, settings: Settings, codec: Codec) -> None:
        self._kind = settings.features.scale
        self._length = settings.features.warmup
        self._max_bytes = settings.limits.read_ahead_bytes
        self._max_features = settings.limits.model_features
        self._names: set[str] = set()  # of the features so far
        self._codec = codec
        self._breaker = Breaker(settings.daemon.max_bad)
        self._n_seen = 0  # records
        self._n_bytes = 0  # of them
        self._n_examples = 0  # events among them

    def fit(self, events: Input) -> WarmupScaler | None:
        """Look at the events that have come since the last call; None until there are enough."""
        for record in islice(events.records, self._n_seen, None):
            x = self._features(record)
            self._names |= x.keys() if x else set()
            if len(self._names) > self._max_features:
                return self._scaler_of_fewer(events, "more would have more features than limits.model_features")
            self._n_seen += 1
            self._n_bytes += record_size(record)
            self._n_examples += x is not None
            self._breaker.observe([x is None])
            if self._n_examples == self._length:
                return self._scaler(events)
            if self._n_bytes >= self._max_bytes:
                return self._scaler_of_fewer(events, "more would not fit into limits.read_ahead_mb")
        if events.is_at_end and self._n_examples:
            return self._scaler_of_fewer(events, "the log has no more")
        events.reach(events.position + 1)
        return None

    def _scaler_of_fewer(self, events: Input, why: str) -> WarmupScaler:
        if not self._n_examples:
            raise TooManyBadRecords(
                f"the first {self._n_seen} records of topic {events.topic!r} are all bad: none is an event. "
                'daemon.start = "latest" passes over them'
            )
        logger.warning("the scale is fitted on only %d events: %s", self._n_examples, why)
        return self._scaler(events)

    def _scaler(self, events: Input) -> WarmupScaler:
        """Decode the events again, one by one: decoded all at once, they would take many times their bytes."""
        self._names.clear()
        scaler = WarmupScaler(kind=self._kind, warmup=self._n_examples)
        for record in islice(events.records, self._n_seen):
            x = self._features(record)
            if x is not None:
                scaler.learn_one(x)
        return scaler

    def _features(self, record: Record) -> dict[str, float] | None:
        """The features of an event; None if the record is not an event."""
        try:
            return self._codec.decode(record).x
        except BadRecord:
            return None
