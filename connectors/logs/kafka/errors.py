"""The client's errors as those of `transport`, which say whether trying again may help."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import kafka.errors

from ..cluster.options import no_kafka
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
from .client import client_logger
from .options import CODECS_HINT

_REFUSALS = (
    kafka.errors.SaslAuthenticationFailedError,
    kafka.errors.UnsupportedSaslMechanismError,
    kafka.errors.IllegalSaslStateError,
    kafka.errors.AuthorizationError,
)


@contextmanager
def translated() -> Iterator[None]:
    """Raise our errors instead of the client's."""
    try:
        yield
    except (kafka.errors.OffsetOutOfRangeError, kafka.errors.LogTruncationError) as error:
        raise PositionRefused(str(error)) from None
    except kafka.errors.FencedInstanceIdError:
        raise TakenOver("another process has the same group.instance") from None
    except _REFUSALS as error:
        raise AccessDenied(f"the broker refuses us: {error}") from None
    except kafka.errors.KafkaConfigurationError as error:
        raise OptionRefused(f"kafka: {error}") from None
    except kafka.errors.UnsupportedCodecError as error:
        raise TopicMismatch(f"records cannot be read: {error}; {CODECS_HINT}") from None
    except kafka.errors.KafkaError as error:
        raise Unavailable(str(error)) from None


@contextmanager
def translated_transaction(instance: str | None) -> Iterator[None]:
    """Raise our errors about a transaction instead of the client's: its records have to be consumed again.

    Only a process with a name, `instance`, may have been replaced by another one.
    """
    try:
        yield
    except (
        kafka.errors.ProducerFencedError,
        kafka.errors.InvalidProducerEpochError,
        kafka.errors.FencedInstanceIdError,
    ) as error:
        raise fenced(str(error), instance) from None
    except kafka.errors.KafkaError as error:
        raise OutputsLost(f"the transaction failed: {error}") from None


@contextmanager
def telling_refusals() -> Iterator[None]:
    """Raise `AccessDenied` if the broker refuses us while a client connects; the client itself only times out."""
    handler, level = _Refusals(), client_logger.level
    client_logger.addHandler(handler)
    client_logger.propagate = False
    client_logger.setLevel(logging.INFO)
    try:
        yield
    except kafka.errors.KafkaTimeoutError:
        if handler.found:
            raise AccessDenied(f"the broker refuses us: {handler.found}") from None
        raise no_kafka() from None
    finally:
        client_logger.setLevel(level)
        client_logger.propagate = True
        client_logger.removeHandler(handler)


class _Refusals(logging.Handler):
    """Finds the reason of a refusal in the client's log, the only place that has it."""

    def __init__(self) -> None:
        super().__init__()
        self.found: str | None = None

    def emit(self, record: logging.LogRecord) -> None:
        for item in record.args if isinstance(record.args, tuple) else ():
            if isinstance(item, _REFUSALS) or "CERTIFICATE_VERIFY_FAILED" in str(item):
                self.found = str(item)
