"""Alarms: the bets are those of the twin, false alarms are rare, changes are heard, and everything is replayed."""

import copy
import math

import naive
import numpy as np
import pytest
from river import base

from streamsvm import SnapshotError, load
from streamsvm.alarms import ErrorAlarm, InputAlarm
from streamsvm.alarms.alarm import MOST_NAMES
from streamsvm.estimators.inputs.named_rows import NamedRows

BOTH = (ErrorAlarm, InputAlarm)


def feed(alarm, X, first=0):
    """Give the alarm these rows; return the places of the alarms."""
    heard = []
    for t, x in enumerate(X.tolist(), first):
        alarm.update(dict(enumerate(x)))
        if alarm.drift_detected:
            heard.append(t)
    return heard


def feed_errors(alarm, wrong, labels):
    heard = []
    for t, (x, label) in enumerate(zip(wrong.tolist(), labels.tolist(), strict=True)):
        alarm.update(x, label)
        if alarm.drift_detected:
            heard.append(t)
    return heard


def test_the_bets_are_those_of_the_twin():
    """Continuous features, a rounded one, one of 0 and 1, a constant and one that comes late."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 5))
    X[:, 1], X[:, 2], X[:, 3] = X[:, 1].round(), X[:, 2] > 1, 7.0
    alarm, twin = InputAlarm(), naive.NaiveAlarm(both_sides=True)
    for t, x in enumerate(X.tolist()):
        record = dict(zip("abcde"[: 4 + (t > 300)], x, strict=False))
        alarm.update(record)
        assert twin.update(record) is None
    for name, row in alarm._rows.items():
        assert alarm._state.means[row] == pytest.approx(twin.mean(name), rel=1e-9)
    wrong, labels = rng.random(900) < 0.3, rng.integers(3, size=900)
    errors, twin = ErrorAlarm(), naive.NaiveAlarm(both_sides=False)
    for x, label in zip(wrong.tolist(), labels.tolist(), strict=True):
        errors.update(x, label)
        assert twin.update({label: float(x)}) is None
    for label, row in errors._rows.items():
        assert errors._state.means[row] == pytest.approx(twin.mean(label), rel=1e-9)


@pytest.mark.parametrize("same_names", [True, False], ids=["table", "listed"])
def test_many_records_at_once_are_as_one_by_one(same_names):
    """Whatever the batches are, with alarms in the middle of them."""
    rng, n = np.random.default_rng(3), 3000
    X = rng.normal(size=(n, 3)).round(1)
    X[1000:, 1] += 2.0
    X[2000:, 2] += 2.0
    records = [dict(zip("abc", x, strict=True)) for x in X.tolist()]
    if not same_names:
        records = [{name: x[name] for name in ("cab", "ab")[rng.integers(2)]} for x in records]
    labels = rng.integers(3, size=n)
    are_wrong = rng.random(n) < np.where((labels == 2) & (np.arange(n) > 1500), 0.6, 0.2)
    inputs, errors, of_batches, of_errors = InputAlarm(), ErrorAlarm(), InputAlarm(), ErrorAlarm()
    expected, expected_errors, found, found_errors = [], [], [], []
    for t, (x, wrong, label) in enumerate(zip(records, are_wrong.tolist(), labels.tolist(), strict=True)):
        inputs.update(x)
        errors.update(wrong, label)
        expected += [(t, inputs.cause)] if inputs.drift_detected else []
        expected_errors += [(t, errors.cause)] if errors.drift_detected else []
    begin = 0
    while begin < n:
        own = slice(begin, begin + int(rng.integers(1, 90)))
        found += [(begin + t, of_batches.cause) for t in of_batches.update_many(NamedRows.of(records[own]))]
        found_errors += [
            (begin + t, of_errors.cause) for t in of_errors.update_many(are_wrong[own], labels[own].tolist())
        ]
        begin = own.stop
    assert (found, found_errors) == (expected, expected_errors)
    assert len(found) >= 2
    assert found_errors
    assert (of_batches.digest(), of_errors.digest()) == (inputs.digest(), errors.digest())
    assert of_batches.drift_detected == inputs.drift_detected
    assert list(of_batches.update_many(NamedRows.of(records).take([]))) == []


def test_exchangeable_records_raise_no_alarm():
    """Ten streams of 10 000 records; `benchmarks/alarms.py` has two hundred."""
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = np.column_stack([rng.normal(size=10_000), rng.exponential(size=10_000), rng.random(10_000) < 0.2])
        assert feed(InputAlarm(), X) == []
        assert feed_errors(ErrorAlarm(), rng.random(10_000) < 0.2, rng.random(10_000) < 0.1) == []


def test_the_rate_of_false_alarms_is_what_was_asked_for():
    """At one in a thousand records, 100 streams of 1000 records give at most 100 on average."""
    n_alarms = 0
    for seed in range(100):
        n_alarms += len(feed(InputAlarm(1e-3), np.random.default_rng(seed).normal(size=(1000, 2))))
    assert 0 < n_alarms <= 100


@pytest.mark.parametrize(("shift", "within"), [(1.0, 60), (-1.0, 60), (0.5, 250)])
def test_a_feature_that_moves_is_heard_without_a_label(shift, within):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 3)) * [1.0, 1e6, 1e-6]
    X[3000:, 1] += shift * 1e6
    alarm = InputAlarm()
    heard = feed(alarm, X)
    assert 3000 <= heard[0] <= 3000 + within
    assert alarm.cause == 1


def test_a_class_that_turns_is_heard():
    rng = np.random.default_rng(2)
    labels, wrong = rng.random(4000) < 0.1, rng.random(4000) < 0.1
    wrong[3000:] = np.where(labels[3000:], rng.random(1000) < 0.9, wrong[3000:])
    alarm = ErrorAlarm()
    heard = feed_errors(alarm, wrong, labels)
    of_class = np.flatnonzero(labels[3000:])
    assert 3000 <= heard[0] <= 3000 + of_class[25]
    assert alarm.cause is True


def test_errors_that_become_rarer_raise_no_alarm():
    rng = np.random.default_rng(3)
    wrong = rng.random(5000) < np.linspace(0.5, 0.05, 5000)
    assert feed_errors(ErrorAlarm(), wrong, np.zeros(5000)) == []


def test_inputs_that_move_all_the_time_mute_the_alarm():
    rng = np.random.default_rng(4)
    walk = np.sin(np.arange(9000) / 200.0)[:, np.newaxis] + 0.1 * rng.normal(size=(9000, 2))
    alarm = InputAlarm()
    assert len(feed(alarm, walk)) == 3
    assert alarm.muted
    assert alarm.n_alarms == 3
    feed(alarm, rng.normal(size=(12_000, 2)), 9000)
    assert not alarm.muted


@pytest.mark.parametrize("alarm", [ErrorAlarm(), InputAlarm()], ids=lambda alarm: type(alarm).__name__)
def test_a_stored_alarm_goes_on_bit_for_bit(alarm, tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(3000, 3))
    X[1000:1500] += 0.7
    X[2500:] += 2.0

    def feed_one(alarm, x):
        if isinstance(alarm, InputAlarm):
            alarm.update(dict(zip("abc", x, strict=True)))
        else:
            alarm.update(x[0] > 1.0, x[1] > 0.0)
        return alarm.drift_detected, alarm.cause

    heard = []
    for t, x in enumerate(X.tolist()):
        if t in (0, 50, 700, 1800):
            alarm.save(tmp_path / "alarm")
            stored = load(tmp_path / "alarm")
            assert stored.digest() == alarm.digest()
        answers = {feed_one(each, x) for each in (alarm, stored)}
        assert len(answers) == 1
        heard += [t] if alarm.drift_detected else []
    assert heard
    assert stored.digest() == alarm.digest() == copy.deepcopy(alarm).digest()
    with pytest.raises(SnapshotError):
        InputAlarm.from_bytes(ErrorAlarm().to_bytes())
    with pytest.raises(SnapshotError):
        type(alarm).from_bytes(alarm.to_bytes()[:-9])


def test_memory_is_bounded():
    alarm = InputAlarm()
    for t in range(3):
        alarm.update({f"{t}-{k}": 1.0 for k in range(700)})
    assert len(alarm._rows) == len(alarm._state.seen) == MOST_NAMES


def test_missing_values_and_hashed_words_are_passed_over():
    alarm, same = InputAlarm(), InputAlarm()
    rng = np.random.default_rng(6)
    for v in rng.normal(size=300).tolist():
        alarm.update({"a": v, "b": None, "~word": 1.0})
        alarm.update({"a": math.nan, "b": math.inf})
        same.update({"a": v, "b": None})
        same.update({"b": math.nan})
    assert alarm.digest() == same.digest()
    assert set(alarm._rows) == {"a", "b"}


def test_wrong_arguments_are_refused():
    for alarm in BOTH:
        for rate in (0.0, 1.0, math.nan, "often", None):
            with pytest.raises(ValueError, match="false_alarm_rate="):
                alarm(rate)
        assert isinstance(alarm(), base.DriftDetector)
    with pytest.raises(ValueError, match=r"x=0\.5 must say"):
        ErrorAlarm().update(0.5)
    with pytest.raises(TypeError, match="feature 'a' is 'red'"):
        InputAlarm().update({"a": "red"})
    alarm = ErrorAlarm()
    alarm.update(True, (1, 2))
    with pytest.raises(SnapshotError, match="tuple"):
        alarm.to_bytes()
