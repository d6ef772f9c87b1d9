"""Records on the topics of control: a foreign one is refused, with a reason."""

import json

import pytest

from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.promotions import Divided, read_promotion, write_promotion


def record(value):
    return Record("control-served", 0, 0, 0, None, value, ())


@pytest.mark.parametrize("shares", [{}, {"a": 1}, {f"c{i}": 0.1 for i in range(10)}, {"a": 0.7, "b": 0.2, "c": 0.1}])
def test_shares_come_back_as_they_were_written(shares):
    divided = Divided(shares, True, 3, 4)
    assert read_promotion(record(write_promotion(divided))) == divided


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ({"a": 0.6, "b": 0.5}, "shares must add up to at most 1, not to 1.1"),
        ({"a": -0.5}, "shares must be numbers from 0 to 1"),
        ({"a": "half"}, "shares must be numbers from 0 to 1"),
    ],
)
def test_shares_that_are_none_are_refused(shares, said):
    value = json.dumps({"op": "divide", "shares": shares, "by_key": True, "events": 0, "labels": 0}).encode()
    with pytest.raises(BadRecord, match=said):
        read_promotion(record(value))
