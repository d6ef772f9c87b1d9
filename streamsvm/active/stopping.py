"""Stopping rules: when there is nothing left worth asking.

A rule hears of every answer to a question, and says whether to stop, why (for the person who labels), and whether the
next questions should be random ones because it wants to check what selection cannot see.  Rules combine: `a | b` stops
when one of them does, `a & b` when both do.

**The missed-cluster trap.**  Selection asks about what lies near the boundary.  A group of positives deep on the
negative side is never near it, so it is never asked about: the margin looks exhausted and the model looks finished,
with the group missed.  (On the letter-A data, a rule that watches the margin alone stops with a tenth of the positives
missed.)  Only labels of random examples can show such a group, and only if it is not too rare for their number.  So
`MarginExhausted` audits before it stops and says which share it cannot exclude; exploring with one random question in
ten helps as well.

Source: Ertekin, Huang, Bottou, Giles, "Learning on the border: active learning in imbalanced data classification", CIKM
2007, sections 4.2 and 5 (margin exhaustion, support vectors stable).  The audit is our own.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from streamsvm.active.selection import POOL
from streamsvm.core import arguments

BOUNDARY, EXPLORE, AUDIT = "boundary", "explore", "audit"  # why a question was asked; random ones are the last two
CONFIDENCE = 0.95


class Answered(NamedTuple):
    """The first answer to a question.

    margin
        f(x) by the model that asked.
    y
        The label.
    reason
        Why it was asked: "seed", "boundary", "explore" or "audit".
    n_support
        Support vectors that the model had.
    n_labels
        Labels there are by now, with this one.
    n_offered
        Examples that have been offered to the pool so far.
    """

    margin: float
    y: bool
    reason: str
    n_support: int
    n_labels: int
    n_offered: int


class Verdict(NamedTuple):
    """What a rule says.

    stop
        Whether to ask no more.
    audit
        Whether the next question should be about a random example.
    why
        One sentence for the person who labels.
    """

    stop: bool
    audit: bool
    why: str


class StoppingRule(ABC):
    """Hears of answers, and says when it is enough."""

    @abstractmethod
    def observe(self, answered: Answered) -> None:
        """Take note of the first answer to a question; corrections are not told."""

    @abstractmethod
    def verdict(self) -> Verdict:
        """Whether to stop by now, whether to audit, and why."""

    def remaining(self) -> int | None:
        """How many more labels the budget allows; None if this is no budget."""
        return None

    def offered(self, n_offered: int) -> None:  # noqa: B027 # only a budget that is a share of them needs to know
        """Take note of how many examples have been offered so far, before a question is chosen."""

    def state(self) -> dict[str, Any]:
        """What was observed, as JSON can hold it."""
        observed = {name[1:]: copy.deepcopy(getattr(self, name)) for name in self._observed()}
        return {"rule": type(self).__name__} | observed

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on as the rule whose `state` this was; ValueError if that was another kind of rule."""
        self._require_own(state)
        for name in self._observed():
            setattr(self, name, copy.deepcopy(state[name[1:]]))

    def _require_own(self, state: Mapping[str, Any]) -> None:
        if state["rule"] != type(self).__name__:
            raise ValueError(f"the state is one of {state['rule']}, this rule is {type(self).__name__}")

    def _observed(self) -> list[str]:
        """The fields that are no parameters; they begin with an underscore."""
        return [f.name for f in fields(self) if not f.init]  # type: ignore[arg-type] # every rule is a dataclass

    def __or__(self, other: "StoppingRule") -> "AnyOf":
        return AnyOf(self, other)

    def __and__(self, other: "StoppingRule") -> "AllOf":
        return AllOf(self, other)


@dataclass
class MarginExhausted(StoppingRule):
    """Stop when selection finds nothing inside the margin any more, and random examples agree.

    First: `pool` selected examples in a row (asked as "boundary") lie outside the margin, |f(x)| >= 1, whatever their
    labels.  Then the audit: as many random examples are labelled.  If one violates, y f(x) < 1, everything starts
    again; otherwise stop.  Random examples that are asked anyway ("explore") count in an audit that is under way.

    Parameters
    ----------
    pool
        How many selected examples in a row, and how many random ones; at least 1; best the pool of the selection.

    Raises
    ------
    ValueError
        If `pool` is not a positive integer.

    Notes
    -----
    *What it says.*  59 misses in a row mean, with 95 % confidence, that fewer than 5 % of the pools of 59 still hold an
    example inside the margin.  59 random examples that agree mean, with 95 % confidence, that fewer than 5 % of what is
    unlabelled violates.

    *What it cannot say* (the missed-cluster trap): selection never sees a group of positives deep on the negative side,
    and the audit sees a group of share s only with probability 1 - (1 - s)^59: 95 % for 5 %, 45 % for 1 %.  The verdict
    says so.  Raise `pool`, or explore, where rare groups matter.

    A stop is taken back if a later answer to a random question violates, or to a selected one lies inside the margin.
    """

    pool: int = POOL
    _outside: int = field(default=0, init=False, repr=False)  # selected examples in a row outside the margin
    _audited: int = field(default=0, init=False, repr=False)  # random examples that agreed since
    _found: int = field(default=0, init=False, repr=False)  # examples that an audit found to violate

    def __post_init__(self) -> None:
        arguments.require_count("pool", self.pool, 1)

    @property
    def _auditing(self) -> bool:
        return self._outside >= self.pool

    def observe(self, answered: Answered) -> None:
        if answered.reason == BOUNDARY:
            if abs(answered.margin) < 1.0:
                self._outside = self._audited = 0
            elif not self._auditing:
                self._outside += 1
        elif answered.reason in (EXPLORE, AUDIT) and self._auditing:
            if (answered.margin if answered.y else -answered.margin) < 1.0:
                self._outside = self._audited = 0
                self._found += 1
            else:
                self._audited = min(self._audited + 1, self.pool)

    def verdict(self) -> Verdict:
        if not self._auditing:
            so_far = f"; audits have found {self._found} that contradicted the model" if self._found else ""
            return Verdict(
                False,
                False,
                f"{self._outside} selected examples in a row lay outside the margin; "
                f"after {self.pool}, random ones are checked{so_far}",
            )
        if self._audited < self.pool:
            return Verdict(
                False,
                True,
                f"nothing was found inside the margin {self.pool} times in a row; checking random examples for groups "
                f"that lie far from the boundary and were never asked about: {self._audited} of {self.pool} agree",
            )
        share = 1.0 - (1.0 - CONFIDENCE) ** (1.0 / self.pool)
        return Verdict(
            True,
            False,
            f"nothing was found inside the margin {self.pool} times in a row, and {self.pool} random examples agree "
            f"with the model: at {CONFIDENCE:.0%} confidence it misses fewer than {share:.1%} of the unlabelled; "
            "a rarer group far from the boundary cannot be excluded",
        )


@dataclass
class SupportStable(StoppingRule):
    """Stop when the number of support vectors has settled.

    Parameters
    ----------
    tolerance
        By which share of itself the number may have changed, at least 0 and below 1.
    over
        During the last labels, as a share of all labels; above 0 and below 1.
    at_least
        Not before so many labels, at least 1.

    Raises
    ------
    ValueError
        If a parameter is out of its range.

    Notes
    -----
    It never looks for what selection does not see (the missed-cluster trap); with `& MarginExhausted()` an audit comes
    first.  On data whose classes overlap the number keeps growing: combine it with a budget.
    """

    tolerance: float = 0.02
    over: float = 0.2
    at_least: int = POOL
    _history: list[list[int]] = field(default_factory=list, init=False, repr=False)  # labels and support vectors

    def __post_init__(self) -> None:
        if not (arguments.is_number(self.tolerance) and 0.0 <= self.tolerance < 1.0):
            raise ValueError(f"tolerance={self.tolerance!r} must be at least 0 and below 1")
        arguments.require_share("over", self.over)
        arguments.require_count("at_least", self.at_least, 1)

    def observe(self, answered: Answered) -> None:
        history = self._history
        while history and history[-1][0] >= answered.n_labels:  # labels have been taken back
            history.pop()
        history.append([answered.n_labels, answered.n_support])
        begin = (1.0 - self.over) * answered.n_labels
        past = next((t for t, (n_labels, _) in enumerate(history) if n_labels > begin), len(history))
        del history[: max(0, past - 1)]  # the last one before the window stays: where the window begins

    def verdict(self) -> Verdict:
        if not self._history:
            return Verdict(False, False, "no label yet")
        n_labels, n_support = self._history[-1]
        begin = (1.0 - self.over) * n_labels
        counts = [count for _, count in self._history]
        change = max(counts) - min(counts)
        over_last = f"over the last {n_labels - self._history[0][0]} of {n_labels} labels"
        if n_labels < self.at_least or self._history[0][0] > begin or n_support == 0:
            return Verdict(False, False, f"{n_support} support vectors, too early to say whether they have settled")
        if change > self.tolerance * n_support:
            return Verdict(False, False, f"{n_support} support vectors; they changed by {change} {over_last}")
        return Verdict(True, False, f"{n_support} support vectors; they changed by no more than {change} {over_last}")


@dataclass
class MaxLabels(StoppingRule):
    """A budget: stop after so many answers.

    Parameters
    ----------
    n
        How many answers, at least 0.  A correction costs nothing.

    Raises
    ------
    ValueError
        If `n` is not an integer or negative.
    """

    n: int
    _spent: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        arguments.require_count("n", self.n, 0)

    def observe(self, answered: Answered) -> None:
        self._spent += 1

    def remaining(self) -> int:
        return max(0, self.n - self._spent)

    def verdict(self) -> Verdict:
        return Verdict(self.remaining() == 0, False, f"{self._spent} of the budget of {self.n} labels are spent")


@dataclass
class MaxFraction(StoppingRule):
    """A budget that grows with the stream: stop while more than this share of what was offered has been labelled.

    Parameters
    ----------
    share
        How much of what was offered may be labelled, above 0 and at most 1.

    Raises
    ------
    ValueError
        If `share` is out of its range.
    """

    share: float
    _spent: int = field(default=0, init=False, repr=False)
    _offered: int = field(default=0, init=False, repr=False)

    def __post_init__(self) -> None:
        if not (arguments.is_number(self.share) and 0.0 < self.share <= 1.0):
            raise ValueError(f"share={self.share!r} must be above 0 and at most 1")

    def observe(self, answered: Answered) -> None:
        self._spent += 1
        self.offered(answered.n_offered)

    def offered(self, n_offered: int) -> None:
        self._offered = max(self._offered, n_offered)

    def remaining(self) -> int:
        return max(0, math.floor(self.share * self._offered) - self._spent)

    def verdict(self) -> Verdict:
        return Verdict(
            self.remaining() == 0,
            False,
            f"{self._spent} labels are spent; the budget is {self.share:.3g} of {self._offered} examples so far",
        )


class _Combined(StoppingRule):
    """Several rules as one."""

    def __init__(self, *rules: StoppingRule) -> None:
        if not rules:
            raise ValueError(f"{type(self).__name__}() needs at least one rule")
        self.rules = rules

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.rules))})"

    def observe(self, answered: Answered) -> None:
        for rule in self.rules:
            rule.observe(answered)

    def offered(self, n_offered: int) -> None:
        for rule in self.rules:
            rule.offered(n_offered)

    def state(self) -> dict[str, Any]:
        return {"rule": type(self).__name__, "rules": [rule.state() for rule in self.rules]}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._require_own(state)
        if len(state["rules"]) != len(self.rules):
            raise ValueError(f"the state is one of {len(state['rules'])} rules, these are {len(self.rules)}")
        for rule, part in zip(self.rules, state["rules"], strict=True):
            rule.restore(part)


class AnyOf(_Combined):
    """Stop when one of the rules does; audit when one of them wants to and none stops."""

    def verdict(self) -> Verdict:
        verdicts = [rule.verdict() for rule in self.rules]
        stop = any(v.stop for v in verdicts)
        audit = not stop and any(v.audit for v in verdicts)
        return Verdict(stop, audit, "; ".join(v.why for v in verdicts if v.stop or not stop))

    def remaining(self) -> int | None:
        budgets = [left for rule in self.rules if (left := rule.remaining()) is not None]
        return min(budgets, default=None)


class AllOf(_Combined):
    """Stop when all of the rules do; audit when one of them wants to."""

    def verdict(self) -> Verdict:
        verdicts = [rule.verdict() for rule in self.rules]
        return Verdict(
            all(v.stop for v in verdicts), any(v.audit for v in verdicts), "; ".join(v.why for v in verdicts)
        )

    def remaining(self) -> int | None:
        budgets = [rule.remaining() for rule in self.rules]
        return None if None in budgets else max(left for left in budgets if left is not None)


def inherited_state(rules: AnyOf, before: Mapping[str, Any] | None, n_answered: int, n_offered: int) -> dict[str, Any]:
    """The state with which `rules` go on where others have been followed until now.

    A rule that was among them goes on from its own state, whatever its parameters are now.  One that is new begins
    anew, but a budget counts what was spent before.

    Parameters
    ----------
    rules
        The rules from now on, as they were made.
    before
        The state of those until now, of an `AnyOf` too; None: there were none.
    n_answered
        Questions that were answered until now.
    n_offered
        Examples that were offered until now.

    Returns
    -------
    dict
        What `rules.restore` takes.
    """
    known = {part["rule"]: part for part in before["rules"]} if before else {}
    spent = {"spent": n_answered, "offered": n_offered}
    fresh = rules.state()
    parts = [known.get(part["rule"], {name: spent.get(name, part[name]) for name in part}) for part in fresh["rules"]]
    return {**fresh, "rules": parts}
