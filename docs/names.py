"""Two habits of our docstrings that Griffe, which reads them, does not know.

Parameters that share a description (``X, y``) would all get the type and default of the first: each gets its own entry.
References are written as river writes them (``[^1]: ...``): as footnotes that nothing cites, their links back would
lead nowhere, so they become a list.
"""

import re
from typing import Any

import griffe

SHARED = re.compile(r"^((?!.*Error)\w+(?:, \w+)+)\n((?:    .*\n?|\n(?=    ))+)", re.MULTILINE)
REFERENCE = re.compile(r"^\[\^\d+\]: ", re.MULTILINE)


class Separate(griffe.Extension):
    """Rewrites a docstring before it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Repeat a shared description for each name, and list the references."""
        if obj.docstring:
            obj.docstring.value = REFERENCE.sub("- ", SHARED.sub(_each, obj.docstring.value))


def _each(entry: re.Match[str]) -> str:
    description = entry[2].rstrip("\n")
    rest = entry[2][len(description) :]
    return "\n".join(f"{name}\n{description}" for name in entry[1].split(", ")) + rest
