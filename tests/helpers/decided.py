"""Events for the tests of decisions, and the settings of a trainer that decides."""

import contextlib
import json

import numpy as np
from logged import change

from streamsvm import LASVM, OneVsRest
from streamsvm.conformal import ConformalClassifier
from streamsvm.connectors.logs.segments import Appender
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings

START = 1_700_000_000_000


def configure(folder, classes=(), **changes):
    settings = Settings(
        log=LogSettings(dir=folder / "log"),
        model=ModelSettings(cache_mb=1.0),
        daemon=DaemonSettings(batch=16, state_dir=folder / "state", checkpoint_records=48, window=50, follow=False),
    )
    return change(settings, decide={"error": 0.1}, label={"classes": classes}, **changes)


def append(settings, values, topic="events", partition=0, keys=(None,), start=START):
    folder = settings.log.dir / topic / str(partition)
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.closing(Appender(folder, 1 << 20)) as appender:
        for i, value in enumerate(values):
            appender.append(start + 10 * i, keys[i % len(keys)], json.dumps(value).encode(), ())


def events(n, classes=(), seed=5):
    rng = np.random.default_rng(seed)
    for i in range(n):
        place = int(rng.integers(len(classes) or 2))
        x = {"a": round(3.0 * place + rng.normal(), 6), "b": round(rng.normal(), 6)}
        yield {"id": i, "x": x, "y": classes[place] if classes else bool(place)}


def new(settings, classes=()):
    """What decides before the first event."""
    model = LASVM(**settings.model.parameters())
    model = OneVsRest(model, list(classes)) if classes else model
    return ConformalClassifier(model, settings.decide.error, settings.audit)
