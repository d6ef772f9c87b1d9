"""The events that can be found: the newest 100,000, in a database that no file system shows and that ends with it."""

import random
import re
import sqlite3
import threading
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from ...logs.transport import Record
from ...records.people.questions import Question, read_question, write_question
from ...runtime.text import number_in
from .numbers import MOST_NAMES, Numbers
from .query import BadQuery, Condition, Query

CAPACITY = 100_000  # events

_MOST_TEXT = 20_000  # characters of an event that are searched
_MOST_VALUE = 100  # characters of a text that can be compared as a whole
_MOST_NAMES = 1_000  # names of texts that can be compared
_CACHE_KB = 32 << 10
_TERMS = 200  # words of a text that are looked up for its likes
_LIKES = 10_000  # texts that are compared with it
_SHOWN_NAMES = 20
_TABLES = """
CREATE TABLE events (number INTEGER PRIMARY KEY, query_id TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL, value BLOB);
CREATE VIRTUAL TABLE texts USING fts5(words, facts, prefix='2 3');
CREATE VIRTUAL TABLE counts USING fts5vocab(texts, row);
"""


class Page(NamedTuple):
    """Some of the events that were found.

    Attributes
    ----------
    questions
        The events, the newest first, or the most alike first.
    n_found
        How many there are.
    next
        Number to go on before; None if these are the last ones.
    """

    questions: list[Question]
    n_found: int
    next: int | None


class EventIndex:
    """Finds events; any thread may call it.

    Parameters
    ----------
    capacity
        Number of events that it holds, the newest ones.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._lock = threading.Lock()
        self._database = sqlite3.connect("", check_same_thread=False, isolation_level=None)  # a file without a name
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute(f"PRAGMA cache_size = -{_CACHE_KB}")
        self._database.executescript(_TABLES)
        self._numbers = Numbers()
        self._n = 0  # events that came
        self._number_at = np.full(capacity, -1, np.int64)  # the event in each row; -1: none
        self._text_names: dict[str, None] = {}

    def close(self) -> None:
        with self._lock:
            self._database.close()

    def __len__(self) -> int:
        return int(np.count_nonzero(self._number_at >= 0))

    # --- putting in ---------------------------------------------------------------------------------------------------

    def add(self, questions: Sequence[Question]) -> None:
        """Take events, each as the question about it; one with the id of an earlier event replaces it."""
        with self._lock:
            self._database.execute("BEGIN")
            for question in questions:
                self._add(question)
            self._database.execute("COMMIT")

    def _add(self, question: Question) -> None:
        number, row = self._n, self._n % self._capacity
        self._n += 1
        self._remove(int(self._number_at[row]))
        for (earlier,) in self._database.execute("SELECT number FROM events WHERE query_id = ?", (question.query_id,)):
            self._remove(earlier)
        values = (number, question.query_id, question.partition, write_question(question))
        self._database.execute("INSERT INTO events VALUES (?, ?, ?, ?)", values)
        fields = {**question.event, **question.x}
        words = "\n".join(_texts(question.event))[:_MOST_TEXT]
        facts = " ".join(_fact(name, value) for name, value in self._facts(fields))
        self._database.execute("INSERT INTO texts (rowid, words, facts) VALUES (?, ?, ?)", (number, words, facts))
        self._numbers.put(row, dict(_numbers(fields)))
        self._number_at[row] = number

    def _remove(self, number: int) -> None:
        if number < 0:
            return
        self._database.execute("DELETE FROM events WHERE number = ?", (number,))
        self._database.execute("DELETE FROM texts WHERE rowid = ?", (number,))
        self._number_at[number % self._capacity] = -1

    def _facts(self, fields: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """The texts of an event that can be compared as a whole."""
        for name, value in fields.items():
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, bool):
                    text = str(text)
                if not isinstance(text, str) or len(text) > _MOST_VALUE:
                    continue
                if name in self._text_names or len(self._text_names) < _MOST_NAMES:
                    self._text_names[name] = None
                    yield name, text

    # --- finding ------------------------------------------------------------------------------------------------------

    def question(self, query_id: str) -> Question | None:
        """An event by the id of the question about it."""
        with self._lock:
            return next(self._questions("query_id = ?", query_id), None)

    def draw(self) -> Question | None:
        """An event at random, each with the same probability; None if there is none."""
        with self._lock:
            numbers = self._number_at[self._number_at >= 0]
            if not len(numbers):
                return None
            return next(self._questions("number = ?", random.choice(numbers).item()))  # noqa: S311 - no secret

    def search(self, query: Query, before: int | None, n: int) -> Page:
        """The newest events that fit a query.

        Parameters
        ----------
        query
            What they must have.
        before
            Only events with a smaller number, as `Page.next` has it; None: from the newest on.
        n
            No more than this.

        Raises
        ------
        BadQuery
            If no event has a value of a name in the query.
        """
        with self._lock:
            found = self._number_at[: self._n_rows] >= 0
            if query.words:
                found &= self._with_words("words : (" + " AND ".join(query.words) + ")")
            for word in query.excluded:
                found &= ~self._with_words(f"words : {word}")
            for condition in query.conditions:
                found &= self._where(condition)
            numbers = np.sort(self._number_at[: self._n_rows][found])[::-1]
            rest = numbers if before is None else numbers[numbers < before]
            page = rest[:n].tolist()
            return Page(self._in_order(page), len(numbers), page[-1] if len(rest) > n else None)

    @property
    def _n_rows(self) -> int:
        return min(self._n, self._capacity)

    def _with_words(self, match: str) -> np.ndarray:
        """The rows of the events that match a full-text query."""
        rows = np.zeros(self._n_rows, bool)
        numbers = self._database.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (match,)).fetchall()
        rows[np.array(numbers, np.int64).ravel() % self._capacity] = True
        return rows

    def _where(self, condition: Condition) -> np.ndarray:
        name, comparison, number = condition.name, condition.comparison, condition.number
        if name not in self._numbers and name not in self._text_names:
            raise BadQuery(self._missing(name))
        if comparison not in ("=", "!="):
            if name not in self._numbers:
                raise BadQuery(f"{name} {comparison} {condition.value}: the values of {name} are texts; use = or !=")
            assert number is not None
            return self._numbers.where(name, comparison, number, self._n_rows)
        equal = self._with_words(f"facts : {_fact(name, condition.value)}")
        if number is not None and name in self._numbers:
            equal |= self._numbers.where(name, "=", number, self._n_rows)
        return equal if comparison == "=" else ~equal

    def _missing(self, name: str) -> str:
        names = list(dict.fromkeys([*self._text_names, *self._numbers.names]))
        if not names:
            return f"no event has a value {name!r}, or any other"
        there = ", ".join(names[:_SHOWN_NAMES]) + (", ..." if len(names) > _SHOWN_NAMES else "")
        limit = f"; only {MOST_NAMES} names of numbers are known" if len(self._numbers.names) >= MOST_NAMES else ""
        return f"no event has a value {name!r}; there are {there}{limit}"

    def like(self, query_id: str, n: int) -> Page | None:
        """The events that are most like one: by rare words if it has a text, otherwise by its numbers.

        Returns
        -------
        Page
            None if the event is unknown.
        """
        with self._lock:
            row = self._database.execute("SELECT number FROM events WHERE query_id = ?", (query_id,)).fetchone()
            if row is None:
                return None
            numbers = self._like_text(row[0], n)
            if not numbers:
                distances = self._numbers.distances(row[0] % self._capacity, self._n_rows)
                distances[self._number_at[: self._n_rows] < 0] = np.inf
                distances[row[0] % self._capacity] = np.inf
                nearest = np.argpartition(distances, min(n, len(distances) - 1))[:n]
                nearest = nearest[np.isfinite(distances[nearest])]
                numbers = self._number_at[nearest[np.argsort(distances[nearest], kind="stable")]].tolist()
            return Page(self._in_order(numbers), len(numbers), None)

    def _like_text(self, number: int, n: int) -> list[int]:
        """The events that share rare words with one; none if it has no words, or shares none."""
        (text,) = self._database.execute("SELECT words FROM texts WHERE rowid = ?", (number,)).fetchone()
        terms = list(dict.fromkeys(_plain(term) for term in re.findall(r"\w+", text)))[:_TERMS]
        found = [self._database.execute("SELECT doc, term FROM counts WHERE term = ?", (term,)) for term in terms]
        shared = sorted(pair for rows in found for pair in rows if pair[0] > 1)
        chosen: list[str] = []
        n_texts = 0
        for n_with, term in shared:
            n_texts += n_with
            if chosen and n_texts > _LIKES:
                break
            chosen.append(f'"{term}"')
        if not chosen:
            return []
        rule = "SELECT rowid FROM texts WHERE texts MATCH ? AND rowid != ? ORDER BY rank LIMIT ?"
        match = f"words : ({' OR '.join(chosen)})"
        return [rowid for (rowid,) in self._database.execute(rule, (match, number, n))]

    def _in_order(self, numbers: list[int]) -> list[Question]:
        return [question for number in numbers for question in self._questions("number = ?", number)]

    def _questions(self, where: str, value: int | str) -> Iterator[Question]:
        query = f"SELECT query_id, partition, value FROM events WHERE {where}"  # noqa: S608 - from this file's constants
        for query_id, partition, data in self._database.execute(query, (value,)).fetchall():
            yield read_question(Record("", partition, 0, 0, query_id.encode(), data, ()))


def _texts(event: Mapping[str, Any]) -> Iterator[str]:
    """What is read of an event, without images inside it."""
    for value in event.values():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.startswith("data:"):
                yield text


def _numbers(fields: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """The numbers of an event, also those that a table has as texts."""
    for name, value in fields.items():
        if isinstance(value, list):
            yield from ((f"{name}[{i}]", float(v)) for i, v in enumerate(value) if isinstance(v, int | float))
        elif isinstance(value, int | float):
            yield name, float(value)
        elif isinstance(value, str) and len(value) <= _MOST_VALUE and (number := number_in(value)) is not None:
            yield name, number


def _fact(name: str, text: str) -> str:
    """One word for a name and its value."""
    return "f" + blake2b(f"{name}\0{text.strip().casefold()}".encode(), digest_size=8).hexdigest()


def _plain(word: str) -> str:
    """A word as the full-text index has it."""
    letters = unicodedata.normalize("NFKD", word.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))
