"""The engine's algorithms as river classifiers."""

import datetime
import math

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.expansion import GAP, REPROCESSED
from streamsvm.estimators.classifier import OnlineSVM
from streamsvm.online import gap, lasvm
from streamsvm.online.arrival import learn_block, learn_example
from streamsvm.online.cccp import sparsify
from streamsvm.online.finish import WithBias, WithoutBias, finish, finish_without_bias

DEFAULT_DELTA_MAX = 2.0  # an example then enters the expansion if y f(x) < 2: the margin is 2 wide
SLACK = 0.5  # see `lasvm.Rule`; from 0.25 to 1 the error on banana is within 0.25 points of a batch solution
DEFAULT_RAMP_S = -1.0


class LASVM(OnlineSVM):
    """Online kernel support vector machine with a bias.

    LASVM goes through the stream once.  An example that violates the margin joins the kernel expansion, and a few
    steps of sequential minimal optimisation re-balance the coefficients; members that have become useless leave.
    After one pass and `finish` the model is about as accurate as a support vector machine trained on all the data.

    Scale the features upstream, with a scaler that stops moving (`streamsvm.WarmupScaler`): the model stores
    examples, and a scaler that keeps drifting moves new examples away from those stored.  Features are kept in single
    precision.

    Parameters
    ----------
    C
        Bound on the coefficients: how much one example on the wrong side may count.  Positive, at most 1e15.
    kernel
        ``"rbf"`` exp(-gamma ||x-z||²), ``"linear"`` ``<x, z>``, ``"poly"`` ``(gamma <x, z> + coef0)^degree`` or
        ``"sigmoid"`` ``tanh(gamma <x, z> + coef0)``.
    gamma
        Width of the kernel; positive.
    degree
        Degree of the polynomial kernel, at most 1000.
    coef0
        Constant of the polynomial and sigmoid kernels.
    pos_weight
        Factor on C for examples of the positive class; above 1 for a rare class.
    tol
        Tolerance: a pair of members is worked on if its gradients differ by more than this, and `finish` stops there.
    budget
        At most so many members, at least 3; default: as many as the data need.  When they are reached, a twentieth
        leaves before the next example is learned, those with coefficient 0 first.  A tenth is left to each class.
    on_budget
        What becomes of support vectors that leave.  ``"remove"``: those farthest on the wrong side are forgotten, as by
        `forget`.  ``"project"``: coefficients and boxes of the same ones go to the nearest member of their class.
        ``"merge"``, for the RBF and linear kernels: a quarter are the same ones, the others those with the smallest
        coefficients. Each becomes one with the nearest of its class, in between; it is weighted as both were, and keeps
        the id of the weightier one.
    window
        Forget what is older: so many examples, which count whether they were kept or not, or a `datetime.timedelta`;
        examples then need a time `t`, and one that comes too late is not kept.  Default: nothing grows too old.
    cache_mb
        Memory for cached kernel rows, in megabytes.  It changes the speed, never the result.
    device
        Where `learn_many` and the methods on many examples compute kernel values: ``"cpu"``; ``"cuda"``: on a GPU, for
        which CuPy (https://cupy.dev) is needed; ``"auto"``: on a GPU where there is one and the work is worth it.
        On a GPU results agree with the CPU's up to the rounding of single precision, which grows with gamma |x|², not
        bit for bit.  If it fails, a warning says so, and the CPU goes on.
    reprocess
        ``"adaptive"``: after each example, REPROCESS at least once and until the largest violation is at most
        `delta_max`. A number: that many times (the paper's algorithm is 1), and further only if `delta_max` is given.
    delta_max
        The largest violation left after an example; default 2 when adaptive.  Smaller is more exact and slower.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    `learn_many` gives what a loop of `learn_one` gives, bit for bit.

    An example with weight `w` has its box scaled: it may count w times as much.  Labels are ``True``/``False``; 1 and
    0 or 1 and -1 are taken as well.

    Every example has an id, by which `support_ids` tells which examples the model rests on.  An example without an `id`
    gets `next_id`: the first one 0, each other one the number above the largest id so far.  An example whose `id` a
    member has takes that member's place, as a correction does.  The same example again, with the same label and weight,
    changes nothing.

    With "remove" the model is that of the members it has; with "project" and "merge" it is a summary of all that it has
    learned, which is better where nothing changes, and slow to let go of what was once right: add a `window` where
    things change.  A member that others have joined is as old as the oldest of them, and it goes as a whole.  A window
    forgets up to a fiftieth of itself early, so that many leave at once.  Where a class no longer occurs, it is
    forgotten; so is everybody, when only examples came that were not worth keeping.  Only removed ones are forgotten
    exactly; the ids of the others are no members' ids any more.

    One model is for one thread at a time: prediction uses the model's scratch memory.

    References
    ----------
    [^1]: Bordes, A., Ertekin, S., Weston, J., Bottou, L., 2005. Fast kernel classifiers with online and active
    learning. Journal of Machine Learning Research 6, 1579-1619.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVM, WarmupScaler
    >>> model = WarmupScaler() | LASVM(C=10, gamma=1.0)
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: ...%
    """

    _learn_example = staticmethod(learn_example)
    _learn_block = staticmethod(learn_block)

    def __init__(
        self,
        C: float = 1.0,
        kernel: str = "rbf",
        *,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        pos_weight: float = 1.0,
        tol: float = 1e-3,
        budget: int | None = None,
        on_budget: str = "remove",
        window: int | datetime.timedelta | None = None,
        cache_mb: float = 256.0,
        device: str = "cpu",
        reprocess: str | int = "adaptive",
        delta_max: float | None = None,
    ) -> None:
        super().__init__(C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device)
        self.reprocess = reprocess
        self.delta_max = delta_max
        self._rule = _rule(tol, reprocess, delta_max)

    @property
    def bias(self) -> float:
        """The constant term of the decision function."""
        return lasvm.midpoint(self._expansion.counts, self._expansion.extremes)

    @property
    def _problem(self) -> WithBias:
        return WithBias()

    @property
    def delta(self) -> float:
        """The largest violation among the members: how far apart the gradients of a pair are; 0 if none violates."""
        return max(0.0, float(lasvm.delta(self._expansion)))

    def finish(self, tol: float | None = None) -> None:
        """Optimise over the members until no pair of them violates by more than `tol` (default `tol`).

        Call it after the stream, or now and then.  Members that have become useless leave; learning may go on.
        """
        tol = self.tol if tol is None else tol
        arguments.require_positive("tol", tol)
        steps = self._solve(lambda s: finish(s, self._kernel, tol))
        left = lasvm.delta(self._expansion)
        self._warn_unless_reached(tol, left, steps)


def _rule(tol: float, reprocess: str | int, delta_max: float | None) -> lasvm.Rule:
    if delta_max is not None:
        arguments.require_positive("delta_max", delta_max)
    if reprocess == "adaptive":
        return lasvm.Rule(float(tol), -1, DEFAULT_DELTA_MAX if delta_max is None else float(delta_max), SLACK)
    if isinstance(reprocess, int | np.integer) and not isinstance(reprocess, bool) and 0 <= reprocess < 2**63:
        return lasvm.Rule(float(tol), int(reprocess), math.inf if delta_max is None else float(delta_max), 0.0)
    raise ValueError(f'reprocess={reprocess!r} must be "adaptive" or a number of steps, from 0 to 2**63 - 1')


class GapSVM(OnlineSVM):
    """What LASVM-G, LASVM-NC, LASVM-I and FULL share; see `streamsvm.online.gap`."""

    _learn_example = staticmethod(learn_example)
    _learn_block = staticmethod(learn_block)
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
        """The constant term of the decision function: none."""
        return 0.0

    @property
    def _problem(self) -> WithoutBias:
        return WithoutBias()

    @property
    def gap(self) -> float:
        """The primal less the dual of the problem over the members, in the boxes that they have now.

        In units of the objective, 1/2 ||w||² plus the sum of C_i times each member's loss: it grows with C and with the
        members.  The objective is at most so far from its optimum; `finish` closes the gap.
        """
        return float(self._expansion.losses[GAP])

    @property
    def delta(self) -> float:
        """The largest violation among the members: how far the gradient of one points out of its box; 0 if none."""
        return max(0.0, WithoutBias().violation(self._expansion))

    @property
    def n_reprocess(self) -> int:
        """How many steps on members learning has taken, beside those of the new examples and of `finish`."""
        return int(self._expansion.counts[REPROCESSED])

    @property
    def _members_to_keep(self) -> int | None:
        return self._rule.max_non_sv if self._rule.clean_every else None

    def finish(self, tol: float | None = None) -> None:
        """Optimise over the members until none of them violates by more than `tol` (default `tol`).

        Call it after the stream, or now and then; learning may go on.  Members that have become useless leave, except
        in `FullSVM`.  Steps are always of two members.
        """
        tol = self.tol if tol is None else tol
        arguments.require_positive("tol", tol)
        steps = self._solve(lambda s: finish_without_bias(s, self._kernel, tol, self._members_to_keep))
        self._warn_unless_reached(tol, WithoutBias().violation(self._expansion), steps)

    def sparsify(self, ramp_s: float | None = None, tol: float | None = None) -> None:
        """Finish, then give up the support vectors that the ramp loss does not need.

        Members with y f(x) < `ramp_s` get the box of the ramp's concave part, the model is optimised again, and so on
        until nothing changes (CCCP).  On noisy data that removes half of the support vectors or more, with
        the accuracy as it was; models that learned with a ramp lose some too.  Learning may go on, but what was given
        up does not come back: `save` first.

        Parameters
        ----------
        ramp_s
            Where the ramp begins; of use from -1 to 0; default: the model's own, or -1 if it has none.
        tol
            The violation that may remain, default `tol`.

        Raises
        ------
        ValueError
            If a parameter is out of its range.
        """
        ramp_s = getattr(self, "ramp_s", DEFAULT_RAMP_S) if ramp_s is None else ramp_s
        tol = self.tol if tol is None else tol
        arguments.require_at_most_1("ramp_s", ramp_s)
        arguments.require_positive("tol", tol)
        steps = self._solve(lambda s: sparsify(s, self._kernel, tol, self._members_to_keep, float(ramp_s)))
        self._warn_unless_reached(tol, WithoutBias().violation(self._expansion), steps)


class LASVMG(GapSVM):
    """LASVM-G: an online kernel support vector machine without a bias that works until the primal-dual gap is small.

    Every example becomes a member of the kernel expansion and takes a step; then the members that violate most are
    re-balanced until the gap between the primal and the dual is no larger than the noise in it.  Every so often the
    members with coefficient 0 that are farthest from mattering are forgotten.  It does more work than `LASVM` on an
    example, and needs `finish` less.

    There is no bias: f(x) goes to 0 far away from all examples.  It is for the RBF kernel, or for centred features; the
    linear kernel on features far from 0 needs `LASVM`.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device
        As in `LASVM`.
    clean_every
        Forget useless members after so many examples that became members; at least 1.
    max_non_sv
        How many members with coefficient 0 are then left: candidates that may become support vectors; at least 0.
    steps
        ``"pair"``: two members move in one step; ``"single"``: one, as in the paper, with the same result after many
        more steps when C is large.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    References
    ----------
    [^1]: Ertekin, S., Bottou, L., Giles, C. L., 2011. Nonconvex online support vector machines. IEEE Transactions on
    Pattern Analysis and Machine Intelligence 33(2), 368-381.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVMG, WarmupScaler
    >>> model = WarmupScaler() | LASVMG(C=10, gamma=1.0)
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: ...%
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str = "rbf",
        *,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        pos_weight: float = 1.0,
        tol: float = 1e-3,
        budget: int | None = None,
        on_budget: str = "remove",
        window: int | datetime.timedelta | None = None,
        cache_mb: float = 256.0,
        device: str = "cpu",
        clean_every: int = 300,
        max_non_sv: int = 300,
        steps: str = "pair",
    ) -> None:
        super().__init__(C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device)
        self.clean_every = clean_every
        self.max_non_sv = max_non_sv
        self.steps = steps
        arguments.require_count("clean_every", clean_every, 1)
        self._set_rule(steps, int(clean_every), max_non_sv)


class RampSVM(GapSVM):
    """What LASVM-NC and LASVM-I share: the parameters of the ramp."""

    _ramp: int

    def __init__(
        self,
        C: float = 1.0,
        kernel: str = "rbf",
        *,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        pos_weight: float = 1.0,
        tol: float = 1e-3,
        budget: int | None = None,
        on_budget: str = "remove",
        window: int | datetime.timedelta | None = None,
        cache_mb: float = 256.0,
        device: str = "cpu",
        clean_every: int = 300,
        max_non_sv: int = 300,
        steps: str = "pair",
        ramp_s: float = DEFAULT_RAMP_S,
        ramp_warmup: int = 300,
    ) -> None:
        super().__init__(C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device)
        self.clean_every = clean_every
        self.max_non_sv = max_non_sv
        self.steps = steps
        self.ramp_s = ramp_s
        self.ramp_warmup = ramp_warmup
        arguments.require_count("clean_every", clean_every, 1)
        self._set_rule(steps, int(clean_every), max_non_sv, self._ramp, ramp_s, ramp_warmup)


class LASVMNC(RampSVM):
    """LASVM-NC: LASVM-G with the ramp loss, which noise cannot pull at without limit.

    An example that the model puts far on the wrong side, y f(x) < `ramp_s`, is taken for noise: its coefficient gets
    the box of the ramp's concave part, in which it does not become a support vector.  On noisy data the model is a
    fraction of the size of LASVM-G's, and no less accurate.  On clean data it is the same.  There is no bias: see
    `LASVMG`.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device
        As in `LASVM`.
    clean_every, max_non_sv, steps
        As in `LASVMG`.
    ramp_s
        Where the ramp begins: the loss is 1 - y f(x), at most 1 - ramp_s.  Of use from -1 to 0: lower is closer to
        LASVM-G, higher costs accuracy; at most 1, where nothing more is learned once the ramp is active.
    ramp_warmup
        So many examples must have become members, and there must be support vectors of both classes, before the ramp
        is active; at least 0.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    Where the concept changes, its first new examples look like noise: prefer `LASVMG` there.

    References
    ----------
    [^1]: Ertekin, S., Bottou, L., Giles, C. L., 2011. Nonconvex online support vector machines. IEEE Transactions on
    Pattern Analysis and Machine Intelligence 33(2), 368-381.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVMG, LASVMNC
    >>> convex, ramp = LASVMG(C=10), LASVMNC(C=10)
    >>> for x, y in datasets.Bananas().take(2000):
    ...     convex.learn_one(x, y)
    ...     ramp.learn_one(x, y)
    >>> ramp.n_support < 0.8 * convex.n_support
    True
    """

    _ramp = gap.CONCAVE


class LASVMI(RampSVM):
    """LASVM-I: LASVM-G that ignores what it knows already, and what looks like noise.

    An example on the flat parts of the ramp loss, y f(x) > 1 or y f(x) < `ramp_s`, is ignored before any other work.
    Its support vectors are about as many as those of `LASVMNC`, and it computes the fewest kernel values of all.  There
    is no bias: see `LASVMG`.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device
        As in `LASVM`.
    clean_every, max_non_sv, steps
        As in `LASVMG`.
    ramp_s, ramp_warmup
        As in `LASVMNC`.  Examples with y f(x) > 1 are ignored from the start.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    Where the concept changes, its first new examples look like noise: prefer `LASVMG` there.

    References
    ----------
    [^1]: Ertekin, S., Bottou, L., Giles, C. L., 2011. Nonconvex online support vector machines. IEEE Transactions on
    Pattern Analysis and Machine Intelligence 33(2), 368-381.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import LASVMG, LASVMI
    >>> convex, ignoring = LASVMG(C=10), LASVMI(C=10)
    >>> for x, y in datasets.Bananas().take(2000):
    ...     convex.learn_one(x, y)
    ...     ignoring.learn_one(x, y)
    >>> ignoring.kernel_evaluations < 0.8 * convex.kernel_evaluations
    True
    """

    _ramp = gap.IGNORE


class FullSVM(GapSVM):
    """FULL: LASVM-G that never forgets a member, the reference for the others.

    Its memory grows with every example, and its time per example too, unless there is a `budget` or a `window`.  There
    is no bias: see `LASVMG`.

    Parameters
    ----------
    C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device
        As in `LASVM`.
    steps
        As in `LASVMG`.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    References
    ----------
    [^1]: Ertekin, S., Bottou, L., Giles, C. L., 2011. Nonconvex online support vector machines. IEEE Transactions on
    Pattern Analysis and Machine Intelligence 33(2), 368-381.

    Examples
    --------
    >>> from river import datasets
    >>> from streamsvm import FullSVM
    >>> model = FullSVM(C=10)
    >>> for x, y in datasets.Bananas().take(1000):
    ...     model.learn_one(x, y)
    >>> model.n_members
    1000
    """

    def __init__(
        self,
        C: float = 1.0,
        kernel: str = "rbf",
        *,
        gamma: float = 1.0,
        degree: int = 3,
        coef0: float = 0.0,
        pos_weight: float = 1.0,
        tol: float = 1e-3,
        budget: int | None = None,
        on_budget: str = "remove",
        window: int | datetime.timedelta | None = None,
        cache_mb: float = 256.0,
        device: str = "cpu",
        steps: str = "pair",
    ) -> None:
        super().__init__(C, kernel, gamma, degree, coef0, pos_weight, tol, budget, on_budget, window, cache_mb, device)
        self.steps = steps
        self._set_rule(steps)


ALGORITHMS: dict[str, type[LASVM] | type[LASVMG] | type[LASVMNC] | type[LASVMI] | type[FullSVM]] = {
    "lasvm": LASVM,
    "lasvm-g": LASVMG,
    "lasvm-nc": LASVMNC,
    "lasvm-i": LASVMI,
    "full": FullSVM,
}
