"""The command ``streamsvm rebuild``: make the states that would be if the erased records had never come.

It works beside the trainers, and ends with a request to swap; each trainer then goes on with the rebuilt state.  An
interrupted rebuild goes on when it is called again.
"""

import argparse
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ...logs.transport import Transport
from ...records.erasures import Erasure, Swap
from ...records.published import LOADING_SECONDS
from ...runtime.folders import lock_folder, make_private, write_private
from ...runtime.process import Stop
from ...runtime.text import plural
from ...settings.opening import open_once
from ...settings.sections import ConfigError, Settings, refuse
from ...trainer.rerun import Asked, Rerun, Stage, erased_by, erased_offsets, requests
from ...trainer.state.challengers import check_settings
from ...trainer.state.stored_state import read_state
from ...trainer.swapping import read_note, rebuilt_folder
from ..shared.configuration import read_config
from ..shared.long_running import replaying, shown
from ..shared.trainers import ask, behind
from . import erase, receipts

_NEAR = 2000  # records that the trainer itself may read
_STAGES = "stages.json"
_OTHERWISE = "a rebuild would not end with the same model, because"
_NEEDS = {
    'log.questions = ""': f"{_OTHERWISE} questions depend on when annotators answered. The models have forgotten the "
    "records. For one that never saw them, `streamsvm replay` learns the labels of the log without asking",
    'daemon.start = "earliest"': f"{_OTHERWISE} it is not known where the trainer began",
    'daemon.begin = "empty"': f"{_OTHERWISE} the trainer began with another model",
}


def run(arguments: argparse.Namespace) -> int | None:
    settings = read_config(arguments, erase.NEEDS | _NEEDS)
    key = receipts.read_key(arguments.key)
    with open_once(settings) as log:
        numbers = log.start_offsets(settings.log.topic)
        asked = {number: requests(log, settings.log.erasures, number) for number in numbers}
        _refuse_beginnings(log, settings)
    app = _run_of(settings, asked, arguments.receipt)
    if app is None:
        print("nothing was erased since the last rebuild")
        return None
    folder = rebuilt_folder(settings, app)
    make_private(folder)
    with lock_folder(folder, "this rebuild"), replaying(settings) as stop:
        stages = _rebuilt(settings, folder, asked, stop)
        if stop():
            print("interrupted: call it again to go on")
            return 1
        _ask_to_swap(settings, app, asked, stages)
        if not _is_swapped(settings, folder, app, stages, stop):
            print("rebuilt; the trainers swap when they run. Then call this again for the receipt")
            return None
        receipt = {"run": app, **_receipt(settings, folder, asked, stages)}
    receipts.write(arguments.receipt, receipt, key)
    _remove_folders(settings)
    print(f"{plural(len(stages), 'partition')} rebuilt and swapped; wrote the receipt {arguments.receipt}")
    return None


def _refuse_beginnings(log: Transport, settings: Settings) -> None:
    problems = [
        f"{topic}-{number} begins at offset {start}: the records before it are gone, and without them a rebuild would "
        "not be the model that never saw the erased ones. The log must keep all that the model has learned from"
        for topic in settings.log.inputs
        for number, start in log.start_offsets(topic).items()
        if start
    ]
    refuse(problems)


def _erases(asked: Asked) -> bool:
    return any(isinstance(request, Erasure) for _, request in asked)


def _swaps(asked: Asked) -> dict[str, int]:
    """The offsets of the requests to swap, by the name of the run."""
    return {request.app: at for at, request in asked if isinstance(request, Swap)}


def _run_of(settings: Settings, asked: Mapping[int, Asked], receipt: Path) -> str | None:
    """The name of the run that goes on or begins; None if there is nothing to do."""
    if not any(map(_erases, asked.values())):
        return None
    last = [found[-1][1] for found in asked.values() if found]
    swaps = [request.app for request in last if isinstance(request, Swap)]
    for app in swaps if len(swaps) == len(last) else ():
        if rebuilt_folder(settings, app).is_dir():
            return app
        if receipt.exists() and receipts.load(receipt, None).get("run") == app:
            return None
    return f"rebuilt-{sum(map(len, asked.values()))}"


# --- rebuilding -------------------------------------------------------------------------------------------------------


def _rebuilt(settings: Settings, folder: Path, asked: dict[int, Asked], stop: Stop) -> dict[int, list[Stage]]:
    """Rebuild the state of each partition that has one; return the stages that were read."""
    stages: dict[int, list[Stage]] = {}
    places = _places(settings)
    elsewhere = [number for number, here in asked.items() if _erases(here) and number not in places]
    if elsewhere and settings.state.store != "dir":
        refuse(
            f"{settings.daemon.state_dir} has no checkpoint of partition {number}. With state.store = "
            f"{settings.state.store!r}, rebuild on the machine of the trainer, which takes the rebuilt state from a "
            "folder beside it; one trainer must have all partitions"
            for number in elsewhere
        )
    for number, place in places.items():
        if number in asked:
            rerun = Rerun(settings, number, folder, erased_by(settings, asked[number]))
            stages[number] = _catch_up(settings, rerun, number, place, stop)
    return stages


def _catch_up(settings: Settings, rerun: Rerun, number: int, place: Stage, stop: Stop) -> list[Stage]:
    """Read until few records are left to the trainer; the stages are written down before they are read."""
    stages, what = _read_stages(rerun.folder), f"rebuilding partition {number}"
    if read_note(rerun.folder.parent, number) is not None:  # the trainer has read on
        return stages
    for stage in stages:
        shown(rerun, stage, what, stop)
    while not stop() and (not stages or sum(place) - sum(stages[-1]) > _NEAR):
        stages.append(place)
        make_private(rerun.folder)
        write_private(rerun.folder / _STAGES, json.dumps(stages).encode())
        shown(rerun, place, what, stop)
        place = _places(settings)[number]
    return stages


def _read_stages(folder: Path) -> list[Stage]:
    path = folder / _STAGES
    return [Stage(*stage) for stage in json.loads(path.read_bytes())] if path.exists() else []


def _places(settings: Settings) -> dict[int, Stage]:
    """Where the trainers are, as their newest checkpoints say."""
    if not settings.daemon.state_dir.is_dir():
        return {}
    found = read_state(settings.daemon.state_dir)
    for item in found:
        check_settings(item.checkpoint, settings, settings.daemon.state_dir)
    return {item.number: Stage(item.checkpoint.offsets["events"], item.checkpoint.offsets["labels"]) for item in found}


# --- the swap ---------------------------------------------------------------------------------------------------------


def _ask_to_swap(settings: Settings, app: str, asked: dict[int, Asked], stages: dict[int, list[Stage]]) -> None:
    """Ask the trainers to swap, unless they were asked before."""
    with open_once(settings) as log:
        swap = list(Swap(app).to_values())
        ask(log, settings.log.erasures, {number: swap for number in stages if app not in _swaps(asked[number])})


def _is_swapped(settings: Settings, folder: Path, app: str, stages: dict[int, list[Stage]], stop: Stop) -> bool:
    """Wait until all trainers have swapped, durably; return whether they have."""
    with open_once(settings) as log:
        ends = {number: _swaps(requests(log, settings.log.erasures, number))[app] + 1 for number in stages}
    if behind(settings, "erasures", ends, seconds=LOADING_SECONDS, stop=stop):
        return False
    missing = [number for number in stages if read_note(folder, number) is None]
    if missing:
        shutil.rmtree(folder)
        why = "its log says why; call this again to try again"
        raise ConfigError(*[f"the trainer of partition {number} could not swap: {why}" for number in missing])
    return True


def _receipt(
    settings: Settings, folder: Path, asked: dict[int, Asked], stages: dict[int, list[Stage]]
) -> dict[str, Any]:
    salted = receipts.Salted()
    partitions = {}
    with open_once(settings) as log:
        for number, read in stages.items():
            note = read_note(folder, number)
            assert note is not None
            is_erased = erased_by(settings, asked[number])
            partitions[str(number)] = {
                "stages": read,
                "place": note["place"],
                "served": note["served"],
                "erased": _hashes(settings, salted, number, asked[number], Stage(*note["place"])),
                "log": receipts.log_digests(log, settings, number, Stage(*note["place"]), is_erased),
                "before": note["before"],
                "after": note["after"],
            }
    return {
        "format": receipts.FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": receipts.machine(),
        "settings": receipts.settings_of(settings),
        "salt": salted.salt.hex(),
        "partitions": partitions,
    }


def _hashes(settings: Settings, salted: receipts.Salted, number: int, asked: Asked, place: Stage) -> list[str]:
    """The positions of the erased records before a place, hashed."""
    found = zip(erased_offsets(settings, asked).items(), place, strict=False)
    return sorted(salted.hashed(topic, number, at) for (topic, erased), end in found for at in erased if at < end)


def _remove_folders(settings: Settings) -> None:
    """Remove what was rebuilt, which holds examples: the trainers have taken it."""
    state = settings.daemon.state_dir
    for path in state.parent.glob(f"{state.name}-rebuilt-*"):
        shutil.rmtree(path)
