"""What the learners of the gap family share: no bias, the gap, and how they finish."""

from streamsvm.core import arguments
from streamsvm.core.expansion import GAP, REPROCESSED
from streamsvm.estimators.learner.classifier import DEFAULT_RAMP_S, OnlineSVM
from streamsvm.online import gap
from streamsvm.online.finish import WithoutBias

NO_RAMP = gap.CONVEX, DEFAULT_RAMP_S, 0  # fields of `gap.Rule`


class GapSVM(OnlineSVM):
    """What LASVM-G, LASVM-NC, LASVM-I and FULL share."""

    def _set_rule(
        self, steps: str, clean_every: int = 0, max_non_sv: int = 0, ramp: tuple[int, float, int] = NO_RAMP
    ) -> None:
        if steps not in ("pair", "single"):
            raise ValueError(f'steps={steps!r} must be "pair" or "single"')
        arguments.require_count("max_non_sv", max_non_sv, 0)
        self._state.rule = gap.Rule(float(self.tol), steps == "pair", clean_every, int(max_non_sv), *ramp)
        self._state.problem = WithoutBias(int(max_non_sv) if clean_every else None)

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
