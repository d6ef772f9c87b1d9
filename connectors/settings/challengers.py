"""The sections [[challenger]], models in the shadow of the one that serves, and [comparison], how they are compared."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from ..runtime.moments import Moment, read_moment
from . import checks
from .checks import key
from .layers import Given, interpret
from .model import ModelSettings

FIRST = "model"  # the name of the model of [model] beside the challengers'
NOW = "now"  # the beginning of a challenger with the next record

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")


def _name(value: str) -> str | None:
    is_right = _NAME.fullmatch(value) and value != FIRST
    what = "1 to 50 letters, digits, '.', '_' or '-', beginning with a letter or digit, other than"
    return None if is_right else f"{what} {FIRST!r}"


_begin = checks.parsed(
    lambda value: value == NOW or read_moment(str(value)),
    '"now", "earliest", an offset, or a time such as "2026-05-31T12:00"',
)


@dataclass(frozen=True)
class ChallengerSettings:
    """A model in the shadow of the one that serves; there may be several ``[[challenger]]`` sections.

    It reads the same records, predicts them onto its own topic, learns the same labels, and is compared.  Its own model
    settings stand in ``[challenger.model]``; what is left out there is as in [model].

    Parameters
    ----------
    name
        Its name: letters, digits, ``.``, ``_`` and ``-``.  ``"model"`` is the model of [model].
    begin
        With which record it begins: ``"now"``, the next one; ``"earliest"``, the first one that the log has; an offset,
        which holds in each partition; or a time, such as ``"2026-05-31T12:00"``, in UTC without a zone.  It catches up
        while no record waits, and takes part when it is where the trainer is.
    topic
        Topic of its predictions.  Empty: log.predictions, ``-`` and the name.
    share
        Share of the events that it answers, from 0 to 1: log.predictions gets its predictions of these, and scorers
        predict them with it.  A hash of their keys chooses them; see comparison.split.  Default: it answers none.
    max_mb
        Megabytes of the challenger in a checkpoint.  A challenger that is larger is dropped.
    slowdown
        A challenger is dropped if it takes more than this many times the CPU time of the model that serves, counted
        after its first ten seconds.
    """

    name: str = key("", _name)
    begin: str | int = key(NOW, _begin)
    topic: str = key("", checks.optional_topic)
    share: float = key(0.0, checks.fraction)
    max_mb: float = key(256.0, checks.megabytes)
    slowdown: float = key(20.0, checks.positive)
    model: ModelSettings = field(default_factory=ModelSettings)

    @property
    def beginning(self) -> Moment:
        """With which record it begins, if that is not the next one."""
        return read_moment(str(self.begin))

    def fingerprint(self) -> dict[str, Any]:
        """What its state depends on, as the fingerprint of a checkpoint has it."""
        return model_fingerprint(self.model)


@dataclass(frozen=True)
class ComparisonSettings:
    """How challengers are compared with the model that serves, on the labels that both have predicted.

    Parameters
    ----------
    error
        Largest probability, over all times and challengers together, that an interval of one metric is ever wrong, or
        that a challenger is ever called better which is not.
    miss_cost
        What it costs to predict a positive event as negative, where the other error costs 1.  It is the metric
        ``cost``, with two classes.
    promote
        The metric by which a challenger that is better serves at once, by itself: ``"error"``, ``"g-mean"``,
        ``"log loss"``, ``"cost"`` or ``"decided"``.  Each partition decides alone.  Empty: only ``streamsvm promote``
        does that.
    split
        What chooses the model that answers an event, if challengers have a share: ``"key"``, so that one model answers
        all events of a record key, or ``"id"``, the event's id.  An event without a key goes by its id.
    """

    error: float = key(0.05, checks.up_to_a_half)
    miss_cost: float = key(1.0, checks.positive)
    promote: str = key("", checks.one_of("", "error", "g-mean", "log loss", "cost", "decided"))
    split: str = key("key", checks.one_of("key", "id"))


_OF_MODEL = {item.name for item in fields(ModelSettings)} - {item.name for item in fields(ChallengerSettings)}


def model_fingerprint(model: ModelSettings) -> dict[str, Any]:
    """The settings of a model that a checkpoint depends on, by dotted name."""
    values = {"algorithm": model.algorithm, **model.parameters(), **model.bounds()}
    del values["cache_mb"]  # It changes the memory, not the model.
    return {f"model.{name}": value for name, value in values.items()}


def read_challengers(
    origin: str, sections: Any, champion: ModelSettings, problems: list[str], *, is_checked: bool
) -> tuple[ChallengerSettings, ...]:
    """The challengers of a file.

    Parameters
    ----------
    origin
        The file's name, for messages.
    sections
        The value of the key `challenger`: a list of tables, if it is right.
    champion
        The settings of [model], which a challenger takes over.
    problems
        Gets a line for each problem.
    is_checked
        Whether to check the values of the models, which loads the engine.
    """
    if not isinstance(sections, list) or not all(isinstance(section, Mapping) for section in sections):
        problems.append(f"{origin}: write [[challenger]] with two brackets: there may be several")
        return ()
    found = []
    for number, section in enumerate(sections, 1):
        of_model = section.get("model", {})
        where = f"challenger.{section.get('name') or number}"
        if not isinstance(of_model, Mapping):
            problems.append(f"{origin}: {where}.model must be a section [challenger.model]")
            continue
        misplaced = [name for name in section if name in _OF_MODEL]
        problems += [f"{origin}: {where}.{name} belongs to [challenger.model]" for name in misplaced]
        own = {name: value for name, value in section.items() if name not in ("model", *misplaced)}
        values = dict(_values(ChallengerSettings, where, own, origin, problems))
        given = dict(_values(ModelSettings, f"{where}.model", of_model, origin, problems, is_checked=is_checked))
        if not section.get("name"):
            problems.append(f"{origin}: {where} needs a name")
        model = _as_in(champion, given) if is_checked else replace(champion, **given)
        found.append(ChallengerSettings(**values, model=model))
    return tuple(found)


def problems_of(challengers: Iterable[ChallengerSettings], is_multiclass: bool) -> Iterator[str]:
    """What is wrong with the models of challengers: a line for each problem."""
    for challenger in challengers:
        for problem in challenger.model.problems(is_multiclass):
            yield f"challenger {challenger.name!r}: {problem}"


def _values(
    section: Any, where: str, given: Mapping[str, Any], origin: str, problems: list[str], *, is_checked: bool = True
) -> Iterator[tuple[str, Any]]:
    for name, value in given.items():
        try:
            yield interpret(section, Given(where, name, value, origin, is_text=False), is_checked=is_checked)
        except ValueError as error:
            problems.append(str(error))


def _as_in(champion: ModelSettings, given: Mapping[str, Any]) -> ModelSettings:
    """The model with these values, and the champion's for what its algorithm also has."""
    algorithm = given.get("algorithm", champion.algorithm)
    has = {"algorithm", *ModelSettings(algorithm=algorithm).known}
    names = {item.name for item in fields(ModelSettings)} & has
    return ModelSettings(**{name: value for name, value in asdict(champion).items() if name in names} | dict(given))
