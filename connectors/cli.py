"""The command line: ``streamsvm demo | run | score | label | produce | topics | lag | dlq | replay | doctor | warmup``.

Exit codes: 0 done, 1 anything else, 2 a wrong configuration or wrong arguments, 3 the broker refuses us, 4 a log or
checkpoints that cannot be used, 70 nothing moved any more, 75 something that a restart may mend.
"""

import argparse
import gc
import logging
import math
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

import streamsvm

from . import commands, daemon, doctor, score, topics
from .checkpoint import CheckpointError
from .folders import AlreadyInUse
from .logs import set_up_logging
from .readers import FORMATS, Columns, FileError, read_events
from .report import table
from .segments import LogCorruption
from .settings import ConfigError, LogSettings, Settings, load
from .state import State, TooManyBadRecords
from .transport import (
    TOPIC_NAME,
    AccessDenied,
    OffsetOutOfRange,
    OutputsLost,
    Stalled,
    TakenOver,
    TopicMismatch,
    Unavailable,
)
from .watchdog import Watchdog

logger = logging.getLogger(__name__)

OK, FAILED, BAD_CONFIG, DENIED, BAD_DATA, STALLED, TEMPORARY = 0, 1, 2, 3, 4, 70, 75
_BAD_DATA = (
    LogCorruption,
    OffsetOutOfRange,
    TopicMismatch,
    CheckpointError,
    streamsvm.SnapshotError,
    TooManyBadRecords,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except ConfigError as error:
        return _complain(error.problems, BAD_CONFIG)
    except AccessDenied as error:
        return _complain([str(error)], DENIED)
    except _BAD_DATA as error:
        return _complain([str(error)], BAD_DATA)
    except Stalled as error:
        return _complain([str(error)], STALLED)
    except (Unavailable, OutputsLost, TakenOver) as error:
        return _complain([str(error)], TEMPORARY)
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
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = subcommands.add_parser("demo", help="learn two real streams and draw what was learned")
    command.add_argument("--dir", type=Path, default=Path("streamsvm-demo"), help="folder of the log and the results")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--records", type=_count, help="how much of each stream (all)")
    what.add_argument("--label", action="store_true", help="label handwritten digits on a page instead")
    command.set_defaults(run=_demo)

    command = subcommands.add_parser("run", help="consume a topic: predict, learn, checkpoint")
    _add_config(command)
    command.add_argument("--check", action="store_true", help="report everything wrong with the configuration and stop")
    command.set_defaults(run=_run)

    command = subcommands.add_parser("score", help="predict events with the models that trainers publish")
    _add_config(command)
    command.set_defaults(run=_score)

    _add_label(subcommands.add_parser("label", help="answer the questions that trainers ask: a page, a terminal, ..."))

    _add_produce(subcommands.add_parser("produce", help="put the records of a file into a topic"))
    _add_topics(subcommands.add_parser("topics", help="show the topics and what is wrong with them, or make them"))

    command = subcommands.add_parser("lag", help="show how far trainers and scorers are")
    _add_config(command)
    command.add_argument("--json", action="store_true", help="for programs")
    command.set_defaults(run=_lag)

    _add_dlq(subcommands.add_parser("dlq", help="list the records that were refused, or put them back"))
    _add_replay(subcommands.add_parser("replay", help="train another model over a part of the log"))

    command = subcommands.add_parser("doctor", help="look for problems, from Python to the broker")
    _add_config(command, nargs="?")
    command.set_defaults(run=_doctor)

    command = subcommands.add_parser("warmup", help="compile ahead, for example while an image is built")
    command.set_defaults(run=_warmup)
    return parser


def _add_config(command: argparse.ArgumentParser, nargs: str | None = None) -> None:
    command.add_argument("config", type=Path, metavar="CONFIG.toml", nargs=nargs)
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


def _add_label(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Show the events whose label a trainer asks for, on a page in the browser unless another way is chosen. "
        "Labels go to the topic log.labels; one is written before it is acknowledged. SIGTERM and Ctrl-C end it."
    )
    _add_config(command)
    ways = command.add_mutually_exclusive_group()
    ways.add_argument("--terminal", action="store_true", help="ask in this terminal, or answer lines of a pipe")
    ways.add_argument("--truth", type=Path, metavar="FILE", help="answer from a file, CSV or JSON lines, of id and y")
    ways.add_argument("--field", metavar="NAME", help="answer from this field of the events")
    ways.add_argument("--label-studio", metavar="URL", help="ask in a project of Label Studio")
    command.add_argument("--train", action="store_true", help="run the trainer as well, as `streamsvm run` does")
    command.add_argument("--annotator", metavar="NAME", help="of --terminal: who answers (the user)")
    command.add_argument("--no-browser", action="store_true", help="of the page: open no browser")
    command.add_argument("--delay", type=_seconds, metavar="SECONDS", help="of --truth, --field: for each answer (0)")
    command.add_argument("--noise", type=_share, metavar="SHARE", help="of --truth, --field: of wrong answers (0)")
    command.add_argument("--project", type=_count, metavar="N", help="of --label-studio: the project's number")
    command.add_argument("--token-file", type=Path, metavar="FILE", help="of --label-studio: holds an access token")
    command.add_argument(
        "--auth-file", type=Path, metavar="FILE", help="of --label-studio: holds USER:PASSWORD that it must give us"
    )
    command.set_defaults(run=_label)


def _add_topics(command: argparse.ArgumentParser) -> None:
    _add_config(command)
    command.add_argument("--create", action="store_true", help="make those that are missing")
    command.add_argument(
        "--partitions", type=_count, metavar="N", help="of events and what goes with them (those of the events, or 1)"
    )
    command.add_argument("--replication", type=_count, metavar="R", help="brokers that keep a topic (theirs to say)")
    command.set_defaults(run=_topics)


def _add_dlq(command: argparse.ArgumentParser) -> None:
    command.description = (
        "list: one line for each dead letter, with its offset, where it comes from, why it was refused, and how it "
        "begins. replay: append each to the topic and partition that it comes from, once."
    )
    command.add_argument("action", nargs="?", choices=["list", "replay"], default="list", help="what to do (list)")
    _add_config(command)
    command.add_argument("--reason", help="only those that were refused for this reason, such as bad-label")
    command.add_argument(
        "--from",
        dest="first",
        type=_offset,
        metavar="OFFSET",
        help="begin here (list: at the first; replay: at the first that was not put back yet)",
    )
    command.add_argument("--dry-run", action="store_true", help="of replay: only say what would be put back")
    command.set_defaults(run=_dlq)


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Train a new model, under the name NAME, on events that are in the log still, and on all labels. State goes to "
        "STATE_DIR-NAME and outputs to TOPIC-NAME; the original is left alone. Interrupted, it goes on. --set tries "
        "other settings. Times are ISO 8601, such as 2026-05-31T12:00, in UTC if they do not say otherwise, and those "
        "of the records."
    )
    _add_config(command)
    command.add_argument("--app", type=_topic, required=True, metavar="NAME", help="the new name")
    command.add_argument(
        "--from", dest="first", type=_moment, metavar="OFFSET|TIME", help="first event, in each partition (earliest)"
    )
    command.add_argument(
        "--to", dest="last", type=_moment, metavar="OFFSET|TIME", help="first event that is left out (none)"
    )
    command.set_defaults(run=_replay)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a number, at least 1")
    return int(text)


def _seconds(text: str) -> float:
    return _number(text, 0, math.inf, "a number of seconds")


def _share(text: str) -> float:
    return _number(text, 0, 1, "a share from 0 to 1")


def _number(text: str, low: float, high: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (low <= number <= high and math.isfinite(number)):
        raise argparse.ArgumentTypeError(f"{text!r} must be {what}")
    return number


def _topic(text: str) -> str:
    if not TOPIC_NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} must be 1 to 200 letters, digits, '.', '_' or '-'")
    return text


def _offset(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} must be an offset: 0 or more")
    return int(text)


def _moment(text: str) -> commands.Moment:
    if text == "earliest":
        return None
    if text.isdecimal():
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} must be an offset or a time such as 2026-05-31T12:00") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


# --- commands ---------------------------------------------------------------------------------------------------------


def _demo(arguments: argparse.Namespace) -> int:
    if arguments.label:
        return _demo_label(arguments.dir)
    from . import demo  # brings river's datasets and, with them, half of scikit-learn

    set_up_logging("text")
    with daemon.stop_on_signals() as stop, logging_redirect_tqdm():
        demo.run(arguments.dir, arguments.records, stop)
    return OK


def _demo_label(folder: Path) -> int:
    from . import demo_labelling

    with _working(load(demo_labelling.prepare(folder), {})) as stop:
        demo_labelling.run(folder, stop)
    return OK


@contextmanager
def _working(settings: Settings) -> Iterator[daemon.Stop]:
    """Logs as configured, the engine ready, and an end in time after SIGTERM or SIGINT, whatever hangs."""
    set_up_logging(settings.daemon.log_format)
    logger.info(
        "preparing the engine, which takes a minute if it has to be compiled (`streamsvm warmup` does it ahead)"
    )
    with _killable():
        seconds = streamsvm.warmup(settings.model.implementation)
    logger.info("engine ready after %.1f seconds", seconds)
    settle_memory()
    with _stopping(settings) as stop, logging_redirect_tqdm():
        yield stop


@contextmanager
def _killable() -> Iterator[None]:
    """Let Ctrl-C end the process at once, since nothing is lost yet: the compiler swallows what Python makes of it."""
    handler = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


@contextmanager
def _stopping(settings: Settings) -> Iterator[daemon.Stop]:
    """An end in time after SIGTERM or SIGINT, whatever hangs."""
    with (
        Watchdog(0) as watchdog,
        daemon.stop_on_signals(lambda: watchdog.deadline(settings.daemon.shutdown_seconds)) as stop,
    ):
        yield stop


def settle_memory() -> None:
    """Let the garbage collector alone with what stays for ever, and look for cycles, of which we make few, less often.

    Otherwise it takes an eighth of the daemon's time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def _run(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    if arguments.check:
        print(f"{arguments.config}: no problems")
        return OK
    with _working(settings) as stop:
        states = daemon.run(settings, stop)
    _show_states(settings.log.topic, states)
    return OK


def _show_states(topic: str, states: Mapping[int, State]) -> None:
    if not states:
        print(f"no event of topic {topic!r} was consumed yet")
        return
    named = {f"{topic}-{number}": state for number, state in sorted(states.items())}
    print(table(named))
    for name, state in named.items():
        print(f"model digest of {name}: {state.models.digest()}")


def _score(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    with _working(settings) as stop:
        n_predictions = score.run(settings, stop)
    print(f"predicted {topics.plural(n_predictions, 'event')} of topic {settings.log.topic!r}")
    return OK


def _label(arguments: argparse.Namespace) -> int:
    from . import label  # servers and clients that no other command needs

    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    label.check(settings, train=arguments.train)
    desk = label.choose(settings, arguments)
    with ExitStack() as stack:
        if arguments.train and arguments.terminal:
            stack.enter_context(label.logs_aside(settings))
        if arguments.train:
            stop = stack.enter_context(_working(settings))
        else:
            set_up_logging(settings.daemon.log_format)
            stop = stack.enter_context(_stopping(settings))
        states = label.run(settings, desk, stop, train=arguments.train)
    if states is not None:
        _show_states(settings.log.topic, states)
    return OK


def _produce(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ) if arguments.config else Settings(log=LogSettings(dir=arguments.dir))
    topic = arguments.topic or settings.log.topic
    columns = Columns(arguments.label, arguments.id, arguments.positive)

    def events(description: str, total: int | None = None) -> Iterator[bytes]:
        values = read_events(arguments.file, arguments.format, columns)
        return tqdm(values, description, total=total, unit=" records", disable=None)

    n_records = sum(1 for _ in events("checking"))
    if settings.kafka:
        topics.check(settings, [topic])  # or the client would wait for it
    with commands.open_once(settings) as target:
        for value in events("writing", n_records):
            target.produce(topic, value)
        commands.flush(target)
        total = sum(target.end_offsets(topic).values())
    where = "Kafka" if settings.kafka else settings.log.dir
    print(f"appended {n_records} records from {arguments.file} to topic {topic} of {where}, which now has {total}")
    return OK


def _topics(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ, arguments.set)
    if arguments.create:
        for name in topics.create(settings, arguments.partitions, arguments.replication):
            print(f"made topic {name}")
    return OK if commands.show_topics(settings) else BAD_DATA


def _lag(arguments: argparse.Namespace) -> int:
    commands.show_lag(load(arguments.config, os.environ, arguments.set, log_must_exist=True), as_json=arguments.json)
    return OK


def _dlq(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    if arguments.action == "list":
        commands.list_dead_letters(settings, arguments.reason, arguments.first)
    else:
        commands.replay_dead_letters(settings, arguments.reason, arguments.first, is_dry=arguments.dry_run)
    return OK


def _replay(arguments: argparse.Namespace) -> int:
    settings = commands.replay_settings(arguments.config, os.environ, arguments.set, arguments.app)
    with _working(settings) as stop:
        states = commands.replay(settings, arguments.first, arguments.last, stop)
    _show_states(settings.log.topic, states)
    return OK


def _doctor(arguments: argparse.Namespace) -> int:
    try:
        settings = load(arguments.config, os.environ, arguments.set) if arguments.config else None
    except ConfigError as error:
        doctor.examine(None)
        return _complain(error.problems, BAD_CONFIG)
    return OK if doctor.examine(settings) else FAILED


def _warmup(_: argparse.Namespace) -> int:
    print(f"ready after {streamsvm.warmup():.1f} seconds")
    return OK
