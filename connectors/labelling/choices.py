"""The classes that annotators choose among, on the page and in the terminal, and their keys."""

from collections.abc import Mapping
from typing import Any

from ..records.class_changes import ClassChange, ClassChanges, arranged
from ..records.classes import ClassLabel, alike, class_of
from ..settings.sections import LabelSettings
from .answer import Unusable

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
        return [label for label in self._places(stats).values() if label is not None]

    def _places(self, stats: Mapping[str, Any]) -> dict[ClassLabel, ClassLabel | None]:
        """The places of the classes, of which each keeps its key, and the class at each of them."""
        if self._vocabulary is None:
            return {True: True, False: False}
        known = [*self._vocabulary.listed, *(label for label, _ in stats.get("classes", ()))]
        return arranged(known, ClassChanges(stats.get("changes", ())).all)

    def names(self, stats: Mapping[str, Any]) -> list[str]:
        """The classes for people."""
        return [self.label.shown_as(label) for label in self.classes(stats)]

    def keys(self, stats: Mapping[str, Any]) -> dict[str, str]:
        """The key of each class, by its name for people; empty for a class without one.

        A digit has its own key, and the other classes have the first keys that are left.  A class that comes later
        changes no key of another, nor does one that is renamed, merged or removed.
        """
        places = self._places(stats)
        names = [self.label.shown_as(place) for place in places]
        listed = names if self._vocabulary is None else names[: len(self._vocabulary.listed)]
        keys = {name: name for name in listed if name in DIGITS}
        for name in names:
            free = [key for key in KEYS if key not in keys.values()]
            is_own = name in DIGITS and name not in keys.values()
            keys.setdefault(name, name if is_own else next(iter(free), ""))
        now = zip(names, places.values(), strict=True)
        return {self.label.shown_as(label): keys[name] for name, label in now if label is not None}

    def may_add(self, stats: Mapping[str, Any]) -> bool:
        """Whether an annotator may add a class."""
        return self._vocabulary is not None and len(self.classes(stats)) < self._vocabulary.limit

    def twin(self, name: str, stats: Mapping[str, Any]) -> ClassLabel | None:
        """The class that differs from a name in capitals and spaces only, or that once had this name; None: neither."""
        if self._vocabulary is None:
            return None
        try:
            now = ClassChanges(stats.get("changes", ())).meaning(class_of(name.strip()))
        except ValueError:
            return None
        present = self.classes(stats)
        if now in present:
            return now
        return next((label for label in present if alike(str(label)) == alike(name)), None)

    def wanted(self, stats: Mapping[str, Any]) -> str:
        """What a label must be, for an error message."""
        ways = [f"one of {', '.join(map(repr, names))}"] if (names := self.names(stats)) else []
        return " or ".join([*ways, "the name of a new class"] if self.may_add(stats) else ways)

    def named(self, name: str, stats: Mapping[str, Any]) -> ClassLabel:
        """The class that an annotator names, perhaps a new one.

        "Alpha" is the class "alpha" if there is that one.  The former name of a class is that class.

        Raises
        ------
        Unusable
            If there is no such class, and it cannot be added.
        """
        known = dict(zip(self.names(stats), self.classes(stats), strict=True))
        if name in known:
            return known[name]
        twin = self.twin(name, stats)
        if twin is not None:
            return twin
        if self._vocabulary is None or not self._vocabulary.is_open:
            raise Unusable(f"label must be {self.wanted(stats)}, got {name!r:.100}")
        try:
            label = class_of(name)
        except ValueError as error:
            raise Unusable(f"label {error}") from None
        if not self.may_add(stats):
            raise Unusable(f"there are {len(known)} classes, and no room for {name!r:.100} (label.max_classes)")
        return label

    def change(self, old: str, new: str | None, stats: Mapping[str, Any]) -> ClassChange:
        """What it means to give a class another name; its time and its author are not known yet.

        Parameters
        ----------
        old
            The class.
        new
            A new name; another class, to which the labels go; None: the labels are taken back.
        stats
            Those of the labelling service.

        Raises
        ------
        Unusable
            If there is no such class, or if the new name does not fit.
        """
        if self._vocabulary is None:
            raise Unusable("the two classes are named in the configuration: label.positive and label.negative")
        known = dict(zip(self.names(stats), self.classes(stats), strict=True))
        if old not in known:
            raise Unusable(f"there is no class {old!r:.100}")
        label = known[old]
        if new is None:
            return ClassChange("remove", label, None, 0, "")
        if new in known:
            if new == old:
                raise Unusable(f"{old!r:.100} has this name already")
            return ClassChange("merge", label, known[new], 0, "")
        return ClassChange("rename", label, self._new_name(label, new, stats), 0, "")

    def _new_name(self, old: ClassLabel, new: str, stats: Mapping[str, Any]) -> ClassLabel:
        assert self._vocabulary is not None
        try:
            label = class_of(new)
        except ValueError as error:
            raise Unusable(f"the name {error}") from None
        if not self._vocabulary.is_open and label not in self._vocabulary.listed:
            raise Unusable("label.classes in the configuration lists all classes: write the new name there")
        twin = self.twin(new, stats)
        if twin is not None and twin != old:
            whose = self.label.shown_as(twin)
            raise Unusable(f"{new!r:.100} is or was a name of {whose!r:.100}: merge them, or take another name")
        return label
