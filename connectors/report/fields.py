"""The panel about raw events: what became of each field."""

from ..trainer.state.stored_state import Stored
from .panel import Panel

_SHOWN = 100  # fields of the table
_TEXT = (
    "The first 50 values of a field decide about its kind. A missing value is guessed, or has a column of its own; an "
    "unfit one is of another kind, and counts as missing."
)


def fields_panels(stored: Stored, prefix: str) -> list[Panel]:
    """A panel with the fields of a single model; none if events are not raw, or each key has a model."""
    records = None if stored.setting("daemon.per") == "key" else stored.models.records(None)
    if records is None:
        return []
    fields = records.summary()
    rows = [
        (str(f.name)[:60], f.kind or "–", *(f"{n:,}" for n in (f.n_present, f.n_missing, f.n_unfit)), f.remark)
        for f in fields[:_SHOWN]
    ]
    more = [f"The table shows {_SHOWN} of {len(fields):,} fields."] if len(fields) > _SHOWN else []
    head = ("field", "kind", "present", "missing", "unfit", "remark")
    return [Panel(f"{prefix}-fields", "What each field became", "", [_TEXT, *more], [head, *rows])]
