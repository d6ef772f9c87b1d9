"""How a model decides, in plain values: what every target is written from.

    z_j = min(max((x_j - shift_j) factor_j, -limit), limit)         x_j = missing_j for a feature that an example lacks
    f_m(x) = sum_s coefficients_ms k(member_s, z) + bias_m          of each machine m
    p_m = 1 / (1 + exp(-a f_m)),  a = above_m if f_m > 0, otherwise below_m

The kernels are those of `core.kernels`, with a gamma for each member.  The machines decide by one of three rules:

- ``"threshold"``: there is one machine.  The second label is predicted if f > threshold, otherwise the first.
- ``"one-vs-rest"``: a machine for each label.  The first label with the largest p_m is predicted.
- ``"one-vs-one"``: a machine for each pair of labels (0, 1), (0, 2), ..., (1, 2), ...  It votes for the first of the
  two if f_m > 0, otherwise for the second.  The first label with the most votes is predicted.

============  =========================================================  ==========  ===============
symbol        name                                                       shape       dtype
============  =========================================================  ==========  ===============
features      names of the features, in the order of their columns       D           str, int, ...
shift         what is subtracted from a feature                          (D,)        float64
factor        what it is then multiplied by                              (D,)        float64
limit         where it is then cut on both sides; infinity: nowhere      scalar      float
missing       what stands for a feature that is missing                  (D,)        float64
gamma         factor in the kernel                                       (M,)        float64
members       the members' features, scaled                              (M, D)      float64, sparse
coefficients  a row for each machine                                     (K, M)      float64
bias, slopes  constant terms; (below, above) of the probabilities        (K,) (K,2)  float64
records       what makes the features of raw records; None: nothing                  `Records`
guarantee     which labels cannot be excluded; None: the model does not say          `Guarantee`
============  =========================================================  ==========  ===============

With a guarantee, the first label with the largest probability is predicted, whatever the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from river import compose

from streamsvm.conformal import ConformalClassifier
from streamsvm.conformal.guard import TWO
from streamsvm.core import storage
from streamsvm.core.kernels import LINEAR_KIND, NAMES
from streamsvm.core.scaling.state import CUT, PLACES
from streamsvm.estimators.inputs.checks import PLAIN
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.prediction import Predictor
from streamsvm.estimators.learner.state import State
from streamsvm.estimators.mixture.mixture import Mixture
from streamsvm.estimators.multiclass.one_vs_one import OneVsOne
from streamsvm.estimators.multiclass.one_vs_rest import OneVsRest, TunedOneVsRest
from streamsvm.export.guarantee import Guarantee, guarantee_of
from streamsvm.features import Records
from streamsvm.preprocessing import WarmupScaler

if TYPE_CHECKING:
    import scipy.sparse as sp

# The kernels that the templates and the ONNX graph compute: they would take any other one for a sigmoid.
EXPORTED_KERNELS = "rbf", "linear", "poly", "sigmoid"
_KERNELS = ", ".join(map(repr, EXPORTED_KERNELS))

THRESHOLD, ONE_VS_REST, ONE_VS_ONE = "threshold", "one-vs-rest", "one-vs-one"


class Named(NamedTuple):
    """A model of two classes whose labels, False and True, have names where it is exported to.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> describe(Named(model, "ham", "spam")).labels
    ['ham', 'spam']
    """

    model: Any
    negative: Hashable
    positive: Hashable


@dataclass(frozen=True, eq=False)
class Description:
    """How a model decides; the module has the symbol table, and `describe` makes one."""

    features: list[Hashable]
    shift: np.ndarray
    factor: np.ndarray
    limit: float
    missing: np.ndarray
    kernel: str
    degree: int
    coef0: float
    gamma: np.ndarray
    members: sp.csr_matrix
    coefficients: np.ndarray
    bias: np.ndarray
    slopes: np.ndarray
    labels: list[Hashable]
    decision: str
    threshold: float
    records: Records | None = None
    guarantee: Guarantee | None = None


def describe(model: Any) -> Description:
    """How a model decides, in plain values.

    Parameters
    ----------
    model
        A `LASVM`, `LASVMG`, `LASVMNC`, `LASVMI`, `FullSVM`, `AutoLASVM`, `OneVsRest` or `OneVsOne`, a fitted
        `sklearn_api.LASVMClassifier`, a river pipeline of `Records`, `WarmupScaler` and one of these, a
        `ConformalClassifier` around one, or any of these as `Named`.

    Returns
    -------
    Description
        The values; members with a linear kernel are summed up.

    Raises
    ------
    TypeError
        If it is another model, or its kernel is a function or a matrix.
    ValueError
        If the model has learned too little, or a name can be no text.

    Examples
    --------
    >>> from streamsvm import LASVM
    >>> model = LASVM(gamma=0.5)
    >>> model.learn_many([{"a": 0.0}, {"a": 1.0}], [False, True])
    >>> found = describe(model)
    >>> found.features, found.labels, found.kernel, found.gamma
    (['a'], [False, True], 'rbf', array([0.5, 0.5]))
    """
    if isinstance(model, Named):
        found = describe(model.model)
        if set(found.labels) != TWO:
            raise ValueError(f"the labels of the model are {found.labels}; only False and True can be given names")
        return replace(found, labels=[model.negative, model.positive])
    *before, learner = model.steps.values() if isinstance(model, compose.Pipeline) else [model]
    if isinstance(learner, ConformalClassifier):
        found = describe(learner.model)
        found = replace(found, guarantee=guarantee_of(learner, found.labels))
    else:
        found = _fitted(learner) if hasattr(learner, "model_") else _learned(learner)
    for place, step in reversed(list(enumerate(before))):
        if isinstance(step, WarmupScaler):
            found = _after(found, step.scale_of)
        elif isinstance(step, Records) and place == 0:
            found = replace(found, records=step)
        else:
            raise TypeError(
                f"{type(step).__name__} in a pipeline cannot be exported; it may begin with Records, and have a "
                "WarmupScaler before the model"
            )
    _require_plain("feature name", found.features)
    _require_plain("label", found.labels)
    return _summed(found) if found.kernel == NAMES[LINEAR_KIND] else found


def _learned(model: Any) -> Description:
    """A learner: its machines are its states that predict."""
    if isinstance(model, Mixture):
        raise TypeError("a Mixture cannot be exported: its experts have no such form; export a LASVM or an AutoLASVM")
    if not isinstance(model, Predictor | OneVsRest | OneVsOne):
        raise TypeError(f"{type(model).__name__} cannot be exported; give a learner of streamsvm")
    labels: list[Hashable]
    if isinstance(model, Predictor):
        states, common, labels, both = [model._state], model._state, [False, True], "both"
        decision, threshold = THRESHOLD, model.decision_threshold
    else:
        states, common, labels, both = list(model._predicting()), model._common, model.labels, "two"
        decision, threshold = ONE_VS_ONE if isinstance(model, OneVsOne) else ONE_VS_REST, 0.0
    if len(labels) < 2 or not model.n_support:
        raise ValueError(f"the model has no support vectors: it has not learned from {both} classes yet")
    features, kernel = common.features.learned(), common.kernel
    if NAMES[kernel.kind] not in EXPORTED_KERNELS:
        raise ValueError(f"kernel={NAMES[kernel.kind]!r} cannot be exported; use one of {_KERNELS}")
    if not features:
        raise ValueError("the model has no features: it has learned empty examples only")
    shift, factor, limit = _scale(common.scale, len(features))
    members, gamma, coefficients = _members_of(model, states, len(features))
    return Description(
        features=features,
        shift=shift,
        factor=factor,
        limit=limit,
        missing=_missing(common.scale, len(features)),
        kernel=NAMES[kernel.kind],
        degree=kernel.degree,
        coef0=kernel.coef0,
        gamma=gamma,
        members=members.astype(np.float64),
        coefficients=coefficients,
        bias=np.array([state.bias for state in states]),
        slopes=np.array([(state.sigmoid[0], state.sigmoid[2]) for state in states]),
        labels=labels,
        decision=decision,
        threshold=threshold,
    )


def _members_of(model: Any, states: list[State], n_features: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """The support vectors of all machines, the gamma of each, and their coefficients, a row for each machine."""
    import scipy.sparse as sp

    if not isinstance(model, Predictor | TunedOneVsRest):  # The machines share their vectors.
        numbers, _ = model._members(support=True)
        members = storage.rows_of(model._union.vectors, model._union.slots_of(numbers), n_features)
        return members, np.full(len(numbers), model._common.kernel.gamma), model.dual_coef
    slots = [np.flatnonzero(state.expansion.alpha) for state in states]
    own = list(zip(states, slots, strict=True))
    members = sp.vstack([storage.rows_of(state.expansion, of, n_features) for state, of in own], format="csr")
    coefficients = sp.block_diag([state.expansion.alpha[np.newaxis, of] for state, of in own]).toarray()
    return members, np.repeat([state.kernel.gamma for state in states], list(map(len, slots))), coefficients


def _scale(scale: RunningScale, n_features: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Shifts, factors and the limit of the scale in use."""
    shift, factor, c = np.zeros(n_features), np.ones(n_features), scale.state
    if not scale.is_active:
        return shift, factor, np.inf
    own = slice(int(c.counts[PLACES]))
    shift[c.feature[own]], factor[c.feature[own]] = c.shift[own], c.factor[own]
    return shift, factor, float(c.limits[CUT])


def _missing(scale: RunningScale, n_features: int) -> np.ndarray:
    """What the model takes for features that are lacking: its guesses, and 0 where 0 is what is left out."""
    missing = np.zeros(n_features)
    columns, guesses = scale.filled_one(np.zeros(0, np.int64), np.zeros(0), marked=False)
    missing[columns] = guesses
    return missing


def _fitted(classifier: Any) -> Description:
    """A fitted classifier of scikit-learn: its learner's machines, with its own names of classes and features."""
    if not isinstance(classifier.model_, Predictor | OneVsOne):
        raise TypeError(
            f"kernel={classifier.kernel!r} cannot be exported: only the caller can compute it; use one of {_KERNELS}"
        )
    if len(classifier.classes_) > 2 and classifier.break_ties:
        raise ValueError("break_ties=True cannot be exported; set it to False")
    found = _learned(classifier.model_)
    centre = classifier._centre
    if centre is not None:
        shifts = dict(zip(centre.columns.tolist(), centre.values.tolist(), strict=True))
        found = _after(found, lambda column: (shifts.get(column, 0.0), 1.0))
    names = getattr(classifier, "feature_names_in_", None)
    if names is not None:
        found = replace(found, features=[str(names[column]) for column in found.features])
    return replace(found, labels=classifier.classes_.tolist(), missing=np.zeros(len(found.features)))


def _after(found: Description, scale_of: Callable[[Any], tuple[float, float]]) -> Description:
    """The description with another scale before its own: ((x - s) t - shift) factor = (x - s - shift / t) t factor."""
    shift, factor = np.array([scale_of(name) for name in found.features]).T
    missing = shift + found.missing / factor
    return replace(found, shift=shift + found.shift / factor, factor=factor * found.factor, missing=missing)


def _summed(found: Description) -> Description:
    """The same with a linear kernel: one member for each machine, which is the sum of all."""
    import scipy.sparse as sp

    members = sp.csr_matrix(found.coefficients @ found.members)
    n = len(found.bias)
    return replace(found, members=members, gamma=np.ones(n), coefficients=np.eye(n))


def _require_plain(what: str, names: list[Hashable]) -> None:
    texts: dict[str, Hashable] = {}
    for name in names:
        if type(name) not in PLAIN:
            raise ValueError(
                f"the {what} {name!r} is a {type(name).__name__}; str, int, float and bool can be exported"
            )
        other = texts.setdefault(text_of(name), name)
        if other is not name:
            raise ValueError(f"the {what}s {other!r} and {name!r} are one text in other programs; rename one")


def text_of(name: Hashable) -> str:
    """A name or a label as a text: as JSON writes it, without the quotes."""
    return str(name).lower() if isinstance(name, bool) else str(name)
