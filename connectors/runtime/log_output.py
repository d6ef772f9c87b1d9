"""Logs on standard error: text for people, or one JSON object a line for programs."""

import json
import logging
import math
import sys
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from types import TracebackType
from typing import Any

from streamsvm.core.stream_warning import StreamWarning

# Attributes of every record; all others come from `extra`.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def set_up_logging(format: str) -> None:
    """Log to standard error, from level INFO.

    Parameters
    ----------
    format
        "text", or "json" for one object a line.  Its fields are ``time`` (ISO 8601, UTC), ``level``, ``logger``,
        ``message``, ``exception`` if there is one, and those of `extra`, which cannot replace the others.
    """
    handler = logging.StreamHandler(sys.stderr)
    text = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
    handler.setFormatter(JSONFormatter() if format == "json" else text)
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    if is_json():
        sys.excepthook = _log_exception
        threading.excepthook = _log_exception_of_thread
        logging.captureWarnings(True)
    warnings.showwarning = partial(_log_stream_warning, warnings.showwarning)


def _log_stream_warning(show: Callable[..., None], message: Warning | str, *others: Any) -> None:
    """Log what a model warns of as an event of ours, without the place in the code; show other warnings as before."""
    if isinstance(message, StreamWarning):
        logging.getLogger("streamsvm").warning("%s", message)
    else:
        show(message, *others)


def is_json() -> bool:
    """Whether standard error takes one JSON object a line, and nothing else."""
    return any(isinstance(handler.formatter, JSONFormatter) for handler in logging.getLogger().handlers)


def _log_exception(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    logging.getLogger("streamsvm").critical("an error has ended the process", exc_info=(kind, error, traceback))


def _log_exception_of_thread(failed: threading.ExceptHookArgs) -> None:
    name = failed.thread.name if failed.thread else "unknown"
    error = failed.exc_value or failed.exc_type()
    logging.getLogger("streamsvm").critical("an error has ended thread %r", name, exc_info=error)


class JSONFormatter(logging.Formatter):
    """A log record as one line of JSON, in ASCII."""

    def format(self, record: logging.LogRecord) -> str:
        fixed = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fixed["exception"] = self.formatException(record.exc_info)
        extra = {name: _plain(value) for name, value in vars(record).items() if name not in _STANDARD}
        return json.dumps(fixed | extra | fixed)  # The fixed fields come first, and win.


def _plain(value: Any) -> Any:
    """A value that JSON has: null for NaN and infinity, and a string for an unknown type."""
    if hasattr(value, "tolist"):  # of numpy
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
