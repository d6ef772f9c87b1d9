"""The broker that the other tests stand on keeps what it has acknowledged, compacts, retires, and locks its doors."""

import time

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from patience import Patience

from .conftest import READ_SECONDS


def eventually(condition, seconds=READ_SECONDS):
    """Wait until the condition holds; it is tried at least once."""
    patience = Patience(seconds)
    while not condition():
        assert patience.lasts, "did not happen"
        time.sleep(0.2)


def test_what_was_produced_is_read(topics):
    topic = topics.create("events", partitions=2)
    at = int(time.time() * 1000) - 5000  # long ago, it might be retired before it is read
    topics.produce(topic, [(b"k", b"zero", [("h", b"1")], at), (None, b"one")], partition=0)
    assert topics.produce(topic, [(b"k", None)], partition=1) == [0]
    zero, one, removed = topics.read_all(topic)
    assert (zero.key, zero.value, zero.headers, zero.timestamp) == (b"k", b"zero", [("h", b"1")], at)
    assert (one.partition, one.offset, one.key, one.value) == (0, 1, None, b"one")
    assert (removed.partition, removed.key, removed.value) == (1, b"k", None)
    assert topics.read_all(topic, [1]) == [removed]


def test_compaction_leaves_the_last_of_each_key(topics):
    topic = topics.create(
        cleanup_policy="compact", segment_ms=500, min_cleanable_dirty_ratio=0.01, max_compaction_lag_ms=500
    )
    topics.produce(topic, [(b"%d" % (i % 3), b"%d" % i) for i in range(99)])
    time.sleep(0.6)
    topics.produce(topic, [(b"roll", b"")])  # a segment is closed, and can be compacted, when one comes after its time
    eventually(lambda: len(topics.read_all(topic)) == 4)
    assert [record.offset for record in topics.read_all(topic)] == [96, 97, 98, 99]


def test_retention_moves_the_beginning(topics):
    topic = topics.create(retention_ms=500, segment_ms=500)
    topics.produce(topic, [(None, b"old")])
    eventually(lambda: not topics.read_all(topic))
    with KafkaConsumer(bootstrap_servers=topics.bootstrap) as consumer:
        partition = TopicPartition(topic, 0)
        assert consumer.beginning_offsets([partition]) == {partition: 1}


def test_reading_to_the_end_passes_the_marks_of_transactions(broker, topics):
    topic = topics.create()
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=topic) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"aborted")
        producer.flush(READ_SECONDS)
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"committed")
        producer.commit_transaction()
    read = topics.read_all(topic, isolation_level="read_committed")
    assert [record.value for record in read] == [b"committed"]


@pytest.mark.parametrize("door", ["sasl", "tls"])
def test_the_other_listeners_let_in_who_has_the_key(secure_broker, topics, door):
    topic = topics.create()
    with KafkaProducer(**getattr(secure_broker, door)) as producer:
        producer.send(topic, b"x").get(READ_SECONDS)
    assert [record.value for record in topics.read_all(topic)] == [b"x"]
