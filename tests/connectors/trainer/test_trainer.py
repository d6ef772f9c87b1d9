"""The daemon: killed anywhere and started again, it ends with the very model of one that never was killed."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from fuse import Fuse, Killed, killed_anywhere, run, run_through
from logged import append, configure, predictions, read, write_config
from patience import Patience, exit_code

from streamsvm import LASVM
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import OffsetOutOfRange, Transport, Unavailable
from streamsvm.connectors.runtime.folders import AlreadyInUse, lock_folder
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.runtime.process import stop_on_signals
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer.state.checkpoint import CheckpointStore, checkpoint_files, load_newest
from streamsvm.connectors.trainer.state.state import State, TooManyBadRecords
from streamsvm.connectors.trainer.trainer import Trainer
from streamsvm.estimators.learners import LEARNERS


def newest(settings):
    """The newest checkpoint of the only partition."""
    return load_newest(settings.daemon.state_dir / "p0")[1]


def some_events(n, seed=0):
    """A stream with everything: labels and none, weights, all kinds of ids, other features now and then."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        a, b = rng.normal(size=2).round(6).tolist()
        event = {"id": i if i % 3 else f"id-{i}", "x": {"a": 3 * a + 5, "b": 0.1 * b}}
        if i % 7:
            event["y"] = bool(a * b + 0.3 * rng.normal() > 0)
        if i % 5 == 0:
            event["w"] = 0.5
        if i % 11 == 0:
            event["x"]["c"] = 1
        yield event


BAD_OFFSETS = {5: b"{", 64: b'{"id": 1, "x": {"a": "high"}}', 130: b"\xff"}


def fill_all(settings, n=200):
    values = list(some_events(n))
    for offset, value in BAD_OFFSETS.items():
        values[offset] = value
    append(settings, values)


def outcome(settings, state):
    """All that must not depend on where the daemon was killed."""
    counters = state.counters
    return {
        "digest": state.model.digest(),
        "counters": (counters.predicted, counters.learned, counters.bad),
        "offset": state.offset,
        "metrics": (state.metrics.cumulative(), state.metrics.rolling()),
        "history": [row[:4] for row in state.history.rows],
        "alarms": (state.alarms.errors.digest(), state.alarms.inputs.digest()),
        "predictions": predictions(settings),
        "refused": {dict(r.headers)["sv-dlq-offset"]: r.value for r in read(settings, settings.log.dlq)},
    }


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    settings = configure(tmp_path_factory.mktemp("uninterrupted"))
    fill_all(settings)
    return outcome(settings, run(settings))


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["lasvm-g", "lasvm-nc", "lasvm-i", "full", "auto"])
def test_every_algorithm_learns_and_goes_on_from_a_checkpoint(tmp_path, algorithm):
    whole = configure(tmp_path / "whole", model={"algorithm": algorithm})
    parts = configure(tmp_path / "parts", model={"algorithm": algorithm})
    append(whole, some_events(200))
    expected = outcome(whole, run(whole))
    append(parts, list(some_events(200))[:128])
    run(parts)
    append(parts, list(some_events(200))[128:])
    state = run(parts)
    assert type(state.model) is LEARNERS[algorithm]
    assert outcome(parts, state) == expected
    assert expected["metrics"][0].error < 0.45


# --- one run ----------------------------------------------------------------------------------------------------------


def test_every_event_is_predicted_and_every_label_learned(uninterrupted):
    n_labelled = sum("y" in event for i, event in enumerate(some_events(200)) if i not in BAD_OFFSETS)
    assert uninterrupted["counters"] == (197, n_labelled, 3)
    assert uninterrupted["offset"] == 200
    assert set(uninterrupted["predictions"]) == {f"events-0-{i}" for i in range(200) if i not in BAD_OFFSETS}
    assert uninterrupted["metrics"][0].n == n_labelled


@pytest.mark.parametrize("batch", [1, 16, 1000])
def test_each_event_is_predicted_by_a_model_that_has_learned_all_events_before_it(tmp_path, batch):
    """As river's progressive validation does, however many records are read together."""
    settings = configure(tmp_path, daemon={"batch": batch})
    events = list(some_events(100))
    append(settings, events)
    state, model = run(settings), LASVM(**settings.model.parameters())
    found = [json.loads(value) for value in predictions(settings).values()]
    for offset, (event, said) in enumerate(zip(events, found, strict=True)):
        margin = model.decision_function_one(event["x"])
        assert (said["margin"], said["score"]) == (margin, model.probability_one(margin))
        assert said["label"] == (margin > 0)
        assert said["model"] == {"ver": model.n_seen, "offset": offset}
        if "y" in event:
            model.learn_one(event["x"], event["y"], event.get("w", 1.0))
    assert 50 < model.n_seen == state.model.n_seen < 100


def test_predictions_do_not_look_ahead(tmp_path):
    """The same stream, with the last label flipped: only the model knows."""
    states, outputs = [], []
    for name in ("one", "two"):
        settings = configure(tmp_path / name)
        events = list(some_events(64))
        last = max(i for i, event in enumerate(events) if "y" in event)
        if name == "two":
            events[last]["y"] = not events[last]["y"]
        append(settings, events[: last + 1])
        states.append(run(settings))
        outputs.append(predictions(settings))
    assert outputs[0] == outputs[1]
    assert states[0].model.digest() != states[1].model.digest()


def test_an_event_that_the_model_can_no_longer_take_is_set_aside(tmp_path):
    """It was valid when its batch came: gamma, which follows the stream, was small then."""
    settings = configure(tmp_path, model={"kernel": "poly", "scaling": "none"})
    events = [{"id": i, "x": {"a": 1.0 + 3e-5 * (i % 5)}, "y": i % 2} for i in range(12)]
    append(settings, [*events, {"id": 12, "x": {"a": 9e4}}, {"id": 13, "x": {"a": 1.0}}])
    state = run(settings)
    assert (state.counters.predicted, state.counters.bad) == (13, 1)
    (letter,) = read(settings, settings.log.dlq)
    headers = {name: value.decode() for name, value in letter.headers}
    assert (headers["sv-dlq-offset"], headers["sv-dlq-stage"]) == ("12", "predict")
    assert headers["sv-dlq-reason"] == "bad-feature"


def test_bad_records_keep_their_bytes_and_the_stream_goes_on(tmp_path):
    settings = configure(tmp_path)
    fill_all(settings)
    run(settings)
    refused = read(settings, settings.log.dlq)
    assert [record.value for record in refused] == list(BAD_OFFSETS.values())
    headers = [{name: value.decode() for name, value in record.headers} for record in refused]
    assert [h["sv-dlq-offset"] for h in headers] == [str(offset) for offset in BAD_OFFSETS]
    assert [h["sv-dlq-reason"] for h in headers] == ["not-json", "bad-feature", "not-utf8"]
    assert all(h["sv-dlq-topic"] == "events" and h["sv-dlq-stage"] == "decode" for h in headers)


@pytest.mark.parametrize(
    ("key", "value", "headers"),
    [
        (b"k", b" " * (17 << 20), ()),
        (b"k" * (2 << 20), b"{", ()),
        (b"k", b"{", [("name", bytes(2 << 20))]),
        (b"k", b"{", [("n" * 60_000, b"")] * 20),
        (b"k", b"{", [("name", b"")] * 65_530),
        (b"k", b"", [("name", bytes(2 << 20))]),
        (None, json.dumps({"id": 1, "x": {"a" * (900 << 10): None}}).encode(), ()),
        (None, b'{"id": 1, "x": {"\xf0\x9f\x98\x80": "' + b"a" * (900 << 10) + b'"}}', ()),
    ],
)
def test_no_dead_letter_is_large(tmp_path, key, value, headers):
    settings = configure(tmp_path)
    append(settings, some_events(30))
    with LocalLog(settings.log.dir) as log:
        log.produce(settings.log.topic, value, key=key, headers=headers)
    append(settings, some_events(10))
    state = run(settings)
    assert (state.counters.predicted, state.counters.bad) == (40, 1)
    (letter,) = read(settings, "dlq")
    found = dict(letter.headers)
    assert letter.nbytes < (64 << 10) + (16 << 10)
    assert len(letter.headers) < 120
    assert (found["sv-dlq-offset"], found["sv-dlq-bytes"]) == (b"30", str(len(value or b"")).encode())
    assert (value or b"").startswith(letter.value or b"")
    assert (key or b"").startswith(letter.key or b"")


def test_a_value_far_outside_the_scale_is_cut(tmp_path):
    """Scaled and not cut, it would not fit into the float32 of a kernel value."""
    settings = configure(tmp_path)
    events = [{"id": i, "x": {"a": i * 1e-9}, "y": i % 2} for i in range(30)]
    append(settings, [*events, {"id": 99, "x": {"a": 1e14}, "y": 1}])
    state = run(settings)
    assert (state.counters.learned, state.counters.bad) == (31, 0)
    assert state.model.decision_function_one({"a": 1e14}) == state.model.decision_function_one({"a": 1e13})


def test_learning_helps(tmp_path):
    settings = configure(tmp_path)
    append(settings, some_events(1000))
    state = run(settings)
    assert state.metrics.rolling_error() < 0.3
    assert state.model.n_support > 10


@pytest.mark.parametrize("scaling", ["standard", "none"])
def test_the_model_scales_the_features_itself(tmp_path, scaling):
    settings = configure(tmp_path, model={"scaling": scaling})
    fill_all(settings)
    state = run(settings)
    assert state.scaler is None
    twin = LASVM(**settings.model.parameters())
    for i, event in enumerate(some_events(200)):
        if i not in BAD_OFFSETS and "y" in event:
            twin.learn_one(event["x"], event["y"], w=event.get("w", 1.0))
    assert state.model.scale_of("a") == twin.scale_of("a")
    assert (state.model.scale_of("a") == (0.0, 1.0)) == (scaling == "none")


def test_an_empty_log_is_left_alone(tmp_path):
    settings = configure(tmp_path)
    settings.log.dir.mkdir(parents=True)
    assert run(settings) is None
    assert not checkpoint_files(settings.daemon.state_dir / "p0")


def test_named_labels_and_features(tmp_path):
    settings = configure(tmp_path, features={"names": ("a", "b")}, label={"positive": "spam", "negative": "ham"})
    events = [{"id": i, "x": [i % 5, -i % 3], "y": "spam" if i % 5 > 2 else "ham"} for i in range(40)]
    append(settings, [*events, {"id": 41, "x": {"a": 1}}])
    state = run(settings)
    assert (state.counters.learned, state.counters.bad) == (40, 1)
    assert {json.loads(value)["label"] for value in predictions(settings).values()} == {"spam", "ham"}


# --- killed and started again -----------------------------------------------------------------------------------------


@pytest.mark.long
def test_killed_at_any_step_it_ends_the_same(tmp_path, monkeypatch):
    """Every step of a small run, one kill each."""
    monkeypatch.setattr(os, "fsync", lambda _: None)  # hundreds of runs would wait for the disk

    def small(name):
        settings = configure(tmp_path / name, daemon={"checkpoint_records": 16})
        append(settings, [*some_events(24), b"bad"])
        return settings

    killed_anywhere(small, lambda where, states: outcome(where, states[0]), 1, monkeypatch)


@pytest.mark.long
def test_killed_again_and_again_it_ends_the_same(tmp_path, monkeypatch, uninterrupted):
    """Each run is killed a little later after its start than the one before, until one comes through."""
    rng = random.Random(7)
    for name in "abcdefgh":
        settings = configure(tmp_path / name)
        fill_all(settings)
        states = run_through(settings, lambda: rng.randint(1, 60), monkeypatch)
        assert outcome(settings, states[0]) == uninterrupted


@pytest.mark.long
def test_killed_with_a_learner_that_tunes_itself_it_ends_the_same(tmp_path, monkeypatch):
    """During the learner's warm-up and after it."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
    whole, killed = (configure(tmp_path / name, model={"algorithm": "auto"}) for name in ("whole", "killed"))
    for settings in (whole, killed):
        append(settings, some_events(1400))
    expected = run(whole)
    assert expected.model.history_
    assert outcome(killed, run_through(killed, lambda: 400, monkeypatch)[0]) == outcome(whole, expected)


@pytest.mark.parametrize("step", ["to_checkpoint", "save", "flush", "replace"])
def test_killed_around_every_checkpoint_it_ends_the_same(tmp_path, monkeypatch, uninterrupted, step):
    owner = {"to_checkpoint": State, "save": CheckpointStore, "flush": LocalLog, "replace": os}[step]
    settings = configure(tmp_path)
    fill_all(settings)
    state, place = None, 1
    while state is None:
        with monkeypatch.context() as patch:
            patch.setattr(owner, step, Fuse(place).around(getattr(owner, step)))
            with contextlib.suppress(Killed):
                state = run(settings)
            place += 1
    assert outcome(settings, state) == uninterrupted


SCRIPT = """
import sys, time
from pathlib import Path
from streamsvm.connectors.runtime.process import stop_on_signals
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.processing import Processor
consume = Processor.process
def slowly(self, *arguments):
    time.sleep(float(sys.argv[2]))
    consume(self, *arguments)
Processor.process = slowly
with stop_on_signals() as stop:
    print("ready", flush=True)
    trainer.run(load(Path(sys.argv[1]), {}), stop)
"""


@pytest.fixture
def start(nursery, tmp_path):
    """Starts a trainer in a process of its own."""

    def start(follow=False, delay=0.0):
        config = write_config(tmp_path, checkpoint_records=48, window=50, follow=follow)
        output = tmp_path / f"output-{time.monotonic_ns()}"
        process = nursery.start(SCRIPT, config, delay, output=output)
        wait_for(lambda: "ready" in output.read_text(), process)
        return process

    return start


def wait_for(condition, process):
    patience = Patience(60)
    while not condition():
        assert process.poll() is None
        assert patience.lasts
        time.sleep(0.01)


@pytest.mark.long
def test_a_killed_process_goes_on_where_it_was(tmp_path, start):
    reference = configure(tmp_path / "reference")
    fill_all(reference, 1000)
    expected = outcome(reference, run(reference))

    settings = configure(tmp_path)
    fill_all(settings, 1000)
    rng = random.Random(3)
    for goal in (50, 300, 550):
        process = start(follow=True, delay=0.04)  # it would end by itself if we look too late
        wait_for(lambda: len(predictions_so_far(settings)) > goal, process)  # noqa: B023 - called at once
        time.sleep(0.05 * rng.random())
        process.kill()
        assert exit_code(process, 60) == -signal.SIGKILL
    assert exit_code(start(), 60) == 0
    store = CheckpointStore(settings.daemon.state_dir / "p0", 3)
    state = State.from_checkpoint(newest(settings), settings, store, 0)
    assert outcome(settings, state) == expected
    assert len(read(settings, "predictions")) >= len(expected["predictions"])


def predictions_so_far(settings):
    return read(settings, "predictions") if settings.log.dir.joinpath("predictions").exists() else []


@pytest.mark.long
def test_a_signal_ends_it_with_a_checkpoint(tmp_path, start):
    settings = configure(tmp_path, daemon={"follow": True})
    append(settings, some_events(100))
    process = start(follow=True)
    wait_for(lambda: len(predictions_so_far(settings)) == 100, process)
    process.send_signal(signal.SIGTERM)
    assert exit_code(process, 60) == 0
    assert newest(settings).offsets == {"events": 100, "labels": 0}


def test_a_second_signal_ends_it_at_once():
    script = (
        "import os, signal, time\nfrom streamsvm.connectors.runtime.process import stop_on_signals\n"
        "with stop_on_signals() as stop:\n"
        "    os.kill(os.getpid(), signal.SIGINT); assert stop()\n"
        "    os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=600).returncode == -signal.SIGTERM


def test_signals_are_handled_as_before_afterwards():
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        assert not stop()
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop()
    assert signal.getsignal(signal.SIGTERM) is before


def test_outputs_are_durable_before_the_checkpoint_that_counts_on_them(tmp_path, monkeypatch):
    """A kill leaves the page cache alone, so only the order of the calls can show this."""
    calls = []
    for owner, name in ((LocalLog, "produce"), (LocalLog, "flush"), (CheckpointStore, "save")):
        original = getattr(owner, name)
        monkeypatch.setattr(owner, name, lambda *a, _f=original, _n=name, **o: calls.append(_n) or _f(*a, **o))
    settings = configure(tmp_path)
    fill_all(settings)
    calls.clear()
    run(settings)
    saves = [i for i, name in enumerate(calls) if name == "save"]
    assert len(saves) == 6
    assert "produce" not in calls[: saves[0]]  # the state before the first record
    assert all(calls[i - 1] == "flush" for i in saves[1:])


# --- going on ---------------------------------------------------------------------------------------------------------


def test_a_finished_run_has_nothing_left_to_do(tmp_path):
    settings = configure(tmp_path)
    fill_all(settings)
    first = outcome(settings, run(settings))
    files = checkpoint_files(settings.daemon.state_dir / "p0")
    n_records = len(read(settings, "predictions"))
    assert outcome(settings, run(settings)) == first
    assert checkpoint_files(settings.daemon.state_dir / "p0") == files
    assert len(read(settings, "predictions")) == n_records


def test_more_records_are_learned_by_the_next_run(tmp_path, uninterrupted):
    """Cut at a multiple of the batch size, two runs are one."""
    settings = configure(tmp_path)
    values = list(some_events(200))
    for offset, value in BAD_OFFSETS.items():
        values[offset] = value
    append(settings, values[:96])
    run(settings)
    append(settings, values[96:])
    assert outcome(settings, run(settings)) == uninterrupted


def test_checkpoints_by_time_change_nothing(tmp_path, uninterrupted):
    settings = configure(tmp_path, daemon={"checkpoint_seconds": 1e-9, "keep": 100})
    fill_all(settings)
    assert outcome(settings, run(settings)) == uninterrupted
    assert len(checkpoint_files(settings.daemon.state_dir / "p0")) == 14


def test_following_takes_what_is_there(tmp_path, uninterrupted):
    """Records come one by one and in lumps, and are predicted at once; what is learned is the same."""
    settings = configure(tmp_path, daemon={"follow": True})
    values = list(some_events(200))
    for offset, value in BAD_OFFSETS.items():
        values[offset] = value
    done = threading.Event()
    states = []
    follower = threading.Thread(target=lambda: states.append(run(settings, done.is_set)))
    follower.start()
    try:
        for begin, end in ((0, 5), (5, 6), (6, 100), (100, 103), (103, 200)):
            append(settings, values[begin:end])
            time.sleep(0.05)
        patience = Patience(30)
        while len(predictions_so_far(settings)) < 197 and patience.lasts:
            time.sleep(0.01)
    finally:
        done.set()
        follower.join()
    assert states[0].model.digest() == uninterrupted["digest"]
    assert predictions(settings).keys() == uninterrupted["predictions"].keys()


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_too_many_bad_records_stop_the_daemon_until_it_may_pass(tmp_path):
    settings = configure(tmp_path, daemon={"max_bad": 0.01})
    events = list(some_events(200))
    events[50:61] = [b"bad"] * 11
    append(settings, events)
    for _ in range(2):  # also when a supervisor starts it again
        with pytest.raises(TooManyBadRecords, match="11 of the last 61 records are bad") as stopped:
            run(settings)
        assert stopped.value.states[0].counters.bad == 11
    assert run(configure(tmp_path, daemon={"max_bad": 0.011})).counters.bad == 11


def test_nothing_but_bad_records_stop_the_warm_up_too(tmp_path):
    settings = configure(tmp_path)
    append(settings, [b"bad"] * 101)
    with pytest.raises(TooManyBadRecords):
        run(settings)


def test_the_breaker_forgets_what_is_long_ago(tmp_path):
    settings = configure(tmp_path, daemon={"max_bad": 0.002})
    events = list(some_events(1200))
    for offset in (10, 20, 1100):
        events[offset] = b"bad"
    append(settings, events)
    assert run(settings).counters.bad == 3


def test_a_checkpoint_of_other_settings_is_refused(tmp_path):
    fill_all(configure(tmp_path))
    run(configure(tmp_path))
    with pytest.raises(ConfigError, match=r"model\.C = 10\.0, the configuration says 1.0"):
        run(configure(tmp_path, model={"C": 1.0}))


def test_a_log_that_ends_before_the_checkpoint_is_refused(tmp_path):
    settings = configure(tmp_path)
    fill_all(settings)
    run(settings)
    for path in (settings.log.dir / "events" / "0").glob("*.log"):
        path.unlink()
    append(settings, some_events(10))
    with pytest.raises(OffsetOutOfRange, match="ends at offset 10, but was read up to offset 200"):
        run(settings)


def test_two_daemons_cannot_share_a_state(tmp_path):
    settings = configure(tmp_path)
    fill_all(settings)
    with lock_folder(settings.daemon.state_dir, "a test"), pytest.raises(AlreadyInUse, match="state"):
        run(settings)


def test_any_transport_will_do(tmp_path, uninterrupted):
    """The daemon uses nothing of the log but the verbs of `transport.Transport`."""
    settings = configure(tmp_path)
    fill_all(settings)

    class Narrow:
        def __init__(self, log):
            for verb in (name for name in vars(Transport) if name.islower() and name[0] != "_"):
                setattr(self, verb, getattr(log, verb))

    with LocalLog(settings.log.dir) as log:
        states = Trainer(settings, Narrow(log), lambda: False, Health(), Metrics()).run()
    assert outcome(settings, states[0]) == uninterrupted


def test_a_record_that_overflows_the_kernel_is_refused(tmp_path):
    settings = configure(tmp_path, model={"kernel": "poly", "degree": 9, "scaling": "none"})
    events = [{"id": i, "x": {"a": float(i % 3)}, "y": i % 2} for i in range(20)]
    events[5]["x"]["a"] = 1e9
    append(settings, events)
    state = run(settings)
    assert state.counters.bad == 1
    assert state.counters.learned == 19


def test_a_trainer_that_cannot_write_is_not_ready_although_it_reads(tmp_path, monkeypatch):
    settings = configure(tmp_path, daemon={"follow": True, "checkpoint_seconds": 0.001})
    append(settings, some_events(40))
    health, found = Health(), []
    with LocalLog(settings.log.dir) as log:
        flush = log.flush

        def failing():
            found.append(health.unready)  # as /readyz says while it waits for an acknowledgement
            raise Unavailable("no acknowledgement")

        def steps():
            monkeypatch.setattr(log, "flush", failing)
            for _ in range(30):
                yield
            monkeypatch.setattr(log, "flush", flush)
            for _ in range(10):
                yield

        script = steps()
        Trainer(settings, log, lambda: next(script, "end") == "end", health, Metrics()).run()
    assert set(found[1:]) == {"no acknowledgement"}
    assert newest(settings).offsets["events"] == 40
