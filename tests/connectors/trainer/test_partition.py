"""A partition whose labels come on their own: whatever comes when, and wherever it is killed, it ends the same."""

import contextlib
import itertools
import json
import os
import random
import re
import shutil
import time
from collections import Counter
from dataclasses import asdict, replace
from operator import itemgetter

import numpy as np
import pytest
from fuse import Fuse, Killed, killed_anywhere, run_through, run_with
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from logged import append_at as append
from logged import change, predictions, read
from logged import configure as base
from states import state_of

from streamsvm import LASVM
from streamsvm.connectors.commands.doctor.state import check_state
from streamsvm.connectors.commands.replays.dlq import DeadLetter
from streamsvm.connectors.logs import embedded as local_log
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import OutputsLost, PositionRefused, Unavailable
from streamsvm.connectors.records import published as publish
from streamsvm.connectors.records.models import unpack_model
from streamsvm.connectors.records.published import read_newest
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.trainer import inputs, operate, trainer
from streamsvm.connectors.trainer.inputs import RecordsLost
from streamsvm.connectors.trainer.partition import Partition
from streamsvm.connectors.trainer.processing import Processor
from streamsvm.connectors.trainer.state import journal
from streamsvm.connectors.trainer.state.checkpoint import Checkpoint, CheckpointError, checkpoint_files
from streamsvm.connectors.trainer.state.model_files import files_set_aside, model_files
from streamsvm.connectors.trainer.state.models import KeyedModels
from streamsvm.connectors.trainer.state.state import TooManyBadRecords
from streamsvm.connectors.trainer.trainer import Trainer
from streamsvm.core.saving import snapshot
from streamsvm.export import to_json

START = 1_700_000_000_000  # milliseconds


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def configure(folder, **changes):
    settings = base(folder, log={"labels": "labels"}, join={"ttl_seconds": 60.0}, daemon={"checkpoint_records": 96})
    return change(settings, **changes)


def on_topic(settings):
    """The same with checkpoints and journal on a topic."""
    return change(settings, log={"state": "state"}, state={"store": "topic"})


def in_objects(settings):
    """The same with checkpoints and journal in an object store."""
    pytest.importorskip("obstore")
    return change(settings, state={"store": "objects", "url": f"file://{settings.daemon.state_dir.parent}/bucket"})


def lose_disk(settings):
    """Let the next trainer run on another machine, if its state is not on a shared disk."""
    if settings.state.store != "dir":
        shutil.rmtree(settings.daemon.state_dir, ignore_errors=True)


# --- what comes -------------------------------------------------------------------------------------------------------


def an_event(i, rng, key=None):
    a, b = rng.normal(size=2).round(6).tolist()
    return {"id": i, "x": {"a": 3 * a + 5, "b": 0.1 * b}}, bool(a * b + 0.3 * rng.normal() > 0)


def traffic(n, seed=0, n_keys=0):
    """Events, and labels as they come in life: as (time, key, value), each topic in the order of its log."""
    rng = np.random.default_rng(seed)
    events, labels = [], []
    for i in range(n):
        event, y = an_event(i, rng)
        time = START + 250 * i
        key = f"key-{rng.integers(n_keys)}".encode() if n_keys else None
        events.append((time, key, event))

        def label(seconds, *, time=time, key=key, i=i, **fields):
            labels.append((time + int(1000 * seconds), key, {"id": i, **fields}))

        fate = rng.random()
        delay = rng.exponential(5.0)
        if fate < 0.1:
            continue  # never labelled
        if fate < 0.2:
            delay = -rng.exponential(2.0)  # before the event
        elif fate < 0.25:
            delay = 80.0  # when nobody waits any more
        label(delay, y=y)
        if fate > 0.9:
            label(delay + rng.exponential(5.0), y=y)  # doubled
        elif fate > 0.8:
            label(delay + rng.exponential(10.0), y=not y, rev=1)  # corrected
            label(delay + rng.exponential(10.0), y=y, rev=2, weight=0.5)
        elif fate > 0.75:
            label(delay + rng.normal(), op="retract", rev=1)
        elif fate > 0.7:
            label(delay + 80.0, **({"op": "retract"} if i % 2 else {"y": not y}), rev=1)  # when the event is gone
    labels.sort(key=lambda row: row[0] + rng.normal(0, 500))  # by time, more or less
    for offset, value in ((7, b"{"), (n // 2, b'{"id": 1, "y": 7}')):
        labels[offset] = (*labels[offset][:2], value)
    events[n // 3] = (*events[n // 3][:2], b"bad")
    return {"events": events, "labels": labels}


def refused(settings):
    """By where it came from."""
    found = {}
    for record in read(settings, settings.log.dlq):
        headers = {name.removeprefix("sv-dlq-"): value.decode() for name, value in record.headers}
        found[headers["topic"], int(headers["offset"])] = (headers["reason"], record.value)
    return found


def everything(state):
    """All that must not depend on where the daemon was killed, to the bit."""
    counters = asdict(state.counters)
    del counters["seconds"]
    parts = {"join": state.join.to_arrays(), "metrics": state.metrics.to_arrays()}
    return {
        "digest": state.models.digest(),
        "counters": counters,
        "offsets": (state.offset, state.labels_offset),
        "join": asdict(state.join.counters),
        "arrays": {
            (part, name): (array.dtype, array.shape, array.tobytes())
            for part, arrays in parts.items()
            for name, array in arrays.items()
        },
        "recent": state.breaker.to_arrays()["recent"].tolist(),
        "history": [repr(row[:3]) for row in state.history.rows],
    }


def outcome(settings, states):
    whole = {number: everything(state) for number, state in states.items()}
    return whole, predictions(settings), refused(settings)


def wide_traffic(n, seed=0, n_keys=0):
    """Every third event brings names that no other has."""
    rows = traffic(n, seed, n_keys)
    for i, (when, key, event) in enumerate(rows["events"]):
        if i % 3 == 0 and isinstance(event, dict):
            rows["events"][i] = (when, key, {**event, "x": {**event["x"], f"new-{i}": 1.0, f"other-{i}": 0.5}})
    return rows


# --- the whole daemon on what there is --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    settings = configure(tmp_path_factory.mktemp("uninterrupted"))
    append(settings, traffic(600))
    return outcome(settings, trainer.run(settings))


def test_all_kinds_of_labels_find_their_events(uninterrupted):
    (state,), sent, put_aside = uninterrupted[0].values(), uninterrupted[1], uninterrupted[2]
    counts = state["join"]
    for name in ("matched", "expired", "corrected", "duplicate_labels", "retracted", "undone", "unmatched"):
        assert counts[name] > 0, name
    assert counts["dropped"] == counts["duplicate_events"] == counts["not_undone"] == 0
    assert 0 < state["counters"]["late"] < counts["unmatched"]
    assert len(sent) == state["counters"]["predicted"] == 599
    assert state["counters"]["learned"] == counts["matched"] + counts["corrected"] > 400
    assert {reason for reason, _ in put_aside.values()} == {"not-json", "bad-label"}
    assert put_aside.keys() == {("events", 200), ("labels", 7), ("labels", 300)}


@pytest.mark.parametrize("labels", ["labels", ""])
def test_a_window_of_the_events_own_time(tmp_path, labels):
    """Half a second passes from event to event, by their own time; their records say nothing."""
    settings = configure(tmp_path, log={"labels": labels}, model={"algorithm": "full", "window": "30s"})
    rng, rows = np.random.default_rng(3), {"events": [], "labels": []}
    for i in range(200):
        event, y = an_event(i, rng)
        event["ts"] = (START + 500 * i) / 1000
        rows["events"].append((START, None, event if labels else {**event, "y": y}))
        rows["labels"].append((START, None, {"id": i, "y": y}))
    append(settings, rows)
    model = trainer.run(settings)[0].model
    s = state_of(model).expansion
    latest = 1000 * (START + 500 * 199)
    assert 55 <= model.n_members <= 60
    assert (latest - s.born[: s.counts[0]][s.y[: s.counts[0]] != 0] < 30e6).all()


def in_a_window(folder, labels, stamp, **join):
    """The state after 100 events in 50 s of their own time and of a window of 30 s; `stamp` makes a timestamp of it."""
    settings = configure(folder, log={"labels": labels}, model={"algorithm": "full", "window": "30s"}, join=join)
    rng, rows = np.random.default_rng(3), {"events": [], "labels": []}
    for i in range(100):
        event, y = an_event(i, rng)
        when = START + 500 * i
        rows["events"].append((stamp(when), None, {**event, "ts": when} | ({} if labels else {"y": y})))
        rows["labels"].append((stamp(when), None, {"id": i, "y": y}))
    append(settings, rows)
    return trainer.run(settings)[0]


@pytest.mark.parametrize("labels", ["labels", ""])
@pytest.mark.parametrize("stamp", [lambda when: -1, lambda when: 1000 * when], ids=["none", "microseconds"])
def test_without_a_timestamp_an_event_s_own_time_counts(tmp_path, labels, stamp):
    """Kafka writes -1 for a missing timestamp; then it is not 1970, and labels are read beside their events.

    Events may be predicted earlier, before other labels: the probabilities, which follow predictions, are not compared.
    """
    stamped, bare = (in_a_window(tmp_path / name, labels, how) for name, how in (("stamped", int), ("bare", stamp)))
    assert bare.model.support_ids.tolist() == stamped.model.support_ids.tolist()
    assert bare.model.dual_coef.tolist() == stamped.model.dual_coef.tolist()
    assert bare.model.n_members < 65
    assert bare.join.counters == stamped.join.counters
    assert np.isnan(bare.history.latest.age)


def test_what_has_no_time_at_all_counts_as_of_the_newest_record_and_is_told(tmp_path, caplog):
    settings = configure(tmp_path, log={"labels": ""}, model={"algorithm": "full", "window": "30s"})
    events = [{"id": i, "x": {"a": i}, "y": i % 2} for i in range(40)]
    append(settings, {"events": [(START + 1000 * i if i < 20 else -1, None, event) for i, event in enumerate(events)]})
    assert trainer.run(settings)[0].model.n_members == 40
    assert "partition 0: 20 records have neither a ts nor a timestamp" in caplog.text


@pytest.mark.parametrize("labels", ["labels", ""])
def test_a_time_that_is_moved_to_the_record_s_is_told(tmp_path, caplog, labels):
    state = in_a_window(tmp_path, labels, lambda when: when + 86_400_000, max_skew_seconds=60)
    assert state.model.n_seen == 100
    told = [
        record for record in caplog.records if "a ts that is more than join.max_skew_seconds" in record.getMessage()
    ]
    assert sum(record.args[1] for record in told) == 100


def test_a_time_that_cannot_be_read_is_a_dead_letter(tmp_path):
    bad = ["9999-99-99", 1e300, "27/11/2026 12:00:00", "soon"]
    settings = configure(tmp_path, daemon={"max_bad": 1.0})
    event, label = {"x": {"a": 1.0}}, {"y": True}
    append(
        settings,
        {
            "events": [(START, None, {"id": i, "ts": ts, **event}) for i, ts in enumerate([START, *bad])],
            "labels": [(START, None, {"id": 0, "ts": ts, **label}) for ts in [*bad, START]],
        },
    )
    state = trainer.run(settings)[0]
    expected = {("events", i + 1): "bad-ts" for i in range(4)} | {("labels", i): "bad-ts" for i in range(4)}
    assert {place: reason for place, (reason, _) in refused(settings).items()} == expected
    assert (state.counters.predicted, state.counters.learned, state.counters.bad) == (1, 1, 8)


@pytest.mark.parametrize("topic", ["events", "labels"])
def test_a_record_from_the_future_makes_no_waiting_event_expire(tmp_path, caplog, topic):
    settings = configure(tmp_path, join={"ttl_seconds": 60.0})
    rng = np.random.default_rng(3)
    events, truth = zip(*(an_event(i, rng) for i in range(50)), strict=True)
    append(settings, {"events": [(START + i, None, event) for i, event in enumerate(events)], "labels": []})
    trainer.run(settings)
    future = {"events": an_event(50, rng)[0], "labels": {"id": 51, "y": True}}
    append(settings, {topic: [(START + 86_400_000, None, future[topic])]})
    trainer.run(settings)
    append(settings, {"labels": [says(1, i, y) for i, y in enumerate(truth)]})
    state = trainer.run(settings)[0]
    assert (state.join.counters.matched, state.join.counters.expired) == (50, 0)
    assert "partition 0: 1 records had a time far ahead of the records before and after them" in caplog.text


def test_an_event_from_the_future_makes_a_model_forget_nothing(tmp_path):
    settings = configure(tmp_path, log={"labels": ""}, model={"algorithm": "full", "window": "30s"})
    events = [{"id": i, "x": {"a": i}, "y": i % 2} for i in range(20)]
    when = [START + (86_400_000 if i == 10 else i) for i in range(20)]
    append(settings, {"events": list(zip(when, [None] * 20, events, strict=True))})
    assert trainer.run(settings)[0].model.n_members == 20


def test_tombstones_are_passed_over_and_counted(tmp_path):
    """A compacted topic has them; they are neither bad nor dead letters, however many they are."""
    settings = configure(tmp_path)
    rows = traffic(300)
    holes = {topic: [row for each in found for row in (each, (each[0], b"k", None))] for topic, found in rows.items()}
    append(change(settings, log={"dir": tmp_path / "log"}), holes)
    whole = configure(tmp_path / "whole")
    append(whole, rows)
    (state, *_), (expected, *_) = trainer.run(settings).values(), trainer.run(whole).values()
    assert state.counters.bad == expected.counters.bad == 3
    assert state.join.counters == expected.join.counters
    assert len(read(settings, settings.log.dlq)) == 3


def test_what_is_learned_is_what_the_labels_say(tmp_path):
    """The same events, each with its label, in the order in which they became known; all were predicted at first."""
    settings = configure(tmp_path, daemon={"batch": 1}, model={"scaling": "none"})
    rng = np.random.default_rng(3)
    expected = LASVM(**settings.model.parameters())
    events, labels = [], []
    for i in range(120):
        event, y = an_event(i, rng)
        events.append((START + i, None, event))
        labels.append((START + 1000 + i, None, {"id": i, "y": y}))
        expected.learn_one(event["x"], y, id=i, margin=0.0)
    append(settings, {"events": events, "labels": labels})
    state = trainer.run(settings)[0]
    assert state.model.digest() == expected.digest()
    margins = {json.loads(value)["margin"] for value in predictions(settings).values()}
    assert margins == {0.0}  # all came before the first label
    assert state.metrics.rolling().auc == 0.5


def says(seconds, id_, y, **fields):
    """A row of the topic of labels."""
    return START + int(1000 * seconds), None, {"id": id_, **({"op": "retract"} if y is None else {"y": y}), **fields}


def retrained(settings, lessons):
    """A model that was taught (id, y) one after the other; None for y is a retraction.

    All events were predicted before the first label.
    """
    events = {event["id"]: event["x"] for event in (json.loads(record.value) for record in read(settings, "events"))}
    model = LASVM(**settings.model.parameters())
    taught = set()
    for i, y in lessons:
        if i in taught:
            model.forget(i)
        if y is not None:
            model.learn_one(events[i], y, id=i, margin=0.0)
        taught.add(i)
    return model


def test_corrected_or_taken_back_the_model_forgets_what_it_learned(tmp_path):
    settings = configure(tmp_path)
    rng = np.random.default_rng(4)
    events, truth = zip(*(an_event(i, rng) for i in range(60)), strict=True)
    lessons = [(i, bool(y)) for i, y in enumerate(truth)]
    lessons += [(5, not truth[5]), (6, None), (7, not truth[7]), (7, truth[7]), (8, None), (8, True), (6, False)]
    rows = [says(20 + n / 100, i, y) for n, (i, y) in enumerate(lessons)]
    append(settings, {"events": [(START + i, None, event) for i, event in enumerate(events)], "labels": rows})
    state = trainer.run(settings)[0]
    assert state.model.digest() == retrained(settings, lessons).digest()
    counters = state.join.counters
    assert (counters.matched, counters.corrected, counters.undone, counters.unmatched) == (60, 5, 2, 0)
    assert (state.counters.learned, state.version) == (65, 67)
    assert state.metrics.n == 60, "only first labels judge what was predicted"


def test_a_weight_that_is_corrected_is_the_member_s(tmp_path):
    settings = configure(tmp_path, daemon={"batch": 1}, model={"scaling": "none"})
    rows = [says(1, 0, True, weight=2.0), says(2, 1, False), says(3, 0, True, weight=0.5, rev=1)]
    append(settings, {"events": [(START, None, {"id": i, "x": {"a": float(i)}}) for i in range(2)], "labels": rows})
    state = trainer.run(settings)[0]
    expected = LASVM(**settings.model.parameters())
    expected.learn_one({"a": 0.0}, True, w=2.0, id=0)
    expected.learn_one({"a": 1.0}, False, id=1)
    expected.forget(0)
    expected.learn_one({"a": 0.0}, True, w=0.5, id=0)
    assert state.model.digest() == expected.digest()


def test_a_flood_of_labels_with_made_up_ids_costs_no_event_its_place(tmp_path):
    settings = configure(tmp_path, daemon={"batch": 8}, model={"scaling": "none"}, join={"pending_mb": 0.02})
    rng = np.random.default_rng(4)
    events, truth = zip(*(an_event(i, rng) for i in range(20)), strict=True)
    flood = [says(1, f"made-up-{i}", True) for i in range(1000)]
    rows = {"events": [(START + i, None, event) for i, event in enumerate(events)]}
    append(settings, {**rows, "labels": [*flood, *(says(2, i, y) for i, y in enumerate(truth))]})
    counters = trainer.run(settings)[0].join.counters
    assert (counters.matched, counters.dropped) == (20, 0)


@pytest.mark.parametrize("per", ["partition", "key"])
@pytest.mark.parametrize("why", ["time", "memory"])
def test_an_example_whose_event_is_gone_is_corrected_or_taken_back(tmp_path, caplog, per, why):
    """Its time is over, or there was no room for it; the model, of the key, has its features."""
    caplog.set_level("INFO")
    short, scarce = {"ttl_seconds": 60.0}, {"ttl_seconds": 600.0, "pending_mb": 0.0005, "labels_mb": 0.001}
    join = short if why == "time" else scarce
    settings = configure(tmp_path, daemon={"batch": 1, "per": per}, model={"scaling": "none"}, join=join)
    key = b"k" if per == "key" else None
    xs = [{"a": 0.0}, {"a": 1.0}, {"a": 2.0}, {"a": 3.0}]
    events = [(START + i, key, {"id": i, "x": x, "y": i > 1}) for i, x in enumerate(xs)]
    late = [says(200, 0, None), says(201, 3, False), says(202, 17, True), says(203, 18, None), says(204, 3, False)]
    if why == "time":  # it passes by other labels: the clock does not leap to one record
        late = [*(says(seconds, f"other-{seconds}", True) for seconds in range(25, 200, 25)), *late]
    append(settings, {"events": events, "labels": [(time, key, value) for time, _, value in late]})
    state = trainer.run(settings)[0]
    expected = LASVM(**settings.model.parameters())
    expected.learn_many(xs, [False, False, True, True], ids=range(4))
    assert (expected.forget(0), expected.relabel(3, False)) == (1, 1)
    assert state.models.trained(key).model.digest() == expected.digest()
    assert (state.counters.learned, state.counters.late, state.version) == (4, 3, 7)
    assert "1 labels came after their events were forgotten; the model still held the examples" in caplog.text
    if why == "memory":
        assert state.join.counters.dropped_labels == 3, "the others wait still"
        assert "3 labels found no event" in caplog.text
    assert everything(trainer.run(settings)[0]) == everything(state)


def test_a_model_that_has_only_forgotten_is_published_as_a_newer_one(tmp_path):
    settings = configure(tmp_path, log={"model": "model"}, model={"scaling": "none"})
    events = [(START + i, None, {"id": i, "x": {"a": float(i)}, "y": i > 1}) for i in range(4)]
    append(settings, {"events": events})
    published = []
    for labels in ([], [says(1, 3, None)], [says(200, 2, None)]):  # the last when the event is gone
        append(settings, {"labels": labels})
        state = trainer.run(settings)[0]
        with LocalLog(settings.log.dir) as log:
            published.append(read_newest(log, "model", time.monotonic() + 60)["p0"])
        model, *_ = unpack_model(published[-1].blob)
        assert model.digest() == state.model.digest()
    assert [found.manifest["ver"] for found in published] == [4, 5, 6]
    assert model.n_members == 2


@pytest.mark.parametrize("per", ["partition", "key"])
def test_models_are_published_as_json_for_other_programs(tmp_path, per):
    daemon = {"publish_json": True, "per": per, "max_keys": 1}
    settings = configure(tmp_path, log={"model": "model"}, daemon=daemon, decide={"error": 0.2})
    for first in (0, 8):  # the model of the second key drops that of the first
        rows = [
            (START + i, b"%d" % first, {"id": i, "x": {"a": float(i)}, "y": i > first + 3})
            for i in range(first, first + 8)
        ]
        append(settings, {"events": rows})
        state = trainer.run(settings)[0]
    with LocalLog(settings.log.dir) as log:
        newest = read_newest(log, "model", time.monotonic() + 60)
    (name,) = [name for name in newest if not name.startswith("json-")]
    assert set(newest) == {name, f"json-{name}"}
    assert newest[name].manifest["ver"] == newest[f"json-{name}"].manifest["ver"] == state.version
    assert newest[f"json-{name}"].blob.decode() == to_json(state.models.trained(b"8").decider)


def test_a_model_that_is_too_large_to_publish_is_told_and_counted(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(publish, "MAX_CHUNKS", 0)
    settings = configure(tmp_path, log={"model": "model"}, model={"scaling": "none"})
    append(settings, {"events": [(START + i, None, {"id": i, "x": {"a": float(i)}, "y": i > 1}) for i in range(4)]})
    metrics = Metrics()
    with LocalLog(settings.log.dir) as log:
        state = Trainer(settings, log, lambda: False, Health(), metrics).run()[0]
    assert state.counters.learned == 4
    assert read(settings, "model") == []
    assert "scorers keep the model that they have: blob has" in caplog.text
    assert "streamsvm_unpublished_total 1" in metrics.render()


def test_labels_that_are_early_make_no_models(tmp_path):
    settings = configure(tmp_path, daemon={"per": "key"}, model={"scaling": "none"})
    labels = [(START + i, b"key-%d" % i, {"id": i, "y": True}) for i in range(9)]
    append(settings, {"events": [(START + 9, b"key-3", {"id": 3, "x": {"a": 1.0}})], "labels": labels})
    state = trainer.run(settings)[0]
    assert (state.counters.learned, state.counters.late, len(state.models)) == (1, 0, 1)
    assert [key for key, _ in state.models.changed()] == [b"key-3"]


def test_a_checkpoint_from_before_anything_was_forgotten_goes_on(tmp_path):
    settings = configure(tmp_path)
    rows = traffic(200)
    append(settings, {"events": rows["events"][:100], "labels": rows["labels"][:100]})
    trainer.run(settings)
    (path,) = checkpoint_files(settings.daemon.state_dir / "p0")[:1]
    new = Checkpoint.from_bytes(snapshot.read(path))
    counters = {name: n for name, n in new.counters.items() if name != "late"}
    arrays = {**new.arrays, "join.counters": new.arrays["join.counters"][:-1]}
    snapshot.write_atomic(path, replace(new, counters=counters, arrays=arrays).to_bytes())
    append(settings, {topic: values[100:] for topic, values in rows.items()})
    state = trainer.run(settings)[0]
    assert state.offset == 200
    assert state.join.counters.undone > 0


def test_twice_is_the_same(tmp_path, uninterrupted):
    settings = configure(tmp_path)
    append(settings, traffic(600))
    states = trainer.run(settings)
    assert outcome(settings, states) == uninterrupted
    assert everything(trainer.run(settings)[0]) == uninterrupted[0][0]  # read from its checkpoint


@pytest.mark.parametrize("n_polled", [3, 17, 10_000])
@pytest.mark.parametrize("labels", ["labels", ""])
def test_cuts_do_not_depend_on_how_records_are_polled(tmp_path, monkeypatch, labels, n_polled):
    found = []
    for name, n in (("some", n_polled), ("usual", 500)):
        monkeypatch.setattr(trainer, "POLL_RECORDS", n)
        settings = configure(tmp_path / name, log={"labels": labels}, daemon={"batch": 64})
        append(settings, traffic(200))
        found.append(outcome(settings, trainer.run(settings)))
    assert found[0] == found[1]


def small(folder, **changes):
    settings = configure(folder, daemon={"batch": 8, "checkpoint_records": 40, **changes}, join={})
    rows = traffic(48, seed=2, n_keys=6 if changes.get("per") == "key" else 0)  # which has labels of all kinds
    # Time passes by other labels, too: it does not leap to one of those that are late.
    rows["labels"] += [says(seconds, "nobody", None) for seconds in range(25, 80, 25)]
    rows["labels"].sort(key=itemgetter(0))
    append(settings, rows)
    return settings


@pytest.mark.long
@pytest.mark.parametrize(
    ("changes", "place_of", "apart"),
    [
        ({}, lambda settings: settings, 23),
        ({"per": "key", "max_models": 2}, lambda settings: settings, 43),
        ({}, on_topic, 31),
        ({}, in_objects, 31),
        ({"per": "key", "max_models": 2}, on_topic, 79),
    ],
    ids=["partition", "key", "topic", "objects", "key on a topic"],
)
def test_killed_at_every_few_steps_it_ends_the_same(tmp_path, monkeypatch, changes, place_of, apart):
    def make(name):
        return place_of(small(tmp_path / name, **changes))

    (whole,) = killed_anywhere(make, outcome, apart, monkeypatch, lose_disk)[0].values()
    n_revisions = whole["join"]["corrected"], whole["join"]["undone"], whole["counters"]["late"]
    assert min(n_revisions) > 0, n_revisions


def spoil_newest(settings, change=lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:]):
    """Flip a bit in the newest file of models, or do something else to it."""
    path = max(model_files(settings.daemon.state_dir / "p0"), key=lambda path: path.name)
    content = change(path.read_bytes())
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    return path


def by_key(folder, place_of=lambda settings: settings):
    """A trainer with a model for each key that has consumed the first half; and the second half."""
    settings = place_of(configure(folder, daemon={"per": "key", "max_models": 2, "checkpoint_records": 10}))
    rows = traffic(120, seed=2, n_keys=3)
    append(settings, {topic: values[:80] for topic, values in rows.items()})
    trainer.run(settings)
    return settings, {topic: values[80:] for topic, values in rows.items()}


@pytest.mark.parametrize("change", [None, lambda data: None, lambda data: data[:90]], ids=["bit", "file", "end"])
def test_a_damaged_model_of_a_key_costs_a_look_at_an_older_checkpoint(tmp_path, caplog, change):
    settings, rest = by_key(tmp_path / "whole")
    append(settings, rest)
    expected = outcome(settings, trainer.run(settings))
    settings, rest = by_key(tmp_path / "spoilt")
    path = spoil_newest(settings, *filter(None, [change]))
    append(settings, rest)
    assert outcome(settings, trainer.run(settings)) == expected
    assert re.search(rf"needs a damaged model: {path}, .*: the model of key b'key-\d' cannot be read", caplog.text)
    assert not files_set_aside(path.parent)


@pytest.mark.parametrize("place_of", [lambda settings: settings, on_topic], ids=["folder", "topic"])
def test_without_an_older_checkpoint_the_key_begins_anew(tmp_path, caplog, place_of):
    """And every event is predicted, and every label learned, once; the new model cannot take back what the old knew."""
    settings, rest = by_key(tmp_path / "whole", place_of)
    append(settings, rest)
    whole = trainer.run(settings)[0]
    settings, rest = by_key(tmp_path / "spoilt")
    folder = settings.daemon.state_dir / "p0"
    for path in checkpoint_files(folder)[1:]:
        path.unlink()
    path = spoil_newest(settings)
    append(settings, rest)
    settings = place_of(settings)
    state = trainer.run(settings)[0]
    counters = [replace(each.counters, seconds=0, late=0) for each in (whole, state)]
    assert counters[0] == counters[1]
    assert (len(state.models), state.models.n_damaged) == (3, 1)
    assert re.search(rf"{path}, .*: the model of key b'key-\d' cannot be read: .*sha256", caplog.text)
    assert len(files_set_aside(folder)) == 1
    levels = [(finding.level, finding.text.split(":")[0]) for finding in check_state(settings)]
    assert ("warning", "1 damaged model of keys in p0 set aside; their keys began anew") in levels


def test_the_doctor_names_a_damaged_model(tmp_path):
    settings, _ = by_key(tmp_path)
    path = spoil_newest(settings)
    (found,) = [finding for finding in check_state(settings) if finding.level == "warning"]
    assert found.text.startswith(f"1 model of keys in p0 cannot be read. The first: {path}, ")
    assert not files_set_aside(path.parent)


def corrected_by_a_file(folder):
    """Answers of annotators, whose revisions are times, and corrections without revisions; a second round of both."""
    settings = configure(folder, daemon={"batch": 8, "checkpoint_records": 20})
    rng = np.random.default_rng(5)
    events, truth = zip(*(an_event(i, rng) for i in range(24)), strict=True)
    rows = [says(20 + i / 100, i, bool(y), rev=START + i) for i, y in enumerate(truth)]
    rows += [says(21, 3, not truth[3]), says(22, 4, None), says(23, 5, not truth[5])]
    rows += [says(24, 5, bool(truth[5]), rev=START + 24_000), says(25, 6, not truth[6], rev=1)]  # the last one is stale
    append(settings, {"events": [(START + i, None, event) for i, event in enumerate(events)], "labels": rows})
    return settings, truth


def test_a_correction_without_a_revision_is_learned(tmp_path):
    settings, truth = corrected_by_a_file(tmp_path)
    state = trainer.run(settings)[0]
    held = {i: state.join.label_of(i) for i in range(24)}
    assert held == {i: bool(y) for i, y in enumerate(truth)} | {3: not truth[3], 4: None}
    counters = state.join.counters
    assert (counters.matched, counters.corrected, counters.undone, counters.stale) == (24, 3, 1, 1)


@pytest.mark.long
def test_killed_among_corrections_without_revisions_it_ends_the_same(tmp_path, monkeypatch):
    killed_anywhere(lambda name: corrected_by_a_file(tmp_path / name)[0], outcome, 11, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize(
    "place_of", [lambda settings: settings, on_topic, in_objects], ids=["folder", "topic", "objects"]
)
def test_killed_twenty_times_it_ends_the_same(tmp_path, monkeypatch, uninterrupted, place_of):
    monkeypatch.setattr(journal, "TRIES", 10**9)  # no record is to be suspected
    rng = random.Random(1)
    settings = place_of(configure(tmp_path))
    append(settings, traffic(600))
    states, n_kills, steps = {}, 0, 0
    while not states:
        steps += rng.randint(1, 25)
        with contextlib.suppress(Killed):
            states = run_with(settings, Fuse(steps), monkeypatch)
            break
        n_kills += 1
        lose_disk(settings)
    assert n_kills >= 20
    assert outcome(settings, states) == uninterrupted


# --- live: what is there when, is part of the outcome, and is remembered ----------------------------------------------


class Script:
    """A `stop` that appends a chunk of records now and then, gives the daemon time to consume it, and ends it."""

    def __init__(self, settings, chunks):
        self.fuse = Fuse()
        self._settings = settings
        self._chunks = list(chunks)
        self._idle = 0

    def begin(self, fuse):
        """Let a daemon that is started again come to where the last one was."""
        self.fuse = fuse
        self._idle = 60

    def __call__(self):
        if self._idle:
            self._idle -= 1
        elif self._chunks:
            self._idle = 12
            self.fuse.is_safe = True
            append(self._settings, self._chunks.pop(0))
            self.fuse.is_safe = False
        else:
            return True
        return False


def live(folder, monkeypatch, chunks, kills=(), place_of=lambda settings: settings, **changes):
    """The outcome of a daemon that follows its topics, killed after so many steps, and so many more, ..."""
    settings = configure(
        folder, daemon={"batch": 3, "checkpoint_records": 10, "follow": True, **changes}, join={"ttl_seconds": 20.0}
    )
    settings = place_of(settings)
    settings.log.dir.mkdir(parents=True)
    script = Script(settings, chunks)
    for steps in (*kills, None):
        lose_disk(settings)
        script.begin(Fuse(steps))
        with contextlib.suppress(Killed):
            states = run_with(settings, script.fuse, monkeypatch, script)
    return settings, outcome(settings, states)


def record(i, seconds, kind, rng):
    """An event, with or without a label of its own, or a label of any kind; some are no records at all."""
    time = START + 1000 * seconds
    if kind == "bad":
        return "events" if i % 2 else "labels", (time, None, b"bad")
    if kind in ("event", "labelled"):
        event, y = an_event(i, rng)
        return "events", (time, b"%d" % (i % 3), event | ({"y": y} if kind == "labelled" else {}))
    fields = {"op": "retract", "rev": 3} if kind == "retract" else {"y": bool(rng.integers(2)), "rev": kind}
    return "labels", (time, b"%d" % (i % 3), {"id": i, **fields})


kinds = st.sampled_from(["event", "event", "event", "labelled", 0, 0, 1, 4, "retract", "bad"])
chunks_of_records = st.lists(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 50), kinds), max_size=10), max_size=6
)


def chunk_by_topic(chunk, rng):
    rows = {"events": [], "labels": []}
    for item in chunk:
        topic, row = record(*item, rng)
        rows[topic].append(row)
    return rows


@pytest.mark.long
@pytest.mark.parametrize(
    "changes",
    [{}, {"per": "key", "max_models": 1}, {"per": "key", "max_models": 1, "place_of": on_topic}],
    ids=["partition", "key", "key on a topic"],
)
@hypothesis_settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=chunks_of_records, kills=st.lists(st.integers(1, 150), min_size=1, max_size=4))
def test_killed_anywhere_a_follower_ends_the_same(tmp_path_factory, monkeypatch, changes, chunks, kills):
    """Early labels, late ones, duplicates, corrections: in the order in which they were seen, with or without kills."""
    rng = np.random.default_rng(0)
    warm_up = {"events": [(START, None, an_event(100 + i, rng)[0]) for i in range(3)]}
    chunks = [warm_up, *(chunk_by_topic(chunk, rng) for chunk in chunks)]
    monkeypatch.setattr(trainer, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(journal, "TRIES", 10**9)
    folder = tmp_path_factory.mktemp("live")
    changes = {**changes, "max_bad": 1.0}
    whole = {name: value for name, value in changes.items() if name != "place_of"}
    _, expected = live(folder / "whole", monkeypatch, chunks, **whole)
    _, found = live(folder / "killed", monkeypatch, chunks, kills, **changes)
    assert found == expected


def failing(verb, error, every):
    """A verb of the log that fails each so many times, twice in all, once after its work is done."""
    whole, n_calls = getattr(LocalLog, verb), itertools.count(1)

    def fails(log, *arguments, **options):
        n_failures, rest = divmod(next(n_calls), every)
        if rest or n_failures > 2:
            return whole(log, *arguments, **options)
        if n_failures % 2:
            whole(log, *arguments, **options)
        raise error("the broker has gone")

    return fails


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        *((verb, Unavailable) for verb in ("topic_id", "start_offsets", "end_offsets", "seek", "subscribe", "produce")),
        *((verb, OutputsLost) for verb in ("flush", "commit")),
    ],
)
def test_a_broker_that_goes_away_at_any_question_costs_nothing(tmp_path, monkeypatch, caplog, verb, error):
    """The trainer begins again from its checkpoint, as after a kill; unless it was to end at the end of its topics."""
    monkeypatch.setattr(operate, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(trainer, "POLL_SECONDS", 0.0)
    settings = small(tmp_path / "whole")
    expected = outcome(settings, trainer.run(settings))
    settings = small(tmp_path / "away")
    follower = change(settings, daemon={"follow": True})
    n_asked = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(LocalLog, verb, failing(verb, error, 7 if verb == "produce" else 1))
        trainer.run(follower, lambda: next(n_asked) > 300 and len(predictions(settings)) == len(expected[1]))
    assert "the broker has gone" in caplog.text
    assert outcome(settings, trainer.run(settings)) == expected


def test_a_run_to_the_end_does_not_begin_again(tmp_path, monkeypatch):
    settings = small(tmp_path)
    monkeypatch.setattr(LocalLog, "seek", failing("seek", Unavailable, 1))
    with pytest.raises(Unavailable, match="the broker has gone"):
        trainer.run(settings)


def test_a_label_before_its_event_is_learned_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "POLL_SECONDS", 0.0)
    rng = np.random.default_rng(0)
    events = [(START + i, None, an_event(i, rng)[0]) for i in range(6)]
    early = {"labels": [(START, None, {"id": 5, "y": True})]}
    chunks = [{"events": events[:3]}, early, {"events": events[3:]}]
    _, (states, *_) = live(tmp_path / "whole", monkeypatch, chunks)
    assert states[0]["counters"]["learned"] == 1
    for steps in range(1, 120, 9):
        _, (found, *_) = live(tmp_path / str(steps), monkeypatch, chunks, [steps])
        assert found == states, steps


def test_the_order_of_arrival_counts_even_where_timestamps_say_otherwise(tmp_path, monkeypatch):
    """What was learned live is not what the whole log would give, and a kill must not tell them apart."""
    monkeypatch.setattr(trainer, "POLL_SECONDS", 0.0)
    rows = traffic(48)
    seen = {"events": rows["events"][:20]}, {"labels": rows["labels"]}, {"events": rows["events"][20:]}
    settings, (live_states, *_) = live(tmp_path / "live", monkeypatch, seen, checkpoint_records=10**6, batch=16)
    _, (killed, *_) = live(tmp_path / "killed", monkeypatch, seen, [250], checkpoint_records=10**6, batch=16)
    again = replace(settings, daemon=replace(settings.daemon, state_dir=tmp_path / "again", follow=False))
    assert killed == live_states
    assert everything(trainer.run(again)[0])["digest"] != live_states[0]["digest"]


def test_a_smaller_batch_takes_the_cuts_of_a_larger_one_again(tmp_path, monkeypatch):
    """What waits in memory is measured by the batch, and a cut of before may be larger than that."""
    settings = configure(tmp_path, daemon={"batch": 1500, "checkpoint_records": 10**6})
    append(settings, traffic(1500))
    with monkeypatch.context() as patch:
        patch.setattr(Processor, "_learn", Fuse(1).around(Processor._learn))
        with pytest.raises(Killed):
            trainer.run(settings)
    smaller = replace(settings, daemon=replace(settings.daemon, batch=16))
    calls = []
    states = trainer.run(smaller, lambda: calls.append(1) or len(calls) > 1000)
    assert states[0].offset == 1500
    assert states[0].counters.predicted == len(predictions(settings)) == 1499


def test_a_large_cut_after_a_small_one_is_taken_again(tmp_path, monkeypatch):
    """Reading goes on although more is in memory than would do for the small one."""
    monkeypatch.setattr(trainer, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(trainer, "POLL_RECORDS", 50)
    rng = np.random.default_rng(0)
    rows = [(START + i, None, an_event(i, rng)[0]) for i in range(640)]
    chunks = [{"events": rows[:40]}, {"events": rows[40:]}]
    _, expected = live(tmp_path / "whole", monkeypatch, chunks, batch=1000, checkpoint_records=10**6)
    monkeypatch.setattr(inputs, "_BUFFERED", 64)
    settings = configure(
        tmp_path / "killed",
        daemon={"batch": 1000, "checkpoint_records": 10**6, "follow": True},
        join={"ttl_seconds": 20.0},
    )
    settings.log.dir.mkdir(parents=True)
    consume = Processor.process

    def die(self, events, labels, state):
        is_first = state.offset == 0
        consume(self, events, labels, state)
        if not is_first:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Processor, "process", die)
        with pytest.raises(Killed):
            trainer.run(settings, Script(settings, chunks))
    smaller = replace(settings, daemon=replace(settings.daemon, batch=8, follow=False))
    calls = []
    assert outcome(settings, trainer.run(smaller, lambda: calls.append(1) or len(calls) > 1000)) == expected


def test_without_its_checkpoints_it_begins_again(tmp_path, uninterrupted):
    """As the message about damaged ones says; journals that are left mean nothing."""
    settings = configure(tmp_path)
    append(settings, traffic(600))
    trainer.run(settings)
    for path in checkpoint_files(settings.daemon.state_dir / "p0"):
        path.unlink()
    for path in list(settings.daemon.state_dir.glob("p0/journal-*")):
        path.write_text("cut 300 350\ncut 600 740\n")
    assert outcome(settings, trainer.run(settings)) == uninterrupted


# --- records that kill ------------------------------------------------------------------------------------------------


def run_until_done(settings, error=Killed):
    """As a supervisor does; the states at last, and how many times it was necessary to start again."""
    for n_crashes in range(60):
        with contextlib.suppress(error):
            return trainer.run(settings), n_crashes
    raise AssertionError("it never ends")


@pytest.fixture
def deadly(monkeypatch):
    """Records whose value contains a marker kill the process when they are consumed."""
    consume = Processor.process

    def consume_or_die(self, events, labels, state):
        if any(b"deadly" in (record.value or b"") for record in (*events, *labels)):
            raise Killed
        consume(self, events, labels, state)

    monkeypatch.setattr(Processor, "process", consume_or_die)


@pytest.mark.long
@pytest.mark.parametrize("topic", ["events", "labels"])
@pytest.mark.parametrize("follow_up", [False, True], ids=["once", "twice"])
def test_a_record_that_kills_the_process_is_put_aside(tmp_path, deadly, topic, follow_up):
    settings = configure(tmp_path)
    rows = traffic(200)
    places = [61, 63] if follow_up else [61]
    for place in places:
        time, key, value = rows[topic][place]
        rows[topic][place] = (time, key, {**value, "note": "deadly"})
    append(settings, rows)
    states, n_crashes = run_until_done(settings)
    assert n_crashes == 2 * journal.TRIES * len(places)
    reasons = {where: reason for where, (reason, _) in refused(settings).items()}
    assert {where for where, reason in reasons.items() if reason == "killed-the-process"} == {
        (topic, place) for place in places
    }
    assert len(reasons) == 3 + len(places)
    assert states[0].counters.bad == len(reasons)
    assert (states[0].offset, states[0].labels_offset) == (200, len(rows["labels"]))
    assert len({json.loads(r.value)["src"] for r in read(settings, "predictions")}) == 199 - (
        len(places) if topic == "events" else 0
    )
    assert states[0].counters.predicted == 199 - (len(places) if topic == "events" else 0)


def test_what_is_left_of_a_deadly_cut_is_learned(tmp_path, deadly):
    """As if the record had not been there, apart from the cuts: with batch 1 there is no difference."""
    rows = traffic(100)
    rows["labels"] = [row for row in rows["labels"] if isinstance(row[2], dict)]
    without = configure(tmp_path / "without", daemon={"batch": 1})
    append(without, {**rows, "events": [row for i, row in enumerate(rows["events"]) if i != 61]})
    expected = trainer.run(without)[0]
    settings = configure(tmp_path / "with", daemon={"batch": 1})
    time = rows["events"][61][0]
    append(settings, {**rows, "events": [*rows["events"][:61], (time, None, b"deadly"), *rows["events"][62:]]})
    states, n_crashes = run_until_done(settings)
    assert n_crashes == 2 * journal.TRIES
    assert states[0].model.digest() == expected.model.digest()
    assert states[0].counters.learned == expected.counters.learned


def test_a_suspected_cut_is_cleared_when_its_records_do_no_harm(tmp_path, monkeypatch):
    """A process that was killed from outside: nothing is put aside, and the cuts are large again."""
    settings = configure(tmp_path)
    append(settings, traffic(200))
    consume = Processor.process
    kills, sizes = [], []

    def dying(self, events, labels, state):
        if len(kills) < journal.TRIES and state.offset > 60:
            kills.append(1)
            raise Killed
        sizes.append(len(events) + len(labels))
        consume(self, events, labels, state)

    monkeypatch.setattr(Processor, "process", dying)
    states, n_crashes = run_until_done(settings)
    assert n_crashes == journal.TRIES
    assert states[0].offset == 200
    assert states[0].counters.lost == 0
    assert {reason for reason, _ in refused(settings).values()} == {"not-json", "bad-label"}
    ones = [i for i, size in enumerate(sizes) if size == 1]
    assert len(ones) == 16  # one cut
    assert max(sizes[ones[-1] + 1 :]) == 16


def test_a_suspect_stays_one_until_all_its_records_were_taken(tmp_path, deadly):
    """Events that came in the meantime, and belong before its labels, do not clear it."""
    settings = configure(tmp_path, model={"scaling": "none"})
    rng = np.random.default_rng(0)
    events = [(START + i, None, an_event(i, rng)[0]) for i in range(40)]
    labels = [(START + 1000, None, {"id": i, "y": True, "note": "deadly" if i == 9 else ""}) for i in range(10)]
    append(settings, {"events": events[:3], "labels": labels})
    for _ in range(journal.TRIES):
        with pytest.raises(Killed):
            trainer.run(settings)
    append(settings, {"events": events[3:]})
    states, n_crashes = run_until_done(settings)
    assert n_crashes == journal.TRIES
    assert refused(settings).keys() == {("labels", 9)}
    assert states[0].counters.predicted == 40
    assert states[0].counters.learned == 9


def test_orderly_failures_are_no_crashes(tmp_path):
    settings = configure(tmp_path, daemon={"max_bad": 0.001})
    append(settings, traffic(200))
    for _ in range(3 * journal.TRIES):
        with pytest.raises(TooManyBadRecords):
            trainer.run(settings)
    states = trainer.run(replace(settings, daemon=replace(settings.daemon, max_bad=0.1)))
    assert states[0].offset == 200
    assert {reason for reason, _ in refused(settings).values()} == {"not-json", "bad-label"}


# --- several partitions -----------------------------------------------------------------------------------------------


def test_each_partition_has_a_model_and_outputs_of_its_own(tmp_path):
    """As four daemons with a partition each would have them."""
    settings = configure(tmp_path)
    for number in range(4):
        append(settings, traffic(60 + 20 * number, seed=number), number)
    states = trainer.run(settings)
    assert states.keys() == {0, 1, 2, 3}
    assert len({state.models.digest() for state in states.values()}) == 4
    for number, state in states.items():
        alone = configure(tmp_path / str(number))
        append(alone, traffic(60 + 20 * number, seed=number))
        assert everything(trainer.run(alone)[0]) == everything(state)
    for record in read(settings, "predictions"):
        assert json.loads(record.value)["src"].startswith(f"events-{record.partition}-")
    assert Counter(record.partition for record in read(settings, "predictions")) == {0: 59, 1: 79, 2: 99, 3: 119}
    with LocalLog(settings.log.dir) as log:
        committed = log.committed("events")
    assert {number: item.offset for number, item in committed.items()} == {0: 60, 1: 80, 2: 100, 3: 120}


def four_partitions(folder, **daemon_changes):
    changes = {"batch": 8, "checkpoint_records": 30, **daemon_changes}
    settings = configure(folder, daemon=changes)
    with LocalLog(settings.log.dir) as log:
        log.create("predictions", 4)
    for number in range(3):  # the fourth is empty
        append(settings, traffic(24 + 6 * number, seed=number), number)
        append(settings, {"events": []}, 3)
    return settings


@pytest.mark.long
def test_killed_with_several_partitions_it_ends_the_same(tmp_path, monkeypatch):
    expected = killed_anywhere(lambda name: four_partitions(tmp_path / name), outcome, 97, monkeypatch)
    assert expected[0].keys() == {0, 1, 2}


class TransactionalLog(LocalLog):
    """Outputs and offsets count together, from the commit on, as with Kafka's transactions."""

    fuse = Fuse()

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.unfinished = []

    def produce(self, *arguments, **options):
        self.unfinished.append((arguments, options))

    def commit(self, offsets):
        self.fuse()
        self.fuse.is_safe = True  # within the commit, nothing can go wrong
        for arguments, options in self.unfinished:
            super().produce(*arguments, **options)
        self.unfinished.clear()
        is_done = super().commit(offsets)
        self.fuse.is_safe = False
        self.fuse()
        return is_done


@pytest.mark.long
def test_killed_in_transactions_each_event_is_predicted_once(tmp_path, monkeypatch):
    """Also when it is killed again while it takes the cuts of its journals again."""
    monkeypatch.setattr(local_log, "LocalLog", TransactionalLog)

    def run(settings, fuse):
        monkeypatch.setattr(TransactionalLog, "fuse", fuse)
        return run_with(settings, fuse, monkeypatch)

    fuse = Fuse()
    settings = four_partitions(tmp_path / "whole", exactly_once=True)
    expected = outcome(settings, run(settings, fuse))
    assert expected[0].keys() == {0, 1, 2}
    rng = random.Random(4)
    for place in range(40, fuse.steps, 53):
        settings = four_partitions(tmp_path / str(place), exactly_once=True)
        with pytest.raises(Killed):
            run(settings, Fuse(place))
        often = replace(settings, daemon=replace(settings.daemon, checkpoint_records=1))
        for _ in range(3):
            with contextlib.suppress(Killed):
                run(often, Fuse(rng.randrange(20, 200)))
        assert outcome(settings, run(settings, Fuse())) == expected, f"killed at step {place}"
        sources = [json.loads(record.value)["src"] for record in read(settings, "predictions")]
        assert len(sources) == len(set(sources)), f"killed at step {place}"


def test_no_partition_leaves_a_transaction_that_cannot_end_yet(tmp_path, monkeypatch):
    settings = four_partitions(tmp_path, exactly_once=True)
    health = Health()
    with TransactionalLog(settings.log.dir) as log:
        running = trainer.Trainer(settings, log, lambda: False, health, Metrics())
        running.assigned([0, 1])
        with monkeypatch.context() as patch:
            patch.setattr(log, "flush", lambda: (_ for _ in ()).throw(Unavailable("no acknowledgement")))
            with pytest.raises(Unavailable, match="handed over only after"):
                running.revoked([0, 1])  # so it is told again
        running.revoked([0, 1])
    assert health.unready == "no partition is assigned"


def test_a_partition_that_cannot_be_opened_leaves_nothing_open(tmp_path):
    settings = configure(tmp_path)
    for number in range(3):
        append(settings, traffic(60, seed=number), number)
    trainer.run(settings)
    for path in checkpoint_files(settings.daemon.state_dir / "p2"):
        path.write_bytes(b"")
    with pytest.raises(CheckpointError, match="p2"):
        trainer.run(settings)


# --- a model for each key ---------------------------------------------------------------------------------------------


def keyed(folder, max_models=1000, n=300, **changes):
    settings = configure(folder, daemon={"per": "key", "max_models": max_models, **changes})
    append(settings, traffic(n, n_keys=20))
    return settings


@pytest.mark.long
def test_there_is_a_model_for_each_key_that_was_learned(tmp_path):
    settings = keyed(tmp_path)
    (state,) = trainer.run(settings).values()
    assert isinstance(state.models, KeyedModels)
    assert len(state.models) == 20
    rows = traffic(400, n_keys=20)
    rows["labels"].sort(key=itemgetter(0))  # or which of two comes first would depend on the others
    for key in (b"key-3", b"key-11"):
        mine = [(time, k, value) for time, k, value in rows["events"] if k == key or value == b"bad"]
        others = {value["id"] for _, k, value in rows["events"] if k != key and isinstance(value, dict)}
        labels = [row for row in rows["labels"] if isinstance(row[2], bytes) or row[2]["id"] not in others]
        alone = configure(tmp_path / key.decode(), model={"scaling": "none"}, daemon={"batch": 1})
        append(alone, {"events": mine, "labels": labels})
        expected = trainer.run(alone)[0].model
        unscaled = configure(tmp_path / "all", model={"scaling": "none"}, daemon={"per": "key", "batch": 1})
        if not unscaled.log.dir.exists():
            append(unscaled, rows)
        found = trainer.run(unscaled)[0].models.trained(key).model
        assert found.digest() == expected.digest()


@pytest.mark.long
def test_models_that_wait_on_disk_are_no_others(tmp_path, monkeypatch):
    settings = keyed(tmp_path / "many")
    expected = outcome(settings, trainer.run(settings))
    for number, max_models in enumerate((2, 19)):
        settings = keyed(tmp_path / str(number), max_models)
        states = trainer.run(settings)
        assert len(states[0].models._live) <= max_models
        assert outcome(settings, states) == expected
    monkeypatch.setattr(journal, "TRIES", 10**9)
    settings, steps, states = keyed(tmp_path / "killed", 2), 0, {}
    while not states:
        steps += 90
        with contextlib.suppress(Killed):
            states = run_with(settings, Fuse(steps), monkeypatch)
    assert steps > 5 * 90
    assert outcome(settings, states) == expected


def test_keys_that_only_were_predicted_have_no_model(tmp_path):
    """The digest is that of what was learned, whoever looked and from wherever the daemon went on."""
    settings = configure(tmp_path, daemon={"per": "key"}, log={"labels": ""})
    rng = np.random.default_rng(0)
    rows = []
    for i in range(60):
        event, y = an_event(i, rng)
        rows.append((START + i, b"%d" % (i % 6), event | ({"y": y} if i % 2 else {})))
    append(settings, {"events": rows})
    first = trainer.run(settings)[0]
    assert len(first.models) == 3
    assert trainer.run(settings)[0].models.digest() == first.models.digest()


@pytest.mark.long
def test_files_of_models_are_removed_when_nobody_needs_them(tmp_path):
    settings = keyed(tmp_path, max_models=2, n=600, checkpoint_records=32, keep=2)
    trainer.run(settings)
    folder = settings.daemon.state_dir / "p0"
    files = sorted(folder.glob("models-*"))
    assert 1 <= len(files) < 20
    assert max(int(path.name[-10:]) for path in files) > 25
    assert len(checkpoint_files(folder)) == 2
    checkpoint_files(folder)[0].write_bytes(b"")  # the one before has all that it needs, too
    assert outcome(settings, trainer.run(settings))[0][0]["counters"]["predicted"] == 599


@pytest.mark.parametrize(("per", "n_checkpoints"), [("partition", 12), ("key", 3)])
def test_many_changed_models_are_written_together(tmp_path, monkeypatch, per, n_checkpoints):
    """Each of 20 models that have changed has to be worth ten records, or the seconds have to be up."""
    settings = configure(tmp_path, daemon={"per": per, "checkpoint_records": 48, "checkpoint_seconds": 1e6})
    append(settings, traffic(300, n_keys=20))
    saves = []
    save = Partition.save

    def noting(self):
        n_models = self.state.models.n_unsaved if per == "key" else 0
        saves.append((self._n_unsaved, max(48, 10 * n_models)))
        return save(self)

    monkeypatch.setattr(Partition, "save", noting)
    trainer.run(settings)
    began, *others, _ = saves  # the first one is made before the first record, the last one at the end
    assert began[0] == 0
    assert all(n_records >= wanted for n_records, wanted in others)
    assert len(saves) >= n_checkpoints


# --- where it begins --------------------------------------------------------------------------------------------------


def remove_segments(settings, topic, n_left=1):
    """As a log does whose records are too old; return the offset where it begins by then."""
    return remove_segments_of(settings.log.dir / topic / "0", n_left)


def remove_segments_of(folder, n_left=1):
    paths = sorted(folder.glob("*.log"))
    for path in paths[:-n_left]:
        path.unlink()
    return int(paths[-n_left].stem)


@pytest.mark.parametrize("topic", ["events", "labels"])
def test_records_that_are_gone_before_they_were_read_stop_it(tmp_path, topic):
    settings = configure(tmp_path)
    rows = traffic(400)
    first = {"events": rows["events"][:100], "labels": rows["labels"][:100]}
    append(settings, first, segment_bytes=4000)
    trainer.run(settings)
    append(settings, {topic: rows[topic][100:300]}, segment_bytes=4000)
    start = remove_segments(settings, topic)
    assert start > 150
    for _ in range(2):
        with pytest.raises(RecordsLost, match=rf"{topic}-0 begins at offset {start}, .* 100 is next.*on_data_loss"):
            trainer.run(settings)
    skipping = replace(settings, daemon=replace(settings.daemon, on_data_loss="skip"))
    for _ in range(3):  # counted once, however often it is started
        (state,) = trainer.run(skipping).values()
        assert state.counters.lost == start - 100
    assert getattr(state, "offset" if topic == "events" else "labels_offset") == 300
    append(settings, {topic: rows[topic][300:]}, segment_bytes=4000)
    trainer.run(settings)


def test_what_is_lost_is_counted_once_even_if_nothing_follows(tmp_path):
    """No record comes behind the gap: the position is remembered all the same."""
    settings = configure(tmp_path, daemon={"on_data_loss": "skip", "checkpoint_records": 1})
    rows = traffic(400)
    append(settings, {"events": rows["events"][:100], "labels": rows["labels"][:100]}, segment_bytes=4000)
    trainer.run(settings)
    append(settings, {"labels": rows["labels"][100:300]}, segment_bytes=4000)
    for path in (settings.log.dir / "labels" / "0").glob("*.log"):
        path.unlink()
    (settings.log.dir / "labels" / "0" / f"{300:020d}.log").touch()
    for i in range(3):
        append(settings, {"events": rows["events"][100 + 20 * i : 120 + 20 * i]})
        (state,) = trainer.run(settings).values()
        assert (state.offset, state.counters.lost) == (120 + 20 * i, 200)


class Retaining(LocalLog):
    """Removes old segments of the events while they are read, and says so as Kafka does: at the next poll."""

    n_polls = 0

    def poll(self, timeout, limit):
        self.n_polls += 1
        if self.n_polls == 3:
            remove_segments_of(self._partition("events", 0))
            raise PositionRefused("events-0: the fetch position is out of range")
        return super().poll(timeout, limit)


@pytest.mark.parametrize("on_data_loss", ["fail", "skip"])
def test_records_that_go_while_it_runs_are_lost_no_more_than_once(tmp_path, monkeypatch, on_data_loss):
    monkeypatch.setattr(local_log, "LocalLog", Retaining)
    monkeypatch.setattr(trainer, "POLL_RECORDS", 40)
    settings = configure(tmp_path, daemon={"on_data_loss": on_data_loss, "batch": 8})
    append(settings, {**traffic(400), "labels": []}, segment_bytes=4000)
    if on_data_loss == "fail":
        with pytest.raises(RecordsLost):
            trainer.run(settings)
        return
    (state,) = trainer.run(settings).values()
    numbers = sorted(int(src.split("-")[2]) for src in predictions(settings))
    missing = set(range(400)) - {133, *numbers}
    assert numbers[-1] == 399
    assert missing == set(range(80, 80 + state.counters.lost)) - {133}
    assert state.counters.lost > 150


def test_a_log_that_begins_late_is_no_loss_for_who_begins_there(tmp_path):
    settings = configure(tmp_path)
    append(settings, traffic(400), segment_bytes=4000)
    start = remove_segments(settings, "events", 8)
    (state,) = trainer.run(settings).values()
    assert (state.counters.lost, state.offset) == (0, 400)
    assert len(predictions(settings)) == 400 - start - (start <= 133)


def test_latest_begins_with_what_comes_from_now_on(tmp_path, monkeypatch):
    monkeypatch.setattr(trainer, "POLL_SECONDS", 0.0)
    rows = traffic(200)
    settings = configure(tmp_path, daemon={"start": "latest", "follow": True})
    append(settings, {"events": rows["events"][:80], "labels": rows["labels"][:60]})
    script = Script(settings, [{}, {"events": rows["events"][80:]}, {"labels": rows["labels"][60:]}])
    (state,) = trainer.run(settings, script).values()
    assert {int(src.split("-")[2]) for src in predictions(settings)} == set(range(80, 200))
    assert (state.offset, state.labels_offset) == (200, len(rows["labels"]))
    assert state.counters.lost == 0
    append(settings, {"events": traffic(10, seed=5)["events"]})
    (state,) = trainer.run(replace(settings, daemon=replace(settings.daemon, follow=False))).values()
    assert state.offset == 210  # a checkpoint says more than "latest"


def padded(rows, n_bytes):
    """The same records, in events that are larger."""
    events = [
        (time, key, value if isinstance(value, bytes) else {**value, "text": "x" * n_bytes})
        for time, key, value in rows["events"]
    ]
    return {**rows, "events": events}


@pytest.fixture
def held(monkeypatch):
    """The most bytes of records that the inputs of a daemon have held, in a list of one."""
    most = [0]
    offer = inputs.Input.offer

    def watched(self, records):
        offer(self, records)
        self.together = getattr(self._log, "inputs", set()) | {self}
        self._log.inputs = self.together
        held = [record.nbytes for item in self.together for record in item.records]
        most[0] = max(most[0], sum(held))

    monkeypatch.setattr(inputs.Input, "offer", watched)
    return most


@pytest.mark.long
def test_what_is_read_ahead_is_bounded_in_bytes(tmp_path, monkeypatch, held):
    """And nothing comes out differently."""
    rows = padded(traffic(500), 4000)
    monkeypatch.setattr(inputs, "CUT_BYTES", 20_000)
    monkeypatch.setattr(local_log, "POLL_BYTES", 30_000)
    found = []
    for name, limits in (("roomy", {}), ("tight", {"read_ahead_mb": 0.1}), ("none", {"read_ahead_mb": 0.03})):
        settings = configure(tmp_path / name, limits=limits)
        append(settings, rows)
        held[0] = 0
        found.append(outcome(settings, trainer.run(settings)))
        if name == "roomy":
            assert held[0] > 2_000_000
        else:
            a_cut_of_each_topic, a_poll, a_record = 2 * 20_000, 30_000, 5000
            assert held[0] < settings.limits.read_ahead_bytes + a_cut_of_each_topic + a_poll + a_record
    assert found[0] == found[1] == found[2]
    assert found[0][0][0]["offsets"][0] == 500


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again_with_large_records_it_ends_the_same(tmp_path, monkeypatch, seed):
    """Some cuts end with so many bytes, others with so many records, and each process has another memory."""
    monkeypatch.setattr(inputs, "CUT_BYTES", 20_000)
    monkeypatch.setattr(local_log, "POLL_BYTES", 15_000)
    rows = traffic(300, seed)
    rows["events"] = [*rows["events"][:150], *padded(rows, 3000)["events"][150:]]
    rng = random.Random(seed)
    undisturbed = configure(tmp_path / "undisturbed")
    append(undisturbed, rows)
    expected = outcome(undisturbed, trainer.run(undisturbed))
    settings = configure(tmp_path / "killed")
    append(settings, rows)

    def with_other_memory(settings):
        return change(settings, limits={"read_ahead_mb": rng.choice([0.01, 0.1, 64.0])})

    states = run_through(settings, lambda: rng.randint(1, 60), monkeypatch, with_other_memory)
    assert outcome(settings, states) == expected


# --- nobody else's business -------------------------------------------------------------------------------------------


@pytest.fixture
def umask(request):
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def modes(folder):
    return {path.relative_to(folder).as_posix(): path.stat().st_mode & 0o777 for path in folder.rglob("*")}


@pytest.mark.long
@pytest.mark.parametrize("umask", [0o000, 0o022, 0o177], indirect=True, ids=oct)
@pytest.mark.parametrize("per", ["partition", "key"])
def test_only_its_owner_can_read_a_state(tmp_path, umask, per):
    settings = configure(tmp_path, daemon={"per": per, "max_models": 2}, log={"dir": tmp_path / "log"})
    os.umask(0o022)
    append(settings, traffic(200, n_keys=5))
    (tmp_path / "log" / "predictions" / "0").mkdir(parents=True)
    (tmp_path / "log" / "dlq" / "0").mkdir(parents=True)
    os.umask(umask)
    trainer.run(settings)
    state = settings.daemon.state_dir
    found = modes(state)
    assert {name.split("-")[0] for name in found} >= {"p0", "p0/checkpoint", "p0/journal", "p0/epoch"}
    assert any(name.startswith("p0/models") for name in found) == (per == "key")
    assert (state.stat().st_mode & 0o777, found.pop("p0")) == (0o700, 0o700)
    del found["lock"]  # which has the number of the process
    assert set(found.values()) == {0o600}


def test_a_state_that_others_could_read_gets_files_that_they_cannot(tmp_path):
    settings = configure(tmp_path)
    append(settings, traffic(200))
    (settings.daemon.state_dir / "p0").mkdir(parents=True, mode=0o755)
    trainer.run(settings)
    found = modes(settings.daemon.state_dir)
    assert found.pop("p0") == 0o755, "perhaps somebody wants it so"
    del found["lock"]
    assert set(found.values()) == {0o600}


# --- a flood of keys --------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_in_a_flood_of_keys_it_ends_the_same(tmp_path, monkeypatch, seed):
    rows, rng = traffic(300, seed, n_keys=20), random.Random(seed)
    daemon_ = {"per": "key", "max_models": 2, "max_keys": 6}
    settings = [configure(tmp_path / name, daemon=daemon_) for name in ("undisturbed", "killed")]
    for each in settings:
        append(each, rows)
    (expected,) = trainer.run(settings[0]).values()
    assert (len(expected.models), expected.models.n_dropped > 50) == (6, True)
    states = run_through(settings[1], lambda: rng.randint(1, 60), monkeypatch)
    assert states[0].models.n_dropped == expected.models.n_dropped
    assert states[0].models.order == expected.models.order
    assert outcome(settings[1], states) == outcome(settings[0], {0: expected})


# --- a flood of names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", ["labels", ""])
def test_a_flood_of_names_is_not_learned(tmp_path, caplog, labels):
    """What would give the model too many features is predicted and put aside, and the others are learned."""
    settings = configure(
        tmp_path, log={"labels": labels}, model={"scaling": "none"}, limits={"event_features": 6, "model_features": 12}
    )
    rng, rows = np.random.default_rng(3), {"events": [], "labels": []}
    for i in range(60):
        event, y = an_event(i, rng)
        if i % 10 == 5:
            event["x"] |= {f"{i}-{j}": 1.0 for j in range(4)}
        rows["events"].append((START + i, None, event if labels else {**event, "y": y}))
        rows["labels"].append((START + 100 + i, None, {"id": i, "y": y}))
    rows["events"][30][2]["x"] = {f"too many {j}": 1.0 for j in range(7)}
    append(settings, rows if labels else {"events": rows["events"]})
    state = trainer.run(settings)[0]
    assert len(state.model.feature_names) == 10
    assert (state.counters.predicted, state.counters.bad) == (59, 5)
    assert state.counters.learned == 55
    put_aside = {where: why for where, (why, _) in refused(settings).items()}
    assert put_aside == dict.fromkeys([("events", i) for i in (25, 30, 35, 45, 55)], "too-many-features")
    stages = [dict(record.headers)["sv-dlq-stage"] for record in read(settings, "dlq")]
    assert Counter(stages) == {b"learn": 4, b"decode": 1}
    assert "set aside, not learned; the first: the model would have more than 12 features" in caplog.text


def test_a_dead_letter_of_what_was_not_learned_is_replayed_from_its_topic(tmp_path):
    """The join has no key, headers or timestamp of the event any more."""
    settings = configure(
        tmp_path, model={"scaling": "none"}, limits={"event_features": 2, "model_features": 2}, daemon={"batch": 1}
    )
    events = [(START + i, b"k", {"id": i, "x": {f"a{i}": 1.0, "b": 1.0}}) for i in range(2)]
    append(settings, {"events": events, "labels": [says(1, i, bool(i)) for i in range(2)]})
    trainer.run(settings)
    (letter,) = map(DeadLetter.read, read(settings, "dlq"))
    assert (letter.source, letter.is_shortened) == (("events", "0", "1"), True)
    assert letter.is_of(read(settings, "events")[1])


@pytest.mark.long
@pytest.mark.parametrize("per", ["partition", "key"])
@pytest.mark.parametrize("seed", range(2))
def test_killed_again_and_again_in_a_flood_of_names_it_ends_the_same(tmp_path, monkeypatch, per, seed):
    rows, rng = wide_traffic(300, seed, n_keys=3), random.Random(seed)
    limits = {"event_features": 8, "model_features": 40}
    settings = [configure(tmp_path / name, daemon={"per": per}, limits=limits) for name in ("undisturbed", "killed")]
    for each in settings:
        append(each, rows)
    expected = outcome(settings[0], trainer.run(settings[0]))
    assert {why for why, _ in expected[2].values()} >= {"too-many-features"}
    states = run_through(settings[1], lambda: rng.randint(1, 60), monkeypatch)
    assert outcome(settings[1], states) == expected
