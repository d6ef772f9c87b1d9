"""The class that all online classifiers share: a river classifier with parameters and one state."""

import copy
import datetime
import functools
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from streamsvm.core import arguments, class_weights
from streamsvm.core.device.choice import require_device
from streamsvm.core.expansion import Expansion
from streamsvm.estimators.inputs.checks import n_rows
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.inputs.reservoir import Reservoir
from streamsvm.estimators.inputs.scaling import RunningScale, kernel_of, require_scaling
from streamsvm.estimators.learner import finishing, forgetting, late, learning, snapshots
from streamsvm.estimators.learner.advice import look_for_lost_digits
from streamsvm.estimators.learner.base import Learner
from streamsvm.estimators.learner.before import Before
from streamsvm.estimators.learner.copies import Content
from streamsvm.estimators.learner.prediction import Predictor
from streamsvm.estimators.learner.state import State
from streamsvm.online.arrival import NOTHING_SAID
from streamsvm.online.finish import Problem
from streamsvm.online.removal.leave_one_out import LeaveOut

DEFAULT_RAMP_S = -1.0  # where the ramp loss is flat for examples on the wrong side of the margin, as in its paper


@functools.cache
def _parameters_of(model: type) -> tuple[str, ...]:
    return tuple(inspect.signature(model).parameters)


@dataclass(eq=False, repr=False)
class OnlineSVM(Predictor, Learner):
    """An online support vector machine: a river classifier that learns, forgets, predicts and can be saved.

    `estimators.lasvm` and `estimators.gap_family` have the algorithms.  Each gives its state a problem and a rule.
    The fields are the parameters, as of `LASVM`; the constructor, which river inspects, is made of them.
    """

    C: float = 10.0
    kernel: str = "rbf"
    _: KW_ONLY
    gamma: float | str = "scale"
    scaling: str | None = "auto"
    degree: int = 3
    coef0: float = 0.0
    pos_weight: float | str = 1.0
    threshold: float | str = 0.0
    tol: float = 1e-3
    budget: int | None = None
    on_budget: str = "remove"
    window: int | datetime.timedelta | None = None
    reservoir: int = 4000
    cache_mb: float = 256.0
    device: str = "cpu"

    def __post_init__(self) -> None:
        for name in ("C", "tol"):
            arguments.require_positive(name, getattr(self, name))
        class_weights.require_pos_weight(self.pos_weight)
        class_weights.require_box(self.C, self.pos_weight)
        arguments.require_threshold(self.threshold)
        arguments.require_cache(self.cache_mb)
        require_scaling(self.scaling)
        kernel = kernel_of(self.kernel, self.gamma, self.degree, self.coef0)
        scale = RunningScale(self.kernel, self.gamma, self.scaling)
        arguments.require_bounds(self.budget, self.on_budget, self.window, self.kernel)
        arguments.require_count("reservoir", self.reservoir, 0)
        require_device(self.device)
        self._state = State(self, kernel, scale).begin(self)

    def _untaught(self, expansion: Expansion | None = None) -> State:
        """A state that has learned nothing, by these parameters, which are not checked again."""
        return self._state.rules().begin(self, expansion)

    def _over(self, state: State) -> Self:
        """A model with these parameters that has this state."""
        model = object.__new__(type(self))
        model.__dict__.update(self.__dict__, _state=state)
        return model

    def _get_params(self) -> dict[str, Any]:
        """The parameters, as river wants them; river inspects the signature again for every call."""
        return {name: getattr(self, name) for name in _parameters_of(type(self))}

    # ------------------------------------------------------------------------------------------------------- learning

    def learn_one(
        self,
        x: dict,
        y: Any,
        w: float = 1.0,
        id: int | None = None,
        t: datetime.datetime | None = None,
        margin: float | None = None,
    ) -> None:
        """Learn one example.

        Parameters
        ----------
        x
            Features by name.  A missing feature counts as 0, or is guessed; see `docs/records.md`.
        y
            Label: True or False, 1 or 0, 1 or -1.
        w
            Weight, a factor on the example's `C`; at least 0.  An example of weight 0 is left out.
        id
            64-bit integer that names the example; default: `next_id`.  If a member has this id, the example replaces
            it, as a correction does.  If the two are equal in features, label and weight, the model stays as it is.
        t
            Time of the example, needed if the `window` is a time span.  A time without a zone counts as UTC.
        margin
            What `decision_function_one` said when the example was predicted; default: what it says now.  Give it if the
            label came late.  The probabilities and a learned `threshold` are fitted to this value.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, or if the label, the weight, the id, the time or the margin is invalid.
            The model then stays as it was.

        Notes
        -----
        An interruption (Ctrl-C) leaves a model that has learned the example completely, or not at all.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> model.learn_one({"length": 1.0, "width": 2.0}, True)
        >>> model.learn_one({"length": -1.0}, False)  # The width is 0.
        >>> model.predict_one({"length": 0.9, "width": 1.5})
        True
        """
        learning.learn(self._state, x, y, w, id, t, math.nan if margin is None else late.finite(margin))

    def learn_many(
        self,
        X: Any,
        y: Any,
        w: Any = None,
        ids: Any = None,
        t: Any = None,
        margins: Any = None,
        before: Before | None = None,
    ) -> None:
        """Learn a batch of examples in sequence.  The result is that of a loop of `learn_one`, bit for bit.

        Parameters
        ----------
        X
            Examples as rows: a pandas, polars or other dataframe (features by column name), a 2-D array or a SciPy
            sparse matrix (features named 0, 1, 2, ...), or a list of dicts.
        y
            Labels, one for each row.
        w
            Weights: one number for all rows, or one for each; default: 1.
        ids
            Ids, one for each row, as for `learn_one`; default: numbers from `next_id` on.  A second pass over the same
            rows needs the ids of the first, such as ``range(len(X))``.
        t
            Times: one datetime for all rows, or one for each; needed if the `window` is a time span.
        margins
            What `decision_function_many` said when the rows were predicted, (n,), as `margin` of `learn_one`; NaN where
            it is not known.
        before
            Receives what the model says of each row just before it learns it; see `foretells`.

        Raises
        ------
        ValueError, TypeError
            If a feature is not a finite number, a label is invalid, or lengths differ.  The blocks of rows before the
            block with the fault have then been learned.

        Notes
        -----
        After an interruption (Ctrl-C), `n_seen` tells how many examples have been learned.

        Examples
        --------
        >>> import numpy as np
        >>> from streamsvm import LASVM
        >>> X = np.random.default_rng(0).normal(size=(300, 2))
        >>> model = LASVM(C=10)
        >>> model.learn_many(X, X[:, 0] > 0)
        >>> model.predict_many(np.array([[-2.0, 0.0], [2.0, 0.0]]))
        array([False,  True])
        """
        self._y_name = getattr(y, "name", None)
        if before is not None and not self.foretells(X):
            raise ValueError("before needs rows that have exactly the features that the model has learned")
        said = NOTHING_SAID if margins is None else np.array(late.each(margins, n_rows(X), late.finite), np.float64)
        learning.learn_batch(self._state, X, y, w, ids, t, None if before is None else before.table, said)

    def foretells(self, X: Any) -> bool:
        """Whether `learn_many` can say of these rows what the model predicts before it learns each of them.

        They must be a `NamedRows` table that has exactly the features that the model has learned: a new feature is
        taken in otherwise than it is predicted.
        """
        known = self._state.features.columns
        is_table = isinstance(X, NamedRows) and X.is_table and len(X.names) == len(known)
        return self.device == "cpu" and is_table and all(name in known for name in X.names)

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
        finishing.finish(self._state, self._tol(tol))
        look_for_lost_digits(self._state)

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
        finishing.sparsify(self._state, *self._ramp_of(ramp_s, tol))
        look_for_lost_digits(self._state)

    def _ramp_of(self, ramp_s: float | None, tol: float | None) -> tuple[float, float]:
        """The tolerance and the beginning of the ramp that `sparsify` was given, or those of the model."""
        ramp_s = getattr(self, "ramp_s", DEFAULT_RAMP_S) if ramp_s is None else ramp_s
        arguments.require_at_most_1("ramp_s", ramp_s)
        return self._tol(tol), float(ramp_s)

    # ------------------------------------------------------------------------------------------------------- threshold

    def set_threshold(self, threshold: float) -> None:
        """Predict True where f(x) is above this number from now on.

        The parameter `threshold` becomes this number; one that was learned is given up.  Decision values, probabilities
        and members stay as they are.

        Parameters
        ----------
        threshold
            A finite number.

        Raises
        ------
        ValueError
            If it is not one.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
        >>> model.predict_one({"a": 0.4})
        False
        >>> model.set_threshold(-0.5)
        >>> model.predict_one({"a": 0.4})
        True
        """
        if not arguments.is_number(threshold):
            raise ValueError(f"threshold={threshold!r} must be a finite number")
        vars(self)["threshold"] = float(threshold)
        self._state.set_threshold(float(threshold))

    # ------------------------------------------------------------------------------------------------------ forgetting

    def forget(self, ids: Any) -> int:
        """Take examples out of the model and its reservoir.

        The other members get the coefficients that they would have without these examples.  After `finish`, this is
        exact up to `tol`; before it, violations stay as large as they were.

        Some examples were dropped because of the forgotten ones.  Those of the reservoir that now violate the margin
        become members.  The reservoir is a sample, so the model is close to one that never met the forgotten examples,
        but not equal.  These keep what the examples contributed: `n_seen`, `class_counts`, the order and the scale of
        the features, the sigmoid behind `predict_proba_one`, and the threshold.

        Forgetting an example that is not a support vector costs a look-up.  The first support vector that is forgotten
        after learning costs a pass over the reservoir; further ones cost less.  Ids that no member has are skipped.

        Parameters
        ----------
        ids
            One id, or several; see `learn_one`.

        Returns
        -------
        int
            Number of members that left.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> X = [{"a": 0.0}, {"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
        >>> model.learn_many(X, [False, False, True, True], ids=[10, 11, 12, 13])
        >>> model.forget([12, 99])
        1
        >>> 12 in model.support_ids
        False
        """
        return forgetting.forget(self._state, arguments.numbers_of(ids))

    def relabel(self, ids: Any, y: Any) -> int:
        """Correct the labels of examples that were learned.

        A member with another label is forgotten and learned again with the right one, at its old weight.  With
        ``pos_weight="balanced"``, the classes' weights are those of now.

        Parameters
        ----------
        ids
            One id, or several.
        y
            The right label: one for all ids, or one for each.

        Returns
        -------
        int
            How many of the ids belong to members, whose labels are now right.  The model no longer stores the other
            examples; learn them again if they matter.

        Raises
        ------
        ValueError, TypeError
            If an id is not a signed 64-bit integer, or a label is invalid.  The model then stays as it was.

        Examples
        --------
        >>> from streamsvm import LASVM
        >>> model = LASVM()
        >>> X = [{"a": 0.0}, {"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
        >>> model.learn_many(X, [False, False, True, False], ids=[10, 11, 12, 13])
        >>> model.relabel(13, True), model.predict_one({"a": 3.0})
        (1, True)
        """
        return forgetting.relabel(self._state, *forgetting.labels_for(ids, y))

    def leave_out(
        self, examples: Sequence[Mapping], y: Any, w: Any = None, ids: Any = None
    ) -> tuple[LeaveOut, np.ndarray]:
        """Prepare to predict learned examples by the model without them; `validation.streaming` uses it.

        Examples that are not members are put beside them with coefficient 0, which may change if another member is left
        out.  If such an example violates the margin, it is held at 0: the model has not learned from it either.

        Parameters
        ----------
        examples
            Features by name.
        y, w, ids
            As for `learn_many`.  An id that a member has stands for that member.

        Returns
        -------
        tuple
            The object that answers, and the slots of the examples in it.
        """
        return forgetting.leave_out(self._state, examples, y, w, ids)

    def _without_reservoir(self) -> Self:
        """A copy that stores its members only, so that `finish` brings no examples back.

        `validation.streaming` leaves examples out of it.
        """
        return copy.deepcopy(self, {id(self._state.reservoir): Reservoir(0)})

    # ------------------------------------------------------------------------------------------------ what was learned

    @property
    def _common(self) -> State:  # type: ignore[override]  # there is one model
        return self._state

    @property
    def _problem(self) -> Problem:
        return self._state.problem

    @property
    def class_counts(self) -> tuple[int, int]:
        """Numbers of negative and of positive examples learned so far, without those of weight 0 and those too late.

        `forget` and `relabel` do not change them.
        """
        return self._state.class_counts

    @property
    def kernel_evaluations(self) -> int:
        """Number of kernel values computed so far, while learning and predicting: the model's cost."""
        return self._state.kernel_evaluations

    # ------------------------------------------------------------------------------------------------------- snapshots

    def _content(self) -> Content:
        meta = snapshots.described(self._state, self._get_params())
        return meta, snapshots.arrays_of(self._state) | self._state.scale.dump(len(self._state.features))

    def _learned_content(self) -> Content:
        meta, arrays = self._content()
        snapshots.forget_work(meta, arrays)
        return meta, arrays

    @classmethod
    def _of_meta(cls, meta: Mapping[str, Any], cache_mb: float | None, device: str | None) -> Self:
        made: Self = snapshots.untaught(cls, meta, cache_mb, device)
        state = made._untaught(made._state.expansion)  # Learning never writes to an expansion without members.
        state.scale = state.scale.copy()
        return made._over(state)

    def _take_over(self, meta: Mapping[str, Any], arrays: dict[str, np.ndarray]) -> None:
        snapshots.restore_columns(self._state, meta, arrays)
        snapshots.restore(self._state, meta, arrays)
