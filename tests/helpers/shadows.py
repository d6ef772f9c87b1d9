"""Configurations with challengers, and streams for them: in events, or with late labels."""

from dataclasses import replace

import numpy as np
from logged import append, change, read_json
from logged import configure as small

from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.model import ModelSettings

SHADOWS = (
    ChallengerSettings("c1", model=ModelSettings(C=1.0)),
    ChallengerSettings("wide", model=ModelSettings(C=10.0, gamma=0.01)),
    ChallengerSettings("noisy", model=ModelSettings(algorithm="lasvm-i")),
    ChallengerSettings("auto", model=ModelSettings(algorithm="auto")),
)


def configure(folder, challengers=SHADOWS, *, labels="", **changes):
    settings = replace(small(folder, log={"labels": labels}), challenger=challengers)
    return change(settings, **changes)


def alone(settings, name, folder):
    """The same configuration with this challenger's model as the only one."""
    other = replace(settings, challenger=(), model=settings.models()[name].model)
    return change(other, daemon={"state_dir": folder / f"alone-{name}"}, log={"predictions": f"alone-{name}"})


def some_events(n, seed=0, *, labelled=True):
    rng = np.random.default_rng(seed)
    for i in range(n):
        a, b = rng.normal(size=2).round(4).tolist()
        event = {"id": i, "x": {"a": a, "b": b}}
        yield event | ({"y": bool(a * b + 0.3 * rng.normal() > 0)} if labelled and i % 7 else {})


def late_labels(n, seed=0):
    """Labels of most events, some of them corrected or taken back, and some of no event."""
    rng = np.random.default_rng(seed)
    for event in some_events(n, seed):
        i = event["id"]
        if "y" in event:
            yield {"id": i, "y": event["y"]}
        if i % 9 == 0:
            yield {"id": i, "y": bool(rng.random() < 0.5), "rev": 2}
        if i % 13 == 0:
            yield {"id": i, "op": "retract", "rev": 3}
    yield {"id": 10_000, "y": True}


def fill(settings, n=200):
    events = list(some_events(n, labelled=not settings.log.labels))
    if not settings.log.labels:
        return append(settings, events)
    answers = list(late_labels(n))
    for begin in range(0, n, 20):  # in turns, so that labels come later than their events
        append(settings, events[begin : begin + 20])
        append(settings, answers[begin : begin + 20], settings.log.labels)
    return append(settings, answers[n:], settings.log.labels)


def values(settings, topic):
    """The predictions of a topic by source, without the version of the model, which counts its own lessons."""
    found = {}
    for said in read_json(settings, topic):
        del said["model"]["ver"]
        assert found.setdefault(said["src"], said) == said
    return found
