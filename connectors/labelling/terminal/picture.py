"""A question as text."""

import json
import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ...records.classes import ClassLabel
from ...records.people.questions import FOUND, RECHECK, Question, is_series
from ...runtime.text import plural
from ...settings.sections import Settings
from ..answer import Given

WHY = {
    "seed": "the model first needs a few labels of each class",
    "boundary": "the model is least sure of this event",
    "novel": "it is unlike the events that have a label",
    "explore": "it was picked to find mistakes that the model does not suspect",
    "undecided": "the model cannot decide this event alone",
    "check": "the model decided it alone, and it was picked at random to check that",
    "review": "it looks positive, and all such events are asked about",
    "hunt": "it is like one that a random check has just found",
    "audit": "it was picked at random, to check that the model is good enough",
    "found": "you have found it",
    "recheck": "an earlier answer does not fit the others: please look again",
}

_TEXT_LINES = 20  # of a text; it shares the screen with the features
_FIELD_LINES = 12  # fields of the event besides the text
_FRAME_LINES = 12  # above and below the features
_LEAST_ROWS = 8  # of features, however small the terminal is
_BARS = "▁▂▃▄▅▆▇█"


def keys_line(keys: Mapping[str, str]) -> str:
    """The keys and their meanings, given the key of each class."""
    classes = "  ".join(f"[{key}] {plain(name)}" for name, key in keys.items() if key)
    n_without = sum(not key for key in keys.values())
    more = f"  ({n_without} more classes have no key)" if n_without else ""
    return f"{classes}{more}  [s] cannot tell  [i] ignore  [u] undo  [h] history  [/] find  [=] like this  [q] quit"


def picture(
    shown: Question, settings: Settings, stats: Mapping[str, Any], size: tuple[int, int], keys: Mapping[str, str]
) -> str:
    """A question as text.

    Parameters
    ----------
    shown
        The question.
    settings
        The configuration: names of the labels, and which field of the event is a text.
    stats
        From `LabellingService.stats`.
    size
        Columns and lines of the terminal.
    keys
        The key of each class, by its name.
    """
    names = list(keys)
    width, height = max(40, size[0]), size[1]
    fields = _fields(shown, settings, width)
    guess = names[0] if shown.guess is None else plain(str(shown.guess))
    score = "" if shown.score is None else f"{shown.score:.0%} {guess}, "
    n_rows = max(_LEAST_ROWS, height - _FRAME_LINES - len(fields))
    lines = [
        "-" * width,
        f"event {_short(shown.id, width - 6)}",
        *fields,
        *_features(shown, width, n_rows),
        "",
        f"asked because {WHY.get(shown.reason, _short(shown.reason, width))}",
        *([] if shown.reason in (FOUND, RECHECK) else [f"the model: {score}margin {shown.margin:+.3g}"]),
        *progress(stats, names),
        keys_line(keys),
    ]
    return "\n".join(lines)


def _features(shown: Question, width: int, n_rows: int) -> list[str]:
    """Features with their values, the unusual ones first and marked."""
    unusual = sorted(shown.unusual, key=lambda name: -abs(shown.unusual[name]))
    names = [*(name for name in unusual if name in shown.x), *(name for name in shown.x if name not in shown.unusual)]
    chosen = names[:n_rows]
    labels = {name: _short(name, width // 2) for name in chosen}
    column = max(map(len, labels.values()), default=0)
    rows = []
    for name in chosen:
        z = shown.unusual.get(name)
        mark = "" if z is None else f"  <- unusual: {z:+.1f} standard deviations"
        rows.append(f"  {labels[name]:{column}}  {shown.x[name]:>12.6g}{mark}")
    if len(names) > len(chosen):
        rows.append(f"  and {len(names) - len(chosen)} more features")
    return rows


def _fields(shown: Question, settings: Settings, width: int) -> list[str]:
    """The event's other fields: the text in full, any other field on one line."""
    text_field, lines = settings.labelling.text, []
    if isinstance(text := shown.event.get(text_field), str):
        paragraphs = [textwrap.wrap(plain(part), width - 2) or [""] for part in text.splitlines()]
        wrapped = [f"  {line}" for paragraph in paragraphs for line in paragraph]
        lines += wrapped[:_TEXT_LINES]
        if len(wrapped) > _TEXT_LINES:
            lines.append(f"  ... and {len(wrapped) - _TEXT_LINES} more lines")
    others = [  # the feature that the text is, too, says nothing new
        (name, value) for name, value in shown.event.items() if not isinstance(value, str) or value != text
    ]
    for name, value in others[:_FIELD_LINES]:
        drawn = _bars(value, width // 2) if name == settings.labelling.series else None
        lines.append(f"  {_short(name, width // 3)}: {drawn or _short(value, width // 2)}")
    if len(others) > _FIELD_LINES:
        lines.append(f"  and {len(others) - _FIELD_LINES} more fields")
    return lines


def _bars(value: Any, width: int) -> str | None:
    """A list of numbers as a row of bars; None for anything else, and for numbers too large for floats."""
    if not is_series(value):
        return None
    numbers = [float(item) for item in value]
    step = -(-len(numbers) // width)
    means = [sum(part) / len(part) for part in (numbers[i : i + step] for i in range(0, len(numbers), step))]
    low = min(means)
    span = max(means) - low or 1.0
    if not math.isfinite(span):
        return None
    bars = "".join(_BARS[round((mean - low) / span * (len(_BARS) - 1))] for mean in means)
    return f"{bars} {min(numbers):g} to {max(numbers):g}"


def said(op: str, y: ClassLabel | None, settings: Settings) -> str:
    """An answer in words."""
    if op == "set" and y is not None:
        return plain(settings.label.shown_as(y))
    return "skipped" if op == "skip" else "ignored"


def listed(
    rows: Sequence[tuple[Given | None, str | int, Question | None]], settings: Settings, width: int
) -> list[str]:
    """Events as a numbered list: what was answered, their ids, and the beginning of what was asked."""
    answers = ["" if answer is None else said(answer.op, answer.y, settings) for answer, _, _ in rows]
    column, lines = max(map(len, answers)), []
    for number, (answer, (_, id_, shown)) in enumerate(zip(answers, rows, strict=True), 1):
        start = f"  [{number}] {answer:{column}}  event {_short(id_, width // 3)}"
        text = "" if shown is None else shown.event.get(settings.labelling.text)
        rest = width - len(start) - 2
        lines.append(f"{start}  {_short(text, rest)}" if isinstance(text, str) and text and rest > 8 else start)
    return lines


def for_whom(shown: Question, is_for_all: bool) -> str:
    """Whether an answer is for near-duplicates, too."""
    n = len(shown.alike)
    return f"also for {n} more {'almost ' * shown.almost}like it" if is_for_all else "for this event alone"


def progress(stats: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    remaining = stats["remaining"]
    quota = "" if remaining is None else f"; {remaining} left to give"
    if "classes" in stats:
        of_classes = ", ".join(f"{n} {plain(str(label))}" for label, n in stats["classes"] if n)
    else:
        of_classes = f"{stats['positive']} {names[0]}, {stats['negative']} {names[1]}"
    counts = f"{plural(stats['labels'], 'label')}: {of_classes}{quota}"
    refused = f"damaged questions, not shown: {stats['refused']}" if stats.get("refused") else ""
    people = f"people disagree about {stats['unresolved']} open questions" if stats.get("unresolved") else ""
    notes = (stats["verdict"]["why"], people, refused, stats["trainer"], stats["trouble"])
    return [counts, *(plain(note) for note in notes if note)]


def plain(text: str) -> str:
    """Text without characters that a terminal would take for commands."""
    return "".join(character if character.isprintable() else " " for character in text)


def _short(value: Any, width: int) -> str:
    """A value on one line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = plain(text[: 4 * width])
    return text if len(text) <= width else text[: max(width - 3, 1)] + "..."
