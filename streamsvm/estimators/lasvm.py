"""LASVM, the online support vector machine with a bias; see `online.lasvm` for the algorithm."""

import math
from dataclasses import dataclass

import numpy as np

from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.estimators.learner.classifier import OnlineSVM
from streamsvm.online import lasvm
from streamsvm.online.finish import WithBias

DEFAULT_DELTA_MAX = 1.75  # With 1, streams sorted by class lose up to 0.6 points; with 2, more members are idle.
# `lasvm.Rule.margin`.  With 1 instead of 0.9, more are idle.
ADMISSIONS = {"margin": 0.9, "violation": math.inf, "all": math.inf}


@fixed_parameters
@dataclass(kw_only=True, eq=False, repr=False)
class LASVM(OnlineSVM):
    """LASVM: an online kernel support vector machine.

    LASVM goes through the stream once.  An example that violates the margin becomes a *member*: the model stores it.  A
    few steps of sequential minimal optimisation then re-balance the members' coefficients, and useless members leave.
    After one pass and `finish`, the model is about as accurate as a support vector machine trained on all the data.

    The model scales the features itself, by running means and deviations, and scales its members anew when these have
    moved far.  Put no scaler in front that keeps moving: it would move new examples away from the stored ones.

    Parameters
    ----------
    C
        Penalty of errors: the largest coefficient that one example may get.  A larger `C` fits the examples more
        closely.  Positive, at most 1e15; default: 10.
    kernel
        ``"rbf"``: exp(-gamma ||x-z||²); ``"linear"``: ``<x, z>``; ``"poly"``: ``(gamma <x, z> + coef0)^degree``;
        ``"sigmoid"``: ``tanh(gamma <x, z> + coef0)``.
    gamma
        Factor in the kernel: a positive number, or ``"scale"``, the default: 1 / sum of the variances of the features
        as the kernel sees them.  With ``"rbf"``, a larger gamma means a narrower kernel.  See `gamma_in_use`.
    scaling
        Whether the model scales the features.  ``"standard"``: it does, to mean 0 and standard deviation 1, and cuts
        scaled values to -3..3.  None: it takes them as they come.  ``"auto"``, the default: it scales them if `gamma`
        is ``"scale"``, not if it is a number.  See `scale_of`.  A feature whose name begins with ``~`` is never scaled,
        only cut.  The constant that a model with the RBF kernel subtracts from features far from 0 only serves
        precision.
    degree
        Degree of the polynomial kernel; at most 1000.
    coef0
        Constant of the polynomial and sigmoid kernels.
    pos_weight
        Factor on `C` for examples of the positive class; positive.  ``"balanced"``: the factor of the rarer class is
        the square root of the ratio of the classes so far, and the other class has 1.  (The paper's "different costs"
        are the ratio itself: give it as a number.)  See `class_counts` for which examples count.
    threshold
        The prediction is True where f(x) is above this number; probabilities do not depend on it.  ``"gmean"``: learned
        from the stream, so that the product of both classes' recalls is large; see `decision_threshold`.
    tol
        Tolerance, positive.  `finish` stops when no pair of examples, of the members and the `reservoir`, violates the
        optimality conditions by more.
    budget
        Largest number of members, at least 3; default: as many as the data need.  When it is reached, a twentieth of
        the members leaves before the next example is learned: members with coefficient 0 first, then support vectors as
        `on_budget` says.  Each class keeps at least a tenth of the budget.
    on_budget
        What happens to a support vector that leaves.  ``"remove"``: the model forgets the ones farthest on the wrong
        side, as `forget` would.  ``"project"``: it gives their coefficients and boxes to the nearest members of their
        class.  ``"merge"`` (RBF and linear kernels only): it mostly takes those with the smallest coefficients, and
        replaces each and its nearest neighbour by one member in between.
    window
        How long an example stays.  A number: for that many more examples, whether these became members or not.  A
        `datetime.timedelta`: for that long; then each example needs a time `t`, and one that comes too late is not
        kept.  Default: for ever.
    reservoir
        Number of learned examples that `finish` and `forget` look at again, half of them for each class; default: 4000.
        They are a uniform sample of each class, and may be of any age within the `window`.  If examples have more than
        a thousand features other than 0, fewer stay: a class takes at most 32 MB.  0: none, and the model stores only
        its members.
    cache_mb
        Memory for cached kernel rows, in megabytes; positive.  It changes the speed, never the result.
    device
        Where `learn_many` and the prediction of many examples compute kernel values.  ``"cpu"``; ``"cuda"``: on a GPU,
        which needs CuPy (https://cupy.dev); ``"auto"``: on a GPU if there is one and the work is worth it.  Results
        from a GPU differ by rounding in single precision.  If the GPU fails, a warning says so and the CPU takes over.
    reprocess
        How many optimisation steps follow each example.  ``"adaptive"``: at least one, and more until the largest
        violation is at most `delta_max`.  A number: exactly that many (the paper uses 1), and more only if `delta_max`
        is given too.
    delta_max
        Largest violation that may remain after an example; positive; default: 1.75 if `reprocess` is adaptive,
        otherwise any.  A smaller value is more exact and slower.
    admission
        Which examples become members.  ``"margin"``: those with y f(x) < 0.9, so that nearly all members are support
        vectors.  ``"violation"``: all that form a violating pair with some member.  On noisy data the members are then
        up to five times as many.  Several passes with ids and `finish` then end at a batch solution.  ``"all"``: every
        example, and each step evicts members that cannot violate, as in the paper.  With ``reprocess=1`` that is the
        paper's algorithm, but that all join until both classes have five members, that members of a first class are
        kept up to 3000, and that the bias is always that of the present extremes.

    Raises
    ------
    ValueError
        If a parameter is out of its range; the message names it.

    Notes
    -----
    **Scaling.**  The means and deviations are those of the last 2000 examples or so.  The scale in use follows when a
    mean has moved by one deviation, a deviation by a factor 2, or the sum of variances by a factor 1.5; but not before
    as many examples have passed as the model has members.  Features that were only 0 or 1 are left alone.  So is sparse
    input, whose examples name few of the features that the example before named.  A scaled feature that an example
    lacks is guessed if its value is unknown (`docs/records.md`, missing values), and the guess is not learned as a
    value.  The model keeps the features of its members as they came, in double precision, beside the scaled ones: 12
    bytes for each feature instead of 4.  Snapshots have both, and the running statistics.

    **As printed.**  ``LASVM(admission="all", reprocess=1)`` is the algorithm of the paper, section 3.2; with
    ``reprocess="adaptive"``, that of its section 3.5.  Until there are five examples of each class, they only join.
    Then each example joins and takes a step (PROCESS), and a step along the most violating pair follows (REPROCESS),
    after which members leave that cannot violate.  There is no rule of admission and no reserve.  Where `C` is large,
    the model is poor until `finish`: on banana with C = 316 it errs on 29.8 % before and on 9.5 % after it, with 3466
    members; the default on 10.5 % and 9.5 %, with 929.

    **Ids.**  Every example has an id; `support_ids` has those of the support vectors.
    Without an `id`, an example gets `next_id`: one more than the largest id so far.  An example with the id of a member
    replaces that member, as a correction does.  The same example again, with the same label and weight, changes
    nothing.

    **Several passes** over the same examples need ids, the same in each pass: ``learn_many(X, y, ids=range(len(X)))``.
    Without ids, each pass brings new examples, and one example may get the coefficient `C` once for each pass.

    **Budgets.**  With ``"remove"``, the model is exactly that of its remaining members.  With ``"project"`` and
    ``"merge"`` it sums up everything learned, which is better if the concept is stable.  If the concept changes, add a
    `window`.  A merged member has the age of its oldest part.  Its parts cannot be forgotten separately.

    **Windows.**  Up to a fiftieth of a window leaves early, so that many members leave at once.  A class that no longer
    occurs is dropped.

    **Precision and threads.**  Features are stored in single precision.  Use a model from one thread at a time:
    predicting uses its scratch memory.

    References
    ----------
    [^1]: Bordes, A., Ertekin, S., Weston, J., Bottou, L., 2005. Fast kernel classifiers with online and active
    learning. Journal of Machine Learning Research 6, 1579-1619.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics
    >>> from streamsvm import LASVM
    >>> model = LASVM()
    >>> evaluate.progressive_val_score(datasets.Bananas().take(2000), model, metrics.Accuracy())
    Accuracy: 89...%
    >>> model.n_seen, model.n_support < 700
    (2000, True)
    >>> model.finish()
    >>> model.delta <= model.tol
    True
    """

    reprocess: str | int = "adaptive"
    delta_max: float | None = None
    admission: str = "margin"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._state.problem = WithBias()
        self._state.rule = _rule(self.tol, self.reprocess, self.delta_max, self.admission)

    @property
    def delta(self) -> float:
        """The largest violation among the members: the gap between the gradients of a pair; 0 if no pair violates."""
        return max(0.0, float(lasvm.delta(self._state.expansion)))


def _rule(tol: float, reprocess: str | int, delta_max: float | None, admission: str) -> lasvm.Rule:
    if delta_max is not None:
        arguments.require_positive("delta_max", delta_max)
    if not isinstance(admission, str) or admission not in ADMISSIONS:
        raise ValueError(f'admission={admission!r} must be "margin", "violation" or "all"')
    margin, printed = ADMISSIONS[admission], admission == "all"
    if reprocess == "adaptive":
        return lasvm.Rule(float(tol), -1, float(delta_max or DEFAULT_DELTA_MAX), lasvm.NEAR_MARGIN, margin, printed)
    if isinstance(reprocess, int | np.integer) and not isinstance(reprocess, bool) and 0 <= reprocess < 2**63:
        delta_max = math.inf if delta_max is None else float(delta_max)
        return lasvm.Rule(float(tol), int(reprocess), delta_max, 0.0, margin, printed)
    raise ValueError(f'reprocess={reprocess!r} must be "adaptive" or a number of steps, from 0 to 2**63 - 1')
