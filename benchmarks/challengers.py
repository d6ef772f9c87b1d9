"""What seven challengers cost beside the model that serves: CPU time of eight models in one trainer, and of its parts.

The stream has 22 columns and labels inside the events.  The parts are: transport, decoding and journal once (a trainer
with one model, without its engine), and each of the eight engines alone, which predicts and learns the same events in
the same order.  What is left is what the shadow adds: predictions of seven models as records, their checkpoints, and
the comparison.

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

import numpy as np

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.predictions import predictions_of
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
    print(f"equal digests of the model that serves: {single.models.digest() == eight.models.digest()}")


if __name__ == "__main__":
    main()
