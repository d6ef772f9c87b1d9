"""The section [labelling]: which questions the trainer asks, of which annotators, and when it stops asking."""

from dataclasses import dataclass
from pathlib import Path

from . import checks
from .checks import key


@dataclass(frozen=True)
class LabellingSettings:
    """Which events the trainer asks labels for, and how the page shows them; see `streamsvm.active`.

    Numbers of questions and labels count for each partition separately, because each has its own model.

    Parameters
    ----------
    selection
        Which event the next question is about.  ``"mixed"``: in turn, the event of the reservoir that is closest to the
        boundary, one that is unlike the labelled events, and one that is far from them.  ``"active"``: the closest of
        `pool` random events.  ``"auto"``: the same, among as many events as it needs.  ``"all"``: the closest event of
        the reservoir.  ``"random"``: a random event.  ``"undecided"``: each event that [decide] does not decide, and a
        share `audit` of the others; then `start`, `pool`, `explore`, `seeds`, `seed_words`, `first`, `tune_gamma` and
        `stop` have no effect.
    start
        How ``"mixed"`` begins, until both classes have labels.  ``"distance"``: with events far from the labelled ones.
        ``"random"``: with random events.
    pool
        Number of random events from which ``"active"`` chooses, and ``"mixed"`` when it looks for an event unlike the
        labelled ones; at least 1.
    rare_first
        Whether the trainer asks about classes with few labels more often; needs more than two classes, and the
        selection ``"mixed"``, ``"active"`` or ``"all"``.  Before a question near the boundary, the trainer draws a
        class at random: a class with half as many labels is drawn twice as often.  The question is about the event
        that is closest to the boundary between this class and another one.
    explore
        Share of the questions, from 0 to 1, that look for groups of events which the model does not know.  With
        ``"mixed"`` they are about events far from the labelled ones, otherwise about random events.
    audit
        Share of the questions of ``"mixed"``, from 0 to 1, that are about random events, from the beginning on.  Their
        answers show how good the model is, and bound how many positives it misses.  With ``"undecided"``, the share of
        the decided events that are checked, at random.
    seeds
        Number of labels of each class that are needed before the model chooses the questions.
    seed_words
        Words of the rare class: the first ten events whose `text` holds one of them are asked about first.
    first
        Ids of events to ask about first, such as some that are probably of the rare class.
    tune_gamma
        Number of labels after which the trainer chooses `model.gamma` anew, by leave-one-out: 1/16, 1/4, 1 or 4 times
        the given one; first after 30 labels.  The model then learns all labels again, up to 1000.  0: gamma stays.  It
        stays, too, with more than two classes, with `model.window`, with `[estimates]`, and if a labelled event is no
        longer kept.
    threshold
        What the threshold for predictions is good for; the trainer chooses it by the labels and the reservoir, up to
        1000 labels.  ``"gmean"``: both classes are recognised well.  ``"recall"``: few positives are missed.
        ``"precision"``: few false alarms.  Empty: `model.threshold` holds.
    open
        Number of questions that may wait for their first answer; 0: one for each annotator, with ``"undecided"`` 100.
        More open questions cost accuracy, because each is chosen without the answers to the others.
    answers_per_question
        Number of answers, each by another annotator, that a question gets; the majority decides.  After a tie one more
        annotator is asked.
    recheck_every
        Number of answers after which the trainer looks for wrong ones among the newest 1000, and asks again about
        those that look wrong; 0: never.
    recheck
        Largest number of answers that it asks about again at one time.
    reservoir
        Number of unlabelled events to choose from, at least 1.
    expires_seconds
        Seconds, by the events' own times, after which an unanswered question is withdrawn.
    stop
        When to stop asking.  ``"audited"``: when no event is left near the boundary, and the last 120 answers have
        agreed with the model.  ``"margin"``: when 59 questions found no event near the boundary, and 59 random ones
        agree; ``"support"``: when the number of support vectors has stopped growing; ``"either"`` of them;
        ``"recall"``: when the share `recall` of the positives is known, with 95 % confidence; or ``"never"``.
        With more than two classes, the last 10 answers about each class must have agreed with the model as well.
    recall
        Share of all positives, between 0 and 1, that ``stop = "recall"`` promises to know in the end.  After 150
        questions it reviews what looks positive, then asks about random events.  From then on it takes in no events:
        the promise is about those of the reservoir, and those that were labelled.
    max_labels
        Label quota: number of answers to ask for; 0: no limit.
    max_fraction
        Label quota as a fraction of the unlabelled events, from 0 to 1; 0: no limit.  With ``"undecided"``, the largest
        share of all events that are asked about; checks are asked about in any case, and count.
    lease_seconds
        Seconds that a question stays reserved for the annotator who is viewing it.
    host
        Address that the labelling page listens on.
    port
        Port of the labelling page; 0: any free one.
    text
        Event field with a text that the page shows beside the features.
    image
        Event field with the address of an image that the page shows.
    image_folder
        Folder whose files the page may show; the image of an event is then the name of a file in it, such as
        ``cats/1.jpg``.  Unset: no files.
    image_hosts
        Hosts that the page may load images from, such as ``"images.example.org"``, ``"*.example.org"`` or
        ``"http://localhost:9000"``; ``"*"``: any host.  Empty: only images inside events, as ``data:`` addresses.
    series
        Event field with a list of numbers that the page draws.
    instructions
        What the annotators should know, in Markdown; the page shows it above the first question.
    """

    selection: str = key("mixed", checks.one_of("mixed", "active", "auto", "all", "random", "undecided"))
    start: str = key("distance", checks.one_of("distance", "random"))
    pool: int = key(59, checks.at_least(1))
    rare_first: bool = False
    explore: float = key(0.1, checks.fraction)
    audit: float = key(0.05, checks.fraction)
    seeds: int = key(1, checks.at_least(0))
    seed_words: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    tune_gamma: int = key(50, checks.at_least(0))
    threshold: str = key("", checks.one_of("", "gmean", "recall", "precision"))
    open: int = key(0, checks.at_least(0))
    answers_per_question: int = key(1, checks.at_least(1))
    recheck_every: int = key(0, checks.at_least(0))
    recheck: int = key(5, checks.at_least(1))
    reservoir: int = key(10_000, checks.at_least(1))
    expires_seconds: float = key(86400.0, checks.seconds)
    stop: str = key("audited", checks.one_of("audited", "margin", "support", "either", "recall", "never"))
    recall: float = key(0.8, checks.share)
    max_labels: int = key(0, checks.at_least(0))
    max_fraction: float = key(0.0, checks.fraction)
    lease_seconds: float = key(120.0, checks.seconds)
    host: str = key("127.0.0.1", checks.host)
    port: int = key(8765, checks.port)
    text: str = "text"
    image: str = "image"
    image_folder: Path | None = None
    image_hosts: tuple[str, ...] = key((), checks.image_hosts)
    series: str = "series"
    instructions: str = ""
