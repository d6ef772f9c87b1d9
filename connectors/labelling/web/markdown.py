"""A small part of Markdown, as a tree that the page builds its elements from: no HTML is written or read.

Known are headings, paragraphs, lists with ``-``, ``*`` or ``1.``, and inside a line **strong**, *emphasised*, `code`
and [links](https://example.org) to ``http``, ``https`` and ``mailto`` addresses. Everything else stays text, also HTML.

A block is ``[kind, content...]``: ``["h", level, line]``, ``["p", line]``, ``["ul", [line, ...]]`` or ``["ol", ...]``.
A line is a list of texts and of ``["strong" or "em", line]``, ``["code", text]`` and ``["a", address, line]``.
"""

import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

Line = list[Any]
Block = list[Any]

_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*")
_ITEM = re.compile(r"\s*(?:([-*+])|\d{1,9}[.)])\s+(.*)")
_INLINE = re.compile(
    r"`(?P<code>[^`]+)`"
    r"|\*\*(?P<strong>\S(?:.*?\S)?)\*\*"
    r"|(?<![\w*])[*](?P<em>[^\s*](?:[^*]*[^\s*])?)[*](?![\w*])"
    r"|\[(?P<words>[^\[\]]+)\]\((?P<address>(?:https?://|mailto:)[^\s()<>\"]+)\)"
)


def parse(text: str) -> list[Block]:
    """The blocks of a text.

    Parameters
    ----------
    text
        Markdown, for example the instructions in the settings.
    """
    paragraphs = re.split(r"\n\s*\n", text.replace("\r\n", "\n").strip("\n"))
    return [block for paragraph in paragraphs if paragraph.strip() for block in _blocks(paragraph.split("\n"))]


def _blocks(lines: list[str]) -> Iterator[Block]:
    for kind, group in groupby(_continued(lines), key=lambda line: line[0]):
        texts = [text for _, text in group]
        if kind in ("ul", "ol"):
            yield [kind, [_line(text) for text in texts]]
        elif kind == "p":
            yield ["p", _line(" ".join(texts))]
        else:
            yield from (["h", int(kind), _line(text)] for text in texts)


def _continued(lines: list[str]) -> list[tuple[str, str]]:
    """Kind and text of each line; an indented line goes on with the item above it."""
    found: list[tuple[str, str]] = []
    for line in lines:
        if heading := _HEADING.fullmatch(line.strip()):
            found.append((str(len(heading[1])), heading[2]))
        elif item := _ITEM.fullmatch(line):
            found.append(("ul" if item[1] else "ol", item[2].strip()))
        elif found and found[-1][0] in ("ul", "ol") and line[:1].isspace():
            found[-1] = found[-1][0], f"{found[-1][1]} {line.strip()}"
        else:
            found.append(("p", line.strip()))
    return found


def _line(text: str) -> Line:
    parts: Line = []
    end = 0
    for match in _INLINE.finditer(text):
        if match.start() > end:
            parts.append(text[end : match.start()])
        parts.append(_marked(match))
        end = match.end()
    if end < len(text):
        parts.append(text[end:])
    return parts


def _marked(match: re.Match[str]) -> Line:
    if match["code"]:
        return ["code", match["code"]]
    if match["address"]:
        return ["a", match["address"], [match["words"]]]
    kind = "strong" if match["strong"] else "em"
    return [kind, _line(match[kind])]
