"""What the learners of the gap family share: no bias, the gap, and how they finish."""

from streamsvm.core.expansion import GAP, REPROCESSED
from streamsvm.estimators.learner.classifier import DEFAULT_RAMP_S, OnlineSVM
from streamsvm.online import gap
from streamsvm.online.finish import WithoutBias


class GapSVM(OnlineSVM):
    """What LASVM-G, LASVM-NC, LASVM-I and FULL share.  Here nothing is forgotten, and there is no ramp."""

    steps: str
    clean_every = max_non_sv = ramp_warmup = 0
    ramp_s = DEFAULT_RAMP_S
    _ramp = gap.CONVEX

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.steps not in ("pair", "single"):
            raise ValueError(f'steps={self.steps!r} must be "pair" or "single"')
        most, ramp = int(self.max_non_sv), (self._ramp, float(self.ramp_s), int(self.ramp_warmup))
        self._state.rule = gap.Rule(float(self.tol), self.steps == "pair", int(self.clean_every), most, *ramp)
        self._state.problem = WithoutBias(most if self.clean_every else None)

    @property
    def gap(self) -> float:
        """The primal-dual gap of the problem over the members: the objective is at most this far from its optimum.

        The objective is 1/2 ||w||² plus the sum of C_i times each member's loss.  It grows with `C` and with the number
        of members, and so does the gap.  `finish` closes it.
        """
        return float(self._state.expansion.losses[GAP])

    @property
    def delta(self) -> float:
        """The largest violation among the members: how far a gradient points out of its box; 0 if none does."""
        return max(0.0, WithoutBias().violation(self._state.expansion))

    @property
    def n_reprocess(self) -> int:
        """Number of steps on members that learning has taken, without those of new examples and of `finish`."""
        return int(self._state.expansion.counts[REPROCESSED])
