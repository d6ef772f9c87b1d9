"""Making records durable, for commands that work beside the trainer."""

import time

from ...logs.transport import Transport, Unavailable

_FLUSH_SECONDS = 60.0  # as long as a broker may take to restart


def flush(log: Transport) -> None:
    """Make the produced records durable; retry for a minute while the log is unavailable."""
    until = time.monotonic() + _FLUSH_SECONDS
    while True:
        try:
            return log.flush()
        except Unavailable:
            if time.monotonic() > until:
                raise
