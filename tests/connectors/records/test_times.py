"""Times: in which forms a record may write one, and what else says when it happened."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streamsvm.connectors.records.times import event_time, is_known, order, read_time

NOON = 1_700_000_000_123
HOUR = 3_600_000


@pytest.mark.parametrize(
    "ts",
    [
        NOON,
        float(NOON),
        NOON / 1000,
        NOON * 1000,
        NOON * 1_000_000,
        str(NOON),
        str(NOON * 1000),
        "1700000000.123",
        "2023-11-14T22:13:20.123Z",
        "2023-11-14 22:13:20.123",
        "2023-11-14 22:13:20.123 UTC",
        "20231114T221320.123+0000",
        "2023-11-15T03:43:20.123+05:30",
    ],
)
def test_a_time_is_read_in_every_usual_form(ts):
    assert read_time(ts) == NOON


@pytest.mark.parametrize(
    "ts",
    [
        *("", "yesterday", "2023-02-30", "23:59:60", "\ud800", float("nan"), float("inf"), 10**400, 1e300, -1e300),
        *("9999-99-99", "9999-12-31", "0001-01-01", "14/11/2023 22:13:20", 9e12 + 1e12, 1e10),
        *("202311142213", "20231114221320", "20231114221320123"),
    ],
)
def test_what_is_no_time_is_not_guessed(ts):
    with pytest.raises((ValueError, OverflowError)):
        read_time(ts)


def test_a_time_without_a_zone_is_utc_wherever_it_is_read(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        assert read_time("2023-11-14 22:13:20.123") == NOON
    time.tzset()


def test_whole_seconds_and_a_date_alone():
    assert read_time(1_700_000_000) == read_time("1700000000") == 1_700_000_000_000
    assert read_time("2023-11-14") == read_time("20231114") == 1_699_920_000_000
    assert read_time(0) == 0
    assert read_time(-1.5) == -1500
    assert read_time(1e11) == 100_000_000_000
    assert read_time("1712010100000") == 1_712_010_100_000, "not the date 17120101 and a time after the digit 0"


@given(st.integers() | st.floats() | st.text() | st.datetimes().map(str) | st.datetimes().map("{:%c}".format))
@example("2023-W01")
def test_any_time_is_whole_milliseconds_of_a_usual_year_or_refused(ts):
    try:
        found = read_time(ts)
    except (ValueError, OverflowError):
        return
    assert type(found) is int
    assert abs(found) < 9_300_000_000_000


def test_a_time_far_from_the_log_s_is_brought_back():
    year = 365 * 24 * HOUR
    assert event_time(NOON + year, NOON, HOUR) == NOON + HOUR
    assert event_time(NOON - year, NOON, HOUR) == NOON - HOUR
    assert event_time(NOON + HOUR, NOON, HOUR) == NOON + HOUR
    assert event_time(NOON + 1, NOON, 0) == NOON
    assert event_time(None, NOON, 0) == NOON
    assert event_time(NOON + year, NOON) == NOON + year


@pytest.mark.parametrize("stamp", [-1, -(1 << 62), NOON * 1000])
def test_without_a_timestamp_a_time_counts_as_it_is(stamp):
    assert not is_known(stamp)
    assert event_time(NOON, stamp, HOUR) == NOON
    assert event_time(None, stamp, HOUR) is None
    assert order(stamp, 5) < order(stamp, 6) < order(0, 0)
