"""The parts of the report's page about the labelling: how good the model is, the people, the pace, the corrections."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from streamsvm.validation import Interval

from ..records.classes import ClassLabel
from ..records.people.annotators import agreement, annotators
from ..records.people.questions import OUTCOMES
from ..runtime.text import plural
from .answers import RECENT, Answers, Pairs, compared, corrections, pace, quality, said, wilson
from .drawing import FIRST, SECOND, draw_band, draw_curve, fit, new_axes, stacked
from .panel import Panel

_CORRECTIONS = 12  # that the table lists
_LEAST_ANSWERS = 10  # answers before which the curve does not begin

Names = tuple[str, str]  # of the positive and the negative class

_OF_THEN = "A guess is that of the model when it asked, so today's model is rather better."
_NEEDS_LOG = "The answers are in the log: streamsvm report CONFIG.toml reads them, and shows {} here."


def labelling_panels(loop: Mapping[str, Any], answers: Answers | None, names: Names | None) -> list[Panel]:
    """The panels of a partition whose trainer asks questions.

    Parameters
    ----------
    loop
        The state of the labelling loop, from the checkpoint.
    answers
        The answers of the partition; None if the log was not read.
    names
        Names of the classes; None with more than two.
    """
    return [
        progress_panel(loop, answers, names),
        *([] if names is None else [quality_panel(answers, names)]),
        corrections_panel(answers, names),
        people_panel(answers, names),
        guesses_panel(loop),
    ]


# --- progress ---------------------------------------------------------------------------------------------------------


def progress_panel(loop: Mapping[str, Any], answers: Answers | None, names: Names | None) -> Panel:
    """How many labels there are, and whether they are enough; `names` is None with more than two classes."""
    counts = loop["counts"]
    of_two = [] if names is None else [(names[0], counts["n_positive"]), (names[1], counts["n_negative"])]
    of_classes = of_two or [pair for pair in counts["of_classes"] if pair[1]]
    shown = ", ".join(f"{n:,} {label}" for label, n in of_classes)
    facts = [
        ("Labels", f"{sum(n for _, n in of_classes):,}{shown and ': '}{shown}"),
        (
            "Questions",
            ", ".join(f"{counts.get(name, counts.get(f'n_{name}')):,} {name}" for name in (*OUTCOMES, "open")),
        ),
    ]
    if answers is None:
        return Panel("progress", "Progress", [_NEEDS_LOG.format("the rest")], facts=facts)
    pairs = compared(answers, are_two=names is not None)[-RECENT:]
    searched: ClassLabel
    if names is None:
        searched, n_found = min(of_classes, key=itemgetter(1), default=("", 0))
        what, text, more = f"“{searched}”, the rarest class,", _OF_THEN, _right_guesses(pairs)
    else:
        searched, what, n_found = True, names[0], counts["n_positive"]
        text, more = _still_missed(answers.status, names), _facts(pairs, answers)
    recall = _said_of_recall(pairs.count((searched, searched)), sum(y == searched for _, y in pairs))
    at_most = answers.status.get("missed", {}).get("at_most")
    if names is not None and at_most is not None and n_found:  # the bound on missed positives
        recall += f"; with the labels at least {n_found / (n_found + at_most):.0%}"
    facts = [*_lead_facts(counts["n_answered"], n_found, what, recall, answers), *facts, *more]
    why = answers.status.get("verdict", {}).get("why")
    return Panel("progress", "Progress", [*([f"The trainer says: {why}."] if why else []), text], facts=facts)


def _lead_facts(n_answered: int, n_found: int, what: str, recall: str, answers: Answers) -> list[tuple[str, str]]:
    """What the person who leads a labelling asks first.

    Parameters
    ----------
    n_answered
        Number of answers to questions.
    n_found, what
        Labels of the class that is searched, and its name.
    recall
        The recall of this class in words.
    answers
        The answers of the partition.
    """
    hours, counts = pace(answers.entries)
    per_hour = counts[-1] / hours[-1] if hours[-1] else 0.0
    cost = "–"
    if n_found:
        minutes = f", {60 * hours[-1] / n_found:,.1f} minutes of work" if per_hour else ""
        cost = f"{n_answered / n_found:,.1f} answers{minutes} for each {what} found"
    shared = agreement(said(answers.entries))
    beyond = "" if shared.kappa is None else f" ({shared.measure} {shared.kappa:.2f})"
    agreed = "–" if shared.share is None else f"{shared.share:.0%} of {plural(shared.n_shared, 'event')}{beyond}"
    return [
        ("Cost", cost),
        ("Recall", recall),
        ("Agreement", agreed),
        ("Hours left", _hours_left(answers.status.get("remaining"), per_hour)),
    ]


def _hours_left(remaining: int | None, per_hour: float) -> str:
    pace_now = f"{per_hour:,.0f} labels an hour by all annotators together" if per_hour else "the pace is not known"
    if remaining is None:
        return f"not known without a label quota; {pace_now}"
    left = f"{remaining / per_hour:,.1f}, for " if per_hour else ""
    return f"{left}{plural(remaining, 'label')} of the quota; {pace_now}"


def _said_of_recall(n_known: int, n: int) -> str:
    """The share of random events of a class that the model knew, with its interval."""
    if not n:
        return "not known: no random question found one"
    found = wilson(n_known, n)
    return f"{found.value:.0%} ({found.low:.0%} to {found.high:.0%}) on {plural(n, 'random one')}"


def _right_guesses(pairs: Pairs) -> list[tuple[str, str]]:
    n_right = sum(guess == y for guess, y in pairs)
    return [("Right guesses", f"{n_right} of the last {plural(len(pairs), 'random question')}")] if pairs else []


def _facts(pairs: Pairs, answers: Answers) -> list[tuple[str, str]]:
    """What the answers say at a glance."""
    found = quality(pairs).g_mean
    return [
        ("Corrected", plural(len(corrections(answers.entries)), "label")),
        ("g-mean", "–" if math.isnan(found.value) else f"{found.value:.1%} ({found.low:.1%} to {found.high:.1%})"),
    ]


def _still_missed(status: Mapping[str, Any], names: Names) -> str:
    """The bound on missed positives, which only random questions give; see `streamsvm.active.missed_at_most`."""
    missed = status.get("missed", {})
    if missed.get("at_most") is None:
        return f"How many {names[0]} are still missed is not known: that takes answers to audit questions."
    return (
        f"With 95 % confidence, at most {missed['at_most']:,} of the {missed['n_unlabelled']:,} events without a label "
        f"are {names[0]} that the model misses: of {plural(missed['n_audited'], 'random event')} that it took for "
        f"{names[1]}, {missed['n_found']:,} were not."
    )


# --- quality ----------------------------------------------------------------------------------------------------------


def quality_panel(answers: Answers | None, names: Names) -> Panel:
    """The g-mean on random questions, with its interval, along the answers."""
    name, title = "quality", "How good is the model?"
    if answers is None:
        return Panel(name, title, [_NEEDS_LOG.format("the g-mean on random questions")])
    pairs = compared(answers)
    if not pairs:
        return Panel(name, title, ["No random question (audit) was answered yet."])
    latest = quality(pairs[-RECENT:])
    points = [(n, quality(pairs[max(0, n - RECENT) : n]).g_mean) for n in range(_LEAST_ANSWERS, len(pairs) + 1)]
    known = [(n, found) for n, found in points if not math.isnan(found.value)]

    def plot(figure: Any) -> None:
        axes = new_axes(figure, "random questions answered", "g-mean, %")
        x = [n for n, _ in known]
        draw_band(axes, x, [100 * found.low for _, found in known], [100 * found.high for _, found in known])
        draw_curve(axes, x, [100 * found.value for _, found in known], FIRST, "g-mean", "-")
        fit(axes)

    text = [
        f"On the last {plural(len(pairs[-RECENT:]), 'random question')}: {_g_mean(latest.g_mean)}. The model knew "
        f"{latest.n_found} of {latest.n_positive} {names[0]} and {latest.n_rejected} of {latest.n_negative} "
        f"{names[1]}.",
        "Each guess is that of the model when it asked, so today's model is rather better. The interval is made of two "
        "Wilson intervals, one for each class.",
    ]
    alt = f"The g-mean on random questions over their number; at the end {_g_mean(latest.g_mean)}."
    return Panel(name, title, text, plot if known else None, alt)


def _g_mean(found: Interval) -> str:
    if math.isnan(found.value):
        return "the g-mean is not known, because one class is missing"
    return f"g-mean {found.value:.1%}, between {found.low:.1%} and {found.high:.1%} with 95 % confidence"


# --- people -----------------------------------------------------------------------------------------------------------


def people_panel(answers: Answers | None, names: Names | None) -> Panel:
    """Who labelled how much, how fast, and how far they agree; `names` is None with more than two classes."""
    name, title = "people", "Annotators"
    if answers is None:
        return Panel(name, title, [_NEEDS_LOG.format("their pace and agreement")])
    given = said(answers.entries)
    if not given:
        return Panel(name, title, ["No label says who gave it."])
    hours, counts = pace(answers.entries)
    unit, scale = ("hours", 1.0) if hours[-1] >= 2 else ("minutes", 60.0)

    def plot(figure: Any) -> None:
        axes = new_axes(figure, f"{unit} of work", "labelled events")
        draw_curve(axes, [scale * hour for hour in hours], counts, FIRST, "", "-")
        fit(axes, zoom=False)

    positives = [] if names is None else [names[0]]
    table: list[tuple[str, ...]] = [("annotator", "labels", *positives, "skipped", "agree", "per hour")]
    table += [
        (
            one.name or "–",
            f"{one.n_labels:,}",
            *(f"{one.n_positive:,}" for _ in positives),
            f"{one.n_skipped:,}",
            "–" if one.agreement is None else f"{one.agreement:.0%}",
            "–" if one.per_hour is None else f"{one.per_hour:,.0f}",
        )
        for one in annotators(given)
    ]
    shared = agreement(given)
    if shared.share is None:
        text = ["No event was labelled by two people, so their agreement is not known."]
    else:
        beyond = "" if shared.kappa is None else f" ({shared.measure} {shared.kappa:.2f})"
        text = [
            f"Two people or more labelled {plural(shared.n_shared, 'event')}; {shared.share:.1%} of the pairs of "
            f"labels agree{beyond}."
        ]
    text.append("Pauses of more than five minutes are no work.")
    alt = f"Labelled events over {unit} of work; {counts[-1]:,} after {scale * hours[-1]:,.1f} {unit}."
    return Panel(name, title, text, plot if len(hours) > 2 else None, alt, table)


# --- corrections ------------------------------------------------------------------------------------------------------


def corrections_panel(answers: Answers | None, names: Names | None) -> Panel:
    """The labels that were replaced; `names` is None with more than two classes."""
    name, title = "corrections", "Corrections"
    if answers is None:
        return Panel(name, title, [_NEEDS_LOG.format("what was corrected")])
    found = corrections(answers.entries)
    if not found:
        return Panel(name, title, ["No label was replaced by another one."])
    table = [("event", "was", "is", "time (UTC)", "by")]
    for entry, before in reversed(found[-_CORRECTIONS:]):
        was, now = (_named(one.after, names) for one in (before, entry))
        when = "–" if entry.time is None else f"{datetime.fromtimestamp(entry.time / 1000, UTC):%Y-%m-%d %H:%M}"
        table.append((str(entry.label.id), was, now, when, entry.annotator or "–"))
    n_events = len({entry.place for entry, _ in found})
    n_others = sum(entry.annotator != before.annotator for entry, before in found)
    text = [
        f"{plural(len(found), 'label')} of {plural(n_events, 'event')} replaced one of another class; {n_others:,} "
        "of them came from another person or a file. The model has forgotten the old labels."
    ]
    if len(found) > _CORRECTIONS:
        text.append(f"The newest {_CORRECTIONS} are shown; streamsvm labels --history writes all of them to a file.")
    return Panel(name, title, text, table=table)


def _named(label: ClassLabel | None, names: Names | None) -> str:
    return str(label) if names is None else names[0] if label else names[1]


# --- guesses ----------------------------------------------------------------------------------------------------------


def guesses_panel(loop: Mapping[str, Any]) -> Panel:
    """How often the model would have given the answers itself."""
    name, title, curve = "labels", "Label efficiency", loop["curve"]
    if not curve:
        return Panel(name, title, ["The curve begins with the first answer."])

    def plot(figure: Any) -> None:
        above, below = stacked(figure, "questions answered", "% wrong", "support vectors")
        for column, label, color, style in ((2, "random questions", FIRST, "-"), (3, "chosen questions", SECOND, "--")):
            points = [(point[0], 100 * (1 - point[column])) for point in curve if point[column] is not None]
            draw_curve(above, [x for x, _ in points], [y for _, y in points], color, label, style)
        draw_curve(below, [point[0] for point in curve], [point[1] for point in curve], FIRST, "", "-")
        for axes in (above, below):
            fit(axes, zoom=axes is above)

    last = next((point for point in reversed(curve) if point[2] is not None), None)
    known = f"{1 - last[2]:.1%} wrong on random questions" if last else "no random question was answered"
    text = [
        "Wrong: the share of the last 59 answers of a kind that the model had not guessed. Random questions measure "
        "how good the model is; chosen questions are about events that it is unsure of. Questions about events far "
        "from the labelled ones, and those before both classes were known, are neither. Below: the support vectors."
    ]
    alt = f"Wrong guesses over the answered questions; at the end, after {curve[-1][0]:,} answers, {known}."
    return Panel(name, title, text, plot, alt)
