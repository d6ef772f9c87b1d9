"""What the doctor says about the features of the newest events: whether there are any, and how they have changed.

Raw events are compared with what the trainer's `Records` knows: which fields are new or gone, and which have more gaps
or more values of another kind than before.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from streamsvm.core.stream_warning import StreamWarning
from streamsvm.features import FieldSummary, Records
from streamsvm.features.values import GIVEN

from ...records.codec import Event
from ...runtime.findings import Finding, Findings
from ...runtime.text import plural
from ...settings.sections import Settings
from ...trainer.state.known_fields import known_fields
from ...trainer.state.stored_state import readable_state

_LEAST = 50  # events from which a share says something
_CHANGE = 0.2  # of a share, from which it is worth a finding
_NAMED = 5  # fields that a finding names


def check_features(settings: Settings, events: Sequence[Event]) -> Findings:
    """The findings about these events, the newest ones."""
    n_empty = sum(not event.x for event in events)
    if n_empty:
        yield Finding.warning(
            f"{plural(n_empty, 'event')} of {len(events)} without any feature, from which a model learns nothing",
            "set features.raw = true, which makes features of texts and other fields, or correct the producer",
        )
    if settings.features.raw and len(events) >= _LEAST:
        for number, known in _known(settings):
            yield from _compared(number, known, [event.x for event in events])


def _known(settings: Settings) -> list[tuple[int, Sequence[FieldSummary]]]:
    """What the models of the state folder know of the fields, by partition."""
    stored = readable_state(settings.daemon.state_dir)  # another check says if it cannot be read
    found = [(item.number, *known_fields(item)) for item in stored]
    return [(number, fields) for number, fields, n_models in found if n_models]


def _compared(number: int, known: Sequence[FieldSummary], xs: Sequence[Mapping[Any, Any]]) -> Findings:
    before = {f.name: f for f in known}
    now = {f.name: f for f in _seen(xs, before).summary()}
    gone = [name for name, f in before.items() if _share(f) > _CHANGE and not _share(now.get(name))]
    gone = [name for name in gone if not _unfit(now.get(name))]
    unfit = [name for name, f in now.items() if _unfit(f) > _unfit(before.get(name)) + _CHANGE]
    scarce = [name for name, f in before.items() if _share(now.get(name)) < _share(f) - _CHANGE]
    lists = {
        "are new": [name for name in now if name not in before],
        "are gone": gone,
        "have values of another kind than before": unfit,
        "are missing more often": [name for name in scarce if name not in (*gone, *unfit)],
    }
    for what, names in lists.items():
        if names:
            shown = ", ".join(map(repr, names[:_NAMED])) + (", ..." if len(names) > _NAMED else "")
            yield Finding.warning(
                f"p{number}: in the newest {len(xs)} events, fields {what}: {shown}",
                "see to the producer; `streamsvm report` shows what became of each field",
            )
    if not any(lists.values()):
        yield Finding.ok(f"the {plural(len(before), 'field')} of the events are as p{number} knows them")


def _seen(xs: Sequence[Mapping[Any, Any]], before: Mapping[Any, FieldSummary]) -> Records:
    """What these events have in fields of the kinds that are known."""
    records = Records({name: f.kind if f.kind in GIVEN else "category" for name, f in before.items() if f.kind})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)
        records.learn_many(list(xs))
    return records


def _share(f: FieldSummary | None) -> float:
    """The share of records that have a value of a field's kind."""
    return 0.0 if f is None else f.n_present / max(1, f.n_present + f.n_missing + f.n_unfit)


def _unfit(f: FieldSummary | None) -> float:
    return 0.0 if f is None else f.n_unfit / max(1, f.n_present + f.n_missing + f.n_unfit)
