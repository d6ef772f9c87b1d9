"""What the doctor says about the state folder and its checkpoints."""

import os
import shutil
import time
from pathlib import Path

from ...runtime.findings import OK, PROBLEM, WARNING, Finding, Findings
from ...runtime.text import plural
from ...settings.sections import ConfigError, Settings
from ...trainer.state.challengers import check_settings
from ...trainer.state.checkpoint import Checkpoint, CheckpointError, checkpoint_files, checkpoint_path, load_newest
from ...trainer.state.model_files import damaged_models, files_set_aside
from ...trainer.state.stored_state import partition_folders

_GIB = 1 << 30
_FEW_BYTES, _TOO_FEW_BYTES = _GIB, _GIB // 10  # free space below which the doctor warns, or reports a problem


def check_state(settings: Settings) -> Findings:
    folder = settings.daemon.state_dir
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(existing, os.W_OK):
        yield Finding.problem(f"{existing} is not writable", "choose another daemon.state_dir, or run as another user")
    free = shutil.disk_usage(existing).free
    level = OK if free > _FEW_BYTES else WARNING if free > _TOO_FEW_BYTES else PROBLEM
    yield Finding(level, f"{existing} has {free / _GIB:,.1f} GiB free", "free some space" if level != OK else "")
    folders = partition_folders(folder)
    if not folders:
        yield Finding.ok("no checkpoint was written yet")
    for path in folders:
        yield from _partition(path, settings)


def _partition(folder: Path, settings: Settings) -> Findings:
    try:
        if found := load_newest(folder):
            yield _checkpoint(folder, settings, *found)
            yield from _damages(folder, found[1])
        else:
            yield Finding.ok(f"{folder.name} has no checkpoint yet")
    except CheckpointError as error:
        yield Finding.problem(str(error))
    if aside := files_set_aside(folder):
        names = ", ".join(path.name for path in aside[:3])
        yield Finding.warning(
            f"{plural(len(aside), 'damaged model')} of keys in {folder.name} set aside; their keys began anew: {names}",
            f"see to the disk; remove {folder}/damaged-* when you have seen this",
        )


def _checkpoint(folder: Path, settings: Settings, number: tuple[int, int], checkpoint: Checkpoint) -> Finding:
    try:
        check_settings(checkpoint, settings, folder)
    except ConfigError as error:
        return Finding.problem(*error.problems[-2:])
    newest = checkpoint_files(folder)[0]
    age = time.time() - newest.stat().st_mtime
    text = f"checkpoint {number[1]} of {folder.name} is readable, {age:,.0f} seconds old"
    if newest != checkpoint_path(folder, number):
        return Finding.warning(
            f"{text}, but it is not the newest", f"{newest} is damaged; the next checkpoint replaces it"
        )
    return Finding.ok(text)


def _damages(folder: Path, checkpoint: Checkpoint) -> Findings:
    """What is wrong with the models of keys."""
    arrays = checkpoint.part("models")
    if arrays and (damages := list(damaged_models(folder, arrays))):
        yield Finding.warning(
            f"{plural(len(damages), 'model')} of keys in {folder.name} cannot be read. The first: {damages[0]}",
            "the next trainer takes an older checkpoint that has all models; without one, these keys begin anew",
        )
