"""An answer to a question, as the labelling service remembers it."""

from typing import NamedTuple

from ..records.classes import ClassLabel
from ..records.labels import GIVING, Place


class Unusable(ValueError):  # noqa: N818 - names the condition
    """What a person typed cannot be used; the text says why."""


class Word(NamedTuple):
    """What a person says about an event."""

    op: str
    y: ClassLabel | None
    who: str


class Given(NamedTuple):
    """An answer to a question."""

    op: str
    y: ClassLabel | None
    who: str
    rev: int
    place: Place
    like: str | None = None  # the question that was answered with it, about a near-duplicate

    @property
    def word(self) -> ClassLabel:
        """A class, or "skip" or "ignore"."""
        return self.op if self.y is None else self.y

    @property
    def by(self) -> Word:
        """The answer, and who gave it."""
        return Word(self.op, self.y, self.who)

    def says(self, word: Word) -> bool:
        """Whether an answer repeats this one."""
        return (self.op, self.y) == (word.op, word.y)

    def excludes(self, op: str) -> bool:
        """Whether `op` cannot follow: a label is not skipped."""
        return op in ("skip", "ignore") and self.op in GIVING
