"""The options of a [kafka] section that librdkafka takes, and what librdkafka calls them.

An option that kafka-python has as well keeps kafka-python's name, so that a configuration works with either client.
Every other one has librdkafka's name with "_" instead of ".": librdkafka's CONFIGURATION.md describes it.
"""

from collections.abc import Mapping
from typing import Any

from ..cluster.options import MAX_INT32
from ..cluster.values import COMMON, Option, one_of, whole_number

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
    "partitioner": "always 'murmur2_random', as with Kafka's own clients",
}

_TEXT = Option((str,), "a string, and not empty", lambda value: value != "")
_SWITCH = Option((bool,), "true or false")
_LINGER = Option((int, float), "a number from 0 to 900000", lambda value: 0 <= value <= 900_000)


def _texts(*names: str) -> dict[str, Option]:
    return dict.fromkeys(names, _TEXT)


def _switches(*names: str) -> dict[str, Option]:
    return dict.fromkeys(names, _SWITCH)


def _numbers(**ranges: tuple[int, int]) -> dict[str, Option]:
    return {name: whole_number(least, most) for name, (least, most) in ranges.items()}


_HOUR_MS, _DAY_MS = 3_600_000, 86_400_000

ALL_CLIENTS: dict[str, Option] = {
    **{key: COMMON[key] for key in ("bootstrap_servers", "security_protocol")},
    **_texts("client_id", "client_rack", "debug"),
    **_switches("allow_auto_create_topics", "enable_metrics_push", "socket_keepalive_enable", "socket_nagle_disable"),
    **_numbers(
        broker_address_ttl=(0, _DAY_MS),
        connections_max_idle_ms=(0, MAX_INT32),
        log_level=(0, 7),
        max_in_flight_requests_per_connection=(1, 1_000_000),
        max_request_size=(1000, 1_000_000_000),
        message_copy_max_bytes=(0, 1_000_000_000),
        metadata_max_age_ms=(1, _HOUR_MS),
        metadata_recovery_rebootstrap_trigger_ms=(0, MAX_INT32),
        receive_buffer_bytes=(0, 100_000_000),
        receive_message_max_bytes=(1000, MAX_INT32),
        reconnect_backoff_max_ms=(0, _HOUR_MS),
        reconnect_backoff_ms=(0, _HOUR_MS),
        request_timeout_ms=(10, 300_000),
        retry_backoff_max_ms=(1, 300_000),
        retry_backoff_ms=(1, 300_000),
        send_buffer_bytes=(0, 100_000_000),
        socket_connection_setup_timeout_ms=(1000, MAX_INT32),
        socket_max_fails=(0, 1_000_000),
        topic_metadata_propagation_max_ms=(0, _HOUR_MS),
    ),
    "broker_address_family": one_of("any", "v4", "v6"),
    "client_dns_lookup": one_of("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    "metadata_recovery_strategy": one_of("none", "rebootstrap"),
    # --- certificates
    **_texts("https_ca_location", "https_ca_pem", "ssl_ca_certificate_stores", "ssl_ca_pem", "ssl_cafile"),
    **_texts("ssl_certfile", "ssl_certificate_pem", "ssl_ciphers", "ssl_crlfile", "ssl_curves_list", "ssl_key_pem"),
    **_texts("ssl_keyfile", "ssl_keystore_location", "ssl_keystore_password", "ssl_password", "ssl_providers"),
    **_texts("ssl_sigalgs_list"),
    **_switches("enable_ssl_certificate_verification", "ssl_check_hostname"),
    # --- credentials
    "sasl_mechanism": one_of("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI"),
    **_texts("sasl_plain_username", "sasl_plain_password"),
    **_texts("sasl_kerberos_keytab", "sasl_kerberos_kinit_cmd", "sasl_kerberos_principal"),
    **_texts("sasl_kerberos_service_name"),
    **_numbers(sasl_kerberos_min_time_before_relogin=(0, _DAY_MS)),
    "sasl_oauthbearer_method": one_of("default", "oidc"),
    "sasl_oauthbearer_metadata_authentication_type": one_of("none", "azure_imds", "aws_iam"),
    "sasl_oauthbearer_grant_type": one_of("client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"),
    "sasl_oauthbearer_assertion_algorithm": one_of("RS256", "ES256"),
    **_switches("enable_sasl_oauthbearer_unsecure_jwt", "sasl_oauthbearer_assertion_claim_jti_include"),
    **_numbers(
        sasl_oauthbearer_assertion_claim_exp_seconds=(1, MAX_INT32),
        sasl_oauthbearer_assertion_claim_nbf_seconds=(0, MAX_INT32),
    ),
    **_texts(
        *(
            f"sasl_oauthbearer_{name}"
            for name in (
                "assertion_claim_aud",
                "assertion_claim_iss",
                "assertion_claim_sub",
                "assertion_file",
                "assertion_jwt_template_file",
                "assertion_private_key_file",
                "assertion_private_key_passphrase",
                "assertion_private_key_pem",
                "client_id",
                "client_secret",
                "config",
                "extensions",
                "scope",
                "sub_claim_name",
                "token_endpoint_url",
            )
        )
    ),
}
CONSUMERS: dict[str, Option] = {
    "group_protocol": one_of("classic", "consumer"),
    "isolation_level": COMMON["isolation_level"],
    **_texts("group_remote_assignor"),
    **_switches("check_crcs"),
    **_numbers(
        coordinator_query_interval_ms=(1, _HOUR_MS),
        fetch_error_backoff_ms=(0, 300_000),
        fetch_max_bytes=(0, 2_147_483_135),
        fetch_max_wait_ms=(0, 300_000),
        fetch_min_bytes=(0, MAX_INT32),
        fetch_queue_backoff_ms=(0, 300_000),
        heartbeat_interval_ms=(1, _HOUR_MS),
        max_partition_fetch_bytes=(1, 1_000_000_000),
        max_poll_interval_ms=(1, _DAY_MS),
        queued_max_messages_kbytes=(1, 2_097_151),
        queued_min_messages=(1, 10_000_000),
        session_timeout_ms=(1, _HOUR_MS),
    ),
}
PRODUCERS: dict[str, Option] = {
    "acks": COMMON["acks"],
    "compression_type": one_of("none", *CODECS),
    "linger_ms": _LINGER,
    **_switches("enable_gapless_guarantee", "enable_idempotence"),
    **_numbers(
        batch_num_messages=(1, 1_000_000),
        batch_size=(1, MAX_INT32),
        delivery_timeout_ms=(0, MAX_INT32),
        queue_buffering_backpressure_threshold=(1, 1_000_000),
        queue_buffering_max_kbytes=(1, MAX_INT32),
        queue_buffering_max_messages=(0, MAX_INT32),
        retries=(0, MAX_INT32),
        sticky_partitioning_linger_ms=(0, 900_000),
        transaction_timeout_ms=(1000, MAX_INT32),
    ),
    "compression_level": whole_number(-1, 12),
}
OPTIONS = ALL_CLIENTS | CONSUMERS | PRODUCERS


def name_of(key: str) -> str:
    """What librdkafka calls an option."""
    return _NAMES.get(key) or key.replace("_", ".")


def right_name(key: str) -> str | None:
    """Our name of an option that was given by librdkafka's; None if it is no name of librdkafka's."""
    ours = {name.replace(".", "_"): key for key, name in _NAMES.items()} | _ALIASES
    key = key.replace(".", "_")
    return ours.get(key) or (key if key in OPTIONS else None)


def as_taken(key: str, value: Any) -> Any:
    """A right value as the section keeps it; `to_client` makes librdkafka's of it."""
    return value


def to_client(values: Mapping[str, Any]) -> dict[str, Any]:
    """Options by our names as librdkafka takes them."""
    return {name_of(key): _to_client(key, value) for key, value in values.items()}


def _to_client(key: str, value: Any) -> Any:
    if key == "ssl_check_hostname":
        return "https" if value else "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else value
