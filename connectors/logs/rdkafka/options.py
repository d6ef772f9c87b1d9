"""The options of a [kafka] section that librdkafka takes, and what librdkafka calls them.

An option that kafka-python has as well keeps kafka-python's name, so that a configuration works with either client.
Every other one has librdkafka's name with "_" instead of ".": librdkafka's CONFIGURATION.md describes it.  The ranges
are librdkafka's own: it tells them when it is given a wrong value.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ..cluster.option_values import COMMON, Option, one_of, whole_number

CODECS = ("zstd", "lz4", "snappy", "gzip")  # all built in, best first

# Names that differ from librdkafka's by more than a dot.
_NAMES = {
    "delivery_timeout_ms": "message.timeout.ms",
    "fetch_max_wait_ms": "fetch.wait.max.ms",
    "log_level": "log_level",
    "max_request_size": "message.max.bytes",
    "metadata_max_age_ms": "topic.metadata.refresh.interval.ms",
    "receive_buffer_bytes": "socket.receive.buffer.bytes",
    "request_timeout_ms": "socket.timeout.ms",
    "sasl_plain_password": "sasl.password",
    "sasl_plain_username": "sasl.username",
    "send_buffer_bytes": "socket.send.buffer.bytes",
    "ssl_cafile": "ssl.ca.location",
    "ssl_certfile": "ssl.certificate.location",
    "ssl_check_hostname": "ssl.endpoint.identification.algorithm",
    "ssl_ciphers": "ssl.cipher.suites",
    "ssl_crlfile": "ssl.crl.location",
    "ssl_keyfile": "ssl.key.location",
    "ssl_password": "ssl.key.password",
}
_ALIASES = {  # librdkafka's second names, and ours
    "compression_codec": "compression_type",
    "fetch_message_max_bytes": "max_partition_fetch_bytes",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "message_send_max_retries": "retries",
    "metadata_broker_list": "bootstrap_servers",
    "queue_buffering_max_ms": "linger_ms",
    "request_required_acks": "acks",
    "sasl_mechanisms": "sasl_mechanism",
}
FIXED = {  # options that are always the same, and why
    "delivery_report_only_error": "always on",
    "enable_auto_offset_store": "always off",
    "enable_partition_eof": "always on",
    "partition_assignment_strategy": "always 'cooperative-sticky'",
    "plugin_library_paths": "never set: it would load other code",
    "partitioner": "always 'murmur2_random', as with Kafka's own clients",
}

_PROBE = str(-(2**31))  # outside of every range

_SWITCH = Option((bool,), "true or false")
_TEXT = Option((str,), "a string, and not empty", lambda value: value != "")
MECHANISMS = one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
_OURS: dict[str, Option] = {  # librdkafka checks these when it connects, or takes more than we do
    **COMMON,
    "compression_type": one_of("none", *CODECS),
    "sasl_mechanism": MECHANISMS,
    "ssl_check_hostname": _SWITCH,
}


@lru_cache
def option_of(key: str) -> Option | None:
    """What an option takes, as librdkafka itself tells; None if it has none of this name, or we call it by another."""
    if key in FIXED or right_name(key) != key:
        return None
    if key in _OURS:
        return _OURS[key]
    name = name_of(key)
    said = _refusal(name, _PROBE)
    found = re.search(r"value (\S+) is outside allowed range (-?\d+)\.\.(\d+)", said)
    if found and found[1] == _PROBE:
        return whole_number(int(found[2]), int(found[3]))
    if found:
        least, most = int(found[2]), int(found[3])
        return Option((int, float), f"a number from {least} to {most}", lambda value: least <= value <= most)
    if "Expected bool" in said:
        return _SWITCH
    if said:
        return Option((str,), "one that librdkafka's CONFIGURATION.md lists", lambda value: not _refusal(name, value))
    return _TEXT


def _refusal(name: str, value: str) -> str:
    """What librdkafka says against a value; empty if it takes it.  It looks at one option after the other."""
    try:
        AdminClient({name: value, "?": ""})
    except KafkaException as error:
        said = str(error.args[0].str())
        return "" if said.endswith('"?"') else said
    except (AttributeError, TypeError) as error:  # an object of Python
        return f"No such option of a file: {error}"
    raise AssertionError("librdkafka takes any option")


def name_of(key: str) -> str:
    """What librdkafka calls an option."""
    return _NAMES.get(key) or key.replace("_", ".")


def right_name(key: str) -> str | None:
    """Our name of an option that was given by librdkafka's; None if it is no name of librdkafka's."""
    key = key.replace(".", "_")
    if key in _NAMES:
        return key
    ours = {name.replace(".", "_"): key for key, name in _NAMES.items()} | _ALIASES
    return ours.get(key) or (None if "No such" in _refusal(name_of(key), _PROBE) else key)


def to_client(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options by our names as librdkafka takes them; `client`, which chooses it, is none of its own."""
    return {name_of(key): _to_client(key, value) for key, value in values.items() if key != "client"}


def _to_client(key: str, value: Any) -> Any:
    if key == "ssl_check_hostname":
        return "https" if value else "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else value
