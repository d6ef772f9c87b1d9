"""Annotators: how far they agree, how fast they are, and which sources of answers are the same person."""

from collections import Counter, defaultdict
from collections.abc import Container, Hashable, Iterable, Mapping, Sequence
from itertools import chain, combinations, pairwise
from typing import NamedTuple

from ...runtime.numbers import HOUR_MS
from ..classes import ClassLabel

MAX_NAME = 200  # characters of an annotator's name
DECIDER = "\0"  # before the name of a person who decides: no name of a person begins with it
PAUSE = 300_000  # milliseconds between two answers, above which a person was not working

_KAPPA, _ALPHA = "Cohen's kappa", "Krippendorff's alpha"
_CHANNELS = ("page", "terminal")  # where people give their names


class Answer(NamedTuple):
    """What a person said about an event.

    Attributes
    ----------
    about
        The event, or the question about it: anything that tells one from the other.
    who
        The source of the label, such as "page:alice#f0a1".
    y
        The label; None if the person could not tell, or found the event useless.
    at
        When it was given, in milliseconds since the epoch.
    """

    about: Hashable
    who: str
    y: ClassLabel | None
    at: int


class Agreement(NamedTuple):
    """How far people agree about the events that several of them labelled.

    Attributes
    ----------
    n_shared
        Number of events with labels of at least two people.
    share
        Share of equal labels among all pairs of labels of the same event; None without such an event.
    kappa
        Agreement beyond chance: 1 is perfect, 0 is chance.  None if it is not defined, for example because all labels
        are of one class.
    measure
        "Cohen's kappa" for two people, "Krippendorff's alpha" for more.
    """

    n_shared: int
    share: float | None
    kappa: float | None
    measure: str


class Annotator(NamedTuple):
    """The answers of one person.

    Attributes
    ----------
    name
        The person.
    n_labels, n_positive
        Number of events that they labelled, and, with two classes, labelled as positive.
    n_skipped
        Number of events that they did not label.
    n_changed
        How often they replaced their own label by another one.
    agreement
        Share of equal labels among the pairs of one of their labels and another person's; None without such a pair.
    per_hour
        Labels per hour of work, without pauses of more than five minutes; None for fewer than two answers.
    """

    name: str
    n_labels: int
    n_positive: int
    n_skipped: int
    n_changed: int
    agreement: float | None
    per_hour: float | None


def person(source: str) -> str:
    """The person behind the source of a label; an annotator of the page or the terminal may use several tabs.

    The name is that of the page or the terminal.  Without a name, each tab counts as a person.  Any other source, such
    as "label-studio:3", is its own name.
    """
    channel, _, rest = source.partition(":")
    if channel not in _CHANNELS:
        return source
    return rest.rpartition("#")[0] if "#" in rest and not rest.startswith("#") else rest


def voter_of(source: str, op: str, known: Container[str]) -> str:
    """The name under which an answer to a question counts: the person's, or apart for what they decide.

    Parameters
    ----------
    source, op
        Source and operation of the label.
    known
        The names of the answers so far, without those that were taken back: who has decided takes that back first.
    """
    name = person(source)[:MAX_NAME]
    decider = DECIDER + name
    return decider if op == "decide" or (op == "retract" and decider in known) else name


def has_decided(voter: str) -> bool:
    """Whether this is the name of what a person has decided, see `voter_of`."""
    return voter.startswith(DECIDER)


def agreement(answers: Iterable[Answer]) -> Agreement:
    """How far people agree; the last answer of each of them about an event counts."""
    shared = [labels for labels in _labels(answers).values() if len(labels) > 1]
    pairs = [(first, second) for labels in shared for first, second in combinations(labels.values(), 2)]
    share = sum(first == second for first, second in pairs) / len(pairs) if pairs else None
    people = {who for labels in shared for who in labels}
    if len(people) == 2:
        return Agreement(len(shared), share, cohen(shared), _KAPPA)
    return Agreement(len(shared), share, krippendorff([list(labels.values()) for labels in shared]), _ALPHA)


def cohen(shared: Sequence[Mapping[str, ClassLabel]]) -> float | None:
    """Cohen's kappa of the labels that the same two people gave; None if chance alone would agree always."""
    n = len(shared)
    first, second = sorted(shared[0])
    observed = sum(labels[first] == labels[second] for labels in shared) / n
    one, other = (Counter(labels[who] for labels in shared) for who in (first, second))
    chance = sum(one[y] / n * (other[y] / n) for y in one)
    return None if chance == 1 else (observed - chance) / (1 - chance)


def krippendorff(shared: Sequence[Sequence[ClassLabel]]) -> float | None:
    """Krippendorff's alpha for classes, of at least two labels an event; None if all labels are of one class."""
    n = sum(map(len, shared))
    expected = _unequal(chain.from_iterable(shared))
    if not expected:
        return None
    observed = sum(_unequal(labels) / (len(labels) - 1) for labels in shared) / n
    return 1 - observed * n * (n - 1) / expected


def _unequal(labels: Iterable[ClassLabel]) -> int:
    """Number of ordered pairs of different labels."""
    counts = Counter(labels).values()
    return sum(counts) ** 2 - sum(k * k for k in counts)


def annotators(answers: Iterable[Answer]) -> list[Annotator]:
    """Statistics of each person, by name.

    Parameters
    ----------
    answers
        In the order in which they were given.
    """
    given: defaultdict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        given[person(answer.who)].append(answer)
    agreed = _agreed(_labels(chain.from_iterable(given.values())).values())
    return [_annotator(name, given[name], agreed.get(name)) for name in sorted(given)]


def _annotator(name: str, answers: list[Answer], agreed: float | None) -> Annotator:
    last: dict[Hashable, ClassLabel | None] = {}
    n_changed = 0
    for answer in answers:
        before = last.get(answer.about)
        n_changed += before is not None and answer.y is not None and before != answer.y
        last[answer.about] = answer.y
    n_labels, n_positive = sum(y is not None for y in last.values()), sum(y is True for y in last.values())
    return Annotator(name, n_labels, n_positive, len(last) - n_labels, n_changed, agreed, _per_hour(answers))


def _per_hour(answers: Sequence[Answer]) -> float | None:
    """Labels per hour; an answer takes the time since the one before, unless there was a pause."""
    took = [(after.at - before.at, after.y is not None) for before, after in pairwise(answers)]
    worked = [(time, is_label) for time, is_label in took if 0 <= time <= PAUSE]
    total = sum(time for time, _ in worked)
    return HOUR_MS * sum(is_label for _, is_label in worked) / total if total else None


def _labels(answers: Iterable[Answer]) -> dict[Hashable, dict[str, ClassLabel]]:
    """The last label of each person, by event; an answer without a label takes the person's label away."""
    found: defaultdict[Hashable, dict[str, ClassLabel]] = defaultdict(dict)
    for about, who, y, _ in answers:
        if y is None:
            found[about].pop(person(who), None)
        else:
            found[about][person(who)] = y
    return found


def _agreed(events: Iterable[Mapping[str, ClassLabel]]) -> dict[str, float]:
    """Share of equal labels among all pairs with another person, by person."""
    pairs: defaultdict[str, list[bool]] = defaultdict(list)
    for labels in events:
        for first, second in combinations(labels, 2):
            is_equal = labels[first] == labels[second]
            pairs[first].append(is_equal)
            pairs[second].append(is_equal)
    return {who: sum(found) / len(found) for who, found in pairs.items()}
