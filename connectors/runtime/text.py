"""Texts for people, and numbers that people write."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice, zip_longest
from typing import Any

_MOST_PRINTED = 2000  # characters of a message


def plural(count: int, noun: str) -> str:
    """A count with its noun, such as "1 record" or "2 records"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def counted(counts: Mapping[Any, int], most: int) -> str:
    """How often each value came, of the first so many values."""
    shown = ", ".join(f"{value} {n:,}x" for value, n in islice(counts.items(), most))
    return shown + (f", {len(counts) - most} others" if len(counts) > most else "")


def printable(message: str) -> str:
    """A message for a terminal: what it quotes of a file can neither control the terminal nor fill it."""
    cut = message if len(message) <= _MOST_PRINTED else f"{message[:_MOST_PRINTED]}..."
    return "".join(mark if mark.isprintable() or mark == "\n" else repr(mark)[1:-1] for mark in cut)


def aligned(lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table as text: the first `left` columns are left-aligned, the others right-aligned; lines may end early."""
    widths = [max(map(len, column)) for column in zip_longest(*lines, fillvalue="")]
    return "\n".join(
        "  ".join(
            f"{cell:{'<' if i < left else '>'}{width}}"
            for i, (cell, width) in enumerate(zip(line, widths, strict=False))
        ).rstrip()
        for line in lines
    )


def to_number(text: str) -> float:
    """The number that a text means, perhaps an infinite one or NaN.

    Raises
    ------
    ValueError
        If the text is not a number, or one such as 12_34 that only Python reads.
    """
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def number_in(text: str) -> float | None:
    """The same; None if the text is not a number."""
    try:
        return to_number(text)
    except ValueError:
        return None


def to_whole(text: str) -> int:
    """The whole number that a text means; ValueError as for `to_number`."""
    if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text, re.ASCII):
        raise ValueError(f"{text!r} is not a whole number")
    return int(text)
