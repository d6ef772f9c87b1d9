"""Requests of commands to the trainers, and whether the trainers have followed them."""

import time
from collections.abc import Iterable, Mapping

from ...logs.transport import Transport
from ...runtime.folders import AlreadyInUse, lock_folder
from ...runtime.process import Stop
from ...runtime.text import plural
from ...settings.opening import backend_of
from ...settings.sections import Settings
from ...trainer.state.stored_state import readable_state
from .log_access import flush

_LOOK_SECONDS = 0.1


def ask(log: Transport, topic: str, requests: Mapping[int, Iterable[bytes]]) -> dict[int, int]:
    """Write requests to the trainers, given by partition, and make them durable; return the topic's end offsets."""
    for number, values in requests.items():
        for value in values:
            log.produce(topic, value, partition=number)
    flush(log)
    return log.end_offsets(topic)


def behind(
    settings: Settings, requests: str, ends: Mapping[int, int], *, seconds: float = 10.0, stop: Stop = lambda: False
) -> list[int]:
    """Wait for trainers that are running to follow requests; return the partitions where they have not.

    Parameters
    ----------
    settings
        The trainers' configuration.
    requests
        Name of the requests' topic among the offsets of a checkpoint, such as "erasures".
    ends
        Offset behind the last request, by partition.
    seconds
        How long to wait.
    stop
        Whether to stop waiting.
    """
    until = time.monotonic() + seconds
    while waiting := _behind(settings, requests, ends):
        if stop() or time.monotonic() > until or settings.state.store != "dir" or _is_idle(settings):
            break
        time.sleep(_LOOK_SECONDS)
    return waiting


def tell_behind(waiting: list[int]) -> None:
    """Say of how many partitions the trainers follow a request later, if there are any."""
    if waiting:
        print(f"the trainer of {plural(len(waiting), 'partition')} follows the request when it runs")


def _behind(settings: Settings, requests: str, ends: Mapping[int, int]) -> list[int]:
    stored = readable_state(settings.daemon.state_dir)
    followed = {item.number: item.checkpoint.offsets.get(requests, 0) for item in stored}
    return [number for number, end in ends.items() if followed.get(number, 0) < end]


def _is_idle(settings: Settings) -> bool:
    """Whether certainly no trainer works on this state folder now."""
    if backend_of(settings).has_groups:
        return False
    if not settings.daemon.state_dir.is_dir():
        return True
    try:
        lock_folder(settings.daemon.state_dir, "").close()
    except AlreadyInUse:
        return False
    return True
