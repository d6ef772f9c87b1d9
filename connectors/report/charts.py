"""Tables for the terminal, and pictures in files: a run's curve and boundary, and the heat map of a grid search."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streamsvm.validation import Interval, Search

from ..logs.embedded import LocalLog
from ..records.codec import Event, readable
from ..runtime.libraries import needing
from ..runtime.text import aligned
from ..settings.sections import Settings
from ..trainer.state.decided import shares
from ..trainer.state.estimates import FOLDS, LOO, Estimate, Estimates
from ..trainer.state.state import State

Axes = Any  # matplotlib's; matplotlib is optional, and imported where it is used

N_READ = 20_000  # newest events, among which the support vectors are looked for
N_SHOWN = 300  # newest events drawn
GRID = 120  # points of the decision function in each direction
POSITIVE, NEGATIVE = "#c44e52", "#4c72b0"


def table(states: Mapping[str, State]) -> str:
    """A line for each stream: its records, its scores and its model."""
    scores = {name: state.metrics.summary() for name, state in states.items()}
    kinds = list(dict.fromkeys(kind for found in scores.values() for kind in found))
    header = ("stream", "records", *kinds, "SVs", "kernel evals", "seconds", "model digest")
    told = {name: {} if predicts_early(state) else scores[name] for name, state in states.items()}
    return aligned(
        [header, *(_line(name, state, [told[name].get(kind) for kind in kinds]) for name, state in states.items())]
    )


def predicts_early(state: State) -> bool:
    """Whether most labels are answers, which come long after the predictions: these say nothing about the model."""
    return state.labelling is not None and are_early(state.labelling.loop.counts.n_answered, state.metrics.n)


def are_early(n_answered: int, n_labels: int) -> bool:
    """Whether answers are most of the labels."""
    return 2 * n_answered > n_labels


def _line(name: str, state: State, scores: Sequence[float | None]) -> tuple[str, ...]:
    sizes = state.models.sizes()
    return (
        name,
        f"{state.offset:,}",
        *("-" if score is None or math.isnan(score) else f"{score:.2%}" for score in scores),
        f"{sizes.n_support:,}",
        f"{sizes.kernel_evaluations:,}",
        f"{state.counters.seconds:.2f}",
        state.models.digest()[:12] if state.models.single else f"{len(state.models):,} models",
    )


def draw(settings: Settings, state: State, path: Path) -> None:
    """Draw the run so far into a file; the file's suffix selects the format.

    Parameters
    ----------
    settings
        The configuration of the run; its embedded log holds the newest events.
    state
        The run's state.
    path
        The file to write.

    Raises
    ------
    LibraryMissing
        If matplotlib is not installed.
    """
    figure = new_figure()
    events = list(_newest_events(settings, state.offset))
    features = sorted({name for event in events for name in event.x})
    n_panels = 3 if len(features) == 2 and not settings.features.raw else 2
    figure.set_size_inches(5 * n_panels, 4.2)
    panels = figure.subplots(1, n_panels)
    _draw_curve(panels[0], state, settings.daemon.window)
    _draw_support(panels[1], state)
    if n_panels == 3:
        _draw_boundary(panels[2], state, events, features)
    figure.suptitle(f"{settings.log.topic}: {state.offset} records")
    figure.savefig(path, dpi=120)


def new_figure() -> Any:
    """An empty figure of matplotlib; raises `LibraryMissing` without matplotlib."""
    with needing("pictures need matplotlib", "plot"):
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    figure = Figure(layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _newest_events(settings: Settings, end: int) -> Iterator[Event]:
    codec = settings.codec()
    start = max(0, end - N_READ)
    with LocalLog(settings.log.dir) as log:
        log.seek(settings.log.topic, 0, start)
        for _, event in readable(log.poll(0, end - start), codec.decode):
            yield event


def _draw_curve(axes: Axes, state: State, window: int) -> None:
    rows = state.history.rows
    n = [row.n for row in rows]
    axes.plot(n, [100 * row.error for row in rows], color=POSITIVE, label="error")
    axes.plot(n, [100 * (1 - row.g_mean) for row in rows], color=NEGATIVE, label="1 - g-mean")
    if state.estimates:
        _draw_estimates(axes, state.estimates)
    axes.set(title=f"last {window} labelled events", xlabel="records", ylabel="%", ylim=(0, None))
    axes.legend()


def _draw_estimates(axes: Axes, estimates: Estimates) -> None:
    """Estimates of the error of the model itself, beside the error of its predictions."""
    for kind, label, color in ((LOO, "leave-one-out error", "black"), (FOLDS, "error by folds", "#55a868")):
        draw_intervals(axes, [item for item in estimates.history if item.kind == kind], label, color, ".")


def draw_intervals(axes: Axes, items: Sequence[Estimate], label: str, color: str, mark: str) -> None:
    """Draw estimates as points, with the intervals in which the errors are."""
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


def bounded(found: Interval) -> str:
    """A share and its bounds, if it has some."""
    value, low, high = found
    return f"{value:.2%}" + (f" (between {low:.2%} and {high:.2%})" if high > low else "")


def estimates_of(states: Mapping[str, State]) -> list[str]:
    """A line of text for the newest estimate of each kind."""
    lines = []
    for name, state in states.items():
        for item in state.estimates.latest.values() if state.estimates else ():
            kind = "leave-one-out" if item.kind == LOO else "folds"
            break_even = "" if math.isnan(item.prbep.value) else f", PRBEP {item.prbep.value:.2%}"
            lines.append(
                f"{kind} error of {name}, after {item.offset:,} records: {bounded(item.error)}, "
                f"g-mean {item.g_mean.value:.2%}{break_even}, from {item.n} events"
            )
    return lines


def decisions_of(states: Mapping[str, State], settings: Settings) -> list[str]:
    """A line of text for the decisions on each class whose labels have come."""
    audit = settings.audit
    about, by = ("about ", "by the labels of") if audit < 1.0 else ("", "of")
    return [
        f"decided of {name}, class {settings.label.shown_as(label)}: {about}{alone:.2%} {by} {tally.n:,} events, "
        f"{about}{wrong:.2%} wrongly{_promised(state, tally.n) if audit == 1.0 else ''}"
        for name, state in states.items()
        for label, tally in state.decided.tallies.items()
        for alone, wrong in [shares([tally], audit)]
        if tally.n
    ]


def _promised(state: State, n: int) -> str:
    """What is promised of n labelled events of a class, if one model decides them all."""
    decider = state.models.single and state.models.single.decider
    return f", at most {min(1.0, decider.promised(n) / n):.2%} promised" if decider else ""


def _draw_support(axes: Axes, state: State) -> None:
    rows = state.history.rows
    axes.plot([row.n for row in rows], [row.n_support for row in rows], color="black")
    axes.set(title="support vectors", xlabel="records", ylim=(0, None))


def _draw_boundary(axes: Axes, state: State, events: list[Event], features: list[str]) -> None:
    """Draw f = -1, 0, +1, the newest events and the support vectors, in the features' own units."""
    support = set(np.asarray(state.model.support_ids).tolist())
    all_points = _points(events, features)
    x, y = (np.linspace(column.min(), column.max(), GRID) for column in all_points.T)
    grid = [
        dict(zip(features, point, strict=True)) for point in np.stack(np.meshgrid(x, y), -1).reshape(-1, 2).tolist()
    ]
    f = state.model.decision_function_many(state.rows(grid, None)).reshape(GRID, GRID)
    axes.contourf(
        x, y, f > state.model.decision_threshold, levels=[-0.5, 0.5, 1.5], colors=[NEGATIVE, POSITIVE], alpha=0.12
    )
    axes.contour(x, y, f, levels=[-1, 0, 1], colors="black", linewidths=[0.6, 1.4, 0.6], linestyles=["--", "-", "--"])
    for label, color in ((True, POSITIVE), (False, NEGATIVE)):
        shown = _points([event for event in events[-N_SHOWN:] if event.y is label], features)
        axes.scatter(shown[:, 0], shown[:, 1], s=9, color=color)
    kept = _points([event for event in events if event.key in support], features)
    axes.scatter(kept[:, 0], kept[:, 1], s=22, facecolors="none", edgecolors="black", linewidths=0.5)
    axes.set(
        title=f"boundary, {len(kept)} support vectors, {N_SHOWN} newest events", xlabel=features[0], ylabel=features[1]
    )


def _points(events: list[Event], features: list[str]) -> np.ndarray:
    return np.array([[event.x.get(name, 0.0) for name in features] for event in events]).reshape(-1, len(features))


# --- grids ------------------------------------------------------------------------------------------------------------


def require_picture(path: Path) -> None:
    """Raise `LibraryMissing` without matplotlib, and `ValueError` if it cannot write the format of this suffix."""
    formats = new_figure().canvas.get_supported_filetypes()
    if path.suffix[1:].lower() not in formats:
        raise ValueError(f"{path}: the suffix {path.suffix!r} is not that of a picture; use .png, .pdf or .svg")


def draw_grid(search: Search, path: Path | str, metric: str = "score") -> None:
    """Draw the scores of a grid search as a heat map into a file; the file's suffix selects the format.

    Brighter cells are better, and a frame marks the best setting.

    Parameters
    ----------
    search
        Result of `streamsvm.validation.grid_search`.
    path
        The file to write.
    metric
        Name of the scores.

    Raises
    ------
    LibraryMissing
        If matplotlib is not installed.
    """
    figure = new_figure()
    figure.set_size_inches(2.2 + 0.62 * len(search.gammas), max(2.6, 1.3 + 0.36 * len(search.Cs)))
    axes = figure.add_subplot()
    shown = np.ma.masked_invalid(search.scores)
    colors = "viridis" if search.greater_is_better else "viridis_r"  # ordered for the colour-blind, too, and in grey
    image = axes.imshow(shown, cmap=colors, origin="lower", aspect="auto")
    axes.set_facecolor("lightgrey")  # cells without a score
    axes.set_xticks(range(len(search.gammas)), axis_labels(search.gammas, "${}^{{{}}}$"))
    axes.set_yticks(range(len(search.Cs)), axis_labels(search.Cs, "${}^{{{}}}$"))
    axes.set(xlabel="gamma", ylabel="C")
    _write_scores(axes, image, search)
    if not np.isnan(search.scores).all():
        _frame(axes, search)
    figure.colorbar(image, label=f"mean {metric}")
    figure.savefig(path, dpi=120)


def _write_scores(axes: Axes, image: Any, search: Search) -> None:
    """Write each score into its cell, in black on bright colours and in white on dark ones."""
    for (row, column), score in np.ndenumerate(search.scores):
        red, green, blue, _ = image.to_rgba(score)
        is_bright = 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.4 or math.isnan(score)
        text = "-" if math.isnan(score) else f"{score:.3f}"
        axes.text(column, row, text, ha="center", va="center", fontsize=8, color="black" if is_bright else "white")


def _frame(axes: Axes, search: Search) -> None:
    """Frame the best cell in white and black, so that the frame is visible on any colour."""
    row, column = search.Cs.index(search.best.C), search.gammas.index(search.best.gamma)
    x, y = column + np.array([-1, 1, 1, -1, -1]) / 2, row + np.array([-1, -1, 1, 1, -1]) / 2
    for color, width in (("white", 5), ("black", 2.5)):
        axes.plot(x, y, color=color, linewidth=width, solid_joinstyle="miter", clip_on=False)


def axis_labels(values: Sequence[float], power: str = "{}^{}") -> list[str]:
    """The values as text; as powers of 2 or of 10 if all of them are.

    Parameters
    ----------
    values
        Positive numbers.
    power
        Format of a power, from base and exponent.
    """
    if len(values) > 1:
        for base in (2, 10):
            exponents = [math.log(value, base) for value in values]
            if all(abs(exponent - round(exponent)) < 1e-9 for exponent in exponents):
                return [power.format(base, round(exponent)) for exponent in exponents]
    return [f"{value:.4g}" for value in values]
