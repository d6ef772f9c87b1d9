"""Packed numbers as an event format: the features as little-endian float32, everything else in the record's headers.

| header | content |
| --- | --- |
| ``sv-id`` | the id, as text: a label names it by a JSON string |
| ``sv-y`` | the label, if known: ``1``, ``+1``, ``0``, ``-1``, ``true``, ``false``, a label's name, or a class |
| ``sv-w`` | the weight, a JSON number |
| ``sv-ts`` | the time, a JSON number or other text |

An empty header, or ``null``, counts as missing.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ...logs.transport import Headers
from .base import BadRecord, Built, Fields

LABELS = {"1": True, "+1": True, "true": True, "0": False, "-1": False, "false": False}

_MISSING = (b"", b"null")  # a header of Kafka may be null, which is read as an empty one
_FIELDS = {"sv-id": "id", "sv-y": "y", "sv-w": "w", "sv-ts": "ts"}


class Float32Format:
    """Events as packed float32; see the module.

    Parameters
    ----------
    labels
        The meaning of texts as labels; other texts are labels themselves.
    """

    def __init__(self, labels: Mapping[str, bool]) -> None:
        self._labels = labels

    def read(self, value: bytes, headers: Headers, build: Callable[[Fields], Built]) -> Built:
        """What `build` makes of the numbers and the headers."""
        fields: dict[str, Any] = {"x": self.features(value)}
        for header, content in headers:
            name = _FIELDS.get(header)
            if name in fields:
                raise BadRecord("duplicate-field", f"the header {header!r} appears more than once")
            if name is not None and (name == "id" or content not in _MISSING):
                fields[name] = self._field(header, name, content)
        if "id" not in fields:
            raise BadRecord("missing-field", "the record has no header 'sv-id'")
        return build(fields)

    def features(self, value: bytes) -> list[float]:
        """The numbers in order."""
        n_features, rest = divmod(len(value), 4)
        if rest:
            raise BadRecord("bad-features", f"the record has {len(value)} bytes, not a multiple of 4 (float32)")
        return list(struct.unpack(f"<{n_features}f", value))

    def _field(self, header: str, name: str, content: bytes) -> Any:
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadRecord("not-utf8", f"the header {header!r}: {error}") from None
        if name == "id":
            return text
        if name == "y":
            return self._labels.get(text, text)
        number = _json_number(content)
        return text if number is None else number


def _json_number(content: bytes) -> int | float | None:
    try:
        number = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    return number if type(number) in (int, float) else None
