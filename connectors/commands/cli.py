"""The command line, ``streamsvm COMMAND``: its commands, and what an error looks like to the caller."""

import argparse
import errno
import logging
import os
import re
import sys
from collections.abc import Sequence
from typing import NoReturn

import streamsvm

from ..logs.segments import LogCorruption
from ..logs.transport import (
    AccessDenied,
    OffsetOutOfRange,
    OptionRefused,
    OutputsLost,
    Stalled,
    TakenOver,
    TopicMismatch,
    Unavailable,
)
from ..records.formats.base import LibraryMissing
from ..runtime.folders import AlreadyInUse, FileError
from ..runtime.log_output import is_json, set_up_logging
from ..runtime.text import printable
from ..settings.sections import ConfigError
from ..trainer.state.checkpoint import CheckpointError
from ..trainer.state.state import TooManyBadRecords
from . import export, label, labels, lag, merge, merger, produce, report, run, score, topics, warmup
from .demos import demo
from .doctor import doctor
from .replays import dlq, replay
from .shared.exit_codes import BAD_CONFIG, BAD_DATA, DENIED, FAILED, OK, STALLED, TEMPORARY
from .tuning import crossval, search

logger = logging.getLogger(__name__)

# In the order of `streamsvm --help`; each has add_parser(subparsers), whose parser sets `run`.
COMMANDS = (
    demo, run, score, merger, label, labels, produce, topics, lag, dlq, replay,
    crossval, search, report, export, merge, doctor, warmup,
)  # fmt: skip
_LOG_FORMAT = "STREAMSVM_DAEMON_LOG_FORMAT"  # the variable of the setting
_BAD_DATA = (
    LogCorruption,
    OffsetOutOfRange,
    TopicMismatch,
    CheckpointError,
    streamsvm.SnapshotError,
    TooManyBadRecords,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return its exit code (see `exit_codes`)."""
    arguments = make_parser().parse_args(argv)
    try:
        return arguments.run(arguments) or OK
    except ConfigError as error:
        return _complain(error.problems, BAD_CONFIG)
    except (OptionRefused, LibraryMissing) as error:
        return _complain([str(error)], BAD_CONFIG)
    except AccessDenied as error:
        return _complain([str(error)], DENIED)
    except _BAD_DATA as error:
        return _complain([str(error)], BAD_DATA)
    except Stalled as error:
        return _complain([str(error)], STALLED)
    except (Unavailable, OutputsLost, TakenOver) as error:
        return _complain([str(error)], TEMPORARY)
    except FileError as error:
        return _complain(error.problems, FAILED)
    except (AlreadyInUse, OSError) as error:
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return _complain([_without_number(error)], TEMPORARY if is_full else FAILED)
    except KeyboardInterrupt:
        return _complain(["interrupted"], FAILED)


def _complain(problems: Sequence[str], code: int) -> int:
    if os.environ.get(_LOG_FORMAT) == "json":  # also of a configuration that could not be read
        set_up_logging("json")
    for problem in problems:
        if is_json():
            logger.critical("%s", printable(problem), extra={"exit_code": code})
        else:
            print(f"streamsvm: {printable(problem)}", file=sys.stderr)
    return code


def _without_number(error: Exception) -> str:
    """The message of an error; of the system's errors, without their numbers."""
    if isinstance(error, OSError) and error.strerror and error.filename is not None and error.filename2 is None:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def make_parser() -> argparse.ArgumentParser:
    """The parser of ``streamsvm``, with a subparser for each command."""
    parser = _Parser(prog="streamsvm", description="Online kernel support vector machines for streams.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {streamsvm.__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(subparsers)
    return parser


class _Parser(argparse.ArgumentParser):
    """Reports wrong arguments without repeating a secret among them, such as that of a ``--set`` without its dashes."""

    def error(self, message: str) -> NoReturn:
        super().error(re.sub(r"((?:password|secret|token|proxy)\w*\s*=\s*)\S+", r"\1...", message, flags=re.IGNORECASE))
