"""Class weights: a number, or the root of the classes' ratio so far."""

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.core.class_weights import class_weight, class_weights, largest_weight, require_box, require_pos_weight


@given(st.lists(st.booleans(), min_size=1, max_size=40))
def test_balanced_weights_are_those_of_the_twin(labels):
    found = class_weights("balanced", (0, 0), np.array(labels), np.ones(len(labels), bool))
    np.testing.assert_allclose(found, naive.balanced_weights(labels), rtol=1e-15)
    assert found.max() <= largest_weight("balanced", len(labels))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40), st.integers(0, 40))
def test_one_by_one_they_are_the_same_to_the_bit(examples, cut):
    positive, counted = (np.array(column) for column in zip(*examples, strict=True))
    counts, found = [3, 2], []
    for t, (own, counts_it) in enumerate(examples):
        if t == cut:
            rest = class_weights("balanced", tuple(counts), positive[t:], counted[t:])
        counts[own] += counts_it
        found.append(class_weight("balanced", tuple(counts), own))
    whole = class_weights("balanced", (3, 2), positive, counted)
    assert whole.tolist() == found
    if cut < len(examples):
        assert rest.tolist() == found[cut:]


def test_a_number_is_the_positive_classs():
    assert class_weights(3.0, (5, 5), np.array([True, False]), np.ones(2, bool)).tolist() == [3.0, 1.0]
    assert (class_weight(3.0, (5, 5), True), class_weight(3.0, (5, 5), False)) == (3.0, 1.0)
    assert (largest_weight(3.0, 9), largest_weight(0.5, 9)) == (3.0, 1.0)


def test_the_rarer_class_has_the_weight_whichever_it_is():
    assert (class_weight("balanced", (90, 10), True), class_weight("balanced", (90, 10), False)) == (3.0, 1.0)
    assert (class_weight("balanced", (10, 90), True), class_weight("balanced", (10, 90), False)) == (1.0, 3.0)
    assert class_weight("balanced", (9, 0), True) == 3.0


@pytest.mark.parametrize("value", ["balance", "", 0.0, -1.0, np.nan, np.inf, None, True])
def test_others_are_refused(value):
    with pytest.raises(ValueError, match="pos_weight="):
        require_pos_weight(value)


def test_boxes_that_are_too_large_are_refused():
    require_box(1e15, "balanced")
    with pytest.raises(ValueError, match="too large"):
        require_box(1e15, 2.0)
