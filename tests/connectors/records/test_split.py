"""Which model answers an event."""

import numpy as np
import pytest

from streamsvm.connectors.records.split import Split

NAMES = ("a", "b", "c")


@pytest.mark.parametrize("by_key", [True, False])
def test_each_model_gets_its_share(by_key):
    shares = {"a": 0.2, "b": 0.5, "c": 0.1}
    split = Split(shares, by_key=by_key)
    n = 20_000
    found = [split.of(b"user-%d" % i, i - n // 2) for i in range(n)]
    for name, share in {**shares, "": 0.2}.items():
        assert found.count(name) / n == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / n))


def test_a_key_goes_to_one_model_and_an_event_without_a_key_by_its_id():
    split = Split({"a": 0.5}, by_key=True)
    assert {split.of(b"user", i) for i in range(50)} == {split.of(b"user", 0)}
    assert {split.of(None, i) for i in range(50)} == {"a", ""}
    assert [split.of(None, i) for i in range(50)] == [Split({"a": 0.5}, by_key=False).of(b"user", i) for i in range(50)]


def test_the_hash_stays_as_it_is():
    """Trainers, scorers and replays of all versions agree."""
    split = Split({"a": 0.3, "b": 0.3}, by_key=True)
    assert "".join(split.of(b"%d" % i, 0) or "-" for i in range(24)) == "-aba-b-ba-bba---aabb-b-a"
    assert "".join(split.of(None, i) or "-" for i in range(24)) == "ab--babb-ba-a--a--b---bb"


def test_a_model_that_is_new_or_gets_more_leaves_others_their_events():
    numbers = range(2000)
    first, second = (Split(shares, by_key=False) for shares in ({"a": 0.2}, {"a": 0.2, "b": 0.3}))
    assert all(second.of(None, i) == "a" for i in numbers if first.of(None, i) == "a")
    larger = Split({"a": 0.4}, by_key=False)
    assert all(larger.of(None, i) == "a" for i in numbers if first.of(None, i) == "a")
    other = {i for i in numbers if Split({"other": 0.2}, by_key=False).of(None, i)}
    assert len({i for i in other if first.of(None, i)}) == pytest.approx(0.04 * 2000, abs=40)  # another hash


def test_shares_may_be_everything_or_nothing():
    assert {Split({"a": 0.5, "b": 0.5}, by_key=False).of(None, i) for i in range(100)} == {"a", "b"}
    assert {Split(dict.fromkeys("abcdefghij", 0.1), by_key=False).of(None, i) for i in range(999)} == {*"abcdefghij"}
    assert {Split({"a": 1.0}, by_key=False).of(None, i) for i in range(100)} == {"a"}
    assert not Split({"a": 0.0}, by_key=False)
    assert Split({}, by_key=True).of(b"key", 1) == ""
