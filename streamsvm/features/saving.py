"""Fields in a snapshot: plain values, checked when they are read."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamsvm.core.guesses import NUMBERS
from streamsvm.core.inputs import APART
from streamsvm.core.saving import snapshot
from streamsvm.core.saving.snapshot import require, require_array, require_finite
from streamsvm.features import embedding
from streamsvm.features.field import JUDGED, OWN_VALUES, Field
from streamsvm.features.values import GIVEN, ID, LONGEST_LIST, TEXT

COUNTS = ("began", "n_present", "n_unfit", "n_blank", "words", "counted", "length")
FLAGS = ("is_given", "is_fixed", "told", "has_clock", "is_rare")


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
    own = {name: getattr(f, name) for name in ("name", "kind", *COUNTS, *FLAGS)}
    return own | {"votes": f.votes, "rows": f.rows, "values": list(f.values), "different": sorted(f.different)}


def loaded(own: Any) -> Field:
    """The field that `dumped` gave; a SnapshotError if it cannot be one."""
    require(isinstance(own, dict), "a field is not a dict")
    name, kind = snapshot.field(own, "name", str, int, float, bool), snapshot.field(own, "kind", str, type(None))
    require(kind is None or kind in (*GIVEN, ID), f"the kind of field {name!r}")
    f = Field(name, kind, 0)
    for count in COUNTS:
        setattr(f, count, snapshot.count(own, count))
    for flag in FLAGS:
        setattr(f, flag, snapshot.field(own, flag, bool))
    f.votes, f.rows = (_counts(snapshot.field(own, part, dict)) for part in ("votes", "rows"))
    require(sum(f.votes.values()) <= JUDGED and f.length <= LONGEST_LIST, f"the votes or the length of field {name!r}")
    values, different = snapshot.field(own, "values", list), snapshot.field(own, "different", list)
    require(all(type(v) is str for v in values) and len(values) <= OWN_VALUES, f"the values of field {name!r}")
    require(all(type(v) is int for v in different) and len(different) <= JUDGED, f"the judgement of field {name!r}")
    f.values, f.different = {v: f"{APART}{name}={v}" for v in values}, set(different)
    return f


def fields_of(meta: Mapping[str, Any], embeddings: Mapping[Any, Any]) -> list[Field]:
    """The fields of a snapshot, with their embeddings."""
    fields = [loaded(own) for own in snapshot.field(meta, "fields", list)]
    for f in fields:
        f.embedding = embeddings.get(f.name)
    return fields


def _counts(own: Mapping[str, Any]) -> dict[str, int]:
    return {kind: snapshot.count(own, kind) for kind in own}


def guesses_of(arrays: snapshot.Arrays, fields: Sequence[Field]) -> np.ndarray:
    """The state of the guesses, in which each field has its rows."""
    guesses = require_array(arrays, "guesses", np.float64, (None, NUMBERS))
    require_finite(arrays, "guesses")
    for f in fields:
        for kind, row in f.rows.items():
            require(row + f.numbers_of(kind) <= len(guesses), f"the rows of field {f.name!r}")
    return guesses.copy()
