"""Questions in a terminal, answered with keys; or answers from a pipe, with one key a line."""

import json
import math
import os
import re
import select
import shutil
import sys
import termios
import textwrap
import tty
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TextIO

from ..records.questions import RECHECK, Question
from ..runtime.process import POLL_SECONDS, Stop
from ..settings.sections import Settings
from .book import UnknownQuestion
from .oracles import patiently
from .service import LabellingService

WHY = {
    "seed": "the model first needs a few labels of each class",
    "boundary": "the model is least sure of this event",
    "explore": "it was picked at random, to find mistakes that the model does not suspect",
    "audit": "it was picked at random, to check that the model is good enough",
    "recheck": "an earlier answer does not fit the others: please look again",
}

_TEXT_LINES = 20
_FIELD_LINES = 12  # fields of the event besides the text
_FRAME_LINES = 12  # above and below the features
_LEAST_ROWS = 8
_BARS = "▁▂▃▄▅▆▇█"
_BLOCK = 4096
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O.|.)?")  # sent by keys such as Home or an arrow


def run(service: LabellingService, settings: Settings, stop: Stop, who: str, source: TextIO, target: TextIO) -> int:
    """Show questions, one after the other, until the key q, the end of the input, or `stop`.

    Parameters
    ----------
    service
        Hands out the questions and takes the answers.
    settings
        The configuration: names of the labels, and which field of an event is a text.
    stop
        Called a few times a second; True ends the labelling.
    who
        Source of the labels.
    source
        A terminal, or a pipe or file with one key a line.
    target
        Shows the questions.

    Returns
    -------
    int
        Number of labels.
    """
    with _Keys.of(source) as keys:
        return _Terminal(service, settings, stop, who, keys, target).run()


class _Terminal:
    def __init__(
        self, service: LabellingService, settings: Settings, stop: Stop, who: str, keys: "_Keys", target: TextIO
    ) -> None:
        self._service = service
        self._settings = settings
        self._stop = stop
        self._who = who
        self._keys = keys
        self._target = target
        self._names = settings.label.shown
        self._is_done = False
        self._said: list[str] = []  # the last message while waiting
        self._n_labels = 0

    def run(self) -> int:
        while not self._is_done and not self._stop():
            shown = self._patiently(partial(self._service.next, self._who))
            if shown is None:
                self._wait()
                continue
            self._said = []
            self._keys.forget()
            self._say(picture(shown, self._settings, self._service.stats(), self._size()))
            self._await_answer(shown)
        self._service.release(self._who)
        self._say(f"{self._n_labels} labels given" if self._n_labels != 1 else "1 label given")
        return self._n_labels

    def _wait(self) -> None:
        """Wait for a question; say once how far the labelling is."""
        stats = self._service.stats()
        if not stats["loaded"]:
            self._service.wait(POLL_SECONDS)
            return
        waiting = "there are enough labels; q quits" if stats["verdict"]["stop"] else "waiting for a question; q quits"
        words = ["", *_progress(stats, self._names), waiting]
        if words != self._said:  # the trainer reads the last answer a little later
            self._said = words
            self._say("\n".join(words))
        first = self._keys.first(POLL_SECONDS if self._keys.is_terminal else 0)
        if first in ("q", "u"):
            self._command(self._keys.take(0) or "")
        elif self._keys.is_ended:
            self._is_done = True
        elif self._keys.is_terminal:
            self._keys.take(0)  # It was pressed while no question was shown.
        else:
            self._service.wait(POLL_SECONDS)

    def _await_answer(self, shown: Question) -> None:
        while not self._is_done and not self._stop():
            key = self._keys.take(POLL_SECONDS)
            if key is None:
                self._is_done = self._keys.is_ended
            elif key in ("q", "u"):
                if self._command(key):
                    return
            elif self._answer(shown, key):
                return

    def _command(self, key: str) -> bool:
        """Quit or undo; return whether another question must be shown."""
        if key == "q":
            self._is_done = True
            return False
        taken = self._patiently(partial(self._service.undo, self._who))
        self._say("nothing to take back" if taken is None else "your last answer is taken back")
        if taken is not None:
            self._n_labels -= 1
            self._said = []
        return taken is not None

    def _answer(self, shown: Question, key: str) -> bool:
        """Answer with a key; return whether it is a valid one."""
        query_id, who, service = shown.query_id, self._who, self._service
        choices = {"1": True, "2": False}
        if key in choices:
            what = self._names[int(key) - 1]
            outcome = self._patiently(lambda: service.answer(query_id, choices[key], who))
            self._n_labels += outcome in ("first", "changed")
        elif key in ("s", "i"):
            what = "skipped" if key == "s" else "ignored"
            say = service.skip if key == "s" else service.ignore
            outcome = self._patiently(partial(say, query_id, who))
        else:
            self._say(f"{_plain(key)!r} is not a key; use {keys_line(self._names)}")
            return False
        if outcome is not None:
            self._say(f"-> {what}")
        return True

    def _patiently(self, call: Any) -> Any:
        """As `patiently`; None if the question is gone, which needs no answer."""
        try:
            return patiently(self._service, self._stop, call)
        except UnknownQuestion as error:
            self._say(str(error))
            return None

    def _say(self, text: str) -> None:
        encoding = self._target.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding), file=self._target, flush=True)

    def _size(self) -> tuple[int, int]:
        size = shutil.get_terminal_size()
        return size.columns, size.lines


# --- keys -------------------------------------------------------------------------------------------------------------


class _Keys:
    """Keys: single ones from a terminal, whole lines from anything else, so that a word is not read as its letters."""

    def __init__(self, descriptor: int, *, is_terminal: bool) -> None:
        self.is_terminal = is_terminal
        self._descriptor = descriptor
        self._rest = b""
        self._pending: deque[str] = deque()
        self._has_ended = False

    @classmethod
    @contextmanager
    def of(cls, source: TextIO) -> Iterator["_Keys"]:
        descriptor, is_terminal = source.fileno(), source.isatty()
        before = termios.tcgetattr(descriptor) if is_terminal else None
        try:
            if is_terminal:
                tty.setcbreak(descriptor, termios.TCSANOW)
            yield cls(descriptor, is_terminal=is_terminal)
        finally:
            if before is not None:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, before)

    def first(self, seconds: float) -> str | None:
        """The next key, or None if none comes in time; it stays the next one."""
        self._fill(seconds)
        return self._pending[0] if self._pending else None

    @property
    def is_ended(self) -> bool:
        """Whether the input has ended."""
        self._fill(0)
        return self._has_ended and not self._pending

    def take(self, seconds: float) -> str | None:
        """The next key, or None if none comes in time."""
        self._fill(seconds)
        return self._pending.popleft() if self._pending else None

    def forget(self) -> None:
        """Drop the keys that were pressed before the question was shown."""
        if self.is_terminal:
            termios.tcflush(self._descriptor, termios.TCIFLUSH)
            self._pending.clear()

    def _fill(self, seconds: float) -> None:
        if self._pending or self._has_ended or not select.select([self._descriptor], [], [], seconds)[0]:
            return
        data = os.read(self._descriptor, _BLOCK)
        self._has_ended = not data
        if self.is_terminal:
            keys = list(_SEQUENCE.sub("", data.decode(errors="ignore")))
        else:
            *lines, self._rest = (self._rest + data).split(b"\n")
            if self._has_ended:
                lines.append(self._rest)
            keys = [line.decode(errors="replace") for line in lines]
        self._pending.extend(key.strip().lower() for key in keys if key.strip())


# --- pictures ---------------------------------------------------------------------------------------------------------


def keys_line(names: tuple[str, str]) -> str:
    """The keys and their meanings."""
    return f"[1] {names[0]}  [2] {names[1]}  [s] cannot tell  [i] ignore  [u] undo  [q] quit"


def picture(shown: Question, settings: Settings, stats: Mapping[str, Any], size: tuple[int, int]) -> str:
    """A question as text.

    Parameters
    ----------
    shown
        The question.
    settings
        The configuration: names of the labels, and which field of the event is a text.
    stats
        From `LabellingService.stats`.
    size
        Columns and lines of the terminal.
    """
    width, height = max(40, size[0]), size[1]
    names = settings.label.shown
    fields = _fields(shown, settings, width)
    score = "" if shown.score is None else f"{shown.score:.0%} {names[0]}, "
    n_rows = max(_LEAST_ROWS, height - _FRAME_LINES - len(fields))
    lines = [
        "-" * width,
        f"event {_short(shown.id, width - 6)}",
        *fields,
        *_features(shown, width, n_rows),
        "",
        f"asked because {WHY.get(shown.reason, _short(shown.reason, width))}",
        *([] if shown.reason == RECHECK else [f"the model: {score}margin {shown.margin:+.3g}"]),
        *_progress(stats, names),
        keys_line(names),
    ]
    return "\n".join(lines)


def _features(shown: Question, width: int, n_rows: int) -> list[str]:
    """Features with their values, the unusual ones first and marked."""
    unusual = sorted(shown.unusual, key=lambda name: -abs(shown.unusual[name]))
    names = [*(name for name in unusual if name in shown.x), *(name for name in shown.x if name not in shown.unusual)]
    chosen = names[:n_rows]
    labels = {name: _short(name, width // 2) for name in chosen}
    column = max(map(len, labels.values()), default=0)
    rows = []
    for name in chosen:
        z = shown.unusual.get(name)
        mark = "" if z is None else f"  <- unusual: {z:+.1f} standard deviations"
        rows.append(f"  {labels[name]:{column}}  {shown.x[name]:>12.6g}{mark}")
    if len(names) > len(chosen):
        rows.append(f"  and {len(names) - len(chosen)} more features")
    return rows


def _fields(shown: Question, settings: Settings, width: int) -> list[str]:
    """The event's other fields: the text in full, any other field on one line."""
    text_field, lines = settings.labelling.text, []
    if isinstance(text := shown.event.get(text_field), str):
        paragraphs = [textwrap.wrap(_plain(part), width - 2) or [""] for part in text.splitlines()]
        wrapped = [f"  {line}" for paragraph in paragraphs for line in paragraph]
        lines += wrapped[:_TEXT_LINES]
        if len(wrapped) > _TEXT_LINES:
            lines.append(f"  ... and {len(wrapped) - _TEXT_LINES} more lines")
    others = [(name, value) for name, value in shown.event.items() if name != text_field or not isinstance(value, str)]
    for name, value in others[:_FIELD_LINES]:
        drawn = _bars(value, width // 2) if name == settings.labelling.series else None
        lines.append(f"  {_short(name, width // 3)}: {drawn or _short(value, width // 2)}")
    if len(others) > _FIELD_LINES:
        lines.append(f"  and {len(others) - _FIELD_LINES} more fields")
    return lines


def _bars(value: Any, width: int) -> str | None:
    """A list of numbers as a row of bars; None for anything else, and for numbers too large for floats."""
    if not isinstance(value, list) or not value:
        return None
    if not all(type(item) in (int, float) and abs(item) <= sys.float_info.max for item in value):
        return None
    numbers = [float(item) for item in value]
    step = -(-len(numbers) // width)
    means = [sum(part) / len(part) for part in (numbers[i : i + step] for i in range(0, len(numbers), step))]
    low = min(means)
    span = max(means) - low or 1.0
    if not math.isfinite(span):
        return None
    bars = "".join(_BARS[round((mean - low) / span * (len(_BARS) - 1))] for mean in means)
    return f"{bars} {min(numbers):g} to {max(numbers):g}"


def _progress(stats: Mapping[str, Any], names: tuple[str, str]) -> list[str]:
    remaining = stats["remaining"]
    quota = "" if remaining is None else f"; {remaining} left to give"
    counts = f"{stats['labels']} labels: {stats['positive']} {names[0]}, {stats['negative']} {names[1]}{quota}"
    people = f"people disagree about {stats['unresolved']} open questions" if stats.get("unresolved") else ""
    refused = f"damaged questions, not shown: {stats['refused']}" if stats.get("refused") else ""
    notes = (stats["verdict"]["why"], people, refused, stats["trainer"], stats["trouble"])
    return [counts, *(_plain(note) for note in notes if note)]


def _plain(text: str) -> str:
    """Text without characters that a terminal would take for commands."""
    return "".join(character if character.isprintable() else " " for character in text)


def _short(value: Any, width: int) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = _plain(text[: 4 * width])
    return text if len(text) <= width else text[: max(width - 3, 1)] + "..."
