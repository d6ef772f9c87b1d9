"""The merger: now and then it makes one model of those that the trainers of all partitions publish.

It reads the topic log.model from its beginning, and writes to log.merged, under the name "merged".  It keeps no state:
the manifest of the newest merged model says which models it was made of.  So a merger that was killed begins again, and
merges if a trainer has published since.

On Kafka, mergers share log.model in the group ``ID-merge``.  One of them has its partition and works; the others wait.
"""

import logging
import math
import time
from dataclasses import replace

from ..logs.transport import TopicMismatch, Transport, Unavailable
from ..records.published import LOADING_SECONDS, POLL_PIECES, Publisher, Shelf, Snapshot, TooLarge, read_newest
from ..runtime.health import Health
from ..runtime.metrics import Metrics
from ..runtime.process import POLL_SECONDS, Stop
from ..runtime.text import plural
from ..scorer.committee import ModelTopic, PartitionModels
from ..settings import topics
from ..settings.contradictions import lacking
from ..settings.opening import open_once
from ..settings.sections import Settings, refuse
from ..trainer.operate import Loop, operate
from ..trainer.publication import MERGED
from .merging import Versions, Work, versions_of

logger = logging.getLogger(__name__)

_FROM_THE_START = (
    "streamsvm_merges_total",
    "streamsvm_failed_merges_total",
    "streamsvm_merge_seconds",
    "streamsvm_refused_snapshots_total",
    "streamsvm_rebalances_total",
)


def run(settings: Settings, stop: Stop = lambda: False) -> int:
    """Run a merger.

    Parameters
    ----------
    settings
        The configuration.
    stop
        Asked between cycles; the merger ends once it says True.  A merge that is not finished then is given up.

    Returns
    -------
    int
        Number of models that were published.

    Raises
    ------
    ConfigError
        If the configuration lacks a topic of models, or of merged models.
    TopicMismatch
        If a topic does not exist, or if there is no model and the merger does not follow the topic.
    AlreadyInUse
        If another merger writes to the same embedded log.
    AccessDenied, Unavailable, OutputsLost
        If a Kafka cluster refuses the merger, or does not answer.
    """
    refuse(lacking(settings, NEEDS))
    # A model counts when its manifest is complete, so no transaction is needed; log.model has one partition for all.
    daemon, group = replace(settings.daemon, exactly_once=False), replace(settings.group, assign=None)
    return operate(Merger, replace(settings, daemon=daemon, group=group), stop, f"{settings.group.id}-merge") or 0


NEEDS = {
    "log.model": "name the topic on which the trainers publish their models",
    "log.merged": "name the topic on which the merger publishes the model that it makes",
}


class Merger(Loop[int]):
    """The loop over the models that are published."""

    def __init__(self, settings: Settings, log: Transport, stop: Stop, health: Health, metrics: Metrics) -> None:
        super().__init__(settings, log, stop, health, metrics)
        self._topic: ModelTopic | None = None  # None: another merger works
        self._publisher = Publisher(log, settings.log.merged)
        self._models: dict[str, Snapshot] = {}
        self._epoch = 0  # of the newest merged model; each one has its own
        self._tried: Versions = {}  # the models of the last merge, whether it succeeded or not
        self._tried_at = -math.inf
        self._work: Work | None = None
        self._n_published = 0
        self._problem: str | None = None  # why the last merge failed
        self._left_out: dict[str, str] = {}  # models that the last merge was made without, and why
        metrics.begin(*_FROM_THE_START)

    def run(self) -> int:
        """Merge the published models until stopped; return how many models were published."""
        self._health.unready = "no partition is assigned yet: another merger may work"
        topics.check(self._settings, topics.of_mergers(self._settings.log))
        self._log.subscribe(self._settings.log.model, self)
        while not self._stop() and not self._is_finished():
            self._cycle()
        return self._n_published

    # --- ownership ----------------------------------------------------------------------------------------------------

    def assigned(self, partitions: list[int]) -> None:
        """Begin with the first partition, which has all models."""
        self._metrics.add("streamsvm_rebalances_total")
        if 0 not in partitions:
            return
        shelf, until = Shelf(), time.monotonic() + LOADING_SECONDS
        with self._health.heartbeat.allow(LOADING_SECONDS), open_once(self._settings) as reader:
            newest = read_newest(reader, self._settings.log.merged, until, shelf).get(MERGED)
        self._publisher.resume(shelf.places())
        manifest = newest.manifest if newest else {}
        self._epoch, self._tried, self._tried_at = manifest.get("epoch", 0), manifest.get("of", {}), -math.inf
        self._models = {}
        self._topic = ModelTopic(self._log, self._settings.log.model)
        self._topic.follow()
        logger.info("merging the models of topic %r", self._settings.log.model)

    def revoked(self, partitions: list[int]) -> None:
        """Leave the work to another merger."""
        if 0 in partitions and self._topic is not None:
            self._topic, self._work = None, None
            self._log.release(self._settings.log.model, 0)
            self._health.unready = "another merger works"
            logger.info("another merger works now")

    def lost(self, partitions: list[int]) -> None:
        """As `revoked`: there is nothing to save."""
        self.revoked(partitions)

    # --- a cycle ------------------------------------------------------------------------------------------------------

    def _cycle(self) -> None:
        """Read models, and begin or end a merge."""
        self._health.heartbeat.beat()
        if self._topic is not None:
            self._topic.follow()
        records, topic = self._poll(POLL_SECONDS, POLL_PIECES), self._topic
        if topic is None:
            return
        for record in records:
            topic.put(record)
        self._take(topic)
        self._tell(topic)
        if self._work is not None and self._work.is_done:
            work, self._work = self._work, None
            self._end(work)
        elif self._work is None and topic.is_read and self._models and self._is_due:
            self._work = Work(self._models, self._settings)

    def _seek(self) -> None:
        if self._topic is not None:
            self._topic.check_positions()

    def _take(self, topic: ModelTopic) -> None:
        """Take the models that have arrived."""
        known = PartitionModels()
        for name in list(topic.arrived):
            arrived = topic.arrived.pop(name)
            if known.knows(name) and isinstance(arrived, Snapshot):
                self._models[name] = arrived
            else:
                self._models.pop(name, None)

    def _tell(self, topic: ModelTopic) -> None:
        """Say whether the merger is ready, and why not."""
        waits = None if self._models else f"no model has been published yet on topic {topic.name!r}"
        self._show((waits if topic.is_read else f"reading topic {topic.name!r}") or self._problem)
        self._metrics.add("streamsvm_refused_snapshots_total", topic.take_refused())

    @property
    def _has_news(self) -> bool:
        """Whether there are other models than those of the last merge."""
        return versions_of(self._models) != self._tried

    @property
    def _is_due(self) -> bool:
        return self._has_news and time.monotonic() - self._tried_at >= self._settings.merger.seconds

    def _is_finished(self) -> bool:
        if self._settings.daemon.follow or self._topic is None or not self._topic.is_read or self._topic.arrived:
            return False
        if not self._models:
            raise TopicMismatch(
                f"topic {self._topic.name!r} has no model of a partition; a merger waits for one only if "
                "daemon.follow = true"
            )
        return self._work is None and not self._has_news

    # --- the end of a merge -------------------------------------------------------------------------------------------

    def _end(self, work: Work) -> None:
        """Publish what a merge has made; if it has failed, wait for other models."""
        self._tried, self._tried_at = work.of, time.monotonic()
        self._metrics.observe("streamsvm_merge_seconds", work.seconds)
        try:
            merged = work.result()
            self._publisher.publish(MERGED, merged.blob, {**merged.meta, "epoch": self._epoch + 1})
            self._settle()
        except (ValueError, TypeError) as error:
            how = "is too large to publish" if isinstance(error, TooLarge) else "cannot be made"
            self._problem = f"one model of {', '.join(work.of)} {how}: {error}"
            logger.error("%s", self._problem)
            self._metrics.add("streamsvm_failed_merges_total")
            return
        self._epoch += 1
        self._n_published += 1
        self._problem = None
        self._tell_left_out(merged.left_out)
        created = merged.meta["created"]
        self._metrics.add("streamsvm_merges_total")
        self._metrics.set("streamsvm_model_age_seconds", lambda: time.time() - created, model=MERGED)
        logger.info(
            "merged %s into one with %s in %.1f seconds",
            plural(len(work.of) - len(merged.left_out), "model"),
            plural(merged.n_support, "support vector"),
            work.seconds,
        )

    def _tell_left_out(self, left_out: dict[str, str]) -> None:
        """Count the models that were left out, and log each reason once."""
        self._metrics.add("streamsvm_refused_snapshots_total", len(left_out))
        for name in left_out:
            if self._left_out.get(name) != left_out[name]:
                logger.warning("merging without model %r: %s", name, left_out[name])
        self._left_out = left_out

    def _settle(self) -> None:
        """Wait until the model is durable; without a broker, until the next one answers."""
        try:
            self._log.flush()
        except Unavailable as error:
            self._reading.goes_on(error)
