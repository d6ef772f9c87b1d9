"""What can be said of the Kafka client without a broker; everything else is in tests/kafka."""

import re
import socket
from types import SimpleNamespace

import pytest
from kafka.errors import (
    CommitFailedError,
    CorruptRecordError,
    KafkaConnectionError,
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    RecordListTooLargeError,
    TopicAuthorizationFailedError,
    UnsupportedCodecError,
)
from kafka.future import Future
from kafka.net.transport import KafkaSSLTransport, KafkaTCPTransport

from streamsvm.connectors.logs.cluster.group import Notice
from streamsvm.connectors.logs.cluster.log import Client, ClusterLog
from streamsvm.connectors.logs.cluster.options import KafkaOptions, answers
from streamsvm.connectors.logs.kafka import checks, client, outputs
from streamsvm.connectors.logs.kafka.errors import translated
from streamsvm.connectors.logs.kafka.options import CODECS
from streamsvm.connectors.logs.kafka.reader import Reader
from streamsvm.connectors.logs.transport import AccessDenied, Committed, OutputsLost, TopicMismatch, Unavailable
from streamsvm.connectors.settings.kafka_section import read_section
from streamsvm.connectors.settings.layers import Given
from streamsvm.connectors.settings.opening import backend_of
from streamsvm.connectors.settings.sections import GroupSettings, Settings


class Net:
    """The client's event loop as far as one transport that reads needs it; it never waits."""

    def call_soon(self, task):
        self.task = task

    async def wait_read(self, sock):
        pass

    def unregister_event(self, sock, events):
        pass

    def cancel(self, task):
        pass


class Protocol:
    """Notes what the transport hands on."""

    _sensors = None

    def __init__(self):
        self.heard = []

    def data_received(self, data):
        self.heard.append(data)

    def connection_lost(self, error):
        self.heard.append(type(error))


class NoEncryption:
    """A context of TLS that leaves the socket as it is."""

    def wrap_socket(self, sock, **_):
        return sock


TRANSPORTS = {"tcp": KafkaTCPTransport, "tls": lambda *args: KafkaSSLTransport(*args, ssl_context=NoEncryption())}


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("said", [b"", b"wrong password", b"long " * 5000], ids=len)
def test_what_a_broker_says_before_it_closes_is_heard(kind, said):
    """The client reads the words and the end at once, and left alone would throw the words away."""
    assert client  # which has mended the client's transports
    ours, brokers = socket.socketpair()
    ours.setblocking(False)
    brokers.sendall(said)
    brokers.close()
    net, protocol = Net(), Protocol()
    transport = TRANSPORTS[kind](net, ours)
    transport.set_protocol(protocol)
    transport.resume_reading()
    with pytest.raises(StopIteration):  # no event loop: a browser's test may have left its own running
        net.task().send(None)
    assert protocol.heard == ([said] if said else []) + [KafkaConnectionError]
    assert transport.is_closing()


# --- who we are -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "who", "protocol"),
    [
        ({}, "without a user", "PLAINTEXT"),
        ({"sasl_plain_username": "u"}, "without a user", "PLAINTEXT"),  # nobody would ask
        ({"security_protocol": "SSL"}, "without a user", "SSL"),
        ({"security_protocol": "SSL", "ssl_certfile": "x"}, "with a certificate", "SSL"),
        ({"security_protocol": "SASL_SSL", "sasl_plain_username": "u"}, "as 'u'", "SASL_SSL"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "GSSAPI"}, "by GSSAPI", "SASL_SSL"),
    ],
)
def test_doctor_names_a_user_only_if_the_broker_has_asked_for_one(options, who, protocol):
    settings = Settings(kafka={"bootstrap_servers": "a:1", **options})
    (finding, *_) = backend_of(settings).connected(0.01)
    assert (finding.level, finding.text) == ("ok", f"connected to a:1 {who}, {protocol}, in 10 ms")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"},
            "the password and all records are readable",
        ),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}, "all records are readable"),
        ({"security_protocol": "SSL", "ssl_check_hostname": False}, "any certificate of the authority passes"),
    ],
)
def test_doctor_warns_of_what_is_not_secure(options, said):
    (_, finding) = backend_of(Settings(kafka=options)).connected(0.01)
    assert finding.level == "warning"
    assert finding.text.startswith(said)


def given_options(**values):
    options = {"bootstrap_servers": "a:1", **values}
    return {key: Given("kafka", key, value, "a file", is_text=False) for key, value in options.items()}


def test_a_codec_that_is_missing_is_no_outage():
    with pytest.raises(TopicMismatch, match=r"snappy.*pip install 'streamsvm\[codecs\]'"), translated():
        raise UnsupportedCodecError("Libraries for snappy compression codec not found")


@pytest.mark.parametrize("codec", CODECS)
def test_a_codec_to_write_with_has_to_be_installed(monkeypatch, codec):
    given = given_options(compression_type=codec)
    for is_there in (True, False):
        monkeypatch.setattr(checks, "find_spec", lambda _, is_there=is_there: is_there or None)
        _, problems = read_section(given, Settings())
        assert problems == ([] if is_there else [
            f"kafka.compression_type = {codec!r} needs a package that is not installed: pip install 'streamsvm[codecs]'"
        ])  # fmt: skip


def test_a_named_member_has_a_shorter_session():
    given = given_options(heartbeat_interval_ms=15_000)
    assert read_section(given, Settings())[1] == []
    (problem,) = read_section(given, Settings(group=GroupSettings(instance="host-1")))[1]
    assert problem.startswith("kafka.heartbeat_interval_ms = 15000 must be less than kafka.session_timeout_ms = 10000")


def test_what_is_behind_a_proxy_is_not_looked_for_from_here():
    options = {"bootstrap_servers": "nowhere.invalid:1"}
    assert not answers(options)
    assert answers({**options, "proxy_url": "socks5://127.0.0.1:1"})


# --- transactions and the group ---------------------------------------------------------------------------------------


class Consumer:
    """Knows two partitions, and reads none."""

    def close(self, **_):
        pass

    def assignment(self):
        return set()

    def partitions_for_topic(self, topic):
        return {0, 1}


class Member:
    """A member of the group, as `ClusterLog` asks it."""

    topic = "events"

    def __init__(self):
        self.generation = 3
        self.is_losing = False
        self.notices = []

    def metadata(self):
        return None if self.generation < 0 else SimpleNamespace(generation_id=self.generation)

    def start(self):
        pass

    def close(self):
        pass

    def news(self):
        found, self.notices = self.notices, []
        return found


class Producer:
    """Notes what is asked of it; the group may refuse the offsets, with these words."""

    def __init__(self):
        self.calls = []
        self.refusal = None
        self._transaction_manager = SimpleNamespace(_pending_txn_offset_commits={})

    def init_transactions(self):
        pass

    def send(self, *_, **__):
        return Future()

    def begin_transaction(self):
        self.calls.append("begin")

    def send_offsets_to_transaction(self, offsets, membership):
        pending = self._transaction_manager._pending_txn_offset_commits  # as the client keeps them
        pending |= offsets
        if self.refusal:
            raise CommitFailedError(self.refusal)
        self.calls.append(("offsets", sorted(tp.partition for tp in pending), membership.generation_id))
        pending.clear()

    def commit_transaction(self):
        self.calls.append("commit")

    def abort_transaction(self):
        self.calls.append("abort")

    def close(self, timeout):
        self.calls.append("close")


class Owner:
    """Notes what it is told, unless it cannot do anything about it now."""

    def __init__(self):
        self.told = []
        self.failure = None

    def __getattr__(self, name):
        def hear(partitions):
            if self.failure:
                raise self.failure
            self.told.append((name, partitions))

        return hear


@pytest.fixture
def member():
    return Member()


@pytest.fixture
def producer():
    return Producer()


@pytest.fixture
def owner():
    return Owner()


@pytest.fixture
def produce_with(monkeypatch):
    """Lets outputs produce with this producer."""

    def produce_with(producer):
        monkeypatch.setattr(outputs, "client_options", lambda *_: {})
        monkeypatch.setattr(outputs, "KafkaProducer", lambda **_: producer)

    return produce_with


@pytest.fixture
def log(monkeypatch, member, producer, owner, produce_with):
    """A log in the middle of a transaction about partitions 0 and 1."""
    monkeypatch.setattr(Reader, "_new_consumer", lambda _: Consumer())
    produce_with(producer)
    client = Client(Reader, outputs.Outputs, lambda *_: member, describe=None)
    log = ClusterLog(KafkaOptions({"bootstrap_servers": "x:1"}, "group", is_transactional=True), client)
    log.subscribe("events", owner)
    member.notices = [Notice("assigned", [0, 1])]
    log.poll(0, 1)
    log.produce("predictions", b"x")
    producer.calls.clear()
    owner.told.clear()
    return log


OFFSETS = {("events", 0): Committed(5, "1:2"), ("events", 1): Committed(7, "1:2")}


def test_offsets_that_the_group_has_refused_are_not_committed_with_the_next_ones(log, producer, owner):
    """The owner has rolled back to the checkpoint before, and removed the one that these offsets name."""
    producer.refusal = "of a generation that is over"
    assert not log.commit(OFFSETS)
    producer.refusal = None
    log.poll(0, 1)  # The owner is told.
    assert log.commit({("events", 0): Committed(5, "1:3")})
    assert producer.calls == ["abort", "begin", ("offsets", [0], 3), "commit"]


def test_a_transaction_ends_with_the_offsets_of_its_generation(log, producer):
    assert log.can_commit()
    assert log.commit(OFFSETS)
    assert producer.calls == [("offsets", [0, 1], 3), "commit"]
    assert log.commit({})  # there is nothing to end any more
    assert producer.calls[2:] == []


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        ("IllegalGenerationError", [("lost", [0, 1]), ("assigned", [0, 1])]),
        ("UnknownMemberIdError", [("lost", [0, 1])]),  # what it gets anew, the group will tell
    ],
)
def test_a_transaction_of_a_generation_that_is_over_is_aborted_and_begun_again(log, producer, owner, refusal, told):
    producer.refusal = refusal
    assert not log.commit(OFFSETS)
    assert producer.calls == ["abort"]
    assert not log.can_commit()  # whatever was consumed since belongs to nobody
    log.poll(0, 1)
    assert owner.told == told
    assert log.can_commit()


def test_offsets_that_are_not_known_yet_say_why(log, monkeypatch):
    def committed(reader, topic, partitions):
        raise Unavailable("NoBrokersAvailable")

    monkeypatch.setattr(Reader, "committed", committed)
    with pytest.raises(Unavailable, match=r"'group' for topic 'events' are not known yet \(NoBrokersAvailable\)"):
        log.committed("events")


@pytest.mark.parametrize("how", ["lost", "untold", "no generation"])
def test_partitions_that_are_lost_already_are_committed_no_more(log, member, producer, owner, how):
    """The group may have let the member in again, and would believe it."""
    if how == "lost":
        member.is_losing = True
    elif how == "untold":
        member.notices, owner.failure = [Notice("lost", [0, 1])], Unavailable("not now")
        with pytest.raises(Unavailable):
            log.poll(0, 1)
    else:
        member.generation = -1
    assert not log.can_commit()
    assert not log.commit(OFFSETS)
    assert producer.calls == []


def test_an_unfinished_transaction_ends_with_the_log(log, producer):
    log.close()
    assert producer.calls == ["abort", "close"]


def test_losing_everything_aborts_the_transaction(log, member, producer, owner):
    member.notices = [Notice("lost", [0, 1]), Notice("assigned", [1])]
    log.poll(0, 1)
    assert producer.calls == ["abort"]
    assert owner.told == [("lost", [0, 1]), ("assigned", [1])]


@pytest.mark.parametrize(
    ("failure", "expected", "said"),
    [
        (MessageSizeTooLargeError(), TopicMismatch, "a record is larger than topic 'dlq' takes"),
        (RecordListTooLargeError(), TopicMismatch, "raise the topic's max.message.bytes"),
        (TopicAuthorizationFailedError(), AccessDenied, "the broker refuses our records for topic 'dlq'"),
        (CorruptRecordError(), OutputsLost, "the broker refused a record for topic 'dlq'"),
    ],
    ids=lambda value: getattr(value, "__name__", None) or type(value).__name__,
)
def test_the_first_record_that_fails_is_what_a_flush_tells(produce_with, failure, expected, said):
    produce_with(SimpleNamespace(send=lambda *_, **__: Future().failure(failure), flush=lambda timeout: None))
    own = outputs.Outputs(KafkaOptions({}, "group"), lambda now: None, None)
    own.produce("dlq", b"x", key=None, headers=(), partition=None)
    own.produce("events", b"x", key=None, headers=(), partition=None)
    with pytest.raises(expected, match=re.escape(said)):
        own.flush()


def test_a_flush_names_the_broker_that_is_silent(produce_with):
    def flush(timeout):
        raise KafkaTimeoutError

    produce_with(SimpleNamespace(send=lambda *_, **__: Future(), flush=flush))
    own = outputs.Outputs(KafkaOptions({}, "group"), lambda now: "the broker does not answer", None)
    own.produce("events", b"x", key=None, headers=(), partition=None)
    with pytest.raises(Unavailable, match="the broker does not answer"):
        own.flush()
