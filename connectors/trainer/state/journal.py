"""The order in which a partition's records were consumed since a checkpoint.

When the trainer has caught up with its topics, it consumes events and labels as they come.  So it writes each *cut* (a
run of events, then a run of labels, consumed together) to the journal before it consumes the cut.  After a restart it
repeats the same cuts.  The journal has one line for each step::

    cut EVENTS LABELS    consume events, then labels, up to these offsets
    one EVENTS LABELS    the same, for a single record that may have killed the process
    skip EVENTS LABELS   pass over that record instead: it has killed the process
    try                  the last cut is repeated
    done                 the last cut has not killed the process

A line ends with a checksum of eight hexadecimal digits: the crc32 of its text and of all lines before it.  So a line
that is damaged, lost or doubled is found.  Journals of version 0.1.0 may have lines without checksums.

A kill may leave the last line unfinished.  It says nothing: its cut was never begun.
"""

import errno
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, NamedTuple
from zlib import crc32

from ...logs.segments import LogCorruption
from ...runtime.folders import naming, replace_private

TRIES = 3  # of a cut that kills the process, before it is consumed record by record; and of such a record

_LINE = re.compile(rb"(?:(cut|one|skip) (\d{1,19}) (\d{1,19})|(try|done))(?: ([0-9a-f]{8}))?")


class Kind(StrEnum):
    CUT = "cut"
    ONE = "one"
    SKIP = "skip"


class Cut(NamedTuple):
    """Records to consume together: events and labels up to, and without, these offsets."""

    kind: Kind
    events: int
    labels: int

    @property
    def ends(self) -> tuple[int, int]:
        return self.events, self.labels


class Journal:
    """Writes a journal.

    Parameters
    ----------
    path
        The file; it is replaced.
    past, n_tries
        The cuts to repeat, with which the journal begins, and how often the last of them has killed the process.
    """

    def __init__(self, path: Path, past: Sequence[Cut] = (), n_tries: int = 0) -> None:
        self._sum = 0  # of all lines so far
        texts = [*map(_text, past), *([b"try"] * (n_tries - 1) if n_tries else [b"done"])]
        self._path = path
        replace_private(path, b"".join([self._line(text) for text in texts]))
        self._file: IO[bytes] = open(path, "ab", buffering=0)  # noqa: SIM115 - closed by close()

    def append(self, cut: Cut) -> None:
        self._write(_text(cut))

    def retry(self) -> None:
        self._write(b"try")

    def done(self) -> None:
        self._write(b"done")

    def close(self) -> None:
        self._file.close()

    def _line(self, text: bytes) -> bytes:
        self._sum = crc32(text, self._sum)
        return b"%b %08x\n" % (text, self._sum)

    def _write(self, text: bytes) -> bytes:
        """Append a line; return it with its checksum."""
        line = self._line(text)
        with naming(self._path):
            written = self._file.write(line)
        if written != len(line):
            raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written", str(self._path))
        return line


def read(path: Path) -> tuple[list[Cut], int]:
    """The cuts of a journal, and how often the last one has killed the process.

    Raises
    ------
    LogCorruption
        If a line is damaged, or lines are missing before it.
    """
    cuts: list[Cut] = []
    n_tries = total = 0
    has_sums: bool | None = None  # whether lines have checksums, as the first one says
    *lines, _ = path.read_bytes().split(b"\n")
    for number, line in enumerate(lines, 1):
        found = _LINE.fullmatch(line)
        if found is None or (found[5] is None) is has_sums:
            raise _corruption(path, number, line)
        has_sums = found[5] is not None
        if has_sums:
            total = crc32(line[:-9], total)
            if int(found[5], 16) != total:
                raise _corruption(path, number, line)
        if found[1]:
            cuts.append(Cut(Kind(found[1].decode()), int(found[2]), int(found[3])))
            n_tries = 1
        else:
            n_tries = n_tries + 1 if found[4] == b"try" else 0
    return cuts, n_tries


def _corruption(path: Path, number: int, line: bytes) -> LogCorruption:
    return LogCorruption(
        f"{path}: line {number} is damaged, or lines before it are missing: {line!r:.100}. Without this file the "
        "trainer goes on from the checkpoint, but may consume events and labels in another order than before"
    )


def judge(cuts: list[Cut], n_tries: int) -> tuple[list[Cut], int, Cut | None]:
    """Decide what to do about a cut that has killed the process several times.

    Returns
    -------
    cuts, n_tries
        The cuts to repeat, and how often the last one has killed the process, as for `Journal`.
    suspect
        The cut after them, if it must be consumed record by record; else None.
    """
    if cuts and cuts[-1].kind == Kind.CUT and n_tries >= TRIES:
        return cuts[:-1], 0, cuts[-1]
    if cuts and cuts[-1].kind == Kind.ONE and n_tries >= TRIES:
        return [*cuts[:-1], cuts[-1]._replace(kind=Kind.SKIP)], 0, None
    return cuts, n_tries, None


def _text(cut: Cut) -> bytes:
    return f"{cut.kind} {cut.events} {cut.labels}".encode()
