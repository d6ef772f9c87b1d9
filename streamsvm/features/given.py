"""What a user says of fields by their names: their kinds, and which texts are embedded."""

from collections.abc import Container, Hashable, Iterable, Mapping
from typing import Any

from streamsvm.features.nesting import outer_names
from streamsvm.features.values import GIVEN, IGNORE, TEXT


def require_kinds(kinds: Any) -> None:
    """Refuse kinds that are none."""
    if kinds is not None and not isinstance(kinds, dict):
        raise TypeError(f"kinds={kinds!r} must be a dict of field names and kinds, or None")
    for name, kind in (kinds or {}).items():
        if kind not in GIVEN:
            raise ValueError(f"kinds[{name!r}]={kind!r} is unknown; use one of {', '.join(map(repr, GIVEN))}")


def given_kind(name: Hashable, kinds: Mapping[Hashable, str], embedded: Container[Hashable]) -> str | None:
    """The kind that the user gave a field, or ``"ignore"`` if an object in which it is nested has that."""
    if name in embedded:
        return TEXT
    return kinds.get(name) or (IGNORE if any(kinds.get(outer) == IGNORE for outer in outer_names(name)) else None)


def unknown_names(fields: Iterable[Hashable], *given: Iterable[Hashable]) -> list[Hashable]:
    """The names that the user gave, but that are neither those of a field nor of an object around one."""
    known = {outer for name in fields for outer in (name, *outer_names(name))}
    return [name for name in dict.fromkeys(name for names in given for name in names) if name not in known]
