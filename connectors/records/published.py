"""Blobs larger than a record, such as models for scorers, through a compacted topic.

Each *name* has two slots, used in turn.  A publication is a run of chunks under the keys ``NAME/SLOT/CHUNK``, then a
manifest under ``NAME/manifest``, then tombstones for chunks that an earlier, longer blob has left in the slot.  The
manifest is a JSON object::

    name, slot, chunks, bytes, sha256     of the blob
    epoch, ver, ...                       the publisher's own fields; the larger (epoch, ver) is newer
                                          (numbers are integers from 0 to 2**63 - 1)
    check                                 crc32 of all other fields, as canonical JSON

Tombstones for its chunks, and then for its manifest, withdraw a name.

Compaction keeps the last record of every key, and the order of records.  So during a publication, the chunks of the
last manifest are still in the other slot.  A killed publisher, two publishers at once or damage may still mix records
up.  Then the checksums fail, and readers keep their blob until the next right manifest.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from zlib import crc32

from ..logs.reading import read
from ..logs.transport import Record, Transport
from ..runtime.numbers import MAX_INT64

logger = logging.getLogger(__name__)

CHUNK_BYTES = 900_000  # By default, Kafka takes records up to 1 MiB.
MAX_CHUNKS = 1000  # so 900 MB: three digits in a key

_KEY = re.compile(r"([^/]{1,200})/(?:manifest|([01])/(0|[1-9][0-9]{0,2}))")
POLL_PIECES = 16  # records of such a topic to poll at once: each may have nearly a megabyte
LOADING_SECONDS = 600.0  # for such a topic, or for checkpoints, to be read


class TooLarge(ValueError):  # noqa: N818 - names the condition
    """A blob is too large for one publication."""


class Snapshot(NamedTuple):
    """A published blob and its manifest."""

    name: str
    manifest: dict[str, Any]
    blob: bytes


class Withdrawn(NamedTuple):
    """A name whose publication was withdrawn."""

    name: str


class Place(NamedTuple):
    """Where a name's publications are in the topic; a publisher needs it to go on with them."""

    slot: int = 1  # of the last manifest; the first publication goes to slot 0
    lengths: tuple[int, int] = (0, 0)  # of each slot: the largest chunk number with a key, plus one


# --- writing ----------------------------------------------------------------------------------------------------------


class Publisher:
    """Writes publications; one process at a time should publish a name.

    Parameters
    ----------
    log
        Log to write to; the caller flushes it.  If a flush fails, read the topic again and `resume`.
    topic
        A compacted topic.
    chunk_bytes
        Size of a record's largest value.
    """

    def __init__(self, log: Transport, topic: str, chunk_bytes: int = CHUNK_BYTES) -> None:
        self._log = log
        self._topic = topic
        self._chunk_bytes = chunk_bytes
        self._places: dict[str, Place] = {}

    @property
    def names(self) -> list[str]:
        """What is published, as far as this publisher knows."""
        return [*self._places]

    def resume(self, places: Mapping[str, Place]) -> None:
        """Go on after the publications in the topic, as `Shelf.places` tells them.

        Call this whenever this process takes over a name.  Otherwise the first publication may overwrite the chunks
        that a starting reader needs, and chunks of longer publications may stay.
        """
        self._places |= places

    def publish(self, name: str, blob: bytes, meta: Mapping[str, Any]) -> None:
        """Publish a blob; readers use it as soon as they have read it completely.

        Parameters
        ----------
        name
            1 to 200 characters other than ``/``.
        blob
            Any bytes.
        meta
            Further fields of the manifest beside its own, as JSON holds them.  The integers `epoch` and `ver` must be
            among them; the pair must be larger than the last publication's.

        Raises
        ------
        TooLarge
            If the blob has more than 900 MB.  Nothing is written then.
        """
        place = self._places.get(name, Place())
        slot = 1 - place.slot
        chunks = [blob[start : start + self._chunk_bytes] for start in range(0, len(blob), self._chunk_bytes)]
        if len(chunks) > MAX_CHUNKS:
            raise TooLarge(f"blob has {len(blob)} bytes; at most {MAX_CHUNKS * self._chunk_bytes} can be published")
        manifest = _write_manifest(name, slot, len(chunks), blob, meta)
        self._produce([(f"{name}/{slot}/{number}", chunk) for number, chunk in enumerate(chunks)])
        self._produce([(f"{name}/manifest", manifest)])
        left_over = range(len(chunks), place.lengths[slot])
        self._produce([(f"{name}/{slot}/{number}", None) for number in left_over])
        lengths = (len(chunks), place.lengths[1]) if slot == 0 else (place.lengths[0], len(chunks))
        self._places[name] = Place(slot, lengths)

    def withdraw(self, name: str) -> None:
        """Withdraw what was published under a name, if anything was."""
        place = self._places.pop(name, None)
        if place is not None:
            chunks = [f"{name}/{slot}/{number}" for slot in (0, 1) for number in range(place.lengths[slot])]
            self._produce([(key, None) for key in (*chunks, f"{name}/manifest")])

    def _produce(self, items: list[tuple[str, bytes | None]]) -> None:
        for key, value in items:
            self._log.produce(self._topic, value, key=key.encode(), partition=0)


def _canonical(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def _write_manifest(name: str, slot: int, n_chunks: int, blob: bytes, meta: Mapping[str, Any]) -> bytes:
    sha256 = hashlib.sha256(blob).hexdigest()
    fields = {**meta, "name": name, "slot": slot, "chunks": n_chunks, "bytes": len(blob), "sha256": sha256}
    return _canonical({**fields, "check": crc32(_canonical(fields))})


# --- reading ----------------------------------------------------------------------------------------------------------


@dataclass
class _Bay:
    """A name's records on the shelf."""

    slots: list[dict[int, bytes | None]] = field(
        default_factory=lambda: [{}, {}]
    )  # chunks by number; None: used and dropped
    last_slot: int = Place().slot
    version: tuple[int, int] | None = None  # (epoch, ver) of the newest publication


class Shelf:
    """Puts publications together from a topic's records, taken in their order.

    It holds at most two publications of each name.  A manifest drops the chunks that it has used.  It leaves the other
    slot's chunks alone, because another publisher may be writing them.

    Attributes
    ----------
    refused : int
        Number of refused records: with a foreign key, a damaged manifest, or a manifest that its chunks do not match.
    """

    def __init__(self) -> None:
        self.refused = 0
        self._bays: dict[str, _Bay] = {}

    def put(self, record: Record) -> Snapshot | Withdrawn | None:
        """Take a record.  A record with a problem is logged and counted; it raises nothing.

        Returns
        -------
        Snapshot or Withdrawn or None
            The snapshot that this record completes, if it is its name's newest; or the name that it withdraws.
        """
        try:
            return self._put(record)
        except (ValueError, RecursionError) as error:
            self.refused += 1
            where = f"{record.topic}-{record.partition}"
            logger.warning("%s: refusing %.200r at offset %d: %s", where, record.key, record.offset, error)
            return None

    def places(self) -> dict[str, Place]:
        """Where each name's publications are, for `Publisher.resume`."""
        return {
            name: Place(bay.last_slot, (_length(bay.slots[0]), _length(bay.slots[1])))
            for name, bay in self._bays.items()
        }

    def _put(self, record: Record) -> Snapshot | Withdrawn | None:
        key = _KEY.fullmatch((record.key or b"").decode())
        if key is None:
            raise ValueError(f"the key {record.key!r} must be NAME/SLOT/CHUNK or NAME/manifest")
        name, slot, number = key.groups()
        if number is None and record.value is None:
            self._bays.pop(name, None)
            return Withdrawn(name)
        if number is None:
            return self._put_manifest(_read_manifest(name, record.value))
        if record.value is not None:
            self._bays.setdefault(name, _Bay()).slots[int(slot)][int(number)] = record.value
        elif name in self._bays:
            self._bays[name].slots[int(slot)].pop(int(number), None)
        return None

    def _put_manifest(self, manifest: dict[str, Any]) -> Snapshot | None:
        bay = self._bays.setdefault(manifest["name"], _Bay())
        slot, version = manifest["slot"], (manifest["epoch"], manifest["ver"])
        bay.last_slot = slot  # also of an old or torn one, because compaction keeps this manifest
        if bay.version is not None and version <= bay.version:
            return None
        blob = _assemble(bay.slots[slot], manifest)
        bay.version = version
        bay.slots[slot] = dict.fromkeys(bay.slots[slot])
        return Snapshot(manifest["name"], manifest, blob)


def read_newest(log: Transport, topic: str, deadline: float, shelf: Shelf | None = None) -> dict[str, Snapshot]:
    """The newest snapshot of each name that the topic has at this moment.

    Parameters
    ----------
    log
        Log to read; it must not read another topic meanwhile.
    topic
        Topic to read; if it does not exist, the result is empty.
    deadline
        Time to give up, by `time.monotonic`.
    shelf
        Shelf to put the records on, for a caller that needs it afterwards; default: a new one.

    Raises
    ------
    Unavailable
        If the end is not reached in time.
    """
    newest: dict[str, Snapshot] = {}
    for found in _read(log, topic, deadline, Shelf() if shelf is None else shelf):
        if isinstance(found, Snapshot):
            newest[found.name] = found
        else:
            newest.pop(found.name, None)
    return newest


def read_places(log: Transport, topic: str, deadline: float) -> dict[str, Place]:
    """Where the publications of each name are, for `Publisher.resume`; parameters and errors are `read_newest`'s."""
    shelf = Shelf()
    for _ in _read(log, topic, deadline, shelf):
        pass  # Keeping them all would take the memory of all models.
    return shelf.places()


def _read(log: Transport, topic: str, deadline: float, shelf: Shelf) -> Iterator[Snapshot | Withdrawn]:
    """All that the topic has at this moment, from its beginning."""
    for record in read(log, topic, log.start_offsets(topic), log.end_offsets(topic), deadline, POLL_PIECES):
        if (found := shelf.put(record)) is not None:
            yield found


def _length(chunks: Mapping[int, bytes | None]) -> int:
    return max(chunks, default=-1) + 1


def _read_manifest(name: str, value: bytes | None) -> dict[str, Any]:
    fields = json.loads(value or b"")
    if type(fields) is not dict:
        raise ValueError(f"the manifest is {str(fields)[:100]}; it must be a JSON object")
    check = fields.pop("check", None)
    if check != crc32(_canonical(fields)):
        raise ValueError("the manifest is damaged: its checksum does not match")
    _check_fields(name, fields)
    return fields


def count_in(manifest: Mapping[str, Any], name: str) -> int:
    """A number of a manifest; ValueError unless it is an integer from 0 to 2**63 - 1."""
    value = manifest.get(name)
    if type(value) is not int or not 0 <= value <= MAX_INT64:
        raise ValueError(f"{name!r} must be an integer from 0 to 2**63 - 1 in a manifest, got {value!r:.60}")
    return value


def _check_fields(name: str, fields: Mapping[str, Any]) -> None:
    for number in ("slot", "chunks", "bytes", "epoch", "ver"):
        count_in(fields, number)
    if fields.get("name") != name or fields["slot"] not in (0, 1) or not 0 <= fields["chunks"] <= MAX_CHUNKS:
        raise ValueError(f"the manifest does not belong to {name!r}, or its slot or its number of chunks is invalid")


def _assemble(slot: Mapping[int, bytes | None], manifest: Mapping[str, Any]) -> bytes:
    chunks = [slot.get(number) for number in range(manifest["chunks"])]
    present = [chunk for chunk in chunks if chunk is not None]
    if len(present) < len(chunks):
        raise ValueError(f"{len(chunks) - len(present)} of its {len(chunks)} chunks are missing")
    blob = b"".join(present)
    if hashlib.sha256(blob).hexdigest() != manifest.get("sha256"):
        raise ValueError("its chunks are damaged or another publication's: their sha256 does not match")
    return blob
