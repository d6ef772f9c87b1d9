"""Raw records: events whose features are made by `streamsvm.features.Records`, or by a function of the user.

An event is either ``{"id": ..., "x": {anything}, "y": ..., "w": ..., "ts": ...}``, or, if a field is named for its id,
its label or its time, a *flat* record: then all other fields are features, and so is the time.  Nested fields have
dotted names.  A flat record without a field for its id is named by its place, ``TOPIC-PARTITION-OFFSET``.

Almost everything is a feature: `Records` counts as missing what does not fit.  A record is refused if two of its fields
have one name, if it lacks its id, or if its label is not one.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from .formats.base import BadRecord, Fields, show
from .times import is_time

Transform = Callable[[dict[str, Any]], Mapping[str, Any]]

_BLANK = (None, "")


class UnusableTransform(ValueError):  # noqa: N818 - names the condition
    """The user's function cannot be imported."""


class Reading(NamedTuple):
    """How the features of events are read.

    Attributes
    ----------
    is_raw
        Whether `Records` makes numbers of the features; if not, they are numbers.
    id, label, time
        Dotted names of fields of flat records; empty: there is no such field.
    transform
        Makes the features, from the event without its label; None: they are as the event has them.
    """

    is_raw: bool = False
    id: str = ""
    label: str = ""
    time: str = ""
    transform: Transform | None = None

    @property
    def is_flat(self) -> bool:
        """Whether events are flat records."""
        return bool(self.id or self.label or self.time)

    def event(self, fields: Fields, place: str) -> Fields:
        """The fields ``id``, ``x``, ``y``, ``w`` and ``ts`` of an event that came at this place of the log."""
        if self.is_flat:
            return self._of_flat(flat(fields), place)
        given = {**fields}
        if "x" in fields or self.transform is not None:
            given["x"] = self.features(fields)
        if self.is_raw and _is_blank(given.get("y")):
            given["y"] = None
        return given

    def features(self, fields: Fields) -> Any:
        """The features of an event."""
        if self.is_flat:
            return self._of_flat(flat(fields), "")["x"]
        x = fields.get("x") if self.transform is None else self._transformed(fields, "y")
        return flat(x) if self.is_raw and isinstance(x, Mapping) else x

    def _of_flat(self, fields: Mapping[str, Any], place: str) -> Fields:
        given: dict[str, Any] = {"id": place}
        if self.id:
            if fields.get(self.id) in _BLANK:
                raise BadRecord("missing-field", f"the record has no {self.id!r}, which features.id names")
            given["id"] = fields[self.id]
        label, time = fields.get(self.label), fields.get(self.time)
        if self.label and not _is_blank(label):
            given["y"] = label.strip() if isinstance(label, str) else label
        if self.time and is_time(time):  # if not, the time of the record in the log counts
            given["ts"] = time
        given["x"] = self.made({name: v for name, v in fields.items() if name not in (self.id, self.label)})
        return given

    def made(self, x: Mapping[str, Any]) -> Mapping[str, Any]:
        """The features that the user's function makes of a flat record without its id and its label."""
        return x if self.transform is None else flat(self._transformed(x))

    def _transformed(self, fields: Mapping[str, Any], label: str = "") -> Mapping[str, Any]:
        """What the user's function makes of an event without its label."""
        assert self.transform is not None
        try:
            made = self.transform({name: field for name, field in fields.items() if name != label})
        except Exception as error:  # it is not our code
            raise BadRecord("bad-transform", f"features.transform raised {type(error).__name__}: {error}") from None
        if not isinstance(made, Mapping):
            raise BadRecord("bad-transform", f"features.transform must return a dict of features, got {show(made)}")
        return {**made}


def flat(x: Any) -> Mapping[Any, Any]:
    """A record without nested objects, whose fields have dotted names; BadRecord if two have one name."""
    from streamsvm.features.nesting import flat as flattened

    try:
        return flattened(x)
    except TypeError as error:
        raise BadRecord("bad-features", str(error)) from None
    except ValueError as error:
        raise BadRecord("duplicate-field", str(error)) from None


def imported(path: str) -> Transform:
    """The function ``package.module:function``; `UnusableTransform` says why it cannot be imported."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except Exception as error:  # it is not our code
        raise UnusableTransform(f"features.transform = {path!r}: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UnusableTransform(f"features.transform = {path!r} is {found!r:.60}, which is not a function")
    return found


def _is_blank(v: Any) -> bool:
    return v is None or (isinstance(v, str) and not v.strip())
