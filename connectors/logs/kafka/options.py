"""The options of a [kafka] section: the names, types, ranges and choices that kafka-python takes.

The client checks little before it connects, and some values never: it takes a ``security_protocol`` that it does not
know for plain text.  Names and most types come from the clients' own defaults, so a new version brings its own.
"""

from typing import Any
from urllib.parse import urlsplit

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import SASL_MECHANISMS

from ...runtime.numbers import MAX_INT32
from ..cluster.option_values import COMMON, Option, one_of, whole_number

CODECS = {"zstd": "zstandard", "lz4": "lz4", "snappy": "snappy"}  # compressions and their packages, best first
CODECS_HINT = "pip install 'streamsvm[codecs]'"
_PROXIES = ("http", "socks5", "socks5h")

# Options that take an object of Python, which neither a file nor the environment can hold.
OBJECTS = {
    "default_offset_commit_callback",
    "kafka_client",
    "key_deserializer",
    "key_serializer",
    "metric_reporters",
    "partition_assignment_strategy",
    "partitioner",
    "sasl_oauth_token_provider",
    "selector",
    "ssl_context",
    "value_deserializer",
    "value_serializer",
}
FIXED = dict.fromkeys(OBJECTS, "an object of Python")  # options that cannot be set, and why
_CAN_BE_0 = {
    "batch_size",
    "fetch_max_wait_ms",
    "fetch_min_bytes",
    "linger_ms",
    "reconnect_backoff_ms",
    "retries",
    "retry_backoff_ms",
}


def _is_proxy(value: str) -> bool:
    try:
        parts = urlsplit(value)
        return parts.scheme in _PROXIES and bool(parts.hostname) and parts.port is not None
    except ValueError:  # of the port
        return False


def _are_numbers(value: list) -> bool:
    return len(value) >= 2 and all(type(number) is int and number >= 0 for number in value)


def _are_socket_options(value: list) -> bool:
    return all(isinstance(one, list) and len(one) == 3 and all(type(item) is int for item in one) for one in value)


_SPECIAL: dict[str, Option] = {
    **COMMON,
    "api_version": Option((list,), "a list of numbers, such as [4, 3]", _are_numbers, tuple),
    "client_dns_lookup": one_of(*KafkaConnectionManager._VALID_DNS_LOOKUP_MODES),
    "compression_type": one_of("gzip", *CODECS, "none")._replace(
        taken=lambda value: None if value == "none" else value
    ),
    "linger_ms": Option((int, float), "a number from 0 to 2147483647", lambda value: 0 <= value <= MAX_INT32),
    "proxy_url": Option((str,), "SCHEME://HOST:PORT with one of " + ", ".join(_PROXIES), _is_proxy),
    "sasl_mechanism": one_of(*(name for name in SASL_MECHANISMS if name != "OAUTHBEARER")),
    "socket_options": Option((list,), "a list of [LEVEL, OPTION, NUMBER]", _are_socket_options),
    "socks5_proxy": Option((str,), "SCHEME://HOST:PORT with one of " + ", ".join(_PROXIES), _is_proxy),
}
_WHOLE_NUMBERS = {
    "receive_buffer_bytes",
    "send_buffer_bytes",
    "retries",
    "consumer_timeout_ms",
}  # Their defaults do not say so.
_MAY_BE_EMPTY = {"client_rack", "metric_group_prefix", "ssl_password"}


def client_defaults() -> dict[str, Any]:
    """The defaults of all clients by option; None only if no client has another value."""
    found: dict[str, Any] = {}
    for client in (KafkaAdminClient, KafkaProducer, KafkaConsumer):
        found |= {key: value for key, value in client.DEFAULT_CONFIG.items() if value is not None or key not in found}
    return found


def _option(key: str, default: Any) -> Option:
    if key in _SPECIAL:
        return _SPECIAL[key]
    if isinstance(default, bool):
        return Option((bool,), "true or false")
    if isinstance(default, int) or key in _WHOLE_NUMBERS:
        least = 0 if key in _CAN_BE_0 else 1
        return whole_number(least)
    if key in _MAY_BE_EMPTY:
        return Option((str,), "a string")
    return Option((str,), "a string, and not empty", lambda value: value != "")


OPTIONS = {key: _option(key, default) for key, default in client_defaults().items() if key not in OBJECTS}


def option_of(key: str) -> Option | None:
    """What an option takes; None if there is none of this name."""
    return OPTIONS.get(key)
