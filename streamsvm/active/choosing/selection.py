"""Selection: which example without a label is worth asking about next?

- RANDOM: any example.
- GRADIENT: of M random examples the one with the smallest y f(x).  It needs the labels, so it is for simulations.
- ACTIVE: of M random examples, or of all, the one with the smallest |f(x)|.
- AUTOACTIVE: draw until 5 examples lie within 1 + delta/2 of the boundary, at most 100; then the smallest |f(x)|.

A few random candidates are enough (`pool_size`).  They cost one block of kernel values instead of a pass over all
examples.  These selections have no state: their choice depends on the pool, the model and the random generator only.
`mixed` has the default, which also remembers the labelled examples.

Source: Bordes, Ertekin, Weston, Bottou, "Fast kernel classifiers with online and active learning", JMLR 6 (2005),
section 4; Ertekin, Huang, Bottou, Giles, "Learning on the border", CIKM 2007, section 3.2.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from streamsvm.active.choosing.decisions import closest_of_rare, decisions, half_leads, learner_of, margins
from streamsvm.active.choosing.pool import EMPTY, Pool
from streamsvm.core import arguments
from streamsvm.core.blocks import BLOCK, MIN_QUERIES

CHUNK = 4 * BLOCK  # rows that are scored together when all examples are searched


Reason = Literal[  # why it is asked; see `loop`
    "seed", "boundary", "novel", "explore", "audit", "undecided", "check", "review", "hunt"
]


class Choice(NamedTuple):
    """The example to ask about.

    key
        Its key in the pool.
    margin
        f(x) by the current model.
    n_candidates
        Number of candidates that it was chosen from.
    reason
        Why it was chosen.
    """

    key: int
    margin: float
    n_candidates: int
    reason: Reason = "boundary"


def pool_size(p: float = 0.05, eta: float = 0.05) -> int:
    """How many random candidates are enough?

    With 59 candidates, the best of them is with 95 % probability among the best 5 % of all examples, however many these
    are.  In general, M candidates all miss the best share `p` with probability (1 - p)^M, which is at most `eta` from
    M = log(eta) / log(1 - p) on.

    Parameters
    ----------
    p
        The share of all examples that is good enough; between 0 and 1.
    eta
        The accepted probability of missing it; between 0 and 1.

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
    return max(1, math.ceil(math.log(eta) / math.log1p(-p) - 1e-9))  # A whole ratio may come out slightly above.


POOL = pool_size()
EACH_CLASS = 3  # labels of a class: fewer say little about its others


class Selection(ABC):
    """Chooses the next example to ask about.

    Attributes
    ----------
    explores : bool
        Whether some of its choices look for what the model does not suspect.  If not, the loop asks random questions as
        well.
    why : str
        Why it goes on asking if no stopping rule is given.
    """

    explores: ClassVar[bool] = False
    why: str = "there is no stopping rule"

    @abstractmethod
    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        """Choose the example to ask about.  It stays in the pool.

        Parameters
        ----------
        pool
            The examples without a label.
        model
            As in `margins`.  It may have learned one class only, or nothing.
        rng
            Draws the candidates.

        Returns
        -------
        Choice
            The example, its margin, and the number of candidates.

        Raises
        ------
        ValueError
            If the pool is empty.
        """

    def begin(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        """Choose an example while a class has no label, with the parameters of `choose`; by default any."""
        keys = drawn(pool, 1, rng)
        return chosen(pool, model, keys[0], 1, "seed")

    def values(self, pool: Pool, model: Any) -> np.ndarray:
        """f(x) of the pool's examples, or of some that are spread over it; parameters as of `choose`.

        Nothing is drawn, so the next questions do not depend on it.
        """
        keys = pool.keys()
        return margins(model, pool.rows(keys[:: max(1, len(keys) // CHUNK)])) if keys else np.empty(0)

    def note(self, key: int, row: Any) -> None:  # noqa: B027 # most selections remember nothing
        """Take note of an example that was labelled, a batch of one, as the pool's `rows` gave it."""

    def drop(self, key: int) -> None:  # noqa: B027
        """Take note of an example whose label was taken back."""

    def state(self) -> dict[str, Any]:
        """What was noted, as JSON can hold it."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:  # noqa: B027
        """Go on as the selection whose `state` this was."""


def chosen(pool: Pool, model: Any, key: int, n_candidates: int, reason: Reason) -> Choice:
    """The choice of an example of the pool."""
    return Choice(key, float(margins(model, pool.rows([key]))[0]), n_candidates, reason)


def drawn(pool: Pool, n: int, rng: np.random.Generator) -> list[int]:
    """The keys of random examples; a ValueError if there are none."""
    keys = pool.draw(n, rng)
    if not keys:
        raise ValueError(EMPTY)
    return keys


@dataclass(frozen=True)
class RandomSelection(Selection):
    """RANDOM: any example, whatever the model says.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import ArrayPool, RandomSelection
    >>> choice = RandomSelection().choose(ArrayPool(np.eye(4)), LASVM(), np.random.default_rng(0))
    >>> choice.n_candidates
    1
    """

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        return super().begin(pool, model, rng)._replace(reason="explore")


@dataclass(frozen=True)
class ActiveSelection(Selection):
    """ACTIVE: the example closest to the boundary, among random candidates or all.

    Parameters
    ----------
    pool
        Number of random candidates, at least 1; None: all examples, in chunks.  With 59, the choice is with 95 %
        probability among the 5 % closest to the boundary: see `pool_size`.
    rare_first
        Whether to ask about classes with few examples more often; needs a model of several classes.  A class is drawn
        at random, of those near which a candidate inside the margin lies; then the closest of these candidates is
        chosen.  A class with half as many examples is drawn twice as often.  If no candidate lies inside the margin,
        the closest one of all is chosen.

    Notes
    -----
    Of equally close examples, the first one drawn is chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import ActiveSelection, ArrayPool
    >>> model = LASVM()
    >>> model.learn_many(np.array([[-1.0], [1.0]]), [False, True])
    >>> pool = ArrayPool(np.array([[-0.9], [0.1], [0.8]]))
    >>> ActiveSelection().choose(pool, model, np.random.default_rng(0)).key
    1
    """

    pool: int | None = POOL
    rare_first: bool = False

    def __post_init__(self) -> None:
        if self.pool is not None:
            arguments.require_count("pool", self.pool, 1)

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        keys = pool.keys() if self.pool is None else drawn(pool, self.pool, rng)
        if not keys:
            raise ValueError(EMPTY)
        chunks = (keys[begin : begin + CHUNK] for begin in range(0, len(keys), CHUNK))  # features need memory
        values = np.concatenate([decisions(model, pool.rows(chunk)) for chunk in chunks])
        f = values if values.ndim == 1 else half_leads(values)
        best = closest_of_rare(model, values, f, rng) if self.rare_first else int(np.argmin(np.abs(f)))
        return Choice(keys[best], float(f[best]), len(keys))


@dataclass(frozen=True)
class AutoActiveSelection(Selection):
    """AUTOACTIVE: draw candidates until enough lie close to the boundary, then take the closest.

    A candidate is close if |f(x)| <= 1 + delta/2, where delta is the model's largest violation.  Farther out, it only
    matters if its label is a surprise.  At first almost every candidate is close, and a few are enough.  Later the
    search goes deeper.  There is no pool size to choose.

    Parameters
    ----------
    within
        Number of candidates that must be close; at least 1.
    at_most
        Largest number of candidates; at least 1.

    Notes
    -----
    Of equally close examples, the first one drawn is chosen.  Candidates are scored in blocks of 8, 16, 32, ...; the
    choice is the same as if they were scored one by one.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import ArrayPool, AutoActiveSelection
    >>> pool = ArrayPool(np.eye(40))
    >>> AutoActiveSelection().choose(pool, LASVM(), np.random.default_rng(0)).n_candidates
    5
    """

    within: int = 5
    at_most: int = 100

    def __post_init__(self) -> None:
        arguments.require_count("within", self.within, 1)
        arguments.require_count("at_most", self.at_most, 1)

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        keys = drawn(pool, self.at_most, rng)
        reach = 1.0 + 0.5 * float(getattr(learner_of(model), "delta", 0.0))  # delta: its largest violation
        f, block, enough = np.empty(0), MIN_QUERIES, len(keys)
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
    """GRADIENT: of some random candidates the one that the model gets most wrong, with the smallest y f(x).

    It needs labels that are known already, so it is a yardstick for simulations, not a way to ask people.  It finds
    rare groups far from the boundary.  Under noise it is bad: it prefers wrong labels.

    Parameters
    ----------
    labels
        The label of each key, as a mapping or an array; True or a positive number for the positive class.
    pool
        Number of random candidates; at least 1.

    Notes
    -----
    Of equally wrong examples, the first one drawn is chosen.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import ArrayPool, GradientSelection
    >>> model = LASVM()
    >>> model.learn_many(np.array([[-1.0], [1.0]]), [False, True])
    >>> pool = ArrayPool(np.array([[-0.9], [0.1], [0.8]]))
    >>> GradientSelection([False, False, False]).choose(pool, model, np.random.default_rng(0)).key
    2
    """

    labels: Mapping[int, Any] | Sequence[Any] | np.ndarray
    pool: int = POOL

    def __post_init__(self) -> None:
        arguments.require_count("pool", self.pool, 1)

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        keys = drawn(pool, self.pool, rng)
        f = margins(model, pool.rows(keys))
        y = np.array([1.0 if self.labels[key] > 0 else -1.0 for key in keys])
        best = int(np.argmin(y * f))
        return Choice(keys[best], float(f[best]), len(keys))
