"""Finds combinations of librdkafka's options that are wrong or insecure."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from ..cluster.options import not_transactional
from ..cluster.security import certificates, incomplete, insecure
from .client import consumer_options, defaults, producer_options
from .options import MECHANISMS


def contradictions(
    values: Mapping[str, Any], given: Collection[str], *, is_named: bool, transactional_by: str = ""
) -> list[str]:
    """What is wrong with options that are right one by one: a line for each problem.

    Parameters
    ----------
    values
        The options with right values.
    given
        Names of all options that were given, also of those with wrong values.
    is_named
        Whether the process has a name in its group, which shortens the session.
    transactional_by
        Name of the setting that asks for transactions; empty: there are none.
    """
    _, wrong_files = certificates(values)
    problems = [
        *insecure(values, given),
        *incomplete(values, given, MECHANISMS.wanted),
        *wrong_files,
        *_tokens(values),
        *_times(values, is_named=is_named),
        *not_transactional(values, transactional_by),
    ]
    return problems or _refused_by_the_client(values, is_named=is_named, is_transactional=bool(transactional_by))


def _tokens(values: Mapping[str, Any]) -> list[str]:
    is_given = values.get("sasl_oauthbearer_method") == "oidc" or values.get("enable_sasl_oauthbearer_unsecure_jwt")
    if values.get("sasl_mechanism") != "OAUTHBEARER" or is_given:
        return []
    return ["kafka.sasl_oauthbearer_method = 'oidc' is missing: OAUTHBEARER needs it"]


def _times(values: Mapping[str, Any], *, is_named: bool) -> list[str]:
    if values.get("group_protocol") == "consumer":  # librdkafka refuses these times then
        return []
    every = {"heartbeat_interval_ms": 3000, "session_timeout_ms": 45_000, **defaults(values, is_named=is_named)}
    beat, session = ({**every, **values}[key] for key in ("heartbeat_interval_ms", "session_timeout_ms"))
    if beat < session:
        return []
    return [f"kafka.heartbeat_interval_ms = {beat} must be less than kafka.session_timeout_ms = {session}"]


def _refused_by_the_client(values: Mapping[str, Any], *, is_named: bool, is_transactional: bool) -> list[str]:
    """Let the client check the rest: it loads the certificates, and knows which options fit together."""
    shared = {key: value for key, value in values.items() if key != "bootstrap_servers"}  # It must not connect.
    consumer = {**consumer_options(shared, is_named=is_named), "group.id": "check"}
    producer = producer_options(shared)
    if is_transactional:
        del producer["message.timeout.ms"]
        producer["transactional.id"] = "check"
    problem = _refused(Consumer, consumer) or _refused(Producer, producer)  # Most problems are both clients'.
    return [f"kafka: librdkafka refuses these options: {problem}"] if problem else []


def _refused(make: Callable[[dict[str, Any]], Any], options: dict[str, Any]) -> str:
    try:
        client = make(options)
    except KafkaException as error:
        return str(error.args[0].str())
    if isinstance(client, Consumer):
        client.close()
    return ""
