"""What the learners of the gap family share: no bias, the gap, and how they finish."""

from streamsvm.core import arguments
from streamsvm.core.expansion import GAP, REPROCESSED
from streamsvm.estimators.learner.classifier import DEFAULT_RAMP_S, OnlineSVM
from streamsvm.estimators.learner.finishing import Solver
from streamsvm.online import gap
from streamsvm.online.cccp import sparsify
from streamsvm.online.finish import WithoutBias, finish_without_bias


class GapSVM(OnlineSVM):
    """What LASVM-G, LASVM-NC, LASVM-I and FULL share."""

    _rule: gap.Rule

    def _set_rule(
        self,
        steps: str,
        clean_every: int = 0,
        max_non_sv: int = 0,
        ramp: int = gap.CONVEX,
        ramp_s: float = DEFAULT_RAMP_S,
        ramp_warmup: int = 0,
    ) -> None:
        if steps not in ("pair", "single"):
            raise ValueError(f'steps={steps!r} must be "pair" or "single"')
        arguments.require_count("max_non_sv", max_non_sv, 0)
        arguments.require_at_most_1("ramp_s", ramp_s)
        arguments.require_count("ramp_warmup", ramp_warmup, 0)
        self._rule = gap.Rule(
            tau=float(self.tol),
            joint=steps == "pair",
            clean_every=clean_every,
            max_non_sv=int(max_non_sv),
            ramp=ramp,
            ramp_s=float(ramp_s),
            ramp_warmup=int(ramp_warmup),
        )

    @property
    def bias(self) -> float:
        """The constant term of the decision function, which is always 0."""
        return 0.0

    @property
    def _problem(self) -> WithoutBias:
        return WithoutBias()

    @property
    def gap(self) -> float:
        """The primal-dual gap of the problem over the members: the objective is at most this far from its optimum.

        The objective is 1/2 ||w||² plus the sum of C_i times each member's loss.  It grows with `C` and with the number
        of members, and so does the gap.  `finish` closes it.
        """
        return float(self._expansion.losses[GAP])

    @property
    def delta(self) -> float:
        """The largest violation among the members: how far a gradient points out of its box; 0 if none does."""
        return max(0.0, WithoutBias().violation(self._expansion))

    @property
    def n_reprocess(self) -> int:
        """Number of steps on members that learning has taken, without those of new examples and of `finish`."""
        return int(self._expansion.counts[REPROCESSED])

    @property
    def _members_to_keep(self) -> int | None:
        return self._rule.max_non_sv if self._rule.clean_every else None

    def _solver(self, tol: float) -> Solver:
        return lambda s: finish_without_bias(s, self._kernel, tol, self._members_to_keep)

    def _sparsify(self, tol: float, ramp_s: float) -> None:
        steps = self._solve(lambda s: sparsify(s, self._kernel, tol, self._members_to_keep, ramp_s))
        self._warn_unless_reached(tol, WithoutBias().violation(self._expansion), steps)
