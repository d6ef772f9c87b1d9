"""What a record costs the trainer: CPU microseconds by stage, and records per second, on a real broker.

The stream has 20 features and a label for each event on a topic of its own; both are records.  The model begins with
0, 500 or 5000 support vectors and nearly keeps them, for most events are easy: predicting one, and learning it, costs a
row of kernel values each.

The part "digits" has ten classes: digits with their labels in the same record.  It compares the trainer's CPU time for
a record with that of the engine alone, which predicts and learns the same digits from one array, in blocks of the same
size.

The part "clients" sets kafka-python, librdkafka and the local log side by side, with a trainer and a scorer each, on 22
features and about 1600 support vectors.  The part "keys" does so with a trainer that has a model for each key.  It is
measured from a start on, so it reads each model once: the stage "load".

    python benchmarks/daemon.py --bootstrap 127.0.0.1:9092      # `make kafka` starts such a broker
    python benchmarks/daemon.py --parts keys --logs local       # needs none
"""

import argparse
import json
import math
import tempfile
import time
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
from datasets import load_digits as load_mnist
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from shared.apps import LARGE, ONE_PARTITION, app
from shared.stages import Stages
from shared.transports import LOGS, compare, compare_by_key
from sklearn.datasets import load_digits

from streamsvm import LASVM, OneVsRest, warmup
from streamsvm.connectors.commands.shared.long_running import settle_memory
from streamsvm.connectors.trainer import trainer

N_FEATURES = 20
N_EASY = 2000  # examples that are learned before the measurement, beside the noise
FEWEST = 1000  # records: in fewer, the last checkpoint and the start would be most of the time
NAMES = [f"feature-{i}" for i in range(N_FEATURES)]
STAGES = ("fetch", "decode", "join", "model", "learn", "output", "produce", "checkpoint", "rest", "client's threads")
PARTS = ["sizes", "digits", "clients", "keys"]
SUPPORT_VECTORS = (0, 500, 5000)
TOPICS = {"topic": "events", "labels": "labels", "predictions": "predictions", "dlq": "dlq"}


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
    with closing(KafkaAdminClient(bootstrap_servers=arguments.bootstrap)) as admin:
        topics = {key: f"{name}-{TOPICS[key]}" for key in ("topic", "labels", "predictions", "dlq")}
        names = [*topics.values(), f"{name}-copies"]
        admin.create_topics(dict.fromkeys(names, ONE_PARTITION) | {topics["dlq"]: {**ONE_PARTITION, "configs": LARGE}})
        kafka = {"bootstrap_servers": arguments.bootstrap}
        settings = app(folder, name, topics, kafka=kafka, log={"format": form})
        x, y = stream(N_EASY + arguments.records // 2, n_support)
        n_first = n_support + N_EASY
        with closing(KafkaProducer(bootstrap_servers=arguments.bootstrap, linger_ms=5, batch_size=65536)) as producer:
            fill(producer, name, x[:n_first], y[:n_first], form)
            trainer.run(settings)
            fill(producer, name, x[n_first:], y[n_first:], form, n_first)
        stages = Stages()
        with ExitStack() as stack:
            for patch in stages.of_trainer():
                stack.enter_context(patch)
            state = trainer.run(settings)[0]
        client = 1e6 * alone(arguments.bootstrap, name, n_first) / (2 * (len(x) - n_first))
        report(state.model.n_support, form, stages, client)
        admin.delete_topics(names)


# --- ten digits -------------------------------------------------------------------------------------------------------


class Digits(NamedTuple):
    """Pixels from 0 to 1, digits, how many are learned before the measurement, and settings of the model."""

    X: np.ndarray
    y: np.ndarray
    n_first: int
    C: float
    gamma: float


def small_digits(seed=0):
    """First scikit-learn's 1797 digits, then two noisy copies of them, each in random order; 8 x 8 pixels."""
    data, rng = load_digits(), np.random.default_rng(seed)
    orders = [rng.permutation(len(data.target)) for _ in range(3)]
    noise = [2.0 * (t > 0) * rng.normal(size=data.data.shape) for t in range(3)]
    X = np.concatenate([data.data[order] + more for order, more in zip(orders, noise, strict=True)])
    return Digits((np.clip(X, 0, 16) / 16).round(3), data.target[np.concatenate(orders)], 1797, 10.0, 0.1)


def large_digits(folder):
    """10,000 digits of MNIST, 28 x 28 pixels."""
    data = load_mnist(folder, 10_000, 0)
    return Digits(data.X.astype(float).round(3), data.y, 2000, 10.0, 0.02)


def measure_digits(arguments, what, data, folder):
    """The trainer's CPU time per digit, beside that of the engine alone; both have learned the first ones before."""
    name, n = f"bench-{time.time_ns()}", len(data.y)
    with closing(KafkaAdminClient(bootstrap_servers=arguments.bootstrap)) as admin:
        topics = {key: f"{name}-{TOPICS[key]}" for key in ("topic", "predictions", "dlq")}
        names = [*topics.values()]
        admin.create_topics(dict.fromkeys(names, ONE_PARTITION) | {topics["dlq"]: {**ONE_PARTITION, "configs": LARGE}})
        kafka, model = {"bootstrap_servers": arguments.bootstrap}, {"C": data.C, "gamma": data.gamma, "scaling": "none"}
        settings = app(folder, name, topics, kafka=kafka, model=model, label={"classes": list(range(10))})
        with closing(KafkaProducer(bootstrap_servers=arguments.bootstrap, linger_ms=5, batch_size=65536)) as producer:
            for part in (range(data.n_first), range(data.n_first, n)):
                for i in part:
                    event = {"id": i, "x": data.X[i].tolist(), "y": int(data.y[i])}
                    producer.send(topics["topic"], json.dumps(event, separators=(",", ":")).encode())
                producer.flush()
                stages = Stages()
                with ExitStack() as stack:
                    for patch in stages.of_trainer(OneVsRest):
                        stack.enter_context(patch)
                    state = trainer.run(settings)[0]
        admin.delete_topics(names)
    engine = 1e6 * engine_alone(data, -(-(n - data.n_first) // stages.n_cuts)) / (n - data.n_first)
    report(state.model.n_support, f"{what} in {stages.n_cuts} cuts", stages, math.nan)
    micro = 1e6 * stages.total()[1] / stages.n_records
    print(
        f"      {what}: {micro:.1f} us per record, the engine alone {engine:.1f}, which is {micro / engine:.2f} times"
    )


def engine_alone(data, at_once):
    """CPU seconds of predicting and learning the digits after the first ones, so many at once."""
    model = OneVsRest(LASVM(C=data.C, gamma=data.gamma, scaling=None), classes=list(range(10)))
    model.learn_many(data.X[: data.n_first], data.y[: data.n_first])
    started = time.process_time()
    for begin in range(data.n_first, len(data.y), at_once):
        own = slice(begin, begin + at_once)
        model.predict_proba_many(data.X[own])
        model.learn_many(data.X[own], data.y[own])
    return time.process_time() - started


def alone(bootstrap, name, n_first):
    """CPU seconds of the client by itself: the same records are read, and as many predictions written."""
    value = b"x" * 150
    wanted = [TopicPartition(f"{name}-{topic}", 0) for topic in ("events", "labels")]
    with (
        closing(KafkaConsumer(bootstrap_servers=bootstrap, enable_auto_commit=False)) as consumer,
        closing(KafkaProducer(bootstrap_servers=bootstrap, linger_ms=5, batch_size=65536)) as producer,
    ):
        consumer.assign(wanted)
        ends = consumer.end_offsets(wanted)
        for partition in wanted:
            consumer.seek(partition, n_first)
        producer.partitions_for(f"{name}-copies")
        started = time.process_time()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for partition, batch in consumer.poll(timeout_ms=200, max_records=500).items():
                if partition == wanted[0]:
                    for record in batch:
                        producer.send(f"{name}-copies", value, key=record.key, partition=0)
        producer.flush()
        return time.process_time() - started


def report(n_support, form, stages, client):
    n, process, thread, clock = stages.total()
    seconds = dict(stages.seconds)
    seconds["rest"] = thread - sum(seconds.values())
    seconds["client's threads"] = process - thread
    micro = {stage: 1e6 * value / n for stage, value in seconds.items()}
    overhead = 1e6 * process / n - micro["model"]
    parts = ", ".join(f"{stage} {micro.get(stage, 0.0):.1f}" for stage in STAGES)
    print(
        f"{n_support:5} support vectors, {form}: {n / clock:.0f} records/s; CPU us per record {1e6 * process / n:.1f}, "
        f"of which the model {micro['model']:.1f} ({micro['model'] / (1e4 * process / n):.0f} %), "
        f"overhead {overhead:.1f} (the client alone: {client:.1f})\n      {parts}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a broker")
    parser.add_argument("--records", type=int, default=60_000, help="events and labels")
    parser.add_argument("--formats", nargs="*", default=["json", "float32"], choices=["json", "float32"])
    parser.add_argument("--data", type=Path, help="folder with mnist/mnist.npz, for digits of 784 pixels")
    parser.add_argument("--parts", nargs="*", default=PARTS, choices=PARTS, help="what to measure (default: all)")
    parser.add_argument("--keys", type=int, default=1000, help="how many there are in the part `keys`")
    parser.add_argument("--logs", nargs="*", default=LOGS, choices=LOGS, help="of `clients` and `keys` (default: all)")
    arguments = parser.parse_args()
    if arguments.records < FEWEST:
        parser.error(f"--records {arguments.records}: at least {FEWEST} records are needed to measure their cost")
    warmup(LASVM)
    settle_memory()
    print("crc32c:", "installed" if find_spec("crc32c") else "missing, so the client's part is several times as large")
    with tempfile.TemporaryDirectory() as folder:
        if "sizes" in arguments.parts:
            for form in arguments.formats:
                for n_support in SUPPORT_VECTORS:
                    measure(arguments, n_support, form, Path(folder))
        if "digits" in arguments.parts:
            measure_digits(arguments, "ten digits of 64 pixels", small_digits(), Path(folder))
            if arguments.data:
                measure_digits(arguments, "ten digits of 784 pixels", large_digits(arguments.data), Path(folder))
        if "clients" in arguments.parts:
            compare(arguments.bootstrap, arguments.logs, arguments.records, Path(folder))
        if "keys" in arguments.parts:
            compare_by_key(arguments.bootstrap, arguments.logs, arguments.records, arguments.keys, Path(folder))


if __name__ == "__main__":
    main()
