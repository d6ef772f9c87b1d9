"""One field: the vote about its kind, what is known of its values, and the columns that it becomes.

The kind is judged anew after each of the first `JUDGED` values that are present, and then stays:

- 90 % numbers, other than codes such as 01067: a number.  90 % times: a time.  90 % lists of numbers: a list.
- Otherwise, if the strings have three words, with blanks between, on average and half of the values differ: a text.
- Otherwise a category.  If the first `OWN_VALUES` values of one all differ, it is an id, which is left out.

=========== ======================================================================================================
kind        columns of field f
=========== ======================================================================================================
number      f
category    ~f=value for the first `OWN_VALUES` values, ~f#j for the others, ~f? for a missing one
time        f.days since 1970; sine and cosine of f.hour, if times of day occur, of f.weekday and of f.yearday
text        f.length (its logarithm), f.digits and f.capitals (shares); ~f#j for hashed words and n-grams; ~f:j for the
            numbers of an embedder, if the field has one
list        f.0, f.1, ...
=========== ======================================================================================================

A column that begins with ~ stands apart: a model does not scale it.  The others are numbers.  They always have a value:
`core.guesses` gives it if the record does not.  A *rare* field is the exception: fewer than half of the records have
had it since one did, as in `core.scaling.gaps`.  A record without it has no column of it.
"""

import math
import re
import string
import zlib
from collections.abc import Hashable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np

from streamsvm.core.guesses import guess
from streamsvm.core.hashed_text import LONGEST_GRAM, hash_text
from streamsvm.core.inputs import APART
from streamsvm.features.embedding import Embedding
from streamsvm.features.values import CATEGORY, EPOCH, ID, LIST, NUMBER, READERS, TEXT, TIME, vote_of

JUDGED = 50  # values
CLEAR = 0.9  # share of the values that decides a kind
WORDS_OF_TEXT, DIFFERENT = 3.0, 0.5  # mean number of words, and share of different values, from which strings are texts
OWN_VALUES = 256  # values of a category that get columns of their own, and columns for all others
LONGEST_TEXT = 10_000  # characters of a text that are read
LATEST = lru_cache(maxsize=4)  # texts: a record is transformed to predict it, and again to learn it
NO_NAMES = np.zeros(0, object)
DIGITS, CAPITALS = string.digits.encode(), string.ascii_uppercase.encode()
DAY = timedelta(1).total_seconds()
FIRST_DAY, LAST_DAY = ((end.replace(tzinfo=UTC) - EPOCH) // timedelta(1) for end in (datetime.min, datetime.max))
WORD = re.compile(r"\w+").findall


@dataclass(slots=True, eq=False)
class Field:
    """What is known of one field; a kind that is given stays."""

    name: Hashable
    kind: str | None
    began: int
    embedding: Embedding | None = None
    is_given: bool = field(init=False)
    is_fixed: bool = field(init=False)
    n_present: int = 0
    n_unfit: int = 0
    n_blank: int = 0
    n_others: int = 0  # of the values that are present, those that the guesses do not count
    words: int = 0
    counted: int = 0
    length: int = 0
    told: bool = False
    has_clock: bool = False
    is_rare: bool = False
    votes: dict[str, int] = field(default_factory=dict)
    different: set[int] = field(default_factory=set)  # checksums of the values that were judged
    values: dict[str, str] = field(default_factory=dict)  # of a category, and the names of their columns
    names: np.ndarray = field(default_factory=lambda: NO_NAMES)  # of a text's hashed columns, once they are needed
    rows: dict[str, int] = field(default_factory=dict)  # the first row of each kind in the state of the guesses

    def __post_init__(self) -> None:
        self.is_given = self.is_fixed = self.kind is not None

    # ----------------------------------------------------------------------------------------------------------- kind

    def judge(self, v: Any) -> bool:
        """Let a value vote, and decide anew; return whether the kind is fixed from now on."""
        vote = vote_of(v)
        if vote is None:
            return False
        self.votes[vote] = self.votes.get(vote, 0) + 1
        if vote != LIST:
            word = READERS[CATEGORY](v)
            self.words += len(word.split()) if vote == CATEGORY else 0
            self.different.add(zlib.crc32(str(word).encode("utf-8", "replace")))
        self.kind = self._elected()
        if sum(self.votes.values()) >= JUDGED:
            self.is_fixed = True
            self.different.clear()
        return self.is_fixed

    def _elected(self) -> str:
        n, strings = sum(self.votes.values()), self.votes.get(CATEGORY, 0)
        for kind in (NUMBER, TIME, LIST):
            if self.votes.get(kind, 0) >= CLEAR * n:
                return kind
        is_text = self.words >= WORDS_OF_TEXT * strings and len(self.different) >= DIFFERENT * n
        return TEXT if is_text else CATEGORY

    def is_rare_after(self, n_seen: int) -> bool:
        """Whether fewer than half of the records had the field, also without a value, since one did."""
        return 2 * (self.n_present + self.n_unfit + self.n_blank) < n_seen - self.began

    def numbers_of(self, kind: str) -> int:
        """Number of columns that are guessed if a value of this kind is missing."""
        return self.length if kind == LIST else {TEXT: 3}.get(kind, 1)

    @property
    def n_numbers(self) -> int:
        """Number of columns of the field that are guessed if they are missing."""
        return self.numbers_of(self.kind or "")

    # --------------------------------------------------------------------------------------------------------- learning

    def take_in(self, value: Any) -> Any:
        """Note a value of the field's kind; return its numbers for the guesses, or None."""
        if self.kind == CATEGORY:
            self._note_word(value)
            return None
        if self.kind == NUMBER:
            return value
        if self.kind == TEXT:
            return numbers_of_text(value)
        if self.kind == LIST:
            self.length = self.length or len(value)
            return value
        self.has_clock = self.has_clock or (value.hour, value.minute, value.second) != (0, 0, 0)
        return days_of(value)

    def _note_word(self, word: str) -> None:
        self.counted += 1
        if word not in self.values and len(self.values) < OWN_VALUES:
            self.values[word] = f"{APART}{self.name}={word}"
            if self.counted == len(self.values) == OWN_VALUES and not self.is_given:
                self.kind, self.values = ID, {form_of(word): ""}

    # ----------------------------------------------------------------------------------------------------- transforming

    def write(self, value: Any, guesses: np.ndarray, width: int, out: dict[Hashable, float]) -> None:
        """Write the columns of a value of the field's kind, or of None for a missing one."""
        kind = self.kind
        if kind == CATEGORY:
            out[f"{APART}{self.name}?" if value is None else self._column_of(value)] = 1.0
            return
        row = self.rows.get(kind or "", -1)  # if there is one, it has a guess
        if kind == NUMBER:
            if value is not None or row >= 0:
                out[self.name] = guess(guesses[row]) if value is None else value
        elif kind == TEXT:
            self._write_text(value, guesses[row : row + 3] if row >= 0 else None, width, out)
        elif kind == LIST:
            if value is not None or row >= 0:
                numbers = map(guess, guesses[row : row + self.length]) if value is None else value.tolist()
                out.update((f"{self.name}.{j}", v) for j, v in enumerate(numbers))
        elif value is not None or row >= 0:
            self._write_time(time_at(guess(guesses[row])) if value is None else value, out)

    def _column_of(self, word: str) -> str:
        column = self.values.get(word)
        if column is not None:
            return column
        if len(self.values) < OWN_VALUES:
            return f"{APART}{self.name}={word}"
        return f"{APART}{self.name}#{zlib.crc32(word.encode('utf-8', 'replace')) % OWN_VALUES}"

    def _write_time(self, t: datetime, out: dict[Hashable, float]) -> None:
        name = self.name
        out[f"{name}.days"] = days_of(t)
        if self.has_clock:
            _write_turn(f"{name}.hour", (t.hour + t.minute / 60.0) / 24.0, out)
        _write_turn(f"{name}.weekday", t.weekday() / 7.0, out)
        _write_turn(f"{name}.yearday", t.timetuple().tm_yday / 366.0, out)

    def _write_text(self, text: str | None, guesses: np.ndarray | None, width: int, out: dict[Hashable, float]) -> None:
        name = self.name
        if text is not None:
            columns, values, n_ordinary = hashed(text, width)
            if not len(self.names):
                self.names = np.array([f"{APART}{name}#{j}" for j in range(width)], object)
            keys = self.names[columns].tolist()
            out.update(dict.fromkeys(keys[:n_ordinary], values[0]) if n_ordinary else ())
            out.update(zip(keys[n_ordinary:], values[n_ordinary:], strict=True))
            if self.embedding is not None:
                out.update(self.embedding.columns(text[:LONGEST_TEXT]) or {})
        numbers = numbers_of_text(text) if text is not None else None if guesses is None else map(guess, guesses)
        if numbers is not None:
            out.update(zip((f"{name}.length", f"{name}.digits", f"{name}.capitals"), numbers, strict=True))


def form_of(word: str) -> str:
    """A word with 9 for each digit and a for each letter: it tells what ids look like, and names no person."""
    return "".join("9" if c.isdigit() else "a" if c.isalpha() else c for c in word)


def days_of(t: datetime) -> float:
    """Days since 1970."""
    return t.timestamp() / DAY


def time_at(days: float) -> datetime:
    """The time so many days since 1970, within the years of `datetime`."""
    return EPOCH + timedelta(days=min(max(days, FIRST_DAY), LAST_DAY))


def _write_turn(name: str, share: float, out: dict[Hashable, float]) -> None:
    angle = math.tau * share
    out[f"{name}.sin"], out[f"{name}.cos"] = math.sin(angle), math.cos(angle)


@LATEST
def numbers_of_text(text: str) -> tuple[float, float, float]:
    """The logarithm of a text's length, and its shares of digits and of capital letters."""
    text = text[:LONGEST_TEXT]
    n = len(text)
    if text.isascii():  # a tenth of the time
        letters = text.encode()
        digits, capitals = (n - len(letters.translate(None, of)) for of in (DIGITS, CAPITALS))
    else:
        digits, capitals = sum(map(str.isdigit, text)), sum(map(str.isupper, text))
    return math.log1p(n), digits / n, capitals / n


@LATEST
def hashed(text: str, width: int) -> tuple[np.ndarray, list[float], int]:
    """The hashed columns of a text, their values, and how many of them have the first value."""
    words = WORD(text[:LONGEST_TEXT].lower())
    if not words:
        return np.zeros(0, np.int64), [], 0
    letters = np.frombuffer(f" {' '.join(words)} ".encode("utf-8", "replace"), np.uint8)
    most = len(letters) * LONGEST_GRAM
    columns, values = np.empty(most, np.int64), np.empty(most)
    n, n_ordinary = hash_text(letters, np.zeros((2, width), np.int32), columns, values)
    return columns[:n], values[:n].tolist(), n_ordinary
