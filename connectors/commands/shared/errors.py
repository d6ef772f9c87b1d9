"""What an error looks like to the caller of a command: lines on standard error, and an exit code."""

import errno
import logging
import os
import sys
from collections.abc import Sequence

from ...runtime.exit_codes import BAD_CONFIG, BAD_DATA, DENIED, FAILED, STALLED, TEMPORARY
from ...runtime.log_output import is_json, set_up_logging
from ...runtime.text import printable

logger = logging.getLogger(__name__)

_ORIGINS = ("builtins", "streamsvm")  # of the errors below
_LOG_FORMAT = "STREAMSVM_DAEMON_LOG_FORMAT"  # the variable of the setting
_ERRORS = {  # by their names: to import all errors would load every room, and the engine
    BAD_CONFIG: "ConfigError LevelError OptionRefused LibraryMissing",
    DENIED: "AccessDenied",
    BAD_DATA: "LogCorruption OffsetOutOfRange TopicMismatch CheckpointError SnapshotError TooManyBadRecords",
    STALLED: "Stalled",
    TEMPORARY: "Unavailable OutputsLost TakenOver",
    FAILED: "FileError AlreadyInUse OSError KeyboardInterrupt",
}
_CODES = {name: code for code, names in _ERRORS.items() for name in names.split()}


def told(error: BaseException) -> int | None:
    """Say what went wrong; return the exit code, or None for a fault of ours, whose traceback is needed."""
    kinds = (kind.__name__ for kind in type(error).__mro__ if kind.__module__.split(".")[0] in _ORIGINS)
    code = next((_CODES[name] for name in kinds if name in _CODES), None)
    if code is None:
        return None
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        code = TEMPORARY
    _complain(_problems(error), code)
    return code


def _problems(error: BaseException) -> Sequence[str]:
    if (problems := getattr(error, "problems", None)) is not None:  # of ConfigError and FileError
        return problems
    if isinstance(error, KeyboardInterrupt):
        return ["interrupted"]
    if isinstance(error, OSError) and error.strerror and error.filename is not None and error.filename2 is None:
        return [f"{error.filename}: {error.strerror}"]  # without the system's number
    return [str(error)]


def _complain(problems: Sequence[str], code: int) -> None:
    if os.environ.get(_LOG_FORMAT) == "json":  # also of a configuration that could not be read
        set_up_logging("json")
    for problem in problems:
        if is_json():
            logger.critical("%s", printable(problem), extra={"exit_code": code})
        else:
            print(f"streamsvm: {printable(problem)}", file=sys.stderr)
