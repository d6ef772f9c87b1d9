"""Near-duplicates: texts or images that are the same or almost the same, so that one answer may be for all of them.

Copies have the same words in the same order; capitals, blanks and the marks after a word do not count.  One answer is
right for all of them.

Texts that are only alike share 80 % of their pieces, the runs of four letters or blanks.  A number, a negation or one
word may differ, and the label with it: of 2792 such pairs of package descriptions, 432 were in different sections.  So
a person must see them before an answer is for them, too.  The pieces of an image are the places where its grey values
rise or fall.  Of many pieces, 256 stand for all.  Hashes find what may be alike, so that not all pairs are compared.

The memory of a text has a bound.  The result depends on the texts alone, not on the order in which they came.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from heapq import nsmallest

import numpy as np

from streamsvm.core.hashing import STEP, spread

LIKENESS = 0.8  # share of the pieces that two texts have in common
MOST = 100  # texts that one answer may be for

_PIECE = 4  # characters: a wrong letter in a text of 40 leaves 80 % of the pieces
_PIECES = 256  # of a text that are kept, those with the smallest hashes
_STEP = 0.05  # between two grey values, as a share of the image's range, that is a rise or a fall
_BANDS, _ROWS = 8, 3  # texts with a likeness of 0.8 agree in one of 8 bands with a probability of 0.997
_SEEDS = np.arange(1, _BANDS * _ROWS + 1, dtype=np.uint64) * STEP
_COMPARED = 5 * MOST  # texts that are compared with one
_WORD = re.compile(r"\w+")
_MARKS = ".,;:!"  # after a word, they change no label; "?", "%" and ":(" may


class NearDuplicates:
    """Finds texts that are the same or almost the same, or images, among those that come and go.

    Parameters
    ----------
    likeness
        Share of the pieces that two texts must have in common to be alike, above 0 and at most 1.

    Raises
    ------
    ValueError
        If `likeness` is out of its range.

    References
    ----------
    [^1]: Broder, A. Z., 1997. On the resemblance and containment of documents. Compression and Complexity of Sequences,
        21-29.

    Examples
    --------
    >>> from streamsvm.active import NearDuplicates
    >>> texts = NearDuplicates()
    >>> texts.add(1, "You have won a prize, call us now to get it today")
    >>> texts.add(2, "You have won a prize: call us now to get it today!!")
    >>> texts.add(3, "You have won no prize, call us now to get it today")
    >>> texts.copies(1)
    [2]
    >>> texts.like(1)
    [2, 3]
    """

    def __init__(self, likeness: float = LIKENESS) -> None:
        if not 0.0 < likeness <= 1.0:
            raise ValueError(f"likeness={likeness!r} must be above 0 and at most 1")
        self._likeness = likeness
        # The sorted hashes of each text's pieces, what copies have in common with it, and what those alike may:
        self._texts: dict[int, tuple[np.ndarray, list[bytes]]] = {}
        self._places: dict[bytes, set[int]] = {}  # keys, by what texts have in common

    def __len__(self) -> int:
        """Number of texts."""
        return len(self._texts)

    def __contains__(self, key: object) -> bool:
        """Whether there is a text with this key."""
        return key in self._texts

    def add(self, key: int, text: str | Sequence[float], rest: str = "") -> None:
        """Take in a text, or the grey values of an image; one without words is like no other.

        Parameters
        ----------
        key
            Its key.
        text
            The text, or the grey values.
        rest
            What else copies must have in common, such as other fields.
        """
        self.discard(key)
        pieces = _pieces_of(text) if isinstance(text, str) else _steps_of(text)
        places = [_digest_of(text, rest), *_bands_of(pieces)] if len(pieces) else []
        self._texts[key] = pieces, places
        for place in places:
            self._places.setdefault(place, set()).add(key)

    def discard(self, key: int) -> None:
        """Take a text out, if it is there."""
        _, places = self._texts.pop(key, (None, ()))
        for place in places:
            self._places[place].discard(key)
            if not self._places[place]:
                del self._places[place]

    def copies(self, key: int, n: int = MOST) -> list[int]:
        """The keys of the texts with the same words as one of them: `n` at most."""
        return nsmallest(n, self._others(key, self._texts[key][1][:1]))

    def like(self, key: int, n: int = MOST) -> list[int]:
        """The keys of the texts that are like one of them, the most alike first: `n` at most."""
        pieces, places = self._texts[key]
        found = []
        for other in nsmallest(_COMPARED, self._others(key, places[1:])):
            share = _likeness(pieces, self._texts[other][0])
            if share >= self._likeness:
                found.append((-share, other))
        return [other for _, other in nsmallest(n, found)]

    def _others(self, key: int, places: Iterable[bytes]) -> set[int]:
        """The keys of the other texts at these places."""
        return set().union(*(self._places[place] for place in places)) - {key}


def near_duplicates(texts: Sequence[str] | Iterable[str], *, likeness: float | None = None) -> np.ndarray:
    """Group texts that are the same or almost the same: `label_pool` takes the groups as `alike`.

    A text belongs to the group of the first text that it is like and that begins a group.  So all texts of a group are
    like its first one.

    Parameters
    ----------
    texts
        The texts, one for each row.
    likeness
        None: the texts of a group have the same words in the same order; capitals, blanks and the marks ``.,;:!`` after
        a word do not count.  Else the share of the runs of four letters that they must have in common, above 0 and at
        most 1.  Then "order 4711" and "order 4712", "good" and "not good" may be one group in a longer text, with one
        label for both.

    Returns
    -------
    ndarray of int
        For each text, the number of the first text of its group: its own if it is like no earlier one.

    Raises
    ------
    ValueError
        If `likeness` is out of its range.

    Examples
    --------
    >>> from streamsvm.active import near_duplicates
    >>> near_duplicates(["Call me at noon", "You won a prize", "call me, at noon", "You won 2 tickets"])
    array([0, 1, 0, 3])
    """
    first = NearDuplicates(LIKENESS if likeness is None else likeness)
    groups = []
    for row, text in enumerate(texts):
        first.add(row, text)
        earlier = first.copies(row) if likeness is None else first.like(row)
        if earlier:
            first.discard(row)
        groups.append(earlier[0] if earlier else row)
    return np.array(groups, np.int64)


def checked_groups(alike: Iterable[int] | None, n: int) -> dict[int, list[int]]:
    """The rows of each group of several rows, by each of its rows.

    Raises
    ------
    ValueError
        If there is not a number for each of the `n` rows.
    """
    if alike is None:
        return {}
    numbers = np.asarray(alike if isinstance(alike, np.ndarray) else list(alike))
    if numbers.shape != (n,) or numbers.dtype.kind not in "iu":
        raise ValueError(f"alike must be an integer for each of the {n} rows, got shape {numbers.shape}")
    rows: dict[int, list[int]] = {}
    for row, number in enumerate(numbers.tolist()):
        rows.setdefault(number, []).append(row)
    return {row: group for group in rows.values() if len(group) > 1 for row in group}


def _pieces_of(text: str) -> np.ndarray:
    """The hashes of the runs of four characters, sorted, of a text in small letters with single blanks."""
    plain = " ".join(_WORD.findall(text.casefold()))
    code = np.frombuffer(plain.encode("utf-32-le", "replace"), np.uint32).astype(np.uint64)
    length = min(_PIECE, len(code))
    n = len(code) - length + bool(length)
    hashed = np.zeros(n, np.uint64)
    for place in range(length):
        hashed = hashed * np.uint64(0x100000001B3) ^ code[place : place + n]  # FNV
    return np.unique(spread(hashed))[:_PIECES]


def _digest_of(text: str | Sequence[float], rest: str) -> bytes:
    """A digest of what copies have in common: their words, or all grey values, and the rest."""
    words = [word.rstrip(_MARKS) for word in text.casefold().split()] if isinstance(text, str) else map(repr, text)
    said = " ".join(filter(None, words))
    return hashlib.blake2b(f"{said}\n{rest}".encode("utf-8", "replace"), digest_size=16).digest()


def _steps_of(values: Sequence[float]) -> np.ndarray:
    """The hashes of the places where values rise, and of those where they fall, sorted."""
    grey = np.asarray(values, np.float64)
    steps, place = np.diff(grey), np.arange(len(grey) - 1, dtype=np.uint64) << np.uint64(1)
    least = _STEP * np.ptp(grey) if len(grey) else 0.0
    rising, falling = place[steps > least], place[steps < -least] | np.uint64(1)
    return np.unique(spread(np.concatenate([rising, falling])))[:_PIECES]


def _bands_of(pieces: np.ndarray) -> list[bytes]:
    """What texts that are alike probably have in common: the smallest of their pieces in three orders."""
    least = spread(pieces ^ _SEEDS[:, np.newaxis]).min(axis=1).reshape(_BANDS, _ROWS)
    return [bytes([number]) + band.tobytes() for number, band in enumerate(least)]


def _likeness(a: np.ndarray, b: np.ndarray) -> float:
    """The share of the pieces of two texts that both have, estimated by the smallest ones of a long text."""
    both = np.intersect1d(a, b, assume_unique=True)
    if max(len(a), len(b)) < _PIECES:
        return len(both) / (len(a) + len(b) - len(both))
    union = np.union1d(a, b)[:_PIECES]
    return np.count_nonzero(both <= union[-1]) / len(union)
