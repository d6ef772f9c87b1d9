"""What people type to find events: words, "phrases", and values such as ``amount > 100`` or ``country = "New York"``.

All parts must hold. ``prize*`` finds words that begin so, and a word or phrase after ``-`` must not occur.
"""

import re
from typing import NamedTuple

from ...runtime.text import number_in
from ..answer import Unusable

MOST = 500  # characters of a query

_PART = re.compile(
    r"""(?P<name>"[^"]+"|[^\s"<>=!]+)\s*(?P<comparison><=|>=|!=|=|<|>)\s*(?P<value>"[^"]*"|[^\s"]+)"""
    r"""|(?P<minus>-?)(?P<word>"[^"]*"\*?|[^\s"]+)"""
)


class BadQuery(Unusable):
    """What was typed is no query; the text says why."""


class Condition(NamedTuple):
    """A value that an event must have: name, comparison and value as they were typed."""

    name: str
    comparison: str
    value: str

    @property
    def number(self) -> float | None:
        """The value as a number, if it is one."""
        return number_in(self.value)


class Query(NamedTuple):
    """What an event must hold, must not hold, and which values it must have.

    Attributes
    ----------
    words, excluded
        Words or phrases in the syntax of SQLite's full-text search.
    conditions
        Values.
    """

    words: tuple[str, ...]
    excluded: tuple[str, ...]
    conditions: tuple[Condition, ...]


def parse(text: str) -> Query:
    """Read a query; an empty one finds all events.

    Raises
    ------
    BadQuery
        If it cannot be read.
    """
    if len(text) > MOST:
        raise BadQuery(f"the query has {len(text)} characters, at most {MOST} are read")
    if text.count('"') % 2:
        raise BadQuery('a quotation mark " is missing')
    words: list[str] = []
    excluded: list[str] = []
    conditions: list[Condition] = []
    for part in _PART.finditer(text):
        if part["comparison"]:
            conditions.append(_condition(part["name"].strip('"'), part["comparison"], part["value"].strip('"')))
        elif any(map(str.isalnum, part["word"])):
            (excluded if part["minus"] else words).append(_phrase(part["word"]))
    return Query(tuple(words), tuple(excluded), tuple(conditions))


def _condition(name: str, comparison: str, value: str) -> Condition:
    condition = Condition(name, comparison, value)
    if comparison in ("<", "<=", ">", ">=") and condition.number is None:
        raise BadQuery(f"{name} {comparison} {value}: {comparison} needs a number")
    return condition


def _phrase(word: str) -> str:
    """A word or phrase for SQLite, which takes nothing within quotation marks for its own language."""
    bare = word.rstrip("*")
    return '"' + bare.strip('"') + '"' + ("*" if bare != word else "")
