"""The command line: ``streamsvm demo | run | produce | dlq | warmup``.

Exit codes: 0 done, 1 anything else, 2 a wrong configuration or wrong arguments, 4 a log or checkpoints that cannot be
used.
"""

import argparse
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

import streamsvm

from . import daemon
from .checkpoint import CheckpointError
from .folders import AlreadyInUse
from .local_log import LocalLog
from .observe import set_up_logging
from .readers import FORMATS, Columns, FileError, read_events
from .report import table
from .segments import LogCorruption
from .settings import ConfigError, LogSettings, load
from .state import TooManyBadRecords
from .transport import TOPIC_NAME, OffsetOutOfRange

logger = logging.getLogger(__name__)

OK, FAILED, BAD_CONFIG, BAD_DATA = 0, 1, 2, 4


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except ConfigError as error:
        return _complain(error.problems, BAD_CONFIG)
    except (LogCorruption, OffsetOutOfRange, CheckpointError, streamsvm.SnapshotError, TooManyBadRecords) as error:
        return _complain([str(error)], BAD_DATA)
    except (FileError, AlreadyInUse, OSError) as error:
        return _complain([str(error)], FAILED)
    except KeyboardInterrupt:
        return _complain(["interrupted"], FAILED)


def _complain(problems: Sequence[str], code: int) -> int:
    for problem in problems:
        print(f"streamsvm: {problem}", file=sys.stderr)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="streamsvm", description="Online support vector machines for streams.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {streamsvm.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = commands.add_parser("demo", help="learn two real streams and draw what was learned")
    command.add_argument("--dir", type=Path, default=Path("streamsvm-demo"), help="folder of the log and the results")
    command.add_argument("--records", type=_count, help="how much of each stream (all)")
    command.set_defaults(run=_demo)

    command = commands.add_parser("run", help="consume a topic: predict, learn, checkpoint")
    _add_config(command)
    command.add_argument("--check", action="store_true", help="report everything wrong with the configuration and stop")
    command.set_defaults(run=_run)

    _add_produce(commands.add_parser("produce", help="put the records of a file into a topic"))

    command = commands.add_parser("dlq", help="list the records that were refused, and why")
    _add_config(command)
    command.set_defaults(run=_dlq)

    command = commands.add_parser("warmup", help="compile ahead, for example while an image is built")
    command.set_defaults(run=_warmup)
    return parser


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument("config", type=Path, metavar="CONFIG.toml")
    command.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE", help="override a setting")


def _add_produce(command: argparse.ArgumentParser) -> None:
    command.description = (
        "CSV with a header, JSON lines (events, or flat objects), LIBSVM format, or npz with X and y, or with data, "
        "indices, indptr and y of a CSR matrix (other arrays, such as X_test, are ignored). The whole file is checked "
        "before the first record is written."
    )
    command.add_argument("file", type=Path)
    where = command.add_mutually_exclusive_group(required=True)
    where.add_argument("--dir", type=Path, help="folder of the log")
    where.add_argument("--config", type=Path, metavar="CONFIG.toml", help="configuration that names the log")
    command.add_argument("--topic", type=_topic, help="topic (that of the configuration, else 'events')")
    command.add_argument("--format", choices=["auto", *FORMATS], default="auto")
    command.add_argument("--label", metavar="COLUMN", help="column of the label; without it events have none")
    command.add_argument("--id", metavar="COLUMN", help="column of the id (NAME:LINE)")
    command.add_argument("--positive", metavar="VALUE", help="label of the positive class; all others are negative")
    command.set_defaults(run=_produce)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, at least 1")
    return int(text)


def _topic(text: str) -> str:
    if not TOPIC_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} must be 1 to 200 letters, digits, '.', '_' or '-'")
    return text


# --- commands ---------------------------------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> int:
    from . import demo  # brings river's datasets and, with them, half of scikit-learn

    set_up_logging()
    with daemon.stop_on_signals() as stop, logging_redirect_tqdm():
        demo.run(arguments.dir, arguments.records, stop)
    return OK


def _run(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    if arguments.check:
        print(f"{arguments.config}: no problems")
        return OK
    set_up_logging()
    with daemon.stop_on_signals() as stop, logging_redirect_tqdm():
        logger.info("engine ready after %.1f seconds", streamsvm.warmup(settings.model.implementation))
        state = daemon.run(settings, stop)
    if state is None:
        print(f"no event of topic {settings.log.topic!r} in {settings.log.dir} was consumed yet")
        return OK
    print(table({settings.log.topic: state}))
    print(f"model digest: {state.model.digest()}")
    return OK


def _produce(arguments: argparse.Namespace) -> int:
    log = load(arguments.config, os.environ).log if arguments.config else LogSettings(dir=arguments.dir)
    topic = arguments.topic or log.topic
    columns = Columns(arguments.label, arguments.id, arguments.positive)

    def events(description: str, total: int | None = None) -> Iterator[bytes]:
        values = read_events(arguments.file, arguments.format, columns)
        return tqdm(values, description, total=total, unit=" records", disable=None)

    n_records = sum(1 for _ in events("checking"))
    with LocalLog(log.dir, int(log.segment_mb * 2**20)) as target:
        for value in events("writing", n_records):
            target.produce(topic, value)
        target.flush()
        total = target.end_offsets(topic).get(0, 0)
    print(f"appended {n_records} records from {arguments.file} to topic {topic} of {log.dir}, which now has {total}")
    return OK


def _dlq(arguments: argparse.Namespace) -> int:
    log = load(arguments.config, os.environ, arguments.set, log_must_exist=True).log
    with LocalLog(log.dir) as source:
        source.seek(log.dlq, 0, 0)
        while records := source.poll(0, 500):
            for record in records:
                why = {name: value.decode() for name, value in record.headers if name.startswith("sv-dlq-")}
                print(
                    why["sv-dlq-offset"], f"{why['sv-dlq-reason']}: {why['sv-dlq-error']}", record.value[:80], sep="\t"
                )
    return OK


def _warmup(_: argparse.Namespace) -> int:
    print(f"ready after {streamsvm.warmup():.1f} seconds")
    return OK
