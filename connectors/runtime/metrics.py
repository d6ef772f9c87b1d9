"""Metrics of a process, kept by prometheus_client."""

from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import prometheus_client
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

prometheus_client.disable_created_metrics()  # Each counter would have another series with the time of its birth.

Kind = Literal["counter", "gauge", "histogram"]


class Metric(NamedTuple):
    """The declaration of a metric."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()  # upper bounds; prometheus_client adds the last one, infinity


_SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_LONG = (1.0, 10.0, 60.0, 600.0, 3600.0, 6 * 3600.0, 86400.0, 7 * 86400.0, 30 * 86400.0)

COUNTED_BY_TRAINERS = {  # counters without labels
    "streamsvm_records_total": "Records taken from the input topics.",
    "streamsvm_predictions_total": "Events that were predicted.",
    "streamsvm_decided_total": "Events that were decided; see [decide].",
    "streamsvm_learned_total": "Labelled events that were learned, again for each correction.",
    "streamsvm_lost_records_total": "Records that were removed from the log before they were read.",
    "streamsvm_tombstones_total": "Records without a value, which are passed over.",
    "streamsvm_revised_members_total": "Members that a label corrected or removed after the join had dropped their "
    "events.",
    "streamsvm_late_labels_total": "The earlier name of streamsvm_revised_members_total.",
    "streamsvm_stranger_labels_total": "Labels that no event can match: their ids are strings and the events' "
    "integers, or the reverse.",
    "streamsvm_kernel_evaluations_total": "Kernel values that were computed.",
    "streamsvm_checkpoints_total": "Checkpoints written.",
    "streamsvm_rebalances_total": "Changes of the partitions assigned to this process.",
    "streamsvm_published_total": "Models published.",
    "streamsvm_dropped_models_total": "Models of keys that were dropped because of daemon.max_keys.",
    "streamsvm_damaged_models_total": "Stored models of keys that could not be read; their keys began anew.",
    "streamsvm_unpublished_total": "Models that were too large to publish.",
    "streamsvm_unfit_values_total": "Values of raw events that were not of their field's kind.",
    "streamsvm_events_without_features_total": "Events without features, which teach nothing.",
}

_BY_LABELS: dict[tuple[str, ...], dict[str, str]] = {  # the others
    (): {
        "streamsvm_up": "1 while the loop is alive, as /healthz says.",
        "streamsvm_ready": "1 while records are consumed, as /readyz says.",
        "streamsvm_refused_snapshots_total": "Published models, or parts of them, that could not be used.",
        "streamsvm_merges_total": "Models that were merged and published.",
        "streamsvm_failed_merges_total": "Merges that failed: the models do not fit together.",
    },
    ("python", "version"): {"streamsvm_build_info": "Always 1; the labels say which version is running."},
    ("reason",): {"streamsvm_bad_records_total": "Records that were refused, by reason."},
    ("partition",): {
        "streamsvm_fields": "Fields of raw events that are known.",
        "streamsvm_open_questions": "Questions that wait for an answer.",
        "streamsvm_unresolved_questions": "Open questions whose annotators disagree.",
        "streamsvm_annotators": "People who gave the last 1000 answers.",
        "streamsvm_agreement": "Share of equal labels among pairs of labels of an event.",
        "streamsvm_agreement_kappa": "Agreement of annotators beyond chance.",
        "streamsvm_pending_events": "Events and labels that wait in the join.",
        "streamsvm_pending_bytes": "Memory of the join in bytes.",
        "streamsvm_models": "Models in memory and on disk.",
        "streamsvm_support_vectors": "Support vectors of the model.",
        "streamsvm_members": "Examples that the model stores, support vectors or not.",
        "streamsvm_rolling_error": "Error of the predictions over the last labelled events.",
        "streamsvm_rolling_g_mean": "Geometric mean of the accuracies on the two classes over the last labelled "
        "events.",
        "streamsvm_rolling_auc": "Area under the ROC curve over the last labelled events.",
        "streamsvm_rolling_prbep": "Precision-recall break-even point over the last labelled events.",
        "streamsvm_rolling_accuracy": "Share of right predictions over the last labelled events, with more than two "
        "classes.",
        "streamsvm_rolling_macro_f1": "Mean of the classes' F1 over the last labelled events, with more than two "
        "classes.",
        "streamsvm_rolling_weighted_f1": "Mean of the classes' F1, weighted by their numbers of events, over the last"
        " labelled events, with more than two classes.",
        "streamsvm_rolling_kappa": "Cohen's kappa of labels and predictions over the last labelled events, with more "
        "than two classes.",
        "streamsvm_estimates_share": "Time for estimates as a share of the time for learning.",
        "streamsvm_checkpoint_bytes": "Size of the last checkpoint in bytes.",
        "streamsvm_checkpoint_age_seconds": "Seconds since the last checkpoint.",
        "streamsvm_inputs_muted": "Whether features moved so often lately that further alarms of them are not "
        "reported.",
        "streamsvm_feature_drift": "Largest shift of a feature's recent mean from its mean in the model's scale, in "
        "standard deviations.",
    },
    ("outcome",): {
        "streamsvm_odd_times_total": "Records whose time is not what they say: cut to join.max_skew_seconds, doubted "
        "or unknown.",
        "streamsvm_labels_total": "Labels, by outcome.",
        "streamsvm_questions_total": "Questions for labels, by outcome.",
    },
    ("topic", "partition"): {
        "streamsvm_lag_records": "Records between the next one to consume and the end of the log."
    },
    ("partition", "class"): {
        "streamsvm_class_n": "Events of a class among the last labelled events, with more than two classes.",
        "streamsvm_class_precision": "Share of right predictions of a class among the last labelled events, with more"
        " than two classes.",
        "streamsvm_class_recall": "Share of a class's events that were predicted as it among the last labelled "
        "events, with more than two classes.",
        "streamsvm_decisions_labelled": "Labelled events of a class; see [decide].",
        "streamsvm_decisions_decided": "Labelled events of a class that were decided; see [decide].",
        "streamsvm_decisions_wrong": "Labelled events of a class that were decided for another one; see [decide].",
        "streamsvm_decisions_promised": "How many may be wrong at most, if each label comes at once and one model "
        "decides; see [decide].",
    },
    ("partition", "class", "predicted"): {
        "streamsvm_confusion": "Events of a class that were predicted as another or the same, among the last labelled"
        " ones.",
    },
    ("partition", "kind", "bound"): {
        "streamsvm_estimated_error": "Estimated error of the model on examples that it leaves out.",
        "streamsvm_estimated_g_mean": "Estimated geometric mean of the accuracies on the two classes.",
        "streamsvm_estimated_prbep": "Estimated precision-recall break-even point.",
    },
    ("partition", "challenger"): {
        "streamsvm_challenger_active": "1 while a challenger goes on, 0 once it was dropped.",
        "streamsvm_challenger_serving": "1 for the model that serves, 0 for those beside it.",
        "streamsvm_challenger_behind": "Events that a challenger has still to catch up with.",
        "streamsvm_challenger_labels": "Labels that a challenger was compared on.",
        "streamsvm_answers_events": "Events that a model has answered, by the split.",
        "streamsvm_answers_labels": "Labels of the events that a model has answered.",
    },
    ("partition", "challenger", "metric", "bound"): {
        "streamsvm_challenger_gain": "How much better a challenger is than the model that serves; the bounds hold at "
        "all times together.",
        "streamsvm_answers_mean": "How a model does on the events that it has answered; the bounds hold at all times "
        "together.",
    },
    ("model",): {"streamsvm_model_age_seconds": "Seconds since the model in use was published."},
    ("kind",): {
        "streamsvm_alarms_total": "Alarms: errors of a class that became more frequent, and features that moved."
    },
}

_TIMES = {  # histograms of seconds, with the upper bounds of their buckets but for infinity
    "streamsvm_checkpoint_seconds": ("Seconds that a checkpoint took.", _SHORT),
    "streamsvm_cut_seconds": ("Seconds that a batch of records took.", _SHORT),
    "streamsvm_merge_seconds": ("Seconds that a merge took.", _LONG),
    "streamsvm_label_delay_seconds": ("Seconds from an event to its label, by their own times.", _LONG),
}


def _declared() -> Iterator[Metric]:
    for labels, helps in (((), COUNTED_BY_TRAINERS), *_BY_LABELS.items()):
        for name, text in helps.items():
            yield Metric(name, "counter" if name.endswith("_total") else "gauge", text, labels)
    for name, (text, buckets) in _TIMES.items():
        yield Metric(name, "histogram", text, (), buckets)


METRICS = tuple(_declared())
_CLASSES: dict[Kind, Any] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """Values of the metrics in `METRICS`; a metric is shown from its first use on.

    One thread, the loop's, may write; any thread may render.

    Labels must be those that `METRICS` declares.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._declared = {metric.name: metric for metric in METRICS}
        self._families: dict[str, Any] = {}

    def set(self, name: str, value: float | Callable[[], float], /, **labels: object) -> None:
        """Set a gauge to a number, or for good to a function, which each scrape calls."""
        series = self._one(name, labels)
        if callable(value):
            series.set_function(value)
        else:
            series.set(value)

    def add(self, name: str, value: float = 1, /, **labels: object) -> None:
        """Increase a counter."""
        self._one(name, labels).inc(value)

    def begin(self, *names: str, **labels: object) -> None:
        """Show these counters and histograms before there is anything to count."""
        for name in names:
            self._one(name, labels)

    def observe(self, name: str, values: npt.ArrayLike, /, **labels: object) -> None:
        """Add a value, or several at once, to a histogram."""
        series = self._one(name, labels)
        for value in np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist():
            series.observe(value)

    def drop(self, **labels: object) -> None:
        """Forget all series with these labels, as when a partition goes to another process."""
        wanted = {label: _text(value) for label, value in labels.items()}
        for name, family in self._families.items():
            if labels.keys() <= set(self._declared[name].labels):
                family.remove_by_labels(wanted)

    def render(self) -> str:
        """All values in Prometheus' text format, version 0.0.4."""
        return prometheus_client.generate_latest(self.registry).decode()

    def _one(self, name: str, labels: dict[str, object]) -> Any:
        """The series with these labels; made, with the metric, if it is new."""
        metric = self._declared[name]
        if name not in self._families:
            options = {"buckets": metric.buckets} if metric.buckets else {}
            made = _CLASSES[metric.kind](name, metric.help, metric.labels, registry=self.registry, **options)
            self._families[name] = made
        family = self._families[name]
        return family.labels(**{label: _text(value) for label, value in labels.items()}) if labels else family


def _text(value: object) -> str:
    """A label's value; lone surrogates, as in a file's name that is not valid text, become question marks."""
    return str(value).encode(errors="replace").decode()
