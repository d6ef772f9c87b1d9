"""Turns dataclasses and named tuples into plain values that a snapshot can hold, and back.

A field of a dataclass that earlier snapshots lack has the metadata `LATER`, and a default; one of a named tuple has a
default.

The type of each field says what the snapshot must hold there, so damaged content is found while it is read.
"""

import dataclasses
import math
import types
import typing
from typing import Any

from streamsvm.core.saving.snapshot import LARGEST_COUNT, require

LATER = {"later": True}


def to_plain(value: Any) -> Any:
    """Dataclasses and named tuples as dicts by field, other tuples as lists, dicts as lists of pairs."""
    if dataclasses.is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "_asdict"):
        return {name: to_plain(part) for name, part in value._asdict().items()}
    if isinstance(value, dict):
        return [[to_plain(key), to_plain(part)] for key, part in value.items()]
    if isinstance(value, list | tuple):
        return [to_plain(part) for part in value]
    return min(value, LARGEST_COUNT) if type(value) is int else value  # which `of_plain` takes again


def of_plain(kind: Any, value: Any) -> Any:
    """A value of this type from what `to_plain` made of one; a SnapshotError if it is not one.

    Sets come from lists, and dicts by text from dicts, too.
    """
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        (kind,) = (part for part in parts if part is not types.NoneType)
        return None if value is None else of_plain(kind, value)
    if origin in (list, set):
        return origin(of_plain(parts[0], part) for part in _taken(value, list))
    if origin is tuple:
        return tuple(of_plain(part, own) for part, own in zip(parts, _taken(value, list), strict=True))
    if origin is dict:
        is_object = parts[0] is str and type(value) is dict  # of JSON, which has them as they are
        pairs = value.items() if is_object else [_taken(pair, list) for pair in _taken(value, list)]
        found = {of_plain(parts[0], key): of_plain(parts[1], part) for key, part in pairs}
        require(len(found) == len(pairs), "a key occurs twice")
        return found
    if kind in (int, float, bool, str):
        return _number(_taken(value, kind))
    fields = {name: part for name, part in typing.get_type_hints(kind).items() if not name.startswith("_")}
    is_tuple = not dataclasses.is_dataclass(kind)
    later = set(kind._field_defaults) if is_tuple else {f.name for f in dataclasses.fields(kind) if f.metadata}
    names = _taken(value, dict).keys()
    require(fields.keys() - later <= names <= fields.keys(), f"a {kind.__name__} has the fields {list(value)}")
    return kind(**{name: of_plain(fields[name], value[name]) for name in names})


def _taken(value: Any, kind: type) -> Any:
    require(type(value) is kind, f"{str(value)[:100]!r} must be of type {kind.__name__}")
    return value


def _number(value: Any) -> Any:
    """The value, unless it is a number that is negative, too large or not finite."""
    if type(value) in (int, float):
        require(math.isfinite(value) and 0 <= value <= LARGEST_COUNT, f"{value} is not a possible number")
    return value
