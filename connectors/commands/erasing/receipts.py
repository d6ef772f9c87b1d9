"""Receipts: what shows that erased records have no influence on a model, so that another machine can check it.

A receipt is JSON.  It names no record: the erased ones stand in it as SHA-256 of a salt and their position.  The log
stands in it as digests of blocks of 10,000 offsets, without the erased records, so that it may lose them later.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

import streamsvm
from streamsvm.core.compiling._target import current
from streamsvm.core.saving.snapshot import guarded

from ...logs.reading import read
from ...logs.transport import Record, Transport
from ...runtime.folders import FileError
from ...settings.sections import Settings
from ...trainer.rerun import Erased, Stage

FORMAT = 1
_BLOCK = 10_000  # offsets
_SECTIONS = ("model", "features", "label", "join", "limits", "decide", "estimates")
_OF_LOG = ("topic", "labels", "format")
_OF_DAEMON = ("per", "batch", "window", "max_bad", "max_keys")


def settings_of(settings: Settings) -> dict[str, Any]:
    """The settings that a state depends on, by dotted name, as JSON has them; without addresses and secrets."""
    sections = {name: asdict(getattr(settings, name)) for name in _SECTIONS}
    sections["log"] = {name: getattr(settings.log, name) for name in _OF_LOG}
    sections["daemon"] = {name: getattr(settings.daemon, name) for name in _OF_DAEMON}
    values = {f"{section}.{name}": value for section, found in sections.items() for name, value in found.items()}
    del values["model.cache_mb"]  # It changes the memory, not the model.
    for own in settings.challenger if settings.log.control else ():  # one of which may have served
        values |= {f"challenger.{own.name}.{name}": value for name, value in own.fingerprint().items()}
    return json.loads(json.dumps(values, default=str))


def machine() -> dict[str, str]:
    """What the bits of a model depend on beside settings and records."""
    return {"streamsvm": streamsvm.__version__, "numba": version("numba"), "processor": current().processor}


class Salted:
    """Positions of records, which only the salt and the position itself can tell.

    Parameters
    ----------
    salt
        Any bytes; default: 16 random ones.
    """

    def __init__(self, salt: bytes | None = None) -> None:
        self.salt = secrets.token_bytes(16) if salt is None else salt

    def hashed(self, topic: str, partition: int, offset: int) -> str:
        """The position of a record as a receipt has it."""
        return hashlib.sha256(self.salt + f"{topic}-{partition}-{offset}".encode()).hexdigest()

    def among(self, hashes: Iterable[str]) -> Erased:
        """Whether a record is one of those with these hashes."""
        known = frozenset(hashes)
        return lambda record: self.hashed(record.topic, record.partition, record.offset) in known


# --- the log ----------------------------------------------------------------------------------------------------------

Blocks = list[list[Any]]  # the end of each block, and its digest


def log_digests(log: Transport, settings: Settings, number: int, place: Stage, is_erased: Erased) -> dict[str, Blocks]:
    """What a partition's log holds before a place, by topic, without what was erased."""
    ends = zip(settings.log.inputs, place, strict=False)
    return {topic: _blocks(log, topic, number, end, is_erased) for topic, end in ends}


def _blocks(log: Transport, topic: str, number: int, end: int, is_erased: Erased) -> Blocks:
    blocks: Blocks = []
    total, last = hashlib.blake2b(digest_size=16), _BLOCK
    for record in read(log, topic, {number: 0}, {number: end}):
        while record.offset >= last:
            blocks.append([last, total.hexdigest()])
            total, last = hashlib.blake2b(digest_size=16), last + _BLOCK
        if record.value is not None and not is_erased(record):
            _take(total, record)
    return [*blocks, [end, total.hexdigest()]]


def _take(total: "hashlib.blake2b", record: Record) -> None:
    total.update(f"{record.offset} {record.timestamp} {record.key!r} {list(record.headers)!r} ".encode())
    total.update(record.value or b"")


# --- files ------------------------------------------------------------------------------------------------------------


def write(path: Path, receipt: Mapping[str, Any], key: bytes | None) -> None:
    """Write a receipt, with a signature if there is a key."""
    signed = {**receipt, "hmac": _signature(receipt, key)} if key else receipt
    path.write_text(json.dumps(signed, indent=1) + "\n", encoding="utf-8")


def load(path: Path, key: bytes | None) -> dict[str, Any]:
    """Read a receipt.

    Raises
    ------
    FileError
        If the file is no receipt, or, with a key, if its signature is not that of the key.
    """
    with guarded(f"{path}: this is no receipt of `streamsvm rebuild`", FileError):
        receipt = json.loads(path.read_text(encoding="utf-8"))
        if receipt["format"] != FORMAT:
            raise FileError(f"{path}: a receipt of format {receipt['format']!r}; this version reads format {FORMAT}")
        _read_through(receipt)
    signature = str(receipt.pop("hmac", None)).encode(errors="replace")
    if key is not None and not hmac.compare_digest(signature, _signature(receipt, key).encode()):
        raise FileError(f"{path}: the signature is missing or wrong: the receipt was changed, or signed by another key")
    return receipt


def _read_through(receipt: Mapping[str, Any]) -> None:
    """Read all that `verify` reads: a part that is missing, or of another shape, makes this stumble."""
    Salted(bytes.fromhex(receipt["salt"]))
    for name in ("settings", "machine", "partitions"):
        receipt[name].keys()
    for number, part in receipt["partitions"].items():
        if not number.isdecimal():
            raise ValueError(f"{number!r} is no number of a partition")
        part["after"].keys(), frozenset(part["erased"])
        for places in [*part["stages"], part["place"], *chain(*part["log"].values()), *part.get("served", [])]:
            if len(places) != len(Stage._fields):
                raise ValueError(f"{places!r} is no pair")
        if not all(type(offset) is int and offset >= 0 for offset in chain(*part["stages"], part["place"])):
            raise ValueError("an offset must be a whole number, at least 0")
        if any(end > last for stage in part["stages"] for end, last in zip(stage, part["place"], strict=True)):
            raise ValueError("a stage ends behind the place")


def read_key(path: Path | None) -> bytes | None:
    """The key of a file, without blanks around it; None without a file."""
    if path is None:
        return None
    key = path.read_bytes().strip()
    if len(key) < 16:
        raise FileError(f"{path}: a key has at least 16 bytes, this one has {len(key)}")
    return key


def _signature(receipt: Mapping[str, Any], key: bytes) -> str:
    text = json.dumps(receipt, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
