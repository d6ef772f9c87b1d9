"""Which label of an example holds.

Of an example's labels and retractions, the one that was given last holds, in whatever order they arrive.  Of two that
were given at the same moment, the one that arrives last holds.
"""

from streamsvm.active.answers.events import Action, Answer, LoopCounts, Refuse, Retract, SetLabel
from streamsvm.active.answers.register import Record


def set_label(record: Record, answer: Answer, counts: LoopCounts) -> Action:
    """Let this label hold, unless a later one does."""
    assert answer.y is not None
    if answer.time < record.time:
        return refuse(answer.key, "stale: a later one holds", counts)
    record.time = answer.time
    if answer.y == record.y:
        return refuse(answer.key, "repeated: this label holds already", counts)
    is_correction = record.y is not None
    counts.change_labels(record.y, -1)
    counts.change_labels(answer.y, 1)
    record.y = answer.y
    counts.corrected += is_correction
    return SetLabel(answer.key, answer.y, answer.annotator, is_correction)


def retract(record: Record, answer: Answer, counts: LoopCounts) -> Action:
    """Let no label hold, unless a later one does."""
    if answer.time < record.time:
        return refuse(answer.key, "stale: a later one holds", counts)
    record.time = answer.time
    if record.y is None:
        return refuse(answer.key, "there is no label to retract", counts)
    counts.change_labels(record.y, -1)
    record.y = None
    counts.retracted += 1
    return Retract(answer.key, answer.annotator)


def refuse(key: int, why: str, counts: LoopCounts) -> Refuse:
    """Change nothing."""
    counts.refused += 1
    return Refuse(key, why)
