"""What annotators said, from the log: how good the model is, what was corrected, and how fast the labels came."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from streamsvm.validation import Interval

from ..logs.reading import read_all
from ..logs.transport import Transport
from ..records.classes import ClassLabel
from ..records.codec import readable
from ..records.labels import Place
from ..records.people.annotators import PAUSE, Answer
from ..records.people.label_history import Entry, Guess, LabelHistory, read_guesses
from ..records.people.questions import STATUS, read_status
from ..runtime.numbers import HOUR_MS
from ..settings.opening import open_once
from ..settings.sections import Settings

RANDOM = ("audit",)  # reasons of questions about random events

RECENT = 100  # random ones, from whose answers the present quality is estimated
_BOTH_HOLD = 2.2414  # normal quantile of 97.5 %: two intervals hold together with at least 95 %


@dataclass
class Answers:
    """The answers about the events of a partition.

    Attributes
    ----------
    entries
        The records of the topic of labels, in order.
    guesses
        What the model had said about their events.
    status
        What the trainer last said about the labelling.
    random
        Reasons of the questions that were about random events.
    """

    entries: list[Entry] = field(default_factory=list)
    guesses: dict[Place, Guess] = field(default_factory=dict)
    status: Mapping[str, Any] = field(default_factory=dict)
    random: tuple[str, ...] = RANDOM


def history_of(settings: Settings) -> LabelHistory:
    """A reader of the labels that decides as the trainers do which label holds."""
    return LabelHistory(settings.codec(), settings.labelling.answers_per_question)


def read_answers(settings: Settings) -> dict[int, Answers]:
    """The answers of a configuration's log, by partition; empty if its trainers ask no questions."""
    is_mixed = settings.labelling.selection == "mixed"  # it explores far from the labelled events
    random = RANDOM if is_mixed else (*RANDOM, "explore")
    found: defaultdict[int, Answers] = defaultdict(lambda: Answers(random=random))
    if not settings.log.questions:
        return found
    with open_once(settings) as log:
        for entry in history_of(settings).read(log, settings.log.labels):
            found[entry.place.partition].entries.append(entry)
        places = {entry.place for answers in found.values() for entry in answers.entries}
        for place, guess in read_guesses(log, settings.log.questions, "", places).items():
            found[place.partition].guesses[place] = guess
        for number, status in _statuses(log, settings.log.questions).items():
            found[number].status = status
    return found


def _statuses(log: Transport, topic: str) -> dict[int, dict[str, Any]]:
    newest = {record.partition: record for record in read_all(log, topic) if record.key == STATUS}
    return {record.partition: status for record, status in readable(newest.values(), read_status)}


# --- how good the model is --------------------------------------------------------------------------------------------


Pairs = list[tuple[ClassLabel | None, ClassLabel]]  # what the model guessed, and the label that holds now


class Quality(NamedTuple):
    """How the model's guesses compare with the answers."""

    n_positive: int
    n_found: int
    n_negative: int
    n_rejected: int

    @property
    def g_mean(self) -> Interval:
        """Geometric mean of the shares of positives and of negatives that the model knew.

        Both shares have Wilson's score interval at 97.5 %, so that both hold together with at least 95 %.  The bounds
        are the geometric means of the two lower and of the two upper ends.
        """
        found, rejected = wilson(self.n_found, self.n_positive), wilson(self.n_rejected, self.n_negative)
        return Interval(*(math.sqrt(a * b) for a, b in zip(found, rejected, strict=True)))


def wilson(count: int, n: int) -> Interval:
    """A share, and its score interval at 97.5 %; without any case, the share is unknown and may be all of [0, 1]."""
    if n == 0:
        return Interval(math.nan, 0.0, 1.0)
    share, z = count / n, _BOTH_HOLD
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def compared(answers: Answers, *, are_two: bool = True) -> Pairs:
    """The class that the model guessed and the one that holds now, for random questions, in the order of the answers.

    `are_two` says whether there are two classes; with more, a model that knew none yet has guessed None.
    """
    holding = {entry.place: entry.after for entry in answers.entries if entry.after != entry.before}
    guesses = answers.guesses
    return [
        (guesses[place].margin > 0 if are_two else guesses[place].label, y)
        for place, y in holding.items()
        if y is not None and place in guesses and guesses[place].reason in answers.random
    ]


def quality(pairs: Pairs) -> Quality:
    """Count pairs of a guess and an answer, of two classes."""
    counts = Counter((bool(guess), bool(y)) for guess, y in pairs)
    found, rejected = counts[True, True], counts[False, False]
    return Quality(found + counts[False, True], found, rejected + counts[True, False], rejected)


# --- people -----------------------------------------------------------------------------------------------------------


class Correction(NamedTuple):
    """A label that another one replaced: the record that did so, and the record of the label before."""

    entry: Entry
    before: Entry


def corrections(entries: Iterable[Entry]) -> list[Correction]:
    """The labels that replaced one of the other class, also after a retraction, in their order."""
    last: dict[Place, Entry] = {}
    found = []
    for entry in entries:
        if entry.after == entry.before or entry.after is None:
            continue
        before = last.get(entry.place)
        if before is not None and before.after != entry.after:
            found.append(Correction(entry, before))
        last[entry.place] = entry
    return found


def said(entries: Iterable[Entry]) -> list[Answer]:
    """The answers as `annotators` takes them; a retraction takes back what the same person had said of the event."""
    found: dict[int, Answer] = {}
    of_person: defaultdict[tuple[Place, str], list[int]] = defaultdict(list)
    for number, entry in enumerate(entries):
        if not entry.label.source or entry.label.op == "decide":  # who decides has seen the answers
            continue
        own = of_person[entry.place, entry.annotator]
        if entry.label.op == "retract":
            for place in own:
                del found[place]
            own.clear()
        else:
            own.append(number)
            found[number] = Answer(entry.place, entry.label.source, entry.label.y, entry.time or 0)
    return list(found.values())


def pace(entries: Iterable[Entry]) -> tuple[list[float], list[int]]:
    """Hours of work, and the number of labels that hold by then; pauses of more than five minutes take no time."""
    hours, counts = [0.0], [0]
    before: int | None = None
    labelled: set[Place] = set()
    for time, entry in sorted(((entry.time or 0, entry) for entry in entries), key=itemgetter(0)):
        gap = 0 if before is None else time - before
        before = time
        if entry.after is None:
            labelled.discard(entry.place)
        else:
            labelled.add(entry.place)
        hours.append(hours[-1] + (gap / HOUR_MS if gap <= PAUSE else 0.0))
        counts.append(len(labelled))
    return hours, counts
