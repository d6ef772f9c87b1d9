"""The panel about raw events: what became of each field."""

from ..trainer.state.known_fields import known_fields
from ..trainer.state.stored_state import Stored
from .panel import Panel

_SHOWN = 100  # fields of the table
_TEXT = (
    "The first 50 values of a field decide about its kind. A missing value is guessed, or has a column of its own; an "
    "unfit one is of another kind, and counts as missing."
)


def fields_panels(stored: Stored) -> list[Panel]:
    """A panel with the fields of the model, or of the last keys' models together; none if events are not raw."""
    fields, n_models = known_fields(stored)
    if not n_models:
        return []
    rows = [
        (str(f.name)[:60], f.kind or "–", *(f"{n:,}" for n in (f.n_present, f.n_missing, f.n_unfit)), f.remark)
        for f in fields[:_SHOWN]
    ]
    which = [] if n_models == 1 else [f"The counts are sums over the {n_models} models that learned last."]
    more = [f"The table shows {_SHOWN} of {len(fields):,} fields."] if len(fields) > _SHOWN else []
    head = ("field", "kind", "present", "missing", "unfit", "remark")
    return [Panel("fields", "What each field became", [_TEXT, *which, *more], table=[head, *rows])]
