"""The command ``streamsvm labels``: write the labels given so far, or all answers, to a file."""

import argparse
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from tqdm import tqdm

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
from .shared.tables import TEXTUAL, require_table, write_table

_TYPES: dict[str, type] = {
    "id": str,
    "op": str,
    "y": bool,
    "weight": float,
    "rev": int,
    "source": str,
    "annotator": str,
    "ts": datetime,
    "partition": int,
    "predicted": bool,
    "margin": float,
    "score": float,
    "reason": str,
    "asked_at": datetime,
    "query_id": str,
    "like": str,
}


def run(arguments: argparse.Namespace) -> None:
    settings = read_config(arguments, _needs, with_model=False)
    require_table(arguments.out, (*TEXTUAL, PARQUET))
    history = history_of(settings)
    with open_once(settings) as log:
        places = {entry.place for entry in _progress(history.read(log, settings.log.labels))}
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


def _needs(settings: Settings) -> Iterator[str]:
    if not settings.log.labels:
        yield "log.labels = '': there is no topic of labels to read; set log.labels to its name"


def _progress(entries: Iterable[Entry]) -> Iterable[Entry]:
    return tqdm(entries, "reading the labels", unit=" records", disable=None)


def _types(places: set[Place], settings: Settings) -> dict[str, type]:
    """The columns and their types: ids are numbers if all of them are, and classes are texts if they have names."""
    are_numbers = all(type(place.id) is int and abs(place.id) < 1 << 63 for place in places)
    types = _TYPES | {"id": int if are_numbers and places else str}
    if settings.label.positive or settings.label.vocabulary:
        types |= {"y": str, "predicted": str}
    return types


def _rows(
    entries: Iterable[Entry], guesses: dict[Place, Guess], settings: Settings, types: dict[str, type]
) -> Iterator[dict[str, Any]]:
    """The answers as records of log.labels, with what else is known; what is not known is left out."""
    codec = settings.codec()
    for entry in entries:
        label, guess = entry.label, guesses.get(entry.place)
        row: dict[str, Any] = {
            "id": label.id,
            "op": label.op,
            "y": None if label.y is None else types["y"](codec.name_of(label.y)),
            "weight": label.w,
            "rev": entry.rev,
            "source": label.source,
            "annotator": entry.annotator or None,
            "ts": None if entry.time is None else _time(entry.time),
            "partition": entry.place.partition,
            "query_id": entry.query_id,
            "like": label.like,
        }
        if guess is not None:
            row |= {
                "predicted": _predicted(guess, codec),
                "margin": guess.margin,
                "score": guess.score,
                "reason": guess.reason,
                "asked_at": None if guess.asked_at is None else _time(guess.asked_at),
            }
        if label.like is not None:
            row["reason"] = "alike"
        yield {name: row[name] for name in types if row.get(name) is not None}


def _predicted(guess: Guess, codec: Codec) -> ClassLabel | None:
    if codec.is_multiclass:
        return None if guess.label is None else str(guess.label)
    return codec.name_of(guess.margin > 0)


def _time(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
