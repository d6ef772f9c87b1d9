"""Parameters that share a description, as numpydoc has them (``X, y``), each for itself.

Griffe, which reads the docstrings, would give all of them the type and default of the first.
"""

import re
from typing import Any

import griffe

SHARED = re.compile(r"^((?!.*Error)\w+(?:, \w+)+)\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)


class Separate(griffe.Extension):
    """Repeats the description for each name."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite a docstring before it is read."""
        if obj.docstring:
            obj.docstring.value = SHARED.sub(_each, obj.docstring.value)


def _each(entry: re.Match[str]) -> str:
    description = entry[2].rstrip("\n")
    rest = entry[2][len(description) :]
    return "\n".join(f"{name}\n{description}" for name in entry[1].split(", ")) + rest
