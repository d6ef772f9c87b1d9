"""A partition of the topic log.state: what the owners of a partition of the stream have written, and what of it counts.

Keys of its records; numbers are decimal::

    claim EPOCH OWNER              an owner begins, or repeats that it owns
    chunk EPOCH SEQUENCE I         piece I of a checkpoint
    checkpoint EPOCH SEQUENCE      this checkpoint is whole; the value is JSON with "chunks", "bytes" and "sha256"
    journal EPOCH SEQUENCE I N     piece I of the journal after a checkpoint; it counts if the first N pieces are there

A record counts unless a claim of a higher epoch comes before it.  All readers see the same order.  So nothing counts
that an owner writes after another one has taken over, even if the first has not heard of it.

A checkpoint begins with its owner's claim, repeated.  Once it is durable, all records before this claim are removed, if
no other has written meanwhile.  So the partition holds a checkpoint and its journal, and the next owner reads little
else.
"""

import hashlib
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

from ....logs.reading import read
from ....logs.transport import AccessDenied, OffsetOutOfRange, Record, TakenOver, TopicMismatch, Transport, Unavailable
from ....records.published import CHUNK_BYTES
from ..checkpoint import Number

logger = logging.getLogger(__name__)

_KEY = re.compile(r"(claim) (\d+) (\w+)|(chunk|checkpoint|journal) (\d+) (\d+)(?: (\d+))?(?: (\d+))?")
_TRIES = 5  # to read records that another owner may be removing


class Contents:
    """What counts of the records so far, taken in their order.

    Attributes
    ----------
    epoch, owner : int, str
        The highest claim, and who was the first to make it; 0 and an empty string without a claim.
    checkpoint : tuple or None
        Number and content of the newest checkpoint that is whole.
    """

    def __init__(self) -> None:
        self.epoch, self.owner = 0, ""
        self.checkpoint: tuple[Number, bytes] | None = None
        self._chunks: dict[Number, dict[int, bytes]] = {}
        self._journals: dict[Number, dict[int, bytes]] = {}
        self._beginnings: dict[Number, int] = {}  # of each journal: how many pieces belong together

    def put(self, record: Record) -> None:
        """Take the next record; one that is not of this kind is logged."""
        found = _KEY.fullmatch((record.key or b"").decode(errors="replace"))
        if found is None:
            where = f"{record.topic}-{record.partition}"
            logger.warning("%s: passing over %.100r at offset %d", where, record.key, record.offset)
        elif found[1]:
            if int(found[2]) > self.epoch:
                self.epoch, self.owner = int(found[2]), found[3]
        elif int(found[5]) >= self.epoch:
            self._put(found[4], (int(found[5]), int(found[6])), [int(n) for n in found.groups()[6:] if n], record.value)

    def _put(self, kind: str, number: Number, places: list[int], value: bytes | None) -> None:
        match kind, places:
            case "chunk", [i]:
                self._chunks.setdefault(number, {})[i] = value or b""
            case "journal", [i, n]:
                self._journals.setdefault(number, {})[i] = value or b""
                self._beginnings[number] = n
            case "checkpoint", []:
                self._put_checkpoint(number, value or b"")

    def _put_checkpoint(self, number: Number, manifest: bytes) -> None:
        pieces = self._chunks.pop(number, {})
        try:
            fields = json.loads(manifest)
            blob = b"".join([pieces[i] for i in range(fields["chunks"])])
            is_whole = hashlib.sha256(blob).hexdigest() == fields["sha256"]
        except (ValueError, LookupError, TypeError):
            is_whole = False
        if not is_whole:
            logger.warning(
                "passing over checkpoint %d of epoch %d: it is damaged, or pieces are missing", *number[::-1]
            )
            return
        self.checkpoint = number, blob
        for parts in (self._chunks, self._journals):
            for older in [other for other in parts if other < number]:
                del parts[older]

    def journals(self) -> dict[Number, bytes]:
        """The journals since the checkpoint whose beginnings are there."""
        found = {}
        for number, pieces in self._journals.items():
            n = next((i for i in range(len(pieces)) if i not in pieces), len(pieces))
            if n >= self._beginnings[number]:
                found[number] = b"".join(pieces[i] for i in range(n))
        return found


class Ledger:
    """Reads and writes a partition of the topic.

    Parameters
    ----------
    log
        Takes the records; no other part of the process writes to this partition.
    topic, partition
        The partition of the topic.
    open_reader
        Opens a log of its own for reading.
    trim
        Removes the records before an offset.
    wait
        Called with the reason whenever records are not durable yet; it may raise `Unavailable` to give up.
    """

    def __init__(
        self,
        log: Transport,
        topic: str,
        partition: int,
        open_reader: Callable[[], AbstractContextManager[Transport]],
        trim: Callable[[int], None],
        wait: Callable[[str], None],
    ) -> None:
        self._log = log
        self.topic = topic
        self._partition = partition
        self._open_reader = open_reader
        self._trim = trim
        self._wait = wait
        self._end = 0  # offset of the record to come, if no other trainer writes
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
        for _ in range(_TRIES):
            try:
                contents = Contents()
                for record in self._records(start):
                    contents.put(record)
                return contents
            except OffsetOutOfRange as error:  # an owner has removed them meanwhile
                problem = str(error)
        raise Unavailable(f"topic {self.topic!r}: partition {self._partition} cannot be read: {problem}")

    def _records(self, start: int) -> Iterator[Record]:
        """The records from an offset on that are still there; afterwards, `_end` is where they end."""
        with self._open_reader() as reader:
            ends = reader.end_offsets(self.topic)
            if self._partition not in ends and not self._log.end_offsets(self.topic):
                ends = {self._partition: 0}  # An embedded log makes a topic with its first record.
            if self._partition not in ends:
                raise TopicMismatch(f"topic {self.topic!r} has no partition {self._partition}, but the events' has")
            begin = max(start, reader.start_offsets(self.topic).get(self._partition, 0))
            if begin < ends[self._partition]:
                yield from read(reader, self.topic, {self._partition: begin}, ends)
            self._end = ends[self._partition]

    # --- owning -------------------------------------------------------------------------------------------------------

    def claim(self, contents: Contents, epoch: int, owner: str) -> bool:
        """Take the partition over after having read `contents`; False if another owner was faster.

        Then, `contents` has what came since.
        """
        start = self._end
        self._append(f"claim {epoch} {owner}")
        self.settle()
        for record in self._records(start):
            contents.put(record)
        self._ours = self._end
        return (contents.epoch, contents.owner) == (epoch, owner)

    def require_ownership(self, epoch: int) -> None:
        """Raise `TakenOver` if another owner has claimed the partition by now."""
        end = self._log.end_offsets(self.topic).get(self._partition, 0)
        if end != self._end and self.read(self._ours).epoch > epoch:
            raise TakenOver(f"partition {self._partition} of {self.topic!r} belongs to another process by now")
        self._ours = self._end

    # --- writing ------------------------------------------------------------------------------------------------------

    def write_checkpoint(self, number: Number, owner: str, blob: bytes) -> int:
        """Write a checkpoint durably; return the offset at which it begins.

        Raises
        ------
        TakenOver
            If another owner has claimed the partition before the checkpoint was durable.
        """
        self.require_ownership(number[0])
        begin = self._end
        self._append(f"claim {number[0]} {owner}")
        n_chunks = self._append_pieces(f"chunk {number[0]} {number[1]} %d", blob)
        manifest = {"chunks": n_chunks, "bytes": len(blob), "sha256": hashlib.sha256(blob).hexdigest()}
        self._append(f"checkpoint {number[0]} {number[1]}", json.dumps(manifest).encode())
        self.settle()
        self.require_ownership(number[0])
        return begin

    def begin_journal(self, number: Number, beginning: bytes) -> None:
        """Begin the journal after a checkpoint; it counts once its beginning is whole."""
        n = max(1, -(-len(beginning) // CHUNK_BYTES))
        self._journal, self._n_pieces = (number, n), n
        self._append_pieces(f"journal {number[0]} {number[1]} %d {n}", beginning)

    def add_to_journal(self, line: bytes) -> None:
        """Write a line of the journal; it is durable after `settle`."""
        number, n = self._journal
        self._append(f"journal {number[0]} {number[1]} {self._n_pieces} {n}", line)
        self._n_pieces += 1

    def settle(self) -> None:
        """Wait until everything is durable."""
        while True:
            try:
                return self._log.flush()
            except Unavailable as error:
                self._wait(str(error))

    def remove_before(self, offset: int) -> None:
        """Remove the records before an offset; if that fails, they stay, and the first failure is logged."""
        try:
            self._trim(offset)
        except (AccessDenied, Unavailable) as error:
            if self._has_trimmed:
                logger.warning("topic %r grows: old checkpoints cannot be removed from it: %s", self.topic, error)
            self._has_trimmed = False

    def _append_pieces(self, key: str, blob: bytes) -> int:
        """Append a blob, in one piece at least; return the number of pieces."""
        starts = range(0, max(1, len(blob)), CHUNK_BYTES)
        for i, start in enumerate(starts):
            self._append(key % i, blob[start : start + CHUNK_BYTES])
        return len(starts)

    def _append(self, key: str, value: bytes = b"") -> None:
        self._log.produce(self.topic, value, key=key.encode(), partition=self._partition)
        self._end += 1
