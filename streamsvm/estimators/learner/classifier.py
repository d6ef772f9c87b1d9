"""The class that all online classifiers share: a river classifier over a kernel expansion."""

from abc import abstractmethod

from streamsvm.core import arguments
from streamsvm.estimators.learner.forgetting import Forgetting
from streamsvm.estimators.learner.merging import Merging
from streamsvm.estimators.learner.snapshots import Snapshots

DEFAULT_RAMP_S = -1.0


class OnlineSVM(Forgetting, Merging, Snapshots):
    """An online support vector machine: a river classifier that learns, forgets, predicts and can be saved.

    `estimators.lasvm` and `estimators.gap_family` have the algorithms.  Each says what its bias, its problem and its
    compiled functions are, and how it finishes.
    """

    def finish(self, tol: float | None = None) -> None:
        """Optimise over the members and the `reservoir` until no violation of the optimality conditions is above `tol`.

        Call it after the stream, or now and then.  Members that have become useless leave, except in `FullSVM`.
        Examples of the `reservoir` that violate become members again, unless a ramp loss takes them for noise, or the
        `budget` has no room for them.  So the order of the stream matters little.  If the reservoir has all examples,
        the model is the optimum over all of them.  Learning may go on.

        Parameters
        ----------
        tol
            Tolerance; default: the model's own.

        Warns
        -----
        RuntimeWarning
            If single precision does not allow the tolerance.
        StreamWarning
            If examples of the reservoir still violate after 100 looks at them, as may be with ``kernel="sigmoid"``.
        """
        tol = self.tol if tol is None else tol
        arguments.require_positive("tol", tol)
        self._finish(self._solver(tol), tol)
        self._warn_of_lost_digits()

    def sparsify(self, ramp_s: float | None = None, tol: float | None = None) -> None:
        """Finish, then give up the support vectors that the ramp loss does not need.

        On noisy data this removes half of the support vectors or more, at the same accuracy.  `LASVMNC` and `LASVMI`
        lose some, too.  Learning may go on.  Removed examples do not come back, so `save` first.  `LASVM` needs its
        `reservoir` for this: it shows which examples the removed ones had kept out.

        Parameters
        ----------
        ramp_s
            Where the ramp begins; at most 1, useful from -1 to 0; default: the model's own, or -1 if it has none.
        tol
            Tolerance; default: the model's own.

        Raises
        ------
        ValueError
            If a parameter is out of its range.

        Notes
        -----
        This is the concave-convex procedure (CCCP): members with y f(x) < `ramp_s` get the box of the ramp's concave
        part, the model is optimised again, and so on until nothing changes.

        Examples
        --------
        >>> from river import datasets
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> for x, y in datasets.Bananas().take(1000):
        ...     model.learn_one(x, y)
        >>> before = model.n_support
        >>> model.sparsify()
        >>> model.n_support < 0.8 * before
        True
        """
        ramp_s = getattr(self, "ramp_s", DEFAULT_RAMP_S) if ramp_s is None else ramp_s
        tol = self.tol if tol is None else tol
        arguments.require_at_most_1("ramp_s", ramp_s)
        arguments.require_positive("tol", tol)
        self._sparsify(tol, float(ramp_s))
        examples = self._reservoir.sample()
        self._reservoir.forget(examples.id[self._margins_of(examples, self._in_room, self.bias) < ramp_s])

    @abstractmethod
    def _sparsify(self, tol: float, ramp_s: float) -> None:
        """Solve until the ramp loss gives up no more members."""
