"""An answer to a question, as the labelling service remembers it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from ..records.labels import Place


class Given(NamedTuple):
    """The newest answer to a question."""

    op: str
    y: bool | None
    who: str
    rev: int
    place: Place
    voices: Mapping[str, bool] = MappingProxyType({})  # labels since the last retraction, by annotator

    @property
    def word(self) -> bool | str:
        """A class, or "skip" or "ignore"."""
        return self.op if self.y is None else self.y

    def says(self, op: str, y: bool | None, who: str) -> bool:
        """Whether an answer repeats this one, or an earlier one of `who`, who may not have received the reply."""
        return (self.op, self.y) == (op, y) or (op == "set" and self.voices.get(who) is y)

    def excludes(self, op: str) -> bool:
        """Whether `op` cannot follow: a label is not skipped, and only a label is retracted."""
        if op == "retract":
            return self.op != "set"
        return op != "set" and self.op == "set"
