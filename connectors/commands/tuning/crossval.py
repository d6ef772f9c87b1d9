"""The command ``streamsvm crossval``: the scores of a setting on examples that it has not seen."""

import argparse
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from streamsvm import LASVM, OneVsOne
from streamsvm.batch import SmoothSVM
from streamsvm.core.kernel_table import KERNELS
from streamsvm.validation import Result, compare, cross_validate, folds
from streamsvm.validation.held_out.outcome import Fold
from streamsvm.validation.multiclass import ClassResult
from streamsvm.validation.scale import resolve_scaling

from ...runtime.text import aligned, plural
from ...settings.sections import refuse
from ..shared.configuration import misplaced
from ..shared.tables import write_table
from .training_set import TrainingSet
from .validate import arguments_refused, check, number, prepare, read_with_folds, score, spread

DENSE = 0.5  # share of the features other than 0 above which learners would scale them
MOST_SHOWN = 20  # folds, and classes of a confusion table; more folds are summed up by their start

_KERNEL_SETTING = ("C", "gamma", "kernel", "degree", "coef0")
_SETTING = (*_KERNEL_SETTING, "model")
_ONLY: dict[str, dict[str, Any]] = {  # options that belong to one model, with their defaults
    "svm": {"seeding": "auto", "jobs": None, "cache_mb": 256.0, "device": "cpu"},
    "ssvm": {"solver": None, "reduced": None},
}
_COST_HEAD = ("start", "SVs", "iterations", "rows", "kernel evals", "seconds")
_COSTS = ("iterations", "rows_computed", "kernel_evaluations")


def run(arguments: argparse.Namespace) -> None:
    """Cross-validate the examples of a file, and print a table."""
    check(arguments, arguments.metric)
    first = {name: getattr(arguments, name) for name in _SETTING}
    second = first | (arguments.compare or {})
    models = {first["model"], second["model"]}
    refuse(misplaced(arguments, ((f"--model {model}", model in models, own) for model, own in _ONLY.items())))
    examples, splits = read_with_folds(arguments)
    if "svm" in models:
        prepare()
    with arguments_refused():
        result = _validated(examples, splits, first, arguments)
    _show_result(first, result, arguments.metric)
    if arguments.compare:
        with arguments_refused():
            other = _validated(examples, splits, second, arguments)
        _show_result(second, other, arguments.metric)
        _show_comparison(result, other, arguments.metric)
    if arguments.out:
        rows = _tests(examples, result)
        write_table(arguments.out, list(rows[0]), rows)


def _validated(
    examples: TrainingSet, splits: folds.Folds, setting: dict[str, Any], arguments: argparse.Namespace
) -> Result | ClassResult:
    parameters = {name: setting[name] for name in _KERNEL_SETTING}
    scaling = "auto" if arguments.scale == "none" else None
    if arguments.tol is not None:
        parameters["tol"] = arguments.tol
    inputs = examples.X
    if setting["gamma"] == "scale" and inputs.nnz > DENSE * np.prod(inputs.shape):
        inputs = inputs.toarray()  # Sparse input would not be scaled.
    given: dict[str, Any] = {"sample_weight": examples.w, "folds": splits, "progress": True}
    if setting["model"] == "ssvm":
        solver = arguments.solver or "auto"
        binary, inputs = resolve_scaling(LASVM(**parameters, scaling=scaling), inputs)
        parameters["gamma"] = binary.gamma
        smooth = SmoothSVM(**parameters, solver=solver, reduced=arguments.reduced, seed=arguments.seed)
        return cross_validate(smooth, inputs, examples.y, **given)
    model: Any = LASVM(**parameters, scaling=scaling, cache_mb=arguments.cache_mb, device=arguments.device)
    if examples.is_multiclass:
        model = OneVsOne(model)
    return cross_validate(model, inputs, examples.y, seeding=arguments.seeding, n_jobs=arguments.jobs, **given)


def _show_result(setting: dict[str, Any], result: Result | ClassResult, metrics: Sequence[str]) -> None:
    """Print the scores of each fold, and what they cost; of several classes, which ones were taken for others."""
    parts, scores = result.per_fold, np.array([result.scores(metric) for metric in metrics])
    together = [result.score(metric) for metric in metrics]
    costs = () if isinstance(result, ClassResult) else _COST_HEAD
    lines: list[tuple[str, ...]] = [("fold", "tested", *costs, *metrics)]
    full = [] if isinstance(result, ClassResult) or result.first is None else [result.first]
    lines += [_line("full", [part]) for part in full]
    lines += _fold_lines(parts, scores)
    lines.append(_line("total", [*parts, *full], together, result.seconds))
    if len(parts) > 1 and any(len(part.test) > 1 for part in parts):
        lines += spread(scores, 1 + len(costs))
    if isinstance(result, ClassResult):
        print(f"\n{_title(setting)}; {plural(len(parts), 'fold')}; a model for each pair of classes")
        print(aligned(lines))
        _show_classes(result)
        return
    picked = "solver" if setting["model"] == "ssvm" else "seeding"
    print(f"\n{_title(setting)}; {plural(len(parts), 'fold')}")
    print(f"{picked} {result.seeding}: {result.reason}")
    print(aligned(lines))


def _show_classes(result: ClassResult) -> None:
    """Print how often each class was taken for another."""
    if not all(part.converged for part in result.per_fold):
        print("the solver gave up on some pairs of classes: scale the features, or take a smaller C")
    if len(result.classes) <= MOST_SHOWN:
        names = [str(label)[:MOST_SHOWN] for label in result.classes]
        rows = zip(names, result.confusion, result.recalls, strict=True)
        lines = [(name, *(f"{count:,}" for count in row), score(recall)) for name, row, recall in rows]
        print(f"\npredicted classes, a line for each class\n{aligned([('', *names, 'right'), *lines])}")


def _fold_lines(parts: Sequence[Any], scores: np.ndarray) -> list[tuple[str, ...]]:
    """A line for each fold; with many folds, a line for each start."""
    if len(parts) <= MOST_SHOWN:
        return [_line(str(i + 1), [part], scores[:, i]) for i, part in enumerate(parts)]
    counts = Counter(part.start for part in parts if isinstance(part, Fold))
    return [
        _line(f"{count:,} folds", [part for part in parts if part.start == start])
        for start, count in counts.most_common()
    ]


def _line(
    name: str, parts: Sequence[Any], scores: Iterable[float] = (), seconds: float | None = None
) -> tuple[str, ...]:
    """Some folds as a line of the table: sums, and the mean number of support vectors; `seconds` is of the total."""
    n_tested = sum(len(part.test) for part in parts)
    costs: tuple[str, ...] = ()
    if isinstance(parts[0], Fold):
        costs = (
            parts[0].start if seconds is None else "",
            f"{np.mean([part.n_support for part in parts]):,.0f}",
            *(f"{sum(getattr(part, cost) for part in parts):,}" for cost in _COSTS),
            f"{sum(part.seconds for part in parts) if seconds is None else seconds:.3f}",
        )
    return (name, f"{n_tested:,}" if n_tested else "-", *costs, *map(score, scores))


def _title(setting: dict[str, Any]) -> str:
    kernel = setting["kernel"]
    shown = ["C", *KERNELS[kernel].parameters]
    name = f"{kernel} kernel" if setting["model"] == "svm" else f"smooth SVM, {kernel} kernel"
    values = (setting[name] if isinstance(setting[name], str) else number(setting[name]) for name in shown)
    return ", ".join([name, *map(" = ".join, zip(shown, values, strict=True))])


def _show_comparison(first: Any, second: Any, metrics: Sequence[str]) -> None:
    header = ("metric", "first", "second", "better on average", "folds won", "lost", "tied", "better by votes")
    lines: list[tuple[str, ...]] = [header]
    for name in metrics:
        both = compare(first, second, name)
        winners = (both.by_averaging or "neither", *map(str, both.wins), both.by_voting or "neither")
        lines.append((name, *map(score, both.means), *winners))
    print(f"\n{aligned(lines)}")


def _tests(examples: TrainingSet, result: Result | ClassResult) -> list[dict[str, Any]]:
    """A row for each test of an example, in the order of the file."""
    columns = {"prediction": "predictions", "decision_value": "decision_values"}  # of the file, and of a fold
    if isinstance(result, ClassResult):
        del columns["decision_value"]
    tests = []
    for fold, part in enumerate(result.per_fold, 1):
        values = zip(*(getattr(part, name).tolist() for name in ("test", *columns.values())), strict=True)
        tests += [(i, fold, dict(zip(columns, own, strict=True))) for i, *own in values]
    return [
        {"id": examples.ids[i], "fold": fold, "y": examples.y[i].item(), **said}
        for i, fold, said in sorted(tests, key=itemgetter(0, 1))
    ]
