"""What is remembered of the last decisions: compared with lists."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm.conformal.past import Past
from streamsvm.online.outputs.past import ORDERED, WINDOW, note_decision
from streamsvm.online.outputs.recent import new_recent

SCORES = st.one_of(st.just(math.nan), st.sampled_from([0.0, 0.25, 0.5]), st.floats(0.0, 1.0))


def note(past, id, score, level=0.1):
    place = past.write(id, {"a": score, "b": 1.0 - score})  # the table may be a larger one then
    state = past.table, place, past.n_scores, new_recent()
    past.n_scores, threshold, _ = note_decision(*state, score, 0.5, -1, level, math.nan, math.nan, False)
    return threshold


def expected(scores, level):
    """The threshold, slow and obvious."""
    ordered = sorted(score for score in scores[-WINDOW:] if not math.isnan(score))
    k = int(level * (len(ordered) + 1))
    return ordered[min(k, len(ordered)) - 1] if k and ordered else -1.0


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(SCORES, st.booleans()), max_size=60), st.floats(0.0, 1.0))
def test_scores_stay_in_order_also_if_decisions_are_taken_out(given, level):
    past, kept = Past({"a": 0, "b": 1}), []
    for number, (score, forgets) in enumerate(given):
        assert note(past, number, score, level) == expected([*(s for _, s in kept), score], level)
        kept.append((number, score))
        if forgets:
            out = kept.pop(len(kept) // 2)
            [column] = past.take_out(out[0]).T
            np.testing.assert_array_equal(column[1:], [out[1], 0.5, -1.0, out[1], 1.0 - out[1]])
        assert past.threshold(level) == expected([s for _, s in kept], level)
    ids, table = past.given()
    assert ids.tolist() == [number for number, _ in kept]
    np.testing.assert_array_equal(table[1], [s for _, s in kept])


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_the_oldest_decision_makes_room(share):
    """Some scores do not count; the ring is full several times over."""
    rng, past, scores = np.random.default_rng(0), Past({"a": 0, "b": 1}), []
    for t in range(3 * WINDOW):
        scores.append(math.nan if rng.random() < share else float(rng.integers(0, 200)) / 200)
        assert note(past, t, scores[-1]) == expected(scores, 0.1)
        if t % 100 == 99:
            last = np.array(scores[-WINDOW:])
            np.testing.assert_array_equal(past.table[ORDERED, : past.n_scores], np.sort(last[~np.isnan(last)]))
    assert past.given()[0].tolist() == list(range(2 * WINDOW, 3 * WINDOW))
    assert past.take_out(WINDOW).shape[1] == 0


def test_few_decisions_take_little_memory():
    """A trainer may have a model of each of a thousand keys."""
    past = Past({"a": 0, "b": 1})
    for t in range(20):
        note(past, t, 0.5)
    assert past.table.nbytes + past.ids.nbytes < 4000
