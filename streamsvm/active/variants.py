"""Virtual examples: a model learns those variants of its examples that it is least sure of."""

from collections.abc import Callable
from typing import Any

import numpy as np

from streamsvm.active.choosing.selection import pool_size
from streamsvm.core import arguments

Vary = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def learn_variants(
    model: Any, X: Any, y: Any, vary: Vary, n: int, *, pool: int | None = None, seed: int | None = 0
) -> int:
    """Teach a model variants of examples, such as shifted pictures, that keep the label.

    Of `pool` variants of random rows, the model learns the one nearest to the boundary, and so on, `n` times.  So it
    computes many variants, and stores the few that matter.  This is the use of selection that Bordes, Ertekin, Weston
    and Bottou name for invariances: there are too many virtual examples to learn them all.

    Parameters
    ----------
    model
        A learner such as `LASVM`.  It should have learned `X` before; it learns each variant as a new example.
    X
        Examples as rows, (m, d).
    y
        Their labels, as `learn_many` takes them.
    vary
        Makes variants: a function of rows (k, d) and a random generator, to rows (k, d).
    n
        Number of variants to learn, at least 0.
    pool
        Number of variants to choose from; default: 59, see `pool_size`.
    seed
        Of the random choices; None: another one each time.

    Returns
    -------
    int
        How many of them violated the margin, y f(x) < 1, when they were learned.  If few did, there is little left to
        learn.

    Raises
    ------
    ValueError
        If a parameter is out of its range, or if `vary` returns rows of another shape.

    Examples
    --------
    >>> import numpy as np
    >>> from streamsvm import LASVM
    >>> from streamsvm.active import learn_variants
    >>> X = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.hypot(*X.T) > 1.2
    >>> def turned(rows, rng):
    ...     angle = rng.uniform(0.0, 2.0 * np.pi, len(rows))
    ...     return np.stack([np.cos(angle), np.sin(angle)], 1) * np.hypot(*rows.T)[:, None]
    >>> model = LASVM(C=100.0, gamma=0.5)
    >>> _ = model.learn_many(X, y)
    >>> learn_variants(model, X, y, turned, 100) < 100
    True
    """
    arguments.require_count("n", n, 0)
    pool = pool_size() if pool is None else pool
    arguments.require_count("pool", pool, 1)
    X = np.asarray(X)
    if X.ndim != 2 or not len(X):
        raise ValueError(f"X has shape {X.shape}; it must be (m, d), with m > 0")
    positive = arguments.labels_of(X, y, len(X))
    rng, violating = np.random.default_rng(seed), 0
    for _ in range(n):
        rows = rng.integers(len(X), size=pool)
        variants = np.asarray(vary(X[rows], rng))
        if variants.shape != (pool, X.shape[1]):
            raise ValueError(f"vary returned shape {variants.shape}; it must be {(pool, X.shape[1])}")
        f = model.decision_function_many(variants)
        k = int(np.argmin(np.abs(f)))
        label = positive[rows[k]]
        violating += int((f[k] if label else -f[k]) < 1.0)
        model.learn_many(variants[[k]], [label])
    return violating
