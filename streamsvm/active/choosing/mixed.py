"""MIXED, the default: ask near the boundary, far from the labelled examples, and at random.

Questions about the smallest |f| never find a group of positives deep on the negative side.  So each question is drawn
from three kinds:

| share | reason   | choice                                                                                         |
|-------|----------|------------------------------------------------------------------------------------------------|
| 0.6   | boundary | of all examples the one with the smallest |f|                                                  |
| 0.3   | novel    | of 59 random ones the one with the smallest min(|f|, 1) - sigma                                |
| 0.1   | explore  | drawn in proportion to d^2, the squared Euclidean distance from the nearest labelled example   |

sigma is the distance from the span of the labelled examples in feature space (`span`).  |f| is cut at 1, so outside
the margin only sigma decides.  d is Euclidean because with a narrow kernel all kernel distances are 1.

Until both classes are labelled, questions are of the third kind.  Between texts all distances are alike, and then the
farthest of 59 random examples takes turns with it: the first positive comes sooner.  Until three
of each class are labelled, 30 % of the questions are still of the start (`loop`).

When no example of the pool lies inside the margin, three other kinds take turns: the example with the largest f below 0
(reason "boundary"), a novel one, and a random one ("audit").

With several classes, a question of the first kind draws a class first; a class with few examples is drawn more often.
The question is about the example with the smallest lead among those that are predicted as this class.

Measured on 16 data sets: g-means over 20 to 300 labels rise from 60.1 (ACTIVE) to 67.9; see benchmarks/README.md.
Ask one question at a time if you can: questions that are open at once were chosen without each other's answers.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from streamsvm.active.choosing.decisions import (
    closest_of_drawn,
    closest_of_rare,
    decisions,
    half_leads,
    learner_of,
)
from streamsvm.active.choosing.pool import EMPTY, Pool
from streamsvm.active.choosing.selection import CHUNK, POOL, Choice, Reason, Selection, chosen
from streamsvm.active.choosing.space import Space
from streamsvm.core import arguments

STARTS = ("distance", "random")
FLAT = 1.5  # times the median: 99 % of squared distances below; texts have 1.0 to 1.25, digits 1.4 to 2, tables 3 to 70
WORK = 2_000_000  # kernel values that a question may cost where kernel rows are not kept


@dataclass
class MixedSelection(Selection):
    """MIXED: near the boundary, far from the labelled examples, and anywhere; the default.

    It remembers the labelled examples.  So make a new one for each loop.

    Parameters
    ----------
    boundary, novel, explore
        Shares of the questions, from 0 to 1, with the sum 1.  "boundary": the example with the smallest |f(x)| in the
        pool.  "novel": of `candidates` random ones, the one that is farthest from what is labelled and uncertain.
        "explore": drawn in proportion to the squared distance from the nearest labelled example.
    candidates
        Number of random candidates of a novel question, and of one where all distances are alike; at least 1.
    start
        How questions are chosen until both classes are labelled.  ``"distance"``: as for "explore", which finds a class
        far from the others much sooner; where all distances are alike, as between texts, in turn with the farthest of
        `candidates` random examples.  ``"random"``: any example.
    rare_first
        Whether "boundary" questions are more often about classes with few examples; needs a model of several classes,
        see `ActiveSelection`.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    The boundary is where f(x) is 0, whatever the model's threshold for predictions: questions at another threshold find
    fewer positives.

    When all examples lie outside the margin, |f(x)| >= 1, a third of the questions each is about the one with the
    largest f(x) below 0 ("boundary"), a novel one, and a random one ("audit").

    Distances are between the features as they are, or in standard deviations of the pool if the model scales; features
    that stand apart stay as they are.  All examples of the pool are scored, by kernel rows that are kept from one
    question to the next.  Some learners do not allow that, and pipelines: then about 1000 random examples are scored.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import ArrayPool, MixedSelection
    >>> model = LASVM(gamma=1.0)
    >>> model.learn_many(np.array([[-1.0], [1.0]]), [False, True])
    >>> pool = ArrayPool(np.array([[-0.9], [0.1], [0.8]]))
    >>> MixedSelection(boundary=1.0, novel=0.0, explore=0.0).choose(pool, model, np.random.default_rng(0)).key
    1
    """

    boundary: float = 0.6
    novel: float = 0.3
    explore: float = 0.1
    candidates: int = POOL
    start: str = "distance"
    rare_first: bool = False
    _space: Space = field(default_factory=Space, init=False, repr=False, compare=False)

    explores = True

    def __post_init__(self) -> None:
        shares = self.boundary, self.novel, self.explore
        if not all(arguments.is_number(share) and share >= 0.0 for share in shares) or abs(sum(shares) - 1.0) > 1e-9:
            raise ValueError(f"boundary, novel, explore = {shares} must be shares, from 0 to 1, with the sum 1")
        arguments.require_count("candidates", self.candidates, 1)
        if self.start not in STARTS:
            raise ValueError(f"start={self.start!r} is unknown; use one of {', '.join(map(repr, STARTS))}")

    def begin(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        if self.start == "random":
            return super().begin(pool, model, rng)
        places = self._look(pool, model)
        near = self._space.distances(places)
        if self._space.n_labelled % 2 == 0 and _are_flat(near):
            some = rng.choice(len(places), min(self.candidates, len(places)), replace=False)
            i = int(some[np.argmax(near[some])])
        else:
            i = _in_proportion(near, rng)
        return chosen(pool, model, pool.keys()[i], len(places), "seed")

    def choose(self, pool: Pool, model: Any, rng: np.random.Generator) -> Choice:
        places = self._look(pool, model)
        scored = self._scored(pool, model, places, rng)
        if np.abs(scored.f).min() >= 1.0:
            i, reason = self._outside(model, places, scored, rng)
        else:
            i, reason = self._inside(model, places, scored, rng)
        return chosen(pool, model, pool.keys()[i], len(places), reason)

    def values(self, pool: Pool, model: Any) -> np.ndarray:
        f = self._space.decision_values(model, self._look(pool, model)) if len(pool) else None
        return super().values(pool, model) if f is None else f

    def _look(self, pool: Pool, model: Any) -> np.ndarray:
        if not len(pool):
            raise ValueError(EMPTY)
        return self._space.look(pool, model)

    def _scored(self, pool: Pool, model: Any, places: np.ndarray, rng: np.random.Generator) -> "_Scored":
        """Examples of the pool with their f: all of them, or some random ones."""
        f = self._space.decision_values(model, places)
        if f is not None:
            return _Scored(np.arange(len(places)), f, f)
        n = max(CHUNK, self.candidates, WORK // max(1, getattr(learner_of(model), "n_support", 0) or WORK))
        at = np.sort(rng.choice(len(places), min(n, len(places)), replace=False))
        keys = pool.keys()
        values = decisions(model, pool.rows([keys[i] for i in at.tolist()]))
        return _Scored(at, values if values.ndim == 1 else half_leads(values), values)

    # --- the kinds of questions ---------------------------------------------------------------------------------------

    def _inside(
        self, model: Any, places: np.ndarray, scored: "_Scored", rng: np.random.Generator
    ) -> tuple[int, Reason]:
        """While examples lie inside the margin."""
        at, f, values = scored
        u = rng.random()
        if u < self.boundary and self.rare_first:
            return int(at[closest_of_rare(model, values, f, rng)]), "boundary"
        if u < self.boundary:
            return int(at[np.argmin(np.abs(f))]), "boundary"
        if u < self.boundary + self.novel:
            return self._novel(model, places, at, f, rng), "novel"
        return _in_proportion(self._space.distances(places), rng), "explore"

    def _outside(
        self, model: Any, places: np.ndarray, scored: "_Scored", rng: np.random.Generator
    ) -> tuple[int, Reason]:
        """When no example lies inside the margin: look for what the model does not suspect, and check at random."""
        at, f, values = scored
        kind = rng.integers(3)
        if kind == 0 and values.ndim == 2:
            return int(at[closest_of_drawn(model, values.argmax(axis=1)[:, None], f, rng)]), "boundary"
        below = np.flatnonzero(f < 0.0)
        if kind == 0 and len(below):
            return int(at[below[np.argmax(f[below])]]), "boundary"
        if kind == 1:
            return self._novel(model, places, at, f, rng), "novel"
        return int(rng.integers(len(places))), "audit"

    def _novel(self, model: Any, places: np.ndarray, at: np.ndarray, f: np.ndarray, rng: np.random.Generator) -> int:
        """Of some candidates the one that is uncertain, or outside the margin, and far from the labelled examples."""
        some = rng.choice(len(at), min(self.candidates, len(at)), replace=False)
        sigma = self._space.novelty(model, places[at[some]])
        return int(at[some[np.argmin(np.minimum(np.abs(f[some]), 1.0) - sigma)]])

    # --- what is remembered -------------------------------------------------------------------------------------------

    def note(self, key: int, row: Any) -> None:
        self._space.note(key, row)

    def drop(self, key: int) -> None:
        self._space.drop(key)

    def state(self) -> dict[str, Any]:
        return self._space.state()

    def restore(self, state: Any) -> None:
        self._space.restore(state)


class _Scored(NamedTuple):
    """Numbers of examples of the pool, their f, and their decision values, with several classes a column for each."""

    at: np.ndarray
    f: np.ndarray
    values: np.ndarray


def _in_proportion(near: np.ndarray, rng: np.random.Generator) -> int:
    """A place, drawn in proportion to these squared distances; any place if they are 0 or infinite."""
    sums = np.cumsum(near)
    if not 0.0 < sums[-1] < np.inf:
        return int(rng.integers(len(near)))
    return min(int(np.searchsorted(sums, rng.random() * sums[-1], side="right")), len(near) - 1)


def _are_flat(near: np.ndarray) -> bool:
    """Whether no squared distance stands out, so that a draw in proportion to them is little better than any draw."""
    if not np.isfinite(near).all():  # no example is labelled
        return False
    middle, large = np.quantile(near, (0.5, 0.99))
    return bool(large < FLAT * middle)
