"""AUDITED: stop when the answers no longer contradict the model.  Also bounds how many positives are still missed.

**The missed-cluster trap.**  A group of positives deep on the negative side is never near the boundary.  The margin
then looks exhausted and the model looks finished, although the group is missed.

When no example of the pool lies inside the margin, three kinds of questions look for such a group (see `mixed`).  The
best kind asks about the example with the largest f(x) below 0: on reuters, 5 of 60 such questions found a positive,
against 0.3 of 60 random ones.  But only answers to random questions can say how many positives are missed: see
`missed_at_most`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from streamsvm.active.choosing.stopping import CONFIDENCE, Answered, Class, StoppingRule, Verdict
from streamsvm.core import arguments


@dataclass
class Audited(StoppingRule):
    """Stop when the last answers have not contradicted the model, one after the other.

    Parameters
    ----------
    calm
        Number of answers in a row that must not violate the margin, y f(x) >= 1; at least 1.

    Raises
    ------
    ValueError
        If `calm` is not a positive integer.

    Notes
    -----
    While the pool holds examples inside the margin, `MixedSelection` asks about these, and each answer violates it.  So
    the rule stops only when there are none, and when `calm` questions of three kinds have found nothing.  With 59, it
    missed up to 42 % of the positives of a set; with 120, 1 to 13 %.

    On noisy data there are always examples inside the margin, and the rule never stops: add ``| MaxLabels(...)``.

    Examples
    --------
    >>> from streamsvm.active import Answered, Audited
    >>> rule = Audited(calm=1)
    >>> rule.observe(Answered(margin=0.5, y=True, reason="boundary", n_support=9, n_labels=20, n_offered=100))
    >>> rule.verdict().stop
    False
    >>> rule.observe(Answered(margin=-2.0, y=False, reason="audit", n_support=9, n_labels=21, n_offered=100))
    >>> rule.verdict().stop
    True
    """

    calm: int = 120
    _calm: int = field(default=0, init=False, repr=False)  # answers in a row that did not violate

    def __post_init__(self) -> None:
        arguments.require_count("calm", self.calm, 1)

    def observe(self, answered: Answered) -> None:
        self._calm = 0 if answered.violates else min(self._calm + 1, self.calm)

    def verdict(self) -> Verdict:
        if self._calm < self.calm:
            return Verdict(False, False, f"answers in a row that agreed with the model: {self._calm} of {self.calm}")
        return Verdict(
            True,
            False,
            f"the last {self.calm} answers agreed with the model, and nothing is left that it is unsure of",
        )


@dataclass
class EachClass(StoppingRule):
    """Stop when the last answers about each class have agreed with the model; for more than two classes.

    Other rules look at all answers together, and a common class may hide a rare one.  So combine them with this one:
    ``Audited() & EachClass()``.

    Parameters
    ----------
    calm
        Number of answers in a row about a class that must not violate the margin; at least 1.

    Raises
    ------
    ValueError
        If `calm` is not a positive integer.

    Notes
    -----
    An answer is about the class that was given, and about the predicted class if that is another one.  An answer agrees
    with the model if it does not violate the margin.  The rule does not wait for a class without any answer.

    If nothing but a class holds the rule back, the loop asks about the examples that the model takes for this class.
    When the pool has none of them left, the rule does not wait for the class any more, and its verdict names the class.
    An answer about the class takes that back.

    Examples
    --------
    >>> from streamsvm.active import Answered, EachClass
    >>> rule = EachClass(calm=1)
    >>> common = {"reason": "boundary", "n_support": 9, "n_labels": 20, "n_offered": 100}
    >>> rule.observe(Answered(margin=0.5, y=False, classes=("cat", "dog"), **common))
    >>> rule.observe(Answered(margin=1.5, y=True, classes=("dog",), **common))
    >>> rule.verdict().why
    'answers in a row that agreed with the model, of 1 for each class: cat (0)'
    >>> rule.used_up("cat")
    >>> rule.verdict().why
    'the last answers about each class agreed with the model, 1 for each; but no example is left of: cat (0)'
    """

    calm: int = 10
    _calm: list[list[Any]] = field(default_factory=list, init=False, repr=False)  # each class, and its answers in a row
    _used_up: list[Any] = field(default_factory=list, init=False, repr=False)  # classes without an example in the pool

    def __post_init__(self) -> None:
        arguments.require_count("calm", self.calm, 1)

    def observe(self, answered: Answered) -> None:
        for label in answered.classes:
            calm = dict(self._calm)
            calm[label] = 0 if answered.violates else min(calm.get(label, 0) + 1, self.calm)
            self._calm = [[*pair] for pair in calm.items()]
            if label in self._used_up:
                self._used_up.remove(label)

    def waits_for(self) -> tuple[Class, ...]:
        return tuple(label for label, _ in self._behind() if label not in self._used_up)

    def used_up(self, label: Class) -> None:
        if label not in self._used_up:
            self._used_up.append(label)

    def drop_class(self, label: Class) -> None:
        self._calm = [pair for pair in self._calm if pair[0] != label]

    def verdict(self) -> Verdict:
        behind, waits_for = self._behind(), self.waits_for()
        if waits_for:
            held = _listed(pair for pair in behind if pair[0] in waits_for)
            why = f"answers in a row that agreed with the model, of {self.calm} for each class: {held}"
            return Verdict(False, False, why)
        if behind:
            why = f"the last answers about each class agreed with the model, {self.calm} for each"
            return Verdict(True, False, f"{why}; but no example is left of: {_listed(behind)}")
        return Verdict(True, False, f"the last {self.calm} answers about each class agreed with the model")

    def _behind(self) -> list[list[Any]]:
        """The classes with fewer than `calm` answers in a row, fewest first."""
        return sorted((pair for pair in self._calm if pair[1] < self.calm), key=lambda pair: (pair[1], str(pair[0])))


def _listed(counts: Iterable[list[Any]]) -> str:
    """Classes with their answers in a row, such as "cat (0), dog (3)": a class may be a digit."""
    return ", ".join(f"{label} ({n})" for label, n in counts)


def missed_at_most(n_unlabelled: int, n_audited: int, n_found: int, confidence: float = CONFIDENCE) -> int:
    """How many positives are at most missed, as random answers tell.

    Parameters
    ----------
    n_unlabelled
        Number of examples without a label.
    n_audited
        Number of random ones that the model took for negative and that were then labelled.
    n_found
        Number of positives among these.
    confidence
        Probability that the bound holds, between 0 and 1.

    Returns
    -------
    int
        The bound of Clopper and Pearson on the share, as a number of examples.

    Raises
    ------
    ValueError
        If a number is out of its range.

    Examples
    --------
    >>> missed_at_most(2637, 59, 0), missed_at_most(2637, 120, 0), missed_at_most(2637, 0, 0)
    (130, 65, 2637)
    """
    arguments.require_share("confidence", confidence)
    for name, value in (("n_unlabelled", n_unlabelled), ("n_audited", n_audited), ("n_found", n_found)):
        arguments.require_count(name, value, 0)
    if n_found > n_audited:
        raise ValueError(f"n_found={n_found} must be at most n_audited={n_audited}")
    if n_found == n_audited:
        return n_unlabelled
    from scipy.special import betaincinv  # scipy.stats, which has it as beta.ppf, takes longer to load

    return int(n_unlabelled * float(betaincinv(n_found + 1, n_audited - n_found, confidence)))
