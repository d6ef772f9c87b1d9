"""Which model answers an event, where several share the stream: by a hash that is the same in every process.

Each name has a hash of its own, so that a new challenger gets other events than the one before it.
"""

from collections.abc import Mapping
from hashlib import blake2b


class Split:
    """Shares of the stream.

    Parameters
    ----------
    shares
        The share of each model, from 0 to 1, by its name; the rest is left to the model that serves.
    by_key
        Whether all events of a record key go to one model; events without a key, and all others, go by their ids.

    Attributes
    ----------
    shares, by_key
        As given, without shares of 0.

    Examples
    --------
    >>> split = Split({"new": 0.25}, by_key=True)
    >>> [split.of(b"user-%d" % i, 0) for i in range(5)]
    ['', '', '', 'new', '']
    """

    def __init__(self, shares: Mapping[str, float], *, by_key: bool) -> None:
        self.shares = {name: float(share) for name, share in shares.items() if share}
        self.by_key = by_key
        self._limits: dict[str, float] = {}  # the share of those events that no earlier model has taken
        rest = 1.0
        for name, share in self.shares.items():
            self._limits[name] = share / max(rest, share)
            rest -= share

    def __bool__(self) -> bool:
        return bool(self.shares)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Split) or [*self.shares.items()] != [*other.shares.items()]:  # in this order
            return False
        return self.by_key == other.by_key or not self

    __hash__ = None  # type: ignore[assignment]

    def of(self, key: bytes | None, number: int) -> str:
        """The model that answers an event, by its record's key and its id as 64 bits; empty: the one that serves."""
        if not self._limits:
            return ""
        what = b"key" + key if self.by_key and key is not None else b"id" + number.to_bytes(8, "little", signed=True)
        for name, limit in self._limits.items():
            drawn = int.from_bytes(blake2b(what, digest_size=8, key=name.encode()).digest(), "little")
            if drawn < limit * 2.0**64:
                return name
        return ""
