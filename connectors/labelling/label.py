"""The command ``streamsvm label``: one of the desks, alone or beside a trainer in the same process.

A desk runs until it is done, as when somebody quits, or until it is told to stop.
"""

import argparse
import getpass
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..runtime.folders import make_private, private
from ..runtime.process import POLL_SECONDS, Stop
from ..runtime.text import plural
from ..settings.sections import ConfigError, Settings
from ..trainer import trainer as daemon
from ..trainer.state.state import State
from . import label_studio
from . import terminal as labelling_terminal
from .oracles import Oracle, answer_with, truth_from_field, truth_from_file
from .page import LabellingPage
from .service import LabellingService

Desk = Callable[[LabellingService, Stop], None]

_TRAINER_LOG = "trainer.log"


def run(settings: Settings, desk: Desk, stop: Stop, *, train: bool = False) -> dict[int, State] | None:
    """Answer the questions of a configuration at a desk.

    Parameters
    ----------
    settings
        The configuration.
    desk
        Where they are answered.
    stop
        Asked a few times a second.
    train
        Run the trainer as well, in the calling thread; if either of them ends, so does the other.

    Returns
    -------
    dict
        The trainer's, as of `daemon.run`; None without it.

    Raises
    ------
    Exception
        Whatever ends the desk or the trainer.
    """
    with LabellingService(settings) as service:
        if train:
            return _run_both(settings, service, desk, stop)
        desk(service, stop)
        return None


def _run_both(settings: Settings, service: LabellingService, desk: Desk, stop: Stop) -> dict[int, State]:
    is_over = threading.Event()
    failures: list[BaseException] = []

    def stop_both() -> bool:
        return stop() or is_over.is_set()

    def work() -> None:
        try:
            desk(service, stop_both)
        except BaseException as error:
            failures.append(error)
        finally:
            is_over.set()

    thread = threading.Thread(target=work, name="desk", daemon=True)
    thread.start()
    try:
        states = daemon.run(settings, stop_both)
    finally:
        is_over.set()
        thread.join()
    if failures:
        raise failures[0]
    return states


def check(settings: Settings, *, train: bool) -> None:
    """Raise `ConfigError` if nothing is asked under this configuration."""
    problems = []
    if not settings.log.questions:
        problems.append("log.questions = '': labelling needs a topic for the questions, and log.labels for the answers")
    if train and not settings.daemon.follow:
        problems.append(
            "daemon.follow = false: a trainer that stops at the end of the log learns nothing from answers that come "
            "later; --set daemon.follow=true keeps it"
        )
    if problems:
        raise ConfigError(problems)


def choose(settings: Settings, arguments: argparse.Namespace) -> Desk:
    """The desk that the command line asks for.

    Raises
    ------
    ConfigError
        If flags are missing, or belong to another desk.
    FileError, OSError
        If a file cannot be read.
    """
    _refuse_strangers(arguments)
    if arguments.terminal:
        return terminal(settings, arguments.annotator or _user())
    if arguments.label_studio:
        if arguments.project is None or arguments.token_file is None:
            raise ConfigError(["--label-studio needs --project and --token-file"])
        where = (arguments.label_studio, arguments.project, arguments.token_file, arguments.auth_file)
        return studio(settings, *where)
    if arguments.truth is None and arguments.field is None:
        return page(settings, browse=not arguments.no_browser)
    if arguments.truth is not None:
        known = truth_from_file(arguments.truth, settings.label)
    else:
        known = truth_from_field(arguments.field, settings.label)
    quota = 0 if arguments.train else settings.labelling.max_labels  # the end of a desk is that of its trainer
    if settings.labelling.max_fraction:
        quota = 0  # which grows with the stream
    return oracle(known, "truth", delay=arguments.delay or 0.0, noise=arguments.noise or 0.0, quota=quota)


def _refuse_strangers(arguments: argparse.Namespace) -> None:
    """Refuse flags that belong to another way of answering."""
    is_oracle = arguments.truth is not None or arguments.field is not None
    is_page = not (is_oracle or arguments.terminal or arguments.label_studio)
    strangers = [
        f"--{flag.replace('_', '-')} goes with {home} only"
        for flags, home, is_home in (
            (("annotator",), "--terminal", arguments.terminal),
            (("no_browser",), "the page", is_page),
            (("delay", "noise"), "--truth or --field", is_oracle),
            (("project", "token_file", "auth_file"), "--label-studio", arguments.label_studio),
        )
        for flag in flags
        if getattr(arguments, flag) not in (None, False) and not is_home
    ]
    if strangers:
        raise ConfigError(strangers)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # in a container, perhaps
        return "nobody"


# --- desks ------------------------------------------------------------------------------------------------------------


def page(settings: Settings, *, browse: bool) -> Desk:
    """The page in a browser, which is opened if `browse` says so and there is a screen."""

    def desk(service: LabellingService, stop: Stop) -> None:
        with LabellingPage(service, settings) as served:
            print(f"questions are answered at {served.url}", flush=True)
            port = urlsplit(served.url).port
            if "SSH_CONNECTION" in os.environ:
                print(f"from where you are: ssh -L {port}:127.0.0.1:{port} and this machine's name", flush=True)
            elif browse and sys.stdout.isatty() and _has_screen():
                webbrowser.open(served.door())
            while not stop():
                service.check()
                time.sleep(POLL_SECONDS)

    return desk


def terminal(settings: Settings, annotator: str) -> Desk:
    """Keys of this terminal, or lines of a pipe."""

    def desk(service: LabellingService, stop: Stop) -> None:
        labelling_terminal.run(service, settings, stop, f"terminal:{annotator}", sys.stdin, sys.stdout)

    return desk


def oracle(known: Oracle, who: str, *, delay: float, noise: float, quota: int = 0) -> Desk:
    """Labels that are known already, until the label quota is spent; see `oracles.answer_with`.

    A quota of 0 is none.
    """

    def is_spent(stats: Mapping[str, Any]) -> bool:
        return quota > 0 and stats["verdict"]["stop"] and stats["remaining"] == 0 and not stats["waiting"]

    def desk(service: LabellingService, stop: Stop) -> None:
        n_labels = answer_with(service, known, stop, who=who, delay=delay, noise=noise, enough=is_spent)
        print(f"gave {plural(n_labels, 'label')}")
        if is_spent(service.stats()):
            print(f"the label quota is spent: {service.stats()['verdict']['why']}")

    return desk


def studio(settings: Settings, url: str, project: int, token_file: Path, auth_file: Path | None) -> Desk:
    """A project of Label Studio."""
    api = label_studio.Api(url, _secret(token_file))
    auth = None if auth_file is None else _secret(auth_file)

    def desk(service: LabellingService, stop: Stop) -> None:
        connected = label_studio.LabelStudio(service, settings, api, project, auth)
        print(f"Label Studio finds us at http://{settings.labelling.host}:{connected.port}", flush=True)
        connected.run(stop)

    return desk


def _secret(path: Path) -> str:
    text = path.read_text(encoding="utf-8").strip()
    if not text:
        raise ConfigError([f"{path} is empty"])
    return text


def _has_screen() -> bool:
    """Whether a browser would have a window of its own, and not take the terminal."""
    return sys.platform == "darwin" or any(name in os.environ for name in ("DISPLAY", "WAYLAND_DISPLAY"))


@contextmanager
def logs_aside(settings: Settings) -> Iterator[None]:
    """Write what goes to standard error to a file, if it would come between the questions on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    make_private(settings.daemon.state_dir)
    path = settings.daemon.state_dir / _TRAINER_LOG
    print(f"the trainer's messages go to {path}", flush=True)
    with open(path, "a", encoding="utf-8", buffering=1, opener=private) as file, redirect_stderr(file):
        yield
