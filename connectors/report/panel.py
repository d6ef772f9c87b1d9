"""A part of the report's page."""

from collections.abc import Sequence
from typing import NamedTuple


class Panel(NamedTuple):
    """A part of the page.

    Attributes
    ----------
    name
        Its id on the page.
    title
        Its heading.
    picture
        SVG, or empty.
    text
        Sentences.
    table
        Rows of a table, the first of which is the header; empty: there is none.
    facts
        Names and values, shown above the text.
    """

    name: str
    title: str
    picture: str
    text: list[str]
    table: Sequence[Sequence[str]] = ()
    facts: Sequence[tuple[str, str]] = ()
