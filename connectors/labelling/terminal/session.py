"""Questions in a terminal, answered with keys; or answers from a pipe, with one key a line."""

import shutil
from functools import partial
from typing import Any, TextIO

from ...records.people.questions import Question
from ...runtime.process import POLL_SECONDS, Stop
from ...runtime.text import plural
from ...settings.sections import Settings
from ..book import UnknownQuestion
from ..choices import Choices
from ..history import Step, Undone
from ..oracles import patiently
from ..service import LabellingService
from .finding import Finding, Word
from .keys import Keys
from .picture import for_whom, keys_line, picture, plain, progress, said, steps_lines

_OTHER_WORDS: dict[str, Word] = {"s": ("skip", None), "i": ("ignore", None)}
_COMMANDS = ("q", "u", "h", "/")
_LISTED = 9  # earlier answers, one for each digit


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
    with Keys.of(source) as keys:
        return _Terminal(service, settings, stop, who, keys, target).run()


class _Terminal:
    def __init__(
        self, service: LabellingService, settings: Settings, stop: Stop, who: str, keys: Keys, target: TextIO
    ) -> None:
        self._service = service
        self._settings = settings
        self._stop = stop
        self._who = who
        self._keys = keys
        self._target = target
        self._choices = Choices(settings.label)
        self._is_done = False
        self._said: list[str] = []  # the last message while waiting
        self._wants_all = True  # an answer is also for copies
        self._is_for_all = True  # this answer is also for near-duplicates
        self._finding = Finding(service, settings, who, self)
        self.n_labels = 0

    @property
    def is_over(self) -> bool:
        """Whether no more keys are waited for."""
        return self._is_done or self._stop() or self._keys.is_ended

    @property
    def class_keys(self) -> dict[str, str]:
        return self._choices.keys(self._service.stats())

    @property
    def words(self) -> dict[str, Word]:
        """What the keys say."""
        keyed = zip(self.class_keys.values(), self._choices.classes(self._service.stats()), strict=True)
        return {key: ("set", label) for key, label in keyed if key} | _OTHER_WORDS

    def run(self) -> int:
        while not self._is_done and not self._stop():
            shown = self.patiently(partial(self._service.next, self._who))
            if shown is None:
                self._wait()
                continue
            self._said = []
            self._keys.forget()
            self.say(picture(shown, self._settings, self._service.stats(), self.size, self.class_keys))
            self._is_for_all = self._wants_all and not shown.almost
            if shown.alike:
                self.say(f"[+] an answer is {for_whom(shown, self._is_for_all)}")
            self._await_answer(shown)
        self._service.release(self._who)
        self.say(f"{plural(self.n_labels, 'label')} given")
        return self.n_labels

    def _wait(self) -> None:
        """Wait for a question; say once how far the labelling is."""
        stats = self._service.stats()
        if not stats["loaded"]:
            self._service.wait(POLL_SECONDS)
            return
        verdict = stats["verdict"]
        ended = "the label quota is spent" if verdict["spent"] else "there are no more questions"
        waiting = f"{ended if verdict['stop'] else 'waiting for a question'}; q quits"
        words = ["", *progress(stats, list(self.class_keys)), waiting]
        if words != self._said:  # the trainer reads the last answer a little later
            self._said = words
            self.say("\n".join(words))
        first = self._keys.first(POLL_SECONDS if self._keys.is_terminal else 0)
        if first in _COMMANDS:
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
            elif key == "+" and shown.alike:
                self._is_for_all = not self._is_for_all
                if not shown.almost:
                    self._wants_all = self._is_for_all
                self.say(f"your answer is {for_whom(shown, self._is_for_all)}")
            elif key == "=":
                self._finding.like(shown)
                return
            elif key in _COMMANDS:
                if self._command(key):
                    return
            elif self._answer(shown, key):
                return

    def _command(self, key: str) -> bool:
        """Quit, undo, look back or find events; return whether a question must be shown again."""
        if key == "q":
            self._is_done = True
            return False
        if key in ("h", "/"):
            (self._look_back if key == "h" else self._finding.search)()
            return True
        undone = self.patiently(partial(self._service.undo, self._who))
        self.say(_about(undone))
        if undone is None or undone.outcome == "replaced":
            return False
        self.n_labels -= undone.step.op == "set"
        self._said = []
        return True

    def _answer(self, shown: Question, key: str) -> bool:
        """Answer with a key; return whether it is a valid one."""
        word = self.words.get(key)
        if word is None:
            self.say(f"{plain(key)!r} is not a key; use {keys_line(self.class_keys)}")
            return False
        op, y = word
        query_id, who, service = shown.query_id, self._who, self._service
        if y is not None:
            is_for_all = self._is_for_all and bool(shown.alike)
            outcome = self.patiently(partial(service.answer, query_id, y, who, alike=is_for_all))
        else:
            outcome = self.patiently(partial(service.skip if op == "skip" else service.ignore, query_id, who))
        self.n_labels += op == "set" and outcome in ("first", "changed")
        if outcome is not None:
            self.say(f"-> {said(op, y, self._settings)}")
        return True

    # --- earlier answers ----------------------------------------------------------------------------------------------

    def _look_back(self) -> None:
        """List earlier answers, in pages, until one is chosen to be corrected."""
        before, key = None, "h"
        while key == "h":
            steps = self._service.history(self._who, before, _LISTED)
            if not steps:
                self.say("there are no earlier answers" if before is None else "there are no older answers")
                return
            previews = [self._service.review(step.query_id)[0] for step in steps]
            lines = steps_lines(steps, previews, self._settings, self.size[0])
            self.say("\n".join([*lines, "a number corrects, [h] shows older answers, any other key goes back"]))
            before, key = steps[-1].number, self.next_key()
        if key.isdecimal() and 1 <= int(key) <= len(steps):
            self._correct(steps[int(key) - 1])

    def _correct(self, step: Step) -> None:
        shown, _ = self._service.review(step.query_id)
        if shown is not None:
            self.say(picture(shown, self._settings, self._service.stats(), self.size, self.class_keys))
        self.say(
            f"your answer is: {said(step.op, step.y, self._settings)}. Another one corrects it, any other key leaves it"
        )
        word = self.words.get(self.next_key())
        if word is None:
            return
        outcome = self.patiently(lambda: self._service.correct(step.query_id, *word, self._who))
        self.n_labels += word[0] == "set" and outcome in ("first", "changed")
        if outcome is not None:
            self.say(f"-> corrected: {said(*word, self._settings)}")

    def next_key(self) -> str:
        """Wait for a key; empty if none comes any more."""
        while not self.is_over:
            if (key := self._keys.take(POLL_SECONDS)) is not None:
                return key
        return ""

    def line(self) -> str:
        """Wait for a line; empty if none comes any more."""
        with self._keys.lines():
            while not self._stop() and (self._keys.is_terminal or not self._keys.is_ended):
                if (line := self._keys.take_line(POLL_SECONDS)) is not None:
                    return line
        return ""

    # --- talking ------------------------------------------------------------------------------------------------------

    def patiently(self, call: Any) -> Any:
        """As `patiently`; None if the question is gone, which needs no answer."""
        try:
            return patiently(self._service, self._stop, call)
        except UnknownQuestion as error:
            self.say(str(error))
            return None

    def say(self, text: str) -> None:
        encoding = self._target.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding), file=self._target, flush=True)

    @property
    def size(self) -> tuple[int, int]:
        size = shutil.get_terminal_size()
        return size.columns, size.lines


def _about(undone: Undone | None) -> str:
    """What became of an undo, in words."""
    if undone is None:
        return "nothing to take back"
    if undone.outcome == "replaced":
        return f"not taken back: another annotator has changed the answer for event {plain(str(undone.step.id))}"
    if undone.outcome == "restored":
        return f"your correction is taken back: event {plain(str(undone.step.id))} has its earlier answer again"
    return "your last answer is taken back"
