"""What a model said of the rows of a batch, each just before it learned it."""

import numpy as np

from streamsvm.online.outputs.calibration import CUT, RUN
from streamsvm.online.outputs.sigmoid import probabilities


class Before:
    """What a model says of each row of a batch just before it learns it; `learn_many` fills it in.

    It is what a loop of predictions and `learn_one` says, bit for bit, in a fraction of the time.

    Parameters
    ----------
    n
        Number of rows.

    Attributes
    ----------
    table
        Of each row the decision value, and the calibration up to the threshold, (n, 2 + CUT) float64; NaN where the
        row has not been learned.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.estimators.inputs.named_rows import NamedRows
    >>> from streamsvm.estimators.learner.before import Before
    >>> rows = NamedRows.of([{"a": float(a), "b": 1.0 - a} for a in range(6)])
    >>> model, before = LASVM(), Before(4)
    >>> model.learn_many(rows.take([0, 5]), [False, True])
    >>> model.learn_many(rows.take([1, 4, 2, 3]), [False, True, False, True], before=before)
    >>> before.margins > before.thresholds
    array([False,  True, False, False])
    """

    def __init__(self, n: int) -> None:
        self.table = np.full((n, 2 + CUT), np.nan)

    @property
    def margins(self) -> np.ndarray:
        """The decision values, (n,)."""
        return self.table[:, 0]

    @property
    def probabilities(self) -> np.ndarray:
        """The probabilities of True, (n,)."""
        return probabilities(self.table[:, 1 : 1 + RUN], self.margins)

    @property
    def thresholds(self) -> np.ndarray:
        """Above which decision value the prediction was True, (n,)."""
        return self.table[:, 1 + CUT]
