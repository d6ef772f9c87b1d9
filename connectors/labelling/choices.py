"""The classes that annotators choose among, on the page and in the terminal, and their keys."""

from collections.abc import Mapping
from types import MappingProxyType
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
    stats
        Those of the labelling service: which classes have come, and how people have changed them.

    Attributes
    ----------
    known : dict of str to ClassLabel
        The classes by their names for people, in the order of their keys.
    """

    def __init__(self, label: LabelSettings, stats: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._shown_as, self._vocabulary = label.shown_as, label.vocabulary
        self._changes = ClassChanges(stats.get("changes", ()))
        # The places of the classes, of which each keeps its key, and the class at each of them.
        self._places: dict[ClassLabel, ClassLabel | None] = {True: True, False: False}
        if label.vocabulary is not None:
            come = [y for y, _ in stats.get("classes", ())]
            self._places = arranged([*label.vocabulary.listed, *come], self._changes.all)
        self.known = {label.shown_as(y): y for y in self._places.values() if y is not None}

    def keys(self) -> dict[str, str]:
        """The key of each class, by its name for people; empty for a class without one.

        A digit has its own key, and the other classes have the first keys that are left.  A class that comes later
        changes no key of another, nor does one that is renamed, merged or removed.
        """
        names = [self._shown_as(place) for place in self._places]
        listed = names if self._vocabulary is None else names[: len(self._vocabulary.listed)]
        keys = {name: name for name in listed if name in DIGITS}
        for name in names:
            free = [key for key in KEYS if key not in keys.values()]
            is_own = name in DIGITS and name not in keys.values()
            keys.setdefault(name, name if is_own else next(iter(free), ""))
        now = zip(names, self._places.values(), strict=True)
        return {self._shown_as(label): keys[name] for name, label in now if label is not None}

    @property
    def may_add(self) -> bool:
        """Whether an annotator may add a class."""
        return self._vocabulary is not None and len(self.known) < self._vocabulary.limit

    def twin(self, name: str) -> ClassLabel | None:
        """The class that differs from a name in capitals and spaces only, or that once had this name; None: neither."""
        if self._vocabulary is None:
            return None
        try:
            now = self._changes.meaning(class_of(name.strip()))
        except ValueError:
            return None
        present = self.known.values()
        if now in present:
            return now
        return next((label for label in present if alike(str(label)) == alike(name)), None)

    def wanted(self) -> str:
        """What a label must be, for an error message."""
        ways = [f"one of {', '.join(map(repr, names))}"] if (names := [*self.known]) else []
        return " or ".join([*ways, "the name of a new class"] if self.may_add else ways)

    def named(self, name: str) -> ClassLabel:
        """The class that an annotator names, perhaps a new one.

        "Alpha" is the class "alpha" if there is that one.  The former name of a class is that class.

        Raises
        ------
        Unusable
            If there is no such class, and it cannot be added.
        """
        if name in self.known:
            return self.known[name]
        twin = self.twin(name)
        if twin is not None:
            return twin
        if self._vocabulary is None or not self._vocabulary.is_open:
            raise Unusable(f"label must be {self.wanted()}, got {name!r:.100}")
        label = _class_of(name, "label")
        if not self.may_add:
            raise Unusable(f"there are {len(self.known)} classes, and no room for {name!r:.100} (label.max_classes)")
        return label

    def change(self, old: str, new: str | None) -> ClassChange:
        """What it means to give a class another name; its time and its author are not known yet.

        Parameters
        ----------
        old
            The class.
        new
            A new name; another class, to which the labels go; None: the labels are taken back.

        Raises
        ------
        Unusable
            If there is no such class, or if the new name does not fit.
        """
        if self._vocabulary is None:
            raise Unusable("the two classes are named in the configuration: label.positive and label.negative")
        if old not in self.known:
            raise Unusable(f"there is no class {old!r:.100}")
        label = self.known[old]
        if new is None:
            return ClassChange("remove", label, None, 0, "")
        if new in self.known:
            if new == old:
                raise Unusable(f"{old!r:.100} has this name already")
            return ClassChange("merge", label, self.known[new], 0, "")
        return ClassChange("rename", label, self._new_name(label, new), 0, "")

    def _new_name(self, old: ClassLabel, new: str) -> ClassLabel:
        assert self._vocabulary is not None
        label = _class_of(new, "the name")
        if not self._vocabulary.is_open and label not in self._vocabulary.listed:
            raise Unusable("label.classes in the configuration lists all classes: write the new name there")
        twin = self.twin(new)
        if twin is not None and twin != old:
            whose = self._shown_as(twin)
            raise Unusable(f"{new!r:.100} is or was a name of {whose!r:.100}: merge them, or take another name")
        return label


def _class_of(name: str, what: str) -> ClassLabel:
    try:
        return class_of(name)
    except ValueError as error:
        raise Unusable(f"{what} {error}") from None
