"""What a record costs the trainer: CPU microseconds by stage, and records per second, on a real broker.

The stream has 20 features and a label for each event on a topic of its own.  The model begins with 0, 500 or 5000 support
vectors and keeps them: the events are easy, so that none is learned into the model, and each costs one row of kernel values
to predict and one to learn.

    python benchmarks/daemon.py --bootstrap 127.0.0.1:9092      # `make kafka` starts such a broker
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import numpy as np
from kafka import KafkaAdminClient, KafkaProducer

from streamsvm import LASVM, warmup
from streamsvm.classifier import OnlineSVM
from streamsvm.connectors import daemon
from streamsvm.connectors.kafka_log import KafkaLog
from streamsvm.connectors.settings import load
from streamsvm.connectors.training import Training

N_FEATURES = 20
NAMES = [f"feature-{i}" for i in range(N_FEATURES)]
STAGES = ("fetch", "decode", "join", "model", "learn", "output", "loop", "client's threads")
SUPPORT_VECTORS = (0, 500, 5000)

CONFIG = """
[kafka]
bootstrap_servers = "{bootstrap}"
[log]
topic = "{name}-events"
labels = "{name}-labels"
predictions = "{name}-predictions"
dlq = "{name}-dlq"
format = "{format}"
[model]
C = 1.0
gamma = 0.05
[features]
scale = "none"
[daemon]
state_dir = "{folder}/state"
follow = false
[group]
assign = "0"
"""


class Stages:
    """CPU time of the main thread by stage; a stage inside another one is not counted twice."""

    def __init__(self):
        self.seconds = Counter()
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

        return timed

    def patches(self):
        for stage, owner, names in (
            ("fetch", KafkaLog, ["poll"]),
            ("decode", Training, ["_decode_events"]),
            ("model", OnlineSVM, ["decision_function_many", "probability", "learn_many"]),
            ("output", Training, ["_predict"]),
            ("output", KafkaLog, ["flush"]),
            ("join", Training, ["_join"]),
            ("learn", Training, ["_learn"]),
        ):
            for name in names:
                yield mock.patch.object(owner, name, self.around(stage, getattr(owner, name)))


def stream(n, n_noisy, seed=0):
    """Features and labels: first noise far away, every example of which becomes a support vector, then two classes."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_noisy + n, N_FEATURES))
    y = rng.random(n_noisy + n) < 0.5
    x[:n_noisy, 0] += 30
    x[n_noisy:, 1] += np.where(y[n_noisy:], 6, -6)
    return x.round(5), y


def fill(producer, name, x, y, form, first=0):
    for i, (row, label) in enumerate(zip(x, y, strict=True), first):
        key = f"user-{i % 1000}".encode()
        if form == "float32":
            producer.send(f"{name}-events", row.astype("<f4").tobytes(), key, [("sv-id", str(i).encode())])
        else:
            event = {"id": str(i), "x": dict(zip(NAMES, row.tolist(), strict=True))}
            producer.send(f"{name}-events", json.dumps(event).encode(), key)
        producer.send(f"{name}-labels", json.dumps({"id": str(i), "y": bool(label)}).encode(), key)
    producer.flush()


def measure(arguments, n_support, form, folder):
    """Run the trainer over the noise, then measure it over the rest."""
    name = f"bench-{time.time_ns()}"
    admin = KafkaAdminClient(bootstrap_servers=arguments.bootstrap)
    topics = [f"{name}-{topic}" for topic in ("events", "labels", "predictions", "dlq")]
    admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 1} for topic in topics})
    config = folder / f"{name}.toml"
    config.write_text(CONFIG.format(bootstrap=arguments.bootstrap, name=name, folder=folder / name, format=form))
    settings = load(config, {})
    x, y = stream(arguments.records, n_support)
    producer = KafkaProducer(bootstrap_servers=arguments.bootstrap, linger_ms=5, batch_size=65536)
    n_first = n_support + 2000
    fill(producer, name, x[:n_first], y[:n_first], form)
    daemon.run(settings)
    fill(producer, name, x[n_first:], y[n_first:], form, n_first)
    producer.close()
    stages = Stages()
    with ExitStack() as stack:
        for patch in stages.patches():
            stack.enter_context(patch)
        process, thread, clock = time.process_time(), time.thread_time(), time.perf_counter()
        state = daemon.run(settings)[0]
        process, thread, clock = time.process_time() - process, time.thread_time() - thread, time.perf_counter() - clock
    admin.delete_topics(topics)
    admin.close()
    n = len(x) - n_first
    stages.seconds["loop"] = thread - sum(stages.seconds.values())
    stages.seconds["client's threads"] = process - thread
    report(state.model.n_support, form, n, clock, process, stages.seconds)


def report(n_support, form, n, clock, process, seconds):
    micro = {stage: 1e6 * value / n for stage, value in seconds.items()}
    overhead = 1e6 * process / n - micro["model"]
    parts = "  ".join(f"{stage} {micro.get(stage, 0.0):.1f}" for stage in STAGES)
    print(
        f"{n_support:6} support vectors, {form:8} {n / clock:8.0f} records/s  CPU {1e6 * process / n:6.1f} us/record, "
        f"model {micro['model'] / (1e4 * process / n):3.0f} %, overhead {overhead:5.1f}:  {parts}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a broker")
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--formats", nargs="+", default=["json", "float32"], choices=["json", "float32"])
    arguments = parser.parse_args()
    warmup(LASVM)
    print("crc32c:", "installed" if find_spec("crc32c") else "missing, so the client's part is several times as large")
    with tempfile.TemporaryDirectory() as folder:
        for form in arguments.formats:
            for n_support in SUPPORT_VECTORS:
                measure(arguments, n_support, form, Path(folder))


if __name__ == "__main__":
    main()
