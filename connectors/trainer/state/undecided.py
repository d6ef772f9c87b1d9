"""The questions of a trainer that decides: every event that it did not decide, and a random share of the others.

The answers about the random share show how often decisions are wrong, so only they count beside the undecided events.
Whether an event belongs to it follows from its id alone: a restart, a correction and another trainer say the same.
"""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from streamsvm.active import Choice, Reason, Selection
from streamsvm.active.choosing.selection import chosen
from streamsvm.conformal import Decision

OPEN = 100  # questions that wait at once by default: none depends on the answers to the others
_SAVED = 100.0  # questions that a share of the events may save up


class Undecided(Selection):
    """Chooses the checks first, then the undecided events, the oldest of each first.

    Parameters
    ----------
    share
        Share of the decided events that are checked.
    most
        Largest share of all events that are asked about; 0: no limit.  Checks are asked about in any case, and count.
    name
        Name of the stream: two of them check different events.
    """

    def __init__(self, share: float, most: float, name: str) -> None:
        self._below, self._most, self._name = int(share * 2**64), most, name.encode()
        self.why = f"people answer what is not decided, and check {100 * share:.3g}% of the decisions"
        self._saved = 0.0  # questions that may be asked by `most`
        self._checks: dict[int, None] = {}  # the oldest first

    def counts(self, key: int, said: Decision) -> bool:
        """Whether the label of an event says something about decisions: it was not decided, or it is checked."""
        if not said.decided:
            return True
        drawn = blake2b(self._name + key.to_bytes(8, "little", signed=True), digest_size=8).digest()
        return int.from_bytes(drawn, "little") < self._below

    def wants(self, key: int, said: Decision) -> bool:
        """Whether to ask about an event, the next one of the stream."""
        self._saved = min(self._saved + self._most, _SAVED)
        if not self.counts(key, said) or (self._most and not said.decided and self._saved < 1.0):
            return False
        self._saved -= 1.0
        if said.decided:
            self._checks[key] = None
        return True

    def choose(self, pool: Any, model: Any, rng: np.random.Generator) -> Choice:
        """The oldest check, or else the oldest undecided event."""
        while self._checks and next(iter(self._checks)) not in pool:  # forgotten, labelled or asked about
            del self._checks[next(iter(self._checks))]
        key = next(iter(self._checks), None)
        reason: Reason = "check"
        if key is None:
            key, reason = next(pool.oldest()), "undecided"
        return chosen(pool, model, key, 1, reason)

    def state(self) -> dict[str, Any]:
        """What was noted, as JSON can hold it."""
        return {"saved": self._saved, "checks": list(self._checks)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the selection whose `state` this was."""
        self._saved, self._checks = float(state["saved"]), dict.fromkeys(state["checks"])
