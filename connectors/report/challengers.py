"""How the challengers of a partition do, from its checkpoint: a table for a terminal, and a panel for the page."""

from collections.abc import Iterator

from ..runtime.text import plural
from ..trainer.state.challengers import Standing, read_answers, read_standings, serving_of, why_not
from ..trainer.state.quality.arms import Arm
from ..trainer.state.quality.losses import LOG_LOSS
from ..trainer.state.stored_state import Stored
from .panel import Panel

HEAD = ("challenger", "labels", "metric", "serving", "challenger's", "gain", "from", "to", "it is")

ANSWERS_HEAD = ("answered by", "events", "labels", "metric", "mean", "from", "to")

_TEXT = (
    "Each label counts once, with the predictions that both models made before they learned it. A gain is positive "
    "where the challenger is better. The bounds of the gain hold at all times together, so one may look every day and "
    "promote when the lower bound is above 0."
)
_SPLIT_TEXT = (
    "Each model on the events that it has answered. Each label counts once, with the prediction that was given. The "
    "bounds hold at all times together."
)


def rows_of(standings: list[Standing]) -> Iterator[tuple[str, ...]]:
    """A row for each metric of each challenger."""
    for challenger in standings:
        for difference in challenger.differences:
            numbers = _shown(difference.metric, difference.champion, difference.challenger, *difference.gain)
            yield (challenger.name, f"{challenger.n:,}", difference.metric, *numbers, difference.says)


def rows_of_answers(arms: list[Arm]) -> Iterator[tuple[str, ...]]:
    """A row for each metric of each model that has answered a share of the events."""
    for arm in arms:
        for metric, mean in arm.metrics.items() if arm.n_labels else ():
            yield (arm.name, f"{arm.n_events:,}", f"{arm.n_labels:,}", metric, *_shown(metric, *mean))


def _shown(metric: str, *values: float) -> list[str]:
    """Values of a metric: shares, unless it has another unit."""
    return [f"{value:.4f}" if metric == LOG_LOSS else f"{value:.2%}" for value in values]


def remarks(standings: list[Standing], offset: int) -> list[str]:
    """What is to say of challengers beside the table, when the model that serves is at this offset."""
    idle = {each.name: why for each in standings if (why := why_not(each, offset))}
    waiting = [each.name for each in standings if not each.n and each.name not in idle]
    found = [f"{name} {why}." for name, why in idle.items()]
    return [*found, *([f"No label yet for {', '.join(waiting)}."] if waiting else [])]


def challengers_panels(stored: Stored) -> list[Panel]:
    """A panel with the comparison, and one with the answers of each model; none without challengers."""
    standings = read_standings(stored.checkpoint.blobs)
    if not standings:
        return []
    n_active = sum(not each.dropped for each in standings)
    offset = stored.checkpoint.offsets["events"]
    facts = [("serving", serving_of(stored.checkpoint.blobs)), ("in the shadow", plural(n_active, "model"))]
    rows = list(rows_of(standings))
    table = [HEAD, *rows] if rows else ()
    found = [Panel("challengers", "Challengers", [_TEXT, *remarks(standings, offset)], table=table, facts=facts)]
    if answers := list(rows_of_answers(read_answers(stored.checkpoint.blobs))):
        found.append(Panel("answers", "Answers by model", [_SPLIT_TEXT], table=[ANSWERS_HEAD, *answers]))
    return found
