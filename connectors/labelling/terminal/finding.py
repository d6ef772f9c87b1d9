"""Finding events in a terminal: those that hold some words and values, or that are like one; each can be labelled."""

from collections.abc import Callable
from functools import partial

from ...records.people.questions import Question
from ...runtime.process import POLL_SECONDS
from ..answer import Given
from ..finding.query import BadQuery
from ..service import Found
from .console import LISTED, Console
from .picture import listed, plain, said

_HELP = 'words and values: prize* "free entry" -meeting amount > 100 country = FR; an empty line goes back'


class Finding:
    """Lists events, and takes answers about them.

    Parameters
    ----------
    console
        Talks with the annotator.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._service = console.service

    def search(self) -> None:
        """List the events that fit what the annotator types next, the newest first."""
        self._console.say(_HELP)
        text = self._console.line()
        if text:
            self._show(partial(self._service.find, text, n=LISTED))

    def like(self, shown: Question) -> None:
        """List the events that are most like one."""
        self._show(lambda before: self._service.find_like(shown.query_id, LISTED))

    def _show(self, look: Callable[..., Found]) -> None:
        """List events, in pages, until the annotator goes back."""
        console = self._console
        before: int | None = None
        while (found := self._found(partial(look, before=before))) is not None:
            if not found.page.questions:
                console.say(f"none of {found.n_events} events")
                return
            events = list(zip(found.page.questions, found.given, strict=True))
            older = "" if found.page.next is None else "[h] shows older events, "
            lines = listed([(given, shown.id, shown) for shown, given in events], console.settings, console.size[0])
            keys = f"a number shows an event, {older}[/] finds others, any other key goes back"
            console.say("\n".join([f"{found.page.n_found} of {found.n_events} events", *lines, keys]))
            key = console.next_key()
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
        console.show(shown)
        known = "" if given is None else f"the answer is: {said(given.op, given.y, console.settings)}. "
        console.say(f"{known}[=] finds events like this one, any key that is no answer goes back")
        key = console.next_key()
        if key == "=":
            self.like(shown)
            return True
        word = console.word(key)
        if word is not None and given is None and word[1] is not None:
            console.give(word, partial(service.answer, shown.query_id, word[1], console.who))
        elif word is not None:
            console.give(word, partial(service.correct, shown.query_id, *word, console.who))
        return False
