"""A range of a log, and where a moment is in it."""

import logging
from contextlib import closing
from datetime import datetime
from typing import Any

from ..logs.reading import read, read_one
from ..logs.transport import Transport
from ..records.promotions import answered
from ..records.times import is_known
from ..settings.challengers import ChallengerSettings
from ..settings.opening import backend_of, open_once
from ..settings.sections import ConfigError, Settings

logger = logging.getLogger(__name__)

Spans = dict[str, dict[int, tuple[int, int]]]  # first offset and end, by topic and partition


class Excerpt:
    """A log that seems to hold only a range of some topics; it passes everything else on to the log.

    Parameters
    ----------
    log
        The `Transport`; an `Excerpt` can stand in for it.
    spans
        First offset and end of each partition, by topic.
    """

    is_past = True  # nothing is to be decided that the log does not have

    def __init__(self, log: Transport, spans: Spans) -> None:
        self._log = log
        self._spans = spans

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def start_offsets(self, topic: str) -> dict[int, int]:
        starts = self._log.start_offsets(topic)  # the log may have deleted records of the range meanwhile
        return {
            number: max(starts.get(number, 0), start) for number, (start, _) in self._spans.get(topic, {}).items()
        } or starts

    def end_offsets(self, topic: str, *, unstable: bool = False) -> dict[int, int]:
        ends = {number: end for number, (_, end) in self._spans.get(topic, {}).items()}
        return ends or self._log.end_offsets(topic, unstable=unstable)


def control_spans(settings: Settings, log: Transport) -> Spans:
    """The topics of control up to what trainers have answered: only that is followed again, where it was followed.

    This waits for what an unfinished transaction still hides.
    """
    if not settings.log.control:
        return {}
    requests, answers = settings.log.control_topics
    ends = log.end_offsets(answers, unstable=True)
    if ends != log.end_offsets(answers):
        logger.info("waiting until a transaction ends that hides notes on %s", answers)
    spans = {requests: answered(log, requests, answers, ends), answers: ends}
    return {topic: {number: (0, end) for number, end in found.items()} for topic, found in spans.items()}


def offsets_at(settings: Settings, log: Transport, moment: int | datetime) -> dict[int, int]:
    """The offset of a moment in each partition of the events; the end of the log where the moment has not come."""
    topic = settings.log.topic
    starts, ends = log.start_offsets(topic), log.end_offsets(topic)
    if isinstance(moment, int):
        return {number: min(max(moment, start), ends[number]) for number, start in starts.items()}
    time_ms = int(1000 * moment.timestamp())
    found = ends
    for number, start in backend_of(settings).search(topic, starts, time_ms).items():
        with closing(read(log, topic, {number: start}, ends)) as records:
            found[number] = next((record.offset for record in records if record.timestamp >= time_ms), ends[number])
    for number, offset in found.items():
        if starts[number] < offset == ends[number]:
            _require_times(log, topic, number, offset - 1)
    return found


def first_event(settings: Settings, log: Transport, number: int, own: ChallengerSettings) -> int:
    """Offset of the event of a partition with which a challenger begins.

    Raises
    ------
    ConfigError
        If it begins at a time, and records have none.
    """
    topic, moment, why = settings.log.topic, own.beginning, ""
    start = log.start_offsets(topic).get(number, 0)
    if isinstance(moment, datetime):
        with open_once(settings) as reader:
            moment = offsets_at(settings, reader, moment)[number]
            if moment >= reader.end_offsets(topic)[number]:
                why = f", the next one: the log has none from {own.begin} on"
    begun = max(moment or 0, start)
    if moment is not None and moment < start:
        why = f": the log no longer has those from {moment} on"
    logger.log(
        logging.WARNING if why else logging.INFO,
        "partition %d: challenger %r begins with the event at offset %d%s",
        *(number, own.name, begun, why),
    )
    return begun


def _require_times(log: Transport, topic: str, number: int, offset: int) -> None:
    """Raise an error if the record at `offset` has no timestamp: a partition without times has no record of a time."""
    record = read_one(log, topic, number, offset)
    if record is not None and not is_known(record.timestamp):
        raise ConfigError(f"{topic}-{number} has records without timestamps: give an offset instead of a time")
