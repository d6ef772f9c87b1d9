"""A small world for the trainer's questions: its events, what they really are, and what it asks."""

import contextlib
import json

import numpy as np

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.segments import Appender
from streamsvm.connectors.settings.labelling import LabellingSettings
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings
from streamsvm.connectors.trainer import trainer

START = 1_700_000_000_000
MINUTE = 60_000


def configure(folder, **labelling):
    return Settings(
        log=LogSettings(dir=folder / "log", labels="labels", questions="questions"),
        model=ModelSettings(C=10.0, gamma=0.5, cache_mb=1.0),
        labelling=LabellingSettings(**{"stop": "never", "open": 4, **labelling}),
        daemon=DaemonSettings(batch=8, state_dir=folder / "state", checkpoint_records=40, follow=False),
    )


class World:
    """The events, what they really are, and the people who are asked.

    With `centres`, there are several classes, each of them around its centre; otherwise `share` of the events are
    positive.
    """

    def __init__(self, conf, n=150, seed=0, share=0.2, centres=None):
        rng = np.random.default_rng(seed)
        self.settings = conf
        if centres is None:
            centres = {False: (0.0, 0.0), True: (2.0, 2.0)}
            self.truth = {f"e{i}": bool(rng.random() < share) for i in range(n)}
        else:
            self.truth = {f"e{i}": list(centres)[rng.integers(len(centres))] for i in range(n)}
        self.clock = START
        self.n_labels = 0
        with self.appending("events") as append:
            for id_, y in self.truth.items():
                a, b = rng.normal(centres[y], 0.8)
                append({"id": id_, "x": {"a": a, "b": b}, "text": f"I am {id_}"})

    @contextlib.contextmanager
    def appending(self, topic):
        """Append records, a minute apart."""
        folder = self.settings.log.dir / topic / "0"
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(Appender(folder, 1 << 20)) as appender:

            def append(value):
                self.clock += MINUTE
                appender.append(self.clock, None, json.dumps(value).encode(), ())

            yield append

    def answer(self, *answers):
        with self.appending("labels") as append:
            for answer in answers:
                append(answer)
        self.n_labels += len(answers)

    def right(self, question):
        return {"id": question["id"], "y": self.truth[question["id"]], "source": "truth"}

    def read(self, topic):
        with LocalLog(self.settings.log.dir) as log:
            log.seek(topic, 0, 0)
            return list(iter_all(log))

    def questions(self):
        """All that were ever asked, in order, by id."""
        return {r.key.decode(): json.loads(r.value) for r in self.read("questions") if r.key != b"status" and r.value}

    def open(self):
        """Those that wait for an answer."""
        found = {}
        for record in self.read("questions"):
            if record.key != b"status":
                found.pop(record.key, None)
                if record.value:
                    found[record.key] = json.loads(record.value)
        return list(found.values())

    def status(self):
        return [json.loads(r.value)["status"] for r in self.read("questions") if r.key == b"status"][-1]

    def run(self):
        return trainer.run(self.settings)[0]


def iter_all(log):
    while records := log.poll(0.0, 10_000):
        yield from records
