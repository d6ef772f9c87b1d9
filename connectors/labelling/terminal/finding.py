"""Finding events in a terminal: those that hold some words and values, or that are like one; each can be labelled."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal, Protocol

from ...records.classes import ClassLabel
from ...records.people.questions import Question
from ...runtime.process import POLL_SECONDS
from ...settings.sections import Settings
from ..answer import Given
from ..finding.query import BadQuery
from ..service import Found, LabellingService
from .picture import found_lines, picture, plain, said

_LISTED = 9  # events, one for each digit
_HELP = 'words and values: prize* "free entry" -meeting amount > 100 country = FR; an empty line goes back'

Word = tuple[Literal["set", "skip", "ignore"], ClassLabel | None]


class Console(Protocol):
    """What `Finding` needs of a session in a terminal."""

    n_labels: int

    @property
    def class_keys(self) -> dict[str, str]: ...
    @property
    def words(self) -> Mapping[str, Word]: ...
    @property
    def size(self) -> tuple[int, int]: ...
    @property
    def is_over(self) -> bool: ...
    def say(self, text: str) -> None: ...
    def line(self) -> str: ...
    def next_key(self) -> str: ...
    def patiently(self, call: Callable[[], Any]) -> Any: ...


class Finding:
    """Lists events, and takes answers about them.

    Parameters
    ----------
    service
        Finds the events, and takes the answers.
    settings
        The configuration.
    who
        Source of the labels.
    console
        Talks with the annotator.
    """

    def __init__(self, service: LabellingService, settings: Settings, who: str, console: Console) -> None:
        self._service = service
        self._settings = settings
        self._who = who
        self._console = console

    def search(self) -> None:
        """List the events that fit what the annotator types next, the newest first."""
        self._console.say(_HELP)
        text = self._console.line()
        if text:
            self._show(partial(self._service.find, text, n=_LISTED))

    def like(self, shown: Question) -> None:
        """List the events that are most like one."""
        self._show(lambda before: self._service.find_like(shown.query_id, _LISTED))

    def _show(self, look: Callable[..., Found]) -> None:
        """List events, in pages, until the annotator goes back."""
        before: int | None = None
        while (found := self._found(partial(look, before=before))) is not None:
            if not found.page.questions:
                self._console.say(f"none of {found.n_events} events")
                return
            events = list(zip(found.page.questions, found.given, strict=True))
            older = "" if found.page.next is None else "[h] shows older events, "
            lines = found_lines(events, self._settings, self._console.size[0])
            keys = f"a number shows an event, {older}[/] finds others, any other key goes back"
            self._console.say("\n".join([f"{found.page.n_found} of {found.n_events} events", *lines, keys]))
            key = self._console.next_key()
            if key.isdecimal() and 1 <= int(key) <= len(events):
                if self._label(*events[int(key) - 1]):
                    return
            elif key == "h" and found.page.next is not None:
                before = found.page.next
            else:
                if key == "/":
                    self.search()
                return

    def _found(self, look: Callable[[], Found]) -> Found | None:
        """What was found, when all events are read; None, with a word why, if it cannot be looked for."""
        try:
            while (found := self._console.patiently(look)) is not None:
                if found.is_loaded or self._console.is_over:
                    return found
                self._service.wait(POLL_SECONDS)
        except BadQuery as error:
            self._console.say(plain(str(error)))
        return None

    def _label(self, shown: Question, given: Given | None) -> bool:
        """Take an answer about an event; return whether others are listed in the place of the list that it is from."""
        console, service = self._console, self._service
        console.say(picture(shown, self._settings, service.stats(), console.size, console.class_keys))
        known = "" if given is None else f"the answer is: {said(given.op, given.y, self._settings)}. "
        console.say(f"{known}[=] finds events like this one, any key that is no answer goes back")
        key = console.next_key()
        if key == "=":
            self.like(shown)
            return True
        word = console.words.get(key)
        if word is None:
            return False
        op, y = word
        if given is None and y is not None:
            outcome = console.patiently(partial(service.answer, shown.query_id, y, self._who))
        else:
            outcome = console.patiently(partial(service.correct, shown.query_id, op, y, self._who))
        console.n_labels += op == "set" and outcome in ("first", "changed")
        if outcome is not None:
            console.say(f"-> {said(op, y, self._settings)}")
        return False
