"""The parts of a page about a run: what a checkpoint knows of error, support vectors, labels, lag and drift.

A panel that has nothing to show says why, and what would record it.  Nothing is computed that a reader would take for
something measured: where a figure is derived, the text says how.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import orjson
from river.drift import ADWIN

from ..runtime.text import plural
from ..trainer.state.estimates import FOLDS, LOO, Estimate, read_history
from ..trainer.state.observe import History, Prequential, Snapshot
from ..trainer.state.stored import Stored
from .charts import FIRST, INK, SECOND, SOFT, THIRD, draw_svg

Axes = Any  # matplotlib's
Plot = Callable[[Any], None]  # draws on a figure

WIDTH, HEIGHT = 4.4, 2.9  # inches, of 72 units each in the picture
FEW = 3  # points, which are drawn one by one
LISTED = 5  # changes
_DRAWN = 1e300  # larger numbers are drawn as this one: differences and margins around it are still finite
MAX_SEEN = 100_000  # errors that the drift detector is given, or one in so many

_TOO_OLD = (
    "An older version wrote this checkpoint, without {}; a run of this version records it from its next record on."
)
_FEW_BLOCKS = (
    "It takes labelled events before and after a point of the curve, of which there is one every 50 records or more."
)
_NO_LAG = "The lag is recorded with the first record that is taken."
_NO_RECORDS = "There is nothing to draw yet: a point is recorded every 50 records, and at each checkpoint."


class Panel(NamedTuple):
    """A part of the page."""

    name: str  # that it is linked by
    title: str
    picture: str  # SVG; empty: there is none
    text: list[str]  # sentences


class Block(NamedTuple):
    """Predictions between two rows of the history."""

    start: int  # records before
    n: int  # records at its end
    n_labels: int  # labelled events
    n_errors: int  # how many of them were predicted wrongly


class Change(NamedTuple):
    """Where the error has changed, as a detector says."""

    n: int  # records so far
    before: float  # error since the change before
    after: float  # error up to the next change


def all_panels(stored: Stored, end: int | None) -> list[Panel]:
    """What the page shows of a partition.

    Parameters
    ----------
    stored
        Its newest checkpoint.
    end
        Where its topic of events ends now; None if that is not known.
    """
    rows = read_rows(stored)
    prefix = f"p{stored.number}"
    return [
        error_panel(stored, rows, prefix),
        support_panel(stored, rows, prefix),
        labels_panel(stored, rows, prefix),
        lag_panel(stored, rows, end, prefix),
        drift_panel(rows, prefix),
    ]


def read_rows(stored: Stored) -> list[Snapshot]:
    """The history, with its last row as of the checkpoint."""
    history = History.from_arrays(stored.arrays("history"))
    rows = history.rows
    if history.latest and (not rows or history.latest.n >= rows[-1].n):
        rows = [row for row in rows if row.n < history.latest.n] + [history.latest]
    return rows


def is_old(rows: Sequence[Snapshot]) -> bool:
    """Whether a version has written the last row that did not record all of it."""
    return bool(rows) and math.isnan(rows[-1].n_labels)


def read_metrics(stored: Stored) -> Prequential:
    """The metrics, whose window is what the checkpoint has of it."""
    arrays = stored.arrays("metrics")
    return Prequential.from_arrays(arrays, max(1, len(arrays["margins"])))


def read_estimates(stored: Stored) -> list[Estimate]:
    """The estimates along the stream; none if none were made."""
    arrays = stored.arrays("estimates")
    return read_history(arrays["history"]) if arrays else []


# --- error ------------------------------------------------------------------------------------------------------------


def error_panel(stored: Stored, rows: list[Snapshot], prefix: str) -> Panel:
    """The rolling error of predictions made before learning, beside the model's own error."""
    estimates, metrics = read_estimates(stored), read_metrics(stored)
    shown = [row for row in rows if not math.isnan(row.error)]
    n_window = len(stored.arrays("metrics")["margins"])
    if not shown and not estimates:
        return Panel(f"{prefix}-error", "Error", "", [_why_no_error(rows, metrics)])

    def plot(figure: Any) -> None:
        axes = _axes(figure, "records", "%")
        _line(axes, shown, [100 * row.error for row in shown], FIRST, "predictions")
        _line(axes, shown, [100 * (1 - row.g_mean) for row in shown], SECOND, "1 − g-mean", "--")
        for kind, label, color, mark in ((LOO, "leave-one-out", INK, "o"), (FOLDS, "folds", THIRD, "s")):
            _intervals(axes, [item for item in estimates if item.kind == kind], label, color, mark)
        _from_zero(axes)

    text = [
        f"Predictions: the error over the last {n_window:,} labelled events, each predicted before it was learned. "
        "It is that of all the models that there were meanwhile."
    ]
    if "labelling" in stored.checkpoint.blobs:
        text.append(
            "While people are asked, an event's prediction is that from when it came, long before its label: rather "
            "look at the random questions below."
        )
    text += _said_of_estimates(estimates)
    latest = f"{shown[-1].error:.2%} after {shown[-1].n:,} records" if shown else "not known"
    alt = f"Error over the records; at the end {latest}."
    return Panel(f"{prefix}-error", "Error", _picture(plot, f"{prefix}-error", alt), text)


def _why_no_error(rows: list[Snapshot], metrics: Prequential) -> str:
    if metrics.n or not rows:
        return _NO_RECORDS
    return "No labelled event was predicted yet: labels come with the events, as “y”, or on the topic log.labels."


def _intervals(axes: Axes, items: Sequence[Estimate], label: str, color: str, mark: str) -> None:
    if not items:
        return
    value, low, high = 100 * np.array([item.error for item in items]).T
    axes.errorbar(
        [item.offset for item in items],
        value,
        yerr=np.maximum(0.0, (value - low, high - value)),
        fmt=mark,
        markersize=3.5,
        linewidth=0.9,
        color=color,
        label=label,
    )


def _said_of_estimates(estimates: Sequence[Estimate]) -> list[str]:
    if not estimates:
        return [
            "There are no estimates of the model's own error; [estimates] loo = true, or folds = 10, has them made "
            "along the stream."
        ]
    text = [
        "Leave-one-out and folds: the error of the model as it was at that point, without what it was taught; bars "
        "reach from the lower to the upper bound."
    ]
    for kind, name in ((LOO, "leave-one-out"), (FOLDS, "folds")):
        of_kind = [item for item in estimates if item.kind == kind]
        if of_kind:
            value, low, high = of_kind[-1].error
            bounds = f" (between {low:.2%} and {high:.2%})" if high > low else ""
            text.append(f"Newest by {name}: {value:.2%}{bounds}, after {of_kind[-1].offset:,} records.")
    return text


# --- support vectors --------------------------------------------------------------------------------------------------


def support_panel(stored: Stored, rows: list[Snapshot], prefix: str) -> Panel:
    """Support vectors, and members of the expansion."""
    if not rows:
        return Panel(f"{prefix}-support", "Support vectors", "", [_NO_RECORDS])
    members = [row for row in rows if not math.isnan(row.n_members)]

    def plot(figure: Any) -> None:
        axes = _axes(figure, "records", "")
        _line(axes, members, [row.n_members for row in members], SECOND, "members", "--")
        _line(axes, rows, [row.n_support for row in rows], FIRST, "support vectors")
        _from_zero(axes)

    text = [
        f"{rows[-1].n_support:,} support vectors after {rows[-1].n:,} records. Members are the examples that the model "
        "keeps, which are or may become support vectors."
    ]
    if stored.setting("daemon.per") == "key":
        text.append("Each record key has a model of its own; the numbers are those of the models in memory together.")
    if not members:
        text.append(_TOO_OLD.format("the number of members"))
    bounds = {name: stored.setting(f"model.{name}") for name in ("budget", "window")}
    given = [f"model.{name} = {value}" for name, value in bounds.items() if value is not None]
    text.append(
        f"Bounded by {' and '.join(given)}." if given else "Nothing bounds them: model.budget or model.window would."
    )
    alt = f"Support vectors over the records; {rows[-1].n_support:,} at the end."
    return Panel(f"{prefix}-support", "Support vectors", _picture(plot, f"{prefix}-support", alt), text)


# --- labels -----------------------------------------------------------------------------------------------------------


def labels_panel(stored: Stored, rows: list[Snapshot], prefix: str) -> Panel:
    """How well the model knew the answers to its questions, or else how many labels there were."""
    name, title = f"{prefix}-labels", "Label efficiency"
    blob = stored.checkpoint.blobs.get("labelling")
    if blob is not None:
        return _questions_panel(orjson.loads(blob)["loop"], name, title)
    text = [
        "The trainer asks nobody for labels; with the topics log.questions and log.labels it does, and this part shows "
        "what the answers are worth."
    ]
    known = [row for row in rows if not math.isnan(row.n_labels)]
    if not known:
        return Panel(name, title, "", [*text, _TOO_OLD.format("the number of labels") if is_old(rows) else _NO_RECORDS])

    def plot(figure: Any) -> None:
        axes = _axes(figure, "records", "")
        axes.plot([0, known[-1].n], [0, known[-1].n], color=SOFT, linewidth=0.8, linestyle=":", label="all records")
        _line(axes, known, [row.n_labels for row in known], FIRST, "labels")
        _from_zero(axes)

    n_labels, n = int(known[-1].n_labels), known[-1].n
    share = f", {n_labels / n:.1%}" if n else ""
    text.insert(0, f"{n_labels:,} of {n:,} records had a label that was learned{share}.")
    alt = f"Labels over the records; {n_labels:,} at the end."
    return Panel(name, title, _picture(plot, name, alt), text)


def _questions_panel(loop: dict[str, Any], name: str, title: str) -> Panel:
    counts, curve = loop["counts"], loop["curve"]
    text = [
        f"{counts['n_asked']:,} questions were asked about {counts['n_offered']:,} events without a label, and "
        f"{counts['n_answered']:,} answered; {counts['n_positive']:,} positive and {counts['n_negative']:,} negative "
        "labels hold, asked for or not."
    ]
    if not curve:
        return Panel(name, title, "", [*text, "The curve begins with the first answer."])

    def plot(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        for column, label, color, style in ((2, "random questions", FIRST, "-"), (3, "chosen", SECOND, "--")):
            points = [(point[0], 100 * (1 - point[column])) for point in curve if point[column] is not None]
            _plot(above, [x for x, _ in points], [y for _, y in points], color, label, style)
        _plot(below, [point[0] for point in curve], [point[1] for point in curve], FIRST, "", "-")
        above.set_ylabel("% wrong")
        below.set(xlabel="questions answered", ylabel="support vectors")
        for axes in (above, below):
            _plain(axes)
            _from_zero(axes)

    text.append(
        "Wrong: how many of the last 59 answers of a kind the model had not expected. Random questions say how good it "
        "is; chosen ones are the doubtful ones. Below, the support vectors at that point."
    )
    last = next((point for point in reversed(curve) if point[2] is not None), None)
    known = f"{1 - last[2]:.1%} wrong on random questions" if last else "no random question was answered"
    alt = f"Wrong expectations over the answered questions; at the end, after {curve[-1][0]:,} answers, {known}."
    return Panel(name, title, _picture(plot, name, alt), text)


# --- lag --------------------------------------------------------------------------------------------------------------


def lag_panel(stored: Stored, rows: list[Snapshot], end: int | None, prefix: str) -> Panel:
    """How far behind the log the trainer was, and is."""
    name, title = f"{prefix}-lag", "Lag"
    offset = stored.checkpoint.offsets["events"]
    if end is not None:
        now = (
            f"The log ends at offset {end:,} now, {plural(end - offset, 'record')} after what the checkpoint has taken."
        )
    else:
        now = (
            "What came after the checkpoint, a state folder does not know: streamsvm report CONFIG.toml looks at the "
            "embedded log, and streamsvm lag CONFIG.toml asks a broker."
        )
    known = [row for row in rows if not math.isnan(row.lag)]
    if not known:
        return Panel(name, title, "", [now, _TOO_OLD.format("the lag") if is_old(rows) else _NO_LAG])
    ages = [row for row in known if not math.isnan(row.age)]

    def plot(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        _line(above, known, [row.lag for row in known], FIRST, "")
        _line(below, ages, [row.age for row in ages], SECOND, "")
        above.set_ylabel("waiting")
        below.set(xlabel="records", ylabel="seconds")
        for axes in (above, below):
            _plain(axes)
            _from_zero(axes)

    text = [
        now,
        f"Waiting: {int(known[-1].lag):,} records were known to wait when the checkpoint was written. Over Kafka, "
        "these are up to the end that the broker had told; in the embedded log, what the trainer had read ahead.",
        "Seconds: how old the newest record was, by its timestamp, when it was taken.",
    ]
    alt = f"Records waiting, and seconds behind, over the records; {int(known[-1].lag):,} were waiting at the end."
    return Panel(name, title, _picture(plot, name, alt), text)


# --- drift ------------------------------------------------------------------------------------------------------------


def drift_panel(rows: list[Snapshot], prefix: str) -> Panel:
    """Where the error has changed, and how far the features have moved."""
    name, title = f"{prefix}-drift", "Drift"
    blocks = error_blocks(rows)
    if len(blocks) < 2:
        return Panel(name, title, "", [_TOO_OLD.format("the number of errors") if is_old(rows) else _FEW_BLOCKS])
    changes, step = find_changes(blocks)
    shifts = [row for row in rows if not math.isnan(row.shift)]

    def plot(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True) if shifts else (figure.subplots(), None)
        edges = [blocks[0].start, *(block.n for block in blocks)]
        above.stairs([100 * block.n_errors / block.n_labels for block in blocks], edges, color=FIRST, linewidth=1.0)
        for change in changes:
            above.axvline(change.n, color=INK, linewidth=1.0, linestyle="-" if change.after > change.before else ":")
        above.set_ylabel("% wrong")
        if below is not None:
            _line(below, shifts, [row.shift for row in shifts], SECOND, "")
            below.set_ylabel("shift")
        (above if below is None else below).set_xlabel("records")
        for axes in (above, below) if below is not None else (above,):
            _plain(axes)
            _from_zero(axes)

    text = [_said_of_changes(changes), _how_found(blocks, step)]
    if shifts:
        text.append(
            f"Shift: the largest distance of a feature's running mean from that of the first events, in their "
            f"deviations, {shifts[-1].shift:.2f} at the end. It begins anew at each start of the trainer."
        )
    else:
        text.append('How far the features have moved is recorded with features.scale = "standard".')
    alt = f"Error between two points of the curve, over the records. {_said_of_changes(changes)}"
    return Panel(name, title, _picture(plot, name, alt), text)


def error_blocks(rows: Sequence[Snapshot]) -> list[Block]:
    """What was predicted from each row to the next."""
    known = [row for row in rows if not math.isnan(row.n_errors)]
    blocks = []
    if known and known[0].n_labels and known[0] is rows[0]:
        blocks.append(Block(0, known[0].n, int(known[0].n_labels), int(known[0].n_errors)))
    for before, after in pairwise(known):
        m, k = int(after.n_labels - before.n_labels), int(after.n_errors - before.n_errors)
        if m > 0:
            blocks.append(Block(before.n, after.n, m, k))
    return blocks


def find_changes(blocks: Sequence[Block]) -> tuple[list[Change], int]:
    """Where ADWIN (Bifet and Gavalda, 2007) finds that the error has changed, and that it was given one in so many.

    What it is given are the errors of each block, 0 or 1, spread evenly over the block, for their order is not kept.
    """
    step = -(-sum(block.n_labels for block in blocks) // MAX_SEEN)
    detector, ends, n_seen, wrong = ADWIN(), [0], 0, 0.0
    for i, (*_, m, k) in enumerate(blocks):
        first, n_seen = n_seen // step, n_seen + m
        has_changed = False
        for _ in range(n_seen // step - first):
            wrong += k / m
            is_wrong = wrong > 1.0 - 1e-9
            wrong -= is_wrong
            detector.update(float(is_wrong))
            has_changed |= detector.drift_detected
        if has_changed and i + 1 < len(blocks):
            ends.append(i + 1)
    errors = [_error_of(blocks[start:end]) for start, end in pairwise([*ends, len(blocks)])]
    return [Change(blocks[end - 1].n, *around) for end, around in zip(ends[1:], pairwise(errors), strict=True)], step


def _error_of(blocks: Sequence[Block]) -> float:
    return sum(block.n_errors for block in blocks) / sum(block.n_labels for block in blocks)


def _said_of_changes(changes: Sequence[Change]) -> str:
    if not changes:
        return "The error has not changed by more than chance explains."
    listed = "; ".join(
        f"from {change.before:.1%} to {change.after:.1%} at about {change.n:,} records" for change in changes[-LISTED:]
    )
    which = "" if len(changes) <= LISTED else f", {len(changes)} times, the last {LISTED}"
    return f"The error has changed{which}: {listed}."


def _how_found(blocks: Sequence[Block], step: int) -> str:
    n_labels = sum(block.n_labels for block in blocks)
    part = "" if step == 1 else f" (one in {step} of them)"
    return (
        "Vertical lines are where river's detector ADWIN finds a change: solid for the worse, dotted for the better. "
        f"It was run for this page over {n_labels:,} predictions{part} in {len(blocks):,} blocks. Their order "
        "inside a block is not stored, and was taken to be even. The first changes are often the model's learning."
    )


# --- drawing ----------------------------------------------------------------------------------------------------------


def _picture(plot: Plot, name: str, alt: str) -> str:
    def sized(figure: Any) -> None:
        figure.set_size_inches(WIDTH, HEIGHT)
        plot(figure)
        figure.set_figheight(HEIGHT if len(figure.axes) == 1 else 1.25 * HEIGHT)

    return draw_svg(sized, name, alt)


def _axes(figure: Any, x: str, y: str) -> Axes:
    axes = figure.subplots()
    axes.set(xlabel=x, ylabel=y)
    _plain(axes)
    return axes


def _plain(axes: Axes) -> None:
    """Numbers as people write them, and few of them."""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}" if value < 1e6 else f"{value / 1e6:,.6g} M")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.locator_params(axis="x", nbins=5)
    axes.locator_params(axis="y", nbins=5)


def _line(
    axes: Axes, rows: Sequence[Snapshot], values: Sequence[float], color: str, label: str, style: str = "-"
) -> None:
    _plot(axes, [row.n for row in rows], values, color, label, style)


def _plot(axes: Axes, x: Sequence[float], y: Sequence[float], color: str, label: str, style: str) -> None:
    if x:
        mark = "o" if len(x) <= FEW else ""
        y = np.clip(y, -_DRAWN, _DRAWN)  # type: ignore[assignment]
        axes.plot(x, y, color=color, label=label, linestyle=style, marker=mark, markersize=4)


def _from_zero(axes: Axes) -> None:
    right, top = (end if 0 < end < math.inf else 1.0 for end in axes.dataLim.max)  # infinite without data
    axes.set(xlim=(0, 1.03 * right), ylim=(0, 1.08 * top))
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
        axes.legend(handles, labels, ncols=2, handlelength=1.6, columnspacing=1.2, **place)
