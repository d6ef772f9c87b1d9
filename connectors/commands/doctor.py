"""The command ``streamsvm doctor``: what is wrong with an installation, its configuration, its state and its log."""

import argparse
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from streamsvm.core._jit import cache_state

from ..logs.segments import LogCorruption
from ..logs.transport import AccessDenied, OffsetOutOfRange, Record, TopicMismatch, Transport, Unavailable
from ..records.codec import DIFFERENT_IDS, Event
from ..records.formats.base import BadRecord
from ..records.labels import Label
from ..records.times import event_time
from ..runtime.findings import OK, PROBLEM, WARNING, Finding, Findings
from ..runtime.text import plural
from ..settings import topics
from ..settings.loading import load
from ..settings.opening import backend_of, open_once
from ..settings.sections import ConfigError, Settings
from ..trainer.state.checkpoint import CheckpointError, check_fingerprint, checkpoint_files, load_newest
from . import exit_codes
from .dlq import Replayed
from .lag import lags
from .log_access import read
from .options import Subparsers, add_config

_PACKAGES = ("numpy", "scipy", "numba", "river", "orjson", "kafka-python")
_GIB = 1 << 30
_FEW_BYTES, _TOO_FEW_BYTES = _GIB, _GIB // 10  # free space below which the doctor warns, or reports a problem
_SAMPLE = 500  # newest records looked at in each partition
_AHEAD_MS = 300_000  # a record may be so far ahead of this clock
_FOREVER_MS = 10**15
_WARM_SECONDS = 15  # CPU time that is enough for a process with nothing to compile

Message = TypeVar("Message", Event, Label)


def add_parser(subparsers: Subparsers) -> None:
    command = subparsers.add_parser("doctor", help="look for problems, from Python to the broker")
    command.description = (
        "Check the installation and the compile cache. With a configuration, also check the state folder, the log, the "
        "topics and the newest records. Each warning or problem comes with a remedy."
    )
    add_config(command, nargs="?")
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        settings = load(arguments.config, os.environ, arguments.set) if arguments.config else None
    except ConfigError:
        examine(None)
        raise
    return exit_codes.OK if examine(settings) else exit_codes.FAILED


def examine(settings: Settings | None) -> bool:
    """Run and print all checks, or those that need no configuration; return whether they found no problem."""
    checks: list[tuple[str, Callable[[], Findings]]] = [
        ("python", _python),
        ("compile cache", lambda: _compile_cache(settings)),
    ]
    if settings is not None:
        checks += [
            ("packages", lambda: backend_of(settings).installed()),
            ("state", lambda: _state(settings)),
            ("log", lambda: _log(settings)),
        ]
    n_problems = 0
    for name, check in checks:
        for finding in check():
            n_problems += finding.level == PROBLEM
            print(f"{finding.level:8} {name}: {finding.text}" + (f"\n{'':9}{finding.remedy}" if finding.remedy else ""))
    return n_problems == 0


# --- this machine -----------------------------------------------------------------------------------------------------


def _python() -> Findings:
    versions = ", ".join(f"{name} {version(name)}" for name in ("streamsvm", *_PACKAGES))
    yield Finding(OK, f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {versions}")


def _compile_cache(settings: Settings | None) -> Findings:
    if os.environ.get("STREAMSVM_CACHE", "1") == "0":
        yield Finding(WARNING, "STREAMSVM_CACHE=0: every process compiles anew", "unset STREAMSVM_CACHE")
        return
    folder, is_warm = cache_state()
    if folder is None:
        yield Finding(
            WARNING,
            "compiled code cannot be kept, because no folder for it is writable: every process compiles anew",
            "set NUMBA_CACHE_DIR to a writable folder",
        )
        return
    seconds = _seconds_to_start(settings) if is_warm else None
    if seconds is not None:
        yield Finding(OK, f"{folder} has all compiled code; a process is ready after {seconds:.1f} seconds")
    else:
        what = "lacks some of the compiled code" if is_warm else "has no compiled code of this version"
        yield Finding(WARNING, f"{folder} {what}: the first process compiles", "run `streamsvm warmup`")


def _seconds_to_start(settings: Settings | None) -> float | None:
    """How long a process takes to prepare the engine; None if it compiles.

    The cache's files alone cannot tell: they may have been compiled for another processor.
    """
    algorithm = (settings or Settings()).model.implementation.__name__
    removal = settings is not None and settings.removes()
    script = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
    script += f"resource.setrlimit(resource.RLIMIT_CPU, ({_WARM_SECONDS}, {_WARM_SECONDS})); "
    script += f"import streamsvm; streamsvm.warmup(streamsvm.{algorithm}, removal={removal})"
    started = time.perf_counter()
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True)  # noqa: S603 - this interpreter
    if answer.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    answer.check_returncode()
    return time.perf_counter() - started


# --- state ------------------------------------------------------------------------------------------------------------


def _state(settings: Settings) -> Findings:
    folder = settings.daemon.state_dir
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK):
        yield Finding(PROBLEM, f"{existing} is not writable", "choose another daemon.state_dir, or run as another user")
    free = shutil.disk_usage(existing).free
    level = OK if free > _FEW_BYTES else WARNING if free > _TOO_FEW_BYTES else PROBLEM
    yield Finding(level, f"{existing} has {free / _GIB:,.1f} GiB free", "free some space" if level != OK else "")
    partitions = sorted(folder.glob("p[0-9]*"), key=lambda path: (len(path.name), path.name))
    if not partitions:
        yield Finding(OK, "no checkpoint was written yet")
    for path in partitions:
        yield _checkpoint(path, settings)


def _checkpoint(folder: Path, settings: Settings) -> Finding:
    try:
        found = load_newest(folder)
        if found is None:
            return Finding(OK, f"{folder.name} has no checkpoint yet")
        (epoch, sequence), checkpoint = found
        check_fingerprint(checkpoint, settings.fingerprint(), folder)
    except CheckpointError as error:
        return Finding(PROBLEM, str(error))
    except ConfigError as error:
        return Finding(PROBLEM, *error.problems[-2:])
    newest = checkpoint_files(folder)[0]
    age = time.time() - newest.stat().st_mtime
    text = f"checkpoint {sequence} of {folder.name} is readable, {age:,.0f} seconds old"
    if newest.name != f"checkpoint-{epoch:06d}-{sequence:010d}.ssvm":
        return Finding(
            WARNING, f"{text}, but it is not the newest", f"{newest} is damaged; the next checkpoint replaces it"
        )
    return Finding(OK, text)


# --- the log ----------------------------------------------------------------------------------------------------------


def _log(settings: Settings) -> Findings:
    backend = backend_of(settings)
    if absence := backend.absence():
        yield Finding(PROBLEM, absence, "`streamsvm produce` creates it; or correct log.dir")
        return
    started = time.perf_counter()
    try:
        with open_once(settings) as log:
            yield from backend.connected(time.perf_counter() - started)
            for check in (_topics, _groups, _dead_letters, _samples):
                yield from check(settings, log)
    except (AccessDenied, Unavailable, LogCorruption, OffsetOutOfRange, TopicMismatch) as error:
        yield Finding(PROBLEM, str(error), backend.remedy(error))


def _topics(settings: Settings, _: Transport) -> Findings:
    names = topics.used(settings.log)
    findings = topics.examine(settings, names, topics.describe(settings, names))
    yield from findings or [Finding(OK, f"nothing is wrong with the {plural(len(names), 'topic')}")]


def _groups(settings: Settings, _: Transport) -> Findings:
    waiting: Counter[str] = Counter()
    for lag in lags(settings):
        waiting[lag.group] += lag.lag
    for group, n_records in waiting.items():
        state = backend_of(settings).group_state(group)
        text = f"group {group!r} is {plural(n_records, 'record')} behind"
        yield Finding(OK, ", ".join(filter(None, [text, state])))


def _dead_letters(settings: Settings, _: Transport) -> Findings:
    topic = settings.log.dlq
    with open_once(settings, f"{settings.group.id}-dlq") as log:
        committed, starts = log.committed(topic), log.start_offsets(topic)
        n_waiting = sum(
            max(0, end - max(starts[number], Replayed.from_commit(committed.get(number)).offset))
            for number, end in log.end_offsets(topic).items()
        )
    if n_waiting:
        yield Finding(
            WARNING,
            f"{plural(n_waiting, 'dead letter')} not put back yet",
            "`streamsvm dlq list` says why the records were refused; `streamsvm dlq replay` puts them back",
        )


# --- the newest records -----------------------------------------------------------------------------------------------


def _samples(settings: Settings, log: Transport) -> Findings:
    events = _newest(log, settings.log.topic)
    labels = _newest(log, settings.log.labels) if settings.log.labels else []
    yield from _clocks(settings, events, labels)
    yield from _ids(settings, events, labels)
    if len(log.start_offsets(settings.log.topic)) > 1:
        yield from _keys(settings, events, labels)


def _newest(log: Transport, topic: str) -> list[Record]:
    ends = log.end_offsets(topic)
    starts = {number: max(start, ends[number] - _SAMPLE) for number, start in log.start_offsets(topic).items()}
    return list(read(log, topic, starts, ends))


def _clocks(settings: Settings, events: list[Record], labels: list[Record]) -> Findings:
    now = time.time() * 1000
    ahead = [record for record in (*events, *labels) if record.timestamp > now + _AHEAD_MS]
    if ahead:
        seconds = (max(record.timestamp for record in ahead) - now) / 1000
        yield Finding(
            WARNING,
            f"{plural(len(ahead), 'record')} of {len(events) + len(labels)} from the future, up to {seconds:,.0f} "
            "seconds: events and labels are read in the order of their times, so these come too late",
            "correct the clocks of the producers, or this one",
        )
    codec, of_labels = settings.codec(), settings.codec()
    skew = int(1000 * settings.join.max_skew_seconds)
    n_apart = sum(_is_clamped(record, codec.decode, skew) for record in events)
    n_apart += sum(_is_clamped(record, of_labels.decode_label, skew) for record in labels)
    if n_apart:
        yield Finding(
            WARNING,
            f"{plural(n_apart, 'record')} of {len(events) + len(labels)} with a ts that is ignored, because it is more "
            "than join.max_skew_seconds from the record's own time",
            "for old data, raise join.max_skew_seconds; otherwise correct the clocks of the producers",
        )
    if not ahead and not n_apart:
        yield Finding(OK, f"the times of {plural(len(events) + len(labels), 'record')} agree with this clock")


def _is_clamped(record: Record, decode: Callable[[Record], Event | Label], max_skew: int) -> bool:
    try:
        ts = decode(record).ts
    except BadRecord:
        return False
    return event_time(ts, record.timestamp, max_skew) != event_time(ts, record.timestamp, _FOREVER_MS)


def _ids(settings: Settings, events: list[Record], labels: list[Record]) -> Findings:
    """Find labels whose ids have another type than those of the events: they never meet their events."""
    types = {type(event.id) for event in _readable(events, settings.codec().decode)}
    known = _readable(labels, settings.codec().decode_label)  # a codec that saw both would log its own warning
    strangers = [label for label in known if types and type(label.id) not in types]
    if strangers:
        yield Finding(
            PROBLEM,
            f"{len(strangers)} of {plural(len(labels), 'label')} with an id such as {strangers[0].id!r}, whose type "
            f"differs from that of the events' ids: {DIFFERENT_IDS}, so such labels never meet their events",
            "write the ids of events and labels in the same way, as strings or as integers",
        )


def _readable(records: list[Record], decode: Callable[[Record], Message]) -> Iterator[Message]:
    for record in records:
        with suppress(BadRecord):
            yield decode(record)


def _keys(settings: Settings, events: list[Record], labels: list[Record]) -> Findings:
    """Find labels outside the partition of their event: keys prevent that if all producers place keys alike."""
    keyless = sum(record.key is None for record in labels)
    if keyless:
        yield Finding(
            PROBLEM,
            f"{keyless} of {plural(len(labels), 'label')} without a key: such a label may be in another partition than "
            "its event, and then never meets it",
            "give each label the key of its event",
        )
    places = {record.key: record.partition for record in events if record.key is not None}
    apart = sum(places.get(record.key, record.partition) != record.partition for record in labels if record.key)
    if apart:
        yield Finding(
            PROBLEM,
            f"{apart} of {plural(len(labels), 'label')} in another partition than events with the same key",
            "make the producers of events and labels place keys alike (librdkafka: partitioner=murmur2_random)",
        )
    yield from _partitioners(settings, {settings.log.topic: events, settings.log.labels: labels})


def _partitioners(settings: Settings, samples: dict[str, list[Record]]) -> Findings:
    backend = backend_of(settings)
    counts = {name: shape.n_partitions for name, shape in backend.describe(filter(None, samples)).items()}
    for topic, records in samples.items():
        keyed = [record for record in records if record.key is not None]
        astray = sum(backend.partition_of(record.key or b"", counts[topic]) != record.partition for record in keyed)
        if astray:
            yield Finding(
                WARNING,
                f"{astray} of {plural(len(keyed), 'record')} of topic {topic!r} are not where the log's own "
                "partitioner puts their keys",
                "make all producers place keys alike (librdkafka: partitioner=murmur2_random)",
            )
        elif keyed:
            yield Finding(OK, f"the keys of topic {topic!r} are where the log's own partitioner puts them")
