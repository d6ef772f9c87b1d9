"""LASVM-G and its relatives, online support vector machines without a bias; see `online.gap` for the algorithms."""

from dataclasses import dataclass, field

from streamsvm.core import arguments
from streamsvm.core.expansion import GAP, REPROCESSED
from streamsvm.core.fixed import fixed_parameters
from streamsvm.estimators.learner.classifier import DEFAULT_RAMP_S, OnlineSVM
from streamsvm.online import gap
from streamsvm.online.finish import WithoutBias


@fixed_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class LASVMG(OnlineSVM):
    """LASVM-G: an online kernel support vector machine that works until the primal-dual gap is small.

    Every example becomes a member and takes an optimisation step.  Then the members that violate most take steps, until
    the primal-dual gap is no larger than the noise in it.  Now and then, the model forgets the members with coefficient
    0 that are least likely to become support vectors.  LASVM-G does more work for each example than `LASVM`, and needs
    `finish` less.

    There is no bias: f(x) goes to 0 far away from all examples.  Use it with the RBF kernel or with features that the
    model scales.  For the linear kernel on other features that are far from 0, use `LASVM`.

    Parameters
    ----------
    C, kernel, gamma, scaling, degree, coef0, pos_weight, threshold, tol, budget, on_budget, window, reservoir,
    cache_mb, device
        As in `LASVM`.
    clean_every
        Number of new members after which useless ones are forgotten; at least 1.
    max_non_sv
        Number of members with coefficient 0 that stay after that, as candidates for support vectors; at least 0.
    steps
        ``"pair"``: a step moves two members.  ``"single"``: it moves one, as in the paper, and takes many more steps if
        `C` is large.  The two stop at different points within the same gap, so some predictions differ while the model
        learns: after 1000 examples of a noisy disc (C = 10, gamma = 1), single steps had 430 support vectors and pairs
        393, and 27 of 600 predictions differed.  After `finish`, both are the optimum over their members and the
        `reservoir`, up to `tol`: 377 and 376, and no prediction differed.  With a ramp loss this holds for the examples
        that are not taken for noise, and these may be others.

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
    >>> from streamsvm import LASVMG
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), LASVMG(), metrics.Accuracy())
    Accuracy: 89.10%
    """

    clean_every: int = 300
    max_non_sv: int = 300
    steps: str = "pair"

    ramp_s, ramp_warmup = DEFAULT_RAMP_S, 0
    _ramp, _forgets = gap.CONVEX, True

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.require_count("clean_every", self.clean_every, int(self._forgets))
        arguments.require_count("max_non_sv", self.max_non_sv, 0)
        if self.steps not in ("pair", "single"):
            raise ValueError(f'steps={self.steps!r} must be "pair" or "single"')
        most, ramp = int(self.max_non_sv), (self._ramp, float(self.ramp_s), int(self.ramp_warmup))
        self._state.rule = gap.Rule(float(self.tol), self.steps == "pair", int(self.clean_every), most, *ramp)
        self._state.problem = WithoutBias(most if self._forgets else None)

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


@fixed_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class LASVMNC(LASVMG):
    """LASVM-NC: LASVM-G with the ramp loss, which limits the pull of noise.

    If the model puts an example far on the wrong side, y f(x) < `ramp_s`, the example counts as noise: it gets a box in
    which it does not become a support vector.  On noisy data the model is a fraction of the size of LASVM-G's, at the
    same accuracy.  On clean data it is the same.  There is no bias: see `LASVMG`.

    Parameters
    ----------
    C, kernel, gamma, scaling, degree, coef0, pos_weight, threshold, tol, budget, on_budget, window, reservoir,
    cache_mb, device
        As in `LASVM`.
    clean_every, max_non_sv, steps
        As in `LASVMG`.
    ramp_s
        Where the ramp begins: the loss is 1 - y f(x), but at most 1 - ramp_s.  At most 1, useful from -1 to 0.  A lower
        value is closer to LASVM-G; a higher one costs accuracy.
    ramp_warmup
        Number of examples that must have become members before the ramp is active; at least 0.  There must also be
        support vectors of both classes.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    When the concept changes, the first new examples look like noise.  Prefer `LASVMG` then.

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

    ramp_s: float = DEFAULT_RAMP_S
    ramp_warmup: int = 300

    def __post_init__(self) -> None:
        arguments.require_at_most_1("ramp_s", self.ramp_s)
        arguments.require_count("ramp_warmup", self.ramp_warmup, 0)
        super().__post_init__()
        self._state.least_margin = float(self.ramp_s)


@fixed_parameters
class LASVMI(LASVMNC):
    """LASVM-I: LASVM-G that ignores examples which it already predicts well, and those that look like noise.

    An example on a flat part of the ramp loss, y f(x) > 1 or y f(x) < `ramp_s`, is ignored before any other work.  The
    model has about as many support vectors as that of `LASVMNC`, and computes the fewest kernel values of all.  There
    is no bias: see `LASVMG`.

    Parameters
    ----------
    C, kernel, gamma, scaling, degree, coef0, pos_weight, threshold, tol, budget, on_budget, window, reservoir,
    cache_mb, device
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
    When the concept changes, the first new examples look like noise.  Prefer `LASVMG` then.

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


@fixed_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class FullSVM(LASVMG):
    """FULL: LASVM-G that never forgets a member, as a reference for the others.

    Memory and the time for each example grow with the stream unless you set a `budget` or a `window`.  There is no
    bias: see `LASVMG`.

    Parameters
    ----------
    C, kernel, gamma, scaling, degree, coef0, pos_weight, threshold, tol, budget, on_budget, window, reservoir,
    cache_mb, device
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

    clean_every: int = field(default=0, init=False)
    max_non_sv: int = field(default=0, init=False)

    _forgets = False
