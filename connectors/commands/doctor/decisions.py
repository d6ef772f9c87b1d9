"""What the doctor says about decisions: how much could be decided alone, if nothing is decided yet."""

from collections.abc import Iterator

import numpy as np

from ...runtime.findings import Finding, Findings
from ...settings.sections import Settings
from ...trainer.state.stored_state import readable_state

_ERRORS = (0.01, 0.02, 0.05)
_LEAST = 5  # wrong decisions of each class, from which a share says something


def check_decisions(settings: Settings) -> Findings:
    """For models of two classes: which share of the last labelled events could be decided alone."""
    if settings.decide.error or settings.log.questions or settings.label.vocabulary is not None:
        return
    for item in readable_state(settings.daemon.state_dir):  # another check says if it cannot be read
        metrics = item.checkpoint.part("metrics")
        if "margins" not in metrics:  # of more classes: the configuration is another one by now
            continue
        margins, labels = metrics["margins"], metrics["labels"].astype(bool)
        shares = [
            f"{share:.0%} alone at {error:.0%} error of each class"
            for error in _ERRORS
            for share in decidable(margins, labels, error)
        ]
        if shares:
            yield Finding.ok(f"p{item.number} could decide {', '.join(shares)}, of events like the last: see [decide]")


def decidable(margins: np.ndarray, labels: np.ndarray, error: float) -> Iterator[float]:
    """The share of these events that fixed thresholds decide, each of which excludes a class; nothing if they are few.

    The thresholds are the best ones in hindsight: of each class, this share is decided wrongly.
    """
    if error * min(labels.sum(), (~labels).sum()) < _LEAST:
        return
    lowest, highest = np.quantile(margins[labels], error), np.quantile(margins[~labels], 1.0 - error)
    yield float(np.mean(np.where(margins > 0, margins > highest, margins < lowest)))
