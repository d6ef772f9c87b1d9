"""Models of several classes that learn together: each is that of a twin which learns one example after another."""

from itertools import permutations

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from queries import from_dense

from streamsvm import LASVM, OneVsOne, OneVsRest
from streamsvm.core.blocks import expansion_sum
from streamsvm.core.device.evaluator import Evaluator
from streamsvm.core.expansion import SLOTS
from streamsvm.online import union


@njit
def dot(alpha, row):
    return expansion_sum(alpha, row)


def kernel_matrix(X, kernel):
    """The engine's kernel values of all examples, and their kernel with themselves."""
    n, d = X.shape
    q, numbers = from_dense(X, np.arange(d)), np.arange(n)
    U = union.with_vectors(union.empty(), kernel, q, numbers, numbers, np.ones(n), d)
    K = union.kernel_values(U, kernel, q, n, Evaluator("cpu"))
    diagonal = U.vectors.self_k[:n].copy()
    np.fill_diagonal(K, diagonal)
    return K, diagonal


def stream(seed, n, d, n_classes, late):
    """Examples around centres; the class `late` comes in the second half only."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    first = np.arange(n) < n // 2
    y[first & (y == late)] = (late + 1) % n_classes
    X = rng.normal(size=(n_classes, d))[y] + rng.normal(size=(n, d))
    return X, y, rng.choice([1.0, 1.0, 0.5, 0.0], size=n)


STREAMS = st.tuples(
    st.integers(0, 10**6), st.integers(1, 150), st.sampled_from([1, 3, 20]), st.integers(1, 5), st.integers(0, 4)
)


@pytest.mark.parametrize("several", [OneVsOne, OneVsRest])
@settings(max_examples=40)
@given(STREAMS, st.sampled_from([1, 7, 64, 1000]), st.sampled_from([0.3, 10.0]))
def test_models_that_learn_together_are_those_of_the_twin(several, stream_of, cut, C):
    """However the stream is cut into blocks, and whenever a class appears."""
    X, y, w = stream(*stream_of)
    model = several(LASVM(C=C, gamma=0.3, cache_mb=0.01))
    K, diagonal = kernel_matrix(X, model._common.kernel)
    twin = naive.NaiveTogether(
        lambda: naive.NaiveLASVM(K, diagonal, model._common.rule, C, dot=dot), several is OneVsOne
    )
    keys = list(permutations(range(5), 2)) if several is OneVsOne else [(label,) for label in range(5)]
    said = [None if np.isnan(f) else {key: f + sum(key) for key in keys} for f in naive.late_margins(len(y))]
    for label, weight, own in zip(y.tolist(), w, said, strict=True):
        twin.learn(label, weight, own)
    margins = [own and {key if several is OneVsOne else key[0]: f for key, f in own.items()} for own in said]
    for b in range(0, len(y), cut):
        model.learn_many(X[b : b + cut], y[b : b + cut], w=w[b : b + cut], margins=margins[b : b + cut])
    assert model.labels == twin.classes
    found = {key if isinstance(key, tuple) else (key,): own for key, own in model._models.items()}
    assert set(found) == set(twin.models)
    for key, own in twin.models.items():
        s = found[key].expansion
        n = int(s.counts[SLOTS])
        np.testing.assert_array_equal(s.ids[:n], own.examples)
        np.testing.assert_array_equal(s.y[:n], own.y)
        np.testing.assert_array_equal(s.alpha[:n], own.alpha)
        np.testing.assert_array_equal(s.g[:n][own.y != 0], own.g[own.y != 0])
        np.testing.assert_allclose(found[key].sigmoid[[0, 2]], naive.slopes(own.margins), rtol=1e-9)
