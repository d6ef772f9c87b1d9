"""Finds combinations of kafka-python's options that are wrong or insecure."""

import ssl
from collections.abc import Collection, Mapping
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

from kafka.net.transport import KafkaSSLTransport

from ..cluster.options import not_transactional
from ..cluster.security import PLAINTEXT, certificates, incomplete, insecure
from .client import defaults
from .options import CODECS, CODECS_HINT, OPTIONS, client_defaults

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
    return [
        *insecure(values, given),
        *incomplete(values, given, OPTIONS["sasl_mechanism"].wanted),
        *_mechanism(values),
        *_certificates(values),
        *_times(every),
        *not_transactional(values, transactional_by),
        *_compression(values),
    ]


def _mechanism(values: Mapping[str, Any]) -> list[str]:
    mechanism = values.get("sasl_mechanism")
    if not values.get("security_protocol", PLAINTEXT).startswith("SASL_") or not mechanism:
        return []
    problems = []
    package = _MECHANISM_PACKAGES.get(mechanism)
    if mechanism == "AWS_MSK_IAM" and values["security_protocol"] != "SASL_SSL":
        problems.append("kafka.sasl_mechanism = 'AWS_MSK_IAM' needs kafka.security_protocol = 'SASL_SSL'")
    if package and not find_spec(package):
        problems.append(f"kafka.sasl_mechanism = {mechanism!r} needs the package {package}: pip install {package}")
    return problems


def _certificates(values: Mapping[str, Any]) -> list[str]:
    """Load the certificates as the client will."""
    files, problems = certificates(values)
    if "ssl_ciphers" in values and "ssl_ciphers" not in KafkaSSLTransport.DEFAULT_CONFIG:
        problems.append("kafka.ssl_ciphers has no effect: this version of kafka-python ignores it")
    return problems + (_unusable(values, files) if files else [])


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


def _compression(values: Mapping[str, Any]) -> list[str]:
    module = CODECS.get(values.get("compression_type", ""))
    if not module or find_spec(module):
        return []
    what = f"kafka.compression_type = {values['compression_type']!r}"
    return [f"{what} needs a package that is not installed: {CODECS_HINT}"]


# --- what is in use ---------------------------------------------------------------------------------------------------


def missing_codecs() -> list[str]:
    """Compressions that we can neither read nor write, because their packages are not installed."""
    return [name for name, module in CODECS.items() if not find_spec(module)]
