"""Checkpoints and restores in a folder, on a topic and in objects; and how soon the next trainer predicts.

It prints seconds by the clock, and CPU seconds.  The checkpoints of the first lines hold random bytes, which cannot be
compressed.  The next owner begins with an empty folder, unless the state is kept there.

    python benchmarks/state.py --bootstrap 127.0.0.1:9092      # `make kafka` starts such a broker
"""

import argparse
import json
import shutil
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient

from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.settings import topics
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import backend_of, open_log, open_once
from streamsvm.connectors.trainer.state.checkpoint import Checkpoint, CheckpointStore
from streamsvm.connectors.trainer.state.journal import Cut, Kind
from streamsvm.connectors.trainer.state.remote.ledger import Ledger
from streamsvm.connectors.trainer.state.remote.objects import ObjectPlace, open_objects
from streamsvm.connectors.trainer.state.remote.places import TopicPlace
from streamsvm.connectors.trainer.state.remote.store import RemoteStore
from streamsvm.connectors.trainer.trainer import Trainer

N_CHECKPOINTS, N_CUTS = 4, 500
N_WIDE = 5000  # features of the events that fill a model


class Timed:
    """Seconds by the clock, and CPU seconds of the process, of a block."""

    def __enter__(self):
        self._begin = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *_):
        now = time.perf_counter(), time.process_time()
        self.clock, self.cpu = (end - begin for begin, end in zip(self._begin, now, strict=True))


def a_checkpoint(sequence, n_bytes):
    blob = np.random.default_rng(sequence).bytes(n_bytes)
    return Checkpoint(sequence, {"events": 0, "labels": 0}, {}, {}, {"model": blob}, {}).to_bytes()


def remote(place, folder):
    """A store whose ledger is at a place that this opens."""
    return RemoteStore(folder / "p0", 3, Ledger(place(), print))


def measure(what, own, folder, n_bytes):
    """One owner writes checkpoints and cuts; the next one begins where `own` says."""
    with closing(own(folder / "first")) as store:
        store.load()
        store.begin_journal()
        blobs = [a_checkpoint(sequence, n_bytes) for sequence in range(1, N_CHECKPOINTS + 1)]
        with Timed() as saving:
            for sequence, blob in enumerate(blobs, 1):
                journal = store.save(blob, sequence)
        with Timed() as cutting:
            for number in range(N_CUTS):
                journal.append(Cut(Kind.CUT, number, number))
                journal.done()
    with Timed() as restoring, closing(own(folder / "second")) as store:
        assert store.load().sequence == N_CHECKPOINTS
        assert len(store.begin_journal()[1]) == N_CUTS
    each = f"{saving.clock / N_CHECKPOINTS:7.3f} s ({saving.cpu / N_CHECKPOINTS:.3f} CPU s) a checkpoint"
    cut = f"{1e3 * cutting.clock / N_CUTS:.2f} ms ({1e3 * cutting.cpu / N_CUTS:.2f} CPU ms) a cut"
    print(
        f"{n_bytes / 1e6:5.0f} MB, {what:7}: {each}, restored in {restoring.clock:.3f} s ({restoring.cpu:.3f}), {cut}"
    )


# --- from the assignment to the first prediction ----------------------------------------------------------------------


class Watched(Trainer):
    """Notes when it is assigned a partition, when the partition is restored, and when the first prediction is made."""

    def assigned(self, partitions):
        self.times = [time.perf_counter()]
        produce = self._log.produce

        def note(topic, *arguments, **options):
            if topic == self._settings.log.predictions and len(self.times) == 2:
                self.times.append(time.perf_counter())
            produce(topic, *arguments, **options)

        self._log.produce = note
        super().assigned(partitions)
        self.times.append(time.perf_counter())

    @property
    def has_predicted(self):
        return len(getattr(self, "times", ())) > 2


def wide_events(n, rng):
    """Events that fill a model: each becomes a support vector of `N_WIDE` features."""
    for i in range(n):
        yield json.dumps({"id": i, "x": rng.normal(size=N_WIDE).round(3).tolist(), "y": i % 2}).encode()


def operate(settings, stop=lambda trainer: False):
    """Run a trainer in this process until it has consumed everything, or until `stop`."""
    with open_log(settings, lambda: False) as log:
        trainer = Watched(settings, log, lambda: stop(trainer), Health(), Metrics())
        trainer.run()
    return trainer


def measure_takeover(folder, store, bootstrap, n_events):
    """A trainer ends with a large state, its disk is gone, and another one takes over."""
    name = f"takeover-{store}-{time.time_ns()}"
    config = folder / f"{name}.toml"
    lines = [f'[kafka]\nbootstrap_servers = "{bootstrap}"', f'[group]\nid = "{name}"', f'[state]\nstore = "{store}"']
    lines += [f'url = "file://{folder}/bucket"'] if store == "objects" else []
    lines += ["[log]", *(f'{key} = "{name}-{key}"' for key in ("topic", "predictions", "dlq"))]
    lines += [f'state = "{name}-state"'] if store == "topic" else []
    lines += [
        "[model]",
        "C = 1.0",
        "[daemon]",
        "checkpoint_records = 100000",
        "checkpoint_seconds = 1000",
        f'state_dir = "{name}"',
    ]
    config.write_text("\n".join(lines))
    settings = load(config, {}, ["daemon.follow=false"])
    topics.create(settings, 1)
    rng = np.random.default_rng(0)
    with open_once(settings) as log:
        for event in wide_events(n_events, rng):
            log.produce(settings.log.topic, event)
        log.flush()
    operate(settings)
    size = max(path.stat().st_size for path in (settings.daemon.state_dir / "p0").glob("checkpoint-*"))
    if store != "dir":
        shutil.rmtree(settings.daemon.state_dir)
    with open_once(settings) as log:
        log.produce(settings.log.topic, next(wide_events(1, rng)))
        log.flush()
    with Timed() as whole:
        trainer = operate(load(config, {}), lambda trainer: trainer.has_predicted)
    began, restored, predicted = trainer.times
    print(
        f"{size / 1e6:5.0f} MB, {store:7}: {predicted - began:.2f} s from the assignment to the first prediction, "
        f"of which {restored - began:.2f} s until the state is restored ({whole.cpu:.2f} CPU s in all)",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a broker")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 10, 100])
    parser.add_argument("--url", help="an object store; default: a folder, through the same client")
    parser.add_argument("--events", type=int, default=700, help="of the takeover; each takes about 0.15 MB of state")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "app.toml").write_text(f'[kafka]\nbootstrap_servers = "{arguments.bootstrap}"\n')
        for n_bytes in (int(1e6 * size) for size in arguments.megabytes):
            measure("folder", lambda _: CheckpointStore(folder / "shared" / "p0", 3), folder, n_bytes)
            measure_topic(load(folder / "app.toml", {}), folder, n_bytes)
            objects = open_objects(arguments.url or f"file://{folder}/objects")
            prefix = f"bench-{time.time_ns()}"
            measure("objects", partial(remote, partial(ObjectPlace, objects, prefix, "objects")), folder, n_bytes)
            for place in ("shared", "first", "second"):
                shutil.rmtree(folder / place, ignore_errors=True)
        for store in ("dir", "topic", "objects"):
            measure_takeover(folder, store, arguments.bootstrap, arguments.events)


def measure_topic(settings, folder, n_bytes):
    topic = f"bench-state-{time.time_ns()}"
    shape = {"num_partitions": 1, "replication_factor": 1, "configs": {"retention.ms": "-1"}}
    with closing(KafkaAdminClient(bootstrap_servers=settings.kafka["bootstrap_servers"])) as admin:
        admin.create_topics({topic: shape})
        with open_once(settings) as log:
            trim = partial(backend_of(settings).trim, topic, 0)
            where = partial(TopicPlace, log, topic, 0, partial(open_once, settings), trim)
            measure("topic", partial(remote, where), folder, n_bytes)
        admin.delete_topics([topic])
    for place in ("first", "second"):
        shutil.rmtree(folder / place)


if __name__ == "__main__":
    main()
