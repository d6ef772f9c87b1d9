"""Challengers that begin at an earlier event: they catch up, and are then the models that began with it."""

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from shutil import copytree

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from logged import append, change, read
from shadows import SHADOWS, alone, configure, fill, late_labels, some_events

from streamsvm.connectors.commands import cli
from streamsvm.connectors.commands.replays.replay import replay
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.erasures import Erasure
from streamsvm.connectors.records.promotions import Request, write_promotion
from streamsvm.connectors.report.page import write_report
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.opening import backend_of
from streamsvm.connectors.trainer import catching_up, trainer
from streamsvm.connectors.trainer.rerun import Rerun, Stage


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch):
    """So short that catching up with 200 events takes many of them."""
    monkeypatch.setattr(catching_up, "_SLICE_SECONDS", 0.0)
    monkeypatch.setattr(catching_up, "_SLICE_RECORDS", 16)


def late(*challengers, begin):
    return tuple(replace(each, begin=begin) for each in challengers)


def run(settings):
    return trainer.run(settings)[0]


def challenger_of(state, name="c1"):
    return next(each for each in state.challengers.all if each.name == name)


def begin_later(folder, shadows, **changes):
    """A trainer that has consumed a log, and now gets challengers; the settings with and without these."""
    before = configure(folder, (), **changes)
    fill(before)
    run(before)
    return before, replace(before, challenger=shadows)


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_it_is_the_model_that_began_with_the_log(tmp_path, labels):
    before, settings = begin_later(tmp_path, late(*SHADOWS, begin="earliest"), labels=labels)
    state = run(settings)
    expected_model = run(change(before, daemon={"state_dir": tmp_path / "without"})).model
    assert state.model.digest() == expected_model.digest()
    together = run(change(settings, daemon={"state_dir": tmp_path / "together"}))  # from the first event on
    for each, other in zip(state.challengers.all, together.challengers.all, strict=True):
        own = run(alone(settings, each.name, tmp_path))
        assert each.models.digest() == own.models.digest() == other.models.digest()
        assert each.counters.learned == other.counters.learned
        assert each.said == other.said
    if labels:
        more = list(some_events(260, labelled=False))[200:]
        for one in (settings, change(settings, daemon={"state_dir": tmp_path / "together"})):
            if one is settings:
                append(settings, more)
                append(settings, list(late_labels(260))[150:], "labels")  # of events from before it caught up, too
            found = run(one)
            one_of = {each.name: each.models.digest() for each in found.challengers.all}
            if one is settings:
                expected = one_of
        assert one_of == expected


@pytest.mark.parametrize("labels", ["", "labels"])
def test_it_begins_with_an_offset_wherever_it_catches_up(tmp_path, labels):
    """As a trainer that has the challenger from the beginning, and waits for that offset; as `streamsvm replay`."""
    _, settings = begin_later(tmp_path, late(SHADOWS[0], begin=70), labels=labels)
    state = run(settings)
    found = challenger_of(state)
    waited = run(change(settings, daemon={"state_dir": tmp_path / "waited"}))
    assert found.models.digest() == challenger_of(waited).models.digest()
    assert found.said == challenger_of(waited).said
    own = alone(settings, "c1", tmp_path)
    replayed = replay(own, 70, None, lambda: False)[0]
    assert found.models.digest() == replayed.models.digest()
    assert 0 < found.counters.learned == replayed.counters.learned < state.counters.learned


def test_it_begins_with_a_time(tmp_path):
    before = configure(tmp_path, ())
    fill(before)
    times = [record.timestamp for record in read(before)]
    time = datetime.fromtimestamp(times[90] / 1000, UTC).isoformat()
    run(before)
    settings = replace(before, challenger=late(SHADOWS[0], begin=time))
    assert challenger_of(run(settings)).begun == times.index(times[90])


def test_an_offset_that_is_still_to_come_is_waited_for(tmp_path, capsys):
    _, settings = begin_later(tmp_path, late(SHADOWS[0], begin=230))
    run(settings)
    assert cli.main(["challengers", str(settings.daemon.state_dir)]) == 0
    assert "c1 begins at offset 230, and the trainer is at 200." in capsys.readouterr().out
    append(settings, list(some_events(260))[200:])
    found = challenger_of(run(settings))
    own = alone(settings, "c1", tmp_path)
    assert found.models.digest() == replay(own, 230, None, lambda: False)[0].models.digest()


def test_with_raw_events_it_takes_the_numbers_of_the_model_that_serves(tmp_path):
    """Those of later events depend on those before it began, too."""
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=150).tolist()
    rows = [{"id": i, "a": a if i % 5 else None, "c": "xyz"[i % 3], "y": i % 3 == 1} for i, a in enumerate(numbers)]
    raw = {"features": {"raw": True, "id": "id", "label": "y"}}
    expected = []
    for name, begin in (("before", 60), ("later", 60)):
        settings = configure(tmp_path / name, late(SHADOWS[0], begin=begin), **raw)
        if name == "later":
            append(settings, rows[:110])
            run(replace(settings, challenger=()))
            run(settings)
            append(settings, rows[110:])
        else:
            append(settings, rows)
        expected.append(challenger_of(run(settings)).models.digest())
    assert expected[0] == expected[1]


def test_what_was_erased_it_has_never_seen(tmp_path):
    before = configure(tmp_path, (), log={"erasures": "erasures"})
    fill(before)
    run(before)
    gone = tuple(range(0, 200, 5))
    append(before, Erasure(gone, (), {None: gone}).to_values(), "erasures")
    settings = replace(before, challenger=late(SHADOWS[0], begin="earliest"))
    found = challenger_of(run(settings))
    assert found.models.digest() == run(alone(settings, "c1", tmp_path)).models.digest()
    assert not set(found.models.model.support_ids) & set(gone)


def test_what_is_erased_while_it_catches_up_is_forgotten(tmp_path, monkeypatch):
    before = configure(tmp_path, (), log={"erasures": "erasures"})
    fill(before)
    run(before)
    settings = change(replace(before, challenger=late(SHADOWS[0], begin="earliest")), daemon={"follow": True})
    gone = tuple(range(200))
    steps = []
    step = catching_up.CatchingUp.step

    def asking(self):
        more = step(self)
        steps.append(more)
        if len(steps) == 5:
            append(settings, Erasure(gone, (), {None: gone}).to_values(), "erasures")
        return more

    monkeypatch.setattr(catching_up.CatchingUp, "step", asking)
    state = trainer.run(settings, lambda: len(steps) > 8 and not steps[-1])[0]
    assert state.erased.offset > 0
    assert challenger_of(state).caught_up is None
    assert not len(challenger_of(state).models.model.support_ids)


# --- what goes wrong --------------------------------------------------------------------------------------------------


def fill_segments(settings):
    """Events in many small files, so that the log can lose some."""
    with LocalLog(settings.log.dir, segment_bytes=1000) as log:
        for event in some_events(200):
            log.produce("events", json.dumps(event).encode())


def test_a_log_that_lacks_the_beginning_says_where_it_begins(tmp_path, caplog):
    before = configure(tmp_path, ())
    fill_segments(before)
    run(before)
    backend_of(before).trim("events", 0, 100)
    settings = replace(before, challenger=late(*SHADOWS[:2], begin=3))
    state = run(settings)
    (start,) = {each.begun for each in state.challengers.all}
    assert 3 < start <= 100
    assert f"'c1' begins with the event at offset {start}: the log no longer has those from 3 on" in caplog.text
    own = alone(settings, "c1", tmp_path)
    assert challenger_of(state).models.digest() == run(own).models.digest()


def test_a_time_after_all_events_is_the_end_of_the_log_and_said(tmp_path, caplog):
    _, settings = begin_later(tmp_path, late(SHADOWS[0], begin="2999-01-01"))
    assert challenger_of(run(settings)).begun == 200
    assert "begins with the event at offset 200, the next one: the log has none from 2999-01-01 on" in caplog.text


def test_events_that_vanish_while_it_catches_up_drop_it(tmp_path):
    before = configure(tmp_path, ())
    fill_segments(before)
    run(before)
    settings = replace(before, challenger=late(SHADOWS[0], begin=0))
    assert run_for(settings, 3).challengers.catching_up
    backend_of(before).trim("events", 0, 190)
    state = run(settings)
    assert "could not catch up: RecordsLost: events-0 begins at offset" in challenger_of(state).dropped
    assert state.model.digest() == run(change(before, daemon={"state_dir": tmp_path / "state"})).model.digest()


def run_for(settings, n_steps):
    """A trainer that ends after so many slices."""
    steps = []
    with pytest.MonkeyPatch.context() as patch:
        step = catching_up.CatchingUp.step
        patch.setattr(catching_up.CatchingUp, "step", lambda self: steps.append(0) or step(self))
        return trainer.run(settings, lambda: len(steps) >= n_steps)[0]


def test_it_cannot_serve_before_it_has_caught_up(tmp_path, capsys, caplog):
    _, settings = begin_later(tmp_path, late(SHADOWS[0], begin="earliest"))
    settings = change(settings, log={"control": "control"})
    state = run_for(settings, 4)
    assert 0 < challenger_of(state).caught_up < 200
    append(settings, [write_promotion(Request("c1"))], "control")
    assert run_for(settings, 2).challengers.serving == "model"
    assert re.search(r"'c1' cannot serve: it is catching up, at offset \d+ of 200", caplog.text)
    path = tmp_path / "app.toml"
    path.write_text('[log]\ncontrol = "control"\n[[challenger]]\nname = "c1"\nbegin = "earliest"\n')
    assert cli.main(["promote", str(path), "c1"]) != 0
    at = challenger_of(state).caught_up
    assert re.search(
        r"'c1' is catching up, at offset \d+ of 200; it began with 0; promote it later", capsys.readouterr().err
    )
    assert cli.main(["challengers", str(settings.daemon.state_dir)]) == 0
    assert re.search(r"c1 is catching up, at offset \d+ of 200; it began with 0\.", capsys.readouterr().out)
    page, _ = write_report(settings.daemon.state_dir)
    assert "c1 is catching up, at offset" in page.read_text()
    assert at > 0
    done = run(settings)
    assert done.challengers.serving == "model"
    assert run(settings).challengers.serving == "model"
    assert not (settings.daemon.state_dir / "catching-up").exists()


def test_another_beginning_or_model_begins_anew(tmp_path, caplog):
    _, settings = begin_later(tmp_path, late(SHADOWS[0], begin="earliest"))
    run_for(settings, 4)
    other = replace(SHADOWS[0], begin="earliest", model=SHADOWS[1].model)
    changed = replace(settings, challenger=(other,))
    found = challenger_of(run(changed))
    assert found.models.digest() == run(alone(changed, "c1", tmp_path)).models.digest()
    with caplog.at_level("INFO"):
        again = challenger_of(run(replace(settings, challenger=(replace(other, begin=100),))))
    assert "challenger 'c1' begins anew: its settings have changed" in caplog.text
    assert again.begun == 100
    kept = challenger_of(run(replace(settings, challenger=(replace(other, begin="now"),))))
    assert (kept.begun, kept.models.digest()) == (100, again.models.digest())


# --- kills ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_killed_anywhere_it_ends_as_if_it_never_was(tmp_path, monkeypatch, labels):
    begin_later(tmp_path / "calm", (), labels=labels)
    begun = copytree(tmp_path / "calm", tmp_path / "begun")

    def settings_in(folder):
        return configure(folder, late(*SHADOWS[:2], begin=40), labels=labels)

    fuse = Fuse()
    expected = outcome(run_with(settings_in(tmp_path / "calm"), fuse, monkeypatch)[0])
    for number, step in enumerate(np.linspace(2, fuse.steps - 1, 12).astype(int).tolist()):
        stormy = settings_in(copytree(begun, tmp_path / f"storm-{number}"))
        with pytest.raises(Killed):
            run_with(stormy, Fuse(step), monkeypatch)
        assert outcome(run(stormy)) == expected


def outcome(state):
    return {each.name: (each.models.digest(), each.counters.learned, each.said) for each in state.challengers.all}


# --- without predictions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [{}, {"kernel": "poly", "degree": 5}, {"budget": 20}, {"window": 30}])
def test_a_model_that_predicts_nothing_learns_the_same(tmp_path, model):
    """From a stream with events that no model can take, that have too many features, come twice or have no label."""
    settings = configure(tmp_path, (), limits={"model_features": 6}, daemon={"max_bad": 1.0})
    settings = replace(settings, model=ModelSettings(**model))
    rng = np.random.default_rng(1)
    events = list(some_events(200))
    for event in events:
        kind = rng.integers(12)
        if kind == 0:
            event["x"]["a"] = float(10.0 ** rng.integers(3, 300))
        elif kind == 1:
            event["x"][f"new{rng.integers(9)}"] = 1.0
        elif kind == 2:
            event["id"] = int(rng.integers(200))
    append(settings, events)
    own = catching_up.alone(settings, ChallengerSettings("c", model=settings.model), 16)
    found = [
        Rerun(own, 0, tmp_path / str(is_silent), is_silent=is_silent).run(Stage(200, 0)) for is_silent in (False, True)
    ]
    assert found[0].model.digest() == found[1].model.digest()
    assert found[0].counters.learned == found[1].counters.learned > 50
    assert found[0].counters.bad == found[1].counters.bad > 0


def test_it_cannot_serve_before_it_begins(tmp_path, capsys, caplog):
    _, settings = begin_later(tmp_path, late(SHADOWS[0], begin=230))
    settings = change(settings, log={"control": "control"})
    run(settings)
    append(settings, [write_promotion(Request("c1"))], "control")
    assert run(settings).challengers.serving == "model"
    assert "'c1' cannot serve: it begins at offset 230" in caplog.text
    path = tmp_path / "app.toml"
    path.write_text('[log]\ncontrol = "control"\n[[challenger]]\nname = "c1"\nbegin = 230\n')
    assert cli.main(["promote", str(path), "c1"]) != 0
    assert "'c1' begins at offset 230, and the trainer is at 200; promote it later" in capsys.readouterr().err
