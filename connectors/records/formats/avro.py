"""Avro as an event format, framed as by Confluent's serialisers: a zero byte, the schema's id in 4 bytes, the record.

Schemas come from a folder of files ``ID.avsc``, so the trainer needs no registry.  A schema is a record with the fields
``id`` (text or integer), ``x`` (a map, an array or a record of numbers) and, optionally, ``y``, ``w`` and ``ts``.  All
of these but x have primitive types or unions of them, and y may be an enum.  Null means that a field or a feature is
missing.  Other fields are ignored, whatever their types are.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ...logs.transport import Headers
from ...runtime.libraries import needing
from .base import BadRecord, Built, Fields, show

MAGIC = 0  # the first byte, as Confluent's serializers write it
FRAME_BYTES = 5  # the magic byte and a schema's id

_NUMBERS = {"int", "long", "float", "double"}
_PRIMITIVE = {"null", "boolean", "bytes", "string", *_NUMBERS}
_TIMES = {  # logical types: milliseconds are the value times the first, divided by the second
    "date": (86_400_000, 1),
    **{
        f"{local}timestamp-{unit}": (1, part)
        for local in ("", "local-")
        for unit, part in (("millis", 1), ("micros", 1000), ("nanos", 1_000_000))
    },
}


class SchemaError(ValueError):
    """A schema, or the folder of schemas, cannot be used."""


class AvroFormat:
    """Events as Avro records; see the module.

    Parameters
    ----------
    folder
        Folder of the schemas, which is read once.
    of_numbers
        Whether x must hold numbers only.
    is_flat
        Whether records may have any fields in the place of id and x.

    Raises
    ------
    LibraryMissing
        If fastavro is not installed.
    SchemaError
        If the folder has no schema, or if a schema is not as the module describes.
    """

    def __init__(self, folder: Path, *, of_numbers: bool = True, is_flat: bool = False) -> None:
        _fastavro()
        self._readers = _load_readers(folder, None if is_flat else of_numbers)

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """What `build` makes of the record's fields; headers are ignored."""
        return build(self._fields(value))

    def features(self, value: bytes) -> Any:
        """The field x."""
        return self._fields(value)["x"]

    def _fields(self, value: bytes) -> Fields:
        if len(value) < FRAME_BYTES or value[0] != MAGIC:
            raise BadRecord("not-avro", f"the record must begin with a zero byte and the 4 of an id, got {value[:5]!r}")
        id_ = int.from_bytes(value[1:FRAME_BYTES], "big")
        if id_ not in self._readers:
            known = ", ".join(map(str, sorted(self._readers)[:10]))
            raise BadRecord("unknown-schema", f"there is no schema {id_}; known are {known}")
        return self._readers[id_](value[FRAME_BYTES:])


# --- records ----------------------------------------------------------------------------------------------------------


def make_reader(schemas: Sequence[Any]) -> Callable[[bytes], Fields]:
    """A function that reads a record's bytes; the last schema is its own, and each may refer to those before it.

    Raises
    ------
    ValueError
        If the schemas cannot be used; fastavro's own errors, too.
    LibraryMissing
        If fastavro is not installed.
    """
    fastavro = _fastavro()
    named: dict[str, Any] = {}
    for schema in schemas:
        parsed = fastavro.parse_schema(_plain(schema), named)
        _refuse_endless(parsed, named)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise ValueError("the schema must be of a record")
    times, parts = _unit_of_time(schemas[-1])

    def read(body: bytes) -> Fields:
        stream = io.BytesIO(body)
        try:
            record: Any = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # the parser may raise anything for foreign bytes
            raise BadRecord("not-avro", f"no record of the schema: {type(error).__name__}: {error}") from None
        if stream.tell() != len(body):
            raise BadRecord("not-avro", f"{len(body) - stream.tell()} bytes follow the record")
        fields = _given(record)
        if isinstance(fields.get("x"), dict):
            fields["x"] = _given(fields["x"])
        if isinstance(fields.get("ts"), int):
            fields["ts"] = fields["ts"] * times // parts
        return fields

    return read


def _fastavro() -> ModuleType:
    with needing("Avro needs fastavro", "avro"):
        import fastavro
    return fastavro


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: field for name, field in fields.items() if field is not None}


def _plain(node: Any) -> Any:
    """A schema without logical types: their plain values are what we need."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _plain(value) for key, value in node.items() if key not in ("logicalType", "default")}


def _unit_of_time(schema: Mapping[str, Any]) -> tuple[int, int]:
    """What turns the field ts into milliseconds: the numbers to multiply it by, and to divide it by."""
    (times,) = [_members(field["type"]) for field in schema["fields"] if field["name"] == "ts"] or [[]]
    kinds = [str(type_.get("logicalType")) for type_ in times if isinstance(type_, dict)]
    return next((_TIMES[kind] for kind in kinds if kind in _TIMES), (1, 1))


def _refuse_endless(node: Any, named: Mapping[str, Any]) -> None:
    """Refuse arrays of items that take no bytes: a record of ten bytes could have so many that they never end."""
    if isinstance(node, dict) and node.get("type") == "array" and _is_empty(node["items"], named):
        raise ValueError("the items of an array must take bytes; null does not, and a fixed of size 0 neither")
    for below in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        _refuse_endless(below, named)


def _is_empty(type_: Any, named: Mapping[str, Any], above: tuple[str, ...] = ()) -> bool:
    """Whether a value of a type takes no bytes."""
    if isinstance(type_, str):
        inner = named.get(type_)
        return type_ == "null" or (
            inner is not None and type_ not in above and _is_empty(inner, named, (*above, type_))
        )
    match type_:
        case {"type": "record" | "error", "fields": fields}:
            return all(_is_empty(field["type"], named, (*above, type_["name"])) for field in fields)
        case {"type": "fixed", "size": size}:
            return bool(size == 0)
        case {"type": "null"}:
            return True
    return False


# --- schemas of a folder ----------------------------------------------------------------------------------------------


def _load_readers(folder: Path, of_numbers: bool | None) -> dict[int, Callable[[bytes], Fields]]:
    paths = sorted(folder.glob("*.avsc"))
    if not paths:
        raise SchemaError(f"{folder}: there is no schema file, ID.avsc, in this folder")
    return {_schema_id(path): _load_reader(path, of_numbers) for path in paths}


def _schema_id(path: Path) -> int:
    if not re.fullmatch("0|[1-9][0-9]*", path.stem):
        raise SchemaError(f"{path}: a schema file must be named by its id, as in 17.avsc")
    return int(path.stem)


def _load_reader(path: Path, of_numbers: bool | None) -> Callable[[bytes], Fields]:
    """A reader of records with numbers in x, with anything in it, or (None) of records with any fields."""
    try:
        schema = json.loads(path.read_bytes())
        kind, fields = schema["type"], {field["name"]: field["type"] for field in schema["fields"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SchemaError(f"{path}: this is not the schema of an Avro record: {error!r}") from None
    if kind != "record":
        raise SchemaError(f"{path}: the schema must be of a record, got {kind!r}")
    missing = set() if of_numbers is None else {"id", "x"} - fields.keys()
    if missing:
        raise SchemaError(f"{path}: the record has no field {min(missing)!r}")
    for name in () if of_numbers is None else ("id", "y", "w", "ts"):
        if name in fields and not all(_is_primitive(type_, name) for type_ in _members(fields[name]) or [None]):
            allowed = "a primitive type or a union of them"
            raise SchemaError(f"{path}: the field {name!r} must be {allowed}, got {show(fields[name])}")
    if of_numbers and not _are_features(fields["x"], dict(_records(schema))):
        allowed = "a map, an array or a record of numbers"
        raise SchemaError(f"{path}: the field 'x' must be {allowed}, got {show(fields['x'])}")
    try:
        return make_reader([schema])
    except Exception as error:  # fastavro has errors of its own for schemas that it does not understand
        raise SchemaError(f"{path}: {error}") from None


def _members(type_: Any) -> list[Any]:
    """The types of a union; another type alone."""
    return type_ if isinstance(type_, list) else [type_]


def _is_primitive(type_: Any, name: str) -> bool:
    if isinstance(type_, dict) and type_.get("logicalType") != "decimal":
        type_ = type_.get("type")
    return isinstance(type_, str) and (type_ in _PRIMITIVE or (name == "y" and type_ == "enum"))


def _are_features(type_: Any, named: Mapping[str, Any]) -> bool:
    """Whether a type holds numbers, each of which may be null; the whole may be null, too."""
    found = [named.get(_short(member), member) if isinstance(member, str) else member for member in _members(type_)]
    return found != ["null"] and all(member == "null" or all(map(_is_number, _parts(member))) for member in found)


def _parts(type_: Any) -> list[Any]:
    """The types of the items of a map, an array or a record; of another type, one that is not a number."""
    match type_:
        case {"type": "map", "values": item} | {"type": "array", "items": item}:
            return [item]
        case {"type": "record", "fields": fields}:
            return [field["type"] for field in fields]
    return [None]


def _is_number(type_: Any) -> bool:
    members = [member.get("type") if isinstance(member, dict) else member for member in _members(type_)]
    numbers = [member for member in members if member != "null"]
    return bool(numbers) and all(isinstance(member, str) and member in _NUMBERS for member in numbers)


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _records(node: Any) -> Iterator[tuple[str, Any]]:
    """The records of a schema, by their names without namespaces."""
    if isinstance(node, dict) and node.get("type") == "record":
        yield _short(str(node.get("name"))), node
    for below in node if isinstance(node, list) else node.values() if isinstance(node, dict) else ():
        yield from _records(below)
