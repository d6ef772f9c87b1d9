"""The interface of stopping rules, and how rules combine; `stopping_rules` and `audited` have the rules themselves.

A rule is told the first answer to each question.  It says whether to stop, why (for the annotators), and whether the
next questions should be random, because it wants to check what the selection cannot see.  `a | b` stops when one of the
rules does, `a & b` when both do.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, NamedTuple

from streamsvm.core import arguments

CONFIDENCE = 0.95  # with which a rule says how much may still be missed

Class = bool | str | int  # a label


class Answered(NamedTuple):
    """The first answer to a question.

    margin
        f(x) by the model that asked.
    y
        The label; with more than two classes, whether it is the predicted class, for which the margin speaks.
    reason
        Why it was asked: "seed", "boundary", "novel", "explore" or "audit".
    n_support
        Support vectors that the model had.
    n_labels
        Labels that hold by now, with this one.
    n_offered
        Examples that have been offered to the pool so far.
    classes
        With more than two classes, those that it is about: the answer, and the predicted class if that is another one.
    """

    margin: float
    y: bool
    reason: str
    n_support: int
    n_labels: int
    n_offered: int
    classes: tuple[Class, ...] = ()

    @property
    def violates(self) -> bool:
        """Whether the label violates the margin, y f(x) < 1."""
        return (self.margin if self.y else -self.margin) < 1.0


class Verdict(NamedTuple):
    """What a rule says.

    stop
        Whether to stop asking.
    audit
        Whether the next question should be about a random example.
    why
        One sentence for the annotators.
    spent
        Whether it stops only because a label quota is spent, which says nothing about the model.
    """

    stop: bool
    audit: bool
    why: str
    spent: bool = False


class StoppingRule(ABC):
    """Hears of answers, and says when there are enough.

    A rule is a dataclass, whose fields are its parameters.  What it has observed is in fields that begin with an
    underscore and are no parameters, ``field(init=False)``.  `state` has these only: others are lost when a trainer
    starts again.
    """

    @abstractmethod
    def observe(self, answered: Answered) -> None:
        """Take note of the first answer to a question.  Corrections are not reported."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """Whether to stop by now, whether to audit, and why."""

    def remaining(self) -> int | None:
        """Number of labels left in the quota; None if the rule sets no quota."""
        return None

    def offered(self, n_offered: int) -> None:  # noqa: B027 # only `MaxFraction` needs to know
        """Take note of the number of examples offered so far, before a question is chosen."""

    def waits_for(self) -> tuple[Class, ...]:
        """The classes that alone hold the rule back: it would stop without them."""
        return ()

    def used_up(self, label: Class) -> None:  # noqa: B027 # only `EachClass` needs to know
        """Take note that the pool has no example left that the model takes for this class."""

    def drop_class(self, label: Class) -> None:  # noqa: B027 # only `EachClass` needs to know
        """Take note that there is no such class any more: it was renamed, merged or removed."""

    def singles(self) -> list["StoppingRule"]:
        """The rules that this one is made of."""
        return [self]

    def state(self) -> dict[str, Any]:
        """What was observed, as JSON can hold it."""
        observed = {name[1:]: copy.deepcopy(getattr(self, name)) for name in self._observed()}
        return {"rule": type(self).__name__} | observed

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the rule whose `state` this was; a ValueError if that was another kind of rule."""
        self._require_own(state)
        for name in self._observed():
            setattr(self, name, copy.deepcopy(state[name[1:]]))

    def _require_own(self, state: Mapping[str, Any]) -> None:
        if state["rule"] != type(self).__name__:
            raise ValueError(f"the state is one of {state['rule']}, this rule is {type(self).__name__}")

    def _observed(self) -> list[str]:
        """The fields that are not parameters.  They begin with an underscore."""
        return [f.name for f in fields(self) if not f.init]  # type: ignore[arg-type] # every rule is a dataclass

    def __or__(self, other: "StoppingRule") -> "AnyOf":
        return AnyOf(self, other)

    def __and__(self, other: "StoppingRule") -> "AllOf":
        return AllOf(self, other)


class _Combined(StoppingRule):
    """Several rules as one rule."""

    def __init__(self, *rules: StoppingRule) -> None:
        if not rules:
            raise ValueError(f"{type(self).__name__}() needs at least one rule")
        for rule in rules:
            arguments.require_a("rules", rule, StoppingRule, "stopping rules such as MaxLabels(100)")
        self.rules = rules

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.rules))})"

    def singles(self) -> list[StoppingRule]:
        return [single for rule in self.rules for single in rule.singles()]

    def observe(self, answered: Answered) -> None:
        for rule in self.rules:
            rule.observe(answered)

    def offered(self, n_offered: int) -> None:
        for rule in self.rules:
            rule.offered(n_offered)

    def used_up(self, label: Class) -> None:
        for rule in self.rules:
            rule.used_up(label)

    def drop_class(self, label: Class) -> None:
        for rule in self.rules:
            rule.drop_class(label)

    def state(self) -> dict[str, Any]:
        return {"rule": type(self).__name__, "rules": [rule.state() for rule in self.rules]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._require_own(state)
        if len(state["rules"]) != len(self.rules):
            raise ValueError(f"the state is one of {len(state['rules'])} rules, these are {len(self.rules)}")
        for rule, part in zip(self.rules, state["rules"], strict=True):
            rule.restore(part)


class AnyOf(_Combined):
    """Stop when one of the rules does.  Audit when one of them wants to and none stops.

    Examples
    --------
    >>> from streamsvm.active import Audited, MaxLabels
    >>> Audited() | MaxLabels(500)
    AnyOf(Audited(calm=120), MaxLabels(max_labels=500))
    """

    def verdict(self) -> Verdict:
        verdicts = [rule.verdict() for rule in self.rules]
        stop = any(v.stop for v in verdicts)
        audit = not stop and any(v.audit for v in verdicts)
        spent = stop and all(v.spent for v in verdicts if v.stop)
        return Verdict(stop, audit, "; ".join(v.why for v in verdicts if v.stop or not stop), spent)

    def waits_for(self) -> tuple[Class, ...]:
        return () if self.verdict().stop else _together(rule.waits_for() for rule in self.rules)

    def remaining(self) -> int | None:
        quotas = [left for rule in self.rules if (left := rule.remaining()) is not None]
        return min(quotas, default=None)


class AllOf(_Combined):
    """Stop when all of the rules do.  Audit when one of them wants to.

    Examples
    --------
    >>> from streamsvm.active import MarginExhausted, SupportStable
    >>> SupportStable() & MarginExhausted()
    AllOf(SupportStable(tolerance=0.02, over=0.2, at_least=59), MarginExhausted(pool=59))
    """

    def verdict(self) -> Verdict:
        verdicts = [rule.verdict() for rule in self.rules]
        stop, spent = all(v.stop for v in verdicts), all(v.spent for v in verdicts)
        return Verdict(stop, any(v.audit for v in verdicts), "; ".join(v.why for v in verdicts), spent)

    def waits_for(self) -> tuple[Class, ...]:
        parts = [rule.waits_for() for rule in self.rules if not rule.verdict().stop]
        return _together(parts) if all(parts) else ()

    def remaining(self) -> int | None:
        quotas = [rule.remaining() for rule in self.rules]
        return None if None in quotas else max(left for left in quotas if left is not None)


def _together(parts: Iterable[tuple[Class, ...]]) -> tuple[Class, ...]:
    """The classes of several tuples, each once."""
    return tuple(dict.fromkeys(label for part in parts for label in part))


def inherited_state(rules: AnyOf, before: Mapping[str, Any] | None, n_answered: int, n_offered: int) -> dict[str, Any]:
    """The state from which `rules` go on after other rules were followed.

    A rule that was among those goes on from its own state, whatever its parameters are now.  A new rule begins from
    scratch, but a quota counts the labels that were spent before.

    Parameters
    ----------
    rules
        The rules from now on, newly made.
    before
        The state of the rules until now, which were an `AnyOf` too; None if there were none.
    n_answered
        Number of questions answered until now.
    n_offered
        Number of examples offered until now.

    Returns
    -------
    dict
        What `rules.restore` takes.
    """
    known = {part["rule"]: part for part in _singles_of(before)} if before else {}
    spent = {"spent": n_answered, "offered": n_offered}

    def inherited(fresh: Mapping[str, Any]) -> dict[str, Any]:
        if "rules" in fresh:
            return {**fresh, "rules": [inherited(part) for part in fresh["rules"]]}
        new = {name: spent.get(name, fresh[name]) for name in fresh}
        return {**fresh, **known[fresh["rule"]]} if fresh["rule"] in known else new

    return inherited(rules.state())


def _singles_of(state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The states of the rules that a state is made of."""
    if "rules" not in state:
        yield state
    for part in state.get("rules", ()):
        yield from _singles_of(part)
