"""The command ``streamsvm explain``: why a model answers as it does."""

import argparse
import sys
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

from streamsvm.estimators.learner.explaining import Explanation

from ..records.raw import flat
from ..records.text_files import Mistakes, Row, json_rows
from ..runtime.folders import FileError
from ..settings.sections import Settings
from .shared.configuration import state_of
from .shared.saved_model import read_model

_EXAMPLE = '{"x": {"a": 1.5}}'


def run(arguments: argparse.Namespace) -> None:
    config, path = state_of(arguments.model)
    settings = config or Settings()
    served = read_model(path, arguments.partition, arguments.key)
    made_by: Any = served.made_by
    names: dict[Hashable, str] = {meaning: name for name, meaning in settings.label.meanings.items()}
    for row in _events(arguments.events):
        try:
            name, x = _read(row.fields, settings)
            why = served.model.explain_one(made_by.transform_one(x) if made_by else x, arguments.n)
        except (TypeError, ValueError) as error:
            raise FileError(f"{row.where}: {error}") from None
        print(text(why, names) if name is None else f"{name}: {text(why, names)}")


def _read(event: dict[Any, Any], settings: Settings) -> tuple[Any, dict[Any, Any]]:
    """The id of an event, if it has one, and its features, as the trainer with these settings makes them."""
    features, reading = settings.features, settings.features.reading()
    x = event["x"] if isinstance(event.get("x"), dict) else event
    if not features.is_flat:
        return event.get("id"), x if reading.transform is None else {**reading.features(event)}
    fields = flat(x)
    given = {name: value for name, value in fields.items() if name not in (features.id, features.label)}
    return event.get("id", fields.get(features.id)), {**reading.made(given)}


def _events(file: Path | None) -> Iterator[Row]:
    """The events of a file of JSON lines, or of the standard input, each with its place."""
    if file is None and sys.stdin.isatty():
        print(f"type events, {_EXAMPLE} or their features, one a line; Ctrl-D ends them", file=sys.stderr)
    path, row, mistakes = file or Path("/dev/stdin"), None, Mistakes()
    for row in json_rows(path, mistakes):
        yield row
    mistakes.complain()
    if row is None:
        raise FileError(f"{path}: there is no event; write each on a line, such as {_EXAMPLE}")


def text(why: Explanation, names: Mapping[Hashable, str]) -> str:
    """An explanation in words, with the names of labels that have other ones in the configuration."""

    def said(label: Hashable) -> Hashable:
        return names.get(label, label)

    against = "" if why.rival is None else f" rather than {said(why.rival)}"
    lines = [f"{said(why.label)}{against}, by a margin of {why.margin:.3g}"]
    for what, members in (("for it", why.members), ("against it", why.against)):
        lines += [f"  {what}: event {m.id} ({said(m.label)}), {m.share:.1%}" for m in members]
    lines += [f"  {f.name}: slope {f.slope:+.3g}; turns the answer by {f.change:+.3g}" for f in why.features]
    return "\n".join(lines)
