"""The finding of a check: its severity, its description, and the remedy."""

from collections.abc import Iterator
from typing import NamedTuple, Self

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Finding(NamedTuple):
    """One remark of a check; a process cannot work while there is a PROBLEM."""

    level: str
    text: str
    remedy: str = ""

    @classmethod
    def ok(cls, text: str) -> Self:
        """All is well."""
        return cls(OK, text)

    @classmethod
    def warning(cls, text: str, remedy: str = "") -> Self:
        """Something that may become a problem."""
        return cls(WARNING, text, remedy)

    @classmethod
    def problem(cls, text: str, remedy: str = "") -> Self:
        """Something that must be mended."""
        return cls(PROBLEM, text, remedy)


Findings = Iterator[Finding]
