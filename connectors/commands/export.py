"""The command ``streamsvm export``: a model as a file for LIBSVM."""

import argparse
from pathlib import Path

from ..report.export import chosen, export_model, read_model
from ..runtime.folders import FileError, require_folder
from ..runtime.text import plural
from .shared.configuration import state_folder
from .shared.options import offset


def add_parser(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write a model in LIBSVM's text format. A second file, FILE.json, says the number and the scale of each "
        "feature, and how to compute probabilities. The trainer of a state folder may be running: its newest "
        "checkpoint is exported."
    )
    command.add_argument(
        "model",
        type=Path,
        metavar="MODEL|DIR|CONFIG.toml",
        help="a file that save() wrote, or the trainer's state folder, or its configuration",
    )
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file to write")
    command.add_argument(
        "--partition", type=offset, metavar="N", help="with a state folder: the partition whose model is exported"
    )
    command.add_argument(
        "--key", metavar="KEY", help='with a state folder and daemon.per = "key": the key whose model is exported'
    )
    command.add_argument(
        "--label", metavar="CLASS", help="with more than two classes: the class whose model is exported"
    )
    command.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    served = read_model(state_folder(arguments.model), arguments.partition, arguments.key)
    try:
        written, legend = export_model(served.model, arguments.out, served.scaler, arguments.label)
    except ValueError as error:
        raise FileError(f"{arguments.model}: {error}") from None
    n_support = plural(chosen(served.model, arguments.label).n_support, "support vector")
    print(f"wrote {n_support} to {written}, and what the numbers mean to {legend}")
