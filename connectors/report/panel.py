"""A part of the report's page."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_LINE = 55  # characters
_PICTURE = 15  # lines


Plot = Callable[[Any], None]  # draws on a figure


class Panel(NamedTuple):
    """A part of the page.

    Attributes
    ----------
    name
        Its id on the page, behind that of the partition.
    title
        Its heading.
    text
        Sentences.
    plot
        Draws its picture on an empty figure of matplotlib; None: there is none.
    alt
        Description of the picture, for screen readers.
    table
        Rows of a table, the first of which is the header; empty: there is none.
    facts
        Names and values, shown above the text.
    """

    name: str
    title: str
    text: list[str]
    plot: Plot | None = None
    alt: str = ""
    table: Sequence[Sequence[str]] = ()
    facts: Sequence[tuple[str, str]] = ()

    @property
    def lines(self) -> int:
        """About how high it is, in lines of text."""
        text = sum(1 + len(sentence) // _LINE for sentence in self.text)
        return 3 + text + len(self.facts) + 2 * len(self.table) + (_PICTURE if self.plot else 0)


def in_columns(panels: Sequence[Panel]) -> tuple[list[Panel], list[Panel]]:
    """Two columns of about the same height, each in the order of the panels; the first panel begins the first one.

    The highest panels are placed first, each in the column that is lower so far.
    """
    columns: tuple[list[int], list[int]] = ([], [])
    heights = [0, 0]
    for place in sorted(range(len(panels)), key=lambda place: -panels[place].lines):
        lower = heights.index(min(heights))
        columns[lower].append(place)
        heights[lower] += panels[place].lines
    columns[0].sort()
    columns[1].sort()
    first, second = sorted(columns, key=lambda column: column[:1] != [0])
    return [panels[place] for place in first], [panels[place] for place in second]
