"""What seven challengers cost beside the model that serves: CPU time of eight models in one trainer, and of its parts.

The stream has 22 columns and labels inside the events.  The parts are: transport, decoding and journal once (a trainer
with one model, without its engine), and each of the eight engines alone, which predicts and learns the same events in
the same order.  What is left is what the shadow adds: predictions of seven models as records, their checkpoints, and
the comparison.

Then events come at 100 a second, and the time from each to its prediction is measured in CPU time: what other programs
take does not count, nor does the disk.  The log is looked at every 5 ms.  A checkpoint comes every 1000 events.

Some virtual machines take milliseconds for a large page of memory that is new.  NUMPY_MADVISE_HUGEPAGE=0 does without.

    python benchmarks/challengers.py          # 8000 events; the lesser of two measurements
    python benchmarks/challengers.py --quick  # 3000 events, once
"""

import argparse
import json
import tempfile
import time
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any, cast

import numpy as np

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import Record, Transport
from streamsvm.connectors.records.predictions import predictions_of
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.state.models import new_model
from streamsvm.connectors.trainer.state.state import State
from streamsvm.core.threads import set_num_threads

COLUMNS = 22
MODELS = {
    "model": ModelSettings(),
    "C=1": ModelSettings(C=1.0),
    "C=100": ModelSettings(C=100.0),
    "narrow": ModelSettings(gamma=0.2),
    "wide": ModelSettings(gamma=0.02),
    "linear": ModelSettings(kernel="linear"),
    "lasvm-i": ModelSettings(algorithm="lasvm-i"),
    "budget": ModelSettings(budget=300),
}

SHARED = {"alone": ["model"], "with-7-challengers": list(MODELS)}
RATE, LOOK_SECONDS = 100, 0.005


def events(n: int) -> list[dict]:
    """Two classes of 22 columns, whose border is curved; one label in twenty is wrong."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, COLUMNS)).round(4)
    y = (x[:, 0] + 0.5 * x[:, 1] * x[:, 2] > 0) != (rng.random(n) < 0.05)
    names = [f"x{i}" for i in range(COLUMNS)]
    return [
        {"id": i, "x": dict(zip(names, row, strict=True)), "y": label}
        for i, (row, label) in enumerate(zip(x.tolist(), y.tolist(), strict=True))
    ]


def configure(folder: Path, names: list[str], run: str) -> Settings:
    """A trainer whose first model serves, with a state folder and topics of its own."""
    first, *others = names
    challengers = tuple(ChallengerSettings(f"s{i}", model=MODELS[name]) for i, name in enumerate(others))
    log = LogSettings(dir=folder / "log", predictions=f"predictions-{run}", dlq=f"dlq-{run}")
    daemon = DaemonSettings(state_dir=folder / f"state-{run}", follow=False)
    return Settings(log=log, model=MODELS[first], daemon=daemon, challenger=challengers)


def run(settings: Settings) -> tuple[float, State]:
    """CPU seconds of a trainer over the whole log, and its state."""
    begin = time.process_time()
    state = trainer.run(settings)[0]
    return time.process_time() - begin, state


def engine(model: ModelSettings, rows: list[dict]) -> float:
    """CPU seconds of a model alone, which predicts and learns each event as the trainer does."""
    learner = new_model(model)
    begin = time.process_time()
    for i, event in enumerate(rows):
        predictions_of(learner, [event["x"]])
        learner.learn_one(event["x"], event["y"], 1.0, i)
    return time.process_time() - begin


class Paced:
    """A log to which events come at a steady rate, on a clock of CPU time that jumps where the trainer would wait."""

    def __init__(self, log: LocalLog, values: list[bytes], predictions: str) -> None:
        self._log, self._values, self._predictions = log, values, predictions
        self._waited = -time.thread_time()
        self.delays: list[float] = []  # seconds from an event to its prediction

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    @property
    def _clock(self) -> float:
        return time.thread_time() + self._waited

    def poll(self, timeout: float, limit: int) -> list[Record]:
        """The records that have come by now; wait for some, as an embedded log does."""
        end = self._clock + timeout
        while True:
            while self._n_sent < len(self._values) and self._n_sent / RATE <= self._clock:
                self._log.produce("events", self._values[self._n_sent])
                self._n_sent += 1
            if (records := self._log.poll(0.0, limit)) or self._clock >= end:
                return records
            self._waited += LOOK_SECONDS

    _n_sent = 0

    def produce(self, topic: str, value: bytes | None, **others: Any) -> None:
        """Note how late a prediction is."""
        if topic == self._predictions:
            self.delays.append(self._clock - len(self.delays) / RATE)
        self._log.produce(topic, value, **others)


def delays(settings: Settings, rows: list[dict]) -> np.ndarray:
    """Milliseconds from each event to the prediction of the model that serves; the first thousand do not count."""
    daemon = replace(settings.daemon, follow=True, checkpoint_records=1000, checkpoint_seconds=1e6)
    settings = replace(settings, daemon=daemon)
    with LocalLog(settings.log.dir) as log:
        log.create("events", 1)
        paced = Paced(log, [json.dumps(event).encode() for event in rows], settings.log.predictions)
        done = [False]

        def stop() -> bool:
            """End when nothing is left to do since the last look."""
            is_last, done[0] = done[0], len(paced.delays) == len(rows)
            return is_last

        trainer.Trainer(settings, cast(Transport, paced), stop, Health(), Metrics()).run()
    return 1000 * np.array(paced.delays[1000:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3000 events, once")
    n, rounds = (3000, 1) if parser.parse_args().quick else (8000, 2)
    set_num_threads(1)
    rows = events(n)
    for model in MODELS.values():  # compile
        engine(model, rows[:300])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with LocalLog(folder / "log") as log:
            for event in rows:
                log.produce("events", json.dumps(event).encode())
        run(replace(configure(folder, list(MODELS), "warm"), log=LogSettings(dir=folder / "log")))
        of_engines, alone, together = dict.fromkeys(MODELS, inf), inf, inf
        waits = [delays(configure(folder / run, names, run), rows) for run, names in SHARED.items()]
        for i in range(rounds):  # in turns: other programs slow all of them down alike
            of_engines = {name: min(engine(model, rows), of_engines[name]) for name, model in MODELS.items()}
            seconds, single = run(configure(folder, ["model"], f"alone-{i}"))
            alone = min(alone, seconds)
            seconds, eight = run(configure(folder, list(MODELS), f"eight-{i}"))
            together = min(together, seconds)
    transport = alone - of_engines["model"]
    parts = transport + sum(of_engines.values())
    print(f"{n} events of {COLUMNS} columns; CPU seconds")
    for name, seconds in of_engines.items():
        print(f"{'engine ' + name:22}{seconds:8.2f}")
    print(f"{'transport, once':22}{transport:8.2f}\n{'sum of the parts':22}{parts:8.2f}")
    print(f"{'eight in one trainer':22}{together:8.2f}   {together / parts:.2f} of the parts")
    print(f"{'eight trainers':22}{parts + 7 * transport:8.2f}   (with seven more transports)")
    for name, of_run in zip(SHARED, waits, strict=True):
        half, most, nearly_all = np.percentile(of_run, [50, 99, 99.9])
        print(f"{name:22}answers within {half:.1f} ms (half), {most:.1f} ms (99 %), {nearly_all:.1f} ms (99.9 %)")
    print(f"equal digests of the model that serves: {single.models.digest() == eight.models.digest()}")


if __name__ == "__main__":
    main()
