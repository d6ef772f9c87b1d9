"""The trainer's metrics: once a second it writes the state of its partitions into them."""

import itertools
import math
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from streamsvm.validation import Interval

from ..records.classes import ClassLabel
from ..records.codec import Codec
from ..records.formats.base import REASONS
from ..records.people.questions import OUTCOMES
from ..runtime.metrics import COUNTED_BY_TRAINERS, METRICS, Metrics
from ..runtime.process import LOOK_SECONDS
from .partition import Partition
from .state.alarms import ERRORS, INPUTS
from .state.candidates import Labelling
from .state.decided import shares
from .state.estimates import Estimates
from .state.lesson import JoinCounters
from .state.quality.arms import Arm
from .state.quality.multiclass import ClassPrequential, Confusion
from .state.state import State

_MOST_CLASSES = 30  # up to which the confusion matrix is shown
_LABELS = {metric.name: metric.labels for metric in METRICS}
_OUTCOMES = {"n": "labelled", "decided": "decided", "wrong": "wrong"}  # of decisions, by the fields of a tally
_COUNTED_BY_LABELS = {  # counters of trainers, with the values of their label
    "streamsvm_bad_records_total": REASONS,
    "streamsvm_labels_total": [item.name for item in fields(JoinCounters)],
    "streamsvm_questions_total": OUTCOMES,
    "streamsvm_odd_times_total": ("cut", "doubted", "unknown"),
    "streamsvm_alarms_total": (ERRORS, INPUTS),
}
Gauge = tuple[str, float, dict[str, str]]  # its name, its value, and its labels beside the partition
_TIMED = ("streamsvm_cut_seconds", "streamsvm_checkpoint_seconds", "streamsvm_label_delay_seconds")


class Telemetry:
    """Keeps `Metrics` up to date.

    Counters start at 0 with the process, not at the counts of its checkpoints.  Every counter exists from the
    beginning: a monitoring system sees an increase only after a first value.

    Parameters
    ----------
    metrics
        Takes the values.
    codec
        Reads the records, and counts the labels of unknown origin.
    listed
        The classes that the configuration lists.  Only they are called by their names: the metrics need no token, and
        anybody who labels may have written the others.
    audit
        The share of the decided events whose labels come; default: all.
    """

    def __init__(self, metrics: Metrics, codec: Codec, listed: Collection[ClassLabel] = (), audit: float = 1.0) -> None:
        self._audit = audit
        self._metrics = metrics
        self._codec = codec
        self._listed = listed
        self._n_strangers = 0
        metrics.begin(*COUNTED_BY_TRAINERS, *_TIMED)
        for name, labels in _COUNTED_BY_LABELS.items():
            for label in labels:
                metrics.begin(name, **dict.fromkeys(_LABELS[name], label))
        self._counted: dict[int, Counter[tuple[str, str]]] = {}
        self._looked_at = 0.0

    # --- events -------------------------------------------------------------------------------------------------------

    def took(self, n_records: int, seconds: float) -> None:
        """Count the records of a cut, and its seconds."""
        self._metrics.add("streamsvm_records_total", n_records)
        self._metrics.observe("streamsvm_cut_seconds", seconds)

    def rebalanced(self, partitions: Iterable[Partition]) -> None:
        """Count a rebalance, and begin to count for new partitions."""
        self._metrics.add("streamsvm_rebalances_total")
        for partition in partitions:
            if partition.number not in self._counted:
                counts = _counts(partition)
                del counts["streamsvm_lost_records_total", ""]  # records lost before this start
                self._counted[partition.number] = counts

    def forget(self, partition: Partition) -> None:
        """Drop the metrics of a partition that this process has given up."""
        self._count(partition)
        self._counted.pop(partition.number, None)  # which is not counted yet if not all partitions could be opened
        self._metrics.drop(partition=partition.number)

    @contextmanager
    def saving(self, partition: Partition) -> Iterator[None]:
        """Measure the writing of a checkpoint."""
        started = time.perf_counter()
        yield
        saved_at = time.monotonic()
        self._metrics.add("streamsvm_checkpoints_total")
        self._metrics.observe("streamsvm_checkpoint_seconds", time.perf_counter() - started)
        self._metrics.set("streamsvm_checkpoint_bytes", partition.checkpoint_bytes, partition=partition.number)
        self._metrics.set(
            "streamsvm_checkpoint_age_seconds", lambda: time.monotonic() - saved_at, partition=partition.number
        )

    def published(self, n_models: int) -> None:
        """Count models that were published for scorers."""
        self._metrics.add("streamsvm_published_total", n_models)

    # --- once a second ------------------------------------------------------------------------------------------------

    @property
    def is_due(self) -> bool:
        """Whether a second has passed since the last look at the partitions."""
        return time.monotonic() - self._looked_at >= LOOK_SECONDS

    def collect(self, partitions: Iterable[Partition]) -> None:
        """Write the state of all partitions into the metrics."""
        self._looked_at = time.monotonic()
        for partition in partitions:
            self._count(partition)
            self._measure(partition)

    def _count(self, partition: Partition) -> None:
        counts = _counts(partition)
        for (name, label), n in (counts - self._counted.get(partition.number, Counter())).items():
            self._metrics.add(name, n, **dict.fromkeys(_LABELS[name], label))
        self._counted[partition.number] = counts
        self._metrics.add("streamsvm_stranger_labels_total", self._codec.n_strangers - self._n_strangers)
        self._n_strangers = self._codec.n_strangers

    def _measure(self, partition: Partition) -> None:
        for topic, lag in partition.lag.items():
            self._metrics.set("streamsvm_lag_records", lag, topic=topic, partition=partition.number)
        state = partition.state
        if state is None:
            return
        self._metrics.observe("streamsvm_label_delay_seconds", partition.processor.take_waits())
        if state.challengers.all:  # the one that serves now may have been one of them
            self._metrics.drop(partition=partition.number, challenger=state.challengers.serving)
        for name, value, labels in self._gauges(partition, state):
            self._metrics.set(f"streamsvm_{name}", value, partition=partition.number, **labels)

    def _gauges(self, partition: Partition, state: State) -> Iterator[Gauge]:
        """What the gauges of a partition show."""
        sizes = state.models.sizes()
        found = {
            "pending_events": state.join.n_entries,
            "pending_bytes": state.join.nbytes,
            "models": len(state.models),
            "support_vectors": sizes.n_support,
            "members": sizes.n_members,
            **{f"rolling_{name}": value for name, value in state.metrics.gauges().items()},
            "feature_drift": partition.processor.drift.largest(),
            "inputs_muted": state.alarms.inputs.muted,
        }
        if state.records is not None:
            found["fields"] = state.records.n_fields
        if state.labelling:
            found |= _annotators(state.labelling)
        if state.estimates:
            found["estimates_share"] = state.estimates.share
            yield from _of_estimates(state.estimates)
        yield from ((name, value, {}) for name, value in found.items())
        yield from self._of_decisions(state)
        yield from _of_challengers(state)
        yield from _of_answers(state.challengers.arms or ())
        if isinstance(state.metrics, ClassPrequential):
            yield from self._of_classes(state.metrics.rolling())

    def _of_decisions(self, state: State) -> Iterator[Gauge]:
        """How the decisions on each class fared, and how many may be wrong if one model makes them."""
        decider = state.models.single and state.models.single.decider
        tallies = state.decided.tallies
        for label, name in self._names(tallies).items():
            for outcome, n in tallies[label]._asdict().items():
                yield f"decisions_{_OUTCOMES[outcome]}", n, {"class": name}
            if decider is not None:
                yield "decisions_promised", decider.promised(tallies[label].n), {"class": name}

    def _of_classes(self, confusion: Confusion) -> Iterator[Gauge]:
        """The metrics of each class, and the confusion matrix if it is small enough to be looked at."""
        names = self._names(confusion.labels)
        for label, scores in confusion.of_classes().items():
            for name in ("n", "precision", "recall"):
                yield f"class_{name}", getattr(scores, name), {"class": names[label]}
        if len(confusion.labels) > _MOST_CLASSES:
            return
        for (row, column), n in np.ndenumerate(confusion.counts):
            labels = {"class": names[confusion.labels[row]], "predicted": names[confusion.labels[column]]}
            yield "confusion", int(n), labels

    def _names(self, labels: Iterable[ClassLabel]) -> dict[ClassLabel, str]:
        """What classes are called: a class that came with a label has a number instead of its name."""
        added = (f"added-{number}" for number in itertools.count(1))
        return {
            label: str(self._codec.name_of(label))
            if label in self._listed or not self._codec.is_multiclass
            else next(added)
            for label in labels
        }

    def summary(self, partitions: Iterable[Partition]) -> dict[str, Any]:
        """The figures of the status line."""
        states = [partition.state for partition in partitions if partition.state]
        n_support = sum(state.models.sizes().n_support for state in states)
        errors = [state.metrics.rolling_error() for state in states if state.metrics.n]
        shown = {"error": f"{sum(errors) / len(errors):.1%}"} if errors else {}
        tallies = [tally for state in states for tally in state.decided.tallies.values()]
        if tallies:
            shown["decided"] = f"{shares(tallies, self._audit)[0]:.1%}"
        return {**shown, "support_vectors": n_support}


def _of_challengers(state: State) -> Iterator[Gauge]:
    """How each challenger does beside the model that serves."""
    challengers = state.challengers
    if challengers.all:
        yield "challenger_serving", 1.0, {"challenger": challengers.serving}
    for challenger in challengers.all:
        where = {"challenger": challenger.name}
        yield "challenger_serving", 0.0, where
        yield "challenger_active", float(not challenger.dropped), where
        yield "challenger_behind", 0 if challenger.caught_up is None else state.offset - challenger.caught_up, where
        yield "challenger_labels", challenger.comparison.n, where
        for difference in challenger.comparison.differences():
            yield from _bounds("challenger_gain", difference.gain, {**where, "metric": difference.metric})


def _of_answers(arms: Iterable[Arm]) -> Iterator[Gauge]:
    """How each model does on what it has answered."""
    for arm in arms:
        where = {"challenger": arm.name}
        yield "answers_events", arm.n_events, where
        yield "answers_labels", arm.n_labels, where
        for metric, mean in arm.metrics.items():
            yield from _bounds("answers_mean", mean, {**where, "metric": metric})


def _of_estimates(estimates: Estimates) -> Iterator[Gauge]:
    for kind, estimate in estimates.latest.items():
        for name in ("error", "g_mean", "prbep"):
            interval = getattr(estimate, name)
            if name != "prbep" or not math.isnan(interval.value):  # else there are more than two classes
                yield from _bounds(f"estimated_{name}", interval, {"kind": kind})


def _bounds(name: str, interval: Interval, labels: dict[str, str]) -> Iterator[Gauge]:
    return ((name, value, {**labels, "bound": bound}) for bound, value in interval._asdict().items())


def _annotators(labelling: Labelling) -> dict[str, float]:
    """Open questions, and how far the annotators agree; NaN if that is not known."""
    found = labelling.votes.statistics()
    share, kappa = (found["agreement"][name] for name in ("share", "kappa"))
    return {
        "open_questions": labelling.loop.counts.n_open,
        "unresolved_questions": len(labelling.disputed()),
        "annotators": len(found["annotators"]),
        "agreement": math.nan if share is None else share,
        "agreement_kappa": math.nan if kappa is None else kappa,
    }


def _counts(partition: Partition) -> Counter[tuple[str, str]]:
    """All counts of a partition, by the name of the metric and a label."""
    state, decoder = partition.state, partition.processor.decoder
    if state is None:
        return Counter()
    by_label = {
        "predictions": {"": state.counters.predicted},
        "decided": {"": partition.processor.n_decided},
        "learned": {"": state.counters.learned},
        "revised_members": {"": state.counters.late},
        "late_labels": {"": state.counters.late},
        "lost_records": {"": partition.n_lost},
        "unpublished": {"": partition.n_unpublished},
        "dropped_models": {"": state.models.n_dropped},
        "damaged_models": {"": state.models.n_damaged},
        "kernel_evaluations": {"": state.models.sizes().kernel_evaluations},
        "unfit_values": {"": state.records.n_unfit if state.records else 0},
        "events_without_features": {"": decoder.n_empty},
        "tombstones": {"": decoder.n_tombstones},
        "labels": asdict(state.join.counters),
        "questions": state.labelling.counted(OUTCOMES) if state.labelling else {},
        "alarms": {ERRORS: state.alarms.errors.n_alarms, INPUTS: state.alarms.inputs.n_alarms},
        "odd_times": state.join.odd_times,
        "bad_records": decoder.refused,
    }
    return Counter({(f"streamsvm_{name}_total", label): n for name, of in by_label.items() for label, n in of.items()})
