"""Promotion: another model serves, from one place of the stream on, exactly once."""

import itertools
from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from logged import append, change, read_json
from shadows import alone, configure, fill, late_labels, some_events, values

from streamsvm.connectors.commands import cli
from streamsvm.connectors.commands.doctor.state import check_state
from streamsvm.connectors.commands.replays.replay import replay, replay_settings
from streamsvm.connectors.records.erasures import Erasure
from streamsvm.connectors.records.models import unpack_model
from streamsvm.connectors.records.promotions import Request, write_promotion
from streamsvm.connectors.records.published import read_newest
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.trainer import shadow, trainer
from streamsvm.connectors.trainer.rerun import Rerun, Stage
from streamsvm.connectors.trainer.state.checkpoint import CheckpointStore

TWO = (
    ChallengerSettings("c1", model=ModelSettings(C=1.0)),
    ChallengerSettings("wide", model=ModelSettings(C=10.0, gamma=0.01)),
)


def promoting(folder, challengers=TWO, **changes):
    settings = configure(folder, challengers, **changes)
    return change(settings, log={"control": "control", "model": "models"})


def ask(settings, name):
    append(settings, [write_promotion(Request(name))], "control")


def run(settings):
    return trainer.run(settings)[0]


def first_and_rest(settings, n=200, at=100):
    """Consume some events, ask for a promotion, and consume the others."""
    events = list(some_events(n))
    append(settings, events[:at])
    run(settings)
    ask(settings, "c1")
    append(settings, events[at:])


def digests(state):
    return {state.challengers.serving: state.models.digest()} | {
        each.name: each.models.digest() for each in state.challengers.all
    }


def outcome(settings, state):
    answers = read_json(settings, "control-served")
    return digests(state), state.challengers.terms, values(settings, "predictions"), answers


def test_a_promoted_model_serves_from_one_offset_on_and_all_learn_as_before(tmp_path):
    settings = promoting(tmp_path)
    first_and_rest(settings)
    state = run(settings)
    assert [(term.name, term.offset) for term in state.challengers.terms] == [("model", 0), ("c1", 100)]
    assert all(finding.level == "ok" for finding in check_state(settings))
    answer = {"op": "serve", "name": "c1", "request": 0, "events": 100, "labels": 0}
    assert read_json(settings, "control-served") == [answer]
    said = values(settings, "predictions")
    for name, offsets in (("model", range(100)), ("c1", range(100, 200))):
        own = alone(settings, name, tmp_path)
        assert digests(state)[name] == run(own).models.digest()
        expected = values(own, own.log.predictions)
        assert all(said[f"events-0-{i}"] == expected[f"events-0-{i}"] for i in offsets)
    assert set(values(settings, "predictions-c1")) == {f"events-0-{i}" for i in range(100)}
    assert set(values(settings, "predictions-model")) == {f"events-0-{i}" for i in range(100, 200)}
    with open_once(settings) as log:
        newest = read_newest(log, "models", float("inf"))["p0"]
    assert unpack_model(newest.blob).model.digest() == state.models.digest()  # what scorers serve
    assert newest.manifest["ver"] == state.version


def test_labels_that_come_after_the_promotion_teach_each_model_with_what_it_said_itself(tmp_path):
    found = []
    for name in (None, "wide"):
        settings = promoting(tmp_path / str(name), labels="labels")
        events = list(some_events(200, labelled=False))
        append(settings, events[:100])
        append(settings, list(late_labels(200))[:60], "labels")
        run(settings)
        append(settings, events[100:])  # which models predict that have learned
        run(settings)
        if name:
            ask(settings, name)
        run(settings)
        append(settings, list(late_labels(200))[60:], "labels")
        found.append(run(settings))
    assert [state.challengers.serving for state in found] == ["model", "wide"]
    assert digests(found[0]) == digests(found[1])


def test_rollback_lets_the_model_serve_that_served_before(tmp_path):
    settings = promoting(tmp_path)
    first_and_rest(settings)
    run(settings)
    ask(settings, None)
    state = run(settings)
    assert [(term.name, term.offset) for term in state.challengers.terms] == [("model", 0), ("c1", 100), ("model", 200)]
    ask(settings, None)
    assert run(settings).challengers.serving == "c1"


def test_a_replay_promotes_at_the_same_record_and_answers_nothing(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text('[log]\ncontrol = "control"\n[[challenger]]\nname = "c1"\n[challenger.model]\nC = 1.0\n')
    settings = load(path, {}, ["daemon.follow=false"])
    first_and_rest(settings)
    expected = run(settings)
    ask(settings, None)  # which no trainer has answered
    again = replay_settings(path, {}, [], "again")
    found = replay(again, None, None, lambda: False)[0]
    assert found.challengers.terms == expected.challengers.terms
    assert digests(found) == digests(expected)
    assert len(read_json(settings, "control-served")) == 1
    assert set(values(settings, "predictions-again")) == {f"events-0-{i}" for i in range(200)}


def test_what_cannot_serve_is_passed_over(tmp_path, caplog):
    settings = promoting(tmp_path)
    append(settings, list(some_events(40)))
    append(settings, [b"{", write_promotion(Request("nobody")), write_promotion(Request("model"))], "control")
    state = run(settings)
    assert state.challengers.serving == "model"
    assert "'nobody' cannot serve" in caplog.text
    assert [letter for letter in caplog.messages if "control-0-0 is passed over" in letter]
    assert run(settings).challengers.next_request == 3


def test_a_request_that_changed_nothing_changes_nothing_in_a_later_run(tmp_path):
    settings = promoting(tmp_path)
    append(settings, list(some_events(40)))
    run(settings)
    for name in (None, "model", "c1", "c1"):  # A rollback that had nothing to roll back comes first.
        ask(settings, name)
    expected = run(settings)
    assert [term.name for term in expected.challengers.terms] == ["model", "c1"]
    found = run(change(settings, daemon={"state_dir": tmp_path / "again"}))
    assert found.challengers.terms == expected.challengers.terms
    assert len(read_json(settings, "control-served")) == 4


def test_a_later_run_over_the_log_promotes_at_the_same_record(tmp_path):
    """Whatever its batches are, and although the request stands in the log from the beginning."""
    settings = promoting(tmp_path)
    first_and_rest(settings)
    expected = run(settings)
    for batch in (1, 7, 1000):
        again = change(settings, daemon={"state_dir": tmp_path / f"again-{batch}", "batch": batch})
        found = run(again)
        assert found.challengers.terms == expected.challengers.terms
        assert digests(found) == digests(expected)
    rerun = Rerun(settings, 0, tmp_path / "rerun")  # as `streamsvm rebuild` does
    rerun.run(Stage(150, 0))
    rebuilt = rerun.run(Stage(200, 0))
    assert rebuilt.challengers.terms == expected.challengers.terms
    assert digests(rebuilt) == digests(expected)
    assert len(read_json(settings, "control-served")) == 1


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_a_challenger_that_was_added_later_begins_at_the_same_records(tmp_path, labels):
    first = promoting(tmp_path, TWO[:1], labels=labels)
    fill(first, 100)
    run(first)
    settings = promoting(tmp_path, labels=labels)
    for n in (150, 200):  # The note is written once.
        append(settings, list(some_events(n, labelled=not labels))[n - 50 :])
        if labels:
            append(settings, list(late_labels(200))[n - 50 : n], labels)
        expected = run(settings)
    (note,) = read_json(settings, "control-served")
    assert (note["op"], note["name"], note["events"], note["labels"] > 0) == ("begin", "wide", 100, bool(labels))
    ask(settings, "wide")
    expected = run(settings)
    assert expected.challengers.serving == "wide"
    for batch in (7, 1000):
        again = change(settings, daemon={"state_dir": tmp_path / f"again-{batch}", "batch": batch})
        cycles = itertools.count()
        begun = trainer.run(again, lambda cycles=cycles: next(cycles) > 8)  # It goes on from a checkpoint.
        assert batch > 7 or begun[0].challengers.all[1].is_awaited
        found = run(again)
        assert digests(found) == digests(expected)
        assert found.challengers.terms == expected.challengers.terms
    assert len(read_json(settings, "control-served")) == 2


def test_a_beginning_is_noted_if_a_checkpoint_came_before_and_then_a_kill(tmp_path, monkeypatch):
    """A request to forget is followed before any other, and has checkpoints of its own."""
    first = change(promoting(tmp_path, TWO[:1]), log={"erasures": "erasures"})
    events = list(some_events(60))
    append(first, events[:40])
    run(first)
    append(first, Erasure((1,), (), {None: (1,)}).to_values(), "erasures")
    append(first, events[40:])
    settings, save = replace(first, challenger=TWO), CheckpointStore.save

    def save_and_die(*arguments):
        save(*arguments)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", save_and_die)
        with pytest.raises(Killed):
            run(settings)
    assert not read_json(settings, "control-served")
    assert run(settings).challengers.all[1].counters.predicted == 20
    (note,) = read_json(settings, "control-served")
    assert (note["op"], note["name"], note["events"]) == ("begin", "wide", 40)


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_killed_anywhere_there_is_one_promotion_at_one_offset(tmp_path, monkeypatch, labels):
    calm = promoting(tmp_path / "calm", TWO[:1], labels=labels)
    if labels:
        fill(calm, 60)
        run(calm)
        ask(calm, "c1")
        append(calm, list(some_events(120, labelled=False))[60:])
        append(calm, list(late_labels(120))[60:], "labels")
    else:
        first_and_rest(calm, 120, 60)
    begun = copytree(tmp_path / "calm", tmp_path / "begun")  # the times of records decide about their order
    fuse = Fuse()
    expected = outcome(calm, run_with(calm, fuse, monkeypatch)[0])
    for number, step in enumerate(np.linspace(2, fuse.steps - 1, 20).astype(int).tolist()):
        stormy = promoting(copytree(begun, tmp_path / f"storm-{number}"), TWO[:1], labels=labels)
        with pytest.raises(Killed):
            run_with(stormy, Fuse(step), monkeypatch)
        found = outcome(stormy, run(stormy))
        assert found[:3] == expected[:3]
        assert [each for i, each in enumerate(found[3]) if each not in found[3][:i]] == expected[3]


def test_a_better_challenger_serves_by_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(shadow, "_ROOM", 4000)  # it follows while records wait
    poor = ModelSettings(kernel="linear")
    settings = promoting(
        tmp_path, (ChallengerSettings("good", model=ModelSettings(C=1.0)),), comparison={"promote": "error"}
    )
    settings = replace(settings, model=poor)
    append(settings, list(some_events(400)))
    state = run(settings)
    assert state.challengers.serving == "good"
    (answer,) = read_json(settings, "control-served")
    assert (answer["name"], answer["request"]) == ("good", None)
    assert 10 < answer["events"] == state.challengers.terms[1].offset < 400
    again = change(settings, daemon={"state_dir": tmp_path / "again", "batch": 1})
    assert run(again).challengers.terms[1][:2] == ("good", answer["events"])


def test_the_commands(tmp_path, capsys):
    path = tmp_path / "app.toml"
    path.write_text('[log]\ncontrol = "control"\n[daemon]\nfollow = false\n[[challenger]]\nname = "c1"\n')
    append(tmp_path / "log", list(some_events(30)))
    alone = tmp_path / "alone.toml"
    alone.write_text('[log]\ncontrol = "control"\n')
    for command, said in (("promote", "that could be promoted"), ("rollback", "so there is no model to go back to")):
        assert cli.main([command, str(alone), *["c1"] * (command == "promote")]) != 0
        assert said in capsys.readouterr().err
    assert cli.main(["promote", str(path), "other"]) != 0
    assert "'other' is no challenger; there are 'model', 'c1'" in capsys.readouterr().err
    assert cli.main(["promote", str(path), "c1"]) == 0
    assert "the trainer of 1 partition follows the request when it runs" in capsys.readouterr().out
    assert read_json(tmp_path / "log", "control") == [{"op": "promote", "name": "c1"}]
    assert cli.main(["run", str(path)]) == 0
    assert cli.main(["rollback", str(path)]) == 0
    capsys.readouterr()
    assert cli.main(["challengers", str(path)]) == 0
    assert capsys.readouterr().out.count("waits: the trainer follows it") == 1
    assert cli.main(["run", str(path)]) == 0
    capsys.readouterr()
    assert cli.main(["challengers", str(path)]) == 0
    out = capsys.readouterr().out
    assert "'model' serves, at offset 30" in out
    assert "waits" not in out


def test_a_challenger_that_has_learned_nothing_is_not_promoted(tmp_path, capsys):
    path = tmp_path / "app.toml"
    path.write_text("[daemon]\nfollow = false\n")
    append(tmp_path / "log", list(some_events(30)))
    assert cli.main(["run", str(path)]) == 0
    path.write_text(path.read_text() + '[log]\ncontrol = "control"\n[[challenger]]\nname = "c1"\n')
    capsys.readouterr()
    assert cli.main(["challengers", str(path)]) == 0
    assert "no checkpoint has c1 yet: a challenger begins with the first event" in capsys.readouterr().out
    assert cli.main(["promote", str(path), "c1"]) != 0
    assert "'c1' has learned nothing yet" in capsys.readouterr().err
    assert cli.main(["promote", str(path), "model"]) == 0
