"""The commands ``streamsvm promote`` and ``streamsvm rollback``: another model serves."""

import argparse
from collections.abc import Mapping

from ..logs.transport import TopicMismatch
from ..records.promotions import Request, write_promotion
from ..settings import topics
from ..settings.opening import open_once
from ..settings.sections import ConfigError, Settings, refuse
from ..trainer.state.challengers import Standing, read_standings, read_terms, serving_of, why_not
from ..trainer.state.stored_state import readable_state
from .shared.configuration import read_config
from .shared.trainers import ask, behind, tell_behind

_NEEDS = {
    "[[challenger]]": "there is no [[challenger]] that could be promoted",
    "log.control": 'there is no topic of promotions. Set log.control to its name, such as "control", and restart the '
    "trainers",
}


def run(arguments: argparse.Namespace) -> None:
    name = arguments.name  # None: roll back
    nothing = {} if name else {"[[challenger]]": "there is no [[challenger]], so there is no model to go back to"}
    settings = read_config(arguments, _NEEDS | nothing, with_model=False)
    if name is not None:
        _check(settings, name)
    topics.create(settings, names=settings.log.control_topics)
    with open_once(settings) as log:
        numbers = sorted(log.start_offsets(settings.log.topic))
        if not numbers:
            raise TopicMismatch(f"there is no topic {settings.log.topic!r}")
        request = [write_promotion(Request(name))]
        ends = ask(log, settings.log.control, dict.fromkeys(numbers, request))
    _tell(settings, name, {number: ends[number] for number in numbers})


def _check(settings: Settings, name: str) -> None:
    """Raise ConfigError if a model cannot serve."""
    if name not in settings.models():
        raise ConfigError(f"{name!r} is no challenger; there are {', '.join(map(repr, settings.models()))}")
    problems = []
    for item in readable_state(settings.daemon.state_dir):
        blobs = item.checkpoint.blobs
        standing = {each.name: each for each in read_standings(blobs)}.get(name)
        if name != serving_of(blobs) and (why := _why_not(standing, item.checkpoint.offsets["events"])):
            problems.append(f"{item.name}: {name!r} {why}")
    refuse(problems)


def _why_not(standing: Standing | None, offset: int) -> str:
    """Why a challenger, or one that no checkpoint has, cannot serve; empty if it can."""
    if standing is None:
        return "has learned nothing yet: it begins with the next event; promote it later"
    why = why_not(standing, offset)
    return f"{why}; promote it later" if why and not standing.dropped else why


def _tell(settings: Settings, name: str | None, ends: Mapping[int, int]) -> None:
    """Wait until the trainers have followed the requests before these offsets, for a moment, and say what they did."""
    waiting = behind(settings, "control", ends)
    tell_behind(waiting)
    for item in readable_state(settings.daemon.state_dir):
        blobs = item.checkpoint.blobs
        if item.number in ends and item.number not in waiting:
            serving = serving_of(blobs)
            refusal = "" if name in (None, serving) else f"; {name!r} could not, and the trainer's log says why"
            print(f"{item.name}: {serving!r} serves, from offset {read_terms(blobs)[-1].offset:,} on{refusal}")
