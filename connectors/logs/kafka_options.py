"""The options of a [kafka] section: names, types, ranges and choices of the client, and what contradicts each other.

The client itself checks little before it connects, and some of it never: a ``security_protocol`` that it does not know
is plain text to it.  Names and most types come from the clients' own defaults, so a new version brings its own.
"""

import re
import ssl
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.net.manager import KafkaConnectionManager
from kafka.net.sasl import SASL_MECHANISMS
from kafka.net.transport import KafkaSSLTransport

from ..settings.layers import Given, parse_text

CODECS = {"zstd": "zstandard", "lz4": "lz4", "snappy": "snappy"}  # with the module that is needed, best first
CODECS_HINT = "pip install 'streamsvm[codecs]'"
PLAINTEXT = "PLAINTEXT"
_MAX_INT32 = 2**31 - 1  # of numbers in Kafka's protocol
_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISM_PACKAGES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}
_PROXIES = ("http", "socks5", "socks5h")
_SECRET = re.compile(r"password|secret|token|proxy", re.IGNORECASE)  # a proxy's address may hold a password

# Neither a file nor the environment can hold these.
_OBJECTS = {
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
    """What an option takes."""

    types: tuple[type, ...]
    wanted: str
    check: Callable[[Any], bool] = lambda value: True


def is_secret(key: str) -> bool:
    """Whether the value of this option must never be shown."""
    return _SECRET.search(key) is not None


def shown(key: str, value: Any) -> str:
    """An option's value for a message."""
    return "(not shown)" if is_secret(key) or "@" in str(value) else repr(value)  # USER:PASSWORD@HOST


# --- one option -------------------------------------------------------------------------------------------------------


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
_WHOLE_NUMBERS = {"receive_buffer_bytes", "send_buffer_bytes", "retries", "consumer_timeout_ms"}  # by no default's type
_MAY_BE_EMPTY = {"client_rack", "metric_group_prefix", "ssl_password"}


def _defaults() -> dict[str, Any]:
    """Of all clients; where one has None, that of another."""
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


OPTIONS = {key: _option(key, default) for key, default in _defaults().items() if key not in _OBJECTS}


def interpret(given: Mapping[str, Given], ours: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The values of a section as the clients take them, and a line for everything that is wrong with one of them.

    Parameters
    ----------
    given
        The section.
    ours
        Options that are no business of the section, with the settings that they are.
    """
    values: dict[str, Any] = {}
    problems: list[str] = []
    for key, item in given.items():
        if key in ours:
            problems.append(f"{item.origin}: kafka.{key} cannot be set: it is {ours[key]}")
        elif key in _OBJECTS:
            problems.append(f"{item.origin}: kafka.{key} cannot be set: it is an object of Python")
        elif key not in OPTIONS:
            close = get_close_matches(key, OPTIONS, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            problems.append(f"{item.origin}: kafka.{key} is no option of kafka-python{hint}")
        elif item.value is None:
            continue  # the file that holds it could not be read, which is a problem already
        elif _is_right(OPTIONS[key], value := _value(OPTIONS[key], item)):
            values[key] = _AS_TAKEN.get(key, lambda value: value)(value)
        else:
            problems.append(
                f"{item.origin}: kafka.{key} = {shown(key, item.value)} must be {OPTIONS[key].wanted}"
                f"{_meant(key, value)}"
            )
    return values, problems


def _value(option: Option, item: Given) -> Any:
    """Text becomes what the option takes; a string stays what it is, even if it could be a number."""
    if not item.is_text or option.types == (str,):
        return item.value
    value = parse_text(item.value)
    return value if type(value) in option.types else item.value


def _is_right(option: Option, value: Any) -> bool:
    return type(value) in option.types and option.check(value)  # a bool is no number here


def _meant(key: str, value: Any) -> str:
    """A hint, if the value is another spelling of a choice."""
    if key == "bootstrap_servers" or is_secret(key) or not isinstance(value, str):
        return ""
    choices = re.findall(r"'([^']+)'", OPTIONS[key].wanted)
    close = get_close_matches(value.upper(), [choice.upper() for choice in choices], n=1, cutoff=0.7)
    meant = next((choice for choice in choices if close and choice.upper() == close[0]), None)
    return f"; did you mean {meant!r}?" if meant else ""


# --- what goes together -----------------------------------------------------------------------------------------------


def contradictions(
    values: Mapping[str, Any], given: Collection[str], defaults: Mapping[str, Any], *, is_transactional: bool
) -> list[str]:
    """What is wrong with options that are right one by one.

    Parameters
    ----------
    values
        From `interpret`.
    given
        All options that were given, those with wrong values included.
    defaults
        Ours, where they differ from the clients'.
    is_transactional
        Whether there are transactions.
    """
    every = {**_defaults(), **defaults, **values}
    is_known = "security_protocol" in values or "security_protocol" not in given
    return [
        *(_insecure(values) if is_known else []),
        *_incomplete(values, given),
        *_certificates(values),
        *_times(every),
        *_producing(values, is_transactional=is_transactional),
    ]


def _insecure(values: Mapping[str, Any]) -> list[str]:
    """Credentials and certificates that the protocol would not use: their user does not mean plain text."""
    protocol = values.get("security_protocol")
    which = f"kafka.security_protocol = {protocol!r}" if protocol else f"without kafka.security_protocol, {PLAINTEXT!r}"
    problems = []
    sasl = sorted(key for key in values if key.startswith("sasl_"))
    tls = sorted(key for key in values if key.startswith("ssl_"))
    if sasl and not (protocol or PLAINTEXT).startswith("SASL_"):
        problems.append(
            f"kafka.{', kafka.'.join(sasl)}: {which} does not authenticate; 'SASL_SSL' does, and 'SASL_PLAINTEXT' "
            "without encryption"
        )
    if tls and not (protocol or PLAINTEXT).endswith("SSL"):
        problems.append(
            f"kafka.{', kafka.'.join(tls)}: {which} does not encrypt; 'SSL' does, and 'SASL_SSL' with credentials"
        )
    return problems


def _incomplete(values: Mapping[str, Any], given: Collection[str]) -> list[str]:
    protocol, mechanism = values.get("security_protocol", PLAINTEXT), values.get("sasl_mechanism")
    if not protocol.startswith("SASL_"):
        return []
    if "sasl_mechanism" not in given:
        return [f"kafka.sasl_mechanism is missing: {protocol} needs {OPTIONS['sasl_mechanism'].wanted}"]
    package = _MECHANISM_PACKAGES.get(mechanism or "")
    problems = []
    if mechanism in _WITH_PASSWORD:
        needed = ("sasl_plain_username", "sasl_plain_password")
        problems += [f"kafka.{key} is missing: {mechanism} needs it" for key in needed if key not in given]
    if mechanism == "AWS_MSK_IAM" and protocol != "SASL_SSL":
        problems.append("kafka.sasl_mechanism = 'AWS_MSK_IAM' needs kafka.security_protocol = 'SASL_SSL'")
    if package and not find_spec(package):
        problems.append(f"kafka.sasl_mechanism = {mechanism!r} needs the package {package}: pip install {package}")
    return problems


def _certificates(values: Mapping[str, Any]) -> list[str]:
    """Whether the files of certificates can be used, as the client will."""
    problems = []
    if "ssl_ciphers" in values and "ssl_ciphers" not in KafkaSSLTransport.DEFAULT_CONFIG:
        problems.append("kafka.ssl_ciphers has no effect: this version of kafka-python ignores it")
    for key in ("ssl_keyfile", "ssl_password"):
        if key in values and "ssl_certfile" not in values:
            problems.append(f"kafka.{key} needs kafka.ssl_certfile, the certificate that it belongs to")
    files = [key for key in ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile") if key in values]
    missing = [key for key in files if not Path(values[key]).is_file()]
    problems += [f"kafka.{key} = {values[key]!r}: there is no such file" for key in missing]
    if files and not missing:
        problems += _unusable(values, files)
    return problems


def _unusable(values: Mapping[str, Any], files: list[str]) -> list[str]:
    config = {**KafkaSSLTransport.DEFAULT_CONFIG, **{key: values[key] for key in files}}
    config["ssl_password"] = values.get("ssl_password", "")  # with None, OpenSSL would ask on the terminal
    try:
        KafkaSSLTransport._build_ssl_context(config)
    except (OSError, ValueError) as error:  # SSLError is an OSError
        reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
        return [f"kafka.{', kafka.'.join(files)} cannot be used: {reason}; see also kafka.ssl_password"]
    return []


def _times(every: Mapping[str, Any]) -> list[str]:
    """Orders of times that the clients insist on, after they have connected."""
    rising = (
        ("fetch_max_wait_ms", "request_timeout_ms", "connections_max_idle_ms"),
        ("heartbeat_interval_ms", "session_timeout_ms"),
    )
    problems = [
        f"kafka.{lower} = {every[lower]} must be less than kafka.{higher} = {every[higher]}"
        for keys in rising
        for lower, higher in pairwise(keys)
        if every[lower] >= every[higher]
    ]
    if every["delivery_timeout_ms"] < every["linger_ms"] + every["request_timeout_ms"]:
        problems.append(
            f"kafka.delivery_timeout_ms = {every['delivery_timeout_ms']} must be at least kafka.linger_ms = "
            f"{every['linger_ms']} and kafka.request_timeout_ms = {every['request_timeout_ms']} together"
        )
    return problems


def _producing(values: Mapping[str, Any], *, is_transactional: bool) -> list[str]:
    problems = []
    is_wanted = is_transactional or values.get("enable_idempotence") is True
    if is_wanted:
        why = "daemon.exactly_once" if is_transactional else "kafka.enable_idempotence"
        wrong = {
            "acks": values.get("acks", "all") not in (-1, "all"),
            "retries": values.get("retries") == 0,
            "max_in_flight_requests_per_connection": values.get("max_in_flight_requests_per_connection", 5) > 5,
            "enable_idempotence": values.get("enable_idempotence") is False,
        }
        problems += [f"kafka.{key} = {values[key]!r} contradicts {why}" for key, is_wrong in wrong.items() if is_wrong]
    module = CODECS.get(values.get("compression_type", ""))
    if module and not find_spec(module):
        problems.append(
            f"kafka.compression_type = {values['compression_type']!r} needs a package that is not installed: "
            f"{CODECS_HINT}"
        )
    return problems


# --- what is in use ---------------------------------------------------------------------------------------------------


def missing_codecs() -> list[str]:
    """The compressions of Kafka that cannot be read or written here."""
    return [name for name, module in CODECS.items() if not find_spec(module)]


def identity(values: Mapping[str, Any]) -> tuple[str, str]:
    """The user that the client is let in as, and the protocol."""
    protocol = values.get("security_protocol", PLAINTEXT)
    user = values.get("sasl_plain_username")
    if protocol.startswith("SASL_"):
        return (f"as {user!r}" if user else f"by {values.get('sasl_mechanism')}"), protocol
    is_certified = protocol == "SSL" and "ssl_certfile" in values
    return ("with a certificate" if is_certified else "without a user"), protocol


def insecurities(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is allowed and not secure, with what to do about it."""
    protocol, mechanism = values.get("security_protocol", PLAINTEXT), values.get("sasl_mechanism")
    found = []
    if protocol == "SASL_PLAINTEXT":
        what = "the password and all records are" if mechanism == "PLAIN" else "all records are"
        found.append((f"{what} readable on the network", "kafka.security_protocol = 'SASL_SSL', if the broker has it"))
    if protocol.endswith("SSL") and values.get("ssl_check_hostname") is False:
        found.append(
            (
                "any certificate of the authority passes for the broker's: kafka.ssl_check_hostname = false",
                "give the broker a certificate with its name",
            )
        )
    return found
