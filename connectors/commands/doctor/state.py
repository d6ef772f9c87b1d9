"""What the doctor says about the state folder and its checkpoints."""

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path

from streamsvm.estimators.learner.snapshots import by_prefix

from ...runtime.findings import OK, PROBLEM, WARNING, Finding, Findings
from ...runtime.text import plural
from ...settings.sections import ConfigError, Settings
from ...trainer.state.challengers import check_settings
from ...trainer.state.checkpoint import CheckpointError, checkpoint_files, load_newest
from ...trainer.state.model_files import damaged_models, files_set_aside

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
    partitions = sorted(folder.glob("p[0-9]*"), key=lambda path: (len(path.name), path.name))
    if not partitions:
        yield Finding.ok("no checkpoint was written yet")
    for path in partitions:
        yield _checkpoint(path, settings)
        yield from _models(path)


def _models(folder: Path) -> Findings:
    """What is wrong with the models of keys of the newest checkpoint, and which were set aside."""
    with suppress(CheckpointError):
        found = load_newest(folder)
        arrays = by_prefix(found[1].arrays).get("models") if found else None
        damages = list(damaged_models(folder, arrays)) if arrays else []
        if damages:
            yield Finding.warning(
                f"{plural(len(damages), 'model')} of keys in {folder.name} cannot be read. The first: {damages[0]}",
                "the next trainer takes an older checkpoint that has all models; without one, these keys begin anew",
            )
    if aside := files_set_aside(folder):
        names = ", ".join(path.name for path in aside[:3])
        yield Finding.warning(
            f"{plural(len(aside), 'damaged model')} of keys in {folder.name} set aside; their keys began anew: {names}",
            f"see to the disk; remove {folder}/damaged-* when you have seen this",
        )


def _checkpoint(folder: Path, settings: Settings) -> Finding:
    try:
        found = load_newest(folder)
        if found is None:
            return Finding.ok(f"{folder.name} has no checkpoint yet")
        (epoch, sequence), checkpoint = found
        check_settings(checkpoint, settings, folder)
    except CheckpointError as error:
        return Finding.problem(str(error))
    except ConfigError as error:
        return Finding.problem(*error.problems[-2:])
    newest = checkpoint_files(folder)[0]
    age = time.time() - newest.stat().st_mtime
    text = f"checkpoint {sequence} of {folder.name} is readable, {age:,.0f} seconds old"
    if newest.name != f"checkpoint-{epoch:06d}-{sequence:010d}.ssvm":
        return Finding.warning(
            f"{text}, but it is not the newest", f"{newest} is damaged; the next checkpoint replaces it"
        )
    return Finding.ok(text)
