"""The state of a scale: its arrays and what they mean, and a block of examples before they are scaled."""

from typing import NamedTuple

import numpy as np

from streamsvm.core.compiling._reference import by_reference

MEMORY = 2000  # examples, M, unless a model asks for another memory
CLIP = 3.0  # deviations, at which a feature is cut; without, spambase and usps lose one to two points
FAR = 2.0**10  # of gamma m^2: of the 24 bits of single precision, distances between examples keep at least 14
APART = -2  # in the place of a feature that never gets one
JUDGED_AFTER = 8  # examples: whether input is sparse
# Examples since the first that named a feature: whether it deserves a place, as half of them must have named it.
OLD_ENOUGH = 2 * JUDGED_AFTER
# totals; NORM: running mean of the squares that have no moments; its WEIGHT; SPREAD: V in use
WEIGHT, SHARE, NORM, SPREAD = range(4)
# counts; WAIT: examples before which the scale is not due, except at once; TRACKS: whether moments are kept at all;
# SCALES: whether features are scaled, or only V is of interest; ACTIVE: whether a feature is scaled by the scale in use
# SPAN: M; ZEROS: whether an example named a feature of 0 or less, or marked a gap: the stream leaves no zeros out
# limits, from the model's parameters; CUT: of what the kernel sees of a feature; a feature is far from 0 if its squared
# mean is above FAR_SQUARE + FAR_SPREADS V
CUT, FAR_SQUARE, FAR_SPREADS = range(3)
SEEN, WAIT, PLACES, TRACKS, SCALES, SPARSE, DUE, ACTIVE, RENEWED, SPAN, ZEROS, COUNTS = range(12)


@by_reference
class Scaling(NamedTuple):
    """Running moments of features, and the scale in use; the folder has the symbol table."""

    place: np.ndarray
    began: np.ndarray
    named: np.ndarray
    times: np.ndarray
    feature: np.ndarray
    w: np.ndarray
    m: np.ndarray
    S: np.ndarray
    shift: np.ndarray
    factor: np.ndarray
    spread: np.ndarray
    last: np.ndarray
    excess: np.ndarray
    varied: np.ndarray
    x: np.ndarray
    totals: np.ndarray
    counts: np.ndarray
    limits: np.ndarray


OF_FEATURES = ("place", "began", "named", "times")
OF_PLACES = ("feature", "w", "m", "S", "shift", "factor", "spread", "last", "excess", "varied")


NO_MARKS = np.zeros(0, bool)


class RawRows(NamedTuple):
    """A block of examples as the user gave them: unscaled, in compressed rows.

    indptr
        Where each example begins, (B+1,) int64.
    columns, values
        The features that it names, in any order: int64 columns, -1 for one without, and float64 values.
    sq
        Squared norms, (B,) float64.
    gaps
        Whether a feature that an example does not name may be unknown.  In a sparse matrix, it is 0.
    marks
        Whether each example marks a gap, by None or NaN, so that it leaves no zeros out; (B,) bool.  Empty: none does.
    """

    indptr: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    sq: np.ndarray
    gaps: bool = False
    marks: np.ndarray = NO_MARKS

    def part(self, t: int, end: int) -> "RawRows":
        """The examples t..end."""
        if end - t == len(self.sq):
            return self
        own = slice(self.indptr[t], self.indptr[end])
        return RawRows(
            self.indptr[t : end + 1] - own.start,
            self.columns[own],
            self.values[own],
            self.sq[t:end],
            self.gaps,
            self.marks[t:end],
        )


NO_ROWS = RawRows(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))


def empty(
    tracks: bool,
    scales: bool,
    n_features: int = 4,
    n_places: int = 4,
    memory: int = MEMORY,
    far: tuple[float, float] = (np.inf, 0.0),
) -> Scaling:
    """A scale before the first example.

    Parameters
    ----------
    tracks
        Whether the moments are kept at all.
    scales
        Whether features are scaled; otherwise only their spread is of interest.
    n_features, n_places
        Room for so many features, and for so many that have a place.
    memory
        Number of examples, M.
    far
        The limits `FAR_SQUARE` and `FAR_SPREADS`; default: features are not shifted.
    """
    D, P = n_features, n_places
    c = Scaling(
        place=np.full(D, -1, np.int64),
        **{name: np.zeros(D, np.int64) for name in ("began", "named", "times")},
        feature=np.zeros(P, np.int64),
        **{name: np.zeros(P) for name in ("w", "m", "S", "shift", "spread", "last", "excess", "x")},
        factor=np.ones(P),
        varied=np.zeros(P, np.uint8),
        totals=np.zeros(4),
        counts=np.zeros(COUNTS, np.int64),
        limits=np.array([CLIP if scales else np.inf, *far]),
    )
    c.counts[TRACKS], c.counts[SCALES], c.counts[SPAN] = tracks, scales, memory
    return c


def with_room(c: Scaling, n_features: int, n_places: int) -> Scaling:
    """A copy with room for so many features and places."""
    fresh = empty(bool(c.counts[TRACKS]), bool(c.counts[SCALES]), n_features, n_places)
    for names, used in ((OF_FEATURES, len(c.place)), (OF_PLACES, int(c.counts[PLACES]))):
        for name in names:
            getattr(fresh, name)[:used] = getattr(c, name)[:used]
    return fresh._replace(totals=c.totals.copy(), counts=c.counts.copy(), limits=c.limits.copy())


def copy(c: Scaling) -> Scaling:
    """A copy that can observe more while `c` stays as it is."""
    return Scaling(*(array.copy() for array in c))
