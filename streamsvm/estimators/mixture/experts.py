"""The experts beside the model: their columns, their state, and when the spans and the bins begin anew."""

from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

import numpy as np

from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require, require_array, require_finite
from streamsvm.core.threads import one_blas_thread
from streamsvm.estimators.mixture.fitting import BUFFER, FADING, RIDGES, SIZE, Fit, Latest
from streamsvm.online.mixture import advice, experts, linear, pairs
from streamsvm.online.mixture.spans import BLOCK, Span

MOST_COLUMNS = 128  # the experts look at the first ones: a Bayesian expert costs their square
State = TypeVar("State", linear.Linear, pairs.Pairs, advice.Advice)
SQUARES = ("lines.spreads", "rule.errors", "rule.spreads")
SPAN_ARRAYS = [name for name in Span._fields if name != "block"]


class Experts:
    """All experts but the model, and the rule that makes one probability of all."""

    def __init__(self) -> None:
        self.columns: dict[Hashable, int] = {}
        self.lines, self.pairs, self.rule = linear.new_linear(0), pairs.new_pairs(0), advice.new_advice(experts.K)
        self.latest = Latest(0)
        self.fits = (Fit(0, is_full=True, memory=1.0), Fit(0, is_full=False, memory=FADING))
        self._make_room()

    def _make_room(self) -> None:
        first, second = (fit.span for fit in self.fits)
        self._room = experts.new_room(len(self.columns), len(first.squares))
        self._state = self.lines, self.pairs, first, second, self.rule, self._room

    @property
    def probabilities(self) -> np.ndarray:
        """The probabilities that the model and the experts gave the record that was predicted last, (K,)."""
        return self._room.p.copy()

    # ----------------------------------------------------------------------------------------------------- one record

    def predict(self, x: Mapping[Hashable, Any], p: float) -> float:
        """The probability of True, from that of the model and those of all experts."""
        self._room.x[:] = [x.get(name, 0.0) for name in self.columns]  # None becomes NaN
        self._room.p[0] = p
        return float(experts.predict(*self._state))

    def learn(self, y: bool, p: np.ndarray | None = None) -> None:
        """Learn the record that was predicted last; p: what was said of it before, if its label is late."""
        label, at = 1.0 if y else -1.0, self.latest.n % BLOCK
        if p is not None:
            self._room.p[:] = p
        experts.learn(label, at, *self._state)
        self.latest.add(self._room.x, label)
        if at == BLOCK - 1:
            with one_blas_thread():
                self._fit()

    def _fit(self) -> None:
        """Take the block into the spans, or, when the number of records has doubled, begin them anew."""
        n = self.latest.n
        if n & (n - 1):
            block = self.latest.y[(n - BLOCK + np.arange(BLOCK)) % BUFFER]
            for fit in self.fits:
                fit.take_in(block, n)
            return
        X, y = self.latest.in_order()
        for fit in self.fits:
            fit.begin_anew(X, y)
        if n <= BUFFER:  # all records are still here
            self.pairs = pairs.binned(X)
            pairs.learn_all_pairs(self.pairs, X, y, self._room.cells)
        self._make_room()

    # -------------------------------------------------------------------------------------------------------- columns

    def know(self, x: Mapping[Hashable, Any]) -> None:
        """Give a column to each new name, in an order that does not depend on the record's, while there is room.

        If there were any, predict the record again: it is the one that was predicted last.
        """
        if x.keys() <= self.columns.keys() or len(self.columns) == MOST_COLUMNS:
            return
        for name in sorted(x.keys() - self.columns.keys(), key=lambda name: (str(type(name)), name)):
            if len(self.columns) < MOST_COLUMNS:
                self.columns[name] = len(self.columns)
        d = len(self.columns)
        self.lines = linear.widened(self.lines, d) if self.latest.n else linear.new_linear(d)
        self.pairs = pairs.widened(self.pairs, d)
        self.latest.widen(d)
        for fit in self.fits:
            fit.widen(d)
        of_model = float(self._room.p[0])
        self._make_room()
        self.predict(x, of_model)

    # ------------------------------------------------------------------------------------------------------ snapshots

    def dump(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state as plain values, and arrays."""
        arrays: dict[str, np.ndarray] = {}
        for prefix, state in (("lines", self.lines), ("pairs", self.pairs), ("rule", self.rule)):
            own = {f"{prefix}.{name}": array for name, array in state._asdict().items()}
            arrays |= {name: array.reshape(_shape(name, array)) for name, array in own.items()}
        arrays |= {"latest.X": self.latest.X, "latest.y": self.latest.y}
        for i, fit in enumerate(self.fits):
            arrays |= {f"span{i}.{name}": getattr(fit.span, name) for name in SPAN_ARRAYS}
            arrays[f"span{i}.block"] = fit.span.block[: self.latest.n % BLOCK]
            arrays |= {f"span{i}.A": np.tril(fit.A), f"span{i}.b": fit.b, f"span{i}.losses": fit.losses}
        unsolved = [fit.n_unsolved for fit in self.fits]
        return {"columns": list(self.columns), "n": self.latest.n, "n_unsolved": unsolved}, arrays

    def restore(self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `dump` gave, or raise a SnapshotError."""
        names = snapshot.field(meta, "columns", list)
        self.columns = {name: j for j, name in enumerate(names)}
        d, self.latest.n = len(names), snapshot.count(meta, "n")
        require(len(self.columns) == d <= MOST_COLUMNS, "the columns of the experts")
        self.lines = _like(linear.new_linear(d), arrays, "lines")
        self.pairs = _like(pairs.new_pairs(d), arrays, "pairs")
        self.rule = _like(advice.new_advice(experts.K), arrays, "rule")
        self.latest.X, self.latest.y = _taken(arrays, "latest.X", (BUFFER, d)), _taken(arrays, "latest.y", (BUFFER,))
        unsolved = snapshot.field(meta, "n_unsolved", list)
        require(len(unsolved) == len(self.fits), "the spans")
        for i, fit in enumerate(self.fits):
            fit.n_unsolved = snapshot.count({"n": unsolved[i]}, "n")
            self._restore_fit(fit, f"span{i}.", d, arrays)
        require(len(self.fits[0].b) == len(self.fits[1].b), "the bases of the spans")
        self._make_room()

    def _restore_fit(self, fit: Fit, prefix: str, d: int, arrays: Mapping[str, np.ndarray]) -> None:
        m = len(require_array(arrays, f"{prefix}squares", np.float64, (None,)))
        require(m <= SIZE, "the basis of a span")
        shapes = {"mean": (d,), "factor": (d,), "metric": (d, d), "basis": (d, m), "squares": (m,), "gamma": (2,)}
        shapes["coef"] = (len(RIDGES), m)
        own = {name: _taken(arrays, prefix + name, shape) for name, shape in shapes.items()}
        require(own["gamma"][1] in range(len(RIDGES)), "the ridge of a span")
        block = np.zeros((BLOCK, m))
        block[: self.latest.n % BLOCK] = _taken(arrays, f"{prefix}block", (self.latest.n % BLOCK, m))
        fit.span = Span(**own, block=block)
        fit.note_basis()
        fit.A = np.asfortranarray(_taken(arrays, f"{prefix}A", (m, m)))
        fit.b, fit.losses = _taken(arrays, f"{prefix}b", (m,)), _taken(arrays, f"{prefix}losses", (len(RIDGES),))


def _taken(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    array = require_array(arrays, name, np.float64, shape)
    if name != "latest.X":  # NaN is a missing value
        require_finite(arrays, name)
    return array


def _shape(name: str, array: np.ndarray) -> tuple[int, ...]:
    """The shape of an array of the state in snapshots: square matrices that lie below each other have three lengths."""
    *_, e = array.shape
    return (array.size // (e * e), e, e) if name in SQUARES else array.shape


def _like(empty: State, arrays: Mapping[str, np.ndarray], prefix: str) -> State:
    """The arrays of a snapshot, if they have the types and the shapes of those of this state."""
    found = {}
    for field, array in empty._asdict().items():
        name = f"{prefix}.{field}"
        found[field] = require_array(arrays, name, array.dtype, _shape(name, array)).reshape(array.shape)
        require(not np.isnan(found[field]).any(), f"{name} holds NaN")
    return empty._replace(**found)
