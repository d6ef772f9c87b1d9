"""The part that ``streamsvm crossval`` and ``streamsvm search`` share: examples, folds, tables."""

import argparse
import math
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from streamsvm import LASVM
from streamsvm.features import Records
from streamsvm.validation import folds
from streamsvm.validation.compilation import compile_ahead
from streamsvm.validation.scores import BY_NAME, OF_CLASSES

from ...records.columns import Columns
from ...records.raw import Reading
from ...runtime.process import killable
from ...runtime.text import counted, plural
from ...settings.loading import load
from ...settings.sections import ConfigError, Settings, refuse
from ..shared.configuration import check_file, columns_of, misplaced, tell_unlabelled
from ..shared.tables import require_table
from .training_set import AS_IT_IS, TrainingSet, advice, read_training_set

MOST_LISTED = 10  # classes
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[TrainingSet, dict[str, Any], int], folds.Folds]]] = {
    # the options of each kind of folds, and what makes them of the examples, the options and a seed
    "stratified": (("k", "repeat"), lambda of, how, seed: folds.stratified(of.y, how["k"], seed=seed)),
    "v-fold": (("k", "repeat"), lambda of, how, seed: folds.v_fold(len(of.y), how["k"], seed=seed)),
    "grouped": (("k", "group"), lambda of, how, seed: folds.grouped(of.groups, how["k"])),
    "hold-out": (("test", "repeat"), lambda of, how, seed: folds.hold_out(len(of.y), how["test"], y=of.y, seed=seed)),
    "leave-one-out": ((), lambda of, how, seed: folds.leave_one_out(len(of.y))),
    "leave-p-out": (("p",), lambda of, how, seed: folds.leave_p_out(len(of.y), how["p"])),
}


def check(arguments: argparse.Namespace, metrics: Iterable[str]) -> None:
    """Raise ConfigError if folds, metrics or the output are wrong, before the examples are read."""
    check_file(arguments)
    _kind_of_folds(arguments)
    for name in metrics:
        if name not in BY_NAME:
            raise ConfigError(f"--metric: {name!r} is unknown; use one of {', '.join(BY_NAME)}")
    require_table(arguments.out)


# --- examples ---------------------------------------------------------------------------------------------------------


def prepare() -> None:
    """Compile the engine, where Ctrl-C ends it."""
    with killable(), plain_warnings():
        compile_ahead(LASVM)


def read_with_folds(arguments: argparse.Namespace) -> tuple[TrainingSet, folds.Folds]:
    """Read the examples of the file, and divide them; print a summary, and warn of unwise scaling."""
    columns, records, reading = _columns(arguments)
    how = (arguments.scale, arguments.feature, records, reading)
    examples = read_training_set(arguments.file, arguments.format, columns, *how)
    tell_unlabelled(columns)
    n, n_features = examples.X.shape
    made = ""
    if examples.n_fields:
        made = f" of {plural(examples.n_fields, 'raw field')}, whose kinds are judged by all of them"
    scaled = "" if arguments.scale == "none" else f"; scaled ({arguments.scale}) by the statistics of all of them"
    print(f"{plural(n, 'example')}, {_counted(examples.y)}, {plural(n_features, 'feature')}{made}{scaled}")
    unwise = advice(examples, arguments.scale)
    if unwise:
        _say(unwise)
    with arguments_refused():
        return examples, _folds_of(arguments, examples)


def _columns(arguments: argparse.Namespace) -> tuple[Columns, Records | None, Reading]:
    """The columns of the file, and what makes the features of raw records; completes ``--raw`` and ``--scale``."""
    settings = load(arguments.config, os.environ, with_model=False) if arguments.config else Settings()
    is_raw = arguments.raw = arguments.raw or settings.features.raw
    if arguments.config and not settings.features.raw:
        raise ConfigError(f"--config {arguments.config}: [features] raw is not true, so it says nothing of the file")
    if arguments.scale is None:
        arguments.scale = "standard" if is_raw else "none"
    columns = replace(columns_of(arguments, settings), group=arguments.group)
    if not is_raw:
        return columns, None, AS_IT_IS
    if settings.label.vocabulary:
        _require_for_classes(arguments)
    records = replace(settings.features, raw=True).records()
    if settings.features.transform and not settings.features.is_flat:
        raise ConfigError(
            "features.transform takes whole events, which a table does not have; name features.id, label or time"
        )
    return replace(columns, raw="event"), records, settings.features.reading()


def _counted(y: np.ndarray) -> str:
    """How many examples each class has."""
    if y.dtype == bool:  # two classes
        return f"{np.count_nonzero(y)} positive"
    counts = dict(Counter(y.tolist()).most_common())
    return f"{len(counts)} classes ({counted(counts, MOST_LISTED)})"


def _require_for_classes(arguments: argparse.Namespace) -> None:
    """Raise ConfigError if an option is for two classes only."""
    metrics = [arguments.metric] if isinstance(arguments.metric, str) else arguments.metric
    problems = [
        f"--metric {name} is for two classes; [label] lists more, for which there are {', '.join(OF_CLASSES)}"
        for name in metrics
        if name not in OF_CLASSES
    ]
    if getattr(arguments, "model", "svm") != "svm":
        problems.append("--model ssvm is for two classes; [label] lists more")
    refuse(problems)


def _say(text: str) -> None:
    print(f"streamsvm: {text}", file=sys.stderr)


@contextmanager
def arguments_refused() -> Iterator[None]:
    """Turn the engine's errors into ConfigError, and its warnings into plain lines."""
    try:
        with plain_warnings():
            yield
    except (ValueError, ImportError) as error:
        raise ConfigError(str(error)) from error


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


def spread(scores: np.ndarray, n_blank: int) -> list[tuple[str, ...]]:
    """The lines of a table for mean and deviation of scores over the folds, after some blank cells."""
    sides = {"mean": scores.mean(axis=1), "deviation": scores.std(axis=1)}
    return [(name, *[""] * n_blank, *map(score, values)) for name, values in sides.items()]


def _kind_of_folds(arguments: argparse.Namespace) -> str:
    """The kind of folds; raise ConfigError if an option belongs to another kind."""
    kind = arguments.folds or ("stratified" if arguments.group is None else "grouped")
    having = {
        name: [other for other, (options, _) in _KINDS.items() if name in options]
        for name in ("k", "group", "test", "p", "repeat")
    }
    homes = ((f"--folds {' or '.join(of)}", kind in of, {name: None}) for name, of in having.items())
    problems = list(misplaced(arguments, homes))
    if kind == "grouped" and arguments.group is None:
        problems.append("--folds grouped needs --group, the column or field that holds the group of an example")
    refuse(problems)
    return kind


def _folds_of(arguments: argparse.Namespace, examples: TrainingSet) -> folds.Folds:
    """The folds that the arguments describe."""
    options, make = _KINDS[_kind_of_folds(arguments)]
    how: dict[str, Any] = {"k": arguments.default_k, "test": 0.25, "p": 2, "repeat": 1}
    how |= {name: given for name in how if (given := getattr(arguments, name)) is not None}
    if "repeat" not in options:
        return make(examples, how, arguments.seed)
    return folds.repeated(lambda seed: make(examples, how, seed), how["repeat"], seed=arguments.seed)
