"""The order in which a partition's records were taken since a checkpoint.

Where the daemon has caught up with its topics, the order in which it takes events and labels depends on when they come.
So each *cut* (a run of events, then a run of labels, consumed together) is written down before it is consumed, and a
daemon that is started again takes the same cuts.  One line each::

    cut EVENTS LABELS    take events, then labels, up to these offsets
    one EVENTS LABELS    the same, for a single record that is suspected of killing the process
    skip EVENTS LABELS   pass over that record instead: it did
    try                  the last cut is taken again
    done                 whatever happens now, the last cut has not killed the process

A line ends with a checksum: eight hexadecimal digits, the crc32 of the text of this line and of all before it, so that
a line that is damaged, lost or doubled is found.  Journals of version 0.1.0 have lines without checksums.

A line that a kill left unfinished says nothing: its cut was never begun.
"""

import errno
import re
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import IO, NamedTuple
from zlib import crc32

from ...logs.segments import LogCorruption
from ...runtime.folders import naming, touch_private

TRIES = 3  # of a cut that kills the process, before its records are taken one by one, and of one of these

_LINE = re.compile(rb"(?:(cut|one|skip) (\d{1,19}) (\d{1,19})|(try|done))(?: ([0-9a-f]{8}))?")


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
        self._sum = 0  # of all lines so far
        texts = [*map(_text, past), *([b"try"] * (n_tries - 1) if n_tries else [b"done"])]
        beginning = b"".join([self._line(text) for text in texts])
        temporary = path.with_name(f".{path.name}.tmp")
        with naming(path):
            touch_private(temporary)
            temporary.write_bytes(beginning)
        temporary.replace(path)
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

    def _write(self, text: bytes) -> None:
        line = self._line(text)
        with naming(Path(self._file.name)):
            written = self._file.write(line)
        if written != len(line):
            raise OSError(errno.ENOSPC, f"only {written} of {len(line)} bytes could be written", str(self._file.name))


def read(path: Path) -> tuple[list[Cut], int]:
    """The cuts of a journal, and how often the last one was begun and not survived.

    Raises
    ------
    LogCorruption
        If a line is damaged, or lines are missing before it.
    """
    cuts: list[Cut] = []
    n_tries = total = 0
    has_sums: bool | None = None  # as the first line has
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
        f"{path}: line {number} is damaged, or lines before it are missing: {line!r:.100}; without this file the "
        "daemon goes on from the checkpoint, but may take events and labels in another order than before"
    )


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


def _text(cut: Cut) -> bytes:
    return f"{cut.kind} {cut.events} {cut.labels}".encode()
