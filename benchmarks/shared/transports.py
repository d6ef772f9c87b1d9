"""The trainer and the scorer over kafka-python, librdkafka and the local log: CPU time per record, side by side."""

import json
import time
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.trainer import trainer

from .apps import LARGE, ONE_PARTITION, app
from .stages import Stages
from .tables import table

N_FEATURES = 22
N_NOISE = 1200  # examples of noise, most of which become support vectors
N_EASY = 3000  # examples to learn before the measurement, beside the noise
NAMES = [f"feature-{i}" for i in range(N_FEATURES)]
TOPICS = ("events", "labels", "predictions", "scores", "dlq", "models")
LOGS = ("kafka-python", "librdkafka", "local")
STAGES = ("fetch", "decode", "load", "join", "model", "learn", "output", "produce", "checkpoint")
ASKED = {  # us per record, as issue 23 asks
    ("trainer", "kafka-python"): 60,
    ("trainer", "librdkafka"): 45,
    ("trainer", "local"): 40,
    ("scorer", "kafka-python"): 35,
    ("scorer", "librdkafka"): 25,
    ("scorer", "local"): 20,
}
ASKED_BY_KEY = 150


def compare(bootstrap, logs, n_records, folder):
    """Print a table of a trainer and a scorer on each log."""
    rows = []
    for kind in logs:
        with place(bootstrap, kind, folder) as log:
            learned, taught = run_trainer(log, examples(n_records // 2))
            rows.append(row("trainer", kind, ASKED["trainer", kind], learned, taught))
            rows.append(row("scorer", kind, ASKED["scorer", kind], learned, run_scorer(log)))
    show(rows)


def compare_by_key(bootstrap, logs, n_records, n_keys, folder):
    """Print a table of a trainer with a model for each key, on each log."""
    rows = []
    for kind in logs:
        with place(bootstrap, kind, folder, per="key") as log:
            learned, taught = run_trainer(log, keyed_examples(n_records // 2, n_keys))
            rows.append(row(f"trainer, {n_keys} keys", kind, ASKED_BY_KEY, learned, taught))
    show(rows)


def show(rows):
    print("\nCPU us per record, of which the main thread's stages:\n")
    titles = ("process", "log", "support vectors", "asked", "all", *STAGES, "rest", "other threads")
    print(table("|".join(titles), rows), flush=True)


def row(process, kind, asked, n_support, stages):
    n, cpu, thread, _ = stages.total()
    parts = [stages.seconds.get(stage, 0.0) for stage in STAGES]
    every = [cpu, *parts, thread - sum(parts), cpu - thread]
    return [process, kind, n_support, str(asked), *(f"{1e6 * seconds / n:.1f}" for seconds in every)]


# --- what is measured -------------------------------------------------------------------------------------------------


class Log:
    """Topics of one transport: their settings, and how they are filled."""

    def __init__(self, name, settings, send, flush):
        self.name, self.settings, self._send, self._flush = name, settings, send, flush

    def fill(self, X, y, keys, first):
        """Write events, numbered from `first` on, and their labels."""
        for i, (features, label, key) in enumerate(zip(X.tolist(), y.tolist(), keys, strict=True), first):
            event = {"id": str(i), "x": dict(zip(NAMES, features, strict=True))}
            self._send(f"{self.name}-events", json.dumps(event).encode(), key)
            self._send(f"{self.name}-labels", json.dumps({"id": str(i), "y": label}).encode(), key)
        self._flush()


@contextmanager
def place(bootstrap, kind, folder, per="partition"):
    """New topics of this kind of log."""
    name = f"bench-{time.time_ns()}"
    is_local = kind == "local"
    topics = {"topic" if topic == "events" else topic: f"{name}-{topic}" for topic in TOPICS[:-1]}
    sections: dict[str, dict[str, Any]] = {"daemon": {"per": per, "max_models": 20_000}}
    sections["log"] = {"dir": str(folder / name / "log"), "model": f"{name}-models" if per == "partition" else ""}
    if not is_local:
        sections["kafka"] = {"client": kind, "bootstrap_servers": bootstrap}
    settings = app(folder, name, topics, **sections)
    with ExitStack() as stack:
        if is_local:
            log = stack.enter_context(closing(LocalLog(settings.log.dir)))
            yield Log(name, settings, lambda topic, value, key: log.produce(topic, value, key=key), log.close)
            return
        admin = stack.enter_context(closing(KafkaAdminClient(bootstrap_servers=bootstrap)))
        configs = dict.fromkeys(TOPICS, LARGE) | {"models": {**LARGE, "cleanup.policy": "compact"}}
        admin.create_topics({f"{name}-{topic}": {**ONE_PARTITION, "configs": configs[topic]} for topic in TOPICS})
        stack.callback(admin.delete_topics, [f"{name}-{topic}" for topic in TOPICS])
        producer = KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, batch_size=65536)
        stack.enter_context(closing(producer))
        yield Log(name, settings, producer.send, producer.flush)


def run_trainer(log, examples):
    """Let a trainer learn the first examples, then measure it over the others; also the number of support vectors."""
    X, y, keys, n_first = examples
    log.fill(X[:n_first], y[:n_first], keys[:n_first], 0)
    trainer.run(log.settings)
    log.fill(X[n_first:], y[n_first:], keys[n_first:], n_first)
    stages = Stages()
    with ExitStack() as stack:
        for patch in stages.of_trainer():
            stack.enter_context(patch)
        state = trainer.run(log.settings)[0]
    by_key = log.settings.daemon.per == "key"
    return "-" if by_key else str(state.model.n_support), stages


def run_scorer(log):
    """Let a scorer predict all events with the trainer's last model."""
    stages = Stages()
    with ExitStack() as stack:
        for patch in stages.of_scorer():
            stack.enter_context(patch)
        scorer.run(log.settings)
    return stages


def examples(n, seed=0):
    """First noise far away, every example of which becomes a support vector, then two classes that are far apart."""
    rng = np.random.default_rng(seed)
    n_first = N_NOISE + N_EASY
    X = rng.normal(size=(n_first + n, N_FEATURES))
    y = rng.random(len(X)) < 0.5
    X[:N_NOISE, 0] += 30
    X[N_NOISE:, 1] += np.where(y[N_NOISE:], 6, -6)
    return X.round(5), y, [f"user-{i % 1000}".encode() for i in range(len(X))], n_first


def keyed_examples(n, n_keys, seed=0):
    """Two classes that are far apart, for each key in turn; the first three rounds are learned before."""
    rng = np.random.default_rng(seed)
    n_first = 3 * n_keys
    X = rng.normal(size=(n_first + n, N_FEATURES))
    y = rng.random(len(X)) < 0.5
    X[:, 1] += np.where(y, 6, -6)
    return X.round(5), y, [f"user-{i % n_keys}".encode() for i in range(len(X))], n_first
