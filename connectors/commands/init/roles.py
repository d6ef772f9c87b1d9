"""Which field is the id, which the label and which the time, and what is said about that."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streamsvm.features.values import CATEGORY, ID, IGNORE, NUMBER, TIME

from ...records.classes import alike
from ...records.columns import canonical
from ...settings.sections import ConfigError
from .fields import MOST_CLASSES, Field, Table

LABELS = frozenset(("label", "labels", "target", "class", "y", "outcome", "response", "truth"))
IDS = frozenset(("id", "uuid", "guid", "key", "eventid", "recordid", "rowid", "messageid", "index", "unnamed0"))
POSITIVE = frozenset(("1", "true", "yes", "y", "t", "positive", "pos", "spam", "fraud", "bad", "abnormal", "attack"))
PLAIN = ({"1", "0"}, {"1", "-1"}, {"true", "false"})  # labels that need no names
MOST_GUESSED = 20  # values of a field that may be the label
RARE = 0.1  # share of the rarer class below which it is weighted


@dataclass
class Roles:
    """What each field is for.

    Attributes
    ----------
    id, label, time
        Name of the field, or None.
    why
        Why it is this one, by role; of a missing one, why there is none.
    candidates
        Fields that may be the label, if none is.
    classes
        The values of the label and how often they came.
    positive, negative
        The values of two classes.
    kinds
        The kind of every other field.
    left_out
        Why a field is no feature, by name.
    """

    id: str | None = None
    label: str | None = None
    time: str | None = None
    why: dict[str, str] = field(default_factory=dict)
    candidates: list[str] = field(default_factory=list)
    classes: dict[Any, int] = field(default_factory=dict)
    positive: Any = None
    negative: Any = None
    kinds: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def is_named(self) -> bool:
        """Whether the two classes need names in the configuration."""
        return {str(label) for label in self.classes} not in PLAIN or canonical(self.positive) != "1"

    @property
    def n_labels(self) -> int:
        """How many records have a label."""
        return sum(self.classes.values())

    @property
    def rarest(self) -> float:
        """Share of the rarest class."""
        return min(self.classes.values()) / self.n_labels if self.classes else 1.0


def roles_of(fields: Mapping[str, Field], n_records: int, given: Mapping[str, str | None]) -> Roles:
    """Find the roles of fields.

    Parameters
    ----------
    fields, n_records
        The fields, and the number of records.
    given
        What the user says about ``"id"``, ``"label"``, ``"time"`` and ``"positive"``; None: nothing.  The label ``""``:
        no field is it.

    Raises
    ------
    ConfigError
        If a given field does not exist, or cannot be what it should.
    """
    roles = Roles()
    for role in ("id", "label", "time"):
        name = given[role]
        if name is not None and name not in fields and (role, name) != ("label", ""):
            raise ConfigError(f"--{role} {name}: no record has this field; there are {', '.join(fields)}")
    _choose_id(roles, fields, n_records, given["id"])
    _choose_label(roles, fields, given["label"])
    _choose_time(roles, fields, n_records, given["time"])
    if roles.label is not None:
        _choose_positive(roles, given["positive"])
    _judge_others(roles, fields)
    return roles


def roles_of_events(table: Table, given: Mapping[str, str | None]) -> Roles:
    """The roles of the fields in the features x of events, which have id, label and time beside them."""
    for role in ("id", "label", "time"):
        if given[role] is not None:
            raise ConfigError(f"--{role} {given[role]}: the records are events, which have id, x, y and ts")
    roles = Roles(classes=table.labels.classes)
    if len(roles.classes) >= 2:
        _choose_positive(roles, given["positive"])
    else:
        roles.classes = {}
    _judge_others(roles, table.judged())
    return roles


def _choose_id(roles: Roles, fields: Mapping[str, Field], n_records: int, given: str | None) -> None:
    unique = [name for name, of in fields.items() if name and of.all_differ and of.n_present == n_records > 1]
    if given is not None:
        if given not in unique:
            raise ConfigError(f"--id {given}: some records have no value there, or have the same one")
        roles.id, roles.why["id"] = given, "as given"
        return
    named = [name for name in unique if is_id(name)]
    many = unique if n_records >= MOST_GUESSED else []
    others = [name for name in many if fields[name].kind in (ID, CATEGORY) and not fields[name].has_commas]
    counts = [name for name in many if fields[name].counts]
    for found, why in (
        (named, "its name, and all values differ"),
        (others, "all values differ"),
        (counts, "it numbers the records"),
    ):
        if found:
            roles.id, roles.why["id"] = found[0], why
            return
    roles.why["id"] = "no field names each record: an event's id is its place, TOPIC-PARTITION-OFFSET"


def is_id(name: str) -> bool:
    """Whether a field's name says that it is an id."""
    plain = re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].casefold())
    return plain in IDS or bool(re.search(r"(_|-|\b)(?i:id)$|[a-z](Id|ID)$", name))


def _choose_label(roles: Roles, fields: Mapping[str, Field], given: str | None) -> None:
    if given == "":
        roles.why["label"] = "as given"
    elif given is not None:
        found = fields[given]
        if len(found.classes) < 2:
            n = f"more than {MOST_CLASSES} different values" if found.values is None else "one value only"
            raise ConfigError(f"--label {given}: the field has {n}; a label tells two classes or more apart")
        if 2 * len(found.classes) > found.n_present > 4:
            n = f"{len(found.classes)} different values in {found.n_present} records"
            raise ConfigError(f"--label {given}: the field has {n}; a label's values come again and again")
        roles.label, roles.why["label"] = given, "as given"
    else:
        possible = [
            name
            for name, of in fields.items()
            if name != roles.id and of.kind not in (TIME, None) and 2 <= len(of.classes) <= MOST_GUESSED
        ]
        named = [name for name in possible if name.rpartition(".")[2].casefold() in LABELS]
        if len(named) == 1 or len(possible) == 1:
            (roles.label,) = named if len(named) == 1 else possible
            roles.why["label"] = "its name" if len(named) == 1 else "no other field has two values or a few"
        else:
            possible.reverse()  # The label is often the last column.
            roles.candidates = sorted(possible, key=lambda name: len(fields[name].classes))
            roles.why["label"] = (
                "several fields may be it" if possible else f"no field has 2 to {MOST_GUESSED} different values"
            )
    if roles.label is not None:
        roles.classes = fields[roles.label].classes
        _require_one_spelling(roles.label, roles.classes)


def _require_one_spelling(label: str, classes: Mapping[Any, int]) -> None:
    """Raise ConfigError if two classes differ in case or blanks only: they are one."""
    known: dict[str, Any] = {}
    for name in classes:
        other = known.setdefault(alike(str(name)), name)
        if other is not name:
            raise ConfigError(f"the label {label} has {other!r} and {name!r}: write each class in one way only")


def _choose_time(roles: Roles, fields: Mapping[str, Field], n_records: int, given: str | None) -> None:
    if given is not None:
        roles.time, roles.why["time"] = given, "as given"
        return
    rising = [name for name, of in fields.items() if of.tells_time(n_records) and name not in (roles.id, roles.label)]
    if rising:
        n_falling = fields[rising[0]].n_falling
        roles.time = rising[0]
        roles.why["time"] = "it rises from record to record" + (f", but for {n_falling}" if n_falling else "")
    else:
        roles.why["time"] = "no field has a time that rises from record to record: the time of writing counts"


def _choose_positive(roles: Roles, given: str | None) -> None:
    labels = list(roles.classes)
    if given is not None:
        found = [label for label in labels if canonical(label) == canonical(given)]
        if not found:
            shown = ", ".join(map(str, labels[:MOST_GUESSED]))
            raise ConfigError(f"--positive {given}: the label has no such value; it has {shown}")
        if len(labels) > 2:
            raise ConfigError(f"--positive {given}: the label has {len(labels)} values, which are all classes")
        roles.positive, roles.why["positive"] = found[0], "as given"
    if len(labels) > 2:
        return
    words = [label for label in labels if canonical(label).casefold() in POSITIVE]
    if roles.positive is None:
        roles.positive = words[0] if len(words) == 1 else min(labels, key=lambda label: roles.classes[label])
        roles.why["positive"] = "by its name" if len(words) == 1 else "the rarer one"
    roles.negative = next(label for label in labels if label != roles.positive)


def _judge_others(roles: Roles, fields: Mapping[str, Field]) -> None:
    for name, of in fields.items():
        if name in (roles.id, roles.label):
            continue
        why = _why_left_out(name, of)
        if why:
            roles.left_out[name] = why
        roles.kinds[name] = IGNORE if why else str(of.kind)


def _why_left_out(name: str, of: Field) -> str:
    if of.kind is None:
        return of.remark or "no value"
    if of.kind == ID:
        return "all values differ" + (", and they have decimal commas" if of.has_commas else "")
    if len(of.classes) == 1:
        return "one value only"
    if of.all_differ and of.kind == NUMBER and (is_id(name) or not name or of.counts) and of.n_present > 1:
        return "numbers the records"
    return ""
