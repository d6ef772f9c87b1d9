"""The panels of a run with more than two classes: how well each is known, and which are taken for one another."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..records.classes import ClassLabel
from ..runtime.text import plural
from ..trainer.state.quality.multiclass import ClassPrequential, Confusion
from ..trainer.state.quality.prequential import Prequential
from .answers import RECENT, Answers, compared
from .panel import Panel

MOST_DRAWN = 30  # classes whose confusion matrix is drawn
_MOST_CONFUSED = 5  # pairs of classes that are named
_NONE = "No {} was predicted yet."
_NEEDS_LOG = "The answers are in the log: streamsvm report CONFIG.toml reads them, and says more here."


def classes_panels(metrics: Prequential | ClassPrequential, answers: Answers | None, *, is_early: bool) -> list[Panel]:
    """A table of the classes, and their confusion matrix; nothing with two classes.

    Parameters
    ----------
    metrics
        What was predicted when the events came.
    answers
        The answers to the partition's questions; None if the log was not read.
    is_early
        Whether most labels are answers, which come long after the predictions.  Then the guesses about random events
        count, which the model made when it asked.
    """
    if isinstance(metrics, Prequential):
        return []
    if is_early and answers is None:
        return [Panel("classes", "Classes", [_NEEDS_LOG])]
    confusion, what = metrics.rolling(), "labelled event"
    if is_early and answers is not None:
        confusion, what = _of_guesses(confusion.labels, answers), "random question"
    return [_scores_panel(confusion, what), _confusion_panel(confusion, what)]


def _of_guesses(labels: Sequence[ClassLabel], answers: Answers) -> Confusion:
    """The labels of the last random questions, and what the model guessed when it asked."""
    number = {label: k for k, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for guess, y in compared(answers, are_two=False)[-RECENT:]:
        if y in number and guess in number:  # not before the model knew a class
            counts[number[y], number[guess]] += 1
    return Confusion(labels, counts)


def _scores_panel(confusion: Confusion, what: str) -> Panel:
    if not confusion.n:
        return Panel("classes", "Classes", [_NONE.format(what)])
    rows: list[tuple[str, ...]] = [("class", "events", "precision", "recall", "F1")]
    for label, found in confusion.of_classes().items():
        shares = ("–" if np.isnan(share) else f"{share:.1%}" for share in (found.precision, found.recall, found.f1))
        rows.append((str(label), f"{found.n:,}", *shares))
    text = [
        f"Over the last {plural(confusion.n, what)}. Precision: the share of right ones among the events "
        "that were predicted as the class. Recall: the share of the class's events that were predicted as it."
    ]
    return Panel("classes", "Classes", text, table=rows)


def _confusion_panel(confusion: Confusion, what: str) -> Panel:
    """Which classes are taken for one another."""
    name, title = "confusion", "Confusion"
    if not confusion.n:
        return Panel(name, title, [_NONE.format(what)])
    text = [_said_of_pairs(confusion, what)]
    if len(confusion.labels) > MOST_DRAWN:
        return Panel(name, title, [*text, f"The matrix is drawn for up to {MOST_DRAWN} classes."])

    def plot(figure: Any) -> None:
        axes = figure.subplots()
        shares = confusion.counts / np.maximum(1, confusion.counts.sum(axis=1, keepdims=True))
        axes.pcolormesh(shares, cmap="Blues", vmin=0.0, vmax=1.0)
        axes.invert_yaxis()
        ticks = range(len(confusion.labels))
        middles = [tick + 0.5 for tick in ticks]
        axes.set_xticks(middles, [str(label)[:12] for label in confusion.labels], rotation=90)
        axes.set_yticks(middles, [str(label)[:12] for label in confusion.labels])
        axes.set(xlabel="predicted", ylabel="class")
        axes.grid(visible=False)
        if len(ticks) <= MOST_DRAWN // 2:
            for (row, column), n in np.ndenumerate(confusion.counts):
                if n:
                    color = "white" if shares[row, column] > 0.5 else "#222222"  # on a blue that no theme changes
                    axes.text(column + 0.5, row + 0.5, f"{n}", ha="center", va="center", fontsize=8, color=color)

    return Panel(name, title, text, plot, f"The confusion matrix. {text[0]}")


def _said_of_pairs(confusion: Confusion, what: str) -> str:
    wrong = confusion.counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CONFUSED]
    pairs = [(*np.unravel_index(place, wrong.shape), int(wrong.flat[place])) for place in order if wrong.flat[place]]
    if not pairs:
        return f"All of the last {plural(confusion.n, what)} were predicted rightly."
    named = "; ".join(f"{confusion.labels[row]} as {confusion.labels[column]}, {n} times" for row, column, n in pairs)
    return f"Taken for another class most often: {named}."
