"""The console of an annotator: what is said to them, the keys that they press, and what these mean."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TextIO

from ...records.classes import ClassLabel
from ...records.people.questions import Question
from ...runtime.process import POLL_SECONDS, Stop
from ...settings.sections import Settings
from ..book import UnknownQuestion
from ..choices import Choices
from ..oracles import patiently
from ..service import LabellingService
from .keys import Keys
from .picture import picture, said

LISTED = 9  # events or answers in a list, one for each digit

Word = tuple[Literal["set", "skip", "ignore"], ClassLabel | None]

_OTHER_WORDS: dict[str, Word] = {"s": ("skip", None), "i": ("ignore", None)}


@dataclass
class Console:
    """Talks with an annotator, and counts their labels.

    Parameters
    ----------
    service
        Hands out the questions and takes the answers.
    settings
        The configuration.
    stop
        True ends the session.
    who
        Source of the labels.
    keys
        The keys of the annotator.
    target
        Shows what is said.
    """

    service: LabellingService
    settings: Settings
    stop: Stop
    who: str
    keys: Keys
    target: TextIO
    is_done: bool = field(default=False, init=False)
    n_labels: int = field(default=0, init=False)

    @property
    def _choices(self) -> Choices:
        return Choices(self.settings.label, self.service.stats())

    @property
    def is_over(self) -> bool:
        """Whether no more keys are waited for."""
        return self.is_done or self.stop() or self.keys.is_ended

    @property
    def class_keys(self) -> dict[str, str]:
        """The key of each class, by its name."""
        return self._choices.keys()

    def word(self, key: str) -> Word | None:
        """What a key says of an event; None: nothing."""
        keyed = zip(self.class_keys.values(), self._choices.known.values(), strict=True)
        return ({key: ("set", label) for key, label in keyed if key} | _OTHER_WORDS).get(key)

    def next_key(self) -> str:
        """Wait for a key; empty if none comes any more."""
        while not self.is_over:
            if (key := self.keys.take(POLL_SECONDS)) is not None:
                return key
        return ""

    def line(self) -> str:
        """Wait for a line; empty if none comes any more."""
        with self.keys.lines():
            while not self.stop() and (self.keys.is_terminal or not self.keys.is_ended):
                if (line := self.keys.take_line(POLL_SECONDS)) is not None:
                    return line
        return ""

    def patiently(self, call: Callable[[], Any]) -> Any:
        """As `patiently`; None if the question is gone, which needs no answer."""
        try:
            return patiently(self.service, self.stop, call)
        except UnknownQuestion as error:
            self.say(str(error))
            return None

    def give(self, word: Word, call: Callable[[], Any], lead: str = "") -> None:
        """Give an answer, and say what it was."""
        outcome = self.patiently(call)
        self.n_labels += word[0] == "set" and outcome in ("first", "changed")
        if outcome is not None:
            self.say(f"-> {lead}{said(*word, self.settings)}")

    def say(self, text: str) -> None:
        """Write a text."""
        encoding = self.target.encoding or "utf-8"
        print(text.encode(encoding, "replace").decode(encoding), file=self.target, flush=True)

    def show(self, shown: Question) -> None:
        """Write a question."""
        self.say(picture(shown, self.settings, self.service.stats(), self.size, self.class_keys))

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines of the terminal."""
        return shutil.get_terminal_size()
