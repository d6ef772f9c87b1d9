"""A small world for the trainer's questions: its events, what they really are, and what it asks."""

import contextlib
import json

import numpy as np
from logged import append_at, read
from logged import configure as small

from streamsvm.connectors.trainer import trainer

START = 1_700_000_000_000
MINUTE = 60_000


def configure(folder, **labelling):
    return small(
        folder,
        log={"labels": "labels", "questions": "questions"},
        model={"gamma": 0.5, "cache_mb": 1.0},
        labelling={"stop": "never", "open": 4, **labelling},
        daemon={"batch": 8, "checkpoint_records": 40, "window": 1000},
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
        rows = []

        def append(value):
            self.clock += MINUTE
            rows.append((self.clock, None, value))

        yield append
        append_at(self.settings, {topic: rows})

    def answer(self, *answers):
        with self.appending("labels") as append:
            for answer in answers:
                append(answer)
        self.n_labels += len(answers)

    def right(self, question):
        return {"id": question["id"], "y": self.truth[question["id"]], "source": "truth"}

    def read(self, topic):
        return read(self.settings, topic, 0)

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

    def outcome(self, state):
        """What must not depend on kills."""
        return state.model.digest(), self.open(), list(self.questions()), self.status()
