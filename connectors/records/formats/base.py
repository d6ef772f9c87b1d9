"""What a format of events does: turn the bytes of a record into named fields.

Whether the fields make an event is the same question for all formats; `wire` answers it.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from ...logs.transport import Headers

Fields = Mapping[str, Any]  # id, x, y, w and ts, as far as the record has them
Built = TypeVar("Built")


REASONS = (  # all that a record is refused for
    "bad-feature",
    "bad-features",
    "bad-id",
    "bad-key",
    "bad-label",
    "bad-op",
    "bad-question",
    "bad-rev",
    "bad-source",
    "bad-ts",
    "bad-weight",
    "duplicate-field",
    "killed-the-process",
    "long-feature-name",
    "missing-field",
    "not-an-object",
    "not-avro",
    "not-json",
    "not-utf8",
    "null-value",
    "too-large",
    "too-many-features",
    "unknown-schema",
)


class BadRecord(ValueError):  # noqa: N818 - names the thing that goes to the dead-letter topic
    """A record that cannot be used: a short fixed `reason` for machines, a `detail` for people."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail


class Format(Protocol):
    """One way to write events as bytes."""

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """What `build` makes of the record's fields; raises `BadRecord` if there are none to be read."""

    def features(self, value: bytes) -> Any:
        """The field x alone, of a record that was read before: what is known to hold is not checked again."""


def show(value: Any) -> str:
    """A value as a message shows it: of bounded length."""
    text = repr(value) if not isinstance(value, float) or math.isfinite(value) else "no finite number"
    return text if len(text) <= 60 else f"{text[:57]}..."
