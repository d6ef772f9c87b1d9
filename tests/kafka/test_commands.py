"""The commands beside the daemon, on a real broker."""

import csv
import gc
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from kafka import KafkaProducer
from patience import Patience

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.logs.kafka import reader as kafka_python_reader
from streamsvm.connectors.logs.rdkafka import reader as librdkafka_reader
from streamsvm.connectors.logs.transport import Committed, Unavailable
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import backend_of
from streamsvm.connectors.settings.sections import GroupSettings, Settings
from streamsvm.connectors.trainer import inputs
from streamsvm.connectors.trainer import trainer as daemon

from .app import WAIT_SECONDS, some_stream
from .conftest import BOTH, READ_SECONDS

EXAMPLE = Path(__file__).parents[2] / "examples" / "kafka_round.py"
NAMES = {"topic": "events", "labels": "labels", "predictions": "predictions", "dlq": "dlq"}
NAMES |= {"model": "model", "scores": "scores"}


@pytest.fixture
def app(tmp_path, broker, client):
    """A configuration whose topics do not exist yet, and the beginning of their names."""
    prefix = f"commands-{os.getpid()}-{time.time_ns()}"
    path = tmp_path / "app.toml"
    names = "\n".join(f'{key} = "{prefix}-{name}"' for key, name in NAMES.items())
    path.write_text(
        f'[log]\n{names}\n[model]\nC = 10.0\ngamma = 0.5\n[group]\nid = "{prefix}"\n'
        f'[daemon]\nfollow = false\n[kafka]\nclient = "{client}"\nbootstrap_servers = "{broker.bootstrap}"\n'
    )
    return path, prefix


@pytest.fixture
def call(capsys):
    """Run a command; return its exit code and the lines of its output."""

    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        return code, capsys.readouterr().out.splitlines()

    return call


@BOTH
def test_topics_are_made_and_looked_at(topics, app, call):
    path, prefix = app
    code, out = call("topics", path)
    assert code == 4
    assert sum(f"wrong: there is no topic '{prefix}" in line for line in out) == 6
    assert call("run", path)[0] == 4
    assert call("lag", path)[0] == 4

    code, out = call("topics", path, "--create", "--partitions", 3, "--replication", 1)
    assert code == 0
    rows = {line.split()[0].removeprefix(f"{prefix}-"): " ".join(line.split()[1:]) for line in out[-6:]}
    assert rows == {
        **dict.fromkeys(("events", "labels", "predictions", "scores"), "3 delete 7 d 1,048,588"),
        "dlq": "1 delete 30 d 1,048,576",
        "model": "1 compact - 1,048,588",
    }
    assert call("topics", path, "--create") == (0, out[-7:])

    other = topics.create("other", 2)
    code, out = call("topics", path, *[f"--set=log.{key}={other}" for key in ("labels",)], f"--set=log.model={prefix}")
    assert code == 4
    assert f"wrong: topic '{other}' has 2 partitions, but '{prefix}-events' has 3: give it as many" in out
    code, out = call("topics", path, f"--set=log.topic={other}")
    assert f"note: topic '{other}' has the broker's defaults, as if its first record had made it: 2 partitions" in str(
        out
    )


def test_init_looks_at_a_topic(topics, broker, call, tmp_path):
    """Half of the records lie in each partition, and one is none."""
    topic, out = topics.create("visits", 2), tmp_path / "app.toml"
    for partition in (0, 1):
        visits = [
            {"visit": 1000 * partition + i, "user": {"age": 20 + i % 7, "job": "ab"[i % 2]}, "bought": i % 3 == 0}
            for i in range(60)
        ]
        topics.produce(topic, [(None, json.dumps(visit).encode()) for visit in visits], partition)
    topics.produce(topic, [(None, b"garbage")], 1)
    code, lines = call("init", "--topic", topic, "--kafka", broker.bootstrap, "--label", "bought", "--out", out)
    assert (code, lines[0]) == (0, "passed over 1 record without a JSON object")
    assert f"  streamsvm topics {out} --create" in lines
    settings = load(out, {}, log_must_exist=False)
    assert (settings.log.topic, settings.features.label) == (topic, "bought")
    assert settings.features.kinds == {"visit": "number", "user.age": "number", "user.job": "category"}
    assert 'visit = "number" # 120 different values; all differ: if they number' in out.read_text()
    code, _ = call("init", "--topic", "none", "--kafka", broker.bootstrap, "--out", tmp_path / "none.toml")
    assert (code, (tmp_path / "none.toml").exists()) == (2, False)


@BOTH
def test_dead_letters_lag_replay_and_doctor(topics, app, call):
    path, prefix = app
    assert call("topics", path, "--create", "--partitions", 2)[0] == 0
    events, labels = some_stream(300, n_keys=5)
    topics.produce(f"{prefix}-events", events)
    topics.produce(f"{prefix}-labels", labels)
    end = events[-1][3]
    poison = [(b"key-1", b'{"id": 1}', [("trace", b"7")], end + 60_000), (b"key-2", b"{", [], end + 60_000)]
    topics.produce(f"{prefix}-events", poison)
    settings = load(path, {}, ["daemon.max_bad=1"])
    original = daemon.run(settings)

    code, out = call("lag", path, "--json")
    lags = json.loads(out[0])
    assert code == 0
    assert sum(row["lag"] for row in lags if row["group"] == prefix) == 0
    assert sum(row["lag"] for row in lags if row["group"] == f"{prefix}-score") == 302

    assert [line.split("\t")[2].split(":")[0] for line in call("dlq", path)[1]] in (
        ["missing-field", "not-json"],
        ["not-json", "missing-field"],
    )
    assert call("dlq", "replay", path, "--reason", "not-json") == (0, ["put 1 record back"])
    assert call("dlq", "replay", path) == (0, ["put 1 record back"])
    assert call("dlq", "replay", path) == (0, ["put 0 records back"])
    back = [record for record in topics.read_all(f"{prefix}-events") if "sv-dlq-replayed" in dict(record.headers)]
    assert {(record.key, record.value) for record in back} == {(key, value) for key, value, *_ in poison}
    first = {record.value: record.partition for record in reversed(topics.read_all(f"{prefix}-events"))}
    assert all(record.partition == first[record.value] for record in back)
    daemon.run(settings)
    again = topics.read_all(f"{prefix}-dlq")[2:]
    assert [dict(record.headers)["sv-dlq-attempts"] for record in again] == [b"2", b"2"]

    # a replay up to a time before that of the poison ends as the original, which has learned nothing from it
    until = datetime.fromtimestamp(end / 1000 + 30, UTC).isoformat()
    code, out = call("replay", path, "--app", f"{prefix}-b", "--to", until, "--set", "log.model=")
    assert code == 0
    digests = [line.split()[-1] for line in out if line.startswith("model digest")]
    assert digests == [original[number].models.digest() for number in sorted(original)]
    assert len(topics.read_all(f"{prefix}-predictions-{prefix}-b")) == 300
    assert (len(topics.read_all(f"{prefix}-dlq")), len(topics.read_all(f"{prefix}-dlq-{prefix}-b"))) == (4, 0)

    topics.produce(f"{prefix}-labels", [(b"key-1", b'{"id": "id-1", "y": 1}')], partition=0)
    topics.produce(f"{prefix}-labels", [(b"key-1", b'{"id": "id-1", "y": 1}')], partition=1)
    code, out = call("doctor", path)
    assert code == 1
    text = "\n".join(out)
    assert "connected to" in text
    assert f"group '{prefix}' is 2 records behind, empty, 0 members" in text
    assert "labels in another partition than events with the same key" in text
    assert "are not where the log's own partitioner puts their keys" in text
    assert f"the keys of topic '{prefix}-events' are where the log's own partitioner puts them" in text
    assert "2 dead letters not put back yet" in text


@BOTH
def test_what_is_read_ahead_is_bounded_in_bytes(topics, app, call, client, monkeypatch):
    """Compressed events, which the client unpacks while it is asked for them."""
    path, prefix = app
    assert call("topics", path, "--create")[0] == 0
    padding = b" " * 300_000
    with KafkaProducer(bootstrap_servers=topics.bootstrap, compression_type="gzip") as producer:
        for _, value, *_ in some_stream(150)[0]:
            producer.send(f"{prefix}-events", value + padding)
        producer.flush(READ_SECONDS)
    held = []
    offer = inputs.Input.offer

    def watched(self, records):
        offer(self, records)
        held.append(sum(record.nbytes for record in self.records))

    monkeypatch.setattr(inputs.Input, "offer", watched)
    reader = {"kafka-python": kafka_python_reader, "librdkafka": librdkafka_reader}[client]
    monkeypatch.setattr(reader, "POLL_BYTES", 1 << 20)
    monkeypatch.setattr(reader, "AT_ONCE", 5)
    (state,) = daemon.run(load(path, {}, ["limits.read_ahead_mb=8"])).values()
    assert state.counters.predicted == 150
    assert 4 << 20 < max(held) < (8 << 20) + (1 << 20) + 5 * 310_000


def test_doctor_without_a_broker(app, call):
    code, out = call("doctor", app[0], "--set", "kafka.bootstrap_servers=127.0.0.1:1")
    assert code == 1
    assert out[-2].startswith("problem  log: no broker answers at 127.0.0.1:1")


def commit_soon(backend, group, offsets):
    """A new broker needs some seconds before it coordinates groups."""
    patience = Patience(WAIT_SECONDS)
    while True:
        try:
            return backend.commit(group, offsets)
        except Unavailable:
            if not patience.lasts:
                raise


def test_each_client_reads_the_notes_that_the_other_has_committed(topics, broker):
    """Of every length, because what lies behind a note in memory depends on it."""
    topic = f"notes-{time.time_ns()}"
    notes = ["", *("é" * length for length in range(1, 24)), *("1:" + "7" * length for length in range(1, 24))]
    topic = topics.create(topic, len(notes))
    backends = {
        client: backend_of(
            Settings(kafka={"client": client, "bootstrap_servers": broker.bootstrap}, group=GroupSettings(topic))
        )
        for client in ("librdkafka", "kafka-python")
    }
    offsets = {(topic, number): Committed(number, note) for number, note in enumerate(notes)}
    for writer, backend in backends.items():
        group = f"{topic}-{writer}"
        commit_soon(backend, group, offsets)
        for reader in backends.values():
            with reader.open(group, lambda: False, str) as log:
                assert log.committed(topic) == {number: offsets[topic, number] for number in range(len(notes))}


def native_threads():
    """The threads of librdkafka, by their numbers; none where the system does not list them."""
    found = set()
    for task in Path("/proc/self/task").glob("*"):
        with suppress(FileNotFoundError, ProcessLookupError):  # of a thread that ends meanwhile
            if (task / "comm").read_text().startswith("rdk"):
                found.add(task.name)
    return found


class Reading:
    """Reads each partition that it is given from its first record."""

    def __init__(self, log, topic):
        self.log, self.topic, self.n_given = log, topic, 0

    def assigned(self, partitions):
        self.n_given += len(partitions)
        self.log.committed(self.topic, partitions)
        for number in partitions:
            self.log.seek(self.topic, number, self.log.start_offsets(self.topic)[number])

    def revoked(self, partitions):
        pass

    lost = revoked


def test_no_client_of_librdkafka_is_left_to_the_collector_of_garbage(topics, broker):
    """It may run on a thread of librdkafka's, which ends the process if a client is destroyed there."""
    topic, before = topics.create("clients"), native_threads()
    topics.produce(topic, some_stream(20)[0])
    kafka = {"client": "librdkafka", "bootstrap_servers": broker.bootstrap}
    backend = backend_of(Settings(kafka=kafka, group=GroupSettings(topic)))
    gc.disable()
    try:
        assert backend.describe([topic, f"{topic}-absent"]).keys() == {topic}
        backend.create(backend.describe([topic]), None)
        backend.search(topic, [0], 0)
        backend.trim(topic, 0, 1)
        commit_soon(backend, topic, {(topic, 0): Committed(1, "")})
        backend.group_state(topic)
        with backend.open(topic, lambda: False, str) as log:
            reading = Reading(log, topic)
            log.subscribe(topic, reading)
            patience = Patience(WAIT_SECONDS)
            while not reading.n_given or log.position(topic, 0) < 20:
                assert patience.lasts
                log.poll(0.1, 100)
            log.produce(topic, b"{}")
            log.flush()
            assert native_threads() > before
        del log, reading
        assert native_threads() <= before
    finally:
        gc.enable()


def test_labels_go_out_to_their_end_and_come_back(topics, app, call, tmp_path):
    path, prefix = app
    assert call("topics", path, "--create", "--partitions", 2, "--replication", 1)[0] == 0
    for number in (0, 1):
        events = [(b"key-%d" % number, json.dumps({"id": 10 * i + number, "x": {"a": i}}).encode()) for i in range(30)]
        topics.produce(f"{prefix}-events", events, partition=number)
    labels = [(b"key-1", json.dumps({"id": 10 * i + 1, "y": i > 9, "rev": 5}).encode()) for i in range(20)]
    topics.produce(f"{prefix}-labels", labels, partition=1)
    (tmp_path / "fix.csv").write_text("id,y\n11,1\n30,0\n")
    assert call("produce", tmp_path / "fix.csv", "--config", path, "--labels")[0] == 0
    assert call("run", path)[0] == 0

    out = tmp_path / "labels.csv"
    assert call("labels", path, "--out", out) == (0, [f"wrote 21 labels to {out}"])
    with open(out, newline="") as file:
        found = {row["id"]: row for row in csv.DictReader(file)}
    assert (found["11"]["y"], found["11"]["partition"], found["11"]["rev"]) == ("1", "1", "5")
    assert (found["30"]["y"], found["30"]["partition"]) == ("0", "0")
    assert found["11"]["margin"] == "0.0"  # of the topic of predictions
    assert call("produce", out, "--config", path, "--labels")[0] == 0
    assert call("labels", path, "--out", out, "--history") == (0, [f"wrote 43 answers to {out}"])


# --- the example that needs a broker ----------------------------------------------------------------------------------


def test_the_round_ends_with_a_prediction(broker, tmp_path):
    environment = {**os.environ, "STREAMSVM_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap}
    script = [sys.executable, str(EXAMPLE)]
    answer = subprocess.run(script, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=300)
    assert answer.returncode == 0, answer.stderr
    assert "predicted 1000 events" in answer.stdout
    assert '"label"' in answer.stdout.splitlines()[-1]
