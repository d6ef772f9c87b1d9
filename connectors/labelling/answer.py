"""An answer to a question, as the labelling service remembers it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..records.classes import ClassLabel
from ..records.labels import GIVING, Place


class Given(NamedTuple):
    """The newest answer to a question."""

    op: str
    y: ClassLabel | None
    who: str
    rev: int
    place: Place
    voices: Mapping[str, ClassLabel] = MappingProxyType({})  # labels since the last retraction, by annotator
    like: str | None = None  # the question that was answered with it, about a near-duplicate

    @property
    def word(self) -> ClassLabel:
        """A class, or "skip" or "ignore"."""
        return self.op if self.y is None else self.y

    def says(self, op: str, y: ClassLabel | None) -> bool:
        """Whether an answer repeats this one."""
        return (self.op, self.y) == (op, y)

    def said(self, op: str, y: ClassLabel | None, who: str) -> bool:
        """Whether `who` gave this label before; they may not have received the reply."""
        return op == "set" and self.voices.get(who) == y

    def excludes(self, op: str) -> bool:
        """Whether `op` cannot follow: a label is not skipped."""
        return op in ("skip", "ignore") and self.op in GIVING
