"""The command ``streamsvm search``: the best C and gamma of a grid, by cross-validation."""

import argparse
import math
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm import LASVM, OneVsOne
from streamsvm.core.kernel_table import KERNELS
from streamsvm.validation import Result, Search, folds, grid_search
from streamsvm.validation.grids.grid import Cell
from streamsvm.validation.grids.multiclass import ClassSearch
from streamsvm.validation.scores import measure

from ...report import charts as report
from ...runtime.folders import require_folder
from ...runtime.libraries import LibraryMissing
from ...runtime.text import aligned, plural
from ...settings.sections import ConfigError
from ..arguments import options
from ..arguments.tuning import GAMMAS
from ..shared.tables import write_table
from .validate import arguments_refused, check, number, prepare, read_with_folds, score

_OF_MODEL = ("kernel", "degree", "coef0", "tol", "cache_mb", "device")


def run(arguments: argparse.Namespace) -> None:
    """Cross-validate a grid of settings; print the scores, and how to use the best setting."""
    check(arguments, [arguments.metric])
    gammas = _gammas(arguments)
    _require_picture(arguments.plot)
    examples, splits = read_with_folds(arguments)
    if not examples.is_multiclass:
        _require_scores(arguments.metric, splits, examples.y)
    prepare()
    with arguments_refused():
        model = LASVM(**{name: getattr(arguments, name) for name in _OF_MODEL})
        found = grid_search(
            OneVsOne(model) if examples.is_multiclass else model,
            examples.X,
            examples.y,
            Cs=arguments.C,
            gammas=gammas,
            folds=splits,
            metric=arguments.metric,
            seeding=arguments.seeding,
            sample_weight=examples.w,
            refit=False,
            n_jobs=arguments.jobs,
            progress=True,
        )
    _show(found, arguments, "OneVsOne(LASVM({}))" if examples.is_multiclass else "LASVM({})")
    if arguments.out:
        rows = [_row(cell, arguments.metric) for cell in found.table]
        write_table(arguments.out, list(rows[0]), rows)
    if arguments.plot:
        report.draw_grid(found, arguments.plot, arguments.metric)
        print(f"drew {arguments.plot}")


def _gammas(arguments: argparse.Namespace) -> list[float]:
    if not _has(arguments.kernel, "gamma"):
        if arguments.gamma is not None:
            raise ConfigError(f"--gamma: the {arguments.kernel} kernel has no gamma; leave --gamma out")
        return [1.0]  # The kernel does not use it.
    return options.values(GAMMAS) if arguments.gamma is None else arguments.gamma


def _has(kernel: str, parameter: str) -> bool:
    return parameter in KERNELS[kernel].parameters


def _require_picture(path: Path | None) -> None:
    """Refuse a picture that cannot be drawn before the work begins."""
    if path is None:
        return
    require_folder(path)
    try:
        report.require_picture(path)
    except (LibraryMissing, ValueError) as error:
        raise ConfigError(f"--plot: {error}") from None


def _require_scores(name: str, splits: folds.Folds, y: np.ndarray) -> None:
    """Refuse a metric that is not defined on some fold before the work begins: no setting would have a mean score."""
    for i, test in enumerate(splits.tests, 1):
        if math.isnan(measure(name, y[test], np.zeros(len(test)))):
            raise ConfigError(
                f"--metric {name} is not defined on fold {i}, which tests one class only; use larger folds"
            )


def _row(cell: Cell, metric: str) -> dict[str, Any]:
    row = {"C": cell.C, "gamma": cell.gamma, metric: cell.score, "deviation": cell.spread}
    costs = ("iterations", "kernel_evaluations") if isinstance(cell.result, Result) else ()
    return row | {cost: getattr(cell.result, cost) for cost in (*costs, "seconds")}


def _show(found: Search | ClassSearch, arguments: argparse.Namespace, learner: str) -> None:
    best, has_gamma = found.best, _has(arguments.kernel, "gamma")
    costs = ""
    if isinstance(found, Search):
        costs = f", {found.iterations:,} iterations, {found.kernel_evaluations:,} kernel evaluations"
    print(
        f"{plural(len(found.table), 'setting')} of the {arguments.kernel} kernel, "
        f"{plural(len(best.result.per_fold), 'fold')} each: {found.seconds:.3f} seconds{costs}"
    )
    print(f"\n{arguments.metric}, mean of the folds; * marks the best setting")
    print(aligned(_lines(found, has_gamma)))
    setting = {"C": best.C, "gamma": best.gamma} if has_gamma else {"C": best.C}
    shown = ", ".join(f"{name} = {number(value)}" for name, value in setting.items())
    print(
        f"\nbest: {shown}, with {arguments.metric} {score(best.score)} (deviation {score(best.spread)} over the folds)"
    )
    for name, value in setting.items():
        _note_edge(name, value, found.Cs if name == "C" else found.gammas)
    _show_use(setting, arguments, learner)


def _lines(found: Search | ClassSearch, has_gamma: bool) -> list[tuple[str, ...]]:
    """The grid as a table: a line for each C, a column for each gamma."""
    columns = report.axis_labels(found.gammas) if has_gamma else ["score"]
    at = found.table.index(found.best)
    cells = [f"{score(cell.score)}{'*' if i == at else ' '}" for i, cell in enumerate(found.table)]
    width = len(found.gammas)
    rows = [cells[i : i + width] for i in range(0, len(cells), width)]
    header = ("C \\ gamma" if has_gamma else "C", *(f"{column} " for column in columns))
    return [header, *((C, *row) for C, row in zip(report.axis_labels(found.Cs), rows, strict=True))]


def _note_edge(name: str, value: float, tried: Sequence[float]) -> None:
    if len(tried) > 1 and value in (tried[0], tried[-1]):
        side = "smaller" if value == tried[0] else "larger"
        print(f"this {name} is at the edge of the grid; a {side} one may be better")


def _show_use(setting: dict[str, float], arguments: argparse.Namespace, learner: str) -> None:
    """Print how to train a model with the setting, by the trainer and in Python."""
    named = {"kernel": arguments.kernel} if arguments.kernel != "rbf" else {}
    values = {name: number(value) for name, value in setting.items()}
    if _has(arguments.kernel, "degree"):
        values["degree"] = str(arguments.degree)
    if _has(arguments.kernel, "coef0"):
        values["coef0"] = number(arguments.coef0)
    algorithm, auto_s = ({"algorithm": "lasvm"}, {"metric": "accuracy"}) if arguments.config else ({}, {})
    overrides = [f"--set model.{name}={value}" for name, value in (algorithm | named | values | auto_s).items()]
    if arguments.scale != "minmax":  # the trainer has no such scale
        config = shlex.quote(str(arguments.config or "CONFIG.toml"))
        print(f"train with it: streamsvm run {config}", *overrides, f"--set model.scaling={arguments.scale}")
    keywords = [f"{name}={value!r}" for name, value in named.items()] + [f"{n}={value}" for n, value in values.items()]
    if arguments.scale == "standard":
        keywords.append('scaling="standard"')
    scaler = 'WarmupScaler("minmax") | ' if arguments.scale == "minmax" else ""
    if arguments.raw:
        scaler = f"Records() | {scaler}"
    print(f"or in Python:  {scaler}{learner.format(', '.join(keywords))}")
