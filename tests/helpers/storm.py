"""A storm: trainers and a producer that write at the same time are killed at random moments, again and again.

    python tests/helpers/storm.py --kills 100 --per key --damage     # from the repository's folder

A storm has a configuration file, so its processes are those of the command line.
It draws from a seed which process it kills and when; how far a process has come by then depends on the machine.
Afterwards a trainer consumes what is left, and `Storm.found` says what is lost or double.
"""

import argparse
import itertools
import json
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace

from nursery import COMMAND_LINE, Nursery
from patience import Patience, exit_code

from streamsvm.connectors.logs.reading import read_all
from streamsvm.connectors.logs.transport import OutputsLost, Unavailable
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import backend_of, open_once
from streamsvm.connectors.trainer.state.checkpoint import checkpoint_files, load_newest
from streamsvm.connectors.trainer.state.model_files import files_set_aside, model_files
from streamsvm.connectors.trainer.state.state import State

N_KEYS, BURST = 6, 10  # keys of each partition, and events of a key in succession
LABELS_BEHIND = 5  # records from an event to its label
CORRECTED = 7  # Of each so many events, one gets a wrong label, and then the right one.
WAIT_SECONDS, END_SECONDS = 30, 600  # for a checkpoint, and for a process that is to end by itself
WRITE = """
import sys
from pathlib import Path
import storm
sys.exit(storm.write(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
"""


# --- what the producer writes -----------------------------------------------------------------------------------------


def event(partition, j):
    """The j-th event of a partition, and its key."""
    value = {"id": f"{partition}-{j}", "x": {"a": j * 7 % 11 - 5.0, "b": j % 5 + 0.1 * partition}}
    return f"key-{partition}-{j // BURST % N_KEYS}".encode(), json.dumps(value).encode()


def labels():
    """The labels of a partition, without end: the event's number, its label and its revision."""
    for j in itertools.count():
        is_wrong = j % CORRECTED == CORRECTED // 2
        yield j, (j * 7 % 11 < 5) ^ is_wrong, None
        if j % CORRECTED == CORRECTED - 1:
            other = j - CORRECTED // 2
            yield other, (other * 7 % 11 < 5), 1


def labels_of(n_events):
    """All labels of so many events."""
    return list(itertools.takewhile(lambda label: label[0] < n_events, labels()))


def write(config, n_partitions, pause):
    """Write events and their labels behind what is there, until the configuration has a file ``stop`` beside it."""
    settings = load(config, {})
    while True:
        try:
            with open_once(settings) as log:
                _write(log, settings, n_partitions, pause, config.with_name("stop"))
            return 0
        except (Unavailable, OutputsLost) as error:
            print(f"the producer begins again: {error}", flush=True)
            time.sleep(1.0)


def _write(log, settings, n_partitions, pause, stop):
    events, given = Counter(), Counter()  # what comes next; what a killed one has sent may be there twice
    for record in read_all(log, settings.log.topic):
        events[record.partition] = max(events[record.partition], _number(record) + 1)
    for record in read_all(log, settings.log.labels):
        given[record.partition] = max(given[record.partition], json.loads(record.value)["place"] + 1)
    rest = [itertools.islice(enumerate(labels()), given[p], None) for p in range(n_partitions)]
    waiting = [next(every) for every in rest]
    is_over = False
    while not is_over:
        is_over = stop.exists()
        for p in range(n_partitions):
            if not is_over:
                key, value = event(p, events[p])
                log.produce(settings.log.topic, value, key=key, partition=p)
                events[p] += 1
            while waiting[p][1][0] < events[p] - (0 if is_over else LABELS_BEHIND):
                place, (number, y, rev) = waiting[p]
                value = {"id": f"{p}-{number}", "y": y, "place": place} | ({} if rev is None else {"rev": rev})
                log.produce(settings.log.labels, json.dumps(value).encode(), key=event(p, number)[0], partition=p)
                waiting[p] = next(rest[p])
        log.flush()
        time.sleep(pause)


def _number(record):
    return int(json.loads(record.value)["id"].partition("-")[2])


@dataclass
class Found:
    """What a storm has done, and what was left of it."""

    kills: int
    restarts: int  # of the producer
    damages: int
    set_aside: int  # models of keys
    went_back: int  # how often an older checkpoint was tried because of a model
    records: int
    repeated: int  # predictions
    brokers: int = 0  # killed
    lost: int = 0  # events without a prediction, events and labels that were not learned
    double: int = 0  # learned twice, or predicted in two ways
    ended: list[str] = field(default_factory=list)  # words of the processes that ended by themselves


class Storm:
    """A configuration, its producer and its trainer, and what goes wrong with them.

    Parameters
    ----------
    folder
        Of the configuration, the log and the state.
    seed
        Which process it kills and when.
    per
        Whether there is a model for each "partition" or for each "key".
    n_partitions
        Partitions of the topics.
    damage
        Whether bits of checkpoints and of models flip, and files of models vanish, while no trainer runs.
    sections
        More of the configuration, by section.
    pause
        Seconds of the producer between two rounds.
    calm
        Seconds that a trainer may work on after a checkpoint, at most.
    """

    def __init__(self, folder, seed=0, per="partition", n_partitions=2, damage=False, pause=0.05, calm=0.3, **sections):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.config = folder, folder / "app.toml"
        self._rng = random.Random(seed)
        self._n_partitions, self._damages = n_partitions, damage
        self._pause, self._calm = pause, calm
        self._config_text(per, sections)
        self.settings = load(self.config, {})
        self._spoiled = {}  # the last checkpoint of each partition that was damaged
        self.found = Found(0, 0, 0, 0, 0, 0, 0)

    def _config_text(self, per, sections):
        whole = {
            "log": {"labels": "labels", "model": "model"},
            "model": {"C": 10.0},
            "daemon": {"per": per, "batch": 16, "checkpoint_seconds": 0.2, "publish_seconds": 0.5, "max_models": 4},
        }
        names = dict.fromkeys([*whole, *sections])
        whole = {name: {**whole.get(name, {}), **sections.get(name, {})} for name in names}
        whole["daemon"] = {"start": "earliest", **whole["daemon"]}
        lines = []
        for name, keys in whole.items():
            lines += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in keys.items())]
        self.config.write_text("\n".join(lines))

    def run(self, nursery, n_kills, between=lambda storm: None):
        """Kill so many trainers; then let the producer come to an end, and a trainer consume the rest.

        `between` is called before each kill, to let other things go wrong.
        """
        self._make_topics()
        producer, trainer = self._producer(nursery), self._trainer(nursery)
        while self.found.kills < n_kills:
            if self._rng.random() < 0.75:
                self._wait_for_checkpoint(trainer)
            time.sleep(self._rng.random() * self._calm)
            between(self)
            if self._rng.random() < 0.5:
                producer = self._again(producer, self._producer, nursery)
                self.found.restarts += 1
            trainer = self._again(trainer, self._trainer, nursery)
            self.found.kills += 1
        (self.folder / "stop").touch()
        exit_code(producer, END_SECONDS)
        self._end(producer, "the producer")
        self._kill(trainer)
        last = self._trainer(nursery, "--set", "daemon.follow=false")
        exit_code(last, END_SECONDS)
        self._end(last, "the last trainer")
        if not self.found.ended:
            self._count()
        return self.found

    def _make_topics(self):
        if backend_of(self.settings).makes_topics:
            names = self.settings.log
            with open_once(self.settings) as log:
                for topic in filter(None, (names.topic, names.labels, names.predictions, names.dlq, names.state)):
                    log.create(topic, self._n_partitions)

    def _wait_for_checkpoint(self, trainer):
        """Wait for the next checkpoint of a partition, whichever it is."""
        folder = self.settings.daemon.state_dir / f"p{self._rng.randrange(self._n_partitions)}"
        before, patience = checkpoint_files(folder)[:1], Patience(WAIT_SECONDS)
        while checkpoint_files(folder)[:1] == before and trainer.poll() is None and patience.lasts:
            time.sleep(0.02)

    def _end(self, process, name):
        """Note a process that should have come to its end by itself, and has not."""
        if process.poll() != 0:
            self.found.ended.append(f"{name} {process.poll()}: {self._said('command')} {self._said('write')}")
        self._kill(process)

    def _producer(self, nursery):
        return nursery.start(WRITE, self.config, self._n_partitions, self._pause, output=self.folder / "write")

    def _trainer(self, nursery, *flags):
        return nursery.start(COMMAND_LINE, "run", self.config, *flags, output=self.folder / "command")

    def _again(self, process, start, nursery):
        """Kill a process, and start another one; a trainer may find that its files have suffered."""
        if process.poll() is not None:
            self.found.ended.append(f"{process.poll()}: {self._said('command' if start == self._trainer else 'write')}")
        self._kill(process)
        if start == self._trainer and self._damages:
            self._damage(self._rng.randrange(self._n_partitions))
        return start(nursery)

    def _kill(self, process):
        process.kill()
        process.wait()

    def _said(self, job):
        path = self.folder / job
        return path.read_text()[-1500:] if path.exists() else ""

    # --- damage -------------------------------------------------------------------------------------------------------

    def _damage(self, number):
        """Flip a bit of the newest checkpoint or of a file of models, or remove such a file; rather the newest ones.

        A checkpoint is left alone if the one before it may be damaged: nothing mends that but a copy.
        """
        folder = self.settings.daemon.state_dir / f"p{number}"
        checkpoints = checkpoint_files(folder)
        models = sorted(model_files(folder), key=lambda path: path.name)
        kind = self._rng.choice(["bit", "bit", "bit", "file", "checkpoint"])
        if kind == "checkpoint":
            if len(checkpoints) < 3 or checkpoints[1].name <= self._spoiled.get(number, ""):
                return
            self._spoiled[number] = checkpoints[0].name
            self._flip(checkpoints[0])
        elif models:
            path = self._rng.choice(models[-2:])
            if kind == "file":
                path.unlink()
            else:
                self._flip(path)
        else:
            return
        self.found.damages += 1

    def _flip(self, path):
        data = bytearray(path.read_bytes())
        if data:
            data[self._rng.randrange(len(data))] ^= 1 << self._rng.randrange(8)
            path.write_bytes(data)

    # --- what is lost or double ---------------------------------------------------------------------------------------

    def _count(self):
        log, found = self.settings.log, self.found
        with open_once(self.settings) as opened:
            events, given = list(read_all(opened, log.topic)), list(read_all(opened, log.labels))
            said = Counter((json.loads(one.value)["src"], one.value) for one in read_all(opened, log.predictions))
        sources, expected = {src for src, _ in said}, {f"{log.topic}-{one.partition}-{one.offset}" for one in events}
        found.went_back = (self.folder / "command").read_text().count("needs a damaged model")
        found.records, found.repeated = len(events) + len(given), said.total() - len(said)
        found.lost += len(expected - sources)
        found.double += 0 if self._damages else len(said) - len(sources)
        for number in range(self._n_partitions):
            folder = self.settings.daemon.state_dir / f"p{number}"
            found.set_aside += len(files_set_aside(folder))
            of_partition = [[one for one in records if one.partition == number] for records in (events, given)]
            self._compare(self._state(folder), *of_partition)

    def _state(self, folder):
        checkpoint = load_newest(folder)[1]
        return State.from_checkpoint(checkpoint, self.settings, SimpleNamespace(folder=folder, epoch=0), 0)

    def _compare(self, state, events, given):
        """Compare a partition's counts with what they must be; the producer may have sent some records twice."""
        counts, n_events = state.join.counters, len({one.value for one in events})
        n_labels = len(labels_of(n_events))
        must_and_have = [
            (len(events), state.counters.predicted),
            (events[-1].offset + 1, state.offset),
            (given[-1].offset + 1, state.labels_offset),
            (n_events, counts.matched),
            (n_labels - n_events, counts.corrected),
            (len(events) - n_events, counts.duplicate_events),
        ]
        self.found.lost += sum(max(0, must - have) for must, have in must_and_have)
        self.found.double += sum(max(0, have - must) for must, have in must_and_have)
        self.found.double += max(0, counts.duplicate_labels - (len(given) - n_labels))
        self.found.lost += state.counters.lost + counts.dropped + counts.unmatched

    def check(self):
        """Nothing is lost or double, and every process could be started again; return the figures."""
        found = self.found
        assert not found.ended, "\n".join(found.ended)
        assert (found.lost, found.double) == (0, 0), found
        assert found.kills > 0, found
        assert not (self.settings.daemon.exactly_once and found.repeated), found
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per", choices=["partition", "key"], default="partition")
    parser.add_argument("--damage", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        storm = Storm(Path(folder), given.seed, given.per, damage=given.damage)
        print(storm.run(Nursery(), given.kills))
        storm.check()


if __name__ == "__main__":
    sys.exit(main())
