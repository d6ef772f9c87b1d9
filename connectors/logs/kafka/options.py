"""The options of a [kafka] section: the names, types, ranges and choices that kafka-python takes.

The client checks little before it connects, and some values never: it takes a ``security_protocol`` that it does not
know for plain text.  Names and most types come from the clients' own defaults, so a new version brings its own.
"""

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import SASL_MECHANISMS

CODECS = {"zstd": "zstandard", "lz4": "lz4", "snappy": "snappy"}  # compressions and their packages, best first
CODECS_HINT = "pip install 'streamsvm[codecs]'"
PLAINTEXT = "PLAINTEXT"
_MAX_INT32 = 2**31 - 1  # the largest number of Kafka's protocol
_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_PROXIES = ("http", "socks5", "socks5h")
_SECRET = re.compile(r"password|secret|token|proxy", re.IGNORECASE)  # a proxy's address may hold a password

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
_CAN_BE_0 = {
    "batch_size",
    "fetch_max_wait_ms",
    "fetch_min_bytes",
    "linger_ms",
    "reconnect_backoff_ms",
    "retries",
    "retry_backoff_ms",
}


class Option(NamedTuple):
    """What an option takes: its types, the same in words, and a check of its range."""

    types: tuple[type, ...]
    wanted: str
    check: Callable[[Any], bool] = lambda value: True

    def takes(self, value: Any) -> bool:
        """Whether the value is right; a bool is no number here."""
        return type(value) in self.types and self.check(value)


def is_secret(key: str) -> bool:
    """Whether the value of this option must never be shown."""
    return _SECRET.search(key) is not None


def shown(key: str, value: Any) -> str:
    """An option's value for a message."""
    return "(not shown)" if is_secret(key) or "@" in str(value) else repr(value)  # USER:PASSWORD@HOST


def _one_of(*choices: str) -> Option:
    return Option((str,), f"one of {', '.join(map(repr, choices))}", lambda value: value in choices)


def _is_server(text: str) -> bool:
    """HOST:PORT, or [IPV6]:PORT."""
    found = re.fullmatch(r"\s*(\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\],]+):(\d{1,5})\s*", text)
    return found is not None and 1 <= int(found[2]) <= 65535


def _are_servers(value: str | list) -> bool:
    servers = value.split(",") if isinstance(value, str) else value
    return bool(servers) and all(isinstance(server, str) and _is_server(server) for server in servers)


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
    "acks": Option((int, str), "0, 1, -1 or 'all'", lambda value: value in (0, 1, -1, "all")),
    "api_version": Option((list,), "a list of numbers, such as [4, 3]", _are_numbers),
    "bootstrap_servers": Option(
        (str, list), "HOST:PORT, such as 'localhost:9092', or several; the protocol is security_protocol", _are_servers
    ),
    "client_dns_lookup": _one_of(*KafkaConnectionManager._VALID_DNS_LOOKUP_MODES),
    "compression_type": _one_of("gzip", *CODECS, "none"),
    "isolation_level": _one_of("read_committed", "read_uncommitted"),
    "linger_ms": Option((int, float), "a number from 0 to 2147483647", lambda value: 0 <= value <= _MAX_INT32),
    "proxy_url": Option((str,), "SCHEME://HOST:PORT with one of " + ", ".join(_PROXIES), _is_proxy),
    "sasl_mechanism": _one_of(*(name for name in SASL_MECHANISMS if name != "OAUTHBEARER")),
    "security_protocol": _one_of(*_PROTOCOLS),
    "socket_options": Option((list,), "a list of [LEVEL, OPTION, NUMBER]", _are_socket_options),
    "socks5_proxy": Option((str,), "SCHEME://HOST:PORT with one of " + ", ".join(_PROXIES), _is_proxy),
}
_AS_TAKEN: dict[str, Callable[[Any], Any]] = {
    "api_version": tuple,
    "compression_type": lambda value: None if value == "none" else value,
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
        return Option(
            (int,), f"a whole number from {least} to {_MAX_INT32}", lambda value: least <= value <= _MAX_INT32
        )
    if key in _MAY_BE_EMPTY:
        return Option((str,), "a string")
    return Option((str,), "a string, and not empty", lambda value: value != "")


OPTIONS = {key: _option(key, default) for key, default in client_defaults().items() if key not in OBJECTS}


def as_taken(key: str, value: Any) -> Any:
    """A right value as the client takes it."""
    return _AS_TAKEN[key](value) if key in _AS_TAKEN else value


def meant(key: str, value: Any) -> str | None:
    """The choice that a wrong value may misspell; None if there is none."""
    if key == "bootstrap_servers" or is_secret(key) or not isinstance(value, str):
        return None
    choices = re.findall(r"'([^']+)'", OPTIONS[key].wanted)
    close = get_close_matches(value.upper(), [choice.upper() for choice in choices], n=1, cutoff=0.7)
    return next((choice for choice in choices if close and choice.upper() == close[0]), None)
