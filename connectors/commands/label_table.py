"""A labelling job without a configuration, ``streamsvm label TABLE``: a folder beside the table holds all of it."""

import argparse
import json
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..labelling.web.images import shown_at
from ..logs.embedded import LocalLog
from ..logs.reading import read_one
from ..records.columns import Columns
from ..records.files import read_events
from ..records.tables import TABLES, format_of
from ..runtime.folders import FileError
from ..runtime.text import number_in, plural
from ..settings.loading import load
from ..settings.sections import ConfigError, LabelSettings, Settings
from .init.roles import is_id
from .label_words import EMBEDDER, embedder, nearest, words_of
from .shared.log_access import fill

TOPIC = "records"
LOOKED_AT = 100  # records
COLUMNS = ("text", "image", "id", "known")  # options of a table

_CONFIG = """\
# Written by `streamsvm label`. Change it as you like; the same command goes on with it.
[log]
dir = "log"
topic = "records"
labels = "labels"
questions = "questions"
model = "model" # for `streamsvm score`, which predicts all records with the newest model

[labelling]
# threshold = "gmean" # of two classes: the model then finds more of the rare one, with more false alarms

[daemon]
checkpoint_seconds = 1.0
"""
_RAW = """
[features]
raw = true # texts, blanks and times: the trainer makes numbers of them
"""
_EMBED = """\
embed = {{ {column} = "{embedder}" }} # a text's meaning, beside its words
"""
_WORDS = """
[model]
scaling = "none" # with texts only, questions then find more
"""


def is_table(path: Path) -> bool:
    """Whether a command got a table in the place of a configuration."""
    return format_of(path) in TABLES


def prepare(arguments: argparse.Namespace) -> Path:
    """Make the folder of a table's job, or go on with the one that is there; return its configuration.

    Raises
    ------
    FileError, OSError
        If the table cannot be read, or is another one than before.
    """
    table: Path = arguments.config
    if arguments.id is None and (found := _id_column(arguments)) is not None:
        arguments.id = found
        print(f"the ids are those of the column {found!r}")
    config, settings = open_job(table, table.stem, arguments.set, _features(arguments))
    columns = _columns(arguments, settings)
    try:
        first = list(islice(_events(table, columns), LOOKED_AT))
        _require_shown(table, columns, first)
        if arguments.image:
            _require_images(table, settings, first)
    except FileError:
        if not settings.log.dir.exists():
            config.unlink()  # The next call begins anew.
        raise
    if arguments.text and not settings.log.dir.exists():
        _ask_first(config, settings, table, columns)
    n_records = sum(1 for _ in read_events(table, "auto", columns))
    _require_same(settings.log.dir, table, columns)
    fill(settings.log.dir, TOPIC, read_events(table, "auto", columns))
    tell(plural(n_records, "record"), table, config)
    return config


def open_job(
    source: Path, name: str, overrides: list[str], features: str = "", given: Sequence[str] = ()
) -> tuple[Path, Settings]:
    """The configuration of a job in the folder NAME-labels beside its source.

    If it is not there, it is made; `features` are the sections that say what the features are, and `given` are further
    settings of a new job.
    """
    config = _config_of(source, name)
    config.parent.mkdir(parents=True, exist_ok=True)
    if not config.exists():
        _begin(config, [*given, *overrides], _CONFIG + features)
    return config, load(config, os.environ, overrides, with_model=False)


def _config_of(source: Path, name: str) -> Path:
    return source.with_name(f"{name}-labels") / "app.toml"


def tell(events: str, source: Path, config: Path) -> None:
    """Say what a job is about, and where it is."""
    print(f"{events} of {source}; {config.parent} holds the job: labels, model, settings", flush=True)


def _begin(config: Path, overrides: list[str], text: str) -> None:
    """Write the configuration of a new job, with what ``--set`` says: the next call and other commands need it, too."""
    config.write_text(text, encoding="utf-8")
    try:
        settings = load(config, os.environ, overrides, with_model=False)
    except ConfigError:
        config.unlink()  # The next call begins anew.
        raise
    text = _with(text, "labelling", "instructions", _instructions(settings.label))
    for flag in overrides:
        section, _, key = (part.strip() for part in flag.partition("=")[0].partition("."))
        value = getattr(getattr(settings, section), key, None)
        if isinstance(value, Path):  # relative to the configuration, so that a job can be moved
            value = os.path.relpath(value, config.parent)
        if isinstance(value, str | int | float | tuple):
            text = _with(text, section, key, value)
    config.write_text(text, encoding="utf-8")


def _with(text: str, section: str, key: str, value: Any, remark: str = "") -> str:
    """The text of a configuration with another value of a key."""
    head, line = f"[{section}]\n", f"{key} = {json.dumps(value, ensure_ascii=False)}{remark}\n"
    text = re.sub(rf"^{key} = .*\n", "", text, flags=re.MULTILINE)
    return text.replace(head, head + line, 1) if head in text else f"{text}\n{head}{line}"


def _id_column(arguments: argparse.Namespace) -> str | None:
    """The column of ids if none is given: as the job has begun, or one with such a name whose values all differ."""
    rows = (event["x"] for event in _events(arguments.config, Columns(raw="event")))
    others = (arguments.text, arguments.image, arguments.known)
    named = {name: {str(of)} for name, of in next(rows, {}).items() if is_id(name) and name not in others}
    if named and (begun := _first_event(arguments)):
        return next((name for name in named if name not in begun["x"]), None)
    n_rows = 1
    for row in rows if named else ():
        n_rows += 1
        for name, seen in named.items():
            seen.add(str(row.get(name)))
    return next((name for name, seen in named.items() if len(seen) == n_rows and "None" not in seen), None)


def _first_event(arguments: argparse.Namespace) -> dict[str, Any] | None:
    """The first event of a job that has begun."""
    config = _config_of(arguments.config, arguments.config.stem)
    folder = load(config, os.environ, arguments.set, with_model=False).log.dir if config.exists() else None
    return None if folder is None else _event_of(folder, 0)[1]


def _event_of(folder: Path, place: int) -> tuple[int, dict[str, Any] | None]:
    """The number of events that a job's log has, and the one at a place, or None; -1 is the last one."""
    if not folder.exists():
        return 0, None
    with LocalLog(folder) as log:
        n = log.end_offsets(TOPIC).get(0, 0)
        record = read_one(log, TOPIC, 0, place % max(n, 1))
    return n, None if record is None else json.loads(record.value or b"{}")


def _features(arguments: argparse.Namespace) -> str:
    """The sections of a new job that say what the features are."""
    if not arguments.text:
        return _RAW
    embedded = _EMBED.format(column=json.dumps(arguments.text), embedder=EMBEDDER) if embedder() else ""
    scaled = "" if _has_numbers(arguments.config, (arguments.id, arguments.known)) else _WORDS
    return _RAW + embedded + scaled


def _ask_first(config: Path, settings: Settings, table: Path, columns: Columns) -> None:
    """Let a new job begin with the texts that are nearest to the name of the class that is looked for."""
    words, own, by = words_of(settings.label.positive), settings.labelling, embedder()
    if not words or own.seed_words or own.first:
        return
    text = config.read_text(encoding="utf-8")
    if by is None:
        text = _with(text, "labelling", "seed_words", words)
    else:
        texts = ((str(event["id"]), str(event.get(own.text) or "")) for event in _events(table, columns))
        text = _with(text, "labelling", "first", nearest(texts, words[0], by), f" # nearest to {words[0]!r}")
    config.write_text(text, encoding="utf-8")


def _instructions(label: LabelSettings) -> str:
    """What the page asks annotators to do, until a lead writes something better."""
    doubt = "If you cannot tell, choose Skip."
    if label.vocabulary:
        return f"Choose the class that fits best. {doubt}"
    looked_for, other = label.shown
    if not label.meanings:
        looked_for, other = f"{looked_for} if this is what you look for", f"{other} if it is not"
    return f"Choose {looked_for}, or {other}. {doubt}"


def _has_numbers(table: Path, others: tuple[str | None, ...]) -> bool:
    """Whether one of the first records has a number, in a field that is a feature."""
    first = islice(_events(table, Columns(raw="event")), LOOKED_AT)
    return any(_is_number(value) for event in first for name, value in event["x"].items() if name not in others)


def _is_number(value: Any) -> bool:
    return number_in(value) is not None if isinstance(value, str) else isinstance(value, int | float)


def _columns(arguments: argparse.Namespace, settings: Settings) -> Columns:
    fields, label = settings.labelling, settings.label
    shown = {
        part: column for part, column in ((fields.text, arguments.text), (fields.image, arguments.image)) if column
    }
    learned = () if arguments.text is None else (arguments.text,)
    return Columns(
        arguments.known,
        arguments.id,
        classes=label.vocabulary,
        names=label.meanings,
        shown=shown,
        learned=learned,
        raw="event",
    )


def _events(table: Path, columns: Columns) -> Iterator[dict[str, Any]]:
    return map(json.loads, read_events(table, "auto", columns))


def _require_shown(table: Path, columns: Columns, first: Sequence[dict[str, Any]]) -> None:
    """Refuse a column to show that none of the first records has."""
    for part, column in columns.shown.items():
        if first and not any(event.get(part) for event in first):
            there = ", ".join(dict.fromkeys(name for event in first for name in event["x"]))
            raise FileError(f"{table}: no record has a field {column!r} to show; there are {there[:500]}")


def _require_images(table: Path, settings: Settings, first: Sequence[dict[str, Any]]) -> None:
    """Refuse names of files where none of the first ones is an image that the page can show."""
    field, folder = settings.labelling.image, settings.labelling.image_folder
    given = (event.get(field) for event in first)
    names = [name for name in given if isinstance(name, str) and name and ":" not in name]
    if names and not any(shown_at(name, settings.labelling) for name in names):
        where = f"the folder {folder} has no such image" if folder else "their folder is not known"
        raise FileError(
            f"{table}: {names[0]!r} names a file, but {where}. Set labelling.image_folder to the folder of the images; "
            f"a relative path begins at {table.stem}-labels"
        )


def _require_same(folder: Path, table: Path, columns: Columns) -> None:
    """Refuse a table that is not the one whose records the log has: labels would belong to other records."""
    there, last = _event_of(folder, -1)
    if last is not None and last != next(islice(_events(table, columns), there - 1, None), {}):
        raise FileError(
            f"{table}: record {there} is not the one that {table.stem}-labels has from an earlier call. Give the same "
            "columns as then, and add records at the end of the table only; or move the folder away to begin a new job"
        )
