"""The command ``streamsvm merge``: one model from several that learned parts of a stream."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import streamsvm

from ..runtime.folders import FileError, require_folder
from ..runtime.text import plural
from ..settings.sections import ConfigError
from ..trainer.state.stored_state import read_state
from .shared.configuration import state_of
from .shared.saved_model import read_model


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    models = [model for path in arguments.models for model in _models_of(state_of(path)[1])]
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
        if stored.models.single is None:
            raise ConfigError(f"{path} has a model for each record key; models of different keys are not merged")
        if stored.scaler is not None:
            reason = "only models that scale their features themselves can be merged"
            raise ConfigError(f"{path}: partition {stored.number} has a scaler of its own; {reason}")
        if stored.models.single.records is not None:
            raise ConfigError(
                f"{path}: partition {stored.number} has a model of raw events; such models are not merged"
            )
        yield stored.models.single.model
