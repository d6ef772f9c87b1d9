"""Weights of the features, learned from a model: a feature counts as much as f(x) depends on it.

    w_j^2 = (1 - m) r_j^2 / mean r^2 + m,    r_j^2 = mean over a sample of members of (df / dx_j)^2

The kernel sees w_j times the scaled feature j.  The mean of w_j^2 is 1, so distances stay as large as before in the
mean, and gamma fits as before.  The scale has w_j / max w, because features are cut to -3..3, and gamma has max w^2.
The share m keeps the features that the model does not use yet.  The members are optimised at the new scale, and a
second round begins from their slopes, which depend less on noise.

Source: the diagonal of the recursive feature machine of Radhakrishnan et al., Science 2024, mixed with equal weights.
"""

import copy
from collections.abc import Mapping

import numpy as np

from streamsvm.core import storage
from streamsvm.core.blocks import BLOCK
from streamsvm.core.saving.snapshot import require, require_array
from streamsvm.core.scaling.state import PLACES, Scaling
from streamsvm.estimators.inputs.features import FeatureTable
from streamsvm.estimators.inputs.scaling import RunningScale
from streamsvm.estimators.learner.state import State, rescaled

EQUAL = 0.1  # m; with 0, a feature that is not used once is lost
STEPS = 1024  # of a weight: how a library adds up does not matter


class WeighedScale(RunningScale):
    """The running scale of several models with weights of the features, as one of them sees it.

    Parameters
    ----------
    common
        The scale of all models, which observes the stream.
    weights
        Weights of the features by place.  Features that get a place later weigh as much as the heaviest.

    Attributes
    ----------
    gamma_factor
        By how much gamma grows because the scale has only the weights' ratios to the largest one.
    """

    weighs = True

    def __init__(self, common: RunningScale, weights: np.ndarray) -> None:
        self.__dict__.update(common.__dict__)
        self.__dict__.pop("state")
        self._common, self._weights, self._ratios = common, weights, weights / weights.max()
        self.gamma_factor = float(weights.max() ** 2)
        self._last: tuple[Scaling, Scaling] | None = None

    @property
    def state(self) -> Scaling:  # type: ignore[override]  # it is the common one, which models replace
        """The common scale's state, with its arrays, but with weighed factors."""
        c = self._common.state
        if self._last is None or self._last[0] is not c:
            self._last = c, self.weighed(c)
        return self._last[1]

    def weighed(self, c: Scaling) -> Scaling:
        """A state of the common scale with weighed factors."""
        factor = c.factor.copy()
        factor[: len(self._ratios)] *= self._ratios
        return c._replace(factor=factor)

    def over(self, scale: RunningScale) -> RunningScale:
        """The same weights on another common scale."""
        return WeighedScale(scale, self._weights)

    def fit_room(self, features: FeatureTable) -> None:
        """Make room in the common scale."""
        self._common.fit_room(features)

    def weight_of(self, column: int) -> float:
        """The weight of a feature, in units of the largest one."""
        place = self._common.state.place[column]
        return float(self._ratios[place]) if 0 <= place < len(self._ratios) else 1.0

    def weights_to_store(self) -> dict[str, np.ndarray]:
        """The weights as a snapshot holds them."""
        return {"weights": self._weights.copy()}


def learned_scale(common: RunningScale, model: State) -> RunningScale:
    """The scale of all models with the weights that one of them, which has members, speaks for."""
    model = copy.copy(model)
    scale = WeighedScale(common, slope_weights(model))
    kernel = model.kernel._replace(gamma=model.kernel.gamma * scale.gamma_factor / model.scale.gamma_factor)
    model.expansion = rescaled(model, scale, kernel)
    model.scale, model.kernel = scale, kernel
    return WeighedScale(common, slope_weights(model))


def slope_weights(state: State) -> np.ndarray:
    """The weights by place that follow from a model's slopes at its latest members, (P,)."""
    s, c = state.expansion, state.scale.state
    slots, columns = storage.live_slots(s), c.feature[: c.counts[PLACES]]
    Z = _features(state, slots[-BLOCK:])
    G = np.zeros_like(Z)  # df / dz / 2 gamma at the members of the sample
    for part in np.array_split(slots, -(-len(slots) // BLOCK)):
        X = _features(state, part)
        K = s.alpha[part] * np.exp(-state.kernel.gamma * (_squares(Z)[:, None] - 2.0 * Z @ X.T + _squares(X)))
        G += K @ X - Z * K.sum(axis=1)[:, None]
    slopes = G[:, columns] * [state.scale.weight_of(d) for d in columns.tolist()]
    squares = np.square(slopes).mean(axis=0)
    w = np.sqrt((1.0 - EQUAL) * squares + max(EQUAL * squares.mean(), np.finfo(np.float64).tiny))
    return np.maximum(1.0, np.round(STEPS * w / np.sqrt(np.square(w).mean()))) / STEPS


def _features(state: State, slots: np.ndarray) -> np.ndarray:
    """The features of these members as the kernel sees them, (n, D)."""
    return storage.rows_of(state.expansion, slots, len(state.expansion.member_indices)).toarray().astype(np.float64)


def _squares(X: np.ndarray) -> np.ndarray:
    return np.square(X).sum(axis=1)


def stored_weights(arrays: Mapping[str, np.ndarray], n_places: int) -> np.ndarray:
    """The weights of a snapshot, or a SnapshotError."""
    weights = require_array(arrays, "weights", np.float64, (None,))
    require(0 < len(weights) <= n_places, f"it has {len(weights)} weights of features")
    most = len(weights)  # The mean of their squares is about 1.
    require(bool(((weights > 0.0) & (weights <= most)).all()), f"a weight of a feature is not from 0 to {most}")
    return weights.copy()
