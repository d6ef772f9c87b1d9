"""The order in which a partition's records were taken since a checkpoint.

Where the daemon has caught up with its topics, the order in which it takes events and labels depends on when they come.
So each *cut* (a run of events, then a run of labels, consumed together) is written down before it is consumed, and a
daemon that is started again takes the same cuts.  One line each::

    cut EVENTS LABELS    take events, then labels, up to these offsets
    one EVENTS LABELS    the same, for a single record that is suspected of killing the process
    skip EVENTS LABELS   pass over that record instead: it did
    try                  the last cut is taken again
    done                 whatever happens now, the last cut has not killed the process

A line that a kill left unfinished says nothing: its cut was never begun.
"""

import errno
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, NamedTuple

from .folders import touch_private

TRIES = 3  # of a cut that kills the process, before its records are taken one by one, and of one of these


class Kind(StrEnum):
    CUT = "cut"
    ONE = "one"
    SKIP = "skip"


class Cut(NamedTuple):
    """How far to take events and labels: the offset after the last of each."""

    kind: Kind
    events: int
    labels: int


class Journal:
    """A journal that is written.

    Parameters
    ----------
    path
        The file, which is replaced.
    past, n_tries
        What it begins with: the cuts that are taken again, and how often the last one was begun and not survived.
    """

    def __init__(self, path: Path, past: Sequence[Cut] = (), n_tries: int = 0) -> None:
        beginning = b"".join(map(_line, past)) + (b"try\n" * (n_tries - 1) if n_tries else b"done\n")
        temporary = path.with_name(f".{path.name}.tmp")
        touch_private(temporary)
        temporary.write_bytes(beginning)
        temporary.replace(path)
        self._file: IO[bytes] = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()

    def append(self, cut: Cut) -> None:
        self._write(_line(cut))

    def retry(self) -> None:
        self._write(b"try\n")

    def done(self) -> None:
        self._write(b"done\n")

    def close(self) -> None:
        self._file.close()

    def _write(self, line: bytes) -> None:
        written = self._file.write(line)
        if written != len(line):
            raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written", str(self._file.name))


def read(path: Path) -> tuple[list[Cut], int]:
    """The cuts of a journal, and how often the last one was begun and not survived."""
    cuts: list[Cut] = []
    n_tries = 0
    for line in path.read_bytes().splitlines(keepends=True):
        if not line.endswith(b"\n"):
            break
        match line.decode().split():
            case [("cut" | "one" | "skip") as kind, events, labels]:
                cuts.append(Cut(Kind(kind), int(events), int(labels)))
                n_tries = 1
            case ["try"]:
                n_tries += 1
            case ["done"]:
                n_tries = 0
    return cuts, n_tries


def judge(cuts: list[Cut], n_tries: int) -> tuple[list[Cut], int, Cut | None]:
    """What to do about a cut that killed the process whenever it was consumed.

    Returns
    -------
    cuts, n_tries
        The cuts to take again, and how often the last one was tried, as for `Journal`.
    suspect
        The cut that comes after them, whose records are to be taken one by one; mostly None.
    """
    if cuts and cuts[-1].kind == Kind.CUT and n_tries >= TRIES:
        return cuts[:-1], 0, cuts[-1]
    if cuts and cuts[-1].kind == Kind.ONE and n_tries >= TRIES:
        return [*cuts[:-1], cuts[-1]._replace(kind=Kind.SKIP)], 0, None
    return cuts, n_tries, None


def _line(cut: Cut) -> bytes:
    return f"{cut.kind} {cut.events} {cut.labels}\n".encode()
