"""Replays the answers on a topic of labels, so that later readers reach the same labels as the trainer."""

from collections import defaultdict
from functools import partial

from ....records.class_changes import ClassChange
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
        self._before: dict[Place, ClassLabel] = {}  # the label of each event that was asked about again

    def change_class(self, partition: int, change: ClassChange) -> None:
        """Follow a change of the classes."""
        self._votes[partition].rename_class(change.old, change.new)
        for place, y in list(self._before.items()):
            if place.partition != partition or y != change.old:
                continue
            if change.new is None:
                del self._before[place]
            else:
                self._before[place] = change.new

    def hear(
        self, place: Place, query_id: str | None, label: Label, holding: ClassLabel | None, time: int
    ) -> Label | None:
        """What a label means for an event whose label `holding` holds; None: nothing new, or too few answers so far."""
        if query_id is None or not label.source:
            return as_set(label)
        if is_recheck(query_id) and self._answers == 1:
            if label.op == "retract":
                return label._replace(op="set", y=self._before[place]) if place in self._before else label
            if holding is not None:
                self._before.setdefault(place, holding)
        return self._votes[place.partition].hear(label, holding, time)
