"""Oracles: programs that answer questions, and known labels that serve as oracles.

An oracle is a function of a question. It returns whether the event is of the positive class, or None if it does not
know. `truth_from_field` and `truth_from_file` make oracles of known labels, for experiments. `answer_with` can delay
their answers, and can make some of them wrong.
"""

import logging
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ..logs.transport import Unavailable
from ..records.classes import ClassLabel
from ..records.columns import Columns
from ..records.formats.base import show
from ..records.people.questions import Question
from ..records.tables import format_of, rows_of
from ..records.text_files import Mistakes
from ..runtime.folders import FileError
from ..runtime.outage import Outage
from ..runtime.process import POLL_SECONDS, Stop, pause
from ..settings.sections import LabelSettings
from .book import UnknownQuestion
from .service import LabellingService

logger = logging.getLogger(__name__)

Oracle = Callable[[Question], ClassLabel | None]
Result = TypeVar("Result")


def answer_with(
    service: LabellingService,
    oracle: Oracle,
    stop: Stop,
    *,
    who: str = "oracle",
    delay: float = 0.0,
    noise: float = 0.0,
    seed: int | None = None,
    enough: Callable[[Mapping[str, Any]], bool] = lambda stats: False,
) -> int:
    """Let an oracle answer, one question after the other.

    Parameters
    ----------
    service
        Hands out the questions.
    oracle
        Returns the class of an event; with two, whether it is positive.  None if it does not know.
    stop
        Called between questions; True ends the labelling.
    who
        Source of the labels.
    delay
        Seconds that each answer takes, at least 0.
    noise
        Share of wrong labels, from 0 to 1.
    seed
        Seed of the random choice of wrong labels; None: a new one each time.
    enough
        Called with `LabellingService.stats` while there is no question; True ends the labelling.

    Returns
    -------
    int
        Number of labels.
    """
    rng = np.random.default_rng(seed)
    n_labels, seen, verdict, is_told = 0, -1, "", False
    while not stop():
        shown = patiently(service, stop, lambda: service.next(who))
        if shown is None:
            if seen != (seen := service.wait(POLL_SECONDS, seen)):
                verdict = _tell_verdict(service, verdict)
            if enough(service.stats()):
                break
            continue
        y = oracle(shown)
        if y is None and not is_told:
            logger.warning("%s has no label for the event %s: such questions are skipped", who, show(shown.id))
            is_told = True
        if y is not None and noise and rng.random() < noise:
            y = _wrong(y, service, rng)
        pause(delay, stop)
        if not stop():
            n_labels += patiently(service, stop, partial(_tell_label, service, shown.query_id, y, who)) or 0
    return n_labels


def _wrong(y: ClassLabel, service: LabellingService, rng: np.random.Generator) -> ClassLabel:
    """Another class."""
    if isinstance(y, bool):
        return not y
    others = [label for label, _ in service.stats().get("classes", ()) if label != y]
    return others[int(rng.integers(len(others)))] if others else y


def _tell_verdict(service: LabellingService, told: str) -> str:
    """Log the trainer's reason to stop once; return the reason."""
    verdict = service.stats()["verdict"]
    why: str = verdict["why"] if verdict["stop"] else ""
    if why and why != told:
        logger.info("no more questions: %s", why)
    return why


def _tell_label(service: LabellingService, query_id: str, y: ClassLabel | None, who: str) -> int:
    with suppress(UnknownQuestion):  # the trainer withdrew it long ago
        return int(service.answer(query_id, y, who) in ("first", "changed") and y is not None)
    return 0


def patiently(service: LabellingService, stop: Stop, call: Callable[[], Result]) -> Result | None:
    """Repeat a call until the log is available.

    Parameters
    ----------
    service
        Its `LabellingService.check` may end the repetition.
    stop
        Called between attempts; True ends the repetition.
    call
        May raise `Unavailable`.

    Returns
    -------
    Result
        What `call` returns; None after `stop`.

    Raises
    ------
    Exception
        The error that has ended the reading of the questions.
    """
    outage = Outage(logger)
    while not stop():
        service.check()
        try:
            return call()
        except Unavailable as error:
            outage.goes_on(error)
            time.sleep(POLL_SECONDS)
    return None


def truth_from_field(name: str, labels: LabelSettings) -> Oracle:
    """An oracle that reads the label from a field of the event; without that field it does not know."""
    return lambda shown: read_label(shown.event.get(name), labels)


def truth_from_file(path: Path, labels: LabelSettings) -> Oracle:
    """An oracle that knows the labels in a file, by the id of the event.

    Parameters
    ----------
    path
        CSV with a header, or JSON lines. "id" is the event's id, and "y" or "label" is the label; other columns and
        fields are ignored.
    labels
        Names of the labels.

    Raises
    ------
    FileError
        With the lines that are wrong.
    OSError
        If the file cannot be read.
    """
    if (kind := format_of(path)) not in ("csv", "jsonl"):
        raise FileError(f"{path}: the name must end with .csv, .tsv or .jsonl")
    truth: dict[str, ClassLabel] = {}
    mistakes = Mistakes()
    with mistakes:
        for where, _, fields in rows_of(path, kind, mistakes, ["id"]):
            with mistakes:
                y = read_label(fields.get("y", fields.get("label")), labels)
                if y is None or fields.get("id") in (None, ""):
                    raise FileError(f"{where}: needs an 'id' and a label 'y' of {label_names(labels)}")
                if truth.setdefault(str(fields["id"]), y) != y:
                    raise FileError(f"{where}: id {show(fields['id'])} has another label on an earlier line")
    mistakes.complain()
    if not truth:
        raise FileError(f"{path} has no labels")
    return lambda shown: truth.get(str(shown.id))


def read_label(value: Any, labels: LabelSettings) -> ClassLabel | None:
    """The class that a value means: with two, whether a boolean, a number or a text means the positive one.

    None if it is not a label.
    """
    with suppress(FileError):
        return Columns(classes=labels.vocabulary, names=labels.meanings).to_label(value, "")
    return None


def label_names(labels: LabelSettings) -> str:
    """The labels that `read_label` reads, for messages."""
    if labels.vocabulary is not None:
        return ", ".join(map(repr, labels.vocabulary.listed)) or "a string or a whole number"
    names = f"{labels.positive!r}/{labels.negative!r}, " if labels.positive else ""
    return f"{names}true/false, 1/0 or +1/-1"
