"""What the commands ``streamsvm crossval`` and ``streamsvm search`` share."""

import argparse
import csv
import io
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import LASVM
from streamsvm.core.snapshot import write_atomic
from streamsvm.validation import folds
from streamsvm.validation.ahead import compile_ahead
from streamsvm.validation.scores import BY_NAME

from ..records.files import Columns
from ..runtime.folders import require_folder
from ..settings.sections import ConfigError
from ..settings.topics import plural
from ..trainer.trainer import killable
from .training_set import TrainingSet, advice, read_training_set

_FOLD_OPTIONS = {  # and the kinds of folds that have them
    "k": ("stratified", "v-fold", "grouped"),
    "group": ("grouped",),
    "test": ("hold-out",),
    "p": ("leave-p-out",),
    "repeat": ("stratified", "v-fold", "hold-out"),
}


def require_metric(name: str) -> None:
    """Raise ConfigError if there is no metric of this name."""
    if name not in BY_NAME:
        raise ConfigError([f"--metric: {name!r} is unknown; use one of {', '.join(BY_NAME)}"])


def prepare() -> None:
    """Have the engine compiled; say so if somebody is looking."""
    if sys.stderr.isatty():
        print("preparing the engine, which takes minutes if it has to be compiled ...", file=sys.stderr)
    with killable(), plain_warnings():
        compile_ahead(LASVM)


def read(arguments: argparse.Namespace, group: str | None = None) -> TrainingSet:
    """The examples of the file that the arguments name; print what they are, and warn of what is unwise."""
    columns = Columns(arguments.label, arguments.id, arguments.positive, group)
    examples = read_training_set(arguments.file, arguments.format, columns, arguments.scale, arguments.feature)
    n, n_features = examples.X.shape
    scaled = "" if arguments.scale == "none" else f"; scaled ({arguments.scale}) by the statistics of all of them"
    print(f"{plural(n, 'example')}, {np.count_nonzero(examples.y)} positive, {plural(n_features, 'feature')}{scaled}")
    unwise = advice(examples, arguments.scale)
    if unwise:
        _say(unwise)
    return examples


def _say(text: str) -> None:
    print(f"streamsvm: {text}", file=sys.stderr)


@contextmanager
def arguments_refused() -> Iterator[None]:
    """What the engine refuses, as a wrong configuration; its warnings as lines for people."""
    try:
        with plain_warnings():
            yield
    except (ValueError, ImportError) as error:
        raise ConfigError([str(error)]) from error


@contextmanager
def plain_warnings() -> Iterator[None]:
    """Warnings as one line each on standard error, without their place in the source."""
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


def kind_of_folds(arguments: argparse.Namespace) -> str:
    """The kind of folds; ConfigError if an option belongs to another kind."""
    kind = arguments.folds or ("stratified" if arguments.group is None else "grouped")
    problems = [
        f"{'--' if len(name) > 1 else '-'}{name} goes with --folds {' or '.join(homes)} only"
        for name, homes in _FOLD_OPTIONS.items()
        if getattr(arguments, name) is not None and kind not in homes
    ]
    if kind == "grouped" and arguments.group is None:
        problems.append("--folds grouped needs --group, the column or field that says whose an example is")
    if problems:
        raise ConfigError(problems)
    return kind


def folds_of(kind: str, arguments: argparse.Namespace, examples: TrainingSet, k: int) -> folds.Folds:
    """The folds that the arguments ask for, k of them unless they give another number."""
    n, y = len(examples.y), examples.y
    defaults: dict[str, Any] = {"k": k, "test": 0.25, "p": 2, "repeat": 1}
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


# --- files that are written -------------------------------------------------------------------------------------------


def require_table(path: Path | None) -> None:
    """Refuse what `write_table` could not write, before the work is done."""
    if path is not None and path.suffix not in (".csv", ".jsonl"):
        raise ConfigError([f"--out {path}: the name must end with .csv or .jsonl"])
    require_folder(path)


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows with the same keys as CSV or JSON lines, and say so."""
    text = "".join(json.dumps(row) + "\n" for row in rows) if path.suffix == ".jsonl" else _as_csv(rows)
    write_atomic(path, text.encode())
    print(f"wrote {plural(len(rows), 'row')} to {path}")


def _as_csv(rows: Sequence[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({name: int(value) if isinstance(value, bool) else value for name, value in row.items()})
    return file.getvalue()
