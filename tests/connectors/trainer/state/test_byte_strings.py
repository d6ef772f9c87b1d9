"""Byte strings in the arrays of a checkpoint."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.trainer.state.byte_strings import joined, separated


def lengths_of(items):
    return np.array([len(item) for item in items], dtype=np.int64)


@given(st.lists(st.binary(max_size=5)))
def test_what_was_joined_is_separated_again(items):
    assert separated({"a": joined(items)}, "a", lengths_of(items)) == items


@given(st.lists(st.binary(max_size=5)), st.lists(st.integers(-9, 9)))
def test_lengths_that_do_not_fit_are_refused(items, lengths):
    lengths = np.array(lengths, dtype=np.int64)
    if min(lengths, default=0) >= 0 and sum(lengths) == sum(map(len, items)):
        assert b"".join(separated({"a": joined(items)}, "a", lengths)) == b"".join(items)
    else:
        with pytest.raises(ValueError, match="do not add up"):
            separated({"a": joined(items)}, "a", lengths)
