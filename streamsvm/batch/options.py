"""The options of the batch solver: one checked object, from `smo.solve` down to the compiled loop."""

from dataclasses import dataclass, replace

from streamsvm.batch.steps.pairs import MAX_PLANNING, Rule
from streamsvm.core import arguments
from streamsvm.core.device.choice import require_device
from streamsvm.core.rounding import ROUNDS

STEPS_PER_EXAMPLE = 20_000  # pair steps, after which only rounding still moves
FEW_STEPS = 100  # pair steps for each example, after which a fast solver leaves a problem to a careful one


@dataclass(frozen=True, kw_only=True)
class SolverOptions:
    """How to solve a problem: to which tolerance, with which means, and when to stop.

    The options change how soon a solution is found.  Only `tol` changes how exact it is.

    Parameters
    ----------
    tol
        Stopping tolerance: the largest violation of the optimality conditions by a pair; positive.
    cache_mb
        Megabytes for kernel rows.
    device
        Where kernel rows are computed: ``"cpu"``, ``"cuda"`` or ``"auto"``, see `streamsvm.batch.RowStore`.
    planning
        Number of recent working sets that a planning-ahead step chooses from; 0 (plain steps) to 3.  The source
        recommends 1; 2 takes 15 % fewer steps on the chess board, and 7 % more on tic-tac-toe.
    over_step
        Factor on the Newton step of a pair that is not planned; at least 1 and below 2.  1.1 saves a few steps on
        most problems.
    newton
        Whether to take Newton steps on the free set.
    shrinking
        Whether to set bounded examples aside while the others are solved.
    max_iterations
        Limit on the pair steps.  None: 20,000 per example.
    max_passes
        Limit on the passes of `working_set` over all examples: some ten are usual.

    Raises
    ------
    ValueError
        If a value is out of its range.

    Examples
    --------
    >>> SolverOptions(tol=1e-6).planning
    2
    """

    tol: float = 1e-3
    cache_mb: float = 256.0
    device: str = "cpu"
    planning: int = 2
    over_step: float = 1.0
    newton: bool = True
    shrinking: bool = True
    max_iterations: int | None = None
    max_passes: int = ROUNDS

    def __post_init__(self) -> None:
        arguments.require_positive("tol", self.tol)
        arguments.require_cache(self.cache_mb)
        require_device(self.device)
        arguments.require_count("planning", self.planning, 0)
        if self.planning > MAX_PLANNING:
            raise ValueError(f"planning={self.planning!r} must be at most {MAX_PLANNING}")
        if not arguments.is_number(self.over_step) or not 1.0 <= self.over_step < 2.0:  # from 2 on a step would lose
            raise ValueError(f"over_step={self.over_step!r} must be at least 1 and below 2")
        for name in ("newton", "shrinking"):
            arguments.require_bool(name, getattr(self, name))
        arguments.require_count("max_passes", self.max_passes, 1)
        if self.max_iterations is not None:
            arguments.require_count("max_iterations", self.max_iterations, 0)

    @property
    def rule(self) -> Rule:
        """The part of the options that compiled code needs."""
        return Rule(float(self.tol), int(self.planning), float(self.over_step))

    def left(self, n: int, steps: int, tol: float | None = None) -> "SolverOptions":
        """The options after so many pair steps of a problem of n examples, and perhaps with another tolerance."""
        return replace(self, max_iterations=self.limit(n) - steps, tol=self.tol if tol is None else tol)

    def limit(self, n: int) -> int:
        """The number of pair steps after which a problem of n examples is given up."""
        return STEPS_PER_EXAMPLE * n if self.max_iterations is None else int(self.max_iterations)


DEFAULTS = SolverOptions()
