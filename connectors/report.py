"""The outcome of a run: a table, and a picture of the learning curve, the support vectors and a 2-D boundary."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from .local_log import LocalLog
from .settings import Settings
from .state import State
from .wire import BadRecord, Event

Axes = Any  # matplotlib's, which is imported where it is used

N_READ = 20_000  # events looked through for support vectors
N_SHOWN = 300  # newest events drawn
GRID = 120  # points of the decision function, each way
POSITIVE, NEGATIVE = "#c44e52", "#4c72b0"


def table(states: Mapping[str, State]) -> str:
    """One line per stream: what was read, how well it was predicted, and what the model is now."""
    header = ("stream", "records", "error", "g-mean", "AUC", "PRBEP", "SVs", "kernel evals", "seconds", "model digest")
    lines = [header, *(_line(name, state) for name, state in states.items())]
    first, *others = (max(map(len, column)) for column in zip(*lines, strict=True))
    return "\n".join(f"{line[0]:{first}}" + "".join(map(_cell, line[1:], others)) for line in lines)


def _cell(text: str, width: int) -> str:
    return f"  {text:>{width}}"


def _line(name: str, state: State) -> tuple[str, ...]:
    scores = state.metrics.cumulative()
    return (
        name,
        f"{state.offset:,}",
        *("-" if math.isnan(score) else f"{score:.2%}" for score in scores[1:]),
        f"{sum(model.n_support for model in state.models.in_memory()):,}",
        f"{sum(model.kernel_evaluations for model in state.models.in_memory()):,}",
        f"{state.counters.seconds:.2f}",
        state.models.digest()[:12],
    )


class PlotMissing(RuntimeError):  # noqa: N818 - says what is missing
    """matplotlib is not installed."""


def draw(settings: Settings, state: State, path: Path) -> None:
    """Draw the run so far into a file, whose suffix chooses the format.

    Parameters
    ----------
    settings
        The configuration of the run; the newest events are read from its log.
    state
        Its state.
    path
        The file, which is replaced.

    Raises
    ------
    PlotMissing
        If matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise PlotMissing("pictures need matplotlib: pip install 'streamsvm[plot]'") from None

    events = list(_newest_events(settings, state.offset))
    features = sorted({name for event in events for name in event.x})
    n_panels = 3 if len(features) == 2 else 2
    figure = Figure(figsize=(5 * n_panels, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, n_panels)
    _draw_curve(panels[0], state, settings.daemon.window)
    _draw_support(panels[1], state)
    if n_panels == 3:
        _draw_boundary(panels[2], state, events, features)
    figure.suptitle(f"{settings.log.topic}: {state.offset} records")
    figure.savefig(path, dpi=120)


def _newest_events(settings: Settings, end: int) -> Iterator[Event]:
    codec = settings.codec()
    start = max(0, end - N_READ)
    with LocalLog(settings.log.dir) as log:
        log.seek(settings.log.topic, 0, start)
        for record in log.poll(0, end - start):
            try:
                yield codec.decode(record)
            except BadRecord:
                continue  # the daemon has put it aside already


def _draw_curve(axes: Axes, state: State, window: int) -> None:
    rows = state.history.rows
    n = [row.n for row in rows]
    axes.plot(n, [100 * row.error for row in rows], color=POSITIVE, label="error")
    axes.plot(n, [100 * (1 - row.g_mean) for row in rows], color=NEGATIVE, label="1 - g-mean")
    axes.set(title=f"last {window} labelled events", xlabel="records", ylabel="%", ylim=(0, None))
    axes.legend()


def _draw_support(axes: Axes, state: State) -> None:
    rows = state.history.rows
    axes.plot([row.n for row in rows], [row.n_support for row in rows], color="black")
    axes.set(title="support vectors", xlabel="records", ylim=(0, None))


def _draw_boundary(axes: Axes, state: State, events: list[Event], features: list[str]) -> None:
    """In the features' own coordinates: f = 0 and f = -1, +1, the newest events, the support vectors."""
    support = set(np.asarray(state.model.support_ids).tolist())
    all_points = _points(events, features)
    x, y = (np.linspace(column.min(), column.max(), GRID) for column in all_points.T)
    grid = [
        dict(zip(features, point, strict=True)) for point in np.stack(np.meshgrid(x, y), -1).reshape(-1, 2).tolist()
    ]
    rows = grid if state.scaler is None else [state.scaler.transform_one(point) for point in grid]
    f = state.model.decision_function_many(rows).reshape(GRID, GRID)
    axes.contourf(x, y, f > 0, levels=[-0.5, 0.5, 1.5], colors=[NEGATIVE, POSITIVE], alpha=0.12)
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
