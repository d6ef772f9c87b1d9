"""What the models of a stored partition know of the fields of raw events."""

from collections.abc import Hashable, Sequence
from contextlib import suppress

from streamsvm.features import FieldSummary

from .model_files import DamagedModel
from .stored_state import Stored

LAST = 20  # models that are asked, if each key has one: those that learned last


def known_fields(stored: Stored) -> tuple[Sequence[FieldSummary], int]:
    """The fields, and the number of models that know them, none if events are not raw; counts are added up.

    A damaged model of a key is left out: the trainer tells of it, and begins it anew, when it needs it.
    """
    if not stored.setting("features.raw"):
        return [], 0
    keys = [None] if stored.models.single else stored.models.order[-LAST:]
    found = []
    for key in keys:
        with suppress(DamagedModel):
            records = stored.models.trained(key).records
            found += [] if records is None else [records.summary()]
    return (found[0] if len(found) == 1 else _together(found)), len(found)


def _together(summaries: Sequence[Sequence[FieldSummary]]) -> list[FieldSummary]:
    of: dict[Hashable, list[FieldSummary]] = {}
    for summary in summaries:
        for f in summary:
            of.setdefault(f.name, []).append(f)
    return [_one(fields) for fields in of.values()]


def _one(fields: Sequence[FieldSummary]) -> FieldSummary:
    """One field of several models, with each of its kinds, and the remark that all of them have."""
    kinds, remarks = dict.fromkeys(f.kind for f in fields if f.kind), {f.remark for f in fields}
    n_present, n_missing, n_unfit = (sum(counts) for counts in zip(*(f[2:5] for f in fields), strict=True))
    remark = remarks.pop() if len(remarks) == 1 else ""
    return FieldSummary(fields[0].name, ", ".join(kinds) or None, n_present, n_missing, n_unfit, remark)
