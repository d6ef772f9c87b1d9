"""What the doctor says about the log: the connection, topics, groups and dead letters."""

import time
from collections import Counter

from ...logs.segments import LogCorruption
from ...logs.transport import AccessDenied, OffsetOutOfRange, TopicMismatch, Transport, Unavailable
from ...runtime.findings import Finding, Findings
from ...runtime.text import plural
from ...settings import topics
from ...settings.opening import backend_of, open_once
from ...settings.sections import Settings
from ..lag import lags
from ..replays.dlq import Replayed
from .records import sample


def check_log(settings: Settings) -> Findings:
    backend = backend_of(settings)
    if absence := backend.absence():
        yield Finding.problem(absence, "correct log.dir, or add a [kafka] section")
        return
    started = time.perf_counter()
    try:
        with open_once(settings) as log:
            yield from backend.connected(time.perf_counter() - started)
            for check in (_topics, _groups, _dead_letters, sample):
                yield from check(settings, log)
    except (AccessDenied, Unavailable, LogCorruption, OffsetOutOfRange, TopicMismatch) as error:
        yield Finding.problem(str(error), backend.remedy(error))


def _topics(settings: Settings, _: Transport) -> Findings:
    names = topics.used(settings)
    findings = topics.examine(settings, names, topics.describe(settings, names))
    yield from findings or [Finding.ok(f"nothing is wrong with the {plural(len(names), 'topic')}")]


def _groups(settings: Settings, _: Transport) -> Findings:
    waiting: Counter[str] = Counter()
    for lag in lags(settings):
        waiting[lag.group] += lag.lag
    for group, n_records in waiting.items():
        state = backend_of(settings).group_state(group)
        text = f"group {group!r} is {plural(n_records, 'record')} behind"
        yield Finding.ok(", ".join(filter(None, [text, state])))


def _dead_letters(settings: Settings, _: Transport) -> Findings:
    topic = settings.log.dlq
    with open_once(settings, f"{settings.group.id}-dlq") as log:
        committed, starts = log.committed(topic), log.start_offsets(topic)
        n_waiting = sum(
            max(0, end - max(starts[number], Replayed.from_commit(committed.get(number)).offset))
            for number, end in log.end_offsets(topic).items()
        )
    if n_waiting:
        yield Finding.warning(
            f"{plural(n_waiting, 'dead letter')} not put back yet",
            "`streamsvm dlq list` says why the records were refused; `streamsvm dlq replay` puts them back",
        )
