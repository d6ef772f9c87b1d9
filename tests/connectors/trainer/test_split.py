"""A share of the events is answered by a challenger: in the trainer, in replays and in scorers alike."""

import json
from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from logged import append, change, read, read_json
from shadows import alone, configure, fill, some_events, values

from streamsvm.connectors.commands.replays.replay import replay, replay_settings
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.codec import key_of
from streamsvm.connectors.records.promotions import Request, write_promotion
from streamsvm.connectors.runtime.numbers import MAX_INT64
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.trainer import shadow, trainer
from streamsvm.connectors.trainer.inputs import Input

TWO = (
    ChallengerSettings("c1", share=0.4, model=ModelSettings(C=1.0)),
    ChallengerSettings("wide", share=0.2, model=ModelSettings(C=10.0, gamma=0.01)),
)
NAMES = ("model", "c1", "wide")


def splitting(folder, challengers=TWO, **changes):
    settings = configure(folder, challengers, **changes)
    return change(settings, log={"control": "control", "model": "models"})


def run(settings):
    return trainer.run(settings)[0]


def keyed(settings, events):
    """Write events whose keys are one of 30 users."""
    with LocalLog(settings.log.dir) as log:
        for event in events:
            log.produce("events", json.dumps(event).encode(), key=b"u%d" % (event["id"] % 30))


def by_whom(said):
    return {src: each["model"].pop("name") for src, each in said.items()}


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_each_event_is_answered_once_by_the_model_of_its_share(tmp_path, labels):
    settings = splitting(tmp_path, labels=labels)
    fill(settings)
    state = run(settings)
    said = values(settings, "predictions")
    names = by_whom(said)
    ids = {f"events-0-{i}": each["id"] for i, each in enumerate(read_json(settings, "events"))}
    assert len(said) == 200
    assert all((settings.split().of(None, key_of(ids[src])) or "model") == name for src, name in names.items())
    for name in NAMES:  # each says what it would say alone
        own = alone(settings, name, tmp_path)
        own = change(own, log={"control": "", "model": ""})
        digest = run(own).models.digest()
        found = [state.models, *(each.models for each in state.challengers.all)][NAMES.index(name)]
        assert found.digest() == digest
        expected = values(own, own.log.predictions)
        mine = {src for src, by in names.items() if by == name}
        shadowed = values(settings, f"predictions-{name}")
        assert by_whom(shadowed).keys() == names.keys() - mine
        assert all(said[src] == expected[src] for src in mine)
        assert all(shadowed[src] == expected[src] for src in names.keys() - mine)
    without = change(configure(tmp_path, (), labels=labels), log={"predictions": "without"})
    assert run(change(without, daemon={"state_dir": tmp_path / "without"})).model.digest() == state.model.digest()


def test_all_events_of_a_key_go_to_one_model_or_each_by_its_id(tmp_path):
    for split in ("key", "id"):
        settings = splitting(tmp_path / split, comparison={"split": split})
        keyed(settings, some_events(150))
        run(settings)
        of_users = {}
        for record in read(settings, "predictions"):
            of_users.setdefault(record.key, set()).add(json.loads(record.value)["model"]["name"])
        assert set.union(*of_users.values()) == set(NAMES)
        assert all(len(names) == 1 for names in of_users.values()) == (split == "key")


def test_what_is_counted_is_what_was_answered(tmp_path):
    settings = splitting(tmp_path, labels="labels", comparison={"miss_cost": 4.0})
    fill(settings)
    arms = {arm.name: arm for arm in run(settings).challengers.arms}
    said = {each["id"]: each for each in read_json(settings, "predictions")}
    first = {}
    for event in read_json(settings, "labels"):
        if "y" in event and event.get("op", "set") == "set" and event["id"] in said:
            first.setdefault(event["id"], event["y"])
    for name, arm in arms.items():
        mine = {id_ for id_, each in said.items() if each["model"]["name"] == name}
        wrong = np.array([said[id_]["label"] != y for id_, y in first.items() if id_ in mine])
        costs = np.array([4.0 if y else 1.0 for id_, y in first.items() if id_ in mine])
        assert (arm.n_events, arm.n_labels) == (len(mine), len(wrong))
        assert arm.metrics["error"].value == pytest.approx(wrong.mean())
        assert arm.metrics["cost"].value == pytest.approx((wrong * costs).mean())
        assert all(mean.low < mean.value < mean.high for mean in arm.metrics.values())
    assert set(arms) == set(NAMES)


def test_a_replay_answers_the_same_and_so_does_a_promotion(tmp_path):
    path = tmp_path / "app.toml"
    path.write_text(
        '[log]\ncontrol = "control"\n[[challenger]]\nname = "c1"\nshare = 0.4\n[challenger.model]\nC = 1.0\n'
        '[[challenger]]\nname = "wide"\nshare = 0.2\n[challenger.model]\ngamma = 0.01\n'
    )
    settings = load(path, {}, ["daemon.follow=false"])
    keyed(settings, list(some_events(200))[:100])
    run(settings)
    append(settings, [write_promotion(Request("c1"))], "control")
    keyed(settings, list(some_events(200))[100:])
    state = run(settings)
    assert state.challengers.serving == "c1"
    names = by_whom(values(settings, "predictions"))
    assert {names[f"events-0-{i}"] for i in range(100, 200)} == {"c1", "wide"}  # what c1 had answered, and the rest
    again = replay_settings(path, {}, [], "again")
    replayed = replay(again, None, None, lambda: False)[0]
    assert values(again, "predictions-again") == values(settings, "predictions")
    assert list(replayed.challengers.arms) == list(state.challengers.arms)
    append(settings, [write_promotion(Request(None))], "control")
    keyed(settings, [{**event, "id": event["id"] + 200} for event in some_events(60)])
    run(settings)
    names = by_whom(values(settings, "predictions"))
    assert {names[f"events-0-{i}"] for i in range(200, 260)} == set(NAMES)
    assert all(names[f"events-0-{i + 30}"] == names[f"events-0-{i}"] for i in range(200, 230))  # of the same key


@pytest.mark.long
def test_a_replay_knows_when_shares_were_others_and_when_a_challenger_was_dropped(tmp_path):
    path = tmp_path / "app.toml"
    text = '[log]\ncontrol = "control"\n[comparison]\nsplit = "{}"\n[[challenger]]\nname = "c1"\n{}'
    text += "[challenger.model]\nC = 1.0\n"
    events = list(some_events(250))
    for n, (split, share) in enumerate([("key", ""), ("key", "share = 0.6\n"), ("id", "share = 0.3\n"), ("id", "")]):
        path.write_text(text.format(split, share))
        settings = load(path, {}, ["daemon.follow=false"])
        keyed(settings, events[50 * n : 50 * n + 50])
        state = run(settings)
    path.write_text(text.format("id", "share = 0.9\nmax_mb = 0.0001\n"))  # so it is dropped at the first checkpoint
    keyed(settings, events[200:])
    state = run(load(path, {}, ["daemon.follow=false", "daemon.checkpoint_records=20"]))
    assert state.challengers.all[0].dropped
    notes = [(note["shares"], note["events"]) for note in read_json(settings, "control-served")]
    assert notes[:4] == [({"c1": 0.6}, 50), ({"c1": 0.3}, 100), ({}, 150), ({"c1": 0.9}, 200)]
    path.write_text(text.format("id", ""))
    said = values(settings, "predictions")
    names = {src: each["model"].get("name", "") for src, each in said.items()}
    assert {names[f"events-0-{i}"] for i in [*range(50), *range(150, 200)]} == {""}
    assert {names[f"events-0-{i}"] for i in [*range(50, 100), *range(100, 150)]} == {"model", "c1"}
    again = replay_settings(path, {}, [], "again")
    replay(again, None, None, lambda: False)
    assert values(again, "predictions-again") == said
    assert len(read_json(settings, "control-served")) == len(notes)


def one_request(item, end, take=Input.take):
    """`Input.take`, with one request at a time."""
    return take(item, item.records[0].offset + 1 if item.records and end == MAX_INT64 else end)


def test_a_note_that_a_checkpoint_has_followed_changes_nothing_when_it_comes_again(tmp_path, monkeypatch):
    """On Kafka, an open transaction of a process that was killed hides the notes after it for a while."""
    settings = splitting(tmp_path)
    for n, shares in ((20, (0.4, 0.2)), (40, (0.1, 0.3)), (60, (0.1, 0.3))):
        append(settings, list(some_events(n))[n - 20 :])
        own = tuple(replace(each, share=share) for each, share in zip(TWO, shares, strict=True))
        if n == 60:
            monkeypatch.setattr(Input, "take", one_request)
        run(replace(settings, challenger=own))
    notes = read_json(settings, "control-served")
    assert [(note["shares"]["c1"], note["events"]) for note in notes] == [(0.4, 0), (0.1, 20)]


def test_scorers_answer_with_the_same_models(tmp_path):
    settings = splitting(tmp_path)
    keyed(settings, some_events(150))
    run(settings)
    scorer.run(settings)
    names = by_whom(values(settings, "predictions"))
    assert by_whom(values(settings, "scores")) == names
    state = run(settings)
    models = {"model": state.models, **{each.name: each.models for each in state.challengers.all}}
    events = {each["id"]: each["x"] for each in read_json(settings, "events")}
    for said in read_json(settings, "scores"):
        model = models[said["model"]["name"]].model
        assert said["score"] == pytest.approx(model.predict_proba_one(events[said["id"]])[True])
    append(settings, [write_promotion(Request("c1"))], "control")
    run(settings)  # c1 serves, and "model" has no share
    more = [{**event, "id": event["id"] + 150} for event in some_events(60)]
    keyed(settings, more)
    scorer.run(settings)
    run(settings)
    answered = by_whom(values(settings, "scores"))
    assert {answered[f"events-0-{i}"] for i in range(150, 210)} == {"c1", "wide"}
    assert {src: answered[src] for src in answered} == by_whom(values(settings, "predictions"))


def test_a_challenger_that_fails_is_answered_for(tmp_path, monkeypatch):
    settings = splitting(tmp_path)
    keyed(settings, some_events(150))
    teach = shadow.teach

    def failing(tasks, rows, entity, pupil, limit):
        if pupil.name == "c1" and pupil.counters.learned > 60:
            raise MemoryError("no memory is left")
        return teach(tasks, rows, entity, pupil, limit)

    monkeypatch.setattr(shadow, "teach", failing)
    state = run(settings)
    assert state.challengers.all[0].dropped
    said = values(settings, "predictions")
    names = by_whom(said)
    assert len(said) == 150
    last = max(int(src.split("-")[-1]) for src, name in names.items() if name == "c1")
    assert {names[f"events-0-{i}"] for i in range(last + 1, 150)} == {"model", "wide"}
    scorer.run(settings)
    assert set(by_whom(values(settings, "scores")).values()) == {"model", "wide"}  # it was withdrawn


@pytest.mark.long
def test_killed_anywhere_each_event_has_one_answer(tmp_path, monkeypatch):
    settings = splitting(tmp_path / "calm", TWO[:1], labels="labels")
    fill(settings, 120)
    begun = copytree(tmp_path / "calm", tmp_path / "begun")
    fuse = Fuse()
    state = run_with(settings, fuse, monkeypatch)[0]
    expected = values(settings, "predictions"), list(state.challengers.arms), state.challengers.answered
    for number, step in enumerate(np.linspace(2, fuse.steps - 1, 8).astype(int).tolist()):
        stormy = splitting(copytree(begun, tmp_path / f"storm-{number}"), TWO[:1], labels="labels")
        with pytest.raises(Killed):
            run_with(stormy, Fuse(step), monkeypatch)
        state = run(stormy)
        assert (values(stormy, "predictions"), list(state.challengers.arms), state.challengers.answered) == expected


def test_without_a_share_nothing_is_named(tmp_path):
    settings = configure(tmp_path, tuple(replace(each, share=0.0) for each in TWO))
    fill(settings)
    state = run(settings)
    assert state.challengers.arms is None
    assert all("name" not in each["model"] for each in read_json(settings, "predictions-c1"))
