"""The command ``streamsvm replay``: train another model over a range of the log."""

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from ...logs.transport import TopicMismatch, Transport
from ...runtime.folders import lock_folder, make_private, write_private
from ...runtime.moments import Moment
from ...runtime.process import Stop
from ...settings import topics
from ...settings.loading import load
from ...settings.opening import open_once
from ...settings.sections import ConfigError, Settings, refuse
from ...trainer.excerpt import Excerpt, Spans, control_spans, offsets_at
from ...trainer.operate import operate
from ...trainer.state.checkpoint import CheckpointError
from ...trainer.state.state import State
from ...trainer.trainer import Trainer
from ..shared.long_running import show_states, working


def run(arguments: argparse.Namespace) -> None:
    settings = replay_settings(arguments.config, os.environ, arguments.set, arguments.app)
    with working(settings) as stop:
        states = replay(settings, arguments.first, arguments.last, stop)
    show_states(settings, states)


def replay_settings(path: Path, environment: Mapping[str, str], overrides: Sequence[str], app: str) -> Settings:
    """The configuration of a replay: another name, other output topics and another state folder.

    Raises
    ------
    ConfigError
        If the overrides lead to a topic, a folder or a group of the original.
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
        "daemon.begin=empty",
        "comparison.promote=",
        "state.store=dir",
        "log.state=",
        "state.url=",
        f"group.id={app}",
    ]
    given = [*renamed, f"daemon.state_dir={state_dir}-{app}", "http.port=0", *overrides, *fixed]
    settings = load(path, environment, given)
    settings = replace(
        settings, challenger=tuple(replace(own, topic=f"{original.topic_of(own)}-{app}") for own in settings.challenger)
    )
    written = [settings.log.predictions, settings.log.dlq, settings.log.model, settings.log.scores]
    problems = [
        f"topic {name!r} belongs to the original: choose another one for the replay"
        for name in written
        if name and name in original.topics()
    ]
    if settings.daemon.state_dir.resolve() == state_dir:
        problems.append(f"daemon.state_dir = {str(state_dir)!r} belongs to the original: choose another folder")
    if app == original.group.id:
        problems.append(f"--app {app} is the original's group.id: choose another name")
    refuse(problems)
    return settings


def replay(settings: Settings, first: Moment, last: Moment, stop: Stop) -> dict[int, State]:
    """Train over a range of the log.

    Labels are read from the first to the last one, because an event's label may come at any time. An interrupted
    replay continues with the range that it began with.

    Parameters
    ----------
    settings
        From `replay_settings`.
    first, last
        The range of events in each partition, as offsets or times; `last` is left out. None: the first event, or the
        end of the log.
    stop
        Called between batches; True ends the replay.

    Returns
    -------
    dict
        As `trainer.run` returns.
    """
    log = settings.log
    if not topics.describe(settings, [log.topic]):
        raise TopicMismatch(f"there is no topic {log.topic!r}; `streamsvm topics CONFIG.toml` lists the topics")
    make_private(settings.daemon.state_dir)
    with lock_folder(settings.daemon.state_dir, "this replay's state"):
        outputs = [*filter(None, (log.predictions, log.dlq, log.model)), *settings.topics_of_challengers()]
        topics.create(settings, names=outputs)
        spans = _remembered_spans(settings, first, last)
        if not settings.group.assign:  # this process reads every partition
            numbers = ",".join(map(str, spans[log.topic]))
            settings = replace(settings, group=replace(settings.group, assign=numbers))

        def loop(settings: Settings, log: Transport, *others: Any) -> Trainer:
            return Trainer(settings, cast(Transport, Excerpt(log, spans)), *others)

        return operate(loop, settings, stop, settings.group.id) or {}


# --- the range --------------------------------------------------------------------------------------------------------


def _remembered_spans(settings: Settings, first: Moment, last: Moment) -> Spans:
    """The range that this replay began with; the first call determines it and writes it down."""
    path = settings.daemon.state_dir / "replay.json"
    asked = {"from": _show(first, "earliest"), "to": _show(last, "the end")}
    if path.exists():
        began, spans = _read_spans(path)
        if began != asked:
            raise ConfigError(
                f"{settings.daemon.state_dir}: {settings.group.id} replays from {began['from']} to {began['to']}; "
                "for another range choose another --app"
            )
        return spans
    spans = _spans(settings, first, last)
    write_private(path, json.dumps({"asked": asked, "spans": spans}).encode())
    return spans


def _show(moment: Moment, default: str) -> str:
    return default if moment is None else str(moment)


def _read_spans(path: Path) -> tuple[dict[str, str], Spans]:
    """The arguments with which a replay began, and its range."""
    try:
        stored = json.loads(path.read_bytes())
        asked = {name: str(stored["asked"][name]) for name in ("from", "to")}
        return asked, {
            topic: {int(n): (int(a), int(b)) for n, (a, b) in span.items()} for topic, span in stored["spans"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged, choose another --app: {error!r:.200}") from None


def _spans(settings: Settings, first: Moment, last: Moment) -> Spans:
    events, labels = settings.log.topic, settings.log.labels
    with open_once(settings) as log:
        starts, ends = log.start_offsets(events), log.end_offsets(events)
        begins = starts if first is None else offsets_at(settings, log, first)
        stops = ends if last is None else offsets_at(settings, log, last)
        spans = {events: {number: (begins[number], max(begins[number], stops[number])) for number in sorted(starts)}}
        if labels:
            starts, ends = log.start_offsets(labels), log.end_offsets(labels)
            spans[labels] = {number: (starts[number], ends[number]) for number in sorted(starts)}
        return spans | control_spans(settings, log)
