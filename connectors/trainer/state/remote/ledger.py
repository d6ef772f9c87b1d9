"""Reads and writes the ledger of a partition; `contents` says what its records mean.

A checkpoint begins with its owner's claim, repeated.  Once it is durable, all records before this claim are removed, if
no other has written meanwhile.  So the ledger holds a checkpoint and its journal, and the next owner reads little else.
With transactions it holds two checkpoints, because the newest one may belong to a transaction that was given up.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Mapping
from typing import TypeVar

from ....logs.transport import AccessDenied, OffsetOutOfRange, TakenOver, Unavailable
from ....records.published import CHUNK_BYTES
from ..checkpoint import READ_TRIES, Number
from .contents import Contents
from .places import LedgerPlace

logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class Ledger:
    """The ledger of a partition.

    Parameters
    ----------
    place
        Where its records are.
    wait
        Called with the reason whenever the place does not answer; it may raise `Unavailable` to give up.
    keep
        Number of checkpoints that it holds.
    """

    def __init__(self, place: LedgerPlace, wait: Callable[[str], None], keep: int = 1) -> None:
        self._place = place
        self._wait = wait
        self.keep = keep
        self._ours = 0  # up to this offset, no later owner has written
        self._journal: tuple[Number, int] = (0, 0), 0  # its number, and how many pieces its beginning has
        self._n_pieces = 0
        self._has_trimmed = True

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, start: int = 0) -> Contents:
        """What counts of the records from an offset on that are there, as if there were no others.

        Raises
        ------
        TopicMismatch
            If the topic has no such partition.
        Unavailable
            If the records cannot be read.
        """
        for _ in range(READ_TRIES):
            try:
                contents = Contents(self.keep)
                for record in self._place.records(start):
                    contents.put(record)
                return contents
            except OffsetOutOfRange as error:  # an owner has removed them meanwhile
                problem = str(error)
        raise Unavailable(f"{self._place.name} cannot be read: {problem}")

    # --- owning -------------------------------------------------------------------------------------------------------

    def claim(self, contents: Contents, epoch: int, owner: str) -> bool:
        """Take the partition over after having read `contents`; False if another owner was faster.

        Then, `contents` has what came since.
        """
        start = self._place.next
        self._append(f"claim {epoch} {owner}")
        try:
            self.settle()
        except TakenOver as error:
            logger.info("claiming again: %s", error)
        for record in self._place.records(start):
            contents.put(record)
        self._ours = self._place.next
        return (contents.epoch, contents.owner) == (epoch, owner)

    def require_ownership(self, epoch: int) -> None:
        """Raise `TakenOver` if another owner has claimed the partition by now."""
        if self._patiently(lambda: self._is_lost(epoch)):
            raise TakenOver(f"{self._place.name} belongs to another process by now")
        self._ours = self._place.next

    def _is_lost(self, epoch: int) -> bool:
        return self._place.end() != self._place.next and self.read(self._ours).epoch > epoch

    # --- writing ------------------------------------------------------------------------------------------------------

    def write_checkpoint(self, number: Number, owner: str, blob: bytes, files: Mapping[str, bytes]) -> int:
        """Write a checkpoint and its new files durably; return the offset at which they begin.

        Raises
        ------
        TakenOver
            If another owner has claimed the partition before the checkpoint was durable.
        """
        self.require_ownership(number[0])
        begin = self._place.next
        self._append(f"claim {number[0]} {owner}")
        for name, content in files.items():
            n_pieces = _n_pieces(content)
            self._append_pieces(f"models {number[0]} {number[1]} %d {n_pieces} {name}", content)
        n_chunks = self._append_pieces(f"chunk {number[0]} {number[1]} %d", blob)
        manifest = {"chunks": n_chunks, "bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        self._append(f"checkpoint {number[0]} {number[1]}", json.dumps(manifest).encode())
        self.settle()
        self.require_ownership(number[0])
        return begin

    def begin_journal(self, number: Number, beginning: bytes) -> None:
        """Begin the journal after a checkpoint; it counts once its beginning is whole."""
        n = _n_pieces(beginning)
        self._journal, self._n_pieces = (number, n), n
        self._append_pieces(f"journal {number[0]} {number[1]} %d {n}", beginning)

    def add_to_journal(self, line: bytes) -> None:
        """Write a line of the journal; it is durable after `settle`."""
        number, n = self._journal
        self._append(f"journal {number[0]} {number[1]} {self._n_pieces} {n}", line)
        self._n_pieces += 1

    def settle(self) -> None:
        """Wait until everything is durable."""
        self._patiently(self._place.flush)

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        while True:
            try:
                return ask()
            except Unavailable as error:
                self._wait(str(error))

    def remove_before(self, offset: int) -> None:
        """Remove the records before an offset; if that fails, they stay, and the first failure is logged."""
        try:
            self._place.trim(offset)
        except (AccessDenied, Unavailable) as error:
            if self._has_trimmed:
                logger.warning("%s grows: old checkpoints cannot be removed from it: %s", self._place.name, error)
            self._has_trimmed = False

    def _append_pieces(self, key: str, blob: bytes) -> int:
        """Append a blob, in one piece at least; return the number of pieces."""
        n = _n_pieces(blob)
        for i in range(n):
            self._append(key % i, blob[i * CHUNK_BYTES : (i + 1) * CHUNK_BYTES])
        return n

    def _append(self, key: str, value: bytes = b"") -> None:
        self._place.append(key.encode(), value)


def _n_pieces(blob: bytes) -> int:
    return max(1, -(-len(blob) // CHUNK_BYTES))
