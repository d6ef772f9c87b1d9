"""The command ``streamsvm label``: one way of answering questions, alone or beside a trainer in the same process.

A `FrontEnd` shows the labelling service's questions and hands in the answers: the page, the terminal, a project of
Label Studio, or an oracle. It runs until a person quits or until it is told to stop.
"""

import argparse
import getpass
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stderr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..labelling.label_studio.api import Api
from ..labelling.label_studio.checks import check
from ..labelling.label_studio.project import LabelStudio
from ..labelling.oracles import Oracle, answer_with, truth_from_field, truth_from_file
from ..labelling.service import LabellingService
from ..labelling.terminal.session import run as run_terminal
from ..labelling.web.page import LabellingPage
from ..runtime.folders import make_private, private
from ..runtime.log_output import set_up_logging
from ..runtime.process import POLL_SECONDS, Stop
from ..runtime.text import plural
from ..settings.sections import ConfigError, Settings, refuse
from ..trainer import trainer
from ..trainer.state.state import State
from . import label_images, label_table
from .shared.configuration import misplaced, read_config, was_only_checked
from .shared.long_running import show_states, stopping, working

FrontEnd = Callable[[LabellingService, Stop], object]

NEEDS = {
    "log.questions": "labelling needs a topic for the questions (log.questions) and one for the answers (log.labels)"
}
TRAIN_NEEDS = {
    "daemon.follow": "the trainer would stop at the end of the log, before the answers come; --set daemon.follow=true "
    "keeps it running"
}
_TRAINER_LOG = "trainer.log"


def run(arguments: argparse.Namespace) -> None:
    if label_table.is_table(arguments.config):
        arguments.config, arguments.train = label_table.prepare(arguments), True
    else:
        columns = dict.fromkeys(label_table.COLUMNS)
        refuse(misplaced(arguments, [("a table in the place of a configuration", False, columns)]))
        if arguments.config.is_dir():
            arguments.config, arguments.train = label_images.prepare(arguments), True
    settings = read_config(arguments, NEEDS | (TRAIN_NEEDS if arguments.train else {}))
    front_end = choose(settings, arguments)
    if arguments.check and arguments.label_studio:
        check(Api(arguments.label_studio, _secret(arguments.token_file)), arguments.project, settings)
    if was_only_checked(arguments):
        return
    with ExitStack() as stack:
        if arguments.train and arguments.terminal:
            stack.enter_context(logs_aside(settings))
        if arguments.train:
            stop = stack.enter_context(working(settings))
        else:
            set_up_logging(settings.daemon.log_format)
            stop = stack.enter_context(stopping(settings))
        states = answer_questions(settings, front_end, stop, train=arguments.train)
    if states is not None:
        show_states(settings, states)


def choose(settings: Settings, arguments: argparse.Namespace) -> FrontEnd:
    """The front end that the command line asks for.

    Raises
    ------
    ConfigError
        If options are missing, or belong to another front end.
    FileError, OSError
        If a file cannot be read.
    """
    _check_options(arguments)
    if arguments.terminal:
        who = f"terminal:{arguments.annotator or _user()}"
        return lambda service, stop: run_terminal(service, settings, stop, who, sys.stdin, sys.stdout)
    if arguments.label_studio:
        if arguments.project is None or arguments.token_file is None:
            raise ConfigError("--label-studio needs --project and --token-file")
        where = (arguments.label_studio, arguments.project, arguments.token_file, arguments.auth_file)
        return studio(settings, *where)
    if arguments.truth is None and arguments.field is None:
        return page(settings, browse=not arguments.no_browser)
    if arguments.truth is not None:
        known = truth_from_file(arguments.truth, settings.label)
    else:
        known = truth_from_field(arguments.field, settings.label)
    # The end of a front end would end its trainer, and a quota that is a fraction grows with the stream.
    quota = 0 if arguments.train or settings.labelling.max_fraction else settings.labelling.max_labels
    return oracle(known, "truth", delay=arguments.delay or 0.0, noise=arguments.noise or 0.0, quota=quota)


def _check_options(arguments: argparse.Namespace) -> None:
    """Raise `ConfigError` if an option belongs to another front end."""
    is_oracle = arguments.truth is not None or arguments.field is not None
    is_page = not (is_oracle or arguments.terminal or arguments.label_studio)
    homes = (
        ("--terminal", arguments.terminal, {"annotator": None}),
        ("the page", is_page, {"no_browser": False}),
        ("--truth or --field", is_oracle, {"delay": None, "noise": None}),
        ("--label-studio", arguments.label_studio, {"project": None, "token_file": None, "auth_file": None}),
    )
    refuse(misplaced(arguments, homes))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no entry for its user
        return "nobody"


def answer_questions(
    settings: Settings, front_end: FrontEnd, stop: Stop, *, train: bool = False
) -> dict[int, State] | None:
    """Answer a configuration's questions with a front end.

    Parameters
    ----------
    settings
        The configuration.
    front_end
        Shows the questions and hands in the answers.
    stop
        Called a few times a second; True ends the front end and the trainer.
    train
        Also run the trainer, in the calling thread. If one of the two ends, so does the other.

    Returns
    -------
    dict
        As `trainer.run` returns; None without a trainer.

    Raises
    ------
    Exception
        The error that ended the front end or the trainer.
    """
    with LabellingService(settings) as service:
        if train:
            return _run_both(settings, service, front_end, stop)
        front_end(service, stop)
        return None


def _run_both(settings: Settings, service: LabellingService, front_end: FrontEnd, stop: Stop) -> dict[int, State]:
    is_over = threading.Event()

    def stop_both() -> bool:
        return stop() or is_over.is_set()

    with ThreadPoolExecutor(1, "labelling") as pool:
        answering = pool.submit(front_end, service, stop_both)
        answering.add_done_callback(lambda _: is_over.set())
        try:
            states = trainer.run(settings, stop_both)
        finally:
            is_over.set()
    answering.result()
    return states


# --- front ends -------------------------------------------------------------------------------------------------------


def page(settings: Settings, *, browse: bool) -> FrontEnd:
    """The page; `browse` opens it in a browser if this machine has a screen."""

    def front_end(service: LabellingService, stop: Stop) -> None:
        with LabellingPage(service, settings) as served:
            print(f"answer the questions at {served.url}", flush=True)
            port = urlsplit(served.url).port
            if "SSH_CONNECTION" in os.environ:
                print(f"on your own machine, first run: ssh -L {port}:127.0.0.1:{port} THIS_MACHINE", flush=True)
            elif browse and sys.stdout.isatty() and _has_screen():
                webbrowser.open(served.door())
            while not stop():
                service.check()
                time.sleep(POLL_SECONDS)

    return front_end


def _has_screen() -> bool:
    """Whether a browser would open a window of its own; without a screen it would take over the terminal."""
    return sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def oracle(known: Oracle, who: str, *, delay: float, noise: float, quota: int = 0) -> FrontEnd:
    """Known labels, until the label quota is spent (see `oracles.answer_with`); a quota of 0 never is."""

    def is_spent(stats: Mapping[str, Any]) -> bool:
        return quota > 0 and stats["verdict"]["stop"] and stats["remaining"] == 0 and not stats["waiting"]

    def front_end(service: LabellingService, stop: Stop) -> None:
        n_labels = answer_with(service, known, stop, who=who, delay=delay, noise=noise, enough=is_spent)
        print(f"gave {plural(n_labels, 'label')}")
        if is_spent(service.stats()):
            print(f"the label quota is spent: {service.stats()['verdict']['why']}")

    return front_end


def studio(settings: Settings, url: str, project: int, token_file: Path, auth_file: Path | None) -> FrontEnd:
    """A project of Label Studio."""
    api = Api(url, _secret(token_file))
    auth = None if auth_file is None else _secret(auth_file)

    def front_end(service: LabellingService, stop: Stop) -> None:
        connected = LabelStudio(service, settings, api, project, auth)
        address = f"http://{settings.labelling.host}:{connected.port}"
        print(f"in Label Studio, connect the project to the model at {address}", flush=True)
        connected.run(stop)

    return front_end


def _secret(path: Path) -> str:
    text = path.read_text(encoding="utf-8-sig").strip()
    if not text:
        raise ConfigError(f"{path} is empty")
    return text


@contextmanager
def logs_aside(settings: Settings) -> Iterator[None]:
    """Redirect standard error to a file if it is a terminal, where the log lines would stand between the questions."""
    if not sys.stderr.isatty():
        yield
        return
    make_private(settings.daemon.state_dir)
    path = settings.daemon.state_dir / _TRAINER_LOG
    print(f"the trainer writes its messages to {path}", flush=True)
    with open(path, "a", encoding="utf-8", buffering=1, opener=private) as file, redirect_stderr(file):
        yield
