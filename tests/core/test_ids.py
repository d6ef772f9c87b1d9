"""Where a few ids occur among many: as numpy's `isin`."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.core.ids import are_among, occurrences

NUMBERS = st.lists(st.one_of(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=12)


@given(NUMBERS, NUMBERS)
def test_it_is_what_isin_says(many, few):
    many, few = np.array(many, np.int64), np.array(few, np.int64)
    np.testing.assert_array_equal(occurrences(many, few), np.isin(many, few))
    np.testing.assert_array_equal(are_among(few, many), np.isin(few, many))
