"""Open the record log that a configuration names: the only place that asks which kind of log it is."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from ..logs.backend import Backend
from ..logs.embedded import EmbeddedBackend
from ..logs.transport import Transport
from ..runtime.process import Stop
from .kafka_section import log_options, uses_librdkafka
from .sections import Settings

logger = logging.getLogger(__name__)


def backend_of(settings: Settings) -> Backend:
    """The place of a configuration's topics: a Kafka cluster if there is a [kafka] section, otherwise a folder."""
    if uses_librdkafka(settings):
        from ..logs.rdkafka.backend import RdKafkaBackend  # An extra.

        return RdKafkaBackend(log_options(settings))
    if settings.kafka:
        from ..logs.kafka.backend import KafkaBackend  # It takes half a second to import.

        return KafkaBackend(log_options(settings))
    return EmbeddedBackend(settings.log.dir, int(settings.log.segment_mb * 2**20))


def open_log(
    settings: Settings, stop: Stop, tell: Callable[[str], None] = logger.warning, group: str | None = None
) -> AbstractContextManager[Transport]:
    """Open a configuration's log.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked while no broker answers; if it says True, `Unavailable` is raised.
    tell
        Called with the reason while no broker answers.
    group
        Name of the consumer group; default: the trainers'.
    """
    return backend_of(settings).open(group or settings.group.id, stop, tell)


def open_once(settings: Settings, group: str | None = None) -> AbstractContextManager[Transport]:
    """Open a configuration's log without waiting for a broker and without transactions; for short commands."""
    plain = replace(settings, daemon=replace(settings.daemon, exactly_once=False))
    return open_log(plain, lambda: True, lambda _: None, group)
