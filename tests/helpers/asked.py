"""Questions for the tests of whoever answers them: a trainer that only speaks, over the embedded log."""

import contextlib
import json
import time

from patience import Patience

from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.sections import DaemonSettings, LabelSettings, LogSettings, Settings

CONFIG = """
[log]
dir = "log"
topic = "events"
labels = "labels"
questions = "questions"
[label]
positive = "fraud"
negative = "genuine"
[daemon]
state_dir = "state"
[labelling]
port = 0
"""
STATUS = {
    "asked": 0, "open": 0, "answered": 0, "labels": 0, "positive": 0, "negative": 0, "skipped": 0, "ignored": 0,
    "expired": 0, "withdrawn": 0, "corrected": 0, "retracted": 0, "offered": 0, "remaining": None,
    "verdict": {"stop": False, "audit": False, "why": "7 of the 59 answers in a row that it takes"}, "curve": [],
}  # fmt: skip


def configure(folder, *overrides):
    """Settings of a log in this folder."""
    (folder / "app.toml").write_text(CONFIG)
    return load(folder / "app.toml", {}, overrides)


def of_questions(folder, **sections):
    """Settings of a log with questions about spam, without a file."""
    log = LogSettings(dir=folder / "log", labels="labels", questions="questions")
    sections = {"daemon": DaemonSettings(state_dir=folder / "state")} | sections
    return Settings(log=log, label=LabelSettings("spam", "ham"), **sections)


class Trainer:
    """Writes what a trainer would, when it is told to.

    Parameters
    ----------
    settings : Settings
        The configuration.
    """

    def __init__(self, settings):
        self.log = LocalLog(settings.log.dir)
        self._settings = settings
        self.status()

    def ask(self, number, **fields):
        """Ask about event e<number> under the id q<number>, unless the fields name others."""
        question = {
            "query_id": f"q{number}", "id": f"e{number}", "x": {"amount": 10.0 * number, "hour": 23.0, "none": 0.0},
            "event": {}, "margin": -0.25, "score": 0.375, "reason": "boundary", "asked_at": 1000 + number,
            "expires_at": 10**13, "unusual": {}, "model": {"ver": 7, "n_support": 3},
        }  # fmt: skip
        question |= fields
        self.write(question["query_id"], question)

    def withdraw(self, number):
        """Take a question back."""
        self.write(f"q{number}", None)

    def status(self, **values):
        """Say how far it is."""
        self.write("status", {"status": STATUS | values})

    def answers(self):
        """What was written to log.labels."""
        with LocalLog(self._settings.log.dir) as log:
            n = log.end_offsets(self._settings.log.labels).get(0, 0)
            log.seek(self._settings.log.labels, 0, 0)
            return [json.loads(record.value) for record in (log.poll(5.0, n) if n else [])]

    def labels(self):
        """What holds, by the id of the event."""
        held = {}
        for answer in self.answers():
            if answer["op"] == "set":
                held[answer["id"]] = answer["y"]
            elif answer["op"] == "retract":
                held.pop(answer["id"], None)  # or a skip
        return held

    def close(self):
        self.log.close()

    def write(self, key, value):
        payload = None if value is None else json.dumps(value).encode()
        self.log.produce(self._settings.log.questions, payload, key=key.encode(), partition=0)


@contextlib.contextmanager
def opened(settings, **options):
    """A labelling service that has read what there is."""
    with LabellingService(settings, **options) as service:
        until(lambda: service.stats()["loaded"])
        yield service


def until(condition, seconds=30.0):
    """Wait for something to become true; what it is."""
    patience = Patience(seconds)
    while not (value := condition()):
        assert patience.lasts, "it did not happen in time"
        time.sleep(0.02)
    return value
