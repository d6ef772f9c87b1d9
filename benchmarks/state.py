"""Checkpoints and restores in a folder and on a topic: seconds by the clock, CPU seconds, and what a cut costs.

A checkpoint holds random bytes, which cannot be compressed.  The next owner begins with an empty folder.

    python benchmarks/state.py --bootstrap 127.0.0.1:9092      # `make kafka` starts such a broker
"""

import argparse
import shutil
import tempfile
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
from kafka import KafkaAdminClient

from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import backend_of, open_once
from streamsvm.connectors.trainer.state.checkpoint import Checkpoint, CheckpointStore
from streamsvm.connectors.trainer.state.journal import Cut, Kind
from streamsvm.connectors.trainer.state.remote.ledger import Ledger
from streamsvm.connectors.trainer.state.remote.places import TopicPlace
from streamsvm.connectors.trainer.state.remote.store import RemoteStore

N_CHECKPOINTS, N_CUTS = 4, 500


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
        f"{n_bytes / 1e6:5.0f} MB, {what:6}: {each}, restored in {restoring.clock:.3f} s ({restoring.cpu:.3f}), {cut}"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", default="127.0.0.1:9092", help="address of a broker")
    parser.add_argument("--megabytes", type=float, nargs="+", default=[1, 10, 100])
    arguments = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        closing(KafkaAdminClient(bootstrap_servers=arguments.bootstrap)) as admin,
    ):
        folder = Path(name)
        (folder / "app.toml").write_text(f'[kafka]\nbootstrap_servers = "{arguments.bootstrap}"\n')
        settings = load(folder / "app.toml", {})
        for n_bytes in (int(1e6 * size) for size in arguments.megabytes):
            measure("folder", lambda _: CheckpointStore(folder / "shared" / "p0", 3), folder, n_bytes)
            shutil.rmtree(folder / "shared")
            topic = f"bench-state-{time.time_ns()}"
            admin.create_topics(
                {topic: {"num_partitions": 1, "replication_factor": 1, "configs": {"retention.ms": "-1"}}}
            )
            with open_once(settings) as log:
                trim = partial(backend_of(settings).trim, topic, 0)
                where = partial(TopicPlace, log, topic, 0, partial(open_once, settings), trim)
                measure(
                    "topic",
                    lambda place, make=where: RemoteStore(place / "p0", 3, Ledger(make(), print)),
                    folder,
                    n_bytes,
                )
            admin.delete_topics([topic])
            for place in ("first", "second"):
                shutil.rmtree(folder / place)


if __name__ == "__main__":
    main()
