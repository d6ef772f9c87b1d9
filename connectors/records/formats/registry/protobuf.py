"""Readers of Protobuf messages, from schemas of a registry.

Confluent's registry sends each file as a descriptor (``?format=serialized``).  Others, such as Apicurio's, send its
text, which protoc compiles.
"""

import base64
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ....logs.transport import Unavailable
from ....runtime.libraries import LibraryMissing, needing
from ..base import BadRecord, Fields
from .client import Client, Reference, Schema

_SERIALIZED = "serialized"
_MAX_FILES = 100  # that a schema may import
_MAX_INDEXES = 100  # to a message inside others
_COMPILER = "grpc_tools"
_SECONDS = 20  # to compile a file
_WRAPPER = "google.protobuf."
_WELL_KNOWN = ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
_USED = ("id", "x", "y", "w", "ts")


def make_reader(id_: int, schema: Schema, client: Client) -> Callable[[bytes], Fields]:
    """A function that reads a record's bytes after the id: the message's indexes, then the message.

    Parameters
    ----------
    id_
        Of the schema.
    schema
        As the registry sends it without a format.  The message has the fields ``id`` and ``x``; x is a map, a repeated
        field or a message of numbers.
    client
        Has the schema as a descriptor, and the schemas that it refers to.

    Raises
    ------
    ValueError
        If the schema cannot be used.
    LibraryMissing
        If protobuf is not installed; or its compiler, if the registry has only the text of the schema.
    """
    with needing("a schema of Protobuf needs protobuf", "protobuf"):
        from google.protobuf import descriptor_pool, message_factory
    pool = descriptor_pool.DescriptorPool()
    top = _Files(pool, client).add(f"schema-{id_}.proto", partial(client.by_id, id_), schema)
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
        from google.protobuf import descriptor_pb2

        self._pool = pool
        self._client = client
        self._names: set[str] = set()
        self._added = descriptor_pb2.FileDescriptorSet()

    def add(self, name: str, ask: Callable[[str], Schema], plain: Schema | None = None) -> Any:
        """Add a file that `ask` returns in a format; `plain` is what it returns without one, if that is known."""
        if len(self._names) >= _MAX_FILES:
            raise ValueError(f"the schema imports more than {_MAX_FILES} files")
        self._names.add(name)
        schema, file = _fetched(ask, plain)
        referred = {reference.name: reference for reference in schema.references}
        if file is None:
            self._add_imported(referred, referred)
            file = _compiled(schema.text, self._added)
        file.name = name  # as others import it
        self._add_imported(file.dependency, referred)
        self._added.file.append(file)
        return self._pool.AddSerializedFile(file.SerializeToString()) or self._pool.FindFileByName(name)

    def _add_imported(self, names: Iterable[str], referred: Mapping[str, Reference]) -> None:
        for needed in names:
            if needed in self._names:
                continue
            if needed in referred:
                self.add(needed, partial(self._client.referred, referred[needed]))
            elif needed.startswith("google/protobuf/"):
                self._names.add(needed)
                self._pool.AddSerializedFile(_well_known(needed))
            else:
                raise ValueError(f"the schema imports {needed!r}, to which it has no reference")


def _fetched(ask: Callable[[str], Schema], plain: Schema | None) -> tuple[Schema, Any]:
    """A file, and its descriptor; None if the registry has only its text.

    Asked for a descriptor, Apicurio's registry answers with an error, or with bytes that it has damaged.
    """
    try:
        schema = ask(_SERIALIZED)
        if (file := _decoded(schema.text)) is not None:
            return schema, file
    except Unavailable:
        pass
    schema = plain or ask("")
    return schema, _decoded(schema.text)


def _decoded(text: str) -> Any:
    """A descriptor in base64; None if the text is something else, such as a .proto file."""
    from google.protobuf import descriptor_pb2, message

    try:
        return descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
    except (ValueError, message.DecodeError):
        return None


def _compiled(text: str, imported: Any) -> Any:
    """The descriptor of a .proto file, which may import the files of a descriptor set."""
    from google.protobuf import descriptor_pb2

    if find_spec(_COMPILER) is None:
        missing = "a schema of Protobuf, which the registry sends as text, needs grpcio-tools"
        raise LibraryMissing(missing, "protobuf")
    with tempfile.TemporaryDirectory() as name:
        source, known, result = (Path(name, part) for part in ("this.proto", "imported", "result"))
        source.write_text(text, encoding="utf-8")
        known.write_bytes(imported.SerializeToString())
        options = (f"--proto_path={name}", f"--descriptor_set_in={known}", f"--descriptor_set_out={result}")
        # A process of its own, because protoc prints what is wrong.
        command = [sys.executable, "-m", f"{_COMPILER}.protoc", *options, str(source)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=name, timeout=_SECONDS)  # noqa: S603
        if done.returncode:
            raise ValueError(f"protoc does not compile it: {done.stderr.strip() or done.returncode}")
        (file,) = descriptor_pb2.FileDescriptorSet.FromString(result.read_bytes()).file
    return file


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
