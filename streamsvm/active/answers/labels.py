"""Which label of an example holds.

Of an example's labels and retractions, the one that was given last holds, in whatever order they arrive.  Of two that
were given at the same moment, the one that arrives last holds.
"""

from streamsvm.active.answers.events import Action, Answer, LoopCounts, Refuse, Retract, SetLabel
from streamsvm.active.answers.register import Record


def enter(record: Record, answer: Answer, counts: LoopCounts) -> Action:
    """Let this label hold, or none after a retraction, unless a later one does."""
    y = answer.y if answer.status == "label" else None
    if answer.time < record.time:
        return refuse(answer.key, "stale: a later one holds", counts)
    record.time = answer.time
    if y == record.y:
        why = "there is no label to retract" if y is None else "repeated: this label holds already"
        return refuse(answer.key, why, counts)
    before, record.y = record.y, y
    counts.change_labels(before, -1)
    counts.change_labels(y, 1)
    if y is None:
        counts.retracted += 1
        return Retract(answer.key, answer.annotator)
    counts.corrected += before is not None
    return SetLabel(answer.key, y, answer.annotator, is_correction=before is not None)


def refuse(key: int, why: str, counts: LoopCounts) -> Refuse:
    """Change nothing."""
    counts.refused += 1
    return Refuse(key, why)
