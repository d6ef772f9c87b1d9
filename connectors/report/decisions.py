"""The panels about decisions: how those of each class fared, also along the stream, and what others would decide."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from streamsvm.conformal import ConformalClassifier

from ..trainer.state.decided import Decided, Point, shares
from ..trainer.state.stored_state import Stored
from .drawing import FIRST, INK, SECOND, THIRD, draw_curve, fit, new_axes, stacked
from .panel import Panel

_TEXT = (
    "An event is decided if one label is left. Only labelled events are counted here, each with what was said when it "
    "was predicted."
)
_PROMISED = "The last column is what is promised; with late labels, errors on their way come on top."
_ASKED = (
    "Only what people were asked about has labels: all events that were not decided, and {:.0%} of the others, at "
    "random. The shares are estimates for all events: each checked decision stands for {:.0f}."
)
_KEYS = "Each key has its own model, and its own promise."
_COURSE = (
    "Each point looks back over a tenth of the stream. The dotted line is `decide.error`. Over a short stretch, the "
    "errors of a class may lie above it."
)
_WOULD = (
    "What another `decide.error` would decide of events like the last 1000 labelled ones of each class, by fixed "
    "thresholds. The dot is the error in use."
)
_PARTS = 10  # of the course that a point looks back over
_ERRORS = np.geomspace(0.002, 0.3, 25).tolist()  # shares of each class that may go wrong
_COLORS = (FIRST, SECOND, THIRD)  # of the classes that are drawn, the most frequent ones


def decisions_panels(stored: Stored) -> list[Panel]:
    """The panels of a trainer that decides; none without [decide]."""
    decider = stored.models.single and stored.models.single.decider
    error, audit = stored.setting("decide.error"), stored.setting("labelling.audit") or 1.0
    if not error:
        return []
    decided = Decided(stored.classes, decider.tallies if decider else None)
    decided.restore(stored.checkpoint.part("decided"))
    panels = [_fared(stored, decided, decider, audit)]
    points = [*decided.course.rows, Point(stored.checkpoint.offsets["events"], decided.tallies)]
    if len(points) > 1:
        panels.append(_course(stored, points, error, audit))
    if decider is not None and audit == 1.0 and not math.isnan(decider.would_decide(error)):
        panels.append(_would(decider))
    return panels


def _fared(stored: Stored, decided: Decided, decider: ConformalClassifier | None, audit: float) -> Panel:
    """A table of the classes."""
    tallies = {label: tally for label, tally in decided.tallies.items() if tally.n}
    rows = []
    for label, tally in tallies.items():
        of_class, wrong = shares([tally], audit)
        shown = (f"{tally.decided:,} ({of_class:.1%})", f"{tally.wrong:,} ({wrong:.2%})")
        promised = decider.promised(tally.n) if decider and audit == 1.0 else None
        most = [] if promised is None else [f"{promised:,.0f} ({min(1.0, promised / tally.n):.2%})"]
        rows.append((_name_of(stored, label)[:60], f"{tally.n:,}", *shown, *most))
    share, _ = shares(tallies.values(), audit)
    facts = [
        ("decided", "–" if math.isnan(share) else f"{share:.1%}"),
        ("wrong in the long run", f"at most {stored.setting('decide.error'):.1%} of each class"),
    ]
    more = _ASKED.format(audit, 1 / audit) if audit < 1.0 else _PROMISED if decider else _KEYS
    head = ("class", "labelled", "decided", "wrong", "at most wrong")[: len(rows[0]) if rows else None]
    return Panel("decisions", "Decisions", [_TEXT, more], table=[head, *rows], facts=facts)


def _course(stored: Stored, points: Sequence[Point], error: float, audit: float) -> Panel:
    """The share decided, and the errors of each class, along the stream."""
    back = -(-len(points) // _PARTS)
    spans = [(points[max(0, i - back)], point) for i, point in enumerate(points)][1:]
    n = [after.n for _, after in spans]
    common = sorted(points[-1].tallies, key=lambda label: -points[-1].tallies[label].n)[: len(_COLORS)]

    def plot(figure: Any) -> None:
        above, below = stacked(figure, "records", "% decided", "% of class wrong")
        share = [100 * shares(_between(*span), audit)[0] for span in spans]
        draw_curve(above, n, share, INK, "", "-")
        for label, color in zip(common, _COLORS, strict=False):
            wrong = [100 * shares(_between(*span, label), audit)[1] for span in spans]
            draw_curve(below, n, wrong, color, _name_of(stored, label)[:20], "-")
        below.axhline(100 * error, color=INK, linewidth=0.8, linestyle=":")
        for axes in (above, below):
            fit(axes, zoom=False)

    share, wrong = shares(points[-1].tallies.values(), audit)
    alt = f"Share decided and errors of each class over the records; in all {share:.1%} decided, {wrong:.2%} wrongly."
    return Panel("decided", "Decisions along the stream", [_COURSE], plot, alt)


def _between(before: Point, after: Point, *labels: Any) -> list[Any]:
    """What was counted from one point to another, of these classes, or of all."""
    found = []
    for label in labels or after.tallies:
        new, old = after.tallies.get(label), before.tallies.get(label)
        if new is not None:
            found.append(new if old is None else type(new)(*(a - b for a, b in zip(new, old, strict=True))))
    return found


def _would(decider: ConformalClassifier) -> Panel:
    """The share decided against the error."""
    shares = [100 * decider.would_decide(error) for error in _ERRORS]
    in_use = decider.error, 100 * decider.would_decide(decider.error)

    def plot(figure: Any) -> None:
        axes = new_axes(figure, "% of each class wrong", "% decided")
        draw_curve(axes, [100 * error for error in _ERRORS], shares, FIRST, "", "-")
        axes.plot(100 * in_use[0], in_use[1], "o", color=INK)
        fit(axes, zoom=False)

    alt = f"The share decided against the error of each class: {in_use[1]:.0f} % at {in_use[0]:.1%}."
    return Panel("would", "More decisions or fewer errors", [_WOULD], plot, alt)


def _name_of(stored: Stored, label: Any) -> str:
    if not isinstance(label, bool):
        return str(label)
    side = "positive" if label else "negative"
    return stored.setting(f"label.{side}") or side
