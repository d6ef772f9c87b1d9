"""The topics of a configuration: their present shape, the right shape, and what is wrong."""

import logging
from collections.abc import Iterable, Mapping

from ..logs.transport import Shape, TopicMismatch
from ..records.people.questions import MAX_QUESTION_BYTES
from ..records.published import CHUNK_BYTES
from ..runtime.findings import PROBLEM, WARNING, Finding, Findings
from ..runtime.numbers import DAY_MS
from ..runtime.text import plural
from .kafka_section import ENVELOPE_BYTES
from .opening import backend_of
from .sections import LogSettings, Settings

logger = logging.getLogger(__name__)

_REMEDY = "`streamsvm topics CONFIG.toml --create` creates the missing topics"

_FOR_EVER = -1  # Kafka's value of retention.ms
_LETTER_BYTES = 1 << 20  # least max.message.bytes of a dead-letter topic that we create


def of_trainers(settings: Settings) -> list[str]:
    """The topics that a trainer reads and writes."""
    log = settings.log
    names = [name for name in log.topics() if name not in (log.merged, log.scores)]
    return [*names, *settings.topics_of_challengers()]


def of_scorers(settings: Settings) -> list[str]:
    """The topics that a scorer reads and writes; empty without a topic of models."""
    log, models = settings.log, served(settings)
    return [log.topic, models, log.scores] if models else []


def served(settings: Settings) -> str:
    """The topic of the models that scorers predict with; empty if there is none."""
    return settings.log.merged if settings.scorer.model == "merged" else settings.log.model


def of_mergers(log: LogSettings) -> list[str]:
    """The topics that a merger reads and writes."""
    return [log.model, log.merged] if log.model and log.merged else []


def used(settings: Settings) -> list[str]:
    """All topics that a configuration needs."""
    log = settings.log
    return list(dict.fromkeys([*of_trainers(settings), *of_scorers(settings), *of_mergers(log)]))


def describe(settings: Settings, names: Iterable[str]) -> dict[str, Shape]:
    """The shapes of those topics that exist.

    Raises
    ------
    Unavailable
        If no broker answers.
    AccessDenied
        If the broker refuses us.
    """
    return backend_of(settings).describe(names)


def wanted(settings: Settings, n_partitions: int) -> dict[str, Shape]:
    """The shapes that all topics should have.

    Parameters
    ----------
    settings
        The configuration.
    n_partitions
        Number of partitions of the events' topic.
    """
    log = settings.log
    shapes = {name: Shape(n_partitions, "delete", 7 * DAY_MS) for name in used(settings)}
    shapes[log.dlq] = Shape(1, "delete", 30 * DAY_MS, max(_LETTER_BYTES, _largest_letter(settings)))
    shapes |= {name: Shape(1, "compact") for name in (log.model, log.merged) if name in shapes}
    kept = filter(None, (log.state, log.erasures, *log.control_topics))
    shapes |= {name: Shape(n_partitions, "delete", _FOR_EVER) for name in kept}
    if log.questions:
        shapes[log.questions] = Shape(n_partitions, "compact")
    return shapes


def create(
    settings: Settings,
    n_partitions: int | None = None,
    replication: int | None = None,
    names: Iterable[str] | None = None,
) -> list[str]:
    """Create the missing topics; return their names.

    Parameters
    ----------
    settings
        The configuration.
    n_partitions
        Number of partitions of the events' topic and of the topics that go with it; default: as many as it has, or 1.
    replication
        Number of brokers that keep each topic; default: the brokers' own.
    names
        Topics to create; default: all.

    Raises
    ------
    TopicMismatch
        If the events' topic exists with another number of partitions.
    """
    found = describe(settings, used(settings))
    events = found.get(settings.log.topic)
    if events and n_partitions not in (None, events.n_partitions):
        raise TopicMismatch(
            f"topic {settings.log.topic!r} has {events.n_partitions} partitions already, not {n_partitions}"
        )
    n_partitions = events.n_partitions if events else n_partitions or 1
    shapes = wanted(settings, n_partitions)
    missing = {name: shapes[name] for name in names or shapes if name not in found}
    if missing:
        backend_of(settings).create(missing, replication)
    return list(missing)


def check(settings: Settings, names: Iterable[str]) -> None:
    """Refuse topics that neither trainer nor scorer can work with, and log what else is wrong with them.

    Raises
    ------
    TopicMismatch
        With every problem to mend first.
    """
    names = list(names)
    findings = examine(settings, names, describe(settings, names))
    stops = [finding for finding in findings if finding.level == PROBLEM]
    if stops:
        raise TopicMismatch("; ".join([*(finding.text for finding in stops), *remedies(stops)]))
    for finding in findings:
        if finding.level == WARNING:
            logger.warning("%s", finding.text)


def remedies(findings: Iterable[Finding]) -> list[str]:
    """What to do about all of these together."""
    return list(dict.fromkeys(finding.remedy for finding in findings if finding.remedy))


# --- what may be wrong ------------------------------------------------------------------------------------------------


def examine(settings: Settings, names: Iterable[str], found: Mapping[str, Shape]) -> list[Finding]:
    """Every remark about these topics."""
    shapes = {name: found[name] for name in names if name in found}
    if backend_of(settings).makes_topics:
        return list(_made_by_records(settings.log, names, shapes))
    missing = [Finding.problem(f"there is no topic {name!r}", _REMEDY) for name in names if name not in shapes]
    return [*missing, *_counts(settings, shapes), *_policies(settings.log, shapes), *_sizes(settings, shapes)]


def _made_by_records(log: LogSettings, names: Iterable[str], shapes: Mapping[str, Shape]) -> Findings:
    """Remarks about a log that makes a topic with its first record, and has no settings of topics."""
    events = shapes.get(log.topic, Shape(1))
    for name in names:
        shape = shapes.get(name)
        is_beside = name in (log.labels, log.erasures, *log.control_topics)
        if is_beside and shape and shape.n_partitions != events.n_partitions:
            yield Finding.warning(_other_count(name, shape, log.topic, events))
        elif name == log.labels and not shape and events.n_partitions > 1:
            text = f"its first record would make it with 1 partition, but {log.topic!r} has {events.n_partitions}"
            yield Finding.warning(f"there is no topic {name!r} yet; {text}", _REMEDY)
        elif not shape:
            yield Finding.ok(f"there is no topic {name!r} yet; its first record makes it")


def _counts(settings: Settings, shapes: Mapping[str, Shape]) -> Findings:
    """An event, its label and its predictions must be in the same partition of their topics."""
    log = settings.log
    events = shapes.get(log.topic)
    beside = (log.labels, log.predictions, log.scores, log.questions, log.state, log.erasures, *log.control_topics)
    for name in (*beside, *settings.topics_of_challengers()):
        shape = shapes.get(name)
        if events and shape and shape.n_partitions != events.n_partitions:
            yield Finding.problem(_other_count(name, shape, log.topic, events))
    if events and events.is_default:
        yield Finding.ok(
            f"topic {log.topic!r} has the broker's defaults, as if its first record had made it: "
            f"{plural(events.n_partitions, 'partition')}, so {plural(events.n_partitions, 'trainer')} at most"
        )


def _other_count(name: str, shape: Shape, topic: str, events: Shape) -> str:
    too_many = shape.n_partitions > events.n_partitions
    return (
        f"topic {name!r} has {plural(shape.n_partitions, 'partition')}, but {topic!r} has {events.n_partitions}: "
        f"{'make it again with' if too_many else 'give it'} as many"
    )


def _policies(log: LogSettings, shapes: Mapping[str, Shape]) -> Findings:
    for_ever = {
        log.state: ("checkpoints will be removed one day", "; the trainers remove old ones themselves"),
        log.erasures: (
            "requests to forget will be removed one day, and a later run over the log would learn the records again",
            "",
        ),
        **dict.fromkeys(log.control_topics, ("it will be forgotten one day which model served when", "")),
    }
    for name, shape in shapes.items():
        policies = (shape.cleanup or "").split(",")
        if name in (log.model, log.merged, log.questions) and shape.cleanup and policies != ["compact"]:
            what = "questions" if name == log.questions else "models"
            yield Finding.warning(
                f"topic {name!r} has cleanup.policy={shape.cleanup}, so the newest {what} will be removed one day: "
                "set it to compact"
            )
        if name in for_ever and shape.retention_ms not in (None, _FOR_EVER):
            loss, remark = for_ever[name]
            yield Finding.problem(
                f"topic {name!r} has retention.ms={shape.retention_ms}, so {loss}: set it to -1{remark}"
            )
        if name not in (log.model, log.merged, log.questions) and "compact" in policies:
            yield Finding.warning(
                f"topic {name!r} has cleanup.policy={shape.cleanup}, so of each key only the last record stays: set it "
                "to delete"
            )


def _sizes(settings: Settings, shapes: Mapping[str, Shape]) -> Findings:
    """Topics that would one day refuse a record, and so end the trainer."""
    log = settings.log
    needs = {
        log.dlq: (_largest_letter(settings), "to take a dead letter of limits.dead_letter_kb, with its reason"),
        log.model: (CHUNK_BYTES + ENVELOPE_BYTES, "to take a piece of a model"),
        log.merged: (CHUNK_BYTES + ENVELOPE_BYTES, "to take a piece of a model"),
        log.state: (CHUNK_BYTES + ENVELOPE_BYTES, "to take a piece of a checkpoint"),
        log.questions: (MAX_QUESTION_BYTES + ENVELOPE_BYTES, "to take the question about a large event"),
    }
    for name, (least, purpose) in needs.items():
        size = shapes[name].max_bytes if name in shapes else None
        if size is not None and size < least:
            yield Finding.problem(f"topic {name!r} has max.message.bytes={size}, and needs at least {least} {purpose}")


def _largest_letter(settings: Settings) -> int:
    """Bytes of the largest dead letter."""
    return settings.limits.dead_letter_bytes + ENVELOPE_BYTES
