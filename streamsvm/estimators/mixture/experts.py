"""The experts beside the model: their columns, their state, and when the spans and the bins begin anew."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require, require_array, require_finite
from streamsvm.core.threads import one_blas_thread
from streamsvm.estimators.mixture.fitting import BUFFER, RIDGES, Fit, Latest, is_time_to_begin
from streamsvm.online.mixture import advice, experts, linear, pairs
from streamsvm.online.mixture.experts import K
from streamsvm.online.mixture.spans import BLOCK, Span

MOST_COLUMNS = BLOCK  # the experts look at the first ones: a Bayesian one costs their square, a span times its basis
NONE = -1  # the number of no class
STEP = BLOCK // 4  # records after which the spans are looked at
SQUARES = ("lines.spreads", "rule.errors", "rule.spreads")
OWN_OF_SPANS, OWN_OF_FITS = ("coef", "gamma"), ("b", "losses")  # of each class
SHARED_OF_SPANS = [name for name in Span._fields if name not in ("block", *OWN_OF_SPANS)]
SHARED = ("lines.moments", "pairs.edges")


class Experts:
    """All experts but the model, and the rule that makes one probability of all.

    There is one set of them for each class, which tells it from the others.  Two classes need one: it is number 0.
    """

    def __init__(self) -> None:
        self.columns: dict[Hashable, int] = {}
        self.lines, self.pairs, self.rules = [linear.new_linear(0)], [pairs.new_pairs(0)], [advice.new_advice(K)]
        self.latest = Latest(0)
        self.fits = _new_fits()
        self.n_fitted = 1  # classes that the spans have begun with
        self.n_taken = self.n_solved = 0  # records that the sums of the spans hold, and that their coefficients know
        self._make_room()

    def _make_room(self) -> None:
        """Let all classes share what does not depend on the class."""
        moments, edges = self.lines[0].moments, self.pairs[0].edges
        self.lines = [own._replace(moments=moments) for own in self.lines]
        self.pairs = [own._replace(edges=edges) for own in self.pairs]
        first, second = (fit.spans for fit in self.fits)
        shared = experts.new_room(len(self.columns), len(first[0].squares))
        self._rooms = [
            shared._replace(p=np.zeros(K), logits=np.zeros(K + 1), answers=np.zeros(K + 2)) for _ in self.rules
        ]
        self._joint: list[float] = []  # the probability of each class of the record that was predicted last
        self._states = list(zip(self.lines, self.pairs, first, second, self.rules, self._rooms, strict=True))

    @property
    def probabilities(self) -> np.ndarray:
        """The probabilities that the model and the experts gave the record that was predicted last, (C, K)."""
        return np.array([room.p for room in self._rooms])

    @property
    def logits(self) -> np.ndarray:
        """Their logits, cut, (C, K)."""
        return np.array([room.logits[:K] for room in self._rooms])

    # ----------------------------------------------------------------------------------------------------- one record

    def predict(self, x: Mapping[Hashable, Any], p: Iterable[float]) -> list[float]:
        """The probability of each class, from that of the model and those of the class's experts."""
        self._rooms[0].x[:] = [x.get(name, 0.0) for name in self.columns]  # None becomes NaN
        found: list[float] = []
        for of_model, state in zip(p, self._states, strict=False):
            state[-1].p[0] = of_model
            found.append(experts.predict(not found, *state))
        self._joint = found
        return found

    def learn(self, number: int, said: Sequence[np.ndarray] | None = None) -> list[float]:
        """Learn the record that was predicted last, which is of this class.

        Parameters
        ----------
        number
            Of the class; `NONE` for an example of none of them.
        said
            What `probabilities` were when the record was predicted, if its label is late.

        Returns
        -------
        list of float
            The probability of each class, from what was said.
        """
        if said is not None or len(self._joint) < len(self._rooms):  # a class without a prediction has just begun
            self._judge(said if said is not None else ())
        at, joint = self.latest.n - self.n_taken, self._joint
        for c, state in enumerate(self._states):
            experts.learn(not c, 1.0 if c == number else -1.0, at, *state)
        self.latest.add(self._rooms[0].x, number + 1.0 if number != NONE else -1.0)
        if self.latest.n % STEP == 0:
            self._fit()
        return joint

    def _judge(self, said: Sequence[np.ndarray]) -> None:
        """Let the rules see these probabilities in the place of those of the record that was predicted last."""
        for room, p in zip(self._rooms, said, strict=False):
            room.p[:] = p
        self._joint = [experts.judge(rule, room) for rule, room in zip(self.rules, self._rooms, strict=True)]

    def _fit(self) -> None:
        """Keep the spans up to date.  Begin them anew if it is time, or if a class is new."""
        n = self.latest.n
        begins = is_time_to_begin(n) or self.n_fitted < len(self.rules)
        is_due = begins or n - self.n_solved >= min(n, BUFFER) // 4
        if not is_due and n - self.n_taken < BLOCK:
            return
        Y = self._signs(self.latest.y[np.arange(self.n_taken, n) % BUFFER])
        with one_blas_thread():
            try:
                for fit in self.fits if self.n_taken else ():  # at first, there is no basis
                    fit.take_in(Y)
                    if is_due:  # at a beginning too: the metric is learned from the coefficients
                        fit.solve()
                self.n_taken, self.n_solved = n, n if is_due else self.n_solved
                if begins:
                    self._begin_anew(n)
            except BaseException:  # such as Ctrl-C: the sums may hold a part of the records
                self._begin_without_sums(n)
                raise

    def _begin_without_sums(self, n: int) -> None:
        self.fits = _new_fits()
        for fit in self.fits:
            fit.widen(len(self.columns))
            for _ in self.rules[1:]:
                fit.begin_class()
        self.n_taken = self.n_solved = n
        self._begin_anew(n)

    def _begin_anew(self, n: int) -> None:
        X, y = self.latest.in_order()
        Y, self.n_fitted = self._signs(y), len(self.rules)
        for fit in self.fits:
            fit.begin_anew(X, Y)
        if n <= BUFFER:  # all records are still here
            self.pairs = [pairs.binned(X) for _ in self.pairs]
            for own, signs in zip(self.pairs, Y, strict=True):
                pairs.learn_all_pairs(own, X, signs, self._rooms[0].cells)
        self._make_room()

    def _signs(self, y: np.ndarray) -> np.ndarray:
        """+1 where a record is of a class, -1 where not, (C, n)."""
        return np.where(y == 1.0 + np.arange(len(self.rules))[:, None], 1.0, -1.0)

    # ------------------------------------------------------------------------------------------- columns, and classes

    def know(self, x: Mapping[Hashable, Any], n_classes: int = 1) -> None:
        """Make room for new names and new classes.

        A new name gets a column, in an order that does not depend on the record's, while there is room.  The experts of
        a new class have learned nothing.  If anything was new, the record is predicted again, as the latest one.
        """
        d, n = len(self.columns), len(self.rules)
        if d < MOST_COLUMNS and not x.keys() <= self.columns.keys():
            new = sorted(x.keys() - self.columns.keys(), key=lambda name: (str(type(name)), name))
            self.columns |= {name: d + j for j, name in enumerate(new[: MOST_COLUMNS - d])}
            self._widen(len(self.columns))
        elif n_classes <= n:
            return
        for _ in range(n, n_classes):
            self._begin_class()
        of_model = [float(room.p[0]) for room in self._rooms] + [0.5] * (n_classes - n)
        self._make_room()
        self.predict(x, of_model)

    def _widen(self, d: int) -> None:
        self.lines = [linear.widened(own, d) if self.latest.n else linear.new_linear(d) for own in self.lines]
        self.pairs = [pairs.widened(own, d) for own in self.pairs]
        self.latest.widen(d)
        for fit in self.fits:
            fit.widen(d)

    def _begin_class(self) -> None:
        d = len(self.columns)
        self.lines.append(linear.new_linear(d))
        self.pairs.append(pairs.new_pairs(d))
        self.rules.append(advice.new_advice(K))
        for fit in self.fits:
            fit.begin_class()

    # ------------------------------------------------------------------------------------------------------ snapshots

    def dump(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """The state as plain values, and arrays."""
        meta = {"columns": list(self.columns), "n": self.latest.n, "n_taken": self.n_taken, "n_solved": self.n_solved}
        meta |= {"n_classes": len(self.rules), "n_fitted": self.n_fitted}
        return meta, {name: _as_stored(name, array) for name, array in self._arrays()}

    def _arrays(self) -> Iterator[tuple[str, np.ndarray]]:
        """The arrays of the state themselves; names of a class but the first begin with its number."""
        yield from (("latest.X", self.latest.X), ("latest.y", self.latest.y))
        for i, fit in enumerate(self.fits):
            yield from ((f"span{i}.{name}", getattr(fit.span, name)) for name in SHARED_OF_SPANS)
            yield from ((f"span{i}.block", fit.span.block[: self.latest.n - self.n_taken]), (f"span{i}.A", fit.A))
        for c, (line, pair, rule) in enumerate(zip(self.lines, self.pairs, self.rules, strict=True)):
            prefix = f"class{c}." if c else ""
            states: dict[str, Any] = {"lines": line, "pairs": pair, "rule": rule}
            for part, state in states.items():
                own = {f"{part}.{name}": array for name, array in state._asdict().items()}
                shown = {name: array.reshape(_shape(name, array)) for name, array in own.items()}
                yield from ((prefix + name, array) for name, array in shown.items() if not (c and name in SHARED))
            for i, fit in enumerate(self.fits):
                yield from ((f"{prefix}span{i}.{name}", getattr(fit.spans[c], name)) for name in OWN_OF_SPANS)
                yield from ((f"{prefix}span{i}.{name}", getattr(fit, name)[c]) for name in OWN_OF_FITS)

    def restore(self, meta: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `dump` gave, or raise a SnapshotError; nothing has been learned yet."""
        if "n_unsolved" in meta:
            meta = _renewed(meta)
        names = snapshot.field(meta, "columns", list)
        self.columns = {name: j for j, name in enumerate(names)}
        require(len(self.columns) == len(names) <= MOST_COLUMNS, "the columns of the experts")
        n, self.n_fitted = snapshot.count(meta, "n_classes"), snapshot.count(meta, "n_fitted")
        are_there = n < 2 or f"class{n - 1}.rule.shares" in arrays  # before anything is made for each
        require(are_there and 1 <= self.n_fitted <= n, "the numbers of classes")
        m = len(require_array(arrays, "span0.squares", np.float64, (None,)))
        require(m <= BUFFER, "the basis of a span")  # it is as long as it was made: older states have 250
        self._widen(len(names))
        for fit in self.fits:
            fit.make_room(m)
        for _ in range(1, n):
            self._begin_class()
        self.latest.n, self.n_taken = snapshot.count(meta, "n"), snapshot.count(meta, "n_taken")
        self.n_solved = snapshot.count(meta, "n_solved")
        in_block = self.latest.n - self.n_taken
        require(0 <= in_block < BLOCK and self.n_solved <= self.latest.n, "the records of the spans")
        self._make_room()
        for name, array in self._arrays():
            stored = _as_stored(name, array)
            found = require_array(arrays, name, stored.dtype, stored.shape)
            require(name == "latest.X" or not np.isnan(found).any(), f"{name} holds NaN")  # there it is a missing value
            if "span" in name or name == "latest.y":
                require_finite(arrays, name)
            array[...] = found if found.shape == array.shape else np.diagonal(found)
        for fit in self.fits:
            require(all(span.gamma[1] in range(len(RIDGES)) for span in fit.spans), "the ridge of a span")
            fit.note_basis()


def _new_fits() -> tuple[Fit, Fit]:
    return Fit(is_full=True, memory=1.0), Fit(is_full=False, memory=linear.MEMORY)


def _renewed(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Of a snapshot from before there were several classes, when the spans took in `STEP` records at once."""
    unsolved, n = snapshot.field(meta, "n_unsolved", list), snapshot.count(meta, "n")
    require(len(unsolved) > 0, "the spans")
    n_taken = n - n % STEP
    n_solved = n_taken - snapshot.count({"n": unsolved[0]}, "n")
    return {**meta, "n_taken": n_taken, "n_solved": n_solved, "n_classes": 1, "n_fitted": 1}


def _as_stored(name: str, array: np.ndarray) -> np.ndarray:
    """An array as a snapshot has it: a diagonal metric is a matrix there."""
    return np.diagflat(array) if name.endswith(".metric") and len(array) == 1 else array


def _shape(name: str, array: np.ndarray) -> tuple[int, ...]:
    """The shape of an array of the state in snapshots: square matrices that lie below each other have three lengths."""
    *_, e = array.shape
    return (array.size // (e * e), e, e) if name in SQUARES else array.shape
