"""Small compiled parts of the solvers on a matrix do what numpy does in one line."""

import numpy as np
import pytest

from streamsvm.batch import problem
from streamsvm.batch.kernels.square import put_square, square_of
from streamsvm.batch.steps import newton
from streamsvm.batch.steps.pairs import BOTTOM, TOP
from streamsvm.batch.working_set import members
from streamsvm.core.expansion import FORBIDDEN


@pytest.fixture(params=range(5))
def active(request):
    """A random state, with coefficients at either bound, inside, and in boxes that are shut."""
    rng = np.random.default_rng(request.param)
    n = (0, 1, 7, 40, 41)[request.param]
    lo, hi = -rng.uniform(0.0, 2.0, n).round(1), rng.uniform(0.0, 2.0, n).round(1)
    alpha = np.clip(rng.normal(size=n), lo, hi)
    return members.Active(alpha, rng.normal(size=n), lo, hi, np.empty(n), np.empty(n), np.ones(n))


def test_the_penalties_and_extremes_of_a_state(active):
    extremes = np.empty(2)
    members._note_bounds(active, extremes)
    up, down = problem.penalties(active.alpha, active.lo, active.hi)
    np.testing.assert_array_equal(active.up, up)
    np.testing.assert_array_equal(active.down, down)
    assert extremes[TOP] == (active.g + up).max(initial=-FORBIDDEN)
    assert extremes[BOTTOM] == (active.g + down).min(initial=FORBIDDEN)


def test_the_number_of_free_coefficients(active):
    alpha, _, lo, hi = active[:4]
    assert newton._count_free(alpha, lo, hi) == np.count_nonzero((lo < alpha) & (alpha < hi))


def test_how_far_gradients_violate(active):
    alpha, g, lo, hi = active[:4]
    rises = np.where(alpha < hi, g - 0.1, -FORBIDDEN)
    falls = np.where(alpha > lo, 0.3 - g, -FORBIDDEN)
    np.testing.assert_array_equal(problem.violations(alpha, g, lo, hi, 0.3, 0.1), np.maximum(rises, falls))


def test_the_middle_of_the_extremes_that_exist():
    assert problem.middle(3.0, 1.0) == 2.0
    assert problem.middle(-FORBIDDEN, 1.0) == 1.0
    assert problem.middle(3.0, FORBIDDEN) == 3.0
    assert problem.middle(-FORBIDDEN, FORBIDDEN) == 0.0


@pytest.mark.parametrize("largest", [0.0, 1.0, 1e6])
def test_coefficients_beside_a_bound_are_put_onto_it(active, largest):
    _, _, lo, hi = active[:4]
    near = problem.DUST * np.minimum(hi - lo, largest)
    at = np.arange(len(lo)) % 4
    alpha = np.choose(at, [lo + 0.9 * near, hi - 0.9 * near, lo + 3.0 * near, 0.5 * (lo + hi)])
    expected = np.where(hi - alpha <= near, hi, alpha)
    expected = np.where(expected - lo <= near, lo, expected)
    given = alpha.copy()
    np.testing.assert_array_equal(problem.settled(alpha, lo, hi, largest), expected)
    np.testing.assert_array_equal(alpha, given)


@pytest.mark.parametrize("m", range(10))
def test_the_values_among_some_examples(m):
    rng = np.random.default_rng(m)
    K, places = rng.normal(size=(12, 12)), rng.permutation(12)[:m]
    among = K[np.ix_(places, places)]
    np.testing.assert_array_equal(square_of(K, places), among)
    np.testing.assert_array_equal(square_of(K.astype(np.float32), places), among.astype(np.float32))
    symmetric = (K + K.T).astype(np.float32)
    for first in range(m + 1):
        out = np.full((m, m), np.float32(7.0))
        put_square(symmetric, places, first, out)
        expected = symmetric[np.ix_(places, places)]
        expected[:first, :first] = 7.0
        np.testing.assert_array_equal(out, expected)
