"""What the tests against a real broker share: the broker, and topics on it.

STREAMSVM_TEST_BOOTSTRAP=host:port runs them against a broker that is there already, save those that stop theirs or need
its other listeners.
"""

import itertools
import os
import time
from types import SimpleNamespace

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from patience import Patience

from .app import App
from .broker import Broker, why_impossible

EXTERNAL = os.environ.get("STREAMSVM_TEST_BOOTSTRAP")
READ_SECONDS = 120
numbers = itertools.count()


class Topics:
    """Makes topics, fills them and reads them.

    Parameters
    ----------
    bootstrap : str
        Address of the broker.
    """

    def __init__(self, bootstrap):
        self.bootstrap = bootstrap
        self.watcher = None
        # A broker that was restarted is found again at once; one refused record does not spoil all that come after it.
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap, reconnect_backoff_max_ms=500)
        self.producer = KafkaProducer(
            bootstrap_servers=bootstrap, reconnect_backoff_max_ms=500, enable_idempotence=False
        )

    def create(self, name="topic", partitions=1, **configs):
        """Name of a new topic; cleanup_policy="compact" sets cleanup.policy."""
        topic = f"{name}-{os.getpid()}-{time.time_ns()}-{next(numbers)}"
        configs = {key.replace("_", "."): str(value) for key, value in configs.items()}
        options = {"num_partitions": partitions, "replication_factor": 1, "configs": configs}
        self.admin.create_topics({topic: options}, wait_for_metadata=True)
        return topic

    def produce(self, topic, records, partition=None):
        """Offsets of records given as (key, value, headers, timestamp_ms), of which the last two may be left out."""
        sent = []
        for key, value, *rest in records:
            headers, timestamp = (*rest, None, None)[:2]
            sent.append(self.producer.send(topic, value, key, headers or [], partition, timestamp))
        self.producer.flush(READ_SECONDS)
        return [future.get(READ_SECONDS).offset for future in sent]

    def read_all(self, topic, partitions=None, **settings):
        """Records that are in the topic now, by partition and offset; settings are of KafkaConsumer."""
        with KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False, **settings) as consumer:
            numbers = consumer.partitions_for_topic(topic) if partitions is None else partitions
            wanted = [TopicPartition(topic, number) for number in sorted(numbers)]
            consumer.assign(wanted)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(wanted)
            records = []
            patience = Patience(READ_SECONDS)
            # The position also passes what no record is at: the ends of transactions, the holes of compaction.
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                assert patience.lasts, f"{topic} could not be read up to {ends}"
                for partition, batch in consumer.poll(timeout_ms=200).items():
                    records += [record for record in batch if record.offset < ends[partition]]
        return sorted(records, key=lambda record: (record.partition, record.offset))

    def end(self, topic):
        """The offset after the last record of a topic's first partition, committed or not."""
        if self.watcher is None:
            self.watcher = KafkaConsumer(bootstrap_servers=self.bootstrap, enable_auto_commit=False)
        return self.watcher.end_offsets([TopicPartition(topic, 0)])[TopicPartition(topic, 0)]

    def close(self):
        if self.watcher is not None:
            self.watcher.close()
        self.producer.close(timeout=5)
        self.admin.close()


@pytest.fixture(scope="session")
def runnable():
    """Skips where no broker can be started, and fails there in continuous integration."""
    reason = why_impossible()
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def broker(request, tmp_path_factory):
    """The broker of all tests: nobody stops it. An external one has nothing but `bootstrap`."""
    if EXTERNAL:
        yield SimpleNamespace(bootstrap=EXTERNAL)
        return
    request.getfixturevalue("runnable")
    broker = Broker(tmp_path_factory.mktemp("broker"))
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture
def secure_broker(broker):
    """The same, where its SASL and TLS listeners are needed as well."""
    if EXTERNAL:
        pytest.skip("STREAMSVM_TEST_BOOTSTRAP names the plain listener only")
    return broker


@pytest.fixture
def private_broker(request, tmp_path):
    """A broker of this test alone, which it may stop, kill and start."""
    if EXTERNAL:
        pytest.skip("STREAMSVM_TEST_BOOTSTRAP names a broker that is not ours to stop")
    request.getfixturevalue("runnable")
    broker = Broker(tmp_path / "broker")
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture
def topics_of():
    """Topics of a broker given by its address; their connections end with the test."""
    opened = []

    def connect(bootstrap):
        opened.append(Topics(bootstrap))
        return opened[-1]

    yield connect
    for topics in opened:
        topics.close()


@pytest.fixture
def topics(broker, topics_of):
    """Topics of the broker that all tests share."""
    return topics_of(broker.bootstrap)


CLIENT = os.environ.get("STREAMSVM_TEST_CLIENT", "kafka-python")
BOTH = pytest.mark.parametrize("client", ["kafka-python", "librdkafka"], indirect=True)


@pytest.fixture
def client(request):
    """The library under test, as kafka.client: both for a test marked with `BOTH`, otherwise STREAMSVM_TEST_CLIENT."""
    return getattr(request, "param", CLIENT)


@pytest.fixture
def start_app(request, nursery, tmp_path, client):
    """Makes apps whose processes end with the test."""
    made = []

    def make(name, *, bootstrap=None, kafka=None, begin=nursery.start, **sections):
        address = bootstrap or request.getfixturevalue("broker").bootstrap
        options = {"client": client, "bootstrap_servers": address, **(kafka or {})}
        sections = {
            "model": {"C": 10.0, "gamma": 0.5},
            "group": {"id": f"{tmp_path.name}-{name}"},
            **sections,
            # A machine that is busy may need longer to end a process than users would like; see `Process.stop`.
            "daemon": {"shutdown_seconds": 3600, **sections.get("daemon", {})},
        }
        made.append(App(begin, tmp_path / name, options, **sections))
        return made[-1]

    yield make
    for app in made:
        app.end()
