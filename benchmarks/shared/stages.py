"""CPU time of a trainer or a scorer by stage."""

import time
from collections import Counter
from unittest import mock

from streamsvm.connectors.logs.cluster.log import ClusterLog
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.scorer.committee import Committee
from streamsvm.connectors.scorer.scorer import Scorer
from streamsvm.connectors.trainer.decoding import Decoder
from streamsvm.connectors.trainer.partition import Partition
from streamsvm.connectors.trainer.processing import Processor
from streamsvm.connectors.trainer.state.models import KeyedModels
from streamsvm.estimators.learner.classifier import OnlineSVM

LOGS = (ClusterLog, LocalLog)
OF_LOG = {"fetch": ["poll"], "produce": ["produce", "flush"]}


class Stages:
    """CPU time of the main thread by stage; a stage inside another one is not counted twice."""

    def __init__(self):
        self.seconds = Counter()
        self.n_records = self.n_cuts = 0
        self.first = self.last = None  # by the clocks of `now`, at the first cut and after the last checkpoint
        self._stack = []

    def around(self, stage, function):
        def timed(*arguments, **options):
            started = time.thread_time()
            self._stack.append(0.0)
            try:
                return function(*arguments, **options)
            finally:
                total = time.thread_time() - started
                self.seconds[stage] += total - self._stack.pop()
                if self._stack:
                    self._stack[-1] += total
                elif self.first and stage in ("produce", "checkpoint"):
                    self.last = self.now()  # The last checkpoint comes after the last cut.

        return timed

    def of_trainer(self, model=OnlineSVM):
        """Patches of a trainer's methods."""
        of_one = ["decision_function_one", "probability_one"] if model is OnlineSVM else ["decision_function_one"]
        of_many = ["decision_function_many", "probability" if model is OnlineSVM else "_probabilities"]
        yield from self._timed(
            ("decode", Decoder, ["events"]),
            ("load", KeyedModels, ["_stored"]),
            ("model", model, [*of_one, *of_many]),
            ("model", model, ["learn_many", "learn_one"]),
            ("output", Processor, ["_predict"]),
            ("join", Processor, ["_join"]),
            ("learn", Processor, ["_learn"]),
            ("checkpoint", Partition, ["save"]),
        )
        yield mock.patch.object(Partition, "step", self.counted(Partition.step))

    def of_scorer(self):
        """Patches of a scorer's methods."""
        yield from self._timed(
            ("decode", Scorer, ["_read"]), ("model", Committee, ["predict"]), ("output", Scorer, ["_score"])
        )
        yield mock.patch.object(Scorer, "_cycle", self.counted(Scorer._cycle))

    def _timed(self, *chosen):
        of_log = [(stage, log, names) for log in LOGS for stage, names in OF_LOG.items()]
        for stage, owner, names in (*chosen, *of_log):
            for name in names:
                yield mock.patch.object(owner, name, self.around(stage, getattr(owner, name)))

    def counted(self, step):
        """A step of the loop, which notes how many records were consumed, and when."""

        def noting(owner):
            if self.first is None:
                self.first = self.last = self.now()
                self.seconds.clear()
            n = step(owner)
            if n:
                self.n_records += n
                self.n_cuts += 1
                self.last = self.now()
            return n

        return noting

    @staticmethod
    def now():
        return time.process_time(), time.thread_time(), time.perf_counter()

    def total(self):
        """Number of records, CPU seconds of the process and of its main thread, and seconds by the clock."""
        return self.n_records, *(last - first for first, last in zip(self.first, self.last, strict=True))
