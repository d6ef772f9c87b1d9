"""The finding of a check: its severity, its description, and the remedy."""

from collections.abc import Iterator
from typing import NamedTuple

OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Finding(NamedTuple):
    """One remark of a check; a process cannot work while there is a PROBLEM."""

    level: str
    text: str
    remedy: str = ""


Findings = Iterator[Finding]
