"""The command ``streamsvm export``: a model as a file for LIBSVM."""

import argparse

from ..report.export import chosen, export_model, read_model
from ..runtime.folders import FileError, require_folder
from ..runtime.text import plural
from .shared.configuration import state_folder


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    served = read_model(state_folder(arguments.model), arguments.partition, arguments.key)
    try:
        written, legend = export_model(served.model, arguments.out, served.scaler, arguments.label)
    except ValueError as error:
        raise FileError(f"{arguments.model}: {error}") from None
    n_support = plural(chosen(served.model, arguments.label).n_support, "support vector")
    print(f"wrote {n_support} to {written}, and what the numbers mean to {legend}")
