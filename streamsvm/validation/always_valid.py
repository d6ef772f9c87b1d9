"""Intervals that hold at every moment: one may look at them after each example, and stop when they please.

An ordinary 95 % interval is right 95 % of the times at one moment that was fixed before.  If one looks every day and
stops at the first good day, it is wrong far more often.  Here the probability that the interval is *ever* wrong is
bounded.

What is estimated is the mean of the conditional expectations mu_i = E[x_i | x_1 ... x_{i-1}], over the examples so far.
So the x_i need not be independent, and their expectation may move, as it does while models learn.

Proof sketch.  Let all x_i lie in an interval of length c, and let m_i be a guess of x_i in it, from the earlier ones.
With Y = (x_i - m_i) / c >= -1 and 0 <= a < 1, exp(a Y - psi(a) Y^2) <= 1 + a Y, where psi(a) = -log(1 - a) - a (Fan,
Grama and Liu, 2015).  The expectation of the right side is at most exp(a (mu_i - m_i) / c).  So with

    S = sum of (x_i - mu_i) / c   and   V = sum of ((x_i - m_i) / c)^2

exp(a S - psi(a) V) is a nonnegative supermartingale for each a, and so is its mean over any density of a.  With the
density in proportion to (1 - a)^(r - 1) exp(r a) the mean is known in closed form (`log_evidence`).  By Ville's
inequality it ever reaches 1 / error with probability `error` at most.

Sources: Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals
of Statistics 49 (2021), theorem 4 and the gamma-exponential mixture.  Choe and Ramdas, "Comparing sequential
forecasters", Operations Research 72 (2024), use it for differences of losses, as we do.
"""

import functools
import math

from streamsvm.validation.streaming.estimates import Interval

_TIGHT_AT = 25.0  # value of V at which the bound is tightest: a few hundred to some thousand pairs of predictions


class AlwaysValidMean:
    """The mean of bounded numbers, with an interval that holds at all times together.

    Parameters
    ----------
    low, high
        Bounds of the numbers; default -1 and 1.
    error
        Largest probability that the interval is ever wrong, between 0 and 1; default 0.05.

    Attributes
    ----------
    n : int
        Number of numbers so far.

    Raises
    ------
    ValueError
        If `low` is not below `high`, or if `error` is not between 0 and 1.

    Examples
    --------
    >>> difference = AlwaysValidMean()
    >>> for i in range(400):
    ...     difference.observe(1.0 if i % 5 == 0 else 0.0)
    >>> [round(bound, 3) for bound in difference.interval()]
    [0.2, 0.123, 0.277]
    """

    def __init__(self, low: float = -1.0, high: float = 1.0, error: float = 0.05) -> None:
        if not low < high:
            raise ValueError(f"low={low!r} must be below high={high!r}")
        if not 0.0 < error < 1.0:
            raise ValueError(f"error={error!r} must be between 0 and 1")
        self._low, self._high, self.error = low, high, error
        self.n = 0
        self._sum = self._variation = 0.0

    def observe(self, x: float) -> None:
        """Take the next number; ValueError if it is out of bounds."""
        if not self._low <= x <= self._high:
            raise ValueError(f"x={x!r} must lie between {self._low} and {self._high}")
        guess = ((self._low + self._high) / 2 + self._sum) / (self.n + 1)
        self._variation += ((x - guess) / (self._high - self._low)) ** 2
        self._sum += x
        self.n += 1

    @property
    def mean(self) -> float:
        """The mean of the numbers; NaN without any."""
        return self._sum / self.n if self.n else math.nan

    def interval(self) -> Interval:
        """The mean and its bounds; each side is wrong with probability `error` / 2 at most."""
        if not self.n:
            return Interval(math.nan, self._low, self._high)
        radius = (self._high - self._low) * boundary(self._variation, self.error / 2) / self.n
        return Interval(self.mean, max(self._low, self.mean - radius), min(self._high, self.mean + radius))

    def is_above(self, mean: float, error: float) -> bool:
        """Whether the expectation is above `mean`; ever wrong with probability `error` at most.

        This is one-sided, and does without the search that `interval` makes.
        """
        s = (self._sum - self.n * mean) / (self._high - self._low)
        return s > 0.0 and log_evidence(s, self._variation) >= -math.log(error)

    def to_state(self) -> list[float]:
        """What was observed, as numbers."""
        return [float(self.n), self._sum, self._variation]

    def restore(self, state: list[float]) -> None:
        """Go on from what `to_state` gave; ValueError if it is damaged."""
        n, total, variation = map(float, state)
        if not (n >= 0 and n == int(n) and variation >= 0.0 and self._low * n <= total <= self._high * n):
            raise ValueError(f"the state of a mean must be a count, a sum and a variation, got {state!r:.100}")
        self.n, self._sum, self._variation = int(n), total, variation


def log_evidence(s: float, v: float) -> float:
    """Logarithm of the mean of exp(a s - psi(a) v) over the density of a; `s` must not be negative."""
    r, of_density = _density()
    a, x = v + r, s + v + r
    return _log_gamma_mass(a, x) - a * math.log(x) + s + v - of_density


def boundary(v: float, error: float) -> float:
    """The value that S ever reaches, at the variation `v`, with probability `error` at most."""
    wanted = -math.log(error)
    s, last = wanted + math.sqrt(2.0 * v * wanted), math.inf
    while True:  # The evidence is convex in s, so Newton's steps get smaller until they are rounding.
        step = (log_evidence(s, v) - wanted) / _slope(s, v)
        s -= step
        if not 1e-9 * s < abs(step) < last:
            return s
        last = abs(step)


def _slope(s: float, v: float) -> float:
    """The derivative of `log_evidence` by `s`."""
    a = v + _density()[0]
    x = s + a
    return math.exp((a - 1.0) * math.log(x) - x - _log_gamma_mass(a, x)) + s / x


@functools.cache
def _density() -> tuple[float, float]:
    """The parameter r of the density of a, and the logarithm of its integral before it is scaled to 1."""
    r = _tightest(0.025)
    return r, _log_gamma_mass(r, r) - r * math.log(r)


def _tightest(error: float) -> float:
    """The parameter r with which the bound is about tightest at `_TIGHT_AT` (Howard and others, section 3.5)."""
    wanted = -2.0 * math.log(error)
    return _TIGHT_AT / (wanted + math.log1p(wanted))


def _log_gamma_mass(a: float, x: float) -> float:
    """Logarithm of the integral of t^(a-1) exp(-t) from 0 to x."""
    from scipy.special import gammainc, gammaln  # here: it takes a tenth of a second

    return float(gammaln(a) + math.log(gammainc(a, x)))
