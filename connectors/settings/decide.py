"""The section [decide]: which predictions count as decisions."""

from dataclasses import dataclass

from . import checks
from .checks import key


@dataclass(frozen=True)
class DecideSettings:
    """Decisions with a guarantee; see `streamsvm.conformal.ConformalClassifier`.

    Each prediction then says whether it is decided, and which labels are left.  With `log.questions` and
    ``labelling.selection = "undecided"``, the trainer asks people about what it does not decide, and checks a share of
    its decisions.

    Parameters
    ----------
    error
        Largest share of the labelled events of each class that may be decided wrongly, at most 0.5.  0: nothing is
        decided.
    """

    error: float = key(0.0, checks.up_to_a_half)
