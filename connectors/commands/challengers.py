"""The command ``streamsvm challengers``: how the models in the shadow do beside the one that serves."""

import argparse
from collections import defaultdict

from ..logs.reading import read_all
from ..logs.transport import Unavailable
from ..records.codec import readable
from ..records.promotions import Request, read_promotion
from ..report.challengers import ANSWERS_HEAD, HEAD, remarks, rows_of, rows_of_answers
from ..runtime.text import aligned
from ..settings.opening import open_once
from ..settings.sections import Settings
from ..trainer.state.challengers import read_answers, read_standings, serving_of
from ..trainer.state.stored_state import read_state
from .shared.configuration import state_of


def run(arguments: argparse.Namespace) -> None:
    settings, folder = state_of(arguments.run_of)
    asked = _asked(settings) if settings and settings.log.control else {}
    for item in read_state(folder):
        standings = read_standings(item.checkpoint.blobs)
        serving, offset = serving_of(item.checkpoint.blobs), item.checkpoint.offsets["events"]
        print(f"{item.name}: {serving!r} serves, at offset {offset:,}")
        if not standings:
            print(_none(settings))
        if rows := list(rows_of(standings)):
            print(aligned([HEAD, *rows]))
        if answers := list(rows_of_answers(read_answers(item.checkpoint.blobs))):
            print(aligned([ANSWERS_HEAD, *answers]))
        followed = item.checkpoint.offsets.get("control", 0)
        waiting = [_shown(request) for at, request in asked.get(item.number, ()) if at >= followed]
        for remark in [*remarks(standings, offset), *waiting]:
            print(remark)


def _none(settings: Settings | None) -> str:
    if settings is None or not settings.challenger:
        return "there is no [[challenger]]"
    names = ", ".join(own.name for own in settings.challenger)
    return f"no checkpoint has {names} yet: a challenger begins with the first event that comes after it was configured"


def _asked(settings: Settings) -> dict[int, list[tuple[int, Request]]]:
    """The requests on log.control with their offsets, by partition; what is wrong with the log is only told."""
    found = defaultdict(list)
    try:
        with open_once(settings) as log:
            for record, request in readable(read_all(log, settings.log.control), read_promotion):
                if isinstance(request, Request):
                    found[record.partition].append((record.offset, request))
    except Unavailable as error:
        print(f"requests that wait are not shown: {error}")
    return found


def _shown(request: Request) -> str:
    word = "rollback" if request.name is None else f"promote {request.name}"
    return f"The request '{word}' waits: the trainer follows it when it runs."
