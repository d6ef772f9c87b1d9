"""The classes that annotators choose among, on the page and in the terminal, and their keys."""

from collections.abc import Mapping
from typing import Any

from ..records.classes import ClassLabel, class_of
from ..settings.sections import LabelSettings

DIGITS = tuple("0123456789")
KEYS = "123456789abcdefgjklmoprtvwxy"  # the other letters say something else


class Choices:
    """The classes: positive and negative; or the listed ones and those that have come.

    Parameters
    ----------
    label
        What labels are.
    """

    def __init__(self, label: LabelSettings) -> None:
        self.label = label
        self._vocabulary = label.vocabulary

    @property
    def is_multiclass(self) -> bool:
        """Whether there are more than two classes."""
        return self._vocabulary is not None

    def classes(self, stats: Mapping[str, Any]) -> list[ClassLabel]:
        """The classes, in the order of their keys; `stats` are those of the labelling service."""
        if self._vocabulary is None:
            return [True, False]
        return list(dict.fromkeys([*self._vocabulary.listed, *(label for label, _ in stats.get("classes", ()))]))

    def names(self, stats: Mapping[str, Any]) -> list[str]:
        """The classes for people."""
        return [self.label.shown_as(label) for label in self.classes(stats)]

    def keys(self, stats: Mapping[str, Any]) -> dict[str, str]:
        """The key of each class, by its name for people; empty for a class without one.

        A digit has its own key, and the other classes have the first keys that are left.  A class that comes later
        changes no key of another.
        """
        names = self.names(stats)
        listed = names if self._vocabulary is None else names[: len(self._vocabulary.listed)]
        keys = {name: name for name in listed if name in DIGITS}
        for name in names:
            free = [key for key in KEYS if key not in keys.values()]
            is_own = name in DIGITS and name not in keys.values()
            keys.setdefault(name, name if is_own else next(iter(free), ""))
        return {name: keys[name] for name in names}

    def may_add(self, stats: Mapping[str, Any]) -> bool:
        """Whether an annotator may add a class."""
        return self._vocabulary is not None and len(self.classes(stats)) < self._vocabulary.limit

    def wanted(self, stats: Mapping[str, Any]) -> str:
        """What a label must be, for an error message."""
        ways = [f"one of {', '.join(map(repr, names))}"] if (names := self.names(stats)) else []
        return " or ".join([*ways, "the name of a new class"] if self.may_add(stats) else ways)

    def named(self, name: str, stats: Mapping[str, Any]) -> ClassLabel:
        """The class that an annotator names, perhaps a new one.

        Raises
        ------
        ValueError
            If there is no such class, and it cannot be added.
        """
        known = dict(zip(self.names(stats), self.classes(stats), strict=True))
        if name in known:
            return known[name]
        if self._vocabulary is None or not self._vocabulary.is_open:
            raise ValueError(f"label must be {self.wanted(stats)}, got {name!r:.100}")
        try:
            label = class_of(name)
        except ValueError as error:
            raise ValueError(f"label {error}") from None
        if not self.may_add(stats):
            raise ValueError(f"there are {len(known)} classes, and no room for {name!r:.100} (label.max_classes)")
        return label
