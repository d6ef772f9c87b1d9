"""The panel about decisions: how those of each class fared."""

from typing import Any

from ..trainer.state.models import SingleModel
from ..trainer.state.stored_state import Stored
from .panel import Panel

_TEXT = (
    "An event is decided if one label is left. Only labelled events are counted here, each with what was said when it "
    "was predicted. The last column is what is promised; with late labels, errors on their way come on top."
)


def decisions_panels(stored: Stored, prefix: str) -> list[Panel]:
    """A panel with the decisions of a single model; none without [decide], or if each key has a model."""
    decider = stored.models.decider(None) if isinstance(stored.models, SingleModel) else None
    if decider is None:
        return []
    tallies = {label: tally for label, tally in decider.tallies.items() if tally.n}
    rows = [
        (
            _name_of(stored, label)[:60],
            f"{tally.n:,}",
            f"{tally.decided:,} ({tally.decided / tally.n:.1%})",
            f"{tally.wrong:,} ({tally.wrong / tally.n:.2%})",
            f"{decider.promised(tally.n):,.0f}",
        )
        for label, tally in tallies.items()
    ]
    n, decided = (sum(getattr(tally, name) for tally in tallies.values()) for name in ("n", "decided"))
    facts = [("decided", f"{decided / n:.1%}" if n else "–"), ("at most wrong", f"{decider.error:.1%} of each class")]
    head = ("class", "labelled", "decided", "wrong", "at most wrong")
    return [Panel(f"{prefix}-decisions", "Decisions", "", [_TEXT], [head, *rows], facts)]


def _name_of(stored: Stored, label: Any) -> str:
    if not isinstance(label, bool):
        return str(label)
    side = "positive" if label else "negative"
    return stored.setting(f"label.{side}") or side
