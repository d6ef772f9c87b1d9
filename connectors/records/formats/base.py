"""What all formats of events share: they turn the bytes of a record into named fields.

`codec` decides for all formats whether the fields make an event.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ...logs.transport import Headers

Fields = Mapping[str, Any]  # id, x, y, w and ts, as far as the record has them
Built = TypeVar("Built")


REASONS = (  # why a record may be refused
    "bad-erasure",
    "bad-feature",
    "bad-features",
    "bad-id",
    "bad-key",
    "bad-label",
    "bad-op",
    "bad-promotion",
    "bad-question",
    "bad-rev",
    "bad-source",
    "bad-transform",
    "bad-ts",
    "bad-weight",
    "duplicate-field",
    "killed-the-process",
    "long-feature-name",
    "missing-field",
    "not-an-object",
    "not-avro",
    "no-schema",
    "not-json",
    "not-protobuf",
    "not-utf8",
    "null-value",
    "too-large",
    "too-many-classes",
    "too-many-features",
    "unknown-schema",
    "unusable-schema",
)


class BadRecord(ValueError):  # noqa: N818 - names the thing that goes to the dead-letter topic
    """A record that cannot be used: a short fixed `reason` for machines, a `detail` for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Format(Protocol):
    """A way to write events as bytes."""

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """What `build` makes of the record's fields; raises `BadRecord` if they cannot be read."""

    def features(self, value: bytes) -> Any:
        """The field x of a record that was read before; it is not checked again."""


def show(value: Any) -> str:
    """A value for a message, shortened to 60 characters."""
    text = repr(value) if not isinstance(value, float) or math.isfinite(value) else "an infinite number or NaN"
    return text if len(text) <= 60 else f"{text[:57]}..."
