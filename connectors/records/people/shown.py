"""What people see of an event: its features if they are numbers, and its other fields."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

_OWN_FIELDS = ("id", "x", "y", "w")


class Shown(NamedTuple):
    """Which parts of an event's record people see.

    Attributes
    ----------
    is_raw
        Whether features are what a raw record has, and not numbers.
    is_flat
        Whether the whole of a record is its features, so that it has no other fields.
    is_json
        Whether records are JSON; others have no other fields.
    """

    is_raw: bool
    is_flat: bool
    is_json: bool

    def numbers(self, x: Mapping[str, Any]) -> Mapping[str, float]:
        """The features, if they are numbers."""
        return {} if self.is_raw else x

    def fields(self, value: bytes, x: Mapping[str, Any]) -> dict[str, Any]:
        """What only people read: an event's other fields, and those of a raw record, which are no numbers.

        Parameters
        ----------
        value
            The event's record.
        x
            Its features.
        """
        raw = {name: v for name, v in x.items() if not isinstance(v, bytes)} if self.is_raw else {}
        return raw | self._other_fields(value)

    def _other_fields(self, value: bytes) -> dict[str, Any]:
        if self.is_flat or not self.is_json:
            return {}
        return {name: field for name, field in json.loads(value).items() if name not in _OWN_FIELDS}
