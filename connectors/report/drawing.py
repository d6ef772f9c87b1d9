"""Pictures inside the report's page: SVG in the page's colours, for light and dark."""

import html
import io
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..trainer.state.quality.prequential import Snapshot
from .charts import new_figure
from .panel import Plot

Axes = Any  # matplotlib's

WIDTH, HEIGHT = 4.4, 2.9  # inches, each 72 units of the picture
_MARKED = 3  # curves with so few points show each point

_LEAST_SPAN = 0.02  # of the values: smaller changes do not fill the picture

_DRAWN = 1e300  # larger numbers are drawn as this one, so that differences and margins stay finite
# Stand-ins for colours: `_for_page` replaces them by the names that the page's style sheet gives the colours.
INK, SOFT, LINE, FIRST, SECOND, THIRD = "#010101", "#020202", "#030303", "#040404", "#050505", "#060606"
_VARIABLES = {INK: "ink", SOFT: "soft", LINE: "line", FIRST: "first", SECOND: "second", THIRD: "third"}
_PAGE_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text, in the page's font
    "svg.hashsalt": "streamsvm",  # equal pictures get equal ids inside
    "font.size": 11.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "legend.frameon": False,
    "legend.labelcolor": INK,
}


def draw_svg(plot: Plot, name: str, alt: str) -> str:
    """A picture as an SVG element for the page.

    Parameters
    ----------
    plot
        Draws on an empty figure of matplotlib.
    name
        Name of the picture, unique on the page.
    alt
        Description of the picture, for screen readers.

    Raises
    ------
    LibraryMissing
        If matplotlib is not installed.
    """
    figure = new_figure()
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context(_PAGE_STYLE):
        plot(figure)
        figure.savefig(
            file, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    return _for_page(file.getvalue(), name, alt)


def _for_page(document: str, name: str, alt: str) -> str:
    """Turn an SVG document of matplotlib into an element of a page: without its own size, font, colours and ids."""
    found = re.search(r'<svg[^>]*(viewBox="[^"]*")[^>]*>(.*)</svg>', document, re.DOTALL)
    assert found
    body = re.sub(r"<metadata>.*?</metadata>", "", found[2], flags=re.DOTALL)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'(url\(#|href="#)', rf"\1{name}-", body)
    body = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font-size: \1", body)
    for color, variable in _VARIABLES.items():
        body = body.replace(color, f"var(--{variable})")
    return f'<svg {found[1]} role="img" aria-label="{html.escape(alt)}">{body.strip()}</svg>'


def picture(plot: Plot, name: str, alt: str) -> str:
    def sized(figure: Any) -> None:
        figure.set_size_inches(WIDTH, HEIGHT)
        plot(figure)
        figure.set_figheight(HEIGHT if len(figure.axes) == 1 else 1.25 * HEIGHT)

    return draw_svg(sized, name, alt)


def new_axes(figure: Any, x: str, y: str) -> Axes:
    return stacked(figure, x, y)[0]


def stacked(figure: Any, x: str, *ys: str) -> list[Axes]:
    """Axes above one another, with these names at their sides, and a common one below."""
    rows = list(figure.subplots(len(ys), 1, sharex=True, squeeze=False)[:, 0])
    for axes, y in zip(rows, ys, strict=True):
        axes.set_ylabel(y)
    rows[-1].set_xlabel(x)
    return rows


def _set_numbers(axes: Axes) -> None:
    """Few numbers, with separators of thousands."""
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}" if value < 1e6 else f"{value / 1e6:,.6g} M")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.locator_params(axis="x", nbins=5)
    axes.locator_params(axis="y", nbins=5)


def draw_line(
    axes: Axes, rows: Sequence[Snapshot], values: Sequence[float], color: str, label: str, style: str = "-"
) -> None:
    draw_curve(axes, [row.n for row in rows], values, color, label, style)


def draw_curve(axes: Axes, x: Sequence[float], y: Sequence[float], color: str, label: str, style: str) -> None:
    if x:
        mark = "o" if len(x) <= _MARKED else ""
        y = np.clip(y, -_DRAWN, _DRAWN)  # type: ignore[assignment]
        axes.plot(x, y, color=color, label=label, linestyle=style, marker=mark, markersize=4)


def draw_band(axes: Axes, x: Sequence[float], low: Sequence[float], high: Sequence[float]) -> None:
    """Fill the space between the bounds of an interval."""
    if x:
        axes.fill_between(x, low, high, color=FIRST, alpha=0.25, linewidth=0, label="95 % interval")


def fit(axes: Axes, zoom: bool = True) -> None:
    """Scale and number the axes, and place the legend above.

    Parameters
    ----------
    axes
        On which everything was drawn.
    zoom
        Scale to what changes: the values need not begin at 0 where this would squeeze their changes into less than
        half of the picture, and the first twentieth of a run, in which a model learns the most, may lie outside.
        False: begin at 0, as counts should.
    """
    _set_numbers(axes)
    right, top = (end if 0 < end < math.inf else 1.0 for end in axes.dataLim.max)  # infinite without data
    low, high = _range(axes, right / 20) if zoom else (0.0, top)
    if not low <= high:
        low, high = 0.0, top
    span = max(high - low, abs(high) * _LEAST_SPAN)
    bottom = 0.0 if 0 <= low <= high / 2 else low - 0.15 * span
    axes.set(xlim=(0, 1.03 * right), ylim=(bottom, high + 0.08 * ((high - bottom) or 1.0)))
    handles, labels = axes.get_legend_handles_labels()
    if labels:
        place = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
        axes.legend(handles, labels, ncols=2, handlelength=1.6, columnspacing=1.2, **place)


def _range(axes: Axes, start: float) -> tuple[float, float]:
    """The smallest and the largest value drawn from `start` on; infinite the wrong way round if there is none."""
    found = [line.get_xydata() for line in axes.get_lines()]
    found += [path.vertices for item in axes.collections for path in item.get_paths()]
    found += [np.column_stack((patch.get_data().edges[1:], patch.get_data().values)) for patch in axes.patches]
    points = np.concatenate([np.asarray(item, float).reshape(-1, 2) for item in found] or [np.empty((0, 2))])
    values = points[(points[:, 0] >= start) & np.isfinite(points).all(1), 1]
    return float(values.min(initial=math.inf)), float(values.max(initial=-math.inf))
