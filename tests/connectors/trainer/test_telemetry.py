"""What the trainer says about itself while it runs and afterwards."""

import contextlib
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from logged import append_at
from logged import configure as small

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import METRICS, Metrics
from streamsvm.connectors.trainer.telemetry import Telemetry
from streamsvm.connectors.trainer.trainer import Trainer

OF_OTHERS = {  # scorers and mergers
    "streamsvm_refused_snapshots_total",
    "streamsvm_merges_total",
    "streamsvm_failed_merges_total",
    "streamsvm_merge_seconds_count",
}
START = 1_700_000_000_000


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def configure(folder, **daemon):
    daemon = {"batch": 8, "checkpoint_records": 40, "window": 1000, **daemon}
    return small(folder, log={"labels": "labels"}, join={"ttl_seconds": 100.0}, daemon=daemon)


def fill(settings, n, partition=0, first=0):
    """`n` events a second apart, of which every second one is labelled 10 s later, and every tenth is bad."""
    rng = np.random.default_rng(first)
    rows = {"events": [], "labels": []}
    for i in range(first, first + n):
        x = {"a": float(rng.normal()), "b": float(rng.normal())}
        rows["events"].append((START + 1000 * i, None, b"bad" if i % 10 == 9 else {"id": i, "x": x}))
        if i % 2 == 0:
            rows["labels"].append((START + 1000 * i + 10_000, None, {"id": i, "y": x["a"] > 0}))
    append_at(settings, rows, partition)


@contextlib.contextmanager
def a_trainer(settings, stop=lambda: False):
    with LocalLog(settings.log.dir) as log:
        metrics = Metrics()
        yield Trainer(settings, log, stop, Health(), metrics), metrics


def run(settings, stop=lambda: False):
    with a_trainer(settings, stop) as (trainer, metrics):
        return trainer.run(), values(metrics)


def values(metrics):
    """All values by the text before them."""
    text = metrics.render()
    pairs = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in pairs}


def test_every_counter_is_there_before_anything_is_counted(tmp_path):
    """What watches a counter sees its first increase only if there was a value before."""
    with a_trainer(configure(tmp_path)) as (_, metrics):
        found = values(metrics)
    counters = {metric.name for metric in METRICS if metric.kind == "counter"}
    histograms = {f"{metric.name}_count" for metric in METRICS if metric.kind == "histogram"}
    assert {name.partition("{")[0] for name, value in found.items() if value == 0} >= (
        counters | histograms
    ) - OF_OTHERS
    assert not any(found.values())
    for labels in ('labels_total{outcome="expired"}', 'bad_records_total{reason="not-json"}'):
        assert found[f"streamsvm_{labels}"] == 0


def test_labels_that_can_never_meet_an_event_are_counted(tmp_path, caplog):
    settings = configure(tmp_path)
    fill(settings, 20)
    append_at(settings, {"labels": [(START + 30_000, None, {"id": id_, "y": True}) for id_ in ("1", "3")]})
    _, found = run(settings)
    assert found["streamsvm_stranger_labels_total"] == 2
    assert [record.args[0] for record in caplog.records if "different ids" in record.getMessage()] == ["1"]


def test_a_run_is_counted_to_its_last_record(tmp_path):
    settings = configure(tmp_path)
    fill(settings, 100)
    states, found = run(settings)
    state = states[0]
    assert found["streamsvm_records_total"] == 150
    assert found["streamsvm_predictions_total"] == state.counters.predicted == 90
    assert found["streamsvm_learned_total"] == state.counters.learned == 50
    assert found['streamsvm_bad_records_total{reason="not-json"}'] == state.counters.bad == 10
    assert found['streamsvm_labels_total{outcome="matched"}'] == 50
    assert found["streamsvm_kernel_evaluations_total"] == state.model.kernel_evaluations > 0
    assert found["streamsvm_rebalances_total"] == 1
    assert found["streamsvm_checkpoints_total"] == state.sequence - 1 == 4  # without that of the beginning
    assert found["streamsvm_checkpoint_seconds_count"] == 4
    assert found["streamsvm_cut_seconds_count"] == 19
    assert found["streamsvm_lost_records_total"] == found["streamsvm_stranger_labels_total"] == 0


def test_questions_are_counted_by_what_became_of_them(tmp_path):
    settings = configure(tmp_path)
    settings = replace(
        settings,
        log=replace(settings.log, questions="questions"),
        labelling=replace(settings.labelling, open=3, stop="never"),
    )
    fill(settings, 100)
    states, found = run(settings)
    outcomes = {name: found.get(f'streamsvm_questions_total{{outcome="{name}"}}', 0) for name in ("asked", "answered")}
    assert outcomes == {"asked": states[0].labelling.loop.counts.n_asked, "answered": outcomes["answered"]}
    assert 0 < outcomes["answered"] < outcomes["asked"]


def test_what_a_model_follows_is_counted(tmp_path):
    """A retraction in time, and one when the event is gone."""
    settings = configure(tmp_path)
    settings = replace(settings, join=replace(settings.join, ttl_seconds=60.0))
    fill(settings, 100)
    append_at(settings, {"labels": [(START + 110_000, None, {"id": i, "op": "retract"}) for i in (98, 0)]})
    _, found = run(settings)
    assert found['streamsvm_labels_total{outcome="undone"}'] == 1
    assert found["streamsvm_revised_members_total"] == found["streamsvm_late_labels_total"] == 1
    assert found["streamsvm_learned_total"] == 50


def test_counters_begin_with_the_process_and_gauges_with_the_checkpoint(tmp_path):
    settings = configure(tmp_path)
    fill(settings, 100)
    run(settings)
    fill(settings, 20, first=100)
    states, found = run(settings)
    assert states[0].counters.predicted == 108
    assert found["streamsvm_predictions_total"] == 18
    assert found["streamsvm_learned_total"] == 10
    assert found['streamsvm_labels_total{outcome="matched"}'] == 10
    assert found['streamsvm_bad_records_total{reason="not-json"}'] == 2
    assert found["streamsvm_records_total"] == 30
    _, found = run(settings)
    assert not any(value for name, value in found.items() if re.match("streamsvm_(pred|learn|label|bad|record)", name))


class Looking:
    """A `stop` that looks at every cycle, and ends a daemon that follows when it has nothing to do."""

    def __init__(self, n_cycles):
        self.seen = []
        self.n_cycles = n_cycles
        self.look = lambda: None

    def __call__(self):
        self.seen.append(self.look())
        return len(self.seen) > self.n_cycles


@pytest.fixture
def looked_at(tmp_path, monkeypatch):
    """The metrics after each cycle of a daemon with two partitions, and its states at the end."""
    monkeypatch.setattr("streamsvm.connectors.trainer.telemetry.LOOK_SECONDS", 0.0)
    monkeypatch.setattr("streamsvm.connectors.trainer.trainer.POLL_SECONDS", 0.0)
    settings = configure(tmp_path, follow=True)
    fill(settings, 100)
    fill(settings, 30, 1)
    stop = Looking(40)
    with a_trainer(settings, stop) as (trainer, metrics):
        stop.look = lambda: values(metrics)
        states = trainer.run()
    return stop.seen, states


def test_gauges_are_those_of_each_partition(looked_at):
    seen, states = looked_at
    last = seen[-1]
    for number, state in states.items():
        labels = f'{{partition="{number}"}}'
        scores = state.metrics.rolling()
        assert last[f"streamsvm_support_vectors{labels}"] == state.model.n_support
        assert last[f"streamsvm_members{labels}"] == state.model.n_members
        assert last[f"streamsvm_pending_events{labels}"] == state.join.n_entries > 0
        assert last[f"streamsvm_pending_bytes{labels}"] == state.join.nbytes > 0
        assert last[f"streamsvm_rolling_error{labels}"] == scores.error
        assert last[f"streamsvm_rolling_auc{labels}"] == scores.auc
        assert last[f"streamsvm_checkpoint_bytes{labels}"] > 1000
        assert 0 <= last[f"streamsvm_checkpoint_age_seconds{labels}"] < 60
        assert 0 <= last[f"streamsvm_feature_drift{labels}"] < 5
    assert last["streamsvm_predictions_total"] == 90 + 27


def test_the_lag_goes_down_to_nothing(looked_at):
    seen, _ = looked_at
    for number in (0, 1):
        for topic in ("events", "labels"):
            name = f'streamsvm_lag_records{{partition="{number}",topic="{topic}"}}'
            lags = [values[name] for values in seen if name in values]
            assert lags[0] > 0
            assert lags[-1] == 0
            assert lags == sorted(lags, reverse=True)


def test_counters_never_go_back(looked_at):
    seen, _ = looked_at
    totals = {name for values in seen for name in values if "_total" in name or "_count" in name}
    assert len(totals) > 8
    for name in totals:
        course = [values.get(name, 0.0) for values in seen]
        assert course == sorted(course)


def test_nothing_is_said_about_a_partition_that_is_gone(tmp_path):
    settings = configure(tmp_path)
    fill(settings, 100)
    fill(settings, 60, 1)
    with a_trainer(settings) as (trainer, metrics):
        trainer.assigned([0, 1])
        assert values(metrics)["streamsvm_rebalances_total"] == 1
        for partition in trainer._partitions.values():
            trainer._telemetry.collect([partition])
        assert any('partition="1"' in name for name in values(metrics))
        trainer.revoked([1])
        found = values(metrics)
        assert not any('partition="1"' in name for name in found)
        assert any('partition="0"' in name for name in found)
        trainer.lost([0])
        assert not any("partition=" in name for name in values(metrics))


def test_a_partition_that_comes_back_is_counted_on(tmp_path):
    """What it learned elsewhere, in between, is not ours."""
    settings = configure(tmp_path)
    fill(settings, 40)
    with LocalLog(settings.log.dir) as log:
        metrics = Metrics()
        trainer = Trainer(settings, log, lambda: False, Health(), metrics)
        trainer.run()
        assert values(metrics)["streamsvm_predictions_total"] == 36
        fill(settings, 20, first=40)
        other = Trainer(settings, log, lambda: False, Health(), Metrics())
        assert other.run()[0].counters.predicted == 54
        fill(settings, 10, first=60)
        trainer.run()
        found = values(metrics)
    assert found["streamsvm_predictions_total"] == 36 + 9
    assert found["streamsvm_rebalances_total"] == 2


def test_models_by_key_are_counted_though_some_are_on_disk(tmp_path):
    settings = configure(tmp_path, per="key", max_models=1)
    settings = replace(settings, log=replace(settings.log, labels=""))
    rng = np.random.default_rng(0)
    with LocalLog(settings.log.dir) as log:
        for i in range(60):
            x = {"a": float(rng.normal())}
            value = json.dumps({"id": i, "x": x, "y": x["a"] > 0}).encode()
            log.produce("events", value, key=b"%d" % (i % 4), partition=0)
    states, found = run(settings)
    assert found["streamsvm_learned_total"] == states[0].counters.learned == 60


def test_lost_records_are_counted(tmp_path):
    settings = configure(tmp_path, on_data_loss="skip")
    fill(settings, 40)
    run(settings)
    folder = settings.log.dir / "events" / "0"
    for path in folder.glob("*.log"):
        path.unlink()
    (folder / f"{57:020d}.log").touch()
    fill(settings, 10, first=57)
    _, found = run(settings)
    assert found["streamsvm_predictions_total"] == 9
    assert found["streamsvm_lost_records_total"] == 17
    fill(settings, 10, first=67)
    _, found = run(settings)
    assert found.get("streamsvm_lost_records_total", 0) == 0


def test_the_status_line_says_how_it_goes(tmp_path):
    settings = configure(tmp_path)
    fill(settings, 100)
    fill(settings, 60, 1)
    with a_trainer(settings) as (trainer, _):
        states = trainer.run()
    telemetry = Telemetry(Metrics(), settings.codec())

    class Shown:
        def __init__(self, state):
            self.state = state

    shown = telemetry.summary([Shown(state) for state in (*states.values(), None)])
    errors = [state.metrics.rolling_error() for state in states.values()]
    assert shown == {
        "error": f"{sum(errors) / 2:.1%}",
        "support_vectors": sum(state.model.n_support for state in states.values()),
    }
    assert telemetry.summary([]) == {"support_vectors": 0}
