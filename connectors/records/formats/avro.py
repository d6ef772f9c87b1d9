"""Avro as an event format, framed as by Confluent's serialisers: a zero byte, the schema's id in 4 bytes, the record.

Schemas come from a folder of files ``ID.avsc``, so the trainer needs no registry.  A schema is a record with the fields
``id`` (text or integer), ``x`` (map or array of float or double) and, optionally, ``y``, ``w`` and ``ts``.  All fields
but x have primitive types or unions of them; null means that a field is missing.  Other fields are ignored.
"""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...logs.transport import Headers
from .base import BadRecord, Built, Fields, LibraryMissing

MAGIC = 0
FRAME_BYTES = 5

_PRIMITIVE = {"null", "boolean", "int", "long", "float", "double", "bytes", "string"}
_KEPT_LOGICAL = {None, "timestamp-millis", "uuid"}  # their plain values are what we need


class AvroMissing(LibraryMissing):
    """fastavro is not installed."""


class SchemaError(ValueError):
    """A schema, or the folder of schemas, cannot be used."""


class AvroFormat:
    """Events as Avro records; see the module.

    Parameters
    ----------
    folder
        Folder of the schemas, which is read once.

    Raises
    ------
    AvroMissing
        If fastavro is not installed.
    SchemaError
        If the folder has no schema, or if a schema is not as the module describes.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import fastavro
        except ImportError:
            raise AvroMissing("the format 'avro' needs fastavro: pip install 'streamsvm[avro]'") from None
        self._read = fastavro.schemaless_reader
        self._schemas = {id_: fastavro.parse_schema(schema) for id_, schema in _load_schemas(folder).items()}

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
        if id_ not in self._schemas:
            known = ", ".join(map(str, sorted(self._schemas)))
            raise BadRecord("unknown-schema", f"there is no schema {id_}; known are {known}")
        body = io.BytesIO(value)
        body.seek(FRAME_BYTES)
        try:
            fields: Any = self._read(body, self._schemas[id_], None)
        except Exception as error:  # the parser may raise anything for foreign bytes
            raise BadRecord("not-avro", f"no record of schema {id_}: {type(error).__name__}: {error}") from None
        if body.tell() != len(value):
            raise BadRecord("not-avro", f"{len(value) - body.tell()} bytes follow the record of schema {id_}")
        return {name: field for name, field in fields.items() if field is not None}


# --- schemas ----------------------------------------------------------------------------------------------------------


def _load_schemas(folder: Path) -> dict[int, dict[str, Any]]:
    paths = sorted(folder.glob("*.avsc"))
    if not paths:
        raise SchemaError(f"{folder}: there is no schema file, ID.avsc, in this folder")
    return {_schema_id(path): _load_schema(path) for path in paths}


def _schema_id(path: Path) -> int:
    if not re.fullmatch("0|[1-9][0-9]*", path.stem):
        raise SchemaError(f"{path}: a schema file must be named by its id, as in 17.avsc")
    return int(path.stem)


def _load_schema(path: Path) -> dict[str, Any]:
    """A schema, reduced to the parts that decoding needs."""
    try:
        schema = json.loads(path.read_bytes())
        kind, fields = schema["type"], {field["name"]: field["type"] for field in schema["fields"]}
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise SchemaError(f"{path}: this is not the schema of an Avro record: {error!r}") from None
    if kind != "record":
        raise SchemaError(f"{path}: the schema must be of a record, got {kind!r}")
    if missing := {"id", "x"} - fields.keys():
        raise SchemaError(f"{path}: the record has no field {min(missing)!r}")
    kept = [{"name": name, "type": _type(path, name, type_)} for name, type_ in fields.items()]
    return {"type": "record", "name": "Event", "fields": kept}


def _type(path: Path, name: str, type_: Any) -> Any:
    plain = _numbers(type_) if name == "x" else _primitive(type_)
    if plain is None:
        allowed = "a map or array of float or double" if name == "x" else "a primitive type or a union of them"
        raise SchemaError(f"{path}: the field {name!r} must be {allowed}, got {json.dumps(type_)}")
    return plain


def _numbers(type_: Any) -> Any:
    match type_:
        case {"type": "map", "values": "float" | "double" as number}:
            return {"type": "map", "values": number}
        case {"type": "array", "items": "float" | "double" as number}:
            return {"type": "array", "items": number}
    return None


def _primitive(type_: Any) -> Any:
    members = type_ if isinstance(type_, list) else [type_]
    plain = [_plain(member) for member in members]
    if not plain or None in plain:
        return None
    return plain if isinstance(type_, list) else plain[0]


def _plain(type_: Any) -> str | None:
    if isinstance(type_, dict) and type_.get("logicalType") in _KEPT_LOGICAL:
        type_ = type_.get("type")
    return type_ if isinstance(type_, str) and type_ in _PRIMITIVE else None
