"""The sections [estimates] and [decide]: how the error of the model is estimated, and which predictions count."""

from dataclasses import dataclass

from . import checks
from .checks import key


@dataclass(frozen=True)
class EstimateSettings:
    """Estimates of the model's error on examples that it leaves out; see `streamsvm.validation.StreamingLOO`.

    Parameters
    ----------
    loo
        Whether to make leave-one-out estimates.
    folds
        Number of folds of the k-fold estimates, at least 2; 0: none are made.
    every
        Number of learned events between two estimates, at least 1; more if an estimate costs more than learning them.
    memory
        Number of learned events that an estimate remembers and predicts again, at least 1.
    keep
        Which events it remembers: the most ``"recent"`` ones, or a uniform ``"sample"`` of all.
    share
        Cost of each kind of estimate as a share of the cost of learning, at least 0.  A small estimate may cost more.
    """

    loo: bool = False
    folds: int = key(0, checks.zero_or_at_least(2))
    every: int = key(1000, checks.at_least(1))
    memory: int = key(500, checks.at_least(1))
    keep: str = key("recent", checks.one_of("recent", "sample"))
    share: float = key(0.1, checks.not_negative)


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
