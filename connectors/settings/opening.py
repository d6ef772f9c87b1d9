"""Open the record log that a configuration names."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from ..logs.embedded import LocalLog
from ..logs.transport import Transport
from ..runtime.process import Stop
from .sections import Settings

logger = logging.getLogger(__name__)


def open_log(
    settings: Settings, stop: Stop, tell: Callable[[str], None] = logger.warning, group: str | None = None
) -> AbstractContextManager[Transport]:
    """The log of a configuration: Kafka's if there is a [kafka] section, otherwise the embedded one.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked while a broker is waited for; `Unavailable` is raised once it says True.
    tell
        Called with the reason while there is no broker.
    group
        Of consumers; default: that of the trainers.
    """
    group = group or settings.group.id
    if not settings.kafka:
        return LocalLog(settings.log.dir, int(settings.log.segment_mb * 2**20), group)
    from ..logs.kafka_log import KafkaLog  # half a second, for those who use it

    return KafkaLog.connect(settings, group, stop, tell)


def open_once(settings: Settings, group: str | None = None) -> AbstractContextManager[Transport]:
    """The log of a configuration, without waiting for a broker, and without transactions of our own."""
    plain = replace(settings, daemon=replace(settings.daemon, exactly_once=False))
    return open_log(plain, lambda: True, lambda _: None, group)
