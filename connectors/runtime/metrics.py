"""Metrics of a process, kept by prometheus_client."""

from collections.abc import Callable
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
_CHALLENGER = ("partition", "challenger")

METRICS = (
    Metric("streamsvm_up", "gauge", "1 while the loop is alive, as /healthz says."),
    Metric("streamsvm_ready", "gauge", "1 while records are consumed, as /readyz says."),
    Metric(
        "streamsvm_build_info", "gauge", "Always 1; the labels say which version is running.", ("python", "version")
    ),
    Metric("streamsvm_records_total", "counter", "Records taken from the input topics."),
    Metric("streamsvm_predictions_total", "counter", "Events that were predicted."),
    Metric("streamsvm_decided_total", "counter", "Events that were decided; see [decide]."),
    Metric("streamsvm_learned_total", "counter", "Labelled events that were learned, again for each correction."),
    Metric("streamsvm_bad_records_total", "counter", "Records that were refused, by reason.", ("reason",)),
    Metric("streamsvm_lost_records_total", "counter", "Records that were removed from the log before they were read."),
    Metric("streamsvm_events_without_features_total", "counter", "Events without features, which teach nothing."),
    Metric("streamsvm_unfit_values_total", "counter", "Values of raw events that were not of their field's kind."),
    Metric("streamsvm_fields", "gauge", "Fields of raw events that are known.", ("partition",)),
    Metric("streamsvm_tombstones_total", "counter", "Records without a value, which are passed over."),
    Metric(
        "streamsvm_odd_times_total",
        "counter",
        "Records whose time is not what they say: cut to join.max_skew_seconds, doubted or unknown.",
        ("outcome",),
    ),
    Metric("streamsvm_labels_total", "counter", "Labels, by outcome.", ("outcome",)),
    Metric(
        "streamsvm_revised_members_total",
        "counter",
        "Members that a label corrected or removed after the join had dropped their events.",
    ),
    Metric("streamsvm_late_labels_total", "counter", "The earlier name of streamsvm_revised_members_total."),
    Metric(
        "streamsvm_stranger_labels_total",
        "counter",
        "Labels that no event can match: their ids are strings and the events' integers, or the reverse.",
    ),
    Metric("streamsvm_questions_total", "counter", "Questions for labels, by outcome.", ("outcome",)),
    Metric("streamsvm_open_questions", "gauge", "Questions that wait for an answer.", ("partition",)),
    Metric("streamsvm_unresolved_questions", "gauge", "Open questions whose annotators disagree.", ("partition",)),
    Metric("streamsvm_annotators", "gauge", "People who gave the last 1000 answers.", ("partition",)),
    Metric("streamsvm_agreement", "gauge", "Share of equal labels among pairs of labels of an event.", ("partition",)),
    Metric("streamsvm_agreement_kappa", "gauge", "Agreement of annotators beyond chance.", ("partition",)),
    Metric("streamsvm_pending_events", "gauge", "Events and labels that wait in the join.", ("partition",)),
    Metric("streamsvm_pending_bytes", "gauge", "Memory of the join in bytes.", ("partition",)),
    Metric("streamsvm_models", "gauge", "Models in memory and on disk.", ("partition",)),
    Metric("streamsvm_dropped_models_total", "counter", "Models of keys that were dropped because of daemon.max_keys."),
    Metric(
        "streamsvm_damaged_models_total",
        "counter",
        "Stored models of keys that could not be read; their keys began anew.",
    ),
    Metric("streamsvm_support_vectors", "gauge", "Support vectors of the model.", ("partition",)),
    Metric("streamsvm_members", "gauge", "Examples that the model stores, support vectors or not.", ("partition",)),
    Metric("streamsvm_kernel_evaluations_total", "counter", "Kernel values that were computed."),
    Metric(
        "streamsvm_lag_records",
        "gauge",
        "Records between the next one to consume and the end of the log.",
        ("topic", "partition"),
    ),
    Metric(
        "streamsvm_rolling_error", "gauge", "Error of the predictions over the last labelled events.", ("partition",)
    ),
    Metric(
        "streamsvm_rolling_g_mean",
        "gauge",
        "Geometric mean of the accuracies on the two classes over the last labelled events.",
        ("partition",),
    ),
    Metric("streamsvm_rolling_auc", "gauge", "Area under the ROC curve over the last labelled events.", ("partition",)),
    Metric(
        "streamsvm_rolling_prbep",
        "gauge",
        "Precision-recall break-even point over the last labelled events.",
        ("partition",),
    ),
    *(
        Metric(
            f"streamsvm_rolling_{name}",
            "gauge",
            f"{what} over the last labelled events, with more than two classes.",
            ("partition",),
        )
        for name, what in (
            ("accuracy", "Share of right predictions"),
            ("macro_f1", "Mean of the classes' F1"),
            ("weighted_f1", "Mean of the classes' F1, weighted by their numbers of events,"),
            ("kappa", "Cohen's kappa of labels and predictions"),
        )
    ),
    *(
        Metric(
            f"streamsvm_class_{name}",
            "gauge",
            f"{what} among the last labelled events, with more than two classes.",
            ("partition", "class"),
        )
        for name, what in (
            ("n", "Events of a class"),
            ("precision", "Share of right predictions of a class"),
            ("recall", "Share of a class's events that were predicted as it"),
        )
    ),
    *(
        Metric(f"streamsvm_decisions_{name}", "gauge", f"{what}; see [decide].", ("partition", "class"))
        for name, what in (
            ("labelled", "Labelled events of a class"),
            ("decided", "Labelled events of a class that were decided"),
            ("wrong", "Labelled events of a class that were decided for another one"),
            ("promised", "How many may be wrong at most, if each label comes at once and one model decides"),
        )
    ),
    Metric(
        "streamsvm_confusion",
        "gauge",
        "Events of a class that were predicted as another or the same, among the last labelled ones.",
        ("partition", "class", "predicted"),
    ),
    Metric(
        "streamsvm_estimated_error",
        "gauge",
        "Estimated error of the model on examples that it leaves out.",
        ("partition", "kind", "bound"),
    ),
    Metric(
        "streamsvm_estimated_g_mean",
        "gauge",
        "Estimated geometric mean of the accuracies on the two classes.",
        ("partition", "kind", "bound"),
    ),
    Metric(
        "streamsvm_estimated_prbep",
        "gauge",
        "Estimated precision-recall break-even point.",
        ("partition", "kind", "bound"),
    ),
    Metric(
        "streamsvm_estimates_share", "gauge", "Time for estimates as a share of the time for learning.", ("partition",)
    ),
    Metric("streamsvm_challenger_active", "gauge", "1 while a challenger goes on, 0 once it was dropped.", _CHALLENGER),
    Metric("streamsvm_challenger_serving", "gauge", "1 for the model that serves, 0 for those beside it.", _CHALLENGER),
    Metric("streamsvm_challenger_labels", "gauge", "Labels that a challenger was compared on.", _CHALLENGER),
    Metric(
        "streamsvm_challenger_gain",
        "gauge",
        "How much better a challenger is than the model that serves; the bounds hold at all times together.",
        (*_CHALLENGER, "metric", "bound"),
    ),
    Metric("streamsvm_answers_events", "gauge", "Events that a model has answered, by the split.", _CHALLENGER),
    Metric("streamsvm_answers_labels", "gauge", "Labels of the events that a model has answered.", _CHALLENGER),
    Metric(
        "streamsvm_answers_mean",
        "gauge",
        "How a model does on the events that it has answered; the bounds hold at all times together.",
        (*_CHALLENGER, "metric", "bound"),
    ),
    Metric("streamsvm_checkpoints_total", "counter", "Checkpoints written."),
    Metric("streamsvm_checkpoint_seconds", "histogram", "Seconds that a checkpoint took.", (), _SHORT),
    Metric("streamsvm_checkpoint_bytes", "gauge", "Size of the last checkpoint in bytes.", ("partition",)),
    Metric("streamsvm_checkpoint_age_seconds", "gauge", "Seconds since the last checkpoint.", ("partition",)),
    Metric("streamsvm_rebalances_total", "counter", "Changes of the partitions assigned to this process."),
    Metric("streamsvm_published_total", "counter", "Models published."),
    Metric("streamsvm_unpublished_total", "counter", "Models that were too large to publish."),
    Metric(
        "streamsvm_refused_snapshots_total", "counter", "Published models, or parts of them, that could not be used."
    ),
    Metric("streamsvm_merges_total", "counter", "Models that were merged and published."),
    Metric("streamsvm_failed_merges_total", "counter", "Merges that failed: the models do not fit together."),
    Metric("streamsvm_merge_seconds", "histogram", "Seconds that a merge took.", (), _LONG),
    Metric("streamsvm_model_age_seconds", "gauge", "Seconds since the model in use was published.", ("model",)),
    Metric("streamsvm_cut_seconds", "histogram", "Seconds that a batch of records took.", (), _SHORT),
    Metric(
        "streamsvm_label_delay_seconds",
        "histogram",
        "Seconds from an event to its label, by their own times.",
        (),
        _LONG,
    ),
    Metric(
        "streamsvm_alarms_total",
        "counter",
        "Alarms: errors of a class that became more frequent, and features that moved.",
        ("kind",),
    ),
    Metric(
        "streamsvm_inputs_muted",
        "gauge",
        "Whether features moved so often lately that further alarms of them are not reported.",
        ("partition",),
    ),
    Metric(
        "streamsvm_feature_drift",
        "gauge",
        "Largest shift of a feature's recent mean from its mean in the model's scale, in standard deviations.",
        ("partition",),
    ),
)


_CLASSES: dict[Kind, Any] = {"counter": Counter, "gauge": Gauge, "histogram": Histogram}


class Metrics:
    """Values of the metrics in `METRICS`; a metric is shown from its first use on.

    One thread, the loop's, may write; any thread may render.

    Raises
    ------
    ValueError
        By any method, for a name that `METRICS` does not declare, or with another kind or other labels.
    """

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._declared = {metric.name: metric for metric in METRICS}
        self._families: dict[str, Any] = {}
        self._series: dict[str, dict[tuple[str, ...], Any]] = {}

    def set(self, name: str, value: float | Callable[[], float], /, **labels: object) -> None:
        """Set a gauge to a number, or for good to a function, which each scrape calls."""
        series = self._one(name, "gauge", labels)
        if callable(value):
            series.set_function(value)
        else:
            series.set(value)

    def add(self, name: str, value: float = 1, /, **labels: object) -> None:
        """Increase a counter."""
        self._one(name, "counter", labels).inc(value)

    def begin(self, *names: str, **labels: object) -> None:
        """Show these counters and histograms before there is anything to count."""
        for name in names:
            self._one(name, self._declared[name].kind, labels)

    def observe(self, name: str, values: npt.ArrayLike, /, **labels: object) -> None:
        """Add a value, or several at once, to a histogram."""
        series = self._one(name, "histogram", labels)
        for value in np.atleast_1d(np.asarray(values, dtype=np.float64)).tolist():
            series.observe(value)

    def drop(self, **labels: object) -> None:
        """Forget all series with these labels, as when a partition goes to another process."""
        for name, every in self._series.items():
            names = self._declared[name].labels
            if labels.keys() <= set(names):
                wanted = {names.index(label): _text(value) for label, value in labels.items()}
                for key in [key for key in every if all(key[at] == value for at, value in wanted.items())]:
                    del every[key]
                    self._families[name].remove(*key)

    def render(self) -> str:
        """All values in Prometheus' text format, version 0.0.4."""
        return prometheus_client.generate_latest(self.registry).decode()

    def _one(self, name: str, kind: Kind, labels: dict[str, object]) -> Any:
        """The series with these labels; made, with the metric, if it is new."""
        metric = self._declared.get(name)
        if metric is None:
            raise ValueError(f"name is {name!r}, which METRICS does not declare")
        if metric.kind != kind:
            raise ValueError(f"name is {name!r}, which is a {metric.kind} and no {kind}")
        if labels.keys() != set(metric.labels):
            raise ValueError(f"{name} has the labels {', '.join(labels)}, but METRICS declares {metric.labels}")
        if name not in self._families:
            options = {"buckets": metric.buckets} if metric.buckets else {}
            self._families[name] = _CLASSES[kind](name, metric.help, metric.labels, registry=self.registry, **options)
            self._series[name] = {}
        if not metric.labels:
            return self._families[name]
        key = tuple(_text(labels[label]) for label in metric.labels)
        series = self._series[name].get(key)
        if series is None:
            series = self._series[name][key] = self._families[name].labels(*key)
        return series


def _text(value: object) -> str:
    """A label's value; lone surrogates, as in a file's name that is not valid text, become question marks."""
    return str(value).encode(errors="replace").decode()
