"""`Fold`: what one split of a cross-validation comes to."""

from typing import NamedTuple

import numpy as np

from streamsvm.batch.solution import CONVERGED


class Fold(NamedTuple):
    """The outcome of one split.

    Attributes
    ----------
    test
        Numbers of the tested examples.
    decision_values
        Decision values of the tested examples, by a model that has not seen them.  NaN where ``values=False`` and a
        bound gave the sign.
    predictions
        Whether the tested examples are predicted positive, as bool.
    start
        Where the training started: a seeding, ``"full"`` or ``"cold"``.  A fold that needed no training has
        ``"copied"``, ``"training error"`` or ``"xi-alpha"``.
    status
        Why the solver stopped: ``"converged"`` (it reached the tolerance), ``"max_iterations"``, or
        ``"no_progress"`` (no step changed anything any more).  A fold that needed no training has the status of the
        full solution.
    events
        Events of an exact path, also of one that was given up.
    iterations, newton_steps, rows_computed, kernel_evaluations
        Cost of the training; kernel rows that were cached cost nothing.  The iterations of a `SmoothSVM` are Newton
        steps.
    n_support
        Number of support vectors of the model.
    seconds
        Wall-clock time.
    """

    test: np.ndarray
    decision_values: np.ndarray
    predictions: np.ndarray
    start: str
    status: str
    n_support: int
    events: int = 0
    iterations: int = 0
    newton_steps: int = 0
    rows_computed: int = 0
    kernel_evaluations: int = 0
    seconds: float = 0.0

    @classmethod
    def of(cls, test: np.ndarray, f: np.ndarray, start: str, status: str, coef: np.ndarray, **costs: int) -> "Fold":
        """The outcome with these decision values of the tests, and these coefficients of all examples."""
        return cls(test, f, f > 0.0, start, status, int(np.count_nonzero(coef)), **costs)

    @property
    def converged(self) -> bool:
        """Whether the solver reached the tolerance."""
        return self.status == CONVERGED

    def __repr__(self) -> str:
        return (
            f"Fold({len(self.test)} tested, start={self.start!r}, status={self.status!r}, "
            f"iterations={self.iterations}, n_support={self.n_support}, seconds={self.seconds:.3f})"
        )
