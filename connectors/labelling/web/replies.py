"""Questions and answers as the page's scripts expect them: numbers and texts only."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ...records.class_changes import ClassChange
from ...records.classes import ClassLabel
from ...records.people.questions import FOUND, RECHECK, Question, is_series
from ...settings.labelling import LabellingSettings
from ...settings.sections import LabelSettings
from ..answer import Given
from ..history import Step
from .images import FILES, file_of, shown_at

_PREVIEW = 160  # characters
_PREVIEW_VALUES = 4  # features in a preview, which is one line
_THUMBNAIL = 64 << 10  # characters of an image inside the event
_THUMBNAIL_FILE = 1 << 20  # bytes


def question(shown: Question, labelling: LabellingSettings) -> dict[str, Any]:
    """A question with everything that the page shows of it."""
    text, address, series = (shown.event.get(name) for name in (labelling.text, labelling.image, labelling.series))
    address = address if isinstance(address, str) and address else None
    image = None if address is None else shown_at(address, labelling)
    return {
        "query_id": shown.query_id,
        "id": str(shown.id),  # JavaScript would round a large number
        "x": dict(shown.x),
        "text": text if isinstance(text, str) and text else None,
        "image": image,
        "refused_image": address if image is None else None,
        "series": series if is_series(series) else None,
        "fields": _fields(shown, labelling),
        "margin": None if shown.reason in (FOUND, RECHECK) else shown.margin,
        "score": shown.score,
        "guess": None if shown.guess is None else str(shown.guess),
        "reason": shown.reason,
        "unusual": dict(shown.unusual),
        "alike": [str(one["id"]) for one in shown.alike],
        "almost": shown.almost,
        "speaking": [{"id": str(one["id"]), "label": _label_name(one["label"])} for one in shown.speaking],
    }


def _label_name(label: Any) -> str:
    """A label as the page names it: without names of their own, two classes are positive and negative."""
    return ("positive" if label else "negative") if isinstance(label, bool) else str(label)


def answer(step: Step, now: ClassLabel | None, label: LabelSettings) -> dict[str, Any]:
    """An answer that was given, and the class that it counts as now."""
    given = step.given
    about = said(step.query_id, step.id, given, now, label)
    return {"number": step.number, **about, "by": _name(given.who), "at": given.rev}


def class_change(change: ClassChange, label: LabelSettings) -> dict[str, Any]:
    """A change of the classes by a person."""
    new = None if change.new is None else label.shown_as(change.new)
    return {"op": change.op, "from": label.shown_as(change.old), "to": new, "by": _name(change.who), "at": change.rev}


def said(
    query_id: str, id_: str | int, given: Given | None, now: ClassLabel | None, label: LabelSettings
) -> dict[str, Any]:
    """An event, what was answered about it, and the class that this counts as now."""
    return {
        "query_id": query_id,
        "id": str(id_),
        "op": None if given is None else given.op,
        "label": None if given is None or given.y is None else label.shown_as(given.y),
        "now": None if now is None else label.shown_as(now),
    }


def preview(shown: Question | None, labelling: LabellingSettings) -> dict[str, Any]:
    """What a list shows of a question, None if its contents are forgotten."""
    if shown is None:
        return {"text": None, "image": None}
    whole = question(shown, labelling)
    image = whole["image"]
    return {
        "text": (whole["text"] or ("" if image else _values(shown.x)) or ", ".join(_parts(whole["fields"])))[:_PREVIEW],
        "image": image if image and _is_small(image, str(shown.event[labelling.image]), labelling) else None,
    }


def _is_small(image: str, name: str, labelling: LabellingSettings) -> bool:
    """Whether lists can show many such images."""
    if not image.startswith(FILES):
        return len(image) <= _THUMBNAIL
    found = file_of(name, labelling)
    return found is not None and found[0].stat().st_size <= _THUMBNAIL_FILE


def _fields(shown: Question, labelling: LabellingSettings) -> dict[str, str]:
    """The other fields of an event, such as those of `streamsvm produce --show`, as texts.

    A text that is a feature, too, and the file that the event is named after say nothing new.
    """
    others, known = {labelling.text, labelling.image, labelling.series}, (shown.event.get(labelling.text), shown.id)
    fields = {
        name: value
        for name, value in shown.event.items()
        if name not in others and isinstance(value, str | int | float) and value not in known
    }
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}


def _values(x: Mapping[str, float]) -> str:
    some = [name for name in x if x[name]][:_PREVIEW_VALUES]
    return ", ".join(f"{name} {x[name]:.5g}" for name in some)


def _parts(fields: Mapping[str, str]) -> Iterator[str]:
    return (f"{name} {value}" for name, value in fields.items())


def _name(who: str) -> str:
    """The annotator's name for people: without the front end, and without the tab."""
    front_end, _, name = who.partition(":")
    return name.partition("#")[0] if front_end in ("page", "terminal") else who
