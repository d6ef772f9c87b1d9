"""The types that go in and out of the labelling loop: questions, answers, and actions for its caller to carry out."""

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from streamsvm.active.choosing.selection import Reason

Label = bool | str | int  # with two classes, whether the example is positive
Status = Literal["label", "skip", "ignore", "retract"]  # what an answer is


class Question(NamedTuple):
    """Which class is this example of?

    id
        Computed from the loop's name and the key.
    key
        Of the example.
    reason
        Why the question is asked.
    margin
        f(x) when it was asked; see `margins`.
    asked, expires
        Times in milliseconds.
    guess
        With more than two classes, the predicted one; None if the model knew none.
    """

    id: str
    key: int
    reason: Reason
    margin: float
    asked: int
    expires: int
    guess: "Label | None" = None


class Answer(NamedTuple):
    """What a person said about an example, whether it was asked about or not.

    key
        Of the example.
    status
        "label"; "skip": I cannot tell; "ignore": leave this example alone; "retract": the label does not hold.
    y
        The label; None unless the status is "label".
    annotator
        Who answered.
    time
        When the answer was given, in milliseconds.
    is_alike
        Whether the label was given together with that of another example, because they are near-duplicates.
    """

    key: int
    status: Status
    y: Label | None
    annotator: str
    time: int
    is_alike: bool = False


class Ask(NamedTuple):
    """Put this question to the annotators."""

    question: Question


class Withdraw(NamedTuple):
    """This question is no longer open, and not because of a label."""

    question: Question
    why: str


class SetLabel(NamedTuple):
    """This label holds from now on: teach it.  `is_correction` says whether another label held until now."""

    key: int
    y: Label
    annotator: str
    is_correction: bool


class Retract(NamedTuple):
    """The label of this example no longer holds, and there is no other."""

    key: int
    annotator: str


class Refuse(NamedTuple):
    """This answer changes no label."""

    key: int
    why: str


Action = Ask | Withdraw | SetLabel | Retract | Refuse


class CurvePoint(NamedTuple):
    """How well the model knew the answers after some number of labels.

    n_labels
        Number of answered questions.
    n_support
        Support vectors of the model.
    agreement_random
        Share of the last 59 random questions that the model would have answered correctly; None before the first.
    agreement_chosen
        The same for questions that the selection chose.
    """

    n_labels: int
    n_support: int
    agreement_random: float | None
    agreement_chosen: float | None


class Missed(NamedTuple):
    """How many positives the model may still miss among the unlabelled examples.

    at_most
        Bound that holds with 95 % probability; None without a random answer.
    n_audited
        Number of random examples that the model took for negative and that people then looked at.
    n_found
        Number of positives among these, with those about which people did not decide.
    n_unlabelled
        Number of examples without a label: of the pool, and of those that were asked about.
    """

    at_most: int | None
    n_audited: int
    n_found: int
    n_unlabelled: int


@dataclass
class LoopCounts:
    """What became of examples, questions and answers."""

    n_offered: int = 0  # Examples in the pool at the start, or offered since.
    n_asked: int = 0
    n_open: int = 0
    n_answered: int = 0  # Questions with at least one label: the spent part of the label quota.
    late: int = 0  # Among these, questions that were no longer open.
    skipped: int = 0
    ignored: int = 0
    expired: int = 0
    withdrawn: int = 0
    n_positive: int = 0  # Labels that hold, asked for or not.
    n_negative: int = 0
    corrected: int = 0
    retracted: int = 0
    refused: int = 0  # Answers that changed no label.
    elsewhere: int = 0  # Examples that were labelled without being asked about.
    alike: int = 0  # Among these, near-duplicates of an example that was asked about.
    gone: int = 0  # Examples that were chosen but no longer there.
    audited: int = 0  # Answers to random questions ("audit") about examples that the model took for negative.
    audit_positive: int = 0  # Positives among these.
    of_classes: list[list[Any]] = field(default_factory=list)  # With more than two classes: each, and its labels.

    @property
    def n_labels(self) -> int:
        """Number of labels that hold, of all classes."""
        return self.n_positive + self.n_negative + sum(n for _, n in self.of_classes)

    @property
    def n_changes(self) -> int:
        """How often a label was set, corrected or retracted."""
        return self.n_labels + self.corrected + 2 * self.retracted

    def change_labels(self, y: Label | None, change: int) -> None:
        """Count a label that holds from now on, or no longer; None counts nothing."""
        if y is True:
            self.n_positive += change
        elif y is False:
            self.n_negative += change
        elif y is not None:
            known = dict(self.of_classes)
            known[y] = known.get(y, 0) + change
            self.of_classes = [[*pair] for pair in known.items()]
