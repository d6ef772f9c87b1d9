"""Finds a few ids among many.

A block has some dozens of ids, and a model or a reservoir thousands.  numpy's `isin` would sort the thousands for every
block; these functions sort the dozens.
"""

import numpy as np

VERY_FEW = 8  # ids that are found soonest one after the other


def occurrences(many: np.ndarray, few: np.ndarray) -> np.ndarray:
    """Which of many ids are among a few, (len(many),) bool.

    Examples
    --------
    >>> import numpy as np
    >>> occurrences(np.array([3, 9, 3, 4]), np.array([4, 3])).tolist()
    [True, False, True, True]
    """
    if len(few) <= VERY_FEW:
        found = np.zeros(len(many), bool)
        for one in few:
            found |= many == one
        return found
    ordered = np.sort(few)
    places = np.searchsorted(ordered, many)
    places[places == len(ordered)] = 0  # These are larger than all of the few, so the first one differs, too.
    return ordered[places] == many


def are_among(few: np.ndarray, many: np.ndarray) -> np.ndarray:
    """Which of a few ids are among many, (len(few),) bool.

    Examples
    --------
    >>> import numpy as np
    >>> are_among(np.array([4, 5]), np.array([3, 9, 3, 4])).tolist()
    [True, False]
    """
    return occurrences(few, many[occurrences(many, few)])
