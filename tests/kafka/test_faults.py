"""What goes wrong around a trainer: brokers that are away, poison, refused credentials, records that are gone."""

import json
import re
import signal
import time
from importlib.util import find_spec

import pytest
from kafka import KafkaProducer, TopicPartition
from nursery import start_fresh
from patience import Patience

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.logs.cluster.outputs import FLUSH_SECONDS

from .app import WAIT_SECONDS, settings_of, some_stream
from .broker import Broker
from .conftest import BOTH, EXTERNAL, READ_SECONDS


@BOTH
def test_a_broker_that_hangs_is_away_for_a_while_and_dies(private_broker, topics_of, start_app):
    topics = topics_of(private_broker.bootstrap)
    log = settings_of(topics, model="")
    events, labels = some_stream(1000)
    app = start_app("outage", bootstrap=private_broker.bootstrap, log=log, daemon={"checkpoint_seconds": 0.5})
    topics.produce(log["topic"], events[:500])
    topics.produce(log["labels"], labels[:500])
    process = app.start()
    process.wait_until(lambda: process.metric("predictions_total") == 500)
    assert process.get("/readyz")[0] == 200

    private_broker.process.send_signal(signal.SIGSTOP)  # It still accepts connections, as the kernel does for it.
    try:
        process.wait_until(lambda: process.get("/readyz")[0] == 503)
        assert "accepts connections and does not answer" in process.get("/readyz")[1]
        assert process.get("/healthz")[0] == 200
    finally:
        private_broker.process.send_signal(signal.SIGCONT)
    process.wait_until(lambda: process.get("/readyz")[0] == 200)

    private_broker.stop()
    process.wait_until(lambda: process.get("/readyz") == (503, f"no broker answers at {private_broker.bootstrap}\n"))
    assert process.get("/healthz")[0] == 200
    time.sleep(FLUSH_SECONDS + 1)  # An attempt to write has failed meanwhile.
    private_broker.start()
    again = topics_of(private_broker.bootstrap)
    again.produce(log["topic"], events[500:])
    again.produce(log["labels"], labels[500:])
    process.wait_until(lambda: process.metric("predictions_total") == 1000)
    process.wait_until(lambda: process.get("/readyz")[0] == 200)
    assert process.stop() == 0
    ids = [json.loads(record.value)["id"] for record in again.read_all(log["predictions"])]
    assert set(ids) == {f"id-{i}" for i in range(1000)}

    again.produce(log["topic"], some_stream(500, seed=1)[0])
    process = app.start("daemon.shutdown_seconds=20")
    process.wait_until(lambda: process.metric("predictions_total") == 500)
    private_broker.kill()
    process.signal(signal.SIGTERM)
    assert process.wait(40) in (0, 70, 75), process.said  # 20 seconds, and some more


def test_no_broker_at_the_start(runnable, tmp_path, topics_of, start_app):
    if EXTERNAL:
        pytest.skip("STREAMSVM_TEST_BOOTSTRAP names a broker that is there")
    broker = Broker(tmp_path / "broker")
    app = start_app("early", bootstrap=broker.bootstrap, log={"topic": "events"}, daemon={"start": "earliest"})
    process = app.start()
    process.wait_until(lambda: process.get("/readyz") == (503, f"no broker answers at {broker.bootstrap}\n"))
    process.wait_for("no broker answers at .*; waiting for it")
    assert process.said.count("no broker answers") == 1
    broker.start()
    try:
        code = process.wait()  # there is one now, but no topic
        assert code == 4, process.said
        assert "there is no topic 'events'" in process.said
    finally:
        broker.stop()


def test_nobody_waits_for_a_broker_after_sigterm(start_app):
    process = start_app("impatient", bootstrap="127.0.0.1:1", log={"topic": "events"}).start()
    process.wait_for("waiting for it")
    assert process.stop() == 0


# --- poison -----------------------------------------------------------------------------------------------------------

POISON = [
    ("not-utf8", b'{"id": "\xff\xfe", "x": {"a": 1, "b": 2, "c": 3}}'),
    ("not-json", b'{"id": "nan", "x": {"a": NaN, "b": 2, "c": 3}}'),
    ("bad-features", b'{"id": "narrow", "x": {"a": 1}}'),
    ("too-large", b'{"id": "' + b"x" * (5 << 20) + b'", "x": {"a": 1, "b": 2, "c": 3}}'),
    ("", None),  # a tombstone, which is passed over
    ("not-json", b'{"id": "deep", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    ("missing-field", b'{"x": {"a": 1, "b": 2, "c": 3}}'),
]


def test_poison_goes_aside_with_its_bytes_and_a_reason(topics, start_app):
    log = settings_of(topics, labels="", model="", topic=topics.create("events", max_message_bytes=10 << 20))
    events, _ = some_stream(300)
    with KafkaProducer(bootstrap_servers=topics.bootstrap, max_request_size=10 << 20) as producer:
        for i, (key, value, *_) in enumerate(events):
            producer.send(log["topic"], value, key)
            if i % 40 == 20 and i // 40 < len(POISON):
                producer.send(log["topic"], POISON[i // 40][1], b"poison", [("trace", b"1")])
        producer.flush(READ_SECONDS)
    app = start_app("poison", log=log, features={"names": ["a", "b", "c"]})
    app.run("daemon.follow=false")
    refused = topics.read_all(log["dlq"], max_partition_fetch_bytes=10 << 20)
    headers = [{name: value.decode() for name, value in record.headers} for record in refused]
    bad = [(reason, value, 21 + 41 * i) for i, (reason, value) in enumerate(POISON) if value is not None]
    assert [(h["sv-dlq-reason"], int(h["sv-dlq-offset"])) for h in headers] == [(why, offset) for why, _, offset in bad]
    for record, (_, value, _) in zip(refused, bad, strict=True):
        assert record.value == (value if len(value) <= 512 << 10 else value[: 64 << 10])
    shortened = {reason for reason, value, _ in bad if len(value) > 512 << 10}
    assert {h["sv-dlq-reason"] for h in headers if "sv-dlq-sha256" in h} == shortened == {"too-large"}
    assert {record.key for record in refused} == {b"poison"}
    assert all(h["trace"] == "1" and h["sv-dlq-topic"] == log["topic"] for h in headers)
    assert len(topics.read_all(log["predictions"])) == len(events)


def test_a_record_that_was_small_on_its_way_is_no_end_of_the_trainer(topics, start_app):
    """17.5 MB of blanks, which gzip makes small enough for a broker and topics with default limits."""
    log = settings_of(topics, labels="", model="", dlq=topics.create("dlq"))
    events, _ = some_stream(100)
    bombs = {20: {"value": b" " * 17_500_000}, 60: {"key": b" " * 17_500_000, "value": b"{}"}}
    bombs[80] = {"value": b"{}", "headers": [("name", b" " * 17_500_000)]}
    with KafkaProducer(
        bootstrap_servers=topics.bootstrap, max_request_size=20 << 20, compression_type="gzip", linger_ms=0
    ) as producer:
        for i, (key, value, *_) in enumerate(events):
            producer.send(log["topic"], value, key)
            if i in bombs:
                producer.flush(READ_SECONDS)
                producer.send(log["topic"], **bombs[i])
                producer.flush(READ_SECONDS)
        producer.flush(READ_SECONDS)
    app = start_app("blanks", log=log)
    app.run("daemon.follow=false")
    refused = topics.read_all(log["dlq"])
    headers = [{name: value.decode() for name, value in record.headers} for record in refused]
    assert [(h["sv-dlq-offset"], h["sv-dlq-bytes"]) for h in headers] == [("21", "17500000"), ("62", "2"), ("83", "2")]
    assert len(topics.read_all(log["predictions"])) == len(events)


def test_too_much_poison_stops_the_trainer(topics, start_app):
    log = settings_of(topics, labels="", model="")
    topics.produce(log["topic"], [(None, b"poison")] * 200)
    process = start_app("breaker", log=log, daemon={"max_bad": 0.1}, model={"scaling": "none"}).start()
    assert process.wait() == 4
    assert "101 of the last 101 records are bad" in process.said


def test_a_topic_of_dead_letters_that_is_deleted(topics, start_app):
    log = settings_of(topics, labels="", model="")
    topics.produce(log["topic"], some_stream(200)[0])
    process = start_app("aside", log=log, daemon={"checkpoint_seconds": 1.0}).start()
    process.wait_until(lambda: process.metric("predictions_total") == 200)
    topics.produce(log["topic"], [(None, b"poison")])
    process.wait_until(lambda: len(topics.read_all(log["dlq"])) == 1)
    topics.admin.delete_topics([log["dlq"]])
    patience = Patience(WAIT_SECONDS)
    while process.is_alive and patience.lasts:  # the broker may take a letter while it still deletes the topic
        time.sleep(1)
        topics.produce(log["topic"], [(None, b"poison")])
    assert process.wait() == 4, process.said
    assert f"topic '{log['dlq']}' was deleted while we wrote to it" in process.said
    assert "Traceback" not in process.said


# --- credentials ------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("security", ["sasl", "tls"])
def test_a_secure_broker(secure_broker, topics, start_app, security, tmp_path):
    log = settings_of(topics, labels="", model="")
    topics.produce(log["topic"], some_stream(100)[0])
    options = dict(getattr(secure_broker, security))
    if security == "sasl":
        (tmp_path / "sasl").mkdir()
        (tmp_path / "sasl" / "secret").write_text(options.pop("sasl_plain_password") + "\n")
        options["sasl_plain_password_file"] = "secret"  # noqa: S105 - the file's name
    app = start_app(security, log=log, kafka=options)
    app.run("daemon.follow=false")
    assert len(topics.read_all(log["predictions"])) == 100


@BOTH
def test_a_wrong_password_ends_it_at_once(secure_broker, start_app):
    options = {**secure_broker.sasl, "sasl_plain_password": "wrong"}
    app = start_app("wrong", log={"topic": "events"}, kafka=options)
    process = app.start()
    assert process.wait() == 3, process.said
    assert "the broker refuses us" in process.said
    assert "wrong" not in process.said
    assert len(process.said.splitlines()) < 10


@BOTH
def test_an_unknown_authority_ends_it_at_once(secure_broker, start_app, client):
    options = {key: value for key, value in secure_broker.tls.items() if key != "ssl_cafile"}
    process = start_app("authority", log={"topic": "events"}, kafka=options).start()
    assert process.wait() == 3, process.said
    assert re.search("certificate.verify.failed", process.said, re.IGNORECASE)


# --- records that cannot be read --------------------------------------------------------------------------------------


def test_a_compression_that_is_not_installed_ends_it_at_once(topics, start_app, client, tmp_path, monkeypatch, capsys):
    if client == "librdkafka":
        pytest.skip("librdkafka brings every compression")
    (tmp_path / "snappy.py").write_text("raise ImportError")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    log = settings_of(topics, labels="", model="", topic=topics.create("events", compression_type="snappy"))
    topics.produce(log["topic"], some_stream(100)[0])
    app = start_app("codec", begin=start_fresh, log=log)
    process = app.start()
    assert process.wait() == 4, process.said
    assert "snappy" in process.said.splitlines()[-1]
    assert "pip install 'streamsvm[codecs]'" in process.said.splitlines()[-1]
    if find_spec("snappy") is None:
        assert main(["doctor", str(app.config)]) == 1
        assert "snappy" in capsys.readouterr().out


# --- partitions that are new ------------------------------------------------------------------------------------------

QUICK = {"metadata_max_age_ms": 1000}  # new partitions, and deleted topics, are heard of at once


def test_partitions_that_only_the_events_have_stop_the_trainer(topics, start_app):
    log = settings_of(topics, labels="", model="")
    events, _ = some_stream(100)
    topics.produce(log["topic"], events)
    app = start_app("wider", log=log, kafka=QUICK)
    process = app.start()
    process.wait_until(lambda: process.metric("predictions_total") == 100)
    topics.admin.create_partitions({log["topic"]: 2})
    assert process.wait() == 4, process.said
    expected = f"topic '{log['predictions']}' has 1 partition, but '{log['topic']}' has 2: give it as many"
    assert expected in process.said
    assert "Traceback" not in process.said


def test_partitions_that_all_topics_get_are_read(topics, topics_of, start_app):
    log = settings_of(topics, model="")
    events, _ = some_stream(300)
    topics.produce(log["topic"], events[:100])
    app = start_app("all", log=log, kafka=QUICK)
    process = app.start()
    process.wait_until(lambda: process.metric("predictions_total") == 100)
    for name in ("predictions", "labels", "topic"):
        topics.admin.create_partitions({log[name]: 2})
    process.wait_for(r"assigned partitions \[1\]", 60)
    topics_of(topics.bootstrap).produce(log["topic"], events[100:], partition=1)
    process.wait_until(lambda: process.metric("predictions_total") == 300)
    assert "has 2 partitions now" in process.said
    assert process.stop() == 0, process.said
    app.run("daemon.follow=false")


# --- open and aborted transactions ------------------------------------------------------------------------------------


@BOTH
def test_an_open_transaction_upstream_is_waited_for_and_an_aborted_one_never_was(topics, start_app):
    """What comes after the beginning of an open transaction cannot be read; everything before it must be."""
    log = settings_of(topics, labels="", model="")
    values = [value for _, value, *_ in some_stream(300)[0]]
    app = start_app("open", log=log)
    options = {"transactional_id": log["topic"], "transaction_timeout_ms": 600_000}
    with KafkaProducer(bootstrap_servers=topics.bootstrap, **options) as producer:

        def send(some):
            producer.begin_transaction()
            for value in some:
                producer.send(log["topic"], value)
            producer.flush(READ_SECONDS)

        producer.init_transactions()
        send(values[:50])
        producer.abort_transaction()
        topics.produce(log["topic"], [(None, value) for value in values[50:150]])
        send(values[150:200])
        topics.produce(log["topic"], [(None, value) for value in values[200:]])
        process = app.start()
        process.wait_until(lambda: process.metric("predictions_total") == 100)
        process.wait_until(lambda: process.metric("lag_records") == 0)
        assert process.get("/readyz")[0] == 200
        app.run("daemon.follow=false", f"group.id={log['topic']}-other", "daemon.state_dir=other")
        assert len(topics.read_all(log["predictions"])) == 200  # it ends where it can read no further
        producer.commit_transaction()
    process.wait_until(lambda: process.metric("predictions_total") == 250)
    ids = [json.loads(record.value)["id"] for record in topics.read_all(log["predictions"])]
    assert "id-0" not in ids


# --- records that are gone --------------------------------------------------------------------------------------------


@BOTH
def test_records_removed_before_they_were_read(topics, start_app):
    log = settings_of(topics, labels="", model="")
    events, _ = some_stream(1000)
    topics.produce(log["topic"], events[:400])
    app = start_app("gone", log=log)
    app.run("daemon.follow=false")
    topics.produce(log["topic"], events[400:])
    topics.admin.delete_records({TopicPartition(log["topic"], 0): 700})
    process = app.start("daemon.follow=false")
    assert process.wait() == 4
    assert "begins at offset 700, but offset 400 is next: 300 records were removed" in process.said
    process = app.start("daemon.on_data_loss=skip")
    process.wait_until(lambda: process.metric("predictions_total") == 300)
    assert process.metric("lost_records_total") == 300


def make_again(topics, topic, n_partitions=1):
    topics.admin.delete_topics([topic])
    time.sleep(1)
    topics.admin.create_topics({topic: {"num_partitions": n_partitions, "replication_factor": 1}})


@pytest.mark.parametrize("n_new", [0, 250])
@pytest.mark.parametrize("which", ["topic", "labels"])
def test_a_topic_that_was_made_again(topics, topics_of, start_app, which, n_new):
    """Its offsets may be those of the old one, so only its id tells."""
    log = settings_of(topics, model="")
    events, labels = some_stream(300)
    topics.produce(log["topic"], events[:100])
    topics.produce(log["labels"], labels[:100])
    app = start_app("new", log=log)
    app.run("daemon.follow=false")
    make_again(topics, log[which])
    if n_new:
        topics_of(topics.bootstrap).produce(log[which], {"topic": events, "labels": labels}[which][:n_new])
    process = app.start("daemon.follow=false")
    assert process.wait() == 4
    assert f"topic '{log[which]}' was deleted and made again" in process.said


@BOTH
def test_a_topic_that_is_made_again_while_it_is_read(topics, topics_of, start_app):
    log = settings_of(topics, labels="", model="")
    events, _ = some_stream(400)
    topics.produce(log["topic"], events[:100])
    process = start_app("remade", log=log).start()
    process.wait_until(lambda: process.metric("predictions_total") == 100)
    make_again(topics, log["topic"])
    topics_of(topics.bootstrap).produce(log["topic"], events)
    assert process.wait() == 4, process.said
    # The reader finds another id of the topic, or its end before our offset: whichever it asks for first.
    assert "deleted and made again" in process.said
    assert len(topics.read_all(log["predictions"])) == 100


@BOTH
def test_a_topic_that_is_deleted_while_it_is_read(topics, start_app, client):
    log = settings_of(topics, labels="", model="")
    topics.produce(log["topic"], some_stream(100)[0])
    kafka = QUICK if client == "kafka-python" else {}  # Then the group hears of it first, and takes the partition.
    process = start_app("deleted", log=log, kafka=kafka).start()
    process.wait_until(lambda: process.metric("predictions_total") == 100)
    topics.admin.delete_topics([log["topic"]])
    assert process.wait() == 4, process.said
    assert "was deleted while we read it" in process.said
