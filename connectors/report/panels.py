"""The parts of the report's page: what a checkpoint knows of error, support vectors, labels, lag and drift.

A panel without data says why, and which setting records the data. Where a figure is derived and not measured, the
panel's text says how.
"""

import math
from collections.abc import Sequence
from typing import Any

import orjson

from ..runtime.text import plural
from ..trainer.state.estimates import FOLDS, LOO, Estimate, read_history
from ..trainer.state.quality.multiclass import ClassPrequential
from ..trainer.state.quality.prequential import History, Prequential, Snapshot
from ..trainer.state.state import prequential
from ..trainer.state.stored_state import Stored
from .answers import Answers
from .challengers import challengers_panels
from .charts import are_early, bounded, draw_intervals
from .classes import classes_panels
from .decisions import decisions_panels
from .drawing import FIRST, INK, SECOND, SOFT, THIRD, draw_line, fit, new_axes, stacked
from .drift import Block, Change, error_blocks, find_changes
from .fields import fields_panels
from .labelling import labelling_panels
from .panel import Panel

_CHANGES = 5  # changes that the text names

_TOO_OLD = "An older version wrote this checkpoint, without {}. This version records it from the next record on."
_FEW_BLOCKS = (
    "Drift needs labelled events before and after a point of the curve. There is at most one point every 50 records."
)
_EARLY = (
    "An event is predicted when it arrives, long before an annotator's answer. So the error of the predictions says "
    "nothing about the model; see “{}”."
)
_NO_LAG = "The lag is recorded as soon as the trainer consumes a record."
_NO_RECORDS = "There is nothing to draw yet: a point is recorded every 50 records, and at each checkpoint."


def all_panels(stored: Stored, end: int | None, answers: Answers | None) -> list[Panel]:
    """The panels of a partition; those of the labelling come first.

    Parameters
    ----------
    stored
        The partition's newest checkpoint.
    end
        End offset of the partition's events now; None if it is not known.
    answers
        The answers to the partition's questions; None if the log was not read.
    """
    rows = read_rows(stored)
    loop = read_loop(stored)
    stream = [
        error_panel(stored, rows),
        *classes_panels(read_metrics(stored), answers, is_early=predicts_early(stored)),
        *decisions_panels(stored),
        *challengers_panels(stored),
        support_panel(stored, rows),
        *([labels_panel(rows)] if loop is None else []),
        lag_panel(stored, rows, end),
        drift_panel(rows),
        *fields_panels(stored),
    ]
    if loop is None:
        return stream
    return [*labelling_panels(loop, answers, names_of(stored)), *stream]


def asks(stored: Stored) -> bool:
    """Whether the trainer asks questions."""
    return "labelling" in stored.checkpoint.blobs


def predicts_early(stored: Stored) -> bool:
    """Whether most labels are answers, which come long after the predictions."""
    loop = read_loop(stored)
    return loop is not None and are_early(loop["counts"]["n_answered"], read_metrics(stored).n)


def read_loop(stored: Stored) -> dict[str, Any] | None:
    """The state of the labelling loop; None if the trainer asks no questions."""
    return orjson.loads(stored.checkpoint.blobs["labelling"])["loop"] if asks(stored) else None


def names_of(stored: Stored) -> tuple[str, str] | None:
    """Names of the positive and the negative class, as they stand in a sentence; None with more than two classes."""
    if not stored.classes.are_two:
        return None
    positive, negative = (stored.setting(f"label.{name}") for name in ("positive", "negative"))
    return (f"“{positive}”", f"“{negative}”") if positive else ("positive", "negative")


def read_rows(stored: Stored) -> list[Snapshot]:
    """The history; its last row is that of the checkpoint."""
    history = History()
    history.restore(stored.checkpoint.part("history"))
    rows = history.rows
    if history.latest and (not rows or history.latest.n >= rows[-1].n):
        rows = [row for row in rows if row.n < history.latest.n] + [history.latest]
    return rows


def is_old(rows: Sequence[Snapshot]) -> bool:
    """Whether an older version, which recorded less, wrote the last row."""
    return bool(rows) and math.isnan(rows[-1].n_labels)


def read_metrics(stored: Stored) -> Prequential | ClassPrequential:
    """The metrics; their window is as long as the checkpoint's."""
    arrays = stored.checkpoint.part("metrics")
    metrics = prequential(stored.classes, max(1, len(arrays["margins" if stored.classes.are_two else "pairs"])))
    metrics.restore(arrays)
    return metrics


# --- error ------------------------------------------------------------------------------------------------------------


def error_panel(stored: Stored, rows: list[Snapshot]) -> Panel:
    """The rolling error of the predictions, and estimates of the error of the model itself."""
    estimates, metrics = read_history(stored.checkpoint.part("estimates")), read_metrics(stored)
    shown = [] if predicts_early(stored) else [row for row in rows if not math.isnan(row.error)]
    n_window = metrics.n_window
    early = _EARLY.format("How good is the model?" if stored.classes.are_two else "Classes")
    if not shown and not estimates:
        return Panel("error", "Error", [early if predicts_early(stored) else _why_no_error(rows, metrics)])

    def plot(figure: Any) -> None:
        axes = new_axes(figure, "records", "%")
        draw_line(axes, shown, [100 * row.error for row in shown], FIRST, "predictions")
        if isinstance(metrics, Prequential):
            draw_line(axes, shown, [100 * (1 - row.g_mean) for row in shown], SECOND, "1 − g-mean", "--")
        else:
            draw_line(axes, shown, [100 * (1 - row.macro_f1) for row in shown], SECOND, "1 − macro F1", "--")
        for kind, label, color, mark in ((LOO, "leave-one-out", INK, "o"), (FOLDS, "folds", THIRD, "s")):
            draw_intervals(axes, [item for item in estimates if item.kind == kind], label, color, mark)
        fit(axes)

    text = [early]
    if shown:
        text = [
            f"Predictions: the error over the last {n_window:,} labelled events. Each event was predicted before it "
            "was learned, by the model of that time."
        ]
    text += _said_of_estimates(estimates)
    latest = f"{shown[-1].error:.2%} after {shown[-1].n:,} records" if shown else "not known"
    alt = f"Error over the records; at the end {latest}."
    return Panel("error", "Error", text, plot, alt)


def _why_no_error(rows: list[Snapshot], metrics: Prequential | ClassPrequential) -> str:
    if metrics.n or not rows:
        return _NO_RECORDS
    return "No labelled event was predicted yet. Labels come with the events, as “y”, or on the topic log.labels."


def _said_of_estimates(estimates: Sequence[Estimate]) -> list[str]:
    if not estimates:
        return [
            "The error of the model itself was not estimated. The settings [estimates] loo = true and folds = 10 "
            "estimate it along the stream."
        ]
    text = [
        "Leave-one-out and folds: the error of the model at that point, tested on examples that were left out of its "
        "training. Bars reach from the lower to the upper bound."
    ]
    for kind, name in ((LOO, "leave-one-out"), (FOLDS, "folds")):
        of_kind = [item for item in estimates if item.kind == kind]
        if of_kind:
            text.append(f"Newest by {name}: {bounded(of_kind[-1].error)}, after {of_kind[-1].offset:,} records.")
    return text


# --- support vectors --------------------------------------------------------------------------------------------------


def support_panel(stored: Stored, rows: list[Snapshot]) -> Panel:
    """Support vectors, and members of the expansion."""
    if not rows:
        return Panel("support", "Support vectors", [_NO_RECORDS])
    members = [row for row in rows if not math.isnan(row.n_members)]

    def plot(figure: Any) -> None:
        axes = new_axes(figure, "records", "")
        draw_line(axes, members, [row.n_members for row in members], SECOND, "members", "--")
        draw_line(axes, rows, [row.n_support for row in rows], FIRST, "support vectors")
        fit(axes, zoom=False)

    text = [
        f"{rows[-1].n_support:,} support vectors after {rows[-1].n:,} records. Members are the examples that the model "
        "keeps; each is a support vector or may become one."
    ]
    if stored.setting("daemon.per") == "key":
        text.append("Each record key has its own model; the numbers are sums over the models in memory.")
    if not members:
        text.append(_TOO_OLD.format("the number of members"))
    bounds = {name: stored.setting(f"model.{name}") for name in ("budget", "window")}
    given = [f"model.{name} = {value}" for name, value in bounds.items() if value is not None]
    text.append(
        f"Bounded by {' and '.join(given)}." if given else "Nothing bounds them: set model.budget or model.window."
    )
    alt = f"Support vectors over the records; {rows[-1].n_support:,} at the end."
    return Panel("support", "Support vectors", text, plot, alt)


# --- labels -----------------------------------------------------------------------------------------------------------


def labels_panel(rows: list[Snapshot]) -> Panel:
    """How many records had a label."""
    name, title = "labels", "Labels"
    text = [
        "The trainer does not ask for labels. With the topics log.questions and log.labels it does, and this page then "
        "shows how good the model is, who labelled what, and what was corrected."
    ]
    known = [row for row in rows if not math.isnan(row.n_labels)]
    if not known:
        return Panel(name, title, [*text, _TOO_OLD.format("the number of labels") if is_old(rows) else _NO_RECORDS])

    def plot(figure: Any) -> None:
        axes = new_axes(figure, "records", "")
        axes.plot([0, known[-1].n], [0, known[-1].n], color=SOFT, linewidth=0.8, linestyle=":", label="all records")
        draw_line(axes, known, [row.n_labels for row in known], FIRST, "labels")
        fit(axes, zoom=False)

    n_labels, n = int(known[-1].n_labels), known[-1].n
    share = f", {n_labels / n:.1%}" if n else ""
    text.insert(0, f"{n_labels:,} of {n:,} records had a label that was learned{share}.")
    alt = f"Labels over the records; {n_labels:,} at the end."
    return Panel(name, title, text, plot, alt)


# --- lag --------------------------------------------------------------------------------------------------------------


def lag_panel(stored: Stored, rows: list[Snapshot], end: int | None) -> Panel:
    """How far the trainer was behind the log, and is now."""
    name, title = "lag", "Lag"
    offset = stored.checkpoint.offsets["events"]
    if end is not None:
        now = f"The log ends at offset {end:,} now, {plural(end - offset, 'record')} after the checkpoint."
    else:
        now = (
            "Only the log knows what came after the checkpoint: streamsvm report CONFIG.toml reads the embedded log, "
            "and streamsvm lag CONFIG.toml asks a broker."
        )
    known = [row for row in rows if not math.isnan(row.lag)]
    if not known:
        return Panel(name, title, [now, _TOO_OLD.format("the lag") if is_old(rows) else _NO_LAG])
    ages = [row for row in known if not math.isnan(row.age)]

    def plot(figure: Any) -> None:
        above, below = stacked(figure, "records", "waiting", "seconds")
        draw_line(above, known, [row.lag for row in known], FIRST, "")
        draw_line(below, ages, [row.age for row in ages], SECOND, "")
        for axes in (above, below):
            fit(axes, zoom=axes is below)

    text = [
        now,
        f"Waiting: {int(known[-1].lag):,} records were known to wait when the checkpoint was written. With Kafka, "
        "these are all records that the broker had reported; with the embedded log, those that the trainer had read "
        "ahead.",
        "Seconds: the age of the newest record, by its timestamp, when the trainer consumed it.",
    ]
    alt = f"Records waiting, and seconds behind, over the records; {int(known[-1].lag):,} were waiting at the end."
    return Panel(name, title, text, plot, alt)


# --- drift ------------------------------------------------------------------------------------------------------------


def drift_panel(rows: list[Snapshot]) -> Panel:
    """Changes of the error, and how far the features have moved."""
    name, title = "drift", "Drift"
    blocks = error_blocks(rows)
    if len(blocks) < 2:
        return Panel(name, title, [_TOO_OLD.format("the number of errors") if is_old(rows) else _FEW_BLOCKS])
    changes, step = find_changes(blocks)
    shifts = [row for row in rows if not math.isnan(row.shift)]

    def plot(figure: Any) -> None:
        rows = stacked(figure, "records", "% wrong", *(["shift"] if shifts else []))
        edges = [blocks[0].start, *(block.n for block in blocks)]
        rows[0].stairs([100 * block.n_errors / block.n_labels for block in blocks], edges, color=FIRST, linewidth=1.0)
        for change in changes:
            rows[0].axvline(change.n, color=INK, linewidth=1.0, linestyle="-" if change.after > change.before else ":")
        draw_line(rows[-1], shifts, [row.shift for row in shifts], SECOND, "")
        for axes in rows:
            fit(axes)

    text = [_said_of_changes(changes), _how_found(blocks, step)]
    if shifts:
        text.append(
            "Shift: the largest distance of a feature's recent mean from the mean by which the model scales it, in "
            f"standard deviations; {shifts[-1].shift:.2f} at the end. When a mean has moved by one deviation, the "
            "model scales its features anew. The shift starts at 0 whenever the trainer starts."
        )
    else:
        text.append('With model.scaling = "standard", the trainer also records how far the features have moved.')
    alt = f"Error between points of the curve, over the records. {_said_of_changes(changes)}"
    return Panel(name, title, text, plot, alt)


def _said_of_changes(changes: Sequence[Change]) -> str:
    if not changes:
        return "The error has not changed by more than chance explains."
    listed = "; ".join(
        f"from {change.before:.1%} to {change.after:.1%} at about {change.n:,} records"
        for change in changes[-_CHANGES:]
    )
    which = "" if len(changes) <= _CHANGES else f" {len(changes)} times; the last {_CHANGES} changes"
    return f"The error has changed{which}: {listed}."


def _how_found(blocks: Sequence[Block], step: int) -> str:
    n_labels = sum(block.n_labels for block in blocks)
    part = "" if step == 1 else f" (one in {step} of them)"
    return (
        "Vertical lines mark changes that river's detector ADWIN finds: solid for the worse, dotted for the better. "
        f"For this page, ADWIN ran over {n_labels:,} predictions{part} in {len(blocks):,} blocks. The order of the "
        "errors in a block is not stored, so they are spread evenly. The first changes often show how the model learns."
    )
