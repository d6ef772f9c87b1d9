"""Questions in a terminal, answered with keys; or answers from a pipe, with one key a line."""

from dataclasses import dataclass, field
from functools import partial
from typing import TextIO

from ...records.people.questions import Question
from ...runtime.process import POLL_SECONDS, Stop
from ...runtime.text import plural
from ...settings.sections import Settings
from ..history import Step, Undone
from ..service import LabellingService
from .console import LISTED, Console
from .finding import Finding
from .keys import Keys
from .picture import for_whom, keys_line, listed, plain, progress, said

_COMMANDS = ("q", "u", "h", "/")


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


@dataclass
class _Terminal(Console):
    """A session: it asks one question after the other."""

    _said: list[str] = field(default_factory=list, init=False)  # the last message while waiting
    _wants_all: bool = field(default=True, init=False)  # an answer is also for copies
    _is_for_all: bool = field(default=True, init=False)  # this answer is also for near-duplicates

    def run(self) -> int:
        while not self.is_done and not self.stop():
            shown = self.patiently(partial(self.service.next, self.who))
            if shown is None:
                self._wait()
                continue
            self._said = []
            self.keys.forget()
            self.show(shown)
            self._is_for_all = self._wants_all and not shown.almost
            if shown.alike:
                self.say(f"[+] an answer is {for_whom(shown, self._is_for_all)}")
            self._await_answer(shown)
        self.service.release(self.who)
        self.say(f"{plural(self.n_labels, 'label')} given")
        return self.n_labels

    def _wait(self) -> None:
        """Wait for a question; say once how far the labelling is."""
        stats = self.service.stats()
        if not stats["loaded"]:
            self.service.wait(POLL_SECONDS)
            return
        verdict = stats["verdict"]
        ended = "the label quota is spent" if verdict["spent"] else "there are no more questions"
        waiting = f"{ended if verdict['stop'] else 'waiting for a question'}; q quits"
        words = ["", *progress(stats, list(self.class_keys)), waiting]
        if words != self._said:  # the trainer reads the last answer a little later
            self._said = words
            self.say("\n".join(words))
        first = self.keys.first(POLL_SECONDS if self.keys.is_terminal else 0)
        if first in _COMMANDS:
            self._command(self.keys.take(0) or "")
        elif self.keys.is_ended:
            self.is_done = True
        elif self.keys.is_terminal:
            self.keys.take(0)  # It was pressed while no question was shown.
        else:
            self.service.wait(POLL_SECONDS)

    def _await_answer(self, shown: Question) -> None:
        while not self.is_done and not self.stop():
            key = self.keys.take(POLL_SECONDS)
            if key is None:
                self.is_done = self.keys.is_ended
            elif key == "+" and shown.alike:
                self._is_for_all = not self._is_for_all
                if not shown.almost:
                    self._wants_all = self._is_for_all
                self.say(f"your answer is {for_whom(shown, self._is_for_all)}")
            elif key == "=":
                Finding(self).like(shown)
                return
            elif key in _COMMANDS:
                if self._command(key):
                    return
            elif self._answer(shown, key):
                return

    def _command(self, key: str) -> bool:
        """Quit, undo, look back or find events; return whether a question must be shown again."""
        if key == "q":
            self.is_done = True
            return False
        if key in ("h", "/"):
            (self._look_back if key == "h" else Finding(self).search)()
            return True
        undone = self.patiently(partial(self.service.undo, self.who))
        self.say(_about(undone))
        if undone is None or undone.outcome == "replaced":
            return False
        self.n_labels -= undone.step.given.op == "set"
        self._said = []
        return True

    def _answer(self, shown: Question, key: str) -> bool:
        """Answer with a key; return whether it is a valid one."""
        word = self.word(key)
        if word is None:
            self.say(f"{plain(key)!r} is not a key; use {keys_line(self.class_keys)}")
            return False
        op, y = word
        query_id, who, service = shown.query_id, self.who, self.service
        if y is not None:
            is_for_all = self._is_for_all and bool(shown.alike)
            self.give(word, partial(service.answer, query_id, y, who, alike=is_for_all))
        else:
            self.give(word, partial(service.skip if op == "skip" else service.ignore, query_id, who))
        return True

    # --- earlier answers ----------------------------------------------------------------------------------------------

    def _look_back(self) -> None:
        """List earlier answers, in pages, until one is chosen to be corrected."""
        before, key = None, "h"
        while key == "h":
            steps = self.service.history(self.who, before, LISTED)
            if not steps:
                self.say("there are no earlier answers" if before is None else "there are no older answers")
                return
            rows = [(step.given, step.id, self.service.review(step.query_id)[0]) for step in steps]
            lines = listed(rows, self.settings, self.size[0])
            self.say("\n".join([*lines, "a number corrects, [h] shows older answers, any other key goes back"]))
            before, key = steps[-1].number, self.next_key()
        if key.isdecimal() and 1 <= int(key) <= len(steps):
            self._correct(steps[int(key) - 1])

    def _correct(self, step: Step) -> None:
        shown, _ = self.service.review(step.query_id)
        if shown is not None:
            self.show(shown)
        self.say(
            f"your answer is: {said(*step.given[:2], self.settings)}. Another one corrects it, any other key leaves it"
        )
        word = self.word(self.next_key())
        if word is not None:
            self.give(word, partial(self.service.correct, step.query_id, *word, self.who), lead="corrected: ")


def _about(undone: Undone | None) -> str:
    """What became of an undo, in words."""
    if undone is None:
        return "nothing to take back"
    if undone.outcome == "replaced":
        return f"not taken back: another annotator has changed the answer for event {plain(str(undone.step.id))}"
    if undone.outcome == "restored":
        return f"your correction is taken back: event {plain(str(undone.step.id))} has its earlier answer again"
    return "your last answer is taken back"
