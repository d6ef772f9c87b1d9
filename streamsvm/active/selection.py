"""Selection: which example without a label is worth asking about next.

- RANDOM: any.
- GRADIENT: of M random ones the one with the smallest y f(x); it needs the labels, so it is for simulations.
- ACTIVE: of M random ones, or of all, the one with the smallest |f(x)|.
- AUTOACTIVE: draw until 5 lie within 1 + delta/2 of the boundary, at most 100, then the smallest |f(x)|.

A small random pool is enough (`pool_size`), and costs one block of kernel values instead of a pass over everything.
A selection keeps nothing: its choice is a function of the pool's state, the model and the generator's state.

Source: Bordes, Ertekin, Weston, Bottou, "Fast kernel classifiers with online and active learning", JMLR 6 (2005),
section 6; Ertekin, Huang, Bottou, Giles, "Learning on the border", CIKM 2007, section 4.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from river import compose

from streamsvm.active.pool import EMPTY, Pool
from streamsvm.core import arguments

POOL = 59  # pool_size(0.05, 0.05)
CHUNK = 1024  # rows that are scored at once when everything is searched
FIRST_BLOCK = 8  # candidates that AUTOACTIVE scores at first, and then twice as many: fewer make no matrix product


class Choice(NamedTuple):
    """The example to ask about.

    key
        Its key in the pool.
    margin
        f(x) by the present model.
    n_candidates
        Among how many it was found.
    """

    key: int
    margin: float
    n_candidates: int


def pool_size(p: float = 0.05, eta: float = 0.05) -> int:
    """How many random candidates are enough.

    The best of M random candidates is among the best share `p` of everything unless all M miss that share, which
    happens with probability (1 - p)^M.  That is at most `eta` from M = log(eta) / log(1 - p) on, however large the pool
    is: with 59 candidates, the choice is with 95 % probability among the 5 % that lie closest to the boundary.

    Parameters
    ----------
    p
        The share of the pool that is good enough, between 0 and 1.
    eta
        The probability of missing it, between 0 and 1.

    Returns
    -------
    int
        M, at least 1.

    Raises
    ------
    ValueError
        If a parameter is not between 0 and 1.

    Examples
    --------
    >>> pool_size(), pool_size(p=0.01), pool_size(p=0.01, eta=0.01)
    (59, 299, 459)
    """
    for name, value in (("p", p), ("eta", eta)):
        arguments.require_share(name, value)
    return max(1, math.ceil(math.log(eta) / math.log1p(-p) - 1e-9))  # a ratio that is whole may come out above


def margins(model: Any, X: Any) -> np.ndarray:
    """f(x) of each row of X.

    Parameters
    ----------
    model
        A learner with `decision_function_many`, or a river pipeline that ends in one.
    X
        Rows as the learner takes them; before a pipeline a frame or dicts (arrays become dicts of their columns).

    Returns
    -------
    np.ndarray
        Decision values, (n,) float64.
    """
    if not isinstance(model, compose.Pipeline):
        return np.asarray(model.decision_function_many(X), np.float64)
    *transformers, last = model.steps.values()
    if transformers and not hasattr(X, "columns"):
        X = _dicts(X)
    for step in transformers:
        X = [step.transform_one(x) for x in X] if isinstance(X, list) else step.transform_many(X)
    return margins(last, X)


def _dicts(X: Any) -> list[Any]:
    if sp.issparse(X):
        X = sp.csr_matrix(X)
        parts = [slice(begin, end) for begin, end in zip(X.indptr[:-1], X.indptr[1:], strict=True)]
        return [dict(zip(X.indices[part].tolist(), X.data[part].tolist(), strict=True)) for part in parts]
    return [dict(enumerate(row)) for row in X.tolist()] if isinstance(X, np.ndarray) else list(X)


def largest_violation(model: Any) -> float:
    """The `delta` of a learner, or of the last step of a pipeline; 0 if it has none."""
    last = model[-1] if isinstance(model, compose.Pipeline) else model
    return float(getattr(last, "delta", 0.0))


class Selection(ABC):
    """A rule that chooses the next example to ask about."""

    @abstractmethod
    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        """The example to ask about; it stays in the pool.

        Parameters
        ----------
        pool
            The examples without a label.
        model
            See `margins`.  One that has learned nothing, or one class only, is as good as any.
        rng
            Draws the candidates.

        Raises
        ------
        ValueError
            If the pool is empty.
        """


def _drawn(pool: Pool, n: int, rng: np.random.Generator) -> list[int]:
    keys = pool.draw(n, rng)
    if not keys:
        raise ValueError(EMPTY)
    return keys


@dataclass(frozen=True)
class RandomSelection(Selection):
    """RANDOM: any example, whatever the model says."""

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        keys = _drawn(pool, 1, rng)
        return Choice(keys[0], float(margins(model, pool.rows(keys))[0]), 1)


@dataclass(frozen=True)
class ActiveSelection(Selection):
    """ACTIVE: the example closest to the boundary, among random candidates or everything.

    Parameters
    ----------
    pool
        How many random candidates, at least 1; None: everything, in chunks.  With 59 the choice is with 95 %
        probability among the 5 % closest to the boundary, see `pool_size`.

    Notes
    -----
    Equally close ones: the first drawn.
    """

    pool: int | None = POOL

    def __post_init__(self) -> None:
        if self.pool is not None:
            arguments.require_count("pool", self.pool, 1)

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        if self.pool is None:
            return _closest_of_all(pool, model)
        keys = _drawn(pool, self.pool, rng)
        f = margins(model, pool.rows(keys))
        best = int(np.argmin(np.abs(f)))
        return Choice(keys[best], float(f[best]), len(keys))


def _closest_of_all(pool: Pool, model: Any) -> Choice:
    """The closest to the boundary of all, a chunk at a time: memory does not grow with the pool."""
    keys, best = pool.keys(), None
    for begin in range(0, len(keys), CHUNK):
        f = margins(model, pool.rows(keys[begin : begin + CHUNK]))
        closest = int(np.argmin(np.abs(f)))
        if best is None or abs(f[closest]) < abs(best.margin):
            best = Choice(keys[begin + closest], float(f[closest]), len(keys))
    if best is None:
        raise ValueError(EMPTY)
    return best


@dataclass(frozen=True)
class AutoActiveSelection(Selection):
    """AUTOACTIVE: draw candidates until enough lie close to the boundary, then take the closest.

    A candidate is close if |f(x)| <= 1 + delta/2, where delta is the model's largest violation: farther out, it only
    matters if its label is a surprise.  Early, almost every candidate is close and a few are enough; later the search
    goes deeper, without a pool size to choose.

    Parameters
    ----------
    within
        How many candidates must be close, at least 1.
    at_most
        How many are drawn even so, at least 1.

    Notes
    -----
    Equally close ones: the first drawn.  Candidates are scored in blocks of 8, 16, 32, ...; the choice is what scoring
    one after the other gives.
    """

    within: int = 5
    at_most: int = 100

    def __post_init__(self) -> None:
        arguments.require_count("within", self.within, 1)
        arguments.require_count("at_most", self.at_most, 1)

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        keys = _drawn(pool, self.at_most, rng)
        reach = 1.0 + 0.5 * largest_violation(model)
        f, block, enough = np.empty(0), FIRST_BLOCK, len(keys)
        while len(f) < len(keys):
            f = np.append(f, margins(model, pool.rows(keys[len(f) : len(f) + block])))
            close = np.flatnonzero(np.abs(f) <= reach)
            if len(close) >= self.within:
                enough = int(close[self.within - 1]) + 1
                break
            block *= 2
        best = int(np.argmin(np.abs(f[:enough])))
        return Choice(keys[best], float(f[best]), enough)


@dataclass(frozen=True)
class GradientSelection(Selection):
    """GRADIENT: of some random candidates the one that the model gets most wrong, the smallest y f(x).

    It needs labels that are known already, so it is a yardstick for simulations, not a way to ask people.  It finds
    rare groups far from the boundary, and is bad under noise: wrong labels are what it likes best.

    Parameters
    ----------
    labels
        The label of each key: a mapping, or an array whose entry number `key` it is; True or positive for the positive
        class.
    pool
        How many random candidates, at least 1.

    Notes
    -----
    Equally wrong ones: the first drawn.
    """

    labels: Mapping[int, Any] | Sequence[Any] | np.ndarray
    pool: int = POOL

    def __post_init__(self) -> None:
        arguments.require_count("pool", self.pool, 1)

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        keys = _drawn(pool, self.pool, rng)
        f = margins(model, pool.rows(keys))
        y = np.array([1.0 if self.labels[key] > 0 else -1.0 for key in keys])
        best = int(np.argmin(y * f))
        return Choice(keys[best], float(f[best]), len(keys))
