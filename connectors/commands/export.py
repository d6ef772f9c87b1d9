"""The command ``streamsvm export``: a model as a file for other programs."""

import argparse

from streamsvm.core.saving import snapshot
from streamsvm.export import to_c, to_java, to_javascript, to_json, to_onnx
from streamsvm.export.fields import require_numbers

from ..records.models import ServedModel
from ..report.export import chosen, export_model, read_model
from ..runtime.folders import FileError, require_folder
from ..runtime.text import plural
from .shared.configuration import state_folder


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    served = read_model(state_folder(arguments.model), arguments.partition, arguments.key)
    try:
        if arguments.to == "libsvm":
            require_numbers(served.records, "LIBSVM")
            _write_libsvm(served, arguments)
        else:
            snapshot.write_atomic(arguments.out, _written(served, arguments))
            print(f"wrote {plural(served.model.n_support, 'support vector')} to {arguments.out} as {arguments.to}")
    except (ImportError, TypeError, ValueError) as error:
        raise FileError(f"{arguments.model}: {error}") from None


def _write_libsvm(served: ServedModel, arguments: argparse.Namespace) -> None:
    written, legend = export_model(served.model, arguments.out, served.scaler, arguments.label)
    n_support = plural(chosen(served.model, arguments.label).n_support, "support vector")
    without = "" if served.decider is None else "; the guarantee is left out: LIBSVM has none"
    print(f"wrote {n_support} to {written}, and what the numbers mean to {legend}{without}")


def _written(served: ServedModel, arguments: argparse.Namespace) -> bytes:
    """The file for every target but LIBSVM."""
    if arguments.label is not None:
        raise ValueError("--label goes with --to libsvm only; other files have the models of all classes")
    model = served.whole()
    if arguments.to == "onnx":
        return to_onnx(model, arguments.double)
    name = arguments.name or arguments.out.stem
    targets = {
        "c": lambda: to_c(model, name),
        "java": lambda: to_java(model, name),
        "js": lambda: to_javascript(model),
        "json": lambda: to_json(model),
    }
    return targets[arguments.to]().encode()
