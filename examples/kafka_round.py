"""One round on Kafka: topics, events, a trainer with its predictions, and a scorer with the trainer's models.

It needs a broker: start one with `make kafka`, or set STREAMSVM_KAFKA_BOOTSTRAP_SERVERS=HOST:PORT. Each run makes its
own topics. In production, `streamsvm run` and `streamsvm score` do the same with kafka.toml, and wait for more.
"""
# ruff: noqa: T201 - an example answers by printing

import json
import os
import random
import tempfile
import time
from pathlib import Path

from streamsvm.connectors.commands.shared import log_access
from streamsvm.connectors.logs import reading
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.settings import topics
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.trainer import trainer

names = ["topic", "labels", "predictions", "dlq", "model", "scores"]
prefix = f"example-{time.time_ns()}"
overrides = [f"log.{name}={prefix}-{name}" for name in names] + [f"group.id={prefix}", "daemon.follow=false"]

with tempfile.TemporaryDirectory(prefix="streamsvm-") as state:
    config = Path(__file__).with_name("kafka.toml")
    settings = load(config, os.environ, [*overrides, f"daemon.state_dir={state}"])
    print("made", len(topics.create(settings, 2)), "topics")

    draw = random.Random(0)  # noqa: S311 - data, not secrets
    with open_once(settings) as log:
        for number in range(1000):
            x, y = draw.gauss(0, 1), draw.gauss(0, 1)
            key = f"sensor-{number % 20}".encode()  # says which partition; the same for an event and its label
            log.produce(settings.log.topic, json.dumps({"id": number, "x": {"x": x, "y": y}}).encode(), key=key)
            log.produce(settings.log.labels, json.dumps({"id": number, "y": x * x + y * y < 1}).encode(), key=key)
        log_access.flush(log)

    for partition, trained in sorted(trainer.run(settings).items()):
        print(f"partition {partition}: {trained.counters.learned} learned, {trained.metrics.rolling()}")
    print("a scorer predicted", scorer.run(settings), "events with the mean of both partitions' models")

    with open_once(settings) as log:
        ends = log.end_offsets(settings.log.scores)
        print(next(reading.read(log, settings.log.scores, dict.fromkeys(ends, 0), ends)).value.decode())
