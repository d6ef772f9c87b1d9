"""What the command line does with a log beside running it: its topics, its consumers, its dead letters, its past."""

import json
import logging
import sys
import time
from collections import Counter, OrderedDict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

from tqdm import tqdm

from ..logs.segments import LogCorruption
from ..logs.transport import Committed, Headers, Record, Shape, TopicMismatch, Transport, Unavailable
from ..records.codec import MAX_BYTES
from ..records.dead_letters import PREFIX
from ..runtime.folders import lock_folder, make_private, write_private
from ..runtime.process import Stop
from ..runtime.text import plural
from ..settings import topics
from ..settings.loading import load
from ..settings.opening import open_once
from ..settings.sections import ConfigError, Settings
from ..settings.topics import Severity
from ..trainer.operate import operate
from ..trainer.state.checkpoint import CheckpointError
from ..trainer.state.state import State
from ..trainer.trainer import Trainer
from .option_types import Moment

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_POLL_RECORDS = 500
_FLUSH_SECONDS = 60.0
_SHOWN_BYTES = 80  # of a dead letter
_SEEN = 100_000  # of the last dead letters: repetitions are no farther apart than a checkpoint's records


# --- what they share --------------------------------------------------------------------------------------------------


def read(
    log: Transport, topic: str, starts: Mapping[int, int], ends: Mapping[int, int]
) -> Generator[Record, None, None]:
    """The records of a topic between two offsets of each partition, one partition after the other."""
    for partition, start in starts.items():
        log.seek(topic, partition, start)
        try:
            while log.position(topic, partition) < ends[partition]:
                records = log.poll(_POLL_SECONDS, _POLL_RECORDS)
                yield from (record for record in records if record.offset < ends[partition])
        finally:
            log.release(topic, partition)


def flush(log: Transport) -> None:
    """Make durable what was produced; a broker may take its time."""
    until = time.monotonic() + _FLUSH_SECONDS
    while True:
        try:
            return log.flush()
        except Unavailable:
            if time.monotonic() > until:
                raise


def grid(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as a table, numbers to the right."""
    lines = [list(header), *([f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    numbers = [bool(rows) and all(isinstance(row[i], int) or row[i] == "-" for row in rows) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if is_number else cell.ljust(width)
            for cell, width, is_number in zip(line, widths, numbers, strict=True)
        ).rstrip()
        for line in lines
    )


# --- topics -----------------------------------------------------------------------------------------------------------


def show_topics(settings: Settings) -> bool:
    """Print what the topics are like; return whether they are as they should be."""
    names = topics.used(settings.log)
    found = topics.describe(settings, names)
    header = ("topic", "partitions", "cleanup", "retention", "max.message.bytes")
    print(grid(header, [_topic_row(name, found.get(name)) for name in names]))
    findings = topics.examine(settings, names, found)
    for finding in findings:
        print(f"{'note' if finding.severity == Severity.NOTE else 'wrong'}: {finding.text}")
    wrong = [finding for finding in findings if finding.severity != Severity.NOTE]
    if wrong and not found.keys() >= set(names):
        print(topics.REMEDY)
    return not wrong


def _topic_row(name: str, shape: Shape | None) -> tuple[object, ...]:
    if shape is None:
        return name, "-", "missing", "-", "-"
    compacts_only = shape.cleanup == "compact"
    retention = "-" if shape.retention_ms is None or compacts_only else _duration(shape.retention_ms)
    return (
        name,
        shape.n_partitions,
        shape.cleanup or "-",
        retention,
        "-" if shape.max_bytes is None else shape.max_bytes,
    )


def _duration(milliseconds: int) -> str:
    if milliseconds < 0:
        return "for ever"
    days, hours = milliseconds / 86_400_000, milliseconds / 3_600_000
    return f"{days:g} d" if days >= 1 else f"{hours:.3g} h"


# --- lag --------------------------------------------------------------------------------------------------------------


class Lag(NamedTuple):
    """How far a group of consumers is in a partition."""

    group: str
    topic: str
    partition: int
    committed: int | None  # None: it has not begun
    end: int
    lag: int


def lags(settings: Settings) -> list[Lag]:
    """Of the trainers, and of the scorers if there are models for them."""
    log = settings.log
    readers = {settings.group.id: [log.topic, *([log.labels] if log.labels else [])]}
    if log.model:
        readers[f"{settings.group.id}-score"] = [log.topic]
    return [lag for group, names in readers.items() for lag in _lags(settings, group, names)]


def _lags(settings: Settings, group: str, names: Sequence[str]) -> Iterator[Lag]:
    with open_once(settings, group) as log:
        for name in names:
            if not log.start_offsets(name) and settings.kafka:
                raise TopicMismatch(f"there is no topic {name!r}; `streamsvm topics CONFIG.toml` shows what there is")
            committed, starts = log.committed(name), log.start_offsets(name)
            for partition, end in sorted(log.end_offsets(name).items()):
                at = committed[partition].offset if partition in committed else None
                behind = end - (starts.get(partition, 0) if at is None else at)
                yield Lag(group, name, partition, at, end, max(0, behind))  # it may have read an open transaction


def show_lag(settings: Settings, *, as_json: bool) -> None:
    """Print how far the consumers are."""
    found = lags(settings)
    if as_json:
        print(json.dumps([lag._asdict() for lag in found]))
        return
    print(grid(Lag._fields, [["-" if cell is None else cell for cell in lag] for lag in found]))


# --- dead letters -----------------------------------------------------------------------------------------------------


class DeadLetter(NamedTuple):
    """A record that was refused, and why."""

    record: Record
    why: dict[str, str]  # by name, see `dead_letters`

    @classmethod
    def read(cls, record: Record) -> "DeadLetter":
        prefix = len(PREFIX)
        ours = [header for header in record.headers if header[0].startswith(PREFIX)]
        return cls(record, {name[prefix:]: value.decode(errors="replace") for name, value in ours})

    @property
    def reason(self) -> str:
        return self.why.get("reason", "?")

    @property
    def source(self) -> tuple[str, ...]:
        """Topic, partition and offset of the record that was refused."""
        return tuple(self.why.get(name, "?") for name in ("topic", "partition", "offset"))

    @property
    def is_shortened(self) -> bool:
        """Whether this is not the whole record: see `dead_letters`."""
        return "sha256" in self.why

    def is_of(self, original: Record) -> bool:
        """Whether this shortened letter is about that record."""
        return self.why.get("sha256") == sha256(original.value or b"").hexdigest()

    @property
    def home(self) -> tuple[str, int]:
        """The topic and the partition that it comes from."""
        partition = self.why.get("partition", "")
        return self.why.get("topic", "?"), int(partition) if partition.isdecimal() else -1

    def __str__(self) -> str:
        where = "-".join(self.source)
        what = f"{self.reason}: {self.why.get('error', '?')}"
        value = self.record.value or b""
        shown = f"{self.record.offset}\t{where}\t{what}\t{value[:_SHOWN_BYTES]!r}"
        if self.is_shortened:
            shown += f" (shortened: {len(value)} of {self.why.get('bytes', '?')} bytes; replay takes it from {where})"
        return shown


def list_dead_letters(settings: Settings, reason: str | None, first: int | None) -> None:
    """Print the dead letters, each with its offset, where it comes from, why it was refused, and how it begins."""
    with open_once(settings) as log:
        topic = settings.log.dlq
        ends = log.end_offsets(topic)
        starts = {
            number: min(max(start, first or 0), ends[number]) for number, start in log.start_offsets(topic).items()
        }
        found: Counter[str] = Counter()
        for letter in map(DeadLetter.read, read(log, topic, starts, ends)):
            found[letter.reason] += 1
            if reason in (None, letter.reason):
                print(letter)
    if not found[reason] if reason else not found:
        others = f"; there are {', '.join(f'{n} {name}' for name, n in found.most_common())}" if found else ""
        why = f" that was refused for {reason!r}" if reason else ""
        after = f" from offset {first} on" if first else ""
        print(f"topic {topic!r} has no dead letter{why}{after}{others}", file=sys.stderr)


class Replayed(NamedTuple):
    """Up to where the dead letters of a partition were replayed."""

    offset: int
    by_reason: dict[str, int]  # farther, for some reasons

    @classmethod
    def from_commit(cls, committed: Committed | None) -> "Replayed":
        """What was committed.

        Raises
        ------
        LogCorruption
            If its note is not what `to_commit` writes.
        """
        if committed is None:
            return cls(0, {})
        try:
            by_reason = json.loads(committed.note or "{}")
        except (ValueError, RecursionError):
            by_reason = None
        if type(by_reason) is not dict or not all(type(at) is int for at in by_reason.values()):
            raise LogCorruption(f"up to where dead letters were replayed cannot be read: {committed.note!r:.200}")
        return cls(committed.offset, by_reason)

    def to_commit(self) -> Committed:
        return Committed(self.offset, json.dumps({name: at for name, at in self.by_reason.items() if at > self.offset}))

    def covers(self, letter: DeadLetter) -> bool:
        return letter.record.offset < max(self.offset, self.by_reason.get(letter.reason, 0))

    def up_to(self, offset: int, reason: str | None) -> "Replayed":
        if reason is None:
            return self._replace(offset=max(self.offset, offset))
        return self._replace(by_reason={**self.by_reason, reason: max(self.by_reason.get(reason, 0), offset)})


def replay_dead_letters(settings: Settings, reason: str | None, first: int | None, *, is_dry: bool) -> None:
    """Put dead letters back where they come from, each once.

    How far that has gone is committed for the group ``ID-dlq``, after each few hundred: if this process is killed, so
    many may be put back twice.  Of a letter that is shortened the record itself is put back, if it is still in its
    topic.

    Parameters
    ----------
    settings
        The configuration.
    reason
        Only those that were refused for this reason.
    first
        Begin at this offset, whatever was replayed before.
    is_dry
        Only say what would be done.
    """
    topic, group = settings.log.dlq, f"{settings.group.id}-dlq"
    with open_once(settings, group) as log, _Originals(settings) as originals:
        homes = {
            (name, number)
            for name in (settings.log.topic, settings.log.labels)
            if name
            for number in log.start_offsets(name)
        }
        committed, ends = log.committed(topic), log.end_offsets(topic)
        n_replayed = n_homeless = n_impossible = 0
        seen: OrderedDict[tuple[str, ...], None] = OrderedDict()  # one that was killed refuses the same records again
        for number, start in log.start_offsets(topic).items():
            replayed = Replayed.from_commit(committed.get(number))
            start = min(max(start, replayed.offset if first is None else first), ends[number])
            n_waiting = 0
            letters = tqdm(
                read(log, topic, {number: start}, ends), "replaying", total=ends[number] - start, disable=None
            )
            for letter in map(DeadLetter.read, letters):
                if reason not in (None, letter.reason) or (first is None and replayed.covers(letter)):
                    continue
                if letter.source in seen:
                    continue
                seen[letter.source] = None
                if len(seen) > _SEEN:
                    seen.popitem(last=False)
                if letter.home not in homes:
                    n_homeless += 1
                    logger.warning("%s-%d-%d comes from no topic that we read", topic, number, letter.record.offset)
                    continue
                original = _original(letter, originals)
                if original is None:
                    n_impossible += 1
                    continue
                n_replayed += 1
                if is_dry:
                    print(letter)
                    continue
                _put_back(log, letter, original)
                n_waiting += 1
                if n_waiting == _POLL_RECORDS:
                    _commit(settings, group, log, number, replayed.up_to(letter.record.offset + 1, reason))
                    n_waiting = 0
            if not is_dry:
                _commit(settings, group, log, number, replayed.up_to(ends[number], reason))
    print(f"{'would put' if is_dry else 'put'} {plural(n_replayed, 'record')} back", end="")
    print(f", and passed over {n_homeless} from elsewhere" if n_homeless else "", end="")
    print(f", and passed over {n_impossible} that cannot be put back" if n_impossible else "")


def _original(letter: DeadLetter, originals: "_Originals") -> Record | None:
    """The record that a letter is about; None, and a warning why, if it cannot be put back."""
    original = originals.of(letter) if letter.is_shortened else letter.record
    here = "-".join(map(str, letter.record[:3]))
    there = "-".join(letter.source)
    if original is None:
        logger.warning("%s is shortened, and %s is gone", here, there)
        return None
    if original.nbytes > MAX_BYTES:  # which the topic may not take from us, and no trainer reads
        logger.warning("%s is about %s, which has %d bytes, too many to be read", here, there, original.nbytes)
        return None
    return original


class _Originals:
    """Finds the records that shortened dead letters are about, inside a ``with`` block."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._resources = ExitStack()
        self._log: Transport | None = None

    def __enter__(self) -> "_Originals":
        return self

    def __exit__(self, *_: object) -> None:
        self._resources.close()

    def of(self, letter: DeadLetter) -> Record | None:
        """The record, if it is still where it was."""
        if self._log is None:
            self._log = self._resources.enter_context(open_once(self._settings))
        (topic, partition), offset = letter.home, letter.why.get("offset", "")
        if not offset.isdecimal():
            return None
        start, end = self._log.start_offsets(topic)[partition], self._log.end_offsets(topic)[partition]
        if not start <= int(offset) < end:
            return None
        with closing(read(self._log, topic, {partition: int(offset)}, {partition: int(offset) + 1})) as records:
            return next((record for record in records if letter.is_of(record)), None)


def _put_back(log: Transport, letter: DeadLetter, original: Record) -> None:
    """Append it to where it comes from, as it was; its headers tell how often it was refused."""
    own = [header for header in original.headers if not header[0].startswith(PREFIX)]
    ours: Headers = [
        (f"{PREFIX}replayed", str(letter.record.offset).encode()),
        (f"{PREFIX}attempts", letter.why.get("attempts", "1").encode()),
    ]
    topic, partition = letter.home
    log.produce(topic, original.value, key=original.key, headers=[*own, *ours], partition=partition)


def _commit(settings: Settings, group: str, log: Transport, partition: int, replayed: Replayed) -> None:
    flush(log)
    offsets = {(settings.log.dlq, partition): replayed.to_commit()}
    if settings.kafka:
        from ..logs.kafka.admin import commit_offsets  # The log commits only for members of a group.

        commit_offsets(settings.kafka, group, offsets)
    else:
        log.commit(offsets)


# --- replay -----------------------------------------------------------------------------------------------------------

_Spans = dict[str, dict[int, tuple[int, int]]]  # of offsets, by topic and partition


class Excerpt:
    """A log of which some topics are seen in part; everything else is the log's own.

    Parameters
    ----------
    log
        A `Transport`, which this then is, too.
    spans
        First offset and end of each partition.
    """

    def __init__(self, log: Transport, spans: _Spans) -> None:
        self._log = log
        self._spans = spans

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    def start_offsets(self, topic: str) -> dict[int, int]:
        starts = self._log.start_offsets(topic)  # which may have moved on
        return {
            number: max(starts[number], start) for number, (start, _) in self._spans.get(topic, {}).items()
        } or starts

    def end_offsets(self, topic: str) -> dict[int, int]:
        ends = {number: end for number, (_, end) in self._spans.get(topic, {}).items()}
        return ends or self._log.end_offsets(topic)


def replay_settings(path: Path, environment: Mapping[str, str], overrides: Sequence[str], app: str) -> Settings:
    """A configuration under another name, which touches nothing of the original's.

    Raises
    ------
    ConfigError
        If it would.
    """
    original = load(path, environment, log_must_exist=True)
    outputs = {name: getattr(original.log, name) for name in ("predictions", "dlq", "model", "scores")}
    renamed = [f"log.{name}={topic}-{app}" for name, topic in outputs.items() if topic]
    state_dir = original.daemon.state_dir.resolve()
    fixed = [
        "log.questions=",
        "daemon.follow=false",
        "daemon.start=earliest",
        "daemon.exactly_once=false",
        f"group.id={app}",
    ]
    given = [*renamed, f"daemon.state_dir={state_dir}-{app}", "http.port=0", *overrides, *fixed]
    settings = load(path, environment, given)
    written = [settings.log.predictions, settings.log.dlq, settings.log.model, settings.log.scores]
    problems = [f"topic {name!r} belongs to the original" for name in written if name and name in original.log.topics()]
    if settings.daemon.state_dir.resolve() == state_dir:
        problems.append(f"daemon.state_dir = {str(state_dir)!r} belongs to the original")
    if app == original.group.id:
        problems.append(f"--app {app} is the original: choose another name")
    if problems:
        raise ConfigError(problems)
    return settings


def replay(settings: Settings, first: Moment, last: Moment, stop: Stop) -> dict[int, State]:
    """Train over a range of the log.

    Events are taken from `first` on and before `last`, in each partition; labels from their beginning to their end, for
    those of the events may come at any time.  A replay that was interrupted goes on with the same range.

    Parameters
    ----------
    settings
        From `replay_settings`.
    first, last
        Offsets, or times, of events; default: all that there are.
    stop
        Asked between batches.

    Returns
    -------
    dict
        As `daemon.run`.
    """
    log = settings.log
    if not topics.describe(settings, [log.topic]):
        raise TopicMismatch(f"there is no topic {log.topic!r}")
    make_private(settings.daemon.state_dir)
    with lock_folder(settings.daemon.state_dir, "this replay's state"):
        topics.create(settings, names=[name for name in (log.predictions, log.dlq, log.model) if name])
        spans = _remembered_spans(settings, first, last)
        if settings.kafka and not settings.group.assign:  # this process does it all
            numbers = ",".join(map(str, spans[log.topic]))
            settings = replace(settings, group=replace(settings.group, assign=numbers))

        def loop(settings: Settings, log: Transport, *others: Any) -> Trainer:
            return Trainer(settings, cast(Transport, Excerpt(log, spans)), *others)

        return operate(loop, settings, stop, settings.group.id) or {}


def _read_spans(path: Path) -> tuple[dict[str, str], _Spans]:
    """What a replay was asked for when it began, and the range as it was."""
    try:
        stored = json.loads(path.read_bytes())
        asked = {name: str(stored["asked"][name]) for name in ("from", "to")}
        return asked, {
            topic: {int(n): (int(a), int(b)) for n, (a, b) in span.items()} for topic, span in stored["spans"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged, choose another --app: {error!r:.200}") from None


def _remembered_spans(settings: Settings, first: Moment, last: Moment) -> _Spans:
    """The range as it was when this replay began."""
    path = settings.daemon.state_dir / "replay.json"
    asked = {"from": _show(first, "earliest"), "to": _show(last, "the end")}
    if path.exists():
        began, spans = _read_spans(path)
        if began != asked:
            raise ConfigError(
                [
                    f"{settings.daemon.state_dir}: {settings.group.id} replays from {began['from']} to {began['to']}; "
                    "for another range choose another --app"
                ]
            )
        return spans
    spans = _spans(settings, first, last)
    write_private(path, json.dumps({"asked": asked, "spans": spans}).encode())
    return spans


def _show(moment: Moment, default: str) -> str:
    return default if moment is None else str(moment)


def _spans(settings: Settings, first: Moment, last: Moment) -> _Spans:
    events, labels = settings.log.topic, settings.log.labels
    with open_once(settings) as log:
        starts, ends = log.start_offsets(events), log.end_offsets(events)
        begins = starts if first is None else _offsets_at(settings, log, first)
        stops = ends if last is None else _offsets_at(settings, log, last)
        spans = {events: {number: (begins[number], max(begins[number], stops[number])) for number in sorted(starts)}}
        if labels:
            starts, ends = log.start_offsets(labels), log.end_offsets(labels)
            spans[labels] = {number: (starts[number], ends[number]) for number in sorted(starts)}
    return spans


def _offsets_at(settings: Settings, log: Transport, moment: int | datetime) -> dict[int, int]:
    """Where a moment is in each partition of the events."""
    topic = settings.log.topic
    starts, ends = log.start_offsets(topic), log.end_offsets(topic)
    if isinstance(moment, int):
        return {number: min(max(moment, start), ends[number]) for number, start in starts.items()}
    time_ms = int(1000 * moment.timestamp())
    if settings.kafka:
        from ..logs.kafka.admin import offsets_at

        return {**ends, **offsets_at(settings.kafka, topic, starts, time_ms)}
    found = {}
    for number, start in starts.items():
        with closing(read(log, topic, {number: start}, ends)) as records:
            found[number] = next((record.offset for record in records if record.timestamp >= time_ms), ends[number])
    return found
