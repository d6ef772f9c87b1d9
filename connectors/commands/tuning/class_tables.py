"""What ``streamsvm crossval`` prints and writes for more than two classes."""

from collections.abc import Sequence

import numpy as np

from streamsvm.validation.multiclass import ClassResult

from ...runtime.text import aligned, plural
from .validate import score, spread

MOST_SHOWN = 20  # folds, and classes of a confusion table


def show(title: str, result: ClassResult, metrics: Sequence[str]) -> None:
    """Print the scores of each fold, and how often each class was taken for another."""
    print(f"\n{title}; {plural(len(result.per_fold), 'fold')}; a model for each pair of classes")
    print(aligned(_scores(result, metrics)))
    if not all(part.converged for part in result.per_fold):
        print("the solver gave up on some pairs of classes: scale the features, or take a smaller C")
    if len(result.classes) <= MOST_SHOWN:
        print(f"\npredicted classes, a line for each class\n{aligned(_confusion(result))}")


def _scores(result: ClassResult, metrics: Sequence[str]) -> list[tuple[str, ...]]:
    scores = np.array([result.scores(metric) for metric in metrics])
    parts = result.per_fold
    lines: list[tuple[str, ...]] = [("fold", "tested", *metrics)]
    if len(parts) <= MOST_SHOWN:
        lines += [(str(i + 1), f"{len(part.test):,}", *map(score, scores[:, i])) for i, part in enumerate(parts)]
    n_tested = sum(len(part.test) for part in parts)
    lines.append(("total", f"{n_tested:,}", *(score(result.score(metric)) for metric in metrics)))
    if any(len(part.test) > 1 for part in parts):
        lines += spread(scores, 1)
    return lines


def _confusion(result: ClassResult) -> list[tuple[str, ...]]:
    names, counts = [str(label)[:MOST_SHOWN] for label in result.classes], result.confusion
    lines: list[tuple[str, ...]] = [("", *names, "right")]
    for name, row, recall in zip(names, counts, result.recalls, strict=True):
        lines.append((name, *(f"{count:,}" for count in row), score(recall)))
    return lines
