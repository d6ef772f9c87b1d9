"""The command ``streamsvm export``: a model as a file for other programs."""

import argparse

from streamsvm.core.saving import snapshot
from streamsvm.export import to_c, to_java, to_javascript, to_json, to_libsvm, to_onnx

from ..records.models import Trained
from ..runtime.folders import FileError, require_folder
from ..runtime.text import plural
from .shared.configuration import state_of
from .shared.saved_model import read_model


def run(arguments: argparse.Namespace) -> None:
    require_folder(arguments.out)
    _, path = state_of(arguments.model)
    served = read_model(path, arguments.partition, arguments.key)
    try:
        if arguments.to == "libsvm":
            _write_libsvm(served, arguments)
        else:
            snapshot.write_atomic(arguments.out, _written(served, arguments))
            print(f"wrote {plural(served.model.n_support, 'support vector')} to {arguments.out} as {arguments.to}")
    except (ImportError, TypeError, ValueError) as error:
        raise FileError(f"{arguments.model}: {error}") from None


def _write_libsvm(served: Trained, arguments: argparse.Namespace) -> None:
    text, meaning = to_libsvm(served.whole(), arguments.label)
    legend = arguments.out.with_name(f"{arguments.out.name}.json")
    snapshot.write_atomic(legend, meaning.encode())
    snapshot.write_atomic(arguments.out, text.encode("ascii"))
    n_support = plural(text.partition("\nSV\n")[2].count("\n"), "support vector")
    without = "" if served.decider is None else "; the guarantee is left out: LIBSVM has none"
    print(f"wrote {n_support} to {arguments.out}, and what the numbers mean to {legend}{without}")


def _written(served: Trained, arguments: argparse.Namespace) -> bytes:
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
