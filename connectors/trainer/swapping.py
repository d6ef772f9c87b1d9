"""The swap: a state that was rebuilt without erased records takes the place of the one that forgot them.

A `Rerun` beside the trainer has rebuilt the state up to a place that the trainer has passed.  The trainer itself reads
the rest, up to its own place, and goes on from there: no record is predicted twice, and none is left out.
"""

import json
import logging
from pathlib import Path
from typing import Any

from streamsvm import SnapshotError

from ..logs.transport import OffsetOutOfRange
from ..records.erasures import Swap
from ..runtime.folders import write_private
from ..runtime.process import Stop
from ..settings.sections import ConfigError, Settings
from .partition import Partition
from .rerun import Rerun, Stage, erased_by, requests_of
from .state.checkpoint import CheckpointError
from .state.digests import digests
from .state.state import State

logger = logging.getLogger(__name__)

_NOTE = "swap.json"


def rebuilt_folder(settings: Settings, app: str) -> Path:
    """The folder in which a run rebuilds the states of all partitions."""
    return settings.daemon.state_dir.with_name(f"{settings.daemon.state_dir.name}-{app}")


def caught_up(partition: Partition, swap: Swap, settings: Settings, stop: Stop) -> State | None:
    """The rebuilt state at the place of a partition; None, with the reason in the log, if there is none."""
    state, number = partition.state, partition.number
    assert state is not None
    folder = rebuilt_folder(settings, swap.app)
    if not (folder / f"p{number}").is_dir():
        logger.error(
            "partition %d keeps its state: %s does not have a rebuilt one; rebuild on this machine", number, folder
        )
        return None
    is_erased = erased_by(settings, requests_of(settings, number, state.erased.offset))
    rerun = Rerun(settings, number, folder, is_erased)
    place = Stage(state.offset, state.labels_offset)
    try:
        rebuilt = rerun.run(place, stop)
    except (CheckpointError, ConfigError, OffsetOutOfRange, SnapshotError) as error:
        logger.error("partition %d keeps its state, the rebuilt one cannot be used: %s", number, error)
        return None
    if stop():
        return None  # without an error: the next run goes on
    if rebuilt is None or (rebuilt.offset, rebuilt.labels_offset) != place:
        logger.error(
            "partition %d keeps its state: the rebuilt one did not come to its place, offset %d of the events and %d "
            "of the labels",
            *(number, *place),
        )
        return None
    if rebuilt.challengers.serving != state.challengers.serving:
        logger.error("partition %d keeps its state: in the rebuilt one, %r serves", number, rebuilt.challengers.serving)
        return None
    served = [[term.name, term.offset] for term in rebuilt.challengers.terms]
    note = {"place": place, "served": served, "before": digests(state), "after": digests(rebuilt)}
    write_private(rerun.folder / _NOTE, json.dumps(note).encode())
    logger.info("partition %d goes on with the rebuilt state at offset %d", number, state.offset)
    return rebuilt


def read_note(folder: Path, number: int) -> dict[str, Any] | None:
    """What a trainer has noted of its swap: its place, and the digests before and after; None if it has not swapped."""
    path = folder / f"p{number}" / _NOTE
    return json.loads(path.read_bytes()) if path.exists() else None
