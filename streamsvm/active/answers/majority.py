"""The majority of several annotators."""

from collections import Counter
from collections.abc import Collection, Hashable
from typing import TypeVar

Word = TypeVar("Word", bound=Hashable)


def majority(words: Collection[Word], least: int = 1) -> Word | None:
    """The word that more annotators have said than any other.

    Parameters
    ----------
    words
        The last word of each annotator: a label, or something else that they can say, but not None.
    least
        Number of words that are needed; at least 1.

    Returns
    -------
    Word or None
        None if there are fewer than `least` words, or if several words lead together.

    Examples
    --------
    >>> from streamsvm.active import majority
    >>> majority([True, False, True], least=2)
    True
    >>> majority([True, False], least=2), majority([True], least=2)
    (None, None)
    """
    if len(words) < max(least, 1):
        return None
    (first, most), *others = Counter(words).most_common(2)
    return None if others and others[0][1] == most else first
