"""Intervals that one may look at after every example."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from streamsvm.validation import AlwaysValidMean
from streamsvm.validation.always_valid import _tightest, boundary, log_evidence


def evidence_by_quadrature(s, v):
    """The slow twin: the mean of exp(a s - psi(a) v) over the density of a."""
    r = _tightest(0.025)

    def density(a):
        return (1 - a) ** (r - 1) * math.exp(r * a)

    def at(a):
        return math.exp(a * s + v * (math.log1p(-a) + a)) * density(a)

    return quad(at, 0, 1, limit=500)[0] / quad(density, 0, 1)[0]


@pytest.mark.parametrize(("s", "v"), [(0.0, 0.0), (0.5, 3.0), (1.0, 0.5), (10.0, 5.0), (30.0, 60.0), (50.0, 62.5)])
def test_the_evidence_is_the_mean_over_the_density(s, v):
    assert log_evidence(s, v) == pytest.approx(math.log(evidence_by_quadrature(s, v)), abs=1e-8)


@pytest.mark.parametrize("v", [0.0, 1.0, 25.0, 1e4, 1e7])
def test_the_boundary_is_where_the_evidence_reaches_one_over_the_error(v):
    assert math.exp(-log_evidence(boundary(v, 0.05), v)) == pytest.approx(0.05, rel=1e-4)


def test_the_interval_excludes_what_is_above_with_evidence():
    """The decision without the search, and the interval, say the same."""
    x = np.random.default_rng(0).choice([-1.0, 0.0, 1.0], size=600, p=[0.05, 0.8, 0.15])
    mean, said = AlwaysValidMean(error=0.1), []
    for value in x.tolist():
        mean.observe(value)
        assert mean.is_above(0.0, 0.05) == (mean.interval().low > 0.0)
        said.append(mean.is_above(0.0, 0.05))
    assert mean.mean == pytest.approx(x.mean())
    assert said[-1]
    assert not said[20]


def test_it_goes_on_from_its_state():
    x = np.random.default_rng(0).uniform(0, 1, size=100).tolist()
    whole, first = AlwaysValidMean(0.0, 1.0), AlwaysValidMean(0.0, 1.0)
    for value in x[:50]:
        first.observe(value)
    second = AlwaysValidMean(0.0, 1.0)
    second.restore(first.to_state())
    for value in x:
        whole.observe(value)
    for value in x[50:]:
        second.observe(value)
    assert second.interval() == whole.interval()
    with pytest.raises(ValueError, match="a count, a sum and a variation"):
        second.restore([-1.0, 0.0, 0.0])


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="low=1"):
        AlwaysValidMean(1, 0)
    with pytest.raises(ValueError, match="error=0"):
        AlwaysValidMean(error=0)
    with pytest.raises(ValueError, match="x=2"):
        AlwaysValidMean().observe(2)


def ever_better(rng, n, wrong_a, wrong_b, error=0.05):
    """The number of labels after which "B is better" is said first; None if it is never said."""
    difference = AlwaysValidMean()
    for a, b in zip(rng.random(n) < wrong_a, rng.random(n) < wrong_b, strict=True):
        difference.observe(float(a) - float(b))
        if difference.is_above(0.0, error / 2):
            return difference.n
    return None


@pytest.mark.long
def test_better_is_rarely_said_at_any_time_of_two_equal_models_and_soon_of_a_better_one(capsys):
    """The models err independently, which is the hardest case: their errors have nothing in common."""
    rng = np.random.default_rng(7)
    drifting = 0.1 + 0.1 * np.sin(np.arange(3000) / 300)  # the error of both moves
    wrongly = [ever_better(rng, 3000, drifting, drifting) for _ in range(200)]
    assert sum(n is not None for n in wrongly) <= 10
    found = [ever_better(rng, 5000, 0.10, 0.08) for _ in range(60)]
    shared = [ever_better(rng, 5000, 0.03, 0.01) for _ in range(60)]  # beside errors that both make
    power, of_shared = (sum(n is not None for n in said) / 60 for said in (found, shared))
    with capsys.disabled():
        said = sum(n is not None for n in wrongly)
        print(f"\nwrong in {said} of 200 streams; power at 2 points, 5000 labels: {power:.0%}, {of_shared:.0%}")
    assert power > 0.4
    assert of_shared > 0.95
