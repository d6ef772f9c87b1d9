"""`WarmupScaler`, a scaler that learns from the first examples and then stays as it is."""

import math
import numbers
from collections.abc import Hashable, Mapping
from operator import mul, sub
from typing import Any, Self

import numpy as np
from river import base
from river.utils import dataframe

from streamsvm.core import arguments
from streamsvm.core.fixed import fixed_parameters
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require, require_array, require_finite
from streamsvm.estimators.inputs.checks import not_a_number, plain_names, require_plain
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.copies import Content, Saved

KINDS = ("standard", "minmax")


@fixed_parameters
class WarmupScaler(Saved, base.MiniBatchTransformer):
    """Scale features by statistics of the first examples, then stop moving.

    The learners scale features themselves (see `LASVM`), so most pipelines need no scaler.  Use this one if the scale
    must never change once the stream has begun, or for the range 0 to 1.  Then give the learner ``scaling=None``.

    A kernel model stores examples.  A scaler that keeps adapting, such as river's `StandardScaler`, would put later
    examples into other coordinates than the stored ones.  This scaler learns from the first `warmup` examples and then
    stays as it is.  During the warm-up it uses what it has seen so far.  It does not follow features that move later.

    Parameters
    ----------
    kind
        ``"standard"``: subtract the mean and divide by the standard deviation.  ``"minmax"``: map the range seen to
        [0, 1]; later values may lie outside.
    warmup
        Number of examples to learn from; at least 1.

    Raises
    ------
    ValueError
        If `kind` is unknown or `warmup` is not a positive integer.

    Notes
    -----
    A feature that was constant in the warm-up is only shifted.  A feature that first appears afterwards is passed on as
    it is.  A missing feature stays missing, and a model takes it as 0: do not scale sparse data.

    Examples
    --------
    >>> from streamsvm import WarmupScaler
    >>> scaler = WarmupScaler("minmax", warmup=2)
    >>> for x in ({"a": 1.0}, {"a": 3.0}, {"a": 100.0}):
    ...     scaler.learn_one(x)
    >>> scaler.frozen, scaler.transform_one({"a": 2.0, "b": 7.0})
    (True, {'a': 0.5, 'b': 7.0})
    """

    def __init__(self, kind: str = "standard", warmup: int = 300) -> None:
        if kind not in KINDS:
            raise ValueError(f"kind={kind!r} is unknown; use one of {', '.join(map(repr, KINDS))}")
        arguments.require_count("warmup", warmup, 1)
        self.kind = kind
        self.warmup = warmup
        self._n_seen = 0
        self._statistics: dict[Hashable, list[float]] = {}  # count, mean, sum of squared deviations, smallest, largest
        self._scales: dict[Hashable, tuple[float, float]] = {}  # shift and factor

    @property
    def frozen(self) -> bool:
        """Whether the warm-up is over."""
        return self._n_seen >= self.warmup

    def learn_one(self, x: dict) -> None:
        """Take note of an example's features; after the warm-up, do nothing.

        Raises
        ------
        TypeError
            If a feature is not a number.
        ValueError
            If a feature is not finite.
        """
        if self.frozen:
            return
        for name, value in x.items():
            if not isinstance(value, numbers.Real | np.bool_):
                raise not_a_number(name, value)
            if not math.isfinite(float(value)):
                raise ValueError(f"feature {name!r} is {value!r}; features must be finite numbers")
        self._n_seen += 1
        for name, value in x.items():
            self._scales[name] = self._scale(self._note(name, float(value)))

    def _note(self, name: Hashable, value: float) -> list[float]:
        statistics = self._statistics.setdefault(name, [0.0, 0.0, 0.0, math.inf, -math.inf])
        count, mean, deviations, smallest, largest = statistics
        count += 1.0
        step = value - mean
        mean += step / count
        statistics[:] = [count, mean, deviations + step * (value - mean), min(smallest, value), max(largest, value)]
        return statistics

    def _scale(self, statistics: list[float]) -> tuple[float, float]:
        count, mean, deviations, smallest, largest = statistics
        shift, width = (
            (mean, math.sqrt(deviations / count)) if self.kind == "standard" else (smallest, largest - smallest)
        )
        return shift, 1.0 / width if width > 1e-12 * abs(shift) else 1.0

    def scale_of(self, name: Hashable) -> tuple[float, float]:
        """Shift and factor of a feature: its scaled value is (value - shift) * factor; 0 and 1 if it is unknown."""
        return self._scales.get(name, (0.0, 1.0))

    def transform_one(self, x: dict) -> dict:
        """The example with its known features scaled; a new dict."""
        scales = self._scales
        return {
            name: (value - scales[name][0]) * scales[name][1] if name in scales else value for name, value in x.items()
        }

    def learn_many(self, X: Any) -> None:
        """Take note of the rows of a dataframe; after the warm-up, do nothing."""
        frame = dataframe.into_frame(X)
        for row in frame.head(max(0, self.warmup - self._n_seen)).iter_rows(named=True):
            self.learn_one(row)

    def transform_many(self, X: Any) -> Any:
        """The dataframe with its known columns scaled; or a list of dicts, each as `transform_one` scales it."""
        if isinstance(X, NamedRows):
            return X.scaled(self.scale_of)
        if isinstance(X, list):
            return self._transform_dicts(X)
        frame = dataframe.into_frame(X)
        columns = {}
        for name in frame.columns:
            shift, factor = self._scales.get(name, (0.0, 1.0))
            columns[name] = (frame[name].to_numpy() - shift) * factor
        return dataframe.to_native_frame(columns, like=frame)

    def _transform_dicts(self, rows: list[dict]) -> list[dict]:
        """As `transform_one` for each, but several times faster for dicts with all known features in order."""
        names = list(self._scales)
        shifts = [shift for shift, _ in self._scales.values()]
        factors = [factor for _, factor in self._scales.values()]
        return [
            dict(zip(x, map(mul, map(sub, x.values(), shifts), factors), strict=True))
            if list(x) == names
            else self.transform_one(x)
            for x in rows
        ]

    def _content(self) -> Content:
        require_plain("the feature name", self._statistics)
        meta = {"kind": self.kind, "warmup": self.warmup, "n_seen": self._n_seen, "features": list(self._statistics)}
        return meta, {"statistics": np.array(list(self._statistics.values()), np.float64).reshape(-1, 5)}

    @classmethod
    def _of_content(cls, meta: Mapping[str, Any], arrays: dict[str, np.ndarray], *how: Any) -> Self:
        scaler = cls(snapshot.field(meta, "kind", str), snapshot.count(meta, "warmup"))
        scaler._n_seen = snapshot.count(meta, "n_seen")
        names = plain_names(meta, "features")
        require_array(arrays, "statistics", np.float64, (len(names), 5))
        require_finite(arrays, "statistics")
        for name, statistics in zip(names, arrays["statistics"].tolist(), strict=True):
            count, _, deviations, smallest, largest = statistics
            require(count >= 1.0 and deviations >= 0.0 and smallest <= largest, f"statistics of {name!r}")
            scaler._statistics[name] = statistics
            scaler._scales[name] = scaler._scale(statistics)
        return scaler
