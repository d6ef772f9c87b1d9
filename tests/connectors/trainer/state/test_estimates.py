"""Estimates of the model's error in the daemon: metrics, records, a history, over restarts; and the model as it was."""

import json
from dataclasses import replace

import numpy as np
import pytest
from fuse import Fuse, Killed, run, run_with
from logged import configure as small
from logged import read_json

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.report import charts as report
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.settings.estimates import EstimateSettings
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer.state.estimates import Estimate, Estimates
from streamsvm.connectors.trainer.trainer import Trainer
from streamsvm.validation import Interval

ALWAYS = 1e9  # of the learning time


pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def configure(folder, topic="estimates", **estimates):
    given = {"loo": True, "folds": 4, "every": 40, "memory": 60, "share": ALWAYS} | estimates
    model = {"C": 5.0, "gamma": 0.5}
    return small(folder, log={"estimates": topic}, model=model, estimates=given, daemon={"window": 1000})


def fill(settings, n=200, first=0):
    rng = np.random.default_rng(first)
    with LocalLog(settings.log.dir) as log:
        for i in range(first, first + n):
            a, b = rng.normal(size=2).tolist()
            event = {"id": i, "x": {"a": a, "b": b}, "y": bool(a * b + 0.3 * rng.normal() > 0)}
            log.produce("events", json.dumps(event).encode())


def records(settings):
    return read_json(settings, settings.log.estimates)


def test_they_go_to_their_topic_along_the_stream(tmp_path):
    settings = configure(tmp_path)
    fill(settings)
    state = run(settings)
    found = records(settings)
    assert [item["kind"] for item in found].count("loo") == [item["kind"] for item in found].count("folds") == 5
    assert [item["offset"] for item in found if item["kind"] == "loo"] == [40, 80, 120, 160, 200]
    assert [item["offset"] for item in found] == sorted(item["offset"] for item in found)
    last = [item for item in found if item["kind"] == "loo"][-1]
    assert last["n"] == 60
    assert last["partition"] == 0
    assert 0.0 <= last["error"]["low"] <= last["error"]["value"] <= last["error"]["high"] <= 0.5
    newest = state.estimates.latest["loo"]
    assert (newest.offset, newest.error.value) == (last["offset"], last["error"]["value"])


def test_the_model_is_what_it_would_be_without_them(tmp_path):
    alone, estimated = configure(tmp_path / "a", "", loo=False, folds=0), configure(tmp_path / "b")
    for settings in (alone, estimated):
        fill(settings)
    assert run(alone).model.digest() == run(estimated).model.digest()
    assert run(alone).estimates is None


def test_without_a_topic_they_are_metrics_only(tmp_path, monkeypatch):
    settings = configure(tmp_path, topic="", folds=0)
    fill(settings)
    monkeypatch.setattr("streamsvm.connectors.trainer.telemetry.LOOK_SECONDS", 0.0)
    metrics, seen = Metrics(), []
    with LocalLog(settings.log.dir) as log:
        Trainer(settings, log, lambda: bool(seen.append(metrics.render())), Health(), metrics).run()
    lines = dict(line.rsplit(" ", 1) for line in seen[-1].splitlines() if not line.startswith("#"))
    low, value, high = (
        float(lines[f'streamsvm_estimated_error{{bound="{bound}",kind="loo",partition="0"}}'])
        for bound in ("low", "value", "high")
    )
    assert 0.0 <= low <= value <= high < 0.5
    assert float(lines['streamsvm_estimates_share{partition="0"}']) > 0.0
    assert not any("folds" in line for line in lines)


@pytest.mark.long
def test_killed_at_any_step_they_go_on(tmp_path, monkeypatch):
    """What is remembered, and the history up to the last checkpoint, come back with the model."""

    def small(name):
        settings = configure(tmp_path / name, every=16)
        settings = replace(settings, daemon=replace(settings.daemon, checkpoint_records=32))
        fill(settings, 96)
        return settings

    whole = small("whole")
    fuse = Fuse()
    expected = run_with(whole, fuse, monkeypatch)[0]
    for place in range(1, fuse.steps + 1, 7):
        settings = small(str(place))
        with pytest.raises(Killed):
            run_with(settings, Fuse(place), monkeypatch)
        state = run(settings)
        assert state.model.digest() == expected.model.digest()
        assert [row[:-1] for row in state.estimates.history] == [row[:-1] for row in expected.estimates.history]
        by_place = {(item["kind"], item["offset"]): item["error"] for item in records(settings)}
        assert by_place == {(item.kind, item.offset): item.error._asdict() for item in expected.estimates.history}


def test_a_restart_goes_on_from_the_checkpoint(tmp_path):
    settings = configure(tmp_path)
    fill(settings)
    before = run(settings).estimates
    again = run(settings).estimates
    assert again.history == before.history
    assert again.latest == before.latest
    fill(settings, 60, first=200)
    assert len(run(settings).estimates.history) == len(before.history) + 2


def test_under_other_settings_they_begin_anew_and_keep_their_history(tmp_path, caplog):
    settings = configure(tmp_path)
    fill(settings)
    before = run(settings).estimates.history
    other = replace(settings, estimates=replace(settings.estimates, memory=30))
    fill(settings, 40, first=200)
    with caplog.at_level("INFO"):
        state = run(other)
    assert "begin anew: their settings have changed" in caplog.text
    assert state.estimates.history[: len(before)] == before
    assert state.estimates.latest["loo"].n == 30


def test_an_old_checkpoint_without_them_will_do(tmp_path):
    settings = configure(tmp_path)
    without = replace(settings, estimates=EstimateSettings(), log=replace(settings.log, estimates=""))
    fill(settings, 100)
    run(without)
    fill(settings, 100, first=100)
    assert run(settings).estimates.latest["loo"].offset > 100


@pytest.mark.long
def test_the_history_stays_short():
    model = ModelSettings().implementation()
    estimates = Estimates(EstimateSettings(loo=True, every=1, memory=5, share=ALWAYS), model)
    for i in range(700):
        x = {"a": float(i % 7), "b": float(i % 3)}
        model.learn_one(x, i % 2 == 0, id=i)
        estimates.learned([x], [i % 2 == 0], [1.0], [i], 1.0, i + 1)
    assert len(estimates.history) <= 512
    assert estimates.history[-1] == estimates.latest["loo"]
    assert estimates.latest["loo"].offset == 700


def test_a_score_that_is_none_is_null_in_a_record():
    score = Interval(float("nan"), float("nan"), float("nan"))
    value = json.loads(Estimate("folds", 10, 0, score, score, Interval(0.5, 0.5, 0.5), 0.1).encode(3))
    assert value["error"] == {"value": None, "low": None, "high": None}
    assert (value["prbep"]["value"], value["partition"]) == (0.5, 3)


def test_they_are_drawn_beside_the_error_of_predictions(tmp_path, monkeypatch):
    from matplotlib.axes import Axes

    drawn = {}
    errorbar = Axes.errorbar

    def noted(self, x, y, yerr, **options):
        drawn[options["label"]] = x, y, yerr
        return errorbar(self, x, y, yerr=yerr, **options)

    monkeypatch.setattr(Axes, "errorbar", noted)
    settings = configure(tmp_path)
    fill(settings)
    state = run(settings)
    report.draw(settings, state, tmp_path / "run.png")
    assert set(drawn) == {"leave-one-out error", "error by folds"}
    offsets, errors, _ = drawn["leave-one-out error"]
    assert len(offsets) == 5
    assert errors[-1] == pytest.approx(100 * state.estimates.latest["loo"].error.value)


def test_the_command_tells_them(tmp_path, capsys):
    settings = configure(tmp_path)
    fill(settings)
    config = tmp_path / "app.toml"
    config.write_text(
        '[log]\ndir = "log"\n[model]\nC = 5.0\ngamma = 0.5\n'
        "[estimates]\nloo = true\nevery = 40\nshare = 1e9\n[daemon]\nfollow = false\nbatch = 16\n"
    )
    assert main(["run", str(config)]) == 0
    assert "leave-one-out error of events-0, after " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[estimates]\nfolds = 1", "estimates.folds"),
        ("[estimates]\nshare = -1", "estimates.share"),
        ("[estimates]\nkeep = 'all'", "estimates.keep"),
        ("[log]\nestimates = 'estimates'", "log.estimates needs estimates.loo"),
        ("[estimates]\nloo = true\n[daemon]\nper = 'key'", 'daemon.per = "partition"'),
    ],
)
def test_settings_that_cannot_be_are_refused(tmp_path, text, message):
    (tmp_path / "app.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load(tmp_path / "app.toml", {})


def test_a_short_history_has_both_kinds():
    """Estimates come in pairs: of every second one, those of one kind would be left."""
    estimates = Estimates(EstimateSettings(loo=True, folds=2, every=1, memory=4, share=ALWAYS), ModelSettings().made())
    for i in range(300):
        estimates.learned([{"a": float(i)}], [i % 2 == 0], [1.0], [i], 1.0, i)
    offsets = {kind: [item.offset for item in estimates.history if item.kind == kind] for kind in ("loo", "folds")}
    assert len(estimates.history) <= 512
    assert offsets["loo"] == offsets["folds"]
    assert offsets["loo"][-1] == 299
    assert [item.offset for item in estimates.history] == sorted(item.offset for item in estimates.history)


def test_corrections_and_retractions_reach_what_is_remembered(tmp_path):
    """An example that was taken back is not predicted again, and a corrected one is judged by its new label."""
    settings = configure(tmp_path, folds=0, memory=500)
    settings = replace(settings, log=replace(settings.log, labels="labels"))
    fill(settings, 100)
    with LocalLog(settings.log.dir) as log:
        for i in range(100):
            log.produce("labels", json.dumps({"id": i, "y": i % 2 == 0}).encode())
        for i in range(10):
            log.produce("labels", json.dumps({"id": i, "op": "retract"}).encode())
        for i in range(10, 20):
            log.produce("labels", json.dumps({"id": i, "y": i % 2 != 0, "rev": 1}).encode())
    memory = run(settings).estimates._makers["loo"]._memory
    assert sorted(memory.ids) == list(range(10, 100))
    assert [example.y for example in memory.of(range(10, 30))] == [i % 2 != 0 for i in range(10, 20)] + [
        i % 2 == 0 for i in range(20, 30)
    ]
