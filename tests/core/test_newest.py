"""A dict that keeps only its newest entries."""

import copy

from hypothesis import given
from hypothesis import strategies as st

from streamsvm.core.newest import Newest


@given(st.integers(1, 5), st.lists(st.tuples(st.integers(0, 6), st.integers())))
def test_it_holds_what_was_set_last(limit, entries):
    it, slow = Newest(limit), []
    for key, value in entries:
        it[key] = value
        slow = [*(pair for pair in slow if pair[0] != key), (key, value)][-limit:]
        assert list(it.items()) == slow
    for same in (Newest(limit, entries), copy.deepcopy(it), copy.copy(it)):
        assert list(same.items()) == slow
        same["new"] = 0
        assert len(same) == min(len(slow) + 1, limit)
