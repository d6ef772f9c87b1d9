"""The command ``streamsvm init``: look at a table or a topic, and write a configuration for it."""

import argparse
import json
import re
import shlex
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamsvm.core.saving import snapshot
from streamsvm.core.stream_warning import StreamWarning

from ...logs.reading import read
from ...records.formats.base import BadRecord
from ...records.formats.json import read_json
from ...records.tables import raw_rows
from ...records.text_files import Mistakes
from ...runtime.folders import FileError, require_folder
from ...runtime.text import counted, plural, printable
from ...settings import topics
from ...settings.loading import load
from ...settings.opening import open_once
from ...settings.sections import ConfigError, LogSettings, Settings
from ..shared.log_access import watched
from .fields import Field, Table
from .roles import MOST_GUESSED, Roles, roles_of, roles_of_events
from .writing import Origin, configuration, table, values

RECORDS = 1000  # of a topic


def run(arguments: argparse.Namespace) -> None:
    out: Path = arguments.out
    _check(arguments)
    if arguments.file is not None:
        origin, records = _file(arguments)
    else:
        origin, records = _topic(arguments)
    found = Table()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)  # The table and the comments say the same.
        for record in watched(records, "looking"):
            try:
                if origin.is_flat:
                    found.note(record)
                else:
                    found.note(record["x"], record.get("y"))
            except ValueError as error:  # of two fields with one name
                raise FileError(f"{origin.name}, record {found.n_records + 1}: {error}") from None
    if not found.n_records:
        raise FileError(f"{origin.name}: there are no records")
    fields = found.judged()
    given = {name: getattr(arguments, name) for name in ("id", "label", "time", "positive")}
    roles = roles_of(fields, found.n_records, given) if origin.is_flat else roles_of_events(found, given)
    print(table(fields, roles, found.n_records))
    _tell(origin, fields, roles)
    if origin.is_flat and roles.label is None and arguments.label is None:
        raise ConfigError(_which_label(out, fields, roles))
    snapshot.write_atomic(out, configuration(origin, fields, roles, found.n_records).encode())
    load(out, {}, log_must_exist=False, with_model=False)
    _tell_next(arguments, origin, roles)


def _check(arguments: argparse.Namespace) -> None:
    is_topic = arguments.topic is not None
    if is_topic == (arguments.file is not None):
        raise ConfigError("init takes a FILE, or --topic TOPIC with --dir LOG or --kafka HOST:PORT")
    if is_topic and (arguments.dir is None) == (arguments.kafka is None):
        raise ConfigError(f"--topic {arguments.topic}: add --dir LOG for a folder, or --kafka HOST:PORT")
    if arguments.out.exists() and not arguments.force:
        raise ConfigError(f"--out {arguments.out}: the file exists; name another one, or add --force to replace it")
    require_folder(arguments.out)


# --- records ----------------------------------------------------------------------------------------------------------


def _file(arguments: argparse.Namespace) -> tuple[Origin, Iterator[Mapping[Any, Any]]]:
    path: Path = arguments.file
    topic = re.sub(r"[^A-Za-z0-9_-]+", "-", path.stem).strip("-")[:100] or "events"
    folder = _relative(arguments.dir or Path("log"), arguments)

    def records() -> Iterator[Mapping[Any, Any]]:
        mistakes = Mistakes()
        with mistakes:
            yield from (row.fields for row in raw_rows(path, "auto", mistakes))
        mistakes.complain()

    log = f"[log]\ndir = {json.dumps(folder)}\n"
    return Origin(str(path), topic, log, is_flat=True, ends=True), records()


def _relative(folder: Path, arguments: argparse.Namespace) -> str:
    """A folder as the configuration names it: relative to the configuration's own."""
    home = arguments.out.resolve().parent
    place = folder.resolve()
    return str(place.relative_to(home)) if place.is_relative_to(home) else str(place)


def _topic(arguments: argparse.Namespace) -> tuple[Origin, Iterator[Mapping[Any, Any]]]:
    topic: str = arguments.topic
    if arguments.kafka:
        settings = Settings(kafka={"bootstrap_servers": arguments.kafka}, log=LogSettings(topic=topic))
        log = f"[kafka]\nbootstrap_servers = {json.dumps(arguments.kafka)}\n[log]\n"
    else:
        settings = Settings(log=LogSettings(dir=arguments.dir, topic=topic))
        log = f"[log]\ndir = {json.dumps(_relative(arguments.dir, arguments))}\n"
    values = _values(settings, topic)
    objects = [found for value in values if (found := _object(value)) is not None]
    if len(objects) < len(values):
        print(f"passed over {plural(len(values) - len(objects), 'record')} without a JSON object")
    is_flat = not all(isinstance(found.get("x"), dict) and "id" in found for found in objects)
    return Origin(f"topic {topic}", topic, log, is_flat=is_flat, ends=False), iter(objects)


def _values(settings: Settings, topic: str) -> list[bytes]:
    """The first records of a topic, as many of each partition."""
    if not topics.describe(settings, [topic]):
        raise ConfigError(f"--topic {topic}: the log has no such topic")
    with open_once(settings) as log:
        starts, ends = log.start_offsets(topic), log.end_offsets(topic)
        most = -(-RECORDS // max(1, len(starts)))
        parts = {number: min(ends[number], start + most) for number, start in starts.items()}
        return [record.value for record in read(log, topic, starts, parts) if record.value is not None]


def _object(value: bytes) -> Mapping[str, Any] | None:
    try:
        return read_json(value, dict)
    except BadRecord:
        return None


# --- what is said -----------------------------------------------------------------------------------------------------


def _tell(origin: Origin, fields: Mapping[str, Field], roles: Roles) -> None:
    if origin.is_flat:
        for role in ("id", "label", "time"):
            print(printable(f"{role}: {getattr(roles, role) or 'none'} ({roles.why[role]})"))
    if roles.classes:
        positive = "" if len(roles.classes) > 2 else f"; positive is {roles.positive} ({roles.why['positive']})"
        print(printable(f"classes: {counted(roles.classes, MOST_GUESSED)}{positive}"))
    digits = [name for name in roles.kinds if fields[name].is_of_digits]
    if digits:
        print(
            printable(
                f"{', '.join(digits)}: mostly digits. If they are numbers or times in another notation, such as 0,5 or "
                '31.12.2025, they need a function that converts them: docs/table.md, "Other notations"'
            )
        )


def _which_label(out: Path, fields: Mapping[str, Field], roles: Roles) -> str:
    """What to do if nothing tells the label: a configuration without it would have to be written again."""
    lines = [f"{out} is not written: which field is the label? Add one of these options:"]
    lines += [f"  --label {shlex.quote(name)}  # {values(fields[name])}" for name in roles.candidates[:MOST_GUESSED]]
    if not roles.candidates:
        lines.append("  --label FIELD  # any field with several different values")
    return "\n".join(printable(line) for line in [*lines, "  --label ''  # none of them: labels come later, or never"])


def _tell_next(arguments: argparse.Namespace, origin: Origin, roles: Roles) -> None:
    """Say what to do with the configuration."""
    out = shlex.quote(str(arguments.out))
    print(f"wrote {arguments.out}")
    commands = [f"streamsvm run {out}", f"streamsvm predictions {out} --out predictions.csv"]
    if arguments.file is not None:
        commands.insert(0, f"streamsvm produce {shlex.quote(str(arguments.file))} --config {out}")
    elif arguments.kafka:
        commands.insert(0, f"streamsvm topics {out} --create")
    print("\n".join(["next:", *(f"  {command}" for command in commands)]))
