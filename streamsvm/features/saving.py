"""Fields in a snapshot: plain values, checked when they are read."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core.guesses import NUMBERS
from streamsvm.core.inputs import APART
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.plain import of_plain
from streamsvm.core.saving.snapshot import require, require_array, require_finite
from streamsvm.features import embedding
from streamsvm.features.field import JUDGED, OWN_VALUES, Field
from streamsvm.features.values import GIVEN, ID, LONGEST_LIST, TEXT

STORED = (
    *("kind", "began", "n_present", "n_unfit", "n_blank", "words", "counted", "length"),
    *("is_given", "is_fixed", "told", "has_clock", "is_rare", "votes", "rows"),
)  # of a field, as they are
TYPES = {field.name: field.type for field in dataclasses.fields(Field)}


def kinds_of(own: list | None, embed: Mapping[Any, Any]) -> tuple[dict[Any, str] | None, dict[Any, Any] | None]:
    """The kinds in a snapshot, and the embedders beside them; `embed` has those that the reader was given."""
    if own is None:
        require(not embed, "it has no embedders")
        return None, None
    kinds = dict(own)
    embedders = {
        name: embedding.loaded(name, kind, embed.get(name)).given
        for name, kind in kinds.items()
        if isinstance(kind, list)
    }
    require(embed.keys() <= embedders.keys(), f"it has embedders for {[*embedders]}, and {[*embed]} were given")
    return kinds | dict.fromkeys(embedders, TEXT), embedders or None


def dumped(f: Field) -> dict[str, Any]:
    """A field as plain values."""
    own = {name: getattr(f, name) for name in ("name", *STORED)}
    return own | {"values": list(f.values), "different": sorted(f.different)}


def loaded(own: Any) -> Field:
    """The field that `dumped` gave; a SnapshotError if it cannot be one."""
    require(isinstance(own, dict), "a field is not a dict")
    f = Field(snapshot.field(own, "name", str, int, float, bool), None, 0)
    for name in (*STORED, "different"):
        setattr(f, name, of_plain(TYPES[name], own[name]))
    values = of_plain(list[str], own["values"])
    require(f.kind is None or f.kind in (*GIVEN, ID), f"the kind of field {f.name!r}")
    require(sum(f.votes.values()) <= JUDGED and f.length <= LONGEST_LIST, f"a count of field {f.name!r}")
    require(len(values) <= OWN_VALUES and len(f.different) <= JUDGED, f"the values of field {f.name!r}")
    f.values = {v: f"{APART}{f.name}={v}" for v in values}
    return f


def fields_of(meta: Mapping[str, Any], embeddings: Mapping[Any, Any]) -> list[Field]:
    """The fields of a snapshot, with their embeddings."""
    fields = [loaded(own) for own in snapshot.field(meta, "fields", list)]
    for f in fields:
        f.embedding = embeddings.get(f.name)
    return fields


def guesses_of(arrays: snapshot.Arrays, fields: Sequence[Field]) -> np.ndarray:
    """The state of the guesses, in which each field has its rows."""
    guesses = require_array(arrays, "guesses", np.float64, (None, NUMBERS))
    require_finite(arrays, "guesses")
    for f in fields:
        for kind, row in f.rows.items():
            require(row + f.numbers_of(kind) <= len(guesses), f"the rows of field {f.name!r}")
    return guesses.copy()
