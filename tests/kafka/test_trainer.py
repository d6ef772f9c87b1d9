"""The trainer on a real broker: killed, joined, left, stopped, cut off, fed with poison."""

import itertools
import json
import os
import random
import signal
import threading
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from patience import Patience

from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import backend_of
from streamsvm.connectors.trainer.state.checkpoint import load_newest
from streamsvm.connectors.trainer.state.state import State

from .app import SHORT_SESSION, WAIT_SECONDS, digest, settings_of, some_stream
from .conftest import BOTH

N_KILLS = int(os.environ.get("STREAMSVM_TEST_KILLS", "4"))  # CI makes do with a few


def by_src(records):
    """Predictions by the record they answer; repeated ones must be the same to the byte."""
    found = {}
    for record in records:
        value = json.loads(record.value)
        assert found.setdefault(value["src"], record.value) == record.value
    return found


def test_killed_often_it_ends_with_the_same_model(topics, start_app):
    n = 1000 * N_KILLS
    log = settings_of(topics)
    events, labels = some_stream(n)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)

    def trainer(name, predictions):
        daemon = {"checkpoint_records": 500}
        return start_app(
            name,
            log={**log, "predictions": predictions, "model": ""},
            daemon=daemon,
            group={"id": f"{log['topic']}-{name}", "instance": "a"},
        )

    expected = trainer("whole", topics.create("whole")).run("daemon.follow=false")

    app, rng = trainer("killed", log["predictions"]), random.Random(5)
    for _ in range(N_KILLS):
        before = app.newest()
        process = app.start()
        process.let_work(lambda: app.newest() > before)  # noqa: B023 - called at once
        time.sleep(0.1 * rng.random())
        process.signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    said = app.run("daemon.follow=false")
    assert digest(said) == digest(expected)
    predictions = topics.read_all(log["predictions"])
    assert {json.loads(value)["id"] for value in by_src(predictions).values()} == {f"id-{i}" for i in range(n)}
    assert len(predictions) > n  # some were made again


def state_of(app, partition=0):
    """The newest state of a partition."""
    settings = load(app.config, {})
    folder = app.folder / "state" / f"p{partition}"
    _, checkpoint = load_newest(folder)
    return State.from_checkpoint(checkpoint, settings, SimpleNamespace(folder=folder, epoch=0), 0)


# --- together ---------------------------------------------------------------------------------------------------------


TEAMS = {
    "kafka-python": ({}, ["kafka-python"]),
    "both": ({}, ["kafka-python", "librdkafka"]),
    "the new protocol": ({"client": "librdkafka", "group_protocol": "consumer"}, ["librdkafka"]),
}


@pytest.mark.parametrize("team", ["kafka-python", "both", "the new protocol"])
def test_trainers_that_join_and_leave_lose_nothing_and_learn_nothing_twice(topics, start_app, team):
    """Members with either client share a group, so that an operator can change the client one process at a time."""
    options, clients = TEAMS[team]
    next_client = itertools.cycle(clients)
    n, n_partitions = 4000, 4
    log = settings_of(topics, n_partitions, model="")
    events, labels = some_stream(n, n_keys=50)
    if "group_protocol" not in options:
        options = {**options, **SHORT_SESSION}
    app = start_app("team", log=log, kafka=options, daemon={"checkpoint_records": 200, "checkpoint_seconds": 1})
    producer = threading.Thread(target=produce_slowly, args=(topics, log, events, labels, 12.0))
    producer.start()
    try:
        first = app.start(f"kafka.client={next(next_client)}")
        first.wait_for(r"assigned partitions \[0, 1, 2, 3\]")
        second = app.start(f"kafka.client={next(next_client)}")
        second.wait_for("assigned partitions")
        third = app.start(f"kafka.client={next(next_client)}")
        third.wait_for("assigned partitions")
        assert second.stop() == 0
        third.signal(signal.SIGKILL)
        fourth = app.start(f"kafka.client={next(next_client)}")
        fourth.wait_for("assigned partitions")
    finally:
        producer.join()
    wait_until_read(topics, app, log, [first, fourth])
    for process in (first, fourth):
        assert process.stop() == 0, process.said
    check_all_was_learned_once(topics, app, log, n_partitions, labels)


@pytest.mark.parametrize(
    ("client", "exactly_once"),
    [("kafka-python", False), ("kafka-python", True), ("librdkafka", True)],
    indirect=["client"],
)
def test_a_trainer_that_was_stopped_for_long_does_not_overwrite_its_successor_s_state(topics, start_app, exactly_once):
    n = 2000
    log = settings_of(topics, model="")
    events, labels = some_stream(n)
    app = start_app(
        "zombie",
        log=log,
        kafka={**SHORT_SESSION, "transaction_timeout_ms": 10_000},
        daemon={"checkpoint_seconds": 0.5, "exactly_once": exactly_once},
    )
    topics.produce(log["topic"], events[:1000])
    topics.produce(log["labels"], labels[:1000])
    zombie = app.start()
    zombie.wait_until(lambda: app.newest() and state_of(app).offset >= 800)
    zombie.signal(signal.SIGSTOP)
    heir = app.start()
    heir.wait_for(r"assigned partitions \[0\]")
    topics.produce(log["topic"], events[1000:])
    topics.produce(log["labels"], labels[1000:])
    zombie.signal(signal.SIGCONT)
    wait_until_read(topics, app, log, [heir])
    assert zombie.stop() in (0, 75, -signal.SIGTERM), zombie.said  # The last, if the signal met it while it was ending.
    assert heir.stop() == 0, heir.said
    owner = int(app.newest().split("-")[1])
    assert owner > 1, "the newest checkpoint is not the one of the trainer that was stopped"
    check_all_was_learned_once(topics, app, log, 1, labels)
    if exactly_once:
        expect_each_once(topics, log["predictions"], n)


def produce_slowly(topics, log, events, labels, seconds, n_lumps=50):
    """Events and labels in lumps, each label some lumps after its event or, seldom, before."""
    for i in range(n_lumps):
        for name, records in (("topic", events), ("labels", labels)):
            size = -(-len(records) // n_lumps)
            topics.produce(log[name], records[i * size : (i + 1) * size])
        time.sleep(seconds / n_lumps)


def wait_until_read(topics, app, log, processes):
    """Wait until a trainer has consumed all that is there now."""
    ends = {topic: count(topics, topic) for topic in (log["topic"], log["labels"])}
    patience = Patience(WAIT_SECONDS)

    def consumed():
        states = [state_of(app, number) for number in range(len(list((app.folder / "state").glob("p*"))))]
        return {
            log["topic"]: sum(state.offset for state in states),
            log["labels"]: sum(state.labels_offset for state in states),
        }

    while consumed() != ends:
        assert all(process.is_alive for process in processes)
        assert patience.lasts, (consumed(), ends, [process.said for process in processes])
        time.sleep(0.3)


def count(topics, topic):
    return len(topics.read_all(topic))


def check_all_was_learned_once(topics, app, log, n_partitions, labels):
    """The counters are part of the state: a record that was left out, or consumed twice, would show in them."""
    events = topics.read_all(log["topic"])
    labelled = {json.loads(value)["id"] for _, value, *_ in labels}
    for partition in range(n_partitions):
        ours = [json.loads(record.value)["id"] for record in events if record.partition == partition]
        state = state_of(app, partition)
        assert state.counters.predicted == len(ours)
        assert state.join.counters.duplicate_events == 0
        assert state.join.counters.matched == len(labelled & set(ours))
        assert state.counters.learned == state.join.counters.matched + state.join.counters.corrected
    predicted = {json.loads(record.value)["id"] for record in topics.read_all(log["predictions"])}
    assert predicted == {json.loads(record.value)["id"] for record in events}


# --- exactly once -----------------------------------------------------------------------------------------------------


def committed_ids(topics, topic):
    """The ids of the events that a reader of committed records sees predictions of, with repetitions."""
    return sorted(json.loads(r.value)["id"] for r in topics.read_all(topic, isolation_level="read_committed"))


def expect_each_once(topics, topic, n):
    patience = Patience(30)  # the broker marks the end of a transaction after it has said that it ended
    while len(found := Counter(committed_ids(topics, topic))) < n and patience.lasts:
        time.sleep(0.5)
    assert [id_ for id_, times in found.items() if times > 1] == []
    assert found.keys() == {f"id-{i}" for i in range(n)}


def committed(topics, group, topic, number=0):
    """The offset of a group in a partition; -1 if there is none."""
    partition = TopicPartition(topic, number)
    return topics.admin.list_group_offsets({group: [partition]})[group][partition].offset


def test_killed_while_it_takes_its_journals_again_no_prediction_counts_twice(topics, start_app):
    """Partitions that are not through with their journals share the transaction of one that is."""
    n = 4000
    log = settings_of(topics, 4, labels="", model="")
    events, _ = some_stream(n)
    for number, end in enumerate((100, 200, 300, n)):  # the last partition has a long journal
        topics.produce(log["topic"], events[end - 100 if end < n else 300 : end], number)
    group = f"{log['topic']}-group"
    app = start_app("again", log=log, daemon={"exactly_once": True}, group={"id": group, "instance": "a"})
    process = app.start()
    process.wait_until(lambda: process.metric("records_total") == n)
    process.signal(signal.SIGKILL)
    process.wait()
    process = app.start("daemon.checkpoint_records=1")
    process.wait_until(lambda: committed(topics, group, log["topic"]) > 0)
    process.signal(signal.SIGKILL)
    process.wait()
    app.run("daemon.follow=false")
    expect_each_once(topics, log["predictions"], n)


@pytest.mark.parametrize(
    ("client", "membership"), [("kafka-python", "named"), ("librdkafka", "unnamed")], indirect=["client"]
)
def test_two_trainers_killed_often_in_transactions(topics, start_app, membership):
    """Named members have their partitions back at once; those of unnamed ones go to the other, back and forth.

    A minute each, so every client and every membership has one turn.
    """
    n, rng = 4000, random.Random(N_KILLS)
    log = settings_of(topics, 4)
    events, labels = some_stream(n, n_keys=50)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)

    def trainer(name, **options):
        return start_app(
            name,
            log={**log, "predictions": topics.create(name, 4), "model": ""},
            kafka={
                **SHORT_SESSION,
                "transaction_timeout_ms": 6000,
                # So long a rebalance waits for a member that was killed while it joined; the default is 5 minutes.
                "max_poll_interval_ms": 30_000,
            },
            daemon={"checkpoint_records": 60, "checkpoint_seconds": 2, "batch": 4, **options},
            group={"id": f"{log['topic']}-{name}"},
        )

    def start(name):
        return app.start(*([f"group.instance={name}"] if membership == "named" else []))

    def n_committed():
        return sum(state.offset for state in (state_of(app, number) for number in app.partitions()))

    at_once = ["daemon.follow=false", "daemon.checkpoint_records=2000"]
    plain = trainer("plain").run(*at_once)
    app = trainer("exact", exactly_once=True)
    running = {name: start(name) for name in "ab"}
    for i in range(N_KILLS):
        name = "ab"[i % 2]
        process, before = running[name], [app.newest(number) for number in range(4)]
        patience = Patience(30)
        while [app.newest(number) for number in range(4)] == before and patience.lasts:
            time.sleep(0.01)
        time.sleep(rng.random())
        process.signal(signal.SIGKILL)
        process.wait()
        running[name] = start(name)
    print(f"{membership}: {n_committed()} of {n} events were learned when the last trainer was killed")
    for process in running.values():
        process.end()
    settings = load(app.config, {})
    patience = Patience(WAIT_SECONDS)
    while not backend_of(settings).group_state(settings.group.id).startswith("empty"):  # b's partitions are b's
        assert patience.lasts
        time.sleep(0.5)
    said = app.run(*at_once, *(["group.instance=a"] if membership == "named" else []))
    assert [digest(said, number) for number in range(4)] == [digest(plain, number) for number in range(4)]
    expect_each_once(topics, settings.log.predictions, n)


@BOTH
def test_with_transactions_committed_readers_see_each_prediction_once(topics, start_app):
    n, n_kills = 2500, 3
    log = settings_of(topics, model="")
    events, labels = some_stream(n)
    topics.produce(log["topic"], events)
    topics.produce(log["labels"], labels)

    def trainer(name, **options):
        daemon = {"checkpoint_records": 500, **options}
        group = {"id": f"{log['topic']}-{name}", "instance": "a"}
        sections = {"log": {**log, "predictions": topics.create(name)}, "daemon": daemon, "group": group}
        return start_app(name, kafka={"linger_ms": 0}, **sections)  # A killed one has sent what it will not commit.

    plain = trainer("plain").run("daemon.follow=false")
    app, rng = trainer("exact", exactly_once=True), random.Random(3)
    predictions = load(app.config, {}).log.predictions
    for _ in range(n_kills):
        before = app.newest()
        process = app.start()
        process.let_work(lambda: app.newest() > before)  # noqa: B023 - called at once
        sent, patience = topics.end(predictions), Patience(WAIT_SECONDS)
        while topics.end(predictions) < sent + 10 and state_of(app).offset < n:
            assert patience.lasts, process.said
            time.sleep(0.05 * rng.random())  # the next transaction has sent something, unless the stream ends here
        process.signal(signal.SIGKILL)
        process.wait()
    assert digest(app.run("daemon.follow=false")) == digest(plain)
    committed = topics.read_all(predictions, isolation_level="read_committed")
    assert [json.loads(record.value)["id"] for record in committed] == [f"id-{i}" for i in range(n)]
    assert len(topics.read_all(predictions)) > n  # those of aborted transactions
