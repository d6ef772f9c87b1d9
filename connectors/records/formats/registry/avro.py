"""Readers of Avro records, from schemas of a registry."""

import io
import json
from collections.abc import Callable
from typing import Any

from ..avro import AvroMissing
from ..base import BadRecord, Fields
from .client import Client, Schema

_MAX_REFERENCES = 100  # of a schema, together with those of its references


def make_reader(schema: Schema, client: Client) -> Callable[[bytes], Fields]:
    """A function that reads a record's bytes, without the header.

    Parameters
    ----------
    schema
        Of a record with the fields ``id`` and ``x``; x is a map, an array or a record of numbers.
    client
        Has the schemas that it refers to.

    Raises
    ------
    ValueError
        If the schema cannot be used.
    AvroMissing
        If fastavro is not installed.
    """
    try:
        import fastavro
    except ImportError:
        raise AvroMissing("a schema of Avro needs fastavro: pip install 'streamsvm[avro]'") from None
    named: dict[str, Any] = {}
    for text in [*_referred(schema, client), schema.text]:
        parsed = fastavro.parse_schema(_plain(json.loads(text)), named)
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise ValueError("the schema must be of a record")

    def read(body: bytes) -> Fields:
        stream = io.BytesIO(body)
        try:
            fields: Any = fastavro.schemaless_reader(stream, parsed, None)
        except Exception as error:  # the parser may raise anything for foreign bytes
            raise BadRecord("not-avro", f"no record of the schema: {type(error).__name__}: {error}") from None
        if stream.tell() != len(body):
            raise BadRecord("not-avro", f"{len(body) - stream.tell()} bytes follow the record")
        return {name: field for name, field in fields.items() if field is not None}

    return read


def _referred(schema: Schema, client: Client) -> list[str]:
    """The texts of the schemas that a schema refers to, each after those that it refers to itself."""
    texts: list[str] = []
    seen: set[tuple[str, int]] = set()

    def add(schema: Schema) -> None:
        for reference in schema.references:
            place = reference.subject, reference.version
            if place in seen:
                continue
            seen.add(place)
            if len(seen) > _MAX_REFERENCES:
                raise ValueError(f"the schema refers to more than {_MAX_REFERENCES} others")
            referred = client.referred(reference)
            add(referred)
            texts.append(referred.text)

    add(schema)
    return texts


def _plain(node: Any) -> Any:
    """A schema without logical types: their plain values are what we need."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {key: _plain(value) for key, value in node.items() if key not in ("logicalType", "default")}
