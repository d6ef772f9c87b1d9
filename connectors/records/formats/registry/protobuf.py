"""Readers of Protobuf messages, from schemas of a registry.

The registry sends each file as a descriptor (``?format=serialized``), so no .proto text is parsed here.
"""

import base64
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ..base import BadRecord, Fields, LibraryMissing
from .client import Client, Schema

_SERIALIZED = "serialized"
_MAX_FILES = 100
_MAX_INDEXES = 100
_WRAPPER = "google.protobuf."
_WELL_KNOWN = ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
_USED = ("id", "x", "y", "w", "ts")


class ProtobufMissing(LibraryMissing):
    """protobuf is not installed."""


def make_reader(id_: int, client: Client) -> Callable[[bytes], Fields]:
    """A function that reads a record's bytes after the id: the message's indexes, then the message.

    Parameters
    ----------
    id_
        Of the schema.  The message has the fields ``id`` and ``x``; x is a map, a repeated field or a message of
        numbers.
    client
        Has the schema and those that it refers to.

    Raises
    ------
    ValueError
        If the schema cannot be used.
    ProtobufMissing
        If protobuf is not installed.
    """
    try:
        from google.protobuf import descriptor_pool, message_factory
    except ImportError:
        raise ProtobufMissing("a schema of Protobuf needs protobuf: pip install 'streamsvm[protobuf]'") from None
    pool = descriptor_pool.DescriptorPool()
    top = _Files(pool, client).add(client.by_id(id_, _SERIALIZED), f"schema-{id_}.proto")
    messages: dict[tuple[int, ...], Any] = {}

    def read(body: bytes) -> Fields:
        indexes, start = _indexes(body)
        if indexes not in messages:
            descriptor = _descriptor(top, indexes)
            _require_presence(descriptor)
            messages[indexes] = message_factory.GetMessageClass(descriptor)
        try:
            message = messages[indexes].FromString(body[start:])
        except Exception as error:  # the parser raises DecodeError and others for foreign bytes
            raise BadRecord("not-protobuf", f"no message of the schema: {type(error).__name__}: {error}") from None
        return _fields(message)

    return read


class _Files:
    """Puts a file's descriptor into a pool, after those that it imports."""

    def __init__(self, pool: Any, client: Client) -> None:
        self._pool = pool
        self._client = client
        self._names: set[str] = set()

    def add(self, schema: Schema, name: str) -> Any:
        from google.protobuf import descriptor_pb2

        if len(self._names) >= _MAX_FILES:
            raise ValueError(f"the schema imports more than {_MAX_FILES} files")
        self._names.add(name)
        file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(schema.text, validate=True))
        file.name = name  # as others import it
        referred = {reference.name: reference for reference in schema.references}
        for needed in file.dependency:
            if needed in self._names:
                continue
            if needed in referred:
                self.add(self._client.referred(referred[needed], _SERIALIZED), needed)
            elif needed.startswith("google/protobuf/"):
                self._names.add(needed)
                self._pool.AddSerializedFile(_well_known(needed))
            else:
                raise ValueError(f"the schema imports {needed!r}, to which it has no reference")
        return self._pool.AddSerializedFile(file.SerializeToString()) or self._pool.FindFileByName(name)


def _well_known(name: str) -> bytes:
    """A file of Protobuf itself."""
    short = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if short not in _WELL_KNOWN:
        raise ValueError(f"the schema imports {name!r}, which is not known")
    content: bytes = import_module(f"google.protobuf.{short}_pb2").DESCRIPTOR.serialized_pb
    return content


def _indexes(body: bytes) -> tuple[tuple[int, ...], int]:
    """Which message of the file it is, from the outermost one on, and where the message begins."""
    count, at = _varint(body, 0)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MAX_INDEXES:
        raise BadRecord("not-protobuf", f"the header has {count} indexes of the message")
    indexes = []
    for _ in range(count):
        index, at = _varint(body, at)
        indexes.append(index)
    return tuple(indexes), at


def _varint(body: bytes, at: int) -> tuple[int, int]:
    """A number in zigzag encoding, and where it ends."""
    number = shift = 0
    while at < len(body) and shift < 64:
        byte = body[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return (number >> 1) ^ -(number & 1), at
    raise BadRecord("not-protobuf", "the header, which names the message, is cut off or damaged")


def _descriptor(file: Any, indexes: Sequence[int]) -> Any:
    descriptor, below = None, list(file.message_types_by_name.values())
    for index in indexes:
        if not 0 <= index < len(below):
            raise BadRecord("not-protobuf", f"the schema has no message {list(indexes)}")
        descriptor = below[index]
        below = list(descriptor.nested_types)
    return descriptor


def _require_presence(descriptor: Any) -> None:
    label = descriptor.fields_by_name.get("y")
    if label is not None and not label.has_presence:
        raise BadRecord(
            "unusable-schema",
            f"the field y of {descriptor.full_name} must be `optional`: otherwise the label false, or 0, cannot be "
            "told from a missing label",
        )


def _fields(message: Any) -> Fields:
    given = {field.name for field, _ in message.ListFields()}
    found = {}
    for field in message.DESCRIPTOR.fields:
        # A field without presence is missing from the bytes if it is 0 or empty: an id or no features may be.
        if field.name in _USED and (field.name in given or (field.name in ("id", "x") and not field.has_presence)):
            found[field.name] = _plain(getattr(message, field.name), field)
    return found


def _plain(value: Any, field: Any) -> Any:
    """A field's value as JSON has it."""
    if field.message_type is None:
        return list(value) if field.is_repeated else value
    if field.message_type.GetOptions().map_entry:
        return dict(value)
    if field.message_type.full_name == f"{_WRAPPER}Timestamp":
        return value.ToJsonString()
    if field.message_type.full_name.startswith(_WRAPPER) and "value" in field.message_type.fields_by_name:
        return value.value
    if field.is_repeated:
        return None  # which is no x
    inner = field.message_type.fields
    return {
        each.name: getattr(value, each.name) for each in inner if not each.has_presence or value.HasField(each.name)
    }
