"""The command ``streamsvm merge``: one model from several that learned parts of a stream."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import streamsvm

from ..report.export import read_model
from ..runtime.folders import FileError, require_folder
from ..runtime.text import plural
from ..settings.sections import ConfigError
from ..trainer.state.models import SingleModel
from ..trainer.state.stored import read_state
from .shared.configuration import state_folder


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Make one model of several that learned parts of a stream side by side, such as those of the partitions of a "
        "trainer, and write it to a file. The models must have the same class and the same parameters. The trainer of "
        "a state folder may be running: its newest checkpoints are read."
    )
    command.add_argument(
        "models",
        type=Path,
        nargs="+",
        metavar="MODEL|DIR|CONFIG.toml",
        help="files that save() wrote, or a trainer's state folder, or its configuration, with the models of all its "
        "partitions",
    )
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")
    command.add_argument(
        "--renumber",
        action="store_true",
        help="give the examples new ids; needed if two models use one for two examples",
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    models = [model for path in arguments.models for model in _models_of(state_folder(path))]
    try:
        merged = streamsvm.merge(models, renumber=arguments.renumber)
    except (ValueError, TypeError) as error:
        hint = str(error).replace("renumber=True", "--renumber")
        raise FileError(hint) from None
    merged.save(arguments.out)
    n_models, n_support = plural(len(models), "model"), plural(merged.n_support, "support vector")
    print(f"merged {n_models} into {n_support}, written to {arguments.out}")


def _models_of(path: Path) -> Iterator[Any]:
    """The model of a file, or those of all partitions of a state folder."""
    if not path.is_dir():
        yield read_model(path).model
        return
    for stored in read_state(path):
        if not isinstance(stored.models, SingleModel):
            raise ConfigError([f"{path} has a model for each record key; models of different keys are not merged"])
        if stored.scaler is not None:
            reason = "only models that scale their features themselves can be merged"
            raise ConfigError([f"{path}: partition {stored.number} has a scaler of its own; {reason}"])
        yield stored.models.model
