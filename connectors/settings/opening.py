"""Open the record log that a configuration names."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace

from ..logs.embedded import LocalLog
from ..logs.transport import Transport
from ..runtime.process import Stop
from .kafka_section import log_options
from .sections import Settings

logger = logging.getLogger(__name__)


def open_log(
    settings: Settings, stop: Stop, tell: Callable[[str], None] = logger.warning, group: str | None = None
) -> AbstractContextManager[Transport]:
    """Open a configuration's log: Kafka's if there is a [kafka] section, otherwise the embedded one.

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
    group = group or settings.group.id
    if not settings.kafka:
        return LocalLog(settings.log.dir, int(settings.log.segment_mb * 2**20), group)
    from ..logs.kafka.log import KafkaLog  # It takes half a second to import.

    return KafkaLog.connect(log_options(settings, group), stop, tell)


def open_once(settings: Settings, group: str | None = None) -> AbstractContextManager[Transport]:
    """Open a configuration's log without waiting for a broker and without transactions; for short commands."""
    plain = replace(settings, daemon=replace(settings.daemon, exactly_once=False))
    return open_log(plain, lambda: True, lambda _: None, group)
