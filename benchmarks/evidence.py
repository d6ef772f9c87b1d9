"""Puts the figures of the committed tables into the rows of evidence.md, which is quick: it measures nothing.

    python benchmarks/evidence.py            # renew the figures, and say which have changed

A figure of a row is a link whose title names the cell of a table: its row, and behind a colon its column.

    [1.23* / 1.00](papers.md#seconds "tic-tac-toe: planning 1")

A row goes by its first cell, or by its first two ("a9a NC").  "least" and "most" as a row are those of the column.  A
number in brackets at the end names one of the figures of a cell that are separated by commas.  The table is the one of
that section, up to the next heading, which has this row and this column.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
EVIDENCE = HERE / "evidence.md"
FIGURE = re.compile(r'\[(?P<figure>[^\]]*)\]\((?P<page>[\w/.]+\.md)#(?P<section>[\w-]+) "(?P<title>[^"]+)"\)')
TITLE = re.compile(r"(?P<row>.+?): (?P<column>.+?)(?: \[(?P<which>\d+)\])?")
BETWEEN = re.compile(r"(?<!\\)\|")  # the cells of a line
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")

Table = list[list[str]]


class Figure(NamedTuple):
    """A figure of a row of evidence.md, and what its table has."""

    title: str
    quoted: str
    table: str


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def tables(page: Path, section: str) -> Iterator[Table]:
    """The tables below a heading, up to the next one, as rows of cells."""
    inside, table = False, Table()
    for line in [*page.read_text(encoding="utf-8").splitlines(), "# the end"]:
        if inside and line.startswith("|"):
            table.append([cell.strip() for cell in BETWEEN.split(line)[1:-1]])
        elif table:
            yield table
            table = Table()
        if heading := re.fullmatch(r"#+ (.*)", line):
            inside = slug(heading[1]) == section


def found(table: Table, row: str, column: str) -> str | None:
    """The cell of a table, or None if the table has no such row or column."""
    titles, _, *rows = table
    names = [title.replace("`", "") for title in titles]
    if column not in names:
        return None
    at = names.index(column)
    if row in ("least", "most"):
        numbers = [cells[at] for cells in rows if NUMBER.fullmatch(cells[at])]
        return (min if row == "least" else max)(numbers, key=float)
    cells = [cells[at] for cells in rows if row in (cells[0].strip("*`"), " ".join(cells[:2]))]
    if len(cells) > 1:
        raise ValueError(f"{row!r} is {len(cells)} rows of the table with the column {column!r}")
    return cells[0] if cells else None


def figure(place: re.Match[str]) -> Figure:
    """What a link of evidence.md quotes, and what its table has."""
    title = TITLE.fullmatch(place["title"])
    if title is None:
        raise ValueError(f"{place['title']!r} is no row, colon and column")
    page = tables(HERE / place["page"], place["section"])
    cells = [cell for table in page if (cell := found(table, title["row"], title["column"])) is not None]
    if len(cells) != 1:
        raise ValueError(f"{place['page']}#{place['section']} has {len(cells)} cells {place['title']!r}, not one")
    which = title["which"]
    return Figure(place["title"], place["figure"], cells[0].split(", ")[int(which) - 1] if which else cells[0])


def figures() -> list[Figure]:
    """All figures of evidence.md that name a table."""
    return [figure(place) for place in FIGURE.finditer(EVIDENCE.read_text(encoding="utf-8"))]


def renewed(place: re.Match[str]) -> str:
    """The link with what its table has."""
    return f"[{figure(place).table}]{place[0][len(place['figure']) + 2 :]}"


def main() -> None:
    """Renew the figures, and print those that have changed."""
    for title, quoted, table in figures():
        if quoted != table:
            print(f"{title}: {quoted} -> {table}")
    EVIDENCE.write_text(FIGURE.sub(renewed, EVIDENCE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
