"""Replays the answers on a topic of labels, so that later readers reach the same labels as the trainer."""

from collections import defaultdict
from functools import partial

from ....records.class_changes import ClassChange, rename_values
from ....records.classes import ClassLabel
from ....records.labels import Label, Place, as_set
from ....records.people.questions import is_recheck
from .votes import Votes


class Hearing:
    """Repeats what the trainer has made of each answer.

    Parameters
    ----------
    answers
        Number of answers that a question wants.
    """

    def __init__(self, answers: int) -> None:
        self._answers = answers
        self._votes: defaultdict[int, Votes] = defaultdict(partial(Votes, answers))  # by partition
        # The label of each event that was asked about again, by partition.
        self._before: defaultdict[int, dict[Place, ClassLabel]] = defaultdict(dict)

    def change_class(self, partition: int, change: ClassChange) -> None:
        """Follow a change of the classes."""
        self._votes[partition].rename_class(change.old, change.new)
        rename_values(self._before[partition], change.old, change.new)

    def hear(
        self, place: Place, query_id: str | None, label: Label, holding: ClassLabel | None, time: int
    ) -> Label | None:
        """What a label means for an event whose label `holding` holds; None: nothing new, or too few answers so far."""
        if query_id is None or not label.source:
            return as_set(label)
        if is_recheck(query_id) and self._answers == 1:
            before = self._before[place.partition]
            if label.op == "retract":
                return label._replace(op="set", y=before[place]) if place in before else label
            if holding is not None:
                before.setdefault(place, holding)
        return self._votes[place.partition].hear(label, holding, time)
