"""What is known of an example that was asked about or answered, and the ids of questions."""

import uuid
from dataclasses import dataclass
from functools import lru_cache

from streamsvm.active.answers.events import Label, Question
from streamsvm.core.arguments import LARGEST_ID

LATER = "later"
ALIKE = "alike"
ENDED = 10_000  # examples whose question has ended, and as many that were labelled without one

_NAMESPACE = uuid.UUID("5f0c8a0e-6f0b-4b52-9d3c-5a0d6f5d8f11")  # of the loops' names


@dataclass(slots=True)
class Record:
    """What is known of an example that was asked about or answered.

    question
        None if it was never asked about.
    status
        "open", or how the question ended; "elsewhere" if there was none, or `LATER` if the example came when a promise
        of recall took in no examples any more, or `ALIKE` if it is a near-duplicate of one that was asked about.
    y
        The label that holds.
    time
        When the newest label or retraction was given.
    """

    question: Question | None
    status: str
    y: Label | None = None
    time: int = -LARGEST_ID - 1  # before all times

    @property
    def is_without_label(self) -> bool:
        """Whether the example may still get a label: it has none, and is not to be ignored."""
        return self.y is None and self.status != "ignored"


def question_id(name: str, key: int) -> str:
    """The id of the question that a loop of this name asks about an example, now or ever."""
    return str(uuid.uuid5(_namespace(name), str(key)))


@lru_cache(64)
def _namespace(name: str) -> uuid.UUID:
    return uuid.uuid5(_NAMESPACE, name)
