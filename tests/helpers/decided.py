"""Events for the tests of decisions, and the settings of a trainer that decides."""

import numpy as np
from logged import append_at, change
from logged import configure as small

from streamsvm import LASVM, OneVsRest
from streamsvm.conformal import ConformalClassifier

START = 1_700_000_000_000


def configure(folder, classes=(), **changes):
    settings = small(folder, model={"cache_mb": 1.0}, decide={"error": 0.1}, label={"classes": classes})
    return change(settings, **changes)


def append(settings, values, topic="events", partition=0, keys=(None,), start=START):
    rows = [(start + 10 * i, keys[i % len(keys)], value) for i, value in enumerate(values)]
    append_at(settings, {topic: rows}, partition)


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
