"""What the owners of a partition of the stream have written to its ledger, and what of it counts.

Keys of the records; as in the names of files, an epoch has up to 6 decimal digits, and another number up to 10::

    claim EPOCH OWNER              an owner begins, or repeats that it owns
    chunk EPOCH SEQUENCE I         piece I of a checkpoint
    checkpoint EPOCH SEQUENCE      this checkpoint is whole; the value is JSON with "chunks", "bytes" and "sha256"
    journal EPOCH SEQUENCE I N     piece I of the journal after a checkpoint; it counts if the first N pieces are there
    models EPOCH SEQUENCE I N FILE piece I of N of a file with models of keys, which is new with this checkpoint

A record counts unless a claim of a higher epoch comes before it.  All readers see the same order.  So nothing counts
that an owner writes after another one has taken over, even if the first has not heard of it.
"""

import hashlib
import json
import logging
import re
from typing import NamedTuple

from ....logs.transport import Record
from ..checkpoint import Number

logger = logging.getLogger(__name__)

_KEY = re.compile(
    r"claim \d{1,6} \w+"
    r"|(chunk|checkpoint|journal) \d{1,6} \d{1,10}( \d{1,10}){0,2}"
    r"|models \d{1,6}( \d{1,10}){3} models-\d{6}-\d{10}",
    re.ASCII,
)


class Whole(NamedTuple):
    """A checkpoint or a file whose pieces are all there, and the offset of the claim before it."""

    blob: bytes
    begin: int


class Contents:
    """What counts of the records so far, taken in their order.

    Parameters
    ----------
    keep
        Number of checkpoints that count, the newest ones.

    Attributes
    ----------
    epoch, owner : int, str
        The highest claim, and who was the first to make it; 0 and an empty string without a claim.
    checkpoints : dict
        Those that are whole, oldest first.
    files : dict
        The files of models that are whole, by name.
    n_bytes : int
        Size of all records.
    sizes : dict
        Size of the records before each of the owner's claims, by the claim's offset.
    """

    def __init__(self, keep: int = 1) -> None:
        self._keep = keep
        self.epoch, self.owner = 0, ""
        self.checkpoints: dict[Number, Whole] = {}
        self.files: dict[str, Whole] = {}
        self.n_bytes = 0
        self.sizes: dict[int, int] = {}
        self._claimed_at = 0  # offset of the owner's last claim
        self._chunks: dict[Number, dict[int, bytes]] = {}
        self._journals: dict[Number, dict[int, bytes]] = {}
        self._beginnings: dict[Number, int] = {}  # of each journal: how many pieces belong together
        self._pieces: dict[str, dict[int, bytes]] = {}  # of files

    def put(self, record: Record) -> None:
        """Take the next record; one that is not of this kind is logged."""
        key = (record.key or b"").decode(errors="replace")
        if not _KEY.fullmatch(key):
            where = f"{record.topic}-{record.partition}"
            logger.warning("%s: passing over %.100r at offset %d", where, record.key, record.offset)
        else:
            self._put(key.split(), record.value or b"", record.offset)
        self.n_bytes += record.nbytes

    def _put_claim(self, epoch: int, owner: str, offset: int) -> None:
        if epoch > self.epoch:
            self.epoch, self.owner = epoch, owner
        if (epoch, owner) == (self.epoch, self.owner):
            self._claimed_at = offset
            self.sizes.setdefault(offset, self.n_bytes)

    def _put_file(self, name: str, i: int, n: int, value: bytes) -> None:
        pieces = self._pieces.setdefault(name, {})
        pieces[i] = value
        if all(j in pieces for j in range(n)):
            self.files[name] = Whole(b"".join(pieces[j] for j in range(n)), self._claimed_at)
            del self._pieces[name]

    def _put(self, key: list[str], value: bytes, offset: int) -> None:
        match key:
            case "claim", epoch, owner:
                self._put_claim(int(epoch), owner, offset)
            case _, epoch, *_ if int(epoch) < self.epoch:
                pass  # of an owner that was replaced
            case "chunk", epoch, sequence, i:
                self._chunks.setdefault((int(epoch), int(sequence)), {})[int(i)] = value
            case "journal", epoch, sequence, i, n:
                number = int(epoch), int(sequence)
                self._drop_rolled_back(number)
                self._journals.setdefault(number, {})[int(i)] = value
                self._beginnings[number] = int(n)
            case "checkpoint", epoch, sequence:
                self._put_checkpoint((int(epoch), int(sequence)), value)
            case "models", _, _, i, n, name:
                self._put_file(name, int(i), int(n), value)

    def _drop_rolled_back(self, begun: Number) -> None:
        """Drop the checkpoints that the owner of this journal does not go on from, because they were not committed."""
        for number in list(self.checkpoints):
            if number[0] < begun[0] and number[1] > begun[1]:
                del self.checkpoints[number]

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
        self.checkpoints[number] = Whole(blob, self._claimed_at)
        for older in list(self.checkpoints)[: -self._keep]:
            del self.checkpoints[older]
        self._drop_before(self._chunks, number)
        self._drop_before(self._journals, min(self.checkpoints))

    @staticmethod
    def _drop_before(parts: dict[Number, dict[int, bytes]], number: Number) -> None:
        for older in [other for other in parts if other < number]:
            del parts[older]

    def journals(self) -> dict[Number, bytes]:
        """The journals since the oldest checkpoint whose beginnings are there."""
        found = {}
        for number, pieces in self._journals.items():
            n = next((i for i in range(len(pieces)) if i not in pieces), len(pieces))
            if n >= self._beginnings[number]:
                found[number] = b"".join(pieces[i] for i in range(n))
        return found
