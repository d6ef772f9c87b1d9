"""A trainer or scorer whose events have schemas of a registry waits while the registry is away, and loses no event."""

import json
import threading

import pytest
from asked import until
from fuse import Fuse, Killed, run_with
from logged import change, read

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import Unavailable
from streamsvm.connectors.records.formats.registry import format as format_module
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.processes import SchemaSettings
from streamsvm.connectors.settings.sections import DaemonSettings, LogSettings, Settings
from streamsvm.connectors.trainer import trainer


@pytest.fixture
def settings(registry, tmp_path):
    """40 events, whose schema changes in the midst; one has a schema that the registry does not know."""
    for _ in range(2):
        registry.register("events-value", "{}", "JSON")
    with LocalLog(tmp_path / "log") as log:
        for i in range(40):
            event = {"id": i, "x": {"a": float(i % 7), "b": float(i % 3)}, "y": i % 2}
            id_ = 9 if i == 30 else 1 + i // 20
            log.produce("events", b"\0" + id_.to_bytes(4, "big") + json.dumps(event).encode())
        log.flush()
    return Settings(
        log=LogSettings(dir=tmp_path / "log", format="registry"),
        schema=SchemaSettings(registry=registry.url, seconds=1.0),
        model=ModelSettings(C=10.0),
        daemon=DaemonSettings(batch=8, state_dir=tmp_path / "state", checkpoint_records=16, follow=False, max_bad=0.9),
    )


def outcome(settings):
    state = trainer.run(settings)[0]
    return state.models.model.digest(), state.counters.learned


def test_an_event_with_an_unknown_schema_is_a_dead_letter(settings):
    assert outcome(settings)[1] == 39
    (letter,) = read(settings, settings.log.dlq)
    assert dict(letter.headers)["sv-dlq-reason"] == b"unknown-schema"


def test_while_the_registry_is_away_the_trainer_waits(settings, registry):
    expected = outcome(settings)
    registry.failing = [503] * 5
    later = change(settings, daemon={"state_dir": settings.daemon.state_dir.parent / "later"})
    assert outcome(later) == expected
    assert registry.failing == []


def test_a_trainer_goes_on_after_events_whose_schema_the_registry_cannot_send(settings, registry, monkeypatch):
    monkeypatch.setattr(format_module, "_TRIES", 1)
    registry.broken = {2}
    assert outcome(settings)[1] == 20
    letters = read(settings, settings.log.dlq)
    assert [dict(letter.headers)["sv-dlq-reason"] for letter in letters] == [b"unknown-schema"] * 20


def stopped_while_it_waits(loop, settings, group):
    """The error of a trainer or scorer that is stopped while it waits for the registry."""
    health, is_stopped = Health(), threading.Event()
    errors = []

    def run():
        with LocalLog(settings.log.dir, group=group) as log:
            try:
                loop(settings, log, is_stopped.is_set, health, Metrics()).run()
            except Unavailable as error:
                errors.append(str(error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    until(lambda: "schema registry" in str(health.unready))
    is_stopped.set()
    thread.join(600)
    return errors[0]


def test_a_trainer_that_waits_for_the_registry_can_be_stopped(settings, registry):
    registry.failing = [503] * 10**6
    assert "answers 503" in stopped_while_it_waits(trainer.Trainer, settings, settings.group.id)
    registry.failing = []
    assert outcome(settings)[1] == 39


def test_killed_while_the_registry_is_away_it_ends_the_same(settings, registry, monkeypatch):
    expected = outcome(change(settings, daemon={"state_dir": settings.daemon.state_dir.parent / "whole"}))
    for place in (5, 25, 45):
        registry.failing = [500, 500]
        with pytest.raises(Killed):
            run_with(settings, Fuse(place), monkeypatch)
    assert outcome(settings) == expected


def test_a_scorer_waits_for_the_registry_too_and_can_be_stopped(settings, registry):
    settings = change(settings, log={"model": "model"})
    trainer.run(settings)
    registry.failing = [503] * 10**6
    assert "answers 503" in stopped_while_it_waits(scorer.Scorer, settings, f"{settings.group.id}-score")
    registry.failing = [503] * 5
    assert scorer.run(settings) == 39
