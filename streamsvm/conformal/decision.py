"""What a `ConformalClassifier` says about one example."""

from collections.abc import Hashable
from typing import Any, NamedTuple

new = tuple.__new__  # makes a named tuple of all its fields, in a third of the time of a call


class Decision(NamedTuple):
    """What was said about an example; its late label needs it.

    Attributes
    ----------
    labels
        The labels that cannot be excluded, the most probable first.
    p
        Probability of each label.
    margin
        The model's decision value or values, or None; see `learn_one` of the model.
    own
        Of two classes: the model's own probability of True, and the one that the recent errors correct it to.  The one
        that was lately better is used.
    known
        Number of labels that were known at the time.
    """

    labels: tuple[Hashable, ...]
    p: dict[Any, float]
    margin: Any
    own: tuple[float, float] | None
    known: int

    @property
    def decided(self) -> bool:
        """Whether one label is left, so that no person needs to be asked."""
        return len(self.labels) == 1

    @property
    def label(self) -> Any:
        """The most probable label; None before there is one."""
        return self.labels[0] if self.labels else None

    def is_wrong(self, y: Hashable) -> bool:
        """Whether this was decided alone, and the label is another one."""
        return len(self.labels) == 1 and self.labels[0] != y
