"""Credentials, certificates and protocols: finds what is wrong or insecure with either client, and names the user."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

PLAINTEXT = "PLAINTEXT"
PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_WITH_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_FILES = ("ssl_cafile", "ssl_certfile", "ssl_keyfile", "ssl_crlfile")


def insecure(values: Mapping[str, Any], given: Collection[str]) -> list[str]:
    """Refuse credentials and certificates that the protocol would not use: plain text cannot be meant."""
    if "security_protocol" in given and "security_protocol" not in values:
        return []  # Its value is wrong.
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


def incomplete(values: Mapping[str, Any], given: Collection[str], mechanisms: str) -> list[str]:
    """Name the options that a mechanism needs and that are missing; `mechanisms` are those that the client takes."""
    protocol, mechanism = values.get("security_protocol", PLAINTEXT), values.get("sasl_mechanism")
    if not protocol.startswith("SASL_"):
        return []
    if "sasl_mechanism" not in given:
        return [f"kafka.sasl_mechanism is missing: {protocol} needs {mechanisms}"]
    needed = ("sasl_plain_username", "sasl_plain_password") if mechanism in _WITH_PASSWORD else ()
    return [f"kafka.{key} is missing: {mechanism} needs it" for key in needed if key not in given]


def certificates(values: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """The options with files of certificates, and a line for each that cannot be right."""
    problems = [
        f"kafka.{key} needs kafka.ssl_certfile, the certificate that it belongs to"
        for key in ("ssl_keyfile", "ssl_password")
        if key in values and "ssl_certfile" not in values
    ]
    files = [key for key in _FILES if key in values]
    missing = [key for key in files if not Path(values[key]).is_file()]
    problems += [f"kafka.{key} = {values[key]!r}: there is no such file" for key in missing]
    return ([] if missing else files), problems


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
