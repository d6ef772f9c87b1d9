"""librdkafka's errors as those of `transport`, which say whether trying again may help."""

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from ..transport import (
    AccessDenied,
    OptionRefused,
    OutputsLost,
    PositionRefused,
    TakenOver,
    TopicMismatch,
    Unavailable,
    fenced,
)

_REFUSALS = {
    KafkaError._AUTHENTICATION,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.ILLEGAL_SASL_STATE,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_POSITIONS = {KafkaError._AUTO_OFFSET_RESET, KafkaError._LOG_TRUNCATION, KafkaError.OFFSET_OUT_OF_RANGE}
_OPTIONS = {KafkaError._INVALID_ARG, KafkaError._CONFLICT}
_FENCED = {
    KafkaError._FENCED,
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
}
MISSING = {  # a topic or a partition that does not exist, or is not known yet
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNKNOWN_TOPIC_ID,
}
TOO_LARGE = {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE}
GENERATIONS = {  # what the group says to a member that it no longer takes for what it says it is
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
}


def is_refusal(error: KafkaError) -> bool:
    """Whether trying again would not help, because of wrong credentials, certificates or rights."""
    return error.code() in _REFUSALS or (error.code() == KafkaError._SSL and "verif" in error.str())


def ours(error: KafkaError) -> Exception:
    """Our error that says the same."""
    code, text = error.code(), error.str()
    if is_refusal(error):
        return AccessDenied(f"the broker refuses us: {text}")
    if code in _POSITIONS:
        return PositionRefused(text)
    if code in _FENCED:
        return TakenOver("another process has the same group.instance")
    if code in _OPTIONS:
        return OptionRefused(f"kafka: {text}")
    if code == KafkaError._BAD_COMPRESSION:
        return TopicMismatch(f"records cannot be read: {text}")
    return Unavailable(text)


@contextmanager
def translated() -> Iterator[None]:
    """Raise our errors instead of the client's."""
    try:
        yield
    except KafkaException as error:
        raise ours(error.args[0]) from None


@contextmanager
def translated_transaction(instance: str | None) -> Iterator[None]:
    """Raise our errors about a transaction instead of the client's: its records have to be consumed again.

    Only a process with a name, `instance`, may have been replaced by another one.
    """
    try:
        yield
    except KafkaException as exception:
        error = exception.args[0]
        if error.code() in _FENCED:
            raise fenced(error.str(), instance) from None
        raise OutputsLost(f"the transaction failed: {error.str()}") from None
