"""The command line, ``streamsvm COMMAND``; `_parser` has the commands.

Exit codes: 0 done, 1 anything else, 2 a wrong configuration or wrong arguments, 3 the broker refuses us, 4 a log or
checkpoints that cannot be used, 70 nothing moved any more, 75 something that a restart may mend, such as a full disk.
"""

import argparse
import errno
import gc
import logging
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

import streamsvm
from streamsvm.core.device.choice import DEVICES

from ..logs.segments import LogCorruption
from ..logs.transport import AccessDenied, OffsetOutOfRange, OutputsLost, Stalled, TakenOver, TopicMismatch, Unavailable
from ..records.files import FORMATS, Columns, FileError, read_events
from ..report import export as libsvm_format
from ..report.charts import PlotMissing, estimates_of, table
from ..runtime.folders import AlreadyInUse, require_folder
from ..runtime.log_output import is_json, set_up_logging
from ..runtime.watchdog import Watchdog
from ..scorer import scorer as score
from ..settings import topics
from ..settings.sections import ConfigError, LogSettings, Settings, load
from ..trainer import trainer as daemon
from ..trainer.state.checkpoint import CheckpointError
from ..trainer.state.models import SingleModel
from ..trainer.state.state import State, TooManyBadRecords
from . import doctor, option_types
from . import topics as commands

logger = logging.getLogger(__name__)

OK, FAILED, BAD_CONFIG, DENIED, BAD_DATA, STALLED, TEMPORARY = 0, 1, 2, 3, 4, 70, 75
# What the batch solver knows, which is imported by its commands only.
_FOLDS = ["stratified", "v-fold", "grouped", "hold-out", "leave-one-out", "leave-p-out"]
_SEEDINGS = ["auto", "none", "skip", "avg", "top", "greedy", "best", "path"]
_CHAINS = ["reuse", "sir", "mir", "ato"]  # seedings that lead from fold to fold, which a search does not know
_SOLVERS = ["auto", "shared", "cholesky", "strategy-1", "strategy-2", "newton"]  # of smooth SVMs
_METRICS = "accuracy, g_mean, roc_auc, prbep, f1, precision, recall, balanced_accuracy, mcc"
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
        is_full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
        return _complain([str(error)], TEMPORARY if is_full else FAILED)
    except KeyboardInterrupt:
        return _complain(["interrupted"], FAILED)


def _complain(problems: Sequence[str], code: int) -> int:
    for problem in problems:
        if is_json():
            logger.critical("%s", problem, extra={"exit_code": code})
        else:
            print(f"streamsvm: {problem}", file=sys.stderr)
    return code


class _Parser(argparse.ArgumentParser):
    """Complains about arguments without repeating a secret among them, as of ``--set`` without its dashes."""

    def error(self, message: str) -> NoReturn:
        super().error(re.sub(r"((?:password|secret|token|proxy)\w*\s*=\s*)\S+", r"\1...", message, flags=re.IGNORECASE))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="streamsvm", description="Online support vector machines for streams.")
    parser.add_argument("--version", action="version", version=f"%(prog)s {streamsvm.__version__}")
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")

    command = subcommands.add_parser("demo", help="learn two real streams and draw what was learned")
    command.add_argument("--dir", type=Path, default=Path("streamsvm-demo"), help="folder of the log and the results")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--records", type=option_types.count, help="how much of each stream (all)")
    what.add_argument("--label", action="store_true", help="label handwritten digits on a page instead")
    command.set_defaults(run=_demo)

    command = subcommands.add_parser("run", help="consume a topic: predict, learn, checkpoint")
    _add_config(command)
    command.add_argument("--check", action="store_true", help="report everything wrong with the configuration and stop")
    command.set_defaults(run=_run)

    command = subcommands.add_parser("score", help="predict events with the models that trainers publish")
    _add_config(command)
    _add_device(command, "batches are predicted")
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

    _add_crossval(subcommands.add_parser("crossval", help="test a setting on examples that it has not seen"))
    _add_search(subcommands.add_parser("search", help="find C and gamma by cross-validation on a grid"))

    command = subcommands.add_parser("report", help="write a page with pictures of a run, from its state folder")
    command.description = (
        "Write one HTML file that needs nothing else. The trainer may be running: the newest checkpoints count. With "
        "the configuration instead of the folder, the end of its embedded log is looked at as well."
    )
    command.add_argument(
        "run_of", type=Path, metavar="DIR|CONFIG.toml", help="daemon.state_dir of a run, or its configuration"
    )
    command.add_argument("--out", type=Path, metavar="FILE", help="the page, which is replaced (DIR/report.html)")
    command.set_defaults(run=_report)

    _add_export(subcommands.add_parser("export", help="write a model as a file that LIBSVM reads"))

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
    command.add_argument("--topic", type=option_types.topic, help="topic (that of the configuration, else 'events')")
    command.add_argument("--format", choices=["auto", *FORMATS], default="auto", help="of the file (by its suffix)")
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
    command.add_argument(
        "--delay", type=option_types.seconds, metavar="SECONDS", help="of --truth, --field: for each answer (0)"
    )
    command.add_argument(
        "--noise", type=option_types.share, metavar="SHARE", help="of --truth, --field: of wrong answers (0)"
    )
    command.add_argument(
        "--project", type=option_types.count, metavar="N", help="of --label-studio: the project's number"
    )
    command.add_argument("--token-file", type=Path, metavar="FILE", help="of --label-studio: holds an access token")
    command.add_argument(
        "--auth-file", type=Path, metavar="FILE", help="of --label-studio: holds USER:PASSWORD that it must give us"
    )
    command.set_defaults(run=_label)


def _add_topics(command: argparse.ArgumentParser) -> None:
    _add_config(command)
    command.add_argument("--create", action="store_true", help="make those that are missing")
    command.add_argument(
        "--partitions",
        type=option_types.partitions,
        metavar="N",
        help="of events and what goes with them (those of the events, or 1)",
    )
    command.add_argument(
        "--replication", type=option_types.replication, metavar="R", help="brokers that keep a topic (theirs to say)"
    )
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
        type=option_types.offset,
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
    command.add_argument("--app", type=option_types.topic, required=True, metavar="NAME", help="the new name")
    command.add_argument(
        "--from",
        dest="first",
        type=option_types.moment,
        metavar="OFFSET|TIME",
        help="first event, in each partition (earliest)",
    )
    command.add_argument(
        "--to", dest="last", type=option_types.moment, metavar="OFFSET|TIME", help="first event that is left out (none)"
    )
    command.set_defaults(run=_replay)


def _add_export(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Write a model in LIBSVM's text format, and beside it FILE.json: the number and the scale of each feature, and "
        "what the probabilities are. The folder's daemon may be running: its newest checkpoint counts."
    )
    command.add_argument(
        "model", type=Path, metavar="MODEL|DIR", help="a file that save() wrote, or the daemon's state folder"
    )
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="the file, which is replaced")
    command.add_argument("--partition", type=option_types.offset, metavar="N", help="of a folder: whose model")
    command.add_argument("--key", metavar="KEY", help='of a folder with daemon.per = "key": whose model')
    command.set_defaults(run=_export)


def _add_crossval(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Train on all examples of a file but a few, test these, and so on for every part (fold) of the file. Folds "
        "share kernel values, and start from a solution that is known where this pays. The line 'total' has the scores "
        "over all tests together, 'mean' and 'deviation' those over the folds."
    )
    _add_examples(command)
    command.add_argument(
        "--model",
        choices=option_types.MODELS,
        default="svm",
        help="svm: hinge loss; ssvm: squared hinge loss, smooth, by Newton's method (svm)",
    )
    command.add_argument("--C", type=option_types.positive, default=1.0, help="penalty of an error (1)")
    command.add_argument("--gamma", type=option_types.positive, default=1.0, help="of the kernel (1)")
    _add_kernel(command)
    command.set_defaults(tol=None)  # every model has its own
    _add_smooth(command)
    _add_folds(command, 10)
    command.add_argument(
        "--seeding",
        choices=_SEEDINGS + _CHAINS,
        default="auto",
        help="where the training of a fold starts, which changes the time and not the result. none, skip: at 0; reuse, "
        "sir, mir, ato: at the fold before; the others: at the solution over all examples; auto: by what the starts "
        "are expected to cost, at 0 if folds are few (auto)",
    )
    command.add_argument(
        "--metric",
        type=option_types.names,
        default="accuracy,g_mean",
        metavar="NAMES",
        help=f"one or several of {_METRICS} (accuracy,g_mean)",
    )
    command.add_argument(
        "--compare",
        type=option_types.setting,
        metavar="SETTING",
        help="another setting on the same folds, such as C=10,gamma=0.1; which is better on average, and by folds won",
    )
    command.add_argument("--out", type=Path, metavar="FILE", help="prediction of each example, as .csv or .jsonl")
    command.set_defaults(run=_crossval)


def _add_search(command: argparse.ArgumentParser) -> None:
    command.description = (
        "Cross-validate every C with every gamma. Values are a list, 0.1,1,10, or a range START:STOP:FACTOR, "
        "2^-5:2^15:2^2. All folds and all C of one gamma share kernel values, and C rises from solution to solution."
    )
    _add_examples(command)
    command.add_argument(
        "--C", type=option_types.values, default="2^-5:2^15:2^2", metavar="VALUES", help="penalties (2^-5:2^15:2^2)"
    )
    command.add_argument("--gamma", type=option_types.values, metavar="VALUES", help="of the kernel (2^-15:2^3:2^2)")
    _add_kernel(command)
    _add_folds(command, 3)
    command.add_argument(
        "--seeding",
        choices=_SEEDINGS,
        default="auto",
        help="where the training of a fold starts, which changes the time and not the result. none: at the fold's own "
        "solution for the C before; the others: as of crossval, with a solution over all examples that goes along C; "
        "auto: none, unless folds are many and small (auto)",
    )
    command.add_argument(
        "--metric", type=str.strip, default="accuracy", metavar="NAME", help=f"one of {_METRICS} (accuracy)"
    )
    command.add_argument("--out", type=Path, metavar="FILE", help="scores and costs of all settings, as .csv or .jsonl")
    command.add_argument("--plot", type=Path, metavar="FILE", help="a heat map of the scores: .png, .pdf or .svg")
    command.set_defaults(run=_search)


def _add_examples(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "file",
        type=Path,
        help="CSV with a header, JSON lines, LIBSVM format, or npz; a feature that an example lacks is 0",
    )
    command.add_argument("--format", choices=["auto", *FORMATS], default="auto", help="of the file (by its suffix)")
    command.add_argument("--label", metavar="COLUMN", help="column of the label (CSV, flat JSON lines)")
    command.add_argument("--id", metavar="COLUMN", help="column of the id (NAME:LINE), which is no feature")
    command.add_argument(
        "--feature",
        action="append",
        default=[],
        metavar="COLUMN",
        help="a column that numbers the rows and is a feature all the same; without this it is refused",
    )
    command.add_argument("--positive", metavar="VALUE", help="label of the positive class; all others are negative")
    command.add_argument(
        "--scale",
        choices=["none", "standard", "minmax"],
        default="none",
        help="standard: to mean 0 and deviation 1; minmax: to 0..1. By the statistics of all examples, tested ones "
        "included, because all folds share one kernel; labels play no part (none)",
    )


def _add_kernel(command: argparse.ArgumentParser) -> None:
    kernel = command.add_argument_group("kernel and solver")
    kernel.add_argument("--kernel", choices=option_types.KERNELS, default="rbf", help="function (rbf)")
    kernel.add_argument("--degree", type=option_types.count, default=3, metavar="N", help="of poly (3)")
    kernel.add_argument("--coef0", type=option_types.number, default=0.0, metavar="X", help="of poly and sigmoid (0)")
    kernel.add_argument("--tol", type=option_types.positive, default=1e-3, help="of the optimality conditions (1e-3)")
    kernel.add_argument(
        "--jobs",
        type=option_types.jobs,
        default=1,
        metavar="N",
        help="processes, each with a cache of its own; -1: one per core (1)",
    )
    kernel.add_argument(
        "--cache-mb", type=option_types.megabytes, default=256.0, metavar="MB", help="memory for kernel values (256)"
    )
    _add_device(command, "kernel values of svm are computed")


def _add_device(command: argparse.ArgumentParser, what: str) -> None:
    command.add_argument(
        "--device",
        choices=DEVICES,
        default="cpu",
        help=f"where {what}; cuda: on a GPU, by CuPy; auto: there if there is one and it is worth it (cpu)",
    )


def _add_smooth(command: argparse.ArgumentParser) -> None:
    smooth = command.add_argument_group("smooth SVM (--model ssvm)", "--tol is that of the gradient here (1e-12).")
    smooth.add_argument(
        "--reduced",
        type=option_types.test_size,
        metavar="SHARE|N",
        help="expand the kernel in so many examples, drawn at random with --seed (all)",
    )
    smooth.add_argument(
        "--solver",
        choices=_SOLVERS,
        help="of Newton's linear systems, which changes the time and not the result. shared: one factor for all folds; "
        "auto: that, or cholesky if folds are few (auto)",
    )


def _add_folds(command: argparse.ArgumentParser, k: int) -> None:
    folds = command.add_argument_group("folds")
    folds.add_argument("--folds", choices=_FOLDS, help="kind; stratified: equal shares of both classes (the default)")
    folds.add_argument("-k", type=option_types.count, metavar="N", help=f"number of folds ({k})")
    folds.add_argument(
        "--group", metavar="COLUMN", help="whose an example is: a group is in one fold (--folds grouped)"
    )
    folds.add_argument(
        "--test", type=option_types.test_size, metavar="SHARE|N", help="of hold-out: how many are tested (0.25)"
    )
    folds.add_argument("-p", type=option_types.count, metavar="N", help="of leave-p-out: how many are left out (2)")
    folds.add_argument("--repeat", type=option_types.count, metavar="N", help="deal the folds out N times anew (1)")
    folds.add_argument("--seed", type=option_types.offset, default=0, metavar="N", help="of the dealing out (0)")


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
    begin = time.perf_counter()
    with daemon.killable():
        streamsvm.warmup(settings.model.implementation, removal=settings.removes())
    logger.info("engine ready after %.1f seconds", time.perf_counter() - begin)
    settle_memory()
    with _stopping(settings) as stop, logging_redirect_tqdm():
        yield stop


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
    for line in estimates_of(named):
        print(line)
    for name, state in named.items():
        if isinstance(state.models, SingleModel):  # those of many keys would have to be loaded first, one by one
            print(f"model digest of {name}: {state.models.digest()}")


def _score(arguments: argparse.Namespace) -> int:
    settings = load(arguments.config, os.environ, arguments.set, log_must_exist=True)
    with _working(settings) as stop:
        n_predictions = score.run(settings, stop, arguments.device)
    print(f"predicted {topics.plural(n_predictions, 'event')} of topic {settings.log.topic!r}")
    return OK


def _label(arguments: argparse.Namespace) -> int:
    from ..labelling import label  # servers and clients that no other command needs

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


def _crossval(arguments: argparse.Namespace) -> int:
    from . import crossval  # brings the batch solver, which no daemon needs

    crossval.crossval(arguments)
    return OK


def _search(arguments: argparse.Namespace) -> int:
    from . import search

    search.search(arguments)
    return OK


def _report(arguments: argparse.Namespace) -> int:
    from ..report import page as report_page  # brings river's detectors, which no daemon needs

    require_folder(arguments.out)
    given = arguments.run_of
    settings = load(given, os.environ) if given.suffix == ".toml" and not given.is_dir() else None
    try:
        written, stored = report_page.write_report(
            settings.daemon.state_dir if settings else given, arguments.out, settings
        )
    except PlotMissing as error:
        raise ConfigError([str(error)]) from None
    n_records = sum(item.checkpoint.offsets["events"] for item in stored)
    print(f"wrote {written}: {topics.plural(len(stored), 'partition')}, {n_records:,} records")
    return OK


def _export(arguments: argparse.Namespace) -> int:
    require_folder(arguments.out)
    served = libsvm_format.read_model(arguments.model, arguments.partition, arguments.key)
    try:
        written, legend = libsvm_format.export_model(served.model, arguments.out, served.scaler)
    except ValueError as error:
        raise FileError(f"{arguments.model}: {error}") from None
    n_support = topics.plural(served.model.n_support, "support vector")
    print(f"wrote {n_support} to {written}, and what the numbers mean to {legend}")
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
