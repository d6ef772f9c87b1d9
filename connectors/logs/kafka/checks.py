"""Options of kafka-python that are right one by one, and wrong or insecure together."""

import ssl
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

from kafka import KafkaProducer
from kafka.net.transport import KafkaSSLTransport

from .client import client_options, defaults
from .options import CODECS, CODECS_HINT, OPTIONS, PLAINTEXT, client_defaults

_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_MECHANISM_PACKAGES = {"GSSAPI": "gssapi", "AWS_MSK_IAM": "botocore"}


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
    every = {**client_defaults(), **defaults(is_named=is_named), **values}
    is_known = "security_protocol" in values or "security_protocol" not in given
    return [
        *(_insecure(values) if is_known else []),
        *_incomplete(values, given),
        *_certificates(values),
        *_times(every),
        *_producing(values, transactional_by),
    ]


def _insecure(values: Mapping[str, Any]) -> list[str]:
    """Refuse credentials and certificates that the protocol would not use: plain text cannot be meant."""
    protocol = values.get("security_protocol")
    which = f"kafka.security_protocol = {protocol!r}" if protocol else f"without kafka.security_protocol, {PLAINTEXT!r}"
    problems = []
    sasl = sorted(key for key in values if key.startswith("sasl_"))
    tls = sorted(key for key in values if key.startswith("ssl_"))
    if sasl and not (protocol or PLAINTEXT).startswith("SASL_"):
        problems.append(
            f"kafka.{', kafka.'.join(sasl)}: {which} does not authenticate; 'SASL_SSL' does, and 'SASL_PLAINTEXT' "
            "does without encryption"
        )
    if tls and not (protocol or PLAINTEXT).endswith("SSL"):
        problems.append(
            f"kafka.{', kafka.'.join(tls)}: {which} does not encrypt; 'SSL' does, and 'SASL_SSL' does with credentials"
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
    """Load the certificates as the client will."""
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
    config["ssl_password"] = values.get("ssl_password", "")  # With None, OpenSSL would ask on the terminal.
    try:
        KafkaSSLTransport._build_ssl_context(config)
    except (OSError, ValueError) as error:  # An SSLError is an OSError.
        reason = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
        return [f"kafka.{', kafka.'.join(files)} cannot be used: {reason}; see also kafka.ssl_password"]
    return []


def _times(every: Mapping[str, Any]) -> list[str]:
    """Check the orders of times that the clients check only after they have connected."""
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


def _producing(values: Mapping[str, Any], transactional_by: str) -> list[str]:
    why = transactional_by or ("kafka.enable_idempotence" if values.get("enable_idempotence") is True else "")
    wrong = {
        "acks": values.get("acks", "all") not in (-1, "all"),
        "retries": values.get("retries") == 0,
        "max_in_flight_requests_per_connection": values.get("max_in_flight_requests_per_connection", 5) > 5,
        "enable_idempotence": values.get("enable_idempotence") is False,
    }
    problems = [
        f"kafka.{key} = {values[key]!r} contradicts {why}" for key, is_wrong in wrong.items() if why and is_wrong
    ]
    module = CODECS.get(values.get("compression_type", ""))
    if module and not find_spec(module):
        problems.append(
            f"kafka.compression_type = {values['compression_type']!r} needs a package that is not installed: "
            f"{CODECS_HINT}"
        )
    return problems


def largest_request(values: Mapping[str, Any]) -> int:
    """Bytes of the largest record that the producer sends."""
    return int(client_options(values, KafkaProducer)["max_request_size"])


# --- what is in use ---------------------------------------------------------------------------------------------------


def missing_codecs() -> list[str]:
    """Compressions that we can neither read nor write, because their packages are not installed."""
    return [name for name, module in CODECS.items() if not find_spec(module)]


def identity(values: Mapping[str, Any]) -> tuple[str, str]:
    """How the broker knows us, in words, and the protocol."""
    protocol = values.get("security_protocol", PLAINTEXT)
    user = values.get("sasl_plain_username")
    if protocol.startswith("SASL_"):
        return (f"as {user!r}" if user else f"by {values.get('sasl_mechanism')}"), protocol
    is_certified = protocol == "SSL" and "ssl_certfile" in values
    return ("with a certificate" if is_certified else "without a user"), protocol


def insecurities(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Options that are allowed but not secure, each with a remedy."""
    protocol, mechanism = values.get("security_protocol", PLAINTEXT), values.get("sasl_mechanism")
    found = []
    if protocol == "SASL_PLAINTEXT":
        what = "the password and all records are" if mechanism == "PLAIN" else "all records are"
        found.append(
            (f"{what} readable on the network", "kafka.security_protocol = 'SASL_SSL', if the broker offers it")
        )
    if protocol.endswith("SSL") and values.get("ssl_check_hostname") is False:
        found.append(
            (
                "any certificate of the authority passes for the broker's: kafka.ssl_check_hostname = false",
                "give the broker a certificate with its own name",
            )
        )
    return found
