"""Readers of Avro records, from schemas of a registry."""

import json
from collections.abc import Callable

from .. import avro
from ..base import Fields
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
    LibraryMissing
        If fastavro is not installed.
    """
    return avro.make_reader([json.loads(text) for text in [*_referred(schema, client), schema.text]])


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
