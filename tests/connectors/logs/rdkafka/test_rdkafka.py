"""What can be said of the client librdkafka without a broker; everything else is in tests/kafka."""

import re
import threading
from concurrent.futures import Future
from typing import ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException

from streamsvm.connectors.logs.cluster.commit_notes import ZERO, to_certain_note, to_metadata, to_note
from streamsvm.connectors.logs.cluster.options import KafkaOptions
from streamsvm.connectors.logs.kafka.options import OPTIONS as KAFKA_PYTHON_OPTIONS
from streamsvm.connectors.logs.rdkafka import client
from streamsvm.connectors.logs.rdkafka import outputs as rdkafka_outputs
from streamsvm.connectors.logs.rdkafka.errors import translated, translated_transaction
from streamsvm.connectors.logs.rdkafka.options import CODECS, FIXED, option_of, right_name, to_client
from streamsvm.connectors.logs.transport import (
    AccessDenied,
    Committed,
    OptionRefused,
    OutputsLost,
    PositionRefused,
    TakenOver,
    TopicMismatch,
    Unavailable,
)
from streamsvm.connectors.settings import kafka_section
from streamsvm.connectors.settings.kafka_section import read_section
from streamsvm.connectors.settings.layers import Given
from streamsvm.connectors.settings.opening import backend_of
from streamsvm.connectors.settings.sections import DaemonSettings, GroupSettings, Settings

SASL = {"security_protocol": "SASL_PLAINTEXT", "sasl_plain_username": "u", "sasl_plain_password": "p"}
OIDC = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauthbearer_method": "oidc",
    "sasl_oauthbearer_client_id": "trainer",
    "sasl_oauthbearer_client_secret": "s3cret",
    "sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/token",
}


def read(settings=None, **values):
    options = {"client": "librdkafka", "bootstrap_servers": "127.0.0.1:1", **values}
    given = {key: Given("kafka", key, value, "a file", is_text=False) for key, value in options.items()}
    return read_section(given, settings or Settings())


# --- options ----------------------------------------------------------------------------------------------------------


def test_librdkafka_tells_what_its_options_take():
    assert option_of("session_timeout_ms").wanted == "a whole number from 1 to 3600000"
    assert option_of("linger_ms").wanted == "a number from 0 to 900000"
    assert option_of("check_crcs").types == (bool,)
    assert option_of("group_protocol").takes("consumer")
    assert not option_of("group_protocol").takes("nobody")
    assert option_of("sasl_oauthbearer_client_secret").takes("12")
    assert not option_of("sasl_oauthbearer_client_secret").takes("")
    for key in ("no_such_option", "error_cb", "default_topic_config", "socket.timeout.ms", "sasl_username", *FIXED):
        assert option_of(key) is None
    assert option_of("session_timeout_ms").takes(2**32 + 1) is False  # librdkafka would take it for 1


def test_the_client_s_name_is_no_option_of_the_client():
    assert to_client({"client": "librdkafka", "linger_ms": 5, "check_crcs": True}) == {
        "linger.ms": 5,
        "check.crcs": "true",
    }


def test_names_of_librdkafka_lead_to_those_of_kafka_python():
    assert right_name("sasl_username") == "sasl_plain_username"
    assert right_name("ssl.ca.location") == "ssl_cafile"
    assert right_name("compression_codec") == "compression_type"
    assert right_name("nonsense") is None
    for key in KAFKA_PYTHON_OPTIONS:
        assert right_name(key) in (key, None), f"{key} means the same with either client, so it keeps its name"


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"linger_ms": 5, "compression_type": "none", "acks": "all", "session_timeout_ms": 6000},
        {"acks": 1},
        {"sasl_mechanism": "SCRAM-SHA-256", **SASL},
        {"security_protocol": "SSL", "ssl_check_hostname": False},
        {"group_protocol": "consumer"},
        OIDC,
    ],
    ids=lambda values: ",".join(values)[:40],
)
@pytest.mark.parametrize("exactly_once", [False, True])
def test_right_options_are_taken(values, exactly_once):
    if exactly_once and "acks" in values and values["acks"] == 1:
        values = {**values, "acks": "all"}
    settings = Settings(daemon=DaemonSettings(exactly_once=exactly_once), group=GroupSettings(instance="a"))
    found, problems = read(settings, **values)
    assert problems == []
    assert found == {"client": "librdkafka", "bootstrap_servers": "127.0.0.1:1", **values}


@pytest.mark.parametrize("codec", CODECS)
def test_all_codecs_are_built_in(codec):
    assert read(compression_type=codec)[1] == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"sasl_username": "u"}, "kafka.sasl_username is no option of librdkafka; it is called 'sasl_plain_username'"),
        ({"linger": 5}, "kafka.linger is no option of librdkafka; did you mean 'linger_ms'?"),
        ({"socks5_proxy": "socks5://a:1"}, "no option of librdkafka; only kafka-python has it"),
        ({"group_id": "x"}, "kafka.group_id cannot be set: it is group.id"),
        ({"partitioner": "random"}, "kafka.partitioner cannot be set: it is always 'murmur2_random'"),
        ({"linger_ms": -1}, "kafka.linger_ms = -1 must be a number from 0 to 900000"),
        ({"security_protocol": "SASL_SLL"}, "did you mean 'SASL_SSL'"),
        ({"sasl_mechanism": "PLAIN"}, "'PLAINTEXT' does not authenticate"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}, "kafka.sasl_plain_username is missing"),
        ({"security_protocol": "SSL", "ssl_cafile": "/none"}, "kafka.ssl_cafile = '/none': there is no such file"),
        ({"heartbeat_interval_ms": 50_000}, "must be less than kafka.session_timeout_ms = 45000"),
        (
            {"group_protocol": "consumer", "session_timeout_ms": 6000},
            "`session.timeout.ms` is not supported for `group.protocol=consumer`",
        ),
        ({**OIDC, "sasl_oauthbearer_method": "default"}, "kafka.sasl_oauthbearer_method = 'oidc' is missing"),
        ({"acks": 1, "enable_idempotence": True}, "kafka.acks = 1 contradicts kafka.enable_idempotence"),
        ({"max_request_size": 5000}, "kafka.max_request_size = 5000 must be at least"),
        ({"reconnect_backoff_ms": 2000}, "kafka: librdkafka refuses these options: "),
        ({"client": "rdkafka"}, "kafka.client = 'rdkafka' must be 'kafka-python' or 'librdkafka'"),
    ],
    ids=lambda value: ",".join(value)[:40] if isinstance(value, dict) else "",
)
def test_wrong_options_are_named_with_what_would_be_right(values, said):
    problems = read(**values)[1]
    assert any(said in problem for problem in problems), problems


def test_an_unusable_certificate_is_named(tmp_path):
    (tmp_path / "ca.pem").write_text("nonsense")
    (problem,) = read(security_protocol="SSL", ssl_cafile=str(tmp_path / "ca.pem"))[1]
    assert problem.startswith("kafka: librdkafka refuses these options: ")
    assert "ssl.ca.location" in problem


def test_secrets_are_not_shown():
    problems = read(sasl_oauthbearer_client_secret=5, sasl_plain_password=7, ssl_key_pem=9)[1]
    assert sum("(not shown)" in problem for problem in problems) == 3


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(kafka_section, "find_spec", lambda name: None)
    (problem,) = read()[1]
    assert problem.endswith("pip install 'streamsvm[librdkafka]'")


def test_options_of_librdkafka_lead_to_it():
    given = {key: Given("kafka", key, "consumer", "a file", is_text=False) for key in ("group_protocol",)}
    problem = read_section(given, Settings())[1][0]
    assert problem == (
        "a file: kafka.group_protocol is no option of kafka-python; librdkafka has it: set kafka.client = 'librdkafka'"
    )


def test_the_backend_is_the_client_s():
    backend = backend_of(Settings(kafka=read()[0]))
    assert backend.partition_of(b"key", 7) == backend_of(Settings(kafka={"a": 1})).partition_of(b"key", 7)
    (finding,) = backend.installed()
    assert finding.text.startswith("librdkafka 2.")
    with pytest.raises(Unavailable, match=re.escape("no broker answers at 127.0.0.1:1")):
        backend.describe(["events"])


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (KafkaError._AUTHENTICATION, AccessDenied),
        (KafkaError.GROUP_AUTHORIZATION_FAILED, AccessDenied),
        (KafkaError._AUTO_OFFSET_RESET, PositionRefused),
        (KafkaError.FENCED_INSTANCE_ID, TakenOver),
        (KafkaError._INVALID_ARG, OptionRefused),
        (KafkaError._TRANSPORT, Unavailable),
    ],
)
def test_errors_say_whether_trying_again_may_help(code, expected):
    with pytest.raises(expected), translated():
        raise KafkaException(KafkaError(code))


@pytest.mark.parametrize(
    ("code", "expected"),
    [(KafkaError.PRODUCER_FENCED, TakenOver), (KafkaError._FENCED, TakenOver), (KafkaError._TIMED_OUT, OutputsLost)],
)
@pytest.mark.parametrize("instance", ["a", None])
def test_a_transaction_that_fails_is_over(code, expected, instance):
    """Without a name, there can be no other process of this name."""
    with pytest.raises(expected if instance else OutputsLost), translated_transaction(instance):
        raise KafkaException(KafkaError(code))


class Message:
    """What the client reports of a record."""

    def topic(self):
        return "dlq"

    def partition(self):
        return 3


@pytest.mark.parametrize(
    ("code", "expected", "said"),
    [
        (KafkaError.MSG_SIZE_TOO_LARGE, TopicMismatch, "a record is larger than topic 'dlq' takes"),
        (KafkaError._UNKNOWN_PARTITION, TopicMismatch, "topic 'dlq' has no partition 3"),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, AccessDenied, "the broker refuses our records for topic 'dlq'"),
        (KafkaError._FATAL, OutputsLost, "the broker refused a record for topic 'dlq'"),
    ],
)
def test_the_first_record_that_fails_is_what_a_flush_tells(code, expected, said, monkeypatch):
    class Producer:
        def __init__(self, options):
            self.report = options["on_delivery"]

        def flush(self, seconds):
            for one in (code, KafkaError._TIMED_OUT):
                self.report(KafkaError(one), Message())
            return 0

    monkeypatch.setattr(rdkafka_outputs, "Producer", Producer)
    outputs = rdkafka_outputs.Outputs(KafkaOptions({}, "group"), lambda now: None, None)
    outputs.connect()
    with pytest.raises(expected, match=re.escape(said)):
        outputs.flush()


# --- transactions -----------------------------------------------------------------------------------------------------


def error_of(code, **marks):
    return KafkaException(KafkaError(code, "so it said", **marks))


class Transacting:
    """A producer of transactions whose steps fail as the test says, before they succeed."""

    failures: ClassVar[list[tuple[str, KafkaException]]] = []

    def __init__(self, options):
        self.done = []
        self.failures = list(self.failures)

    def _step(self, name):
        if self.failures and self.failures[0][0] == name:
            raise self.failures.pop(0)[1]
        self.done.append(name)

    def init_transactions(self, seconds):
        self._step("init")

    def begin_transaction(self):
        self._step("begin")

    def send_offsets_to_transaction(self, offsets, membership):
        self._step("offsets")

    def commit_transaction(self):
        self._step("commit")

    def abort_transaction(self):
        self._step("abort")

    def flush(self, seconds):
        return 0

    def purge(self, *, blocking):
        self._step("purge")


@pytest.fixture
def transact(monkeypatch):
    """What became of a transaction whose steps fail first: the producer, and why it was refused, or None."""
    monkeypatch.setattr(rdkafka_outputs, "Producer", Transacting)

    def transact(*failures):
        monkeypatch.setattr(Transacting, "failures", list(failures))
        outputs = rdkafka_outputs.Outputs(KafkaOptions({}, "group", is_transactional=True), lambda now: None, None)
        producer = outputs.connect()
        return producer, outputs.commit({("events", 0): Committed(3, "1:2")}, "membership")

    return transact


@pytest.mark.parametrize("step", ["offsets", "commit"])
def test_a_step_of_a_transaction_is_taken_again_if_that_may_help(transact, step):
    """As when its coordinator does not answer for a while."""
    producer, refusal = transact(*[(step, error_of(KafkaError._TIMED_OUT, retriable=True))] * 3)
    assert (producer.done, refusal) == (["init", "begin", "offsets", "commit"], None)


@pytest.mark.parametrize("step", ["offsets", "commit"])
def test_a_transaction_that_must_be_aborted_is_given_up_and_not_the_process(transact, step):
    _, refusal = transact((step, error_of(KafkaError.INVALID_TXN_STATE, txn_requires_abort=True)))
    assert refusal == ("so it said", False)


@pytest.mark.parametrize("step", ["offsets", "commit"])
def test_another_failure_of_a_transaction_loses_its_records(transact, step):
    with pytest.raises(OutputsLost, match="so it said"):
        transact((step, error_of(KafkaError._TIMED_OUT)))


def test_a_producer_that_could_not_begin_is_not_used(monkeypatch):
    monkeypatch.setattr(rdkafka_outputs, "Producer", Transacting)
    monkeypatch.setattr(Transacting, "failures", [("init", error_of(KafkaError._TIMED_OUT, retriable=True))])
    outputs = rdkafka_outputs.Outputs(KafkaOptions({}, "group", is_transactional=True), lambda now: None, None)
    with pytest.raises(Unavailable):
        outputs.connect()
    monkeypatch.setattr(Transacting, "failures", [])
    assert outputs.connect().done == ["init"]
    assert outputs.commit({}, "membership") is None


# --- questions --------------------------------------------------------------------------------------------------------


class Client:
    """A client whose answers the test gives."""

    def __init__(self, options):
        self.is_closed = threading.Event()

    def cluster_id(self, timeout):
        return "a cluster"

    def describe_topics(self, names):
        return {name: Future() for name in names}

    def __exit__(self, *_):
        self.is_closed.set()


@pytest.fixture
def administrator(monkeypatch):
    monkeypatch.setattr(client, "require_answer", lambda options: None)
    monkeypatch.setattr(client, "AdminClient", Client)
    monkeypatch.setattr(client, "_LAST_ANSWER_SECONDS", 0.05)
    return client.Administrator({})


def test_an_administrator_is_closed_at_once_if_everything_is_answered(administrator):
    with administrator as admin:
        for answer in admin.ask(admin.client.describe_topics, ["a", "b"]).values():
            answer.set_result("a topic")
    assert admin.client.is_closed.is_set()


def test_a_late_answer_is_no_failure_of_the_process(monkeypatch):
    monkeypatch.setattr(client, "COMMAND_SECONDS", 0.01)
    for ask in (client.described, lambda answer: client.Administrator.wait(answer, 0.01)):
        with pytest.raises(Unavailable, match=r"the broker has not answered within 0.01 seconds"):
            ask(Future())


def test_an_administrator_is_not_closed_before_its_last_answer(administrator):
    """The library might end the process."""
    with administrator as admin:
        old = admin.ask(admin.client.describe_topics, ["a"])
        new = admin.ask(admin.client.describe_topics, ["b"])
    assert not admin.client.is_closed.is_set()
    new["b"].set_result("a topic")
    assert not admin.client.is_closed.wait(0.05)
    old["a"].set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    assert admin.client.is_closed.wait(60)


# --- the notes of commits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("note", ["", "3:14", '{"too long": 7}', "é"])
def test_a_note_with_its_mark_is_read_whatever_follows_it(note):
    sent = to_metadata(note)
    assert to_note(sent) == to_note(sent + ZERO) == note
    assert to_certain_note(sent + "7\x1f" if note else "", 0) == note


def test_a_note_without_a_mark_is_read_only_where_its_end_is_known():
    assert to_note("3:14") == to_note("3:14" + ZERO) == "3:14"
    for unmarked in ("3:147", None):
        with pytest.raises(TopicMismatch, match=r"partition 2 .* Run once with kafka.client = 'kafka-python'"):
            to_certain_note(unmarked, 2)
