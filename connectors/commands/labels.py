"""The command ``streamsvm labels``: write the labels given so far, or all answers, to a file."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, NamedTuple

from ..records.classes import ClassLabel
from ..records.codec import Codec
from ..records.labels import Place
from ..records.people.label_files import PARQUET
from ..records.people.label_history import Entry, Guess, read_guesses
from ..report.answers import history_of
from ..runtime.text import plural
from ..settings.opening import open_once
from ..settings.sections import Settings
from .shared.configuration import read_config
from .shared.log_access import watched
from .shared.tables import TEXTUAL, require_table, write_table

_NEEDS = {"log.labels": "there is no topic of labels to read; set log.labels to its name"}
_COLUMNS = {  # the type, and where the value is: in the answer, or in what the model had said
    "id": (str, "answer.label.id"),
    "op": (str, "answer.label.op"),
    "y": (bool, "answer.label.y"),
    "weight": (float, "answer.label.w"),
    "rev": (int, "answer.rev"),
    "source": (str, "answer.label.source"),
    "annotator": (str, "answer.annotator"),
    "ts": (datetime, "answer.time"),
    "partition": (int, "answer.place.partition"),
    "predicted": (bool, "guess.label"),
    "margin": (float, "guess.margin"),
    "score": (float, "guess.score"),
    "reason": (str, "guess.reason"),
    "asked_at": (datetime, "guess.asked_at"),
    "query_id": (str, "answer.label.query_id"),
    "like": (str, "answer.label.like"),
}


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, _NEEDS, with_model=False)
    require_table(arguments.out, (*TEXTUAL, PARQUET))
    history = history_of(settings)
    with open_once(settings) as log:
        places = {entry.place for entry in watched(history.read(log, settings.log.labels), "reading the labels")}
        guesses = read_guesses(log, settings.log.questions, settings.log.predictions, places)
        n_refused = history.n_refused
        # All answers are read once more, from the start, so that only one row at a time is in memory.
        rows = history_of(settings).read(log, settings.log.labels) if arguments.history else history.labels()
        types = _types(places, settings)
        if not arguments.history:  # fed back as it is, the label decides alone, also where several answers would
            del types["op"], types["query_id"], types["like"]
        noun = "answer" if arguments.history else "label"
        write_table(arguments.out, types, _rows(rows, guesses, settings, types), noun)
    if n_refused:
        print(f"streamsvm: passed over {plural(n_refused, 'damaged record')}", file=sys.stderr)


def _types(places: set[Place], settings: Settings) -> dict[str, type]:
    """The columns and their types: ids are numbers if all of them are, and classes are texts if they have names."""
    are_numbers = all(type(place.id) is int and abs(place.id) < 1 << 63 for place in places)
    types = {name: kind for name, (kind, _) in _COLUMNS.items()} | {"id": int if are_numbers and places else str}
    if settings.label.positive or settings.label.vocabulary:
        types |= {"y": str, "predicted": str}
    return types


class _Told(NamedTuple):
    """An answer, and what the model had said of its event."""

    answer: Entry
    guess: Guess | None


def _rows(
    entries: Iterable[Entry], guesses: dict[Place, Guess], settings: Settings, types: dict[str, type]
) -> Iterator[dict[str, Any]]:
    """The answers as records of log.labels, with what else is known; what is not known is left out."""
    codec = settings.codec()
    for entry in entries:
        told = _Told(entry, guesses.get(entry.place))
        row: dict[str, Any] = {
            name: attrgetter(where)(told)
            for name, (_, where) in _COLUMNS.items()
            if told.guess is not None or not where.startswith("guess")
        }
        if entry.label.y is not None:
            row["y"] = types["y"](codec.name_of(entry.label.y))
        if told.guess is not None:
            row["predicted"] = _predicted(told.guess, codec)
        if entry.label.like is not None:
            row["reason"] = "alike"
        row["annotator"] = entry.annotator or None
        known = {name: row[name] for name in types if row.get(name) is not None}
        yield {name: _time(value) if types[name] is datetime else value for name, value in known.items()}


def _predicted(guess: Guess, codec: Codec) -> ClassLabel | None:
    if codec.is_multiclass:
        return None if guess.label is None else str(guess.label)
    return codec.name_of(guess.margin > 0)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
