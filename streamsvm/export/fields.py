"""`Records` in plain values: what a program needs to make numbers of a raw record; guesses stay as they are now."""

from typing import Any

from streamsvm.core.guesses import N, guess
from streamsvm.features import Records
from streamsvm.features.field import OWN_VALUES, Field
from streamsvm.features.values import ABSENT, LEFT_OUT, NUMBER


def plain_records(records: Records) -> dict[str, Any]:
    """What `Records` has learned, for the description; fields that are left out are not in it."""
    fields = [f for f in records._fields.values() if f.kind not in LEFT_OUT]
    embedded = next((f for f in fields if f.embedding is not None), None)
    if embedded is not None:
        raise ValueError(
            f"field {embedded.name!r} has an embedder, which no other program has: export the model without its "
            "Records, and give the program the numbers of Records.transform_one"
        )
    return {
        "indicators": records.indicators,
        "thousands": records.thousands,
        "width": records.width,
        "own_values": OWN_VALUES,
        "shared": OWN_VALUES,
        "absent": sorted(ABSENT),
        "fields": [_plain_field(f, records) for f in fields],
    }


def _plain_field(f: Field, records: Records) -> dict[str, Any]:
    row = f.rows.get(f.kind or "", -1)
    known = row >= 0 and records._guesses[row, N] > 0.0
    return {
        "name": f.name,
        "kind": f.kind,
        "values": list(f.values),
        "guesses": [guess(own) for own in records._guesses[row : row + f.n_numbers]] if known else None,
        "has_clock": f.has_clock,
        "is_rare": f.is_rare,
        "length": f.length,
    }


def require_numbers(records: Records | None, target: str) -> None:
    """Raise a ValueError for a target that takes numbers only, with the first field's name."""
    if records is None:
        return
    other = next((f for f in records._fields.values() if f.kind not in (*LEFT_OUT, NUMBER)), None)
    which = ", whose missing values are guessed" if other is None else f", and field {other.name!r} is a {other.kind}"
    raise ValueError(
        f"{target} takes numbers, no raw records{which}; export to JavaScript, Java or JSON, or export the model "
        "without its Records and give the program the numbers of Records.transform_one"
    )
