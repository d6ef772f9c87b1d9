"""The join: every rule by example, and all of them against a twin that keeps lists and scans them."""

from collections import Counter
from dataclasses import asdict
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm.connectors.records.labels import Label
from streamsvm.connectors.trainer.state.join import AGREEING, Join
from streamsvm.connectors.trainer.state.lesson import JoinCounters, Lesson, Told
from streamsvm.core.saving import snapshot

TTL = 100
ROOMY = 1 << 30


def said(margin):
    """A prediction whose decision values are not known."""
    return SimpleNamespace(margin=margin, class_label=None, decision=None, verdict=None)


def add_event(join, key=1, time=0, *, y=None, w=1.0, margin=0.5, value=b"payload", entity=b"entity", at=17):
    return join.add_event(key, value, y=y, w=w, said=said(margin), entity=entity, time=time, at=at)


def add_label(join, y, offset, *, rev=0, w=None, key=1, time=0):
    """Set the label, or retract it where `y` is None."""
    op = "retract" if y is None else "set"
    return join.add_label(Label(str(key), key, y, w, None, rev, op, None), offset, time)


def overhead():
    join = Join(TTL, ROOMY, ROOMY)
    add_label(join, True, 0)
    return join.nbytes


OVERHEAD = overhead()


def lesson(y, *, w=1.0, is_first=True, value=b"payload", waited=0):
    return Lesson(1, value, y, w, Told(0.5), entity=b"entity", is_first=is_first, at=17, waited=waited)


FORGET = lesson(None, w=0.0, is_first=False)


def counted(join, **expected):
    return {name: n for name, n in asdict(join.counters).items() if n} == expected


@pytest.fixture
def join():
    return Join(TTL, ROOMY, ROOMY)


# --- events and labels, once each -------------------------------------------------------------------------------------


def test_an_event_is_learned_when_its_label_comes(join):
    assert add_event(join) is None
    assert add_label(join, True, 0) == lesson(True)
    assert counted(join, matched=1)


def test_a_label_waits_for_its_event(join):
    assert add_label(join, False, 0) is None
    assert add_event(join) == lesson(False)
    assert counted(join, matched=1)


def test_an_event_with_its_own_label_is_learned_at_once(join):
    assert add_event(join, y=False, w=2.0) == lesson(False, w=2.0)
    assert counted(join, matched=1)


@pytest.mark.parametrize("event_first", [True, False])
def test_a_label_s_weight_replaces_the_event_s(join, event_first):
    calls = [lambda: add_event(join, w=2.0), lambda: add_label(join, True, 0, w=7.0)]
    if not event_first:
        calls.reverse()
    assert [call() for call in calls] == [None, lesson(True, w=7.0)]


def test_the_entity_is_that_of_the_first_event(join):
    add_event(join, entity=b"entity")
    assert add_event(join, entity=b"another") is None
    assert add_label(join, True, 0) == lesson(True)
    add_event(join, key=2, entity=None)
    assert add_label(join, True, 1, key=2).entity is None


def test_an_event_may_be_empty(join):
    add_event(join, value=b"", entity=b"")
    assert add_event(join, value=b"") is None
    assert add_label(join, True, 0).value == b""
    assert counted(join, matched=1, duplicate_events=1)


# --- the newest label holds -------------------------------------------------------------------------------------------


def test_labels_win_over_the_event_s_own_whichever_comes_first(join):
    assert add_event(join, y=True) == lesson(True)
    assert add_label(join, False, 0) == lesson(False, is_first=False)
    assert counted(join, matched=1, corrected=1)

    other = Join(TTL, ROOMY, ROOMY)
    add_label(other, False, 0)
    assert add_event(other, y=True) == lesson(False)
    assert counted(other, matched=1, stale=1)


def test_a_label_that_says_what_the_event_did_is_a_duplicate(join):
    add_event(join, y=True)
    assert add_label(join, True, 0) is None
    assert counted(join, matched=1, duplicate_labels=1)


@pytest.mark.parametrize("w", [None, 3.0])
def test_the_same_revision_and_y_again_is_a_duplicate(join, w):
    add_label(join, True, 0)
    assert add_label(join, True, 1, w=w) is None
    assert add_event(join) == lesson(True)
    assert add_label(join, True, 2, w=w) is None
    assert counted(join, matched=1, duplicate_labels=2)


def test_a_duplicate_counts_as_the_later_of_the_two(join):
    add_event(join)
    add_label(join, True, 0)
    add_label(join, True, 2)
    assert add_label(join, False, 1) is None
    assert counted(join, matched=1, duplicate_labels=1, stale=1)


def test_of_equal_revisions_the_later_one_holds(join):
    add_event(join)
    add_label(join, True, 5)
    assert add_label(join, False, 4) is None
    assert add_label(join, False, 5) is None
    assert add_label(join, False, 6) == lesson(False, is_first=False)
    assert counted(join, matched=1, corrected=1, stale=2)


def test_a_lower_revision_is_stale(join):
    add_event(join)
    assert add_label(join, True, 0, rev=2) == lesson(True)
    assert add_label(join, False, 1, rev=1) is None
    assert counted(join, matched=1, stale=1)


def test_a_label_without_a_revision_replaces_whatever_came_before_it(join):
    add_event(join, y=False)
    assert add_label(join, True, 0, rev=1_700_000_000_000) == lesson(True, is_first=False)
    assert add_label(join, False, 1, rev=None) == lesson(False, is_first=False)
    assert add_label(join, True, 2, rev=0) is None
    assert add_label(join, None, 3, rev=None) == FORGET
    assert add_label(join, True, 4, rev=1_700_000_000_001) == lesson(True, is_first=False)
    assert add_label(join, False, 1, rev=None) is None  # read again after a crash
    assert counted(join, matched=1, corrected=3, undone=1, stale=2)


def test_a_label_without_a_revision_is_older_than_any_revision_that_follows(join):
    assert add_label(join, True, 0, rev=None) is None
    assert add_event(join) == lesson(True)
    assert add_label(join, False, 1, rev=1) == lesson(False, is_first=False)


def test_a_correction_before_the_event_comes(join):
    add_label(join, True, 0)
    assert add_label(join, False, 1, rev=1) is None
    assert add_label(join, True, 2) is None
    assert add_event(join) == lesson(False)
    assert counted(join, matched=1, stale=2)


def test_a_correction_has_the_margin_of_the_first_prediction(join):
    add_event(join)
    add_label(join, True, 0)
    assert add_label(join, False, 1, rev=1, w=2.0) == lesson(False, w=2.0, is_first=False)
    assert add_label(join, True, 2, rev=2) == lesson(True, is_first=False)
    assert counted(join, matched=1, corrected=2)


def test_a_revision_that_changes_nothing_teaches_nothing(join):
    add_event(join)
    add_label(join, True, 0)
    assert add_label(join, True, 1, rev=1) is None
    assert add_label(join, True, 2, rev=2, w=1.0) is None
    assert add_label(join, True, 3, rev=3, w=2.0) == lesson(True, w=2.0, is_first=False)
    assert add_label(join, False, 4, rev=2) is None
    assert counted(join, matched=1, confirmed=2, corrected=1, stale=1)


def test_a_second_event_is_not_learned(join):
    add_event(join)
    assert add_event(join, y=True, value=b"other") is None
    assert add_label(join, False, 0) == lesson(False)
    assert add_event(join, y=True, value=b"other") is None
    assert counted(join, matched=1, duplicate_events=2)


# --- retractions ------------------------------------------------------------------------------------------------------


def test_a_retraction_before_the_label(join):
    add_event(join)
    assert add_label(join, None, 0, rev=1) is None
    assert add_label(join, True, 1) is None
    assert add_label(join, True, 2, rev=2) == lesson(True)
    assert counted(join, matched=1, retracted=1, stale=1)


def test_a_retraction_while_the_label_waits(join):
    add_label(join, True, 0)
    add_label(join, None, 1)
    assert add_event(join) is None
    assert add_label(join, True, 2) == lesson(True)
    assert counted(join, matched=1, retracted=1, stale=1)


def test_a_retraction_of_what_was_never_seen(join):
    add_label(join, None, 0, rev=1)
    assert add_label(join, True, 1) is None
    assert add_event(join, y=True) is None
    assert add_label(join, True, 2) is None
    assert counted(join, retracted=1, stale=3)


def test_a_retraction_after_learning_is_a_lesson(join):
    add_event(join, y=True)
    assert add_label(join, None, 0) == FORGET
    assert add_label(join, None, 1) is None
    assert add_label(join, None, 2, rev=1) is None
    assert add_label(join, True, 3, rev=2) == lesson(True, is_first=False)
    assert add_label(join, None, 4, rev=3) == FORGET
    assert add_label(join, False, 5, rev=4) == lesson(False, is_first=False)
    assert counted(join, matched=1, undone=2, duplicate_labels=1, confirmed=1, corrected=2)


def test_what_was_learned_and_taken_back_ends_as_matched(join):
    add_event(join, y=True)
    add_label(join, None, 0)
    add_event(join, key=2, time=TTL + 1)
    assert counted(join, matched=1, undone=1)


def test_a_retraction_may_name_the_label_it_retracts(join):
    add_event(join)
    assert join.add_label(Label("1", 1, True, None, None, 0, "retract", None), 0, 0) is None
    assert counted(join, retracted=1)


# --- time -------------------------------------------------------------------------------------------------------------


def test_an_event_waits_until_the_ttl_and_no_longer(join):
    add_event(join, key=1, time=0)
    add_event(join, key=2, time=1)
    add_event(join, key=3, time=TTL)
    assert join.n_entries == 3
    assert add_label(join, True, 0, key=1, time=TTL).key == 1
    assert add_label(join, True, 1, key=2, time=TTL + 2) is None
    assert counted(join, matched=1, expired=1)
    assert join.n_entries == 2  # event 3 and label 2


def test_a_label_waits_until_the_ttl_and_no_longer(join):
    add_label(join, True, 0, key=1)
    add_label(join, True, 1, key=2)
    assert add_event(join, key=1, time=TTL).key == 1
    assert add_event(join, key=2, time=TTL + 1) is None
    assert counted(join, matched=1, unmatched=1)


def test_a_learned_event_stays_for_corrections_as_long_as_any_other(join):
    add_event(join)
    add_label(join, True, 0, time=TTL)
    assert add_label(join, False, 1, rev=1, time=TTL) == lesson(False, is_first=False, waited=TTL)
    assert add_label(join, True, 2, rev=2, time=TTL + 1) is None
    add_event(join, key=2, time=3 * TTL)
    assert counted(join, matched=1, corrected=1, unmatched=1)


def test_the_wait_of_an_event_begins_when_it_comes_whatever_waited_for_it(join):
    add_label(join, True, 0, time=0)
    add_event(join, time=TTL)
    assert add_label(join, False, 1, time=2 * TTL) == lesson(False, is_first=False, waited=TTL)


def test_a_newer_label_waits_from_its_own_time_and_others_change_nothing(join):
    add_label(join, True, 0, rev=1, key=1)
    add_label(join, True, 1, rev=1, key=2)
    add_label(join, True, 2, rev=1, key=3)
    add_label(join, False, 3, rev=2, key=1, time=TTL)
    add_label(join, False, 4, rev=0, key=2, time=TTL)
    add_label(join, True, 5, rev=1, key=3, time=TTL)
    assert add_event(join, key=1, time=TTL + 1).y is False
    assert add_event(join, key=2, time=TTL + 1) is None
    assert add_event(join, key=3, time=TTL + 1) is None
    assert counted(join, matched=1, stale=2, duplicate_labels=1, unmatched=2)


def test_an_id_used_again_after_its_time_is_a_new_event(join):
    add_event(join, y=True, time=0)
    assert add_event(join, y=True, time=TTL) is None
    assert add_event(join, y=False, time=TTL + 1, value=b"new") == lesson(False, value=b"new")
    assert add_label(join, False, 0, time=TTL + 1) is None
    assert counted(join, matched=2, duplicate_events=1, duplicate_labels=1)


def test_a_late_record_waits_as_long_as_others(join):
    add_event(join, key=2, time=1000)
    add_event(join, key=1, time=-(10**12))
    assert add_label(join, True, 0, time=1000 + TTL) == lesson(True, waited=TTL)

    add_label(join, True, 1, key=3, time=-(10**12))
    assert add_event(join, key=3, time=1000 + 2 * TTL).key == 3
    assert counted(join, matched=2, expired=1)


def test_after_a_record_from_the_future_pairs_are_still_made(join):
    year = 365 * 86_400_000
    add_event(join, key=1, time=0)
    add_event(join, key=2, time=year)
    assert counted(join, expired=1)
    add_event(join, key=1, time=1)
    assert add_label(join, True, 0, key=2, time=2).key == 2
    assert add_label(join, True, 1, key=1, time=2 * TTL) == lesson(True)
    add_event(join, key=3, time=year + TTL + 1)
    assert join.n_entries == 1


def test_without_a_ttl_only_one_moment_is_joined():
    join = Join(0, ROOMY, ROOMY)
    add_event(join, key=1, time=5)
    assert add_label(join, True, 0, key=1, time=5) == lesson(True)
    add_event(join, key=2, time=6)
    assert add_label(join, True, 1, key=2, time=7) is None


# --- memory -----------------------------------------------------------------------------------------------------------


def test_the_oldest_makes_room():
    join = Join(TTL, 2 * OVERHEAD, OVERHEAD)
    add_event(join, key=1, value=b"", entity=None)
    add_label(join, True, 0, key=2)
    add_event(join, key=3, value=b"", entity=None, y=True)
    assert (join.n_entries, join.nbytes) == (3, 3 * OVERHEAD)
    add_event(join, key=4, value=b"", entity=None)
    assert counted(join, matched=1, dropped=1)
    add_event(join, key=5, value=b"", entity=None)  # drops 3, which was learned
    assert counted(join, matched=1, dropped=1)
    assert add_event(join, key=2, value=b"", entity=None).key == 2, "its label had room of its own"
    assert add_label(join, True, 1, key=5).key == 5
    assert counted(join, matched=3, dropped=2)


def test_a_flood_of_labels_drops_the_oldest_labels_and_no_event():
    join = Join(TTL, 3 * OVERHEAD, 10 * OVERHEAD)
    for key in (1, 2, 3):
        add_event(join, key=key, value=b"", entity=None)
    for key in range(100, 200):
        add_label(join, True, key, key=key)
    assert (join.n_entries, join.nbytes) == (13, 13 * OVERHEAD)
    assert counted(join, dropped_labels=90)
    assert [add_label(join, True, 200 + key, key=key).key for key in (1, 2, 3)] == [1, 2, 3]
    assert add_event(join, key=189, value=b"", entity=None) is None
    assert add_event(join, key=190, value=b"", entity=None).key == 190
    assert counted(join, matched=4, dropped_labels=90)


def test_a_flood_of_events_drops_no_label():
    join = Join(TTL, 3 * OVERHEAD, OVERHEAD)
    add_label(join, True, 0, key=1)
    for key in range(100, 200):
        add_event(join, key=key, value=b"", entity=None)
    assert add_event(join, key=1).key == 1


def test_payload_and_entity_count():
    join = Join(TTL, ROOMY, ROOMY)
    add_event(join, value=bytes(100), entity=bytes(10))
    assert join.nbytes == OVERHEAD + 110
    add_event(join, key=2, time=TTL + 1, value=b"", entity=None)
    assert join.nbytes == OVERHEAD


def test_what_is_too_large_by_itself_costs_no_other_its_place():
    join = Join(TTL, 2 * OVERHEAD + 100, 2 * OVERHEAD + 100)
    add_event(join, key=2, value=b"", entity=None)
    assert add_event(join, value=bytes(10_000)) is None
    assert add_event(join, value=bytes(10_000), y=True) == lesson(True, value=bytes(10_000))
    add_label(join, False, 0)
    assert add_event(join, value=bytes(10_000)) == lesson(False, value=bytes(10_000))
    assert counted(join, matched=2, dropped=1)
    assert (join.n_entries, join.nbytes) == (1, OVERHEAD)


def test_without_memory_only_what_needs_no_waiting_is_learned():
    join = Join(TTL, OVERHEAD - 1, OVERHEAD - 1)
    assert add_event(join) is None
    assert add_label(join, True, 0) is None
    assert add_event(join, y=True) == lesson(True)
    assert (join.n_entries, join.nbytes) == (0, 0)
    assert counted(join, matched=1, dropped=1, dropped_labels=1)


# --- against a naive twin ---------------------------------------------------------------------------------------------


class NaiveJoin:
    """The same rules, said with lists: all labels of an entry are kept, and everything is found by looking through."""

    def __init__(self, ttl, event_bytes, label_bytes):
        self.ttl, self.limits = ttl, {True: event_bytes, False: label_bytes}  # by whether it is of events
        self.times = []
        self.entries = []  # dicts, oldest first
        self.counters = Counter()

    def add_event(self, key, value, *, y, w, said, entity, time, at):
        self.expire(time)
        entry = self.find(key)
        if entry and entry["event"]:
            self.counters["duplicate_events"] += 1
            return None
        if entry:
            self.entries.remove(entry)
        labels = entry["labels"] if entry else []
        if y is not None:
            self.hear(labels, (0, -1, y, None))
        entry = self.new(key, labels, event=(value, w, said.margin, entity, at))
        result = self.teach(entry) if labels else None
        self.keep(entry)
        return result

    def without_event(self, key):
        entry = self.find(key)
        if entry and not entry["event"]:
            _, _, y, _ = max(entry["labels"], key=lambda label: label[:2])
            return Lesson(key, None, y, 0.0, Told(), None, is_first=False)
        return None

    def add_label(self, label, offset, time):
        self.expire(time)
        entry = self.find(label.key)
        revs = [rev for rev, *_ in entry["labels"]] if entry else []
        rev = max(revs, default=0) if label.rev is None else label.rev
        heard = (rev, offset, label.y if label.op == "set" else None, label.w)
        if not entry:
            self.keep(self.new(label.key, [heard]))
        elif self.hear(entry["labels"], heard):
            if entry["event"]:
                return self.teach(entry)
            self.counters["stale"] += 1
            self.entries.remove(entry)
            self.keep(self.new(label.key, entry["labels"]))
        return None

    def hear(self, labels, heard):
        if labels:
            rev, _, y, w = max(labels, key=lambda label: label[:2])
            if heard[0] == rev and heard[2] is y:
                labels.append((*heard[:3], w))
                self.counters["duplicate_labels"] += 1
                return False
            if any(heard[:2] <= label[:2] for label in labels):
                self.counters["stale"] += 1
                return False
        labels.append(heard)
        return True

    def teach(self, entry):
        value, event_w, margin, entity, at = entry["event"]
        lessons = entry["lessons"]
        _, _, y, w = max(entry["labels"], key=lambda label: label[:2])
        if y is None and not lessons:
            self.counters["retracted"] += 1
            return None
        w = 0.0 if y is None else event_w if w is None else w
        if lessons and lessons[-1] == (y, w):
            self.counters["confirmed"] += 1
            return None
        self.counters["undone" if y is None else "corrected" if lessons else "matched"] += 1
        lessons.append((y, w))
        waited = max(self.times) - entry["since"]
        is_first = len(lessons) == 1
        return Lesson(entry["key"], value, y, w, Told(margin), entity, is_first, at=at, waited=waited)

    def new(self, key, labels, event=None):
        return {"key": key, "since": max(self.times), "event": event, "labels": labels, "lessons": []}

    def find(self, key):
        return next((entry for entry in self.entries if entry["key"] == key), None)

    def expire(self, time):
        self.times.append(time)
        for entry in list(self.entries):
            if max(self.times) - entry["since"] > self.ttl:
                self.lose(entry, "expired")

    def keep(self, entry):
        self.entries.append(entry)
        is_event = entry["event"] is not None
        if size(entry) > self.limits[is_event]:
            self.lose(entry, "dropped")
        while sum(map(size, self.of_kind(is_event))) > self.limits[is_event]:
            self.lose(self.of_kind(is_event)[0], "dropped")

    def lose(self, entry, how):
        self.entries.remove(entry)
        if not entry["event"]:
            self.counters["unmatched" if how == "expired" else "dropped_labels"] += 1
        elif not entry["lessons"]:
            self.counters[how] += 1

    def of_kind(self, is_event):
        return [entry for entry in self.entries if (entry["event"] is not None) == is_event]

    def nbytes(self):
        return sum(map(size, self.entries))


def size(entry):
    value, _, _, entity, _ = entry["event"] or (b"", None, None, None, None)
    return OVERHEAD + len(value) + len(entity or b"")


keys = st.integers(0, 3)
times = st.integers(0, 60)
events = st.fixed_dictionaries(
    {
        "key": keys,
        "time": times,
        "y": st.sampled_from([None, None, True, False]),
        "w": st.sampled_from([1.0, 2.0]),
        "margin": st.floats(-2, 2),
        "value": st.sampled_from([b"", b"v", bytes(300), bytes(2000)]),
        "entity": st.sampled_from([None, b"", b"a", b"entity"]),
        "at": st.integers(0, 5),
    }
)
labels = st.fixed_dictionaries(
    {
        "key": keys,
        "time": times,
        "y": st.sampled_from([True, False, None]),
        "offset": st.integers(0, 4),
        "rev": st.none() | st.integers(0, 2),
        "w": st.sampled_from([None, 1.0, 2.0]),
    }
)
sequences = st.lists(events | labels, max_size=40)
ttls = st.sampled_from([0, 5, 20, 1000])
limits = st.sampled_from([0, OVERHEAD, 2 * OVERHEAD + 1, 3 * OVERHEAD + 300, ROOMY])


def play(join, call):
    return (add_label if "rev" in call else add_event)(join, **call)


@given(sequences, ttls, limits, limits)
def test_it_does_what_a_naive_twin_does(calls, ttl, event_bytes, label_bytes):
    join, naive = Join(ttl, event_bytes, label_bytes), NaiveJoin(ttl, event_bytes, label_bytes)
    for call in calls:
        assert play(join, call) == play(naive, call)
        assert join.counters == JoinCounters(**naive.counters)
        assert (join.n_entries, join.nbytes) == (len(naive.entries), naive.nbytes())
        assert join.nbytes <= event_bytes + label_bytes
        assert join.without_event(call["key"]) == naive.without_event(call["key"])
    ordered = [*naive.of_kind(True), *naive.of_kind(False)]
    assert join.to_arrays()["key"].tolist() == [entry["key"] for entry in ordered]


@given(sequences, ttls, limits)
def test_every_event_and_label_is_counted_once_when_all_time_is_over(calls, ttl, max_bytes):
    join = Join(ttl, max_bytes, max_bytes)
    last = {"key": -1, "time": 10**6, "y": True}  # ends all other waits
    n_events = n_labels = 0
    for call in [*calls, last]:
        known = join.counters.duplicate_events
        play(join, call)
        if "rev" in call:
            n_labels += 1
        else:
            n_events += 1
            n_labels += call["y"] is not None and join.counters.duplicate_events == known
    c = join.counters
    assert n_events == c.matched + c.expired + c.dropped + c.duplicate_events
    changed_nothing = c.confirmed + c.stale + c.duplicate_labels + c.unmatched + c.dropped_labels
    assert n_labels == c.matched + c.corrected + c.retracted + c.undone + changed_nothing


# --- any order, any repetition ----------------------------------------------------------------------------------------


@st.composite
def one_id(draw):
    """An event and its labels, of distinct revisions, in some order, with repetitions; all within the ttl."""
    event = draw(events) | {"key": 1}
    revs = draw(st.lists(st.integers(1, 5), unique=True, max_size=5))
    offsets = draw(st.permutations(range(len(revs))))
    calls = [event]
    calls += [
        draw(labels) | {"key": 1, "rev": rev, "offset": offset} for rev, offset in zip(revs, offsets, strict=True)
    ]
    order = draw(st.permutations(calls))
    again = draw(st.lists(st.tuples(st.integers(0, len(calls)), st.sampled_from(calls)), max_size=5))
    return event, calls[1:], order, again


@given(one_id())
def test_in_any_order_the_newest_label_is_learned_last(case):
    event, labels, order, _ = case
    own = [] if event["y"] is None else [{"rev": 0, "y": event["y"], "w": None}]
    newest = max(labels + own, key=lambda label: label["rev"], default=None)
    join = Join(60, ROOMY, ROOMY)
    lessons = [lesson for lesson in (play(join, call) for call in order) if lesson]
    assert [lesson.is_first for lesson in lessons] == [True, *[False] * (len(lessons) - 1)][: len(lessons)]
    for lesson in lessons:
        assert lesson[:2] == (1, event["value"])
        assert (lesson.told.margin, lesson.entity) == (event["margin"], event["entity"])
    if newest is None or newest["y"] is None:
        assert not lessons or lessons[-1].y is None
    else:
        assert lessons[-1].y == newest["y"]
        assert lessons[-1].w == (event["w"] if newest["w"] is None else newest["w"])
    assert join.counters.matched == (len(lessons) > 0)
    assert join.counters.corrected + join.counters.undone == max(len(lessons) - 1, 0)
    assert join.counters.undone == sum(lesson.y is None for lesson in lessons)


@given(one_id())
def test_repetitions_change_no_lesson(case):
    _, _, order, again = case
    join, other = Join(60, ROOMY, ROOMY), Join(60, ROOMY, ROOMY)
    lessons = [lesson for lesson in (play(join, call) for call in order) if lesson]
    repeated = []
    for i, call in enumerate([*order, None]):
        repeated += [play(other, extra) for place, extra in again if place == i and extra in order[:i]]
        if call:
            repeated.append(play(other, call))
    assert [lesson for lesson in repeated if lesson] == lessons


# --- checkpoints ------------------------------------------------------------------------------------------------------


def going_on(arrays, *limits, **leap):
    """A join that goes on from these arrays, with these limits."""
    join = Join(*limits, **leap)
    join.restore(arrays)
    return join


def restored(join, ttl, max_bytes):
    """A join that went through the bytes of a checkpoint."""
    _, arrays = snapshot.unpack(snapshot.pack("join", {}, join.to_arrays()), "join")
    copy = going_on(arrays, ttl, max_bytes, max_bytes)
    assert_same_state(copy, join)
    return copy


def assert_same_state(one, other):
    a, b = one.to_arrays(), other.to_arrays()
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name])
    assert one.counters == other.counters
    assert (one.n_entries, one.nbytes) == (other.n_entries, other.nbytes)


@given(sequences, ttls, limits, st.sets(st.integers(0, 40)))
def test_a_checkpoint_at_any_time_changes_nothing_afterwards(calls, ttl, max_bytes, places):
    join = other = Join(ttl, max_bytes, max_bytes)
    for i, call in enumerate(calls):
        if i in places:
            other = restored(join, ttl, max_bytes)
        first = play(join, call)
        if other is not join:
            assert play(other, call) == first
    assert_same_state(join, other)


def test_a_checkpoint_keeps_every_bit():
    join = Join(TTL, ROOMY, ROOMY)
    rng = np.random.default_rng(0)
    for i, margin in zip(count(), rng.normal(size=200).tolist(), strict=False):
        key = int(rng.integers(-(1 << 63), 1 << 63))
        add_event(join, key=key, margin=margin, w=abs(margin) / 3, value=rng.bytes(i), entity=rng.bytes(i % 9))
        add_label(join, True, 1 << 62, key=key if i % 2 else ~key, rev=(1 << 63) - 1, w=abs(margin) / 7)
    add_event(join, key=5, margin=-0.0)
    add_event(join, key=6, margin=float("-inf"))
    copy = restored(join, TTL, ROOMY)
    for key in join.to_arrays()["key"].tolist():
        assert add_event(copy, key=key) == add_event(join, key=key)
        assert add_label(copy, True, 0, key=key) == add_label(join, True, 0, key=key)
    assert np.signbit(copy.to_arrays()["margin"]).tolist() == np.signbit(join.to_arrays()["margin"]).tolist()


def test_a_checkpoint_knows_what_was_taken_back(join):
    add_event(join, y=True)
    add_label(join, None, 0)
    copy = restored(join, TTL, ROOMY)
    assert add_label(copy, None, 1, rev=1) is None
    assert add_label(copy, True, 2, rev=2) == lesson(True, is_first=False)
    assert counted(copy, matched=1, undone=1, confirmed=1, corrected=1)


def test_a_checkpoint_from_before_retractions_were_followed_goes_on():
    join = Join(TTL, ROOMY, ROOMY)
    add_event(join, y=True)
    arrays = join.to_arrays()
    arrays["counters"] = arrays["counters"][:-2]
    arrays["counters"][list(asdict(join.counters)).index("not_undone")] = 1
    arrays["y"][0] = -1  # its label was taken back, to no effect
    old = going_on(arrays, TTL, ROOMY, ROOMY)
    assert counted(old, matched=1, not_undone=1)
    assert add_label(old, None, 0, rev=1) == FORGET
    assert counted(old, matched=1, not_undone=1, undone=1)


def test_a_checkpoint_from_before_events_had_their_offsets_goes_on(join):
    add_event(join)
    arrays = join.to_arrays()
    del arrays["at"]
    assert add_label(going_on(arrays, TTL, ROOMY, ROOMY), True, 0) == lesson(True)._replace(at=-1)


def test_a_checkpoint_is_not_much_larger_than_the_payload():
    join = Join(TTL, ROOMY, ROOMY)
    for key in range(1000):
        add_event(join, key=key, value=bytes(250))
    assert sum(array.nbytes for array in join.to_arrays().values()) < 1000 * (250 + 100)


def test_smaller_limits_hold_at_once_after_a_restart():
    join = Join(TTL, ROOMY, ROOMY)
    for key in range(10):
        add_event(join, key=key, time=10 * key, value=b"", entity=None)
    arrays = join.to_arrays()
    for limited in (going_on(arrays, 30, ROOMY, ROOMY), going_on(arrays, TTL, 4 * OVERHEAD, ROOMY)):
        assert limited.to_arrays()["key"].tolist() == [6, 7, 8, 9]
    assert going_on(arrays, 30, ROOMY, ROOMY).counters.expired == 6
    assert going_on(arrays, TTL, 4 * OVERHEAD, ROOMY).counters.dropped == 6


# --- records from the future ------------------------------------------------------------------------------------------


@pytest.fixture
def wary():
    """A join with 20 events that wait for their labels; a single record moves its clock by half the ttl at most."""
    join = Join(TTL, ROOMY, ROOMY, leap_ms=TTL // 2)
    for key in range(20):
        add_event(join, key, time=key)
    return join


def label_all(join, time):
    return [add_label(join, True, key, key=key, time=time) is not None for key in range(20)]


@pytest.mark.parametrize(
    "send", [lambda join: add_event(join, 99, time=10**9), lambda join: add_label(join, True, 0, key=99, time=10**9)]
)
def test_a_record_from_the_future_makes_nothing_expire(wary, send):
    for _ in range(3):  # a broken clock among others
        send(wary)
        add_event(wary, 98, time=20)
    assert (wary.clock, wary.odd_times["doubted"]) == (20, 3)
    assert all(label_all(wary, 21))
    assert (wary.counters.expired, wary.counters.unmatched) == (0, 0)


def test_after_a_long_silence_the_clock_follows_the_records(wary, caplog):
    """What waited before the silence expires; what comes after it waits for its labels."""
    for key in range(50, 50 + AGREEING):
        assert wary.clock == 19
        add_event(wary, key, time=10**6)
    assert (wary.clock, wary.odd_times["doubted"], wary.counters.expired) == (10**6, 0, 20)
    assert "20 events and 0 labels waited longer than join.ttl_seconds" in caplog.text
    for key in range(50, 50 + AGREEING):
        assert add_label(wary, True, 0, key=key, time=10**6 + TTL // 2).waited == TTL // 2
    add_event(wary, 1, time=10**6 + TTL)
    assert wary.counters.expired == 20


def test_doubts_survive_a_checkpoint(wary):
    for key in range(50, 50 + AGREEING // 2):
        add_event(wary, key, time=10**6)
    again = going_on(wary.to_arrays(), TTL, ROOMY, ROOMY, leap_ms=TTL // 2)
    for key in range(60, 60 + AGREEING):
        for join in (wary, again):
            add_event(join, key, time=10**6)
    assert (again.clock, again.counters) == (wary.clock, wary.counters)
    assert {name: a.tolist() for name, a in again.to_arrays().items()} == {
        name: a.tolist() for name, a in wary.to_arrays().items()
    }


# --- what is told to those who ask ------------------------------------------------------------------------------------


def test_it_tells_what_waits_and_which_label_holds(join):
    assert (join.awaiting(1), join.label_of(1)) == (None, None)
    add_label(join, True, 0)
    assert (join.awaiting(1), join.label_of(1)) == (None, None), "there is no event yet"
    add_event(join)
    assert (join.awaiting(1), join.label_of(1)) == (None, True)
    add_event(join, key=2)
    assert (join.awaiting(2), join.label_of(2)) == (b"payload", None)
    add_label(join, False, 1, key=2)
    add_label(join, None, 2, key=2)
    assert (join.awaiting(2), join.label_of(2)) == (b"payload", None), "its label was taken back"


def test_it_tells_what_a_label_says_whose_event_is_gone_or_has_not_come(join):
    assert join.without_event(1) is None
    add_label(join, True, 0)
    late = join.without_event(1)
    assert (late.key, late.value, late.y, late.is_first) == (1, None, True, False)
    add_label(join, None, 1)
    assert join.without_event(1).y is None
    add_label(join, False, 0)
    assert join.without_event(1).y is None, "that label is stale"
    add_event(join)
    assert join.without_event(1) is None


def test_it_tells_which_events_it_forgets():
    forgotten = []
    join = Join(TTL, 3 * (OVERHEAD + len(b"payloadentity")), ROOMY)
    join.when_forgotten.append(forgotten.append)
    for key in range(4):
        add_event(join, key=key)
    assert forgotten == [0]
    add_label(join, True, 0, key=7)
    assert forgotten == [0], "the label has a place of its own"
    add_event(join, key=9, time=TTL + 1)
    assert forgotten == [0, 1, 2, 3], "the label that waited is no event"
