"""The part that ``streamsvm crossval`` and ``streamsvm search`` share: options, examples, folds, tables."""

import argparse
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamsvm import LASVM
from streamsvm.core.kernels import KERNELS
from streamsvm.validation import folds
from streamsvm.validation.compilation import compile_ahead
from streamsvm.validation.scores import BY_NAME

from ...records.columns import Columns
from ...runtime.process import killable
from ...runtime.text import plural
from ...settings.sections import ConfigError
from ..shared import options
from ..shared.tables import require_table
from .training_set import TrainingSet, advice, read_training_set

FOLDS = ["stratified", "v-fold", "grouped", "hold-out", "leave-one-out", "leave-p-out"]
METRICS = ", ".join(BY_NAME)

_FOLD_OPTIONS = {  # the kinds of folds that each option belongs to
    "k": ("stratified", "v-fold", "grouped"),
    "group": ("grouped",),
    "test": ("hold-out",),
    "p": ("leave-p-out",),
    "repeat": ("stratified", "v-fold", "hold-out"),
}


# --- options ----------------------------------------------------------------------------------------------------------


def add_examples_and_folds(command: argparse.ArgumentParser, default_k: int) -> None:
    """Add the file and how to read it, the kernel, and the folds, of which `default_k` is the default number."""
    _add_examples(command)
    _add_kernel(command)
    _add_folds(command, default_k)
    command.set_defaults(default_k=default_k)


def _add_examples(command: argparse.ArgumentParser) -> None:
    options.add_file(command, "CSV with a header, JSON lines, LIBSVM format, or npz; missing features are 0")
    command.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="COLUMN",
        help="use a column that numbers the rows as a feature; without this option it is refused",
    )
    command.add_argument(
        "--scale",
        choices=["none", "standard", "minmax"],
        default="none",
        help="standard: scale to mean 0 and deviation 1; minmax: to 0..1. The statistics are those of all examples, "
        "tested ones included, because all folds share one kernel (default: none)",
    )


def _having(parameter: str) -> str:
    """The kernels that have this parameter."""
    return " and ".join(name for name, about in KERNELS.items() if parameter in about.parameters)


def _add_kernel(command: argparse.ArgumentParser) -> None:
    formulas = "; ".join(f"{name}: {about.formula}" for name, about in KERNELS.items())
    kernel = command.add_argument_group("kernel and solver")
    kernel.add_argument("--kernel", choices=KERNELS, default="rbf", help=f"{formulas} (default: rbf)")
    kernel.add_argument(
        "--degree", type=options.count, default=3, metavar="N", help=f"degree of {_having('degree')} (default: 3)"
    )
    kernel.add_argument(
        "--coef0", type=options.number, default=0.0, metavar="X", help=f"constant of {_having('coef0')} (default: 0)"
    )
    kernel.add_argument("--tol", type=options.positive, default=1e-3, help="stopping tolerance (default: 1e-3)")
    kernel.add_argument(
        "--jobs",
        type=options.jobs,
        metavar="N",
        help="number of processes, each with its own cache; -1: one per core (default: this process; the values of "
        "gamma of a grid share its cores)",
    )
    kernel.add_argument(
        "--cache-mb",
        type=options.megabytes,
        default=256.0,
        metavar="MB",
        help="memory for kernel values (default: 256)",
    )
    options.add_device(command, "where to compute the kernel values of svm")


def _add_folds(command: argparse.ArgumentParser, k: int) -> None:
    folds = command.add_argument_group("folds")
    folds.add_argument(
        "--folds",
        type=_not_a_number,
        choices=FOLDS,
        help="kind of folds (default: stratified, with equal shares of both classes)",
    )
    folds.add_argument("-k", type=options.count, metavar="N", help=f"number of folds (default: {k})")
    folds.add_argument(
        "--group",
        metavar="COLUMN",
        help="column of the group; all examples of a group are in the same fold (--folds grouped)",
    )
    folds.add_argument(
        "--test",
        type=options.test_size,
        metavar="SHARE|N",
        help="hold-out: share or number of the tested examples (default: 0.25)",
    )
    folds.add_argument(
        "-p", type=options.count, metavar="N", help="leave-p-out: number of examples to leave out (default: 2)"
    )
    folds.add_argument(
        "--repeat", type=options.count, metavar="N", help="repeat with N different divisions (default: 1)"
    )
    folds.add_argument("--seed", type=options.offset, default=0, metavar="N", help="seed of the division (default: 0)")


def _not_a_number(text: str) -> str:
    if text.isdecimal():
        raise argparse.ArgumentTypeError(
            f"{text!r} must be a kind of folds ({', '.join(FOLDS)}); their number is -k {text}"
        )
    return text


def check(arguments: argparse.Namespace, metrics: Iterable[str]) -> None:
    """Raise ConfigError if folds, metrics or the output are wrong, before the examples are read."""
    options.check_file(arguments)
    _kind_of_folds(arguments)
    for name in metrics:
        if name not in BY_NAME:
            raise ConfigError([f"--metric: {name!r} is unknown; use one of {METRICS}"])
    require_table(arguments.out)


# --- examples ---------------------------------------------------------------------------------------------------------


def prepare() -> None:
    """Compile the engine, where Ctrl-C ends it."""
    with killable(), plain_warnings():
        compile_ahead(LASVM)


def read_with_folds(arguments: argparse.Namespace) -> tuple[TrainingSet, folds.Folds]:
    """Read the examples of the file, and divide them; print a summary, and warn of unwise scaling."""
    main = (arguments.label, arguments.id, arguments.positive, arguments.group)
    columns = Columns(*main, rest=arguments.rest)
    examples = read_training_set(arguments.file, arguments.format, columns, arguments.scale, arguments.feature)
    n, n_features = examples.X.shape
    scaled = "" if arguments.scale == "none" else f"; scaled ({arguments.scale}) by the statistics of all of them"
    print(f"{plural(n, 'example')}, {np.count_nonzero(examples.y)} positive, {plural(n_features, 'feature')}{scaled}")
    unwise = advice(examples, arguments.scale)
    if unwise:
        _say(unwise)
    with arguments_refused():
        return examples, _folds_of(arguments, examples)


def _say(text: str) -> None:
    print(f"streamsvm: {text}", file=sys.stderr)


@contextmanager
def arguments_refused() -> Iterator[None]:
    """Turn the engine's errors into ConfigError, and its warnings into plain lines."""
    try:
        with plain_warnings():
            yield
    except (ValueError, ImportError) as error:
        raise ConfigError([str(error)]) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Print each warning as one line on standard error, without its place in the source."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        yield
    for text in dict.fromkeys(str(item.message) for item in caught):
        _say(text)


def number(value: float) -> str:
    """A parameter as text."""
    return f"{value:.12g}"


def score(value: float) -> str:
    """The value of a metric as text."""
    return "-" if math.isnan(value) else f"{value:.4f}"


# --- folds ------------------------------------------------------------------------------------------------------------


def _kind_of_folds(arguments: argparse.Namespace) -> str:
    """The kind of folds; raise ConfigError if an option belongs to another kind."""
    kind = arguments.folds or ("stratified" if arguments.group is None else "grouped")
    problems = [
        f"{'--' if len(name) > 1 else '-'}{name} goes with --folds {' or '.join(homes)} only"
        for name, homes in _FOLD_OPTIONS.items()
        if getattr(arguments, name) is not None and kind not in homes
    ]
    if kind == "grouped" and arguments.group is None:
        problems.append("--folds grouped needs --group, the column or field that holds the group of an example")
    if problems:
        raise ConfigError(problems)
    return kind


def _folds_of(arguments: argparse.Namespace, examples: TrainingSet) -> folds.Folds:
    """The folds that the arguments describe."""
    kind, n, y = _kind_of_folds(arguments), len(examples.y), examples.y
    defaults: dict[str, Any] = {"k": arguments.default_k, "test": 0.25, "p": 2, "repeat": 1}
    given = {name: getattr(arguments, name) for name in defaults}
    k, test, p, repeat = (default if given[name] is None else given[name] for name, default in defaults.items())
    if kind == "grouped":
        return folds.grouped(examples.groups, k)
    if kind == "leave-one-out":
        return folds.leave_one_out(n)
    if kind == "leave-p-out":
        return folds.leave_p_out(n, p)
    make: Callable[[int], folds.Folds] = {
        "stratified": lambda seed: folds.stratified(y, k, seed=seed),
        "v-fold": lambda seed: folds.v_fold(n, k, seed=seed),
        "hold-out": lambda seed: folds.hold_out(n, test, y=y, seed=seed),
    }[kind]
    return folds.repeated(make, repeat, seed=arguments.seed)
