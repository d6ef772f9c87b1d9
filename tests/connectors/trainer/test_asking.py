"""The trainer asks and hears: questions on a topic, answers among the labels, through kills and restarts."""

import contextlib
import json
import os
import re
from dataclasses import fields, replace
from functools import partial
from itertools import pairwise
from operator import itemgetter

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from hypothesis import given, settings
from hypothesis import strategies as st
from logged import change
from world import World, configure

from streamsvm import LASVM, AutoLASVM
from streamsvm.active.answers.register import question_id
from streamsvm.active.choosing.recall_rule import ToRecall
from streamsvm.connectors.logs.segments import Appender
from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.codec import Codec
from streamsvm.connectors.records.predictions import UNTAUGHT
from streamsvm.connectors.settings.challengers import ChallengerSettings
from streamsvm.connectors.settings.labelling import LabellingSettings
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer.state import candidates
from streamsvm.connectors.trainer.state.candidates import Labelling, _stopping
from streamsvm.connectors.trainer.state.join import Join

MINUTE = 60_000

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def retrained(state, world):
    """A model that was taught the answers in the order in which they were given, and which of them hold."""
    events = {e["id"]: e for e in map(json.loads, (r.value for r in world.read("events")))}
    model = LASVM(**world.settings.model.parameters())
    taught = {}
    for record in world.read("labels"):
        label = world.settings.codec().decode_label(record)
        y = label.y if label.op == "set" else None
        if label.op not in ("set", "retract") or taught.get(label.id) == y:
            continue
        taught[label.id] = y
        model.forget(label.key)
        if y is not None:
            model.learn_one(events[label.id]["x"], y, id=label.key)
    return model, [y for y in taught.values() if y is not None]


# --- questions --------------------------------------------------------------------------------------------------------


def test_a_question_says_what_a_person_needs(tmp_path):
    world = World(configure(tmp_path))
    world.run()
    questions = world.open()
    assert len(questions) == 4
    for question in questions:
        id_ = question["id"]
        assert question["event"] == {"text": f"I am {id_}"}
        assert question["x"].keys() == {"a", "b"}
        assert question["reason"] == "seed"
        assert (question["margin"], question["score"]) == (0.0, 0.5)
        assert question["model"] == {"ver": 0, "n_support": 0}
        assert question["asked_at"] < question["expires_at"] == question["asked_at"] + 86_400_000
    status = world.status()
    assert (status["asked"], status["open"], status["labels"], status["remaining"]) == (4, 4, 0, None)
    assert status["offered"] <= len(world.truth)


def test_unusual_features_are_marked(tmp_path):
    world = World(configure(tmp_path, open=8), n=60)
    for _ in range(4):
        world.run()
        world.answer(*map(world.right, world.open()))
    with world.appending("events") as append:
        for i in range(40):
            append({"id": f"strange{i}", "x": {"a": 1000.0, "b": -1000.0, "c": 0.0}})
            world.truth[f"strange{i}"] = True
    for _ in range(4):
        world.run()
        world.answer(*map(world.right, world.open()))
    strange = next(question for question in world.questions().values() if question["id"].startswith("strange"))
    assert list(strange["unusual"]) == ["a", "b"]
    assert strange["unusual"]["a"] > 100
    assert strange["unusual"]["b"] < -100


def test_an_answer_closes_the_question_and_the_next_is_asked(tmp_path):
    world = World(configure(tmp_path))
    world.run()
    first, *others = world.open()
    world.answer(world.right(first))
    state = world.run()
    still = world.open()
    assert [question["query_id"] for question in still[:3]] == [question["query_id"] for question in others]
    assert len(still) == 4
    assert state.counters.learned == 1
    assert world.status()["answered"] == 1


def test_a_model_that_tunes_itself_asks(tmp_path):
    world = World(change(configure(tmp_path, open=4), model={"algorithm": "auto"}))
    for _ in range(4):
        state = world.run()
        world.answer(*map(world.right, world.open()))
    assert isinstance(state.model, AutoLASVM)
    assert all(state.model.class_counts)
    assert sum(state.model.class_counts) == state.counters.learned == 12
    assert {question["score"] for question in world.questions().values()} > {0.5}


def test_a_question_is_withdrawn_when_others_have_made_the_model_sure(tmp_path):
    """Also one that was asked before a restart."""
    world = World(configure(tmp_path, open=12, explore=0.0, selection="active"), n=100)
    for _ in range(6):
        world.run()
        world.answer(*map(world.right, world.open()[:2]))
    asked = world.open()[2:]
    state = world.run()
    f = state.model.decision_function_many([question["x"] for question in asked])
    still = {question["query_id"] for question in world.open()}
    was_inside = [question["reason"] == "boundary" and abs(question["margin"]) < 1.0 for question in asked]
    is_sure = was_inside & (np.abs(f) >= 1.0)
    assert [question["query_id"] in still for question in asked] == (~is_sure).tolist()
    assert world.status()["withdrawn"] > 0


def test_nothing_is_asked_twice_and_rare_events_are_found(tmp_path):
    world = World(configure(tmp_path, open=8), n=300, share=0.06)
    for _ in range(12):
        world.run()
        world.answer(*map(world.right, world.open()))
    world.run()
    ids = [question["id"] for question in world.questions().values()]
    assert len(ids) == len(set(ids))
    n_positive = sum(world.truth.values())
    assert world.status()["positive"] > 0.6 * n_positive
    assert world.status()["labels"] < 0.4 * len(world.truth)
    reasons = {question["reason"] for question in world.questions().values()}
    assert {"seed", "boundary", "novel"} <= reasons <= {"seed", "boundary", "novel", "explore", "audit"}
    assert 2 <= world.status()["curve"][-1][1] < world.status()["labels"], "support vectors"
    told = [(q["model"]["ver"], q["margin"], q["score"]) for q in world.questions().values()]
    assert all(low[2] <= high[2] for low, high in pairwise(sorted(told)) if low[0] == high[0])
    assert min(told, key=itemgetter(1))[2] < 0.3
    assert max(told, key=itemgetter(1))[2] > 0.5


def test_a_question_names_the_answers_that_speak_for_its_guess(tmp_path):
    world = World(configure(tmp_path, open=8), n=100)
    for _ in range(3):
        state = world.run()
        world.answer(*map(world.right, world.open()))
    answered = {q["id"] for q in world.questions().values()} - {q["id"] for q in world.open()}
    first, *_, last = world.questions().values()
    assert "speaking" not in first, "nothing is learned yet"
    assert 1 <= len(last["speaking"]) <= 3
    why = state.model.explain_one(last["x"])
    assert [one["label"] for one in last["speaking"]] == [why.label] * len(last["speaking"])
    for one in last["speaking"]:
        assert one["label"] == world.truth[one["id"]]
        assert one["id"] in answered
        assert 0.0 < one["share"] <= 1.0


def test_skipped_ignored_and_retracted(tmp_path):
    world = World(configure(tmp_path))
    world.run()
    first, second, third, fourth = world.open()
    world.answer(
        {"id": first["id"], "op": "skip", "source": "page:ann"},
        {"id": second["id"], "op": "ignore"},
        world.right(third),
        {"id": third["id"], "op": "retract"},
        {"id": fourth["id"], "op": "retract"},
    )
    state = world.run()
    status = world.status()
    assert (status["skipped"], status["ignored"], status["retracted"], status["labels"]) == (1, 1, 1, 0)
    assert (state.counters.learned, state.join.counters.undone) == (1, 1), "it was a lesson, and taken back"
    assert state.model.n_members == 0
    assert fourth["query_id"] in {question["query_id"] for question in world.open()}
    assert len(world.open()) == 4


def test_labels_from_elsewhere_are_not_asked_for(tmp_path):
    conf = configure(tmp_path)
    world = World(conf, n=40)
    world.answer(*({"id": id_, "y": y} for id_, y in list(world.truth.items())[:36]))
    with world.appending("events") as append:
        append({"id": "own", "x": {"a": 0.0, "b": 0.0}, "y": False})
    world.run()
    last = {f"e{i}" for i in range(36, 40)}
    assert {question["id"] for question in world.open()} <= last
    assert world.status()["labels"] == 37


def test_the_budget_ends_it(tmp_path):
    world = World(configure(tmp_path, max_labels=10))
    for _ in range(6):
        world.run()
        world.answer(*map(world.right, world.open()))
    world.run()
    status = world.status()
    assert (status["asked"], status["answered"], status["remaining"]) == (10, 10, 0)
    assert status["verdict"]["stop"] is True
    assert "10" in status["verdict"]["why"]
    assert world.open() == []


def test_the_budget_may_be_a_share_of_the_events(tmp_path):
    world = World(configure(tmp_path, max_fraction=0.05, open=20))
    world.run()
    status = world.status()
    assert 0 < status["remaining"] == int(0.05 * status["offered"]) == len(world.open())


@pytest.mark.parametrize(
    ("stop", "said"),
    [("margin", ["outside the margin"]), ("support", ["support vectors"]), ("never", [])],
)
def test_the_rule_that_was_chosen_is_followed(tmp_path, stop, said):
    world = World(configure(tmp_path, stop=stop), n=60, share=0.5)
    for _ in range(3):
        world.run()
        world.answer(*map(world.right, world.open()))
    world.run()
    why = world.status()["verdict"]["why"]
    assert [words for words in ("outside the margin", "support vectors") if words in why] == said


def test_questions_expire_in_the_time_of_the_events(tmp_path):
    world = World(configure(tmp_path, expires_seconds=3600.0), n=60)
    world.run()
    before = {question["query_id"] for question in world.open()}
    with world.appending("events") as append:
        for i in range(70):
            append({"id": f"later{i}", "x": {"a": 0.0, "b": 0.0}})
    world.run()
    assert world.status()["expired"] >= 4
    assert not before & {question["query_id"] for question in world.open()}


def test_an_event_that_the_join_has_forgotten_is_not_asked_about(tmp_path):
    conf = configure(tmp_path)
    conf = replace(conf, join=replace(conf.join, ttl_seconds=600.0))  # ten events
    world = World(conf, n=100)
    world.run()
    newest = {f"e{i}" for i in range(88, 100)}
    assert {question["id"] for question in world.open()} <= newest


@pytest.mark.parametrize("challengers", [(), (ChallengerSettings("other", model=ModelSettings(gamma=2.0)),)])
def test_events_that_the_join_has_forgotten_take_no_room(tmp_path, challengers):
    conf = configure(tmp_path, reservoir=15, open=1)
    conf = replace(conf, join=replace(conf.join, ttl_seconds=600.0), challenger=challengers)  # ten events
    state = World(conf, n=150).run()
    loop = state.labelling.loop
    assert len(loop.state()["pool"]["keys"]) + loop.counts.n_open == state.join.n_entries


def test_ids_of_events_long_gone_are_forgotten(tmp_path):
    conf = configure(tmp_path, reservoir=5, open=1)
    join, codec, keys = Join(1 << 40, 1 << 20, 1 << 20), conf.codec(), []
    labelling = Labelling(conf, join, None, 0)
    for i in range(100):
        value = b'{"id": "e%d", "x": {"a": %d}}' % (i, i)
        event = codec.decode(Record("events", 0, i, i, None, value, ()))
        join.add_event(event.key, value, y=None, w=1.0, said=UNTAUGHT, entity=None, time=i, at=i)
        labelling.offer(event, i)
        keys.append(event.key)

    known = {key for i, key in enumerate(keys) if labelling.ids.get(key) == f"e{i}"}
    assert set(labelling.loop.state()["pool"]["keys"]) <= known
    assert len(known) <= 2 * (5 + 1)


def test_questions_about_packed_events_whose_ids_are_in_headers(tmp_path):
    conf = configure(tmp_path, recheck_every=1)
    world = World(replace(conf, log=replace(conf.log, format="float32")), n=0)
    with open_once(world.settings) as log:
        for i, x in enumerate(np.random.default_rng(0).normal(size=(60, 2))):
            world.truth[f"e{i}"] = bool(x[0] > 0) is not (i == 3)
            log.produce("events", x.astype("<f4").tobytes(), headers=(("sv-id", b"e%d" % i),), partition=0)
    for _ in range(10):
        world.run()
        world.answer(*map(world.right, world.open()))
    assert world.run().model.n_support
    assert {question["id"] for question in world.questions().values()} <= world.truth.keys()


def test_a_large_event_is_shown_without_its_fields(tmp_path):
    world = World(configure(tmp_path), n=0)
    with world.appending("events") as append:
        for i in range(25):
            append({"id": i, "x": {"a": float(i), "b": 0.0}, "text": "long " * 200_000})
    world.run()
    assert [question["event"] for question in world.open()] == [{}] * 4


def test_what_json_cannot_hold_is_left_out(tmp_path):
    world = World(configure(tmp_path), n=0)
    with world.appending("events") as append:
        for i in range(25):
            append({"id": i, "x": {"a": float(i), "b": 0.0}, "text": "kept"})
    folder = world.settings.log.dir / "events" / "0"
    with contextlib.closing(Appender(folder, 1 << 20)) as appender:
        for i in range(25, 50):
            appender.append(world.clock + i, None, b'{"id": %d, "x": {"a": 1.0, "b": 2.0}, "odd": [1e999]}' % i, ())
    for _ in range(8):
        state = world.run()
        world.answer(*({"id": question["id"], "y": question["id"] % 2 == 0} for question in world.open()))
    events = {question["id"]: question["event"] for question in world.questions().values()}
    assert all(event == ({"text": "kept"} if id_ < 25 else {}) for id_, event in events.items())
    assert max(events) >= 25
    assert state.counters.predicted == 50


def test_an_event_too_large_for_a_question_is_not_asked_about(tmp_path):
    conf = configure(tmp_path)
    world = World(replace(conf, model=replace(conf.model, scaling="none")), n=0)
    with world.appending("events") as append:
        append({"id": "huge", "x": {f"feature{i}": 1e14 for i in range(30_000)}})
        append({"id": "small", "x": {"feature0": 1.0}})
    world.run()
    assert [question["id"] for question in world.open()] == ["small"]
    assert all(len(record.value or b"") < 1 << 20 for record in world.read("questions"))


def test_events_that_have_their_label_change_no_question(tmp_path):
    world = World(configure(tmp_path, expires_seconds=3600.0), n=30)
    world.run()
    asked = world.open()[0]
    with world.appending("events") as append:
        append({"id": asked["id"], "x": {"a": 0.0, "b": 0.0}, "y": True})  # a duplicate
    state = world.run()
    assert (state.join.counters.duplicate_events, state.counters.learned) == (1, 0)
    assert (world.status()["answered"], len(world.open())) == (0, 4)
    world.clock += 7_200_000
    with world.appending("events") as append:
        append({"id": "with its label", "x": {"a": 0.0, "b": 0.0}, "y": True})
    world.run()
    status = world.status()
    assert (status["expired"], status["open"], len(world.open())) == (4, 4, 4)


def test_the_loop_sees_the_labels_that_the_join_holds(tmp_path):
    world = World(configure(tmp_path), n=40)
    world.run()
    first, second, *_ = world.open()
    world.answer(
        {"id": first["id"], "op": "retract", "rev": 5},
        {"id": first["id"], "y": True, "rev": 4},  # older than the retraction
        {"id": second["id"], "y": True},
        {"id": second["id"], "y": False, "rev": 1},
    )
    state = world.run()
    status = world.status()
    assert (state.join.counters.stale, state.counters.learned) == (1, 2)
    assert (status["answered"], status["labels"], status["negative"], status["corrected"]) == (1, 1, 1, 1)


def test_labelled_streams_are_not_news(tmp_path):
    world = World(configure(tmp_path), n=30)
    with world.appending("events") as append:
        for i in range(400):
            append({"id": f"labelled{i}", "x": {"a": 0.1 * i, "b": 0.0}, "y": i % 2 == 0})
    world.run()
    assert sum(record.key == b"status" for record in world.read("questions")) < 10


@pytest.mark.parametrize("operation", ["skip", "ignore"])
def test_what_was_skipped_before_it_was_asked_is_not_asked(tmp_path, operation):
    world = World(configure(tmp_path), n=0)
    world.answer(*({"id": i, "op": operation} for i in range(20)))
    with world.appending("events") as append:
        for i in range(24):
            append({"id": i, "x": {"a": float(i), "b": 0.0}})
    world.run()
    assert {question["id"] for question in world.questions().values()} == {20, 21, 22, 23}


def test_a_smaller_reservoir_keeps_the_newest(tmp_path):
    world = World(configure(tmp_path), n=100)
    world.run()
    world.settings = configure(tmp_path, reservoir=10)
    with world.appending("events") as append:
        append({"id": "one more", "x": {"a": 0.0, "b": 0.0}})
    state = world.run()
    assert len(json.loads(json.dumps(state.labelling.loop.state()["pool"]["keys"]))) <= 10


@pytest.mark.parametrize("lacking", ['labels = ""', 'labels = "labels"\n[daemon]\nper = "key"'])
def test_what_questions_need(tmp_path, lacking):
    path = tmp_path / "app.toml"
    path.write_text(f'[log]\nquestions = "questions"\n{lacking}\n')
    with pytest.raises(ConfigError, match=r"log\.questions needs"):
        load(path, {})


def test_the_rules_may_change_between_runs(tmp_path):
    world = World(configure(tmp_path))
    for _ in range(3):
        world.run()
        world.answer(*map(world.right, world.open()))
    for rules, remaining in (({"max_labels": 15}, 3), ({"stop": "margin"}, None), ({"max_labels": 13}, 1), ({}, None)):
        world.settings = configure(tmp_path, **rules)
        state = world.run()  # without any new record
        assert state.labelling.loop.remaining() == remaining
        assert state.labelling.loop.counts.n_answered == 12
        assert len(world.open()) == (4 if remaining is None else remaining)


@pytest.mark.long
def test_the_rules_remember_answers_through_restarts(tmp_path):
    """One answer in each run, and it takes three in a row outside the margin, then three random ones that agree."""
    world = World(configure(tmp_path, selection="active", stop="margin", pool=3, open=1), n=60)
    for _ in range(40):
        if world.run().labelling.loop.verdict().stop:
            break
        world.answer(*map(world.right, world.open()))
    status = world.status()
    assert status["verdict"]["stop"]
    assert 6 < status["answered"] == world.n_labels
    assert world.open() == []


# --- restarts ---------------------------------------------------------------------------------------------------------


def a_noisy_person(world, rng, n):
    """Answer up to `n` of the open questions in any order: some wrongly, some twice, some not; correct old answers."""
    answers = []
    open_ = world.open()
    for place in rng.permutation(len(open_))[:n]:
        answer = world.right(open_[place])
        kind = rng.integers(10)
        if kind == 0:
            answer = {"id": answer["id"], "op": "skip"}
        elif kind == 1:
            answer["y"] = not answer["y"]
        answers += [answer] * (1 + (kind == 2))
    asked = list(world.questions().values())
    for kind in rng.permutation(5)[:3]:
        answer = world.right(asked[rng.integers(len(asked))])  # late, or a correction
        if kind == 0:
            answer["y"] = not answer["y"]
        elif kind == 1:
            answer = {"id": answer["id"], "op": "retract"}
        if kind <= 2:
            answers.append(answer)
    world.answer(*answers)


@pytest.mark.long
@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_model_is_that_of_the_answers_in_their_order(tmp_path_factory, seed):
    """Corrected and taken back in between: the model is as if it had been taught so, and the labels are counted so."""
    rng = np.random.default_rng(seed)
    conf = configure(tmp_path_factory.mktemp("loop"), tune_gamma=0)  # with another gamma it learns them again
    world = World(conf, n=60, seed=seed)
    for _ in range(8):
        world.run()
        a_noisy_person(world, rng, 4)
    state = world.run()
    assert state.counters.learned > 5
    model, labels = retrained(state, world)
    assert state.model.support_ids.tolist() == model.support_ids.tolist()  # the sigmoid follows what was predicted
    assert state.model.dual_coef.tolist() == model.dual_coef.tolist()
    counts = state.labelling.loop.counts
    assert (counts.n_positive, counts.n_negative) == (labels.count(True), labels.count(False))
    assert counts.n_answered <= counts.n_asked


def test_an_answer_that_is_taken_back_or_corrected_leaves_nothing_of_the_old_one(tmp_path):
    """The model is, up to its tolerance, the one that was taught the right answers only."""
    settings = [configure(tmp_path / name, open=12, explore=0.0) for name in ("wrong", "right")]
    worlds = [World(replace(each, model=replace(each.model, scaling="none"))) for each in settings]
    models = []
    for world in worlds:
        world.run()
        questions = world.open()
        wrong = [{**world.right(question), "y": not world.truth[question["id"]]} for question in questions[:4]]
        if world is worlds[0]:
            world.answer(*wrong, *map(world.right, questions[4:]))
            world.run()
            world.answer(*map(world.right, questions[1:4]), {"id": questions[0]["id"], "op": "retract"})
        else:
            world.answer(*map(world.right, questions[1:]))
        models.append(world.run().model)
        models[-1].finish(1e-8)
    assert worlds[0].status()["labels"] == worlds[1].status()["labels"] == 11
    assert set(models[0].support_ids) == set(models[1].support_ids)
    xs = [{"a": a, "b": b} for a in np.linspace(-2, 2, 5) for b in np.linspace(-2, 2, 5)]
    np.testing.assert_allclose(*(model.decision_function_many(xs) for model in models), atol=1e-5)
    spent = [(world.status()["asked"], world.status()["answered"]) for world in worlds]
    assert spent[0][1] == 12, "a question that was answered is answered, whatever holds"
    assert spent[1][1] == 11


def test_a_correction_of_an_answer_whose_event_is_gone_is_counted(tmp_path):
    conf = configure(tmp_path)
    conf = replace(conf, join=replace(conf.join, ttl_seconds=3600.0))
    world = World(conf, n=40)
    world.run()
    first, second, *_ = world.open()
    world.answer({"id": first["id"], "y": True}, {"id": second["id"], "y": True}, {"id": "unheard of", "y": True})
    world.run()
    assert world.status()["positive"] == 2
    for _ in range(9):  # time passes by other labels: it does not leap to one of these
        world.clock += 20 * 60_000
        world.answer({"id": "nobody", "op": "retract"})
    world.answer(
        {"id": first["id"], "y": False},
        {"id": second["id"], "op": "retract"},
        {"id": "unheard of", "y": False},
        {"id": "who", "op": "retract"},
    )
    state = world.run()
    status = world.status()
    assert (status["positive"], status["negative"], status["corrected"], status["retracted"]) == (0, 1, 1, 1)
    assert (state.counters.late, state.model.n_members) == (2, 1)
    assert not state.model.predict_one(first["x"])


@pytest.mark.long
def test_killed_at_any_step_it_asks_and_learns_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def whole(folder, blows_at):
        """Rounds of answers; the last run is killed, while answers are corrected, and events forgotten and drawn."""
        conf = configure(folder, open=3, expires_seconds=600.0, reservoir=15)
        conf = replace(conf, join=replace(conf.join, ttl_seconds=3000.0))  # fifty records
        world, fuse = World(conf, n=60), Fuse(blows_at)
        world.run()
        first = sorted(world.open(), key=itemgetter("asked_at", "id"), reverse=True)
        world.answer(*map(world.right, first))
        world.run()
        old = [{**world.right(first[0]), "y": not world.truth[first[0]["id"]]}, {"id": first[1]["id"], "op": "retract"}]
        world.answer(*map(world.right, world.open()), *old, {"id": world.open()[0]["id"], "op": "skip"})
        with world.appending("events") as append:
            for i in range(60):
                append({"id": f"more{i}", "x": {"a": 0.1 * i, "b": 0.0}})
        world.answer(world.right(first[0]), {"id": first[2]["id"], "op": "retract"})  # when the events are gone
        with contextlib.suppress(Killed):
            run_with(world.settings, fuse, monkeypatch)
        state = world.run()
        assert state.labelling.loop.counts.n_asked > 10
        assert (state.join.counters.corrected, state.join.counters.undone, state.counters.late) == (1, 1, 2)
        return fuse.steps, world.outcome(state)

    steps, expected = whole(tmp_path / "whole", None)
    assert steps > 50
    for place in range(1, steps + 1, 5):
        assert whole(tmp_path / str(place), place)[1] == expected, place


def test_with_several_classes_every_rule_must_hold_for_each_of_them():
    rules = _stopping(LabellingSettings(stop="either", max_labels=9), is_multiclass=True)
    assert repr(rules).startswith("AnyOf(AllOf(AnyOf(MarginExhausted(pool=59), SupportStable(")
    assert repr(rules).endswith("EachClass(calm=10)), MaxLabels(max_labels=9))")
    assert repr(_stopping(LabellingSettings(), is_multiclass=False)) == "AnyOf(Audited(calm=120))"
    assert _stopping(LabellingSettings(stop="never"), is_multiclass=True) is None


def test_every_word_of_the_setting_has_a_rule():
    (stop,) = (key for key in fields(LabellingSettings) if key.name == "stop")
    words = re.findall(r"'(\w+)'", stop.metadata["check"](""))
    without = [word for word in words if _stopping(LabellingSettings(stop=word), is_multiclass=False) is None]
    assert without == ["never"]


# --- events that a person has found -----------------------------------------------------------------------------------


def find(world, id_, y, who):
    """Answer about an event that is not asked about, as an annotator does who has found it."""
    world.answer({"query_id": query_id(id_), "id": id_, "y": y, "op": "set", "source": who, "rev": world.clock})


def query_id(id_):
    """The id that the trainer's question about an event has, now or ever."""
    record = Record("labels", 0, 0, 0, None, json.dumps({"id": id_, "y": True}).encode(), ())
    return question_id("events-0", Codec().decode_label(record).key)


def unasked(world, y):
    asked = {question["id"] for question in world.questions().values()}
    return next(id_ for id_, truth in world.truth.items() if truth is y and id_ not in asked)


def test_a_found_label_is_learned_and_is_no_random_answer(tmp_path):
    world = World(configure(tmp_path, audit=1.0))
    world.run()
    world.answer(*map(world.right, world.open()))
    world.run()
    before, id_ = world.status(), unasked(world, True)
    find(world, id_, True, "page:ann#1")
    state = world.run()
    after = world.status()
    assert (after["labels"], after["positive"]) == (before["labels"] + 1, before["positive"] + 1)
    assert after["missed"]["n_audited"] == before["missed"]["n_audited"]
    assert after["missed"]["n_unlabelled"] == before["missed"]["n_unlabelled"] - 1
    assert (after["answered"], after["remaining"]) == (before["answered"], before["remaining"])
    assert state.counters.learned == after["labels"]
    for _ in range(3):
        world.answer(*map(world.right, world.open()))
        world.run()
    assert id_ not in {question["id"] for question in world.questions().values()}


def test_others_are_asked_about_a_found_event_if_several_must_answer(tmp_path):
    world = World(configure(tmp_path, answers_per_question=2))
    world.run()
    id_ = unasked(world, True)
    find(world, id_, True, "page:ann#1")
    assert world.run().counters.learned == 0
    for question in world.open():
        world.answer(world.right(question))
    world.run()
    assert world.questions()[query_id(id_)]["reason"] == "seed"
    learned = world.run().counters.learned
    find(world, id_, True, "page:bob#1")
    assert world.run().counters.learned == learned + 1


# --- a promise of recall ----------------------------------------------------------------------------------------------


def test_it_asks_until_the_recall_is_proved_through_restarts(tmp_path, monkeypatch):
    monkeypatch.setattr(candidates, "ToRecall", partial(ToRecall, n_questions=20))
    world = World(configure(tmp_path, stop="recall", recall=0.7))
    world.run()
    assert "0 of 20 questions, then a review" in world.status()["recall"]
    while world.open():  # each run goes on from the checkpoint of the one before it
        world.answer(*map(world.right, world.open()))
        world.run()
    status = world.status()
    assert status["verdict"]["stop"]
    assert status["recall"].startswith("at least 7")
    assert {question["reason"] for question in world.questions().values()} >= {"review", "audit"}
    found = {question["id"] for question in world.questions().values()}
    positives = {id_ for id_, y in world.truth.items() if y}
    assert len(found & positives) >= 0.7 * len(positives)
    assert len(found) < len(world.truth)
    hidden = next(id_ for id_ in world.truth if id_ not in found)
    for n in range(3):  # later events are no part of the promise
        with world.appending("events") as append:
            append({"id": f"late{n}", "x": {"a": 2.0, "b": 2.0}})
    world.run()
    assert not world.open()
    find(world, hidden, True, "page:ann#1")
    world.run()
    assert world.status()["positive"] == status["positive"] + 1


@pytest.mark.long
def test_killed_at_any_step_of_a_promise_it_asks_and_proves_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(candidates, "ToRecall", partial(ToRecall, n_questions=8, hunt=2))

    def whole(folder, blows_at):
        world, fuse = World(configure(folder, stop="recall", recall=0.6, open=5), n=40), Fuse(blows_at)
        world.run()
        while world.open():
            world.answer(*map(world.right, world.open()))
            with contextlib.suppress(Killed):
                run_with(world.settings, fuse, monkeypatch)
            if fuse.steps == blows_at:
                world.run()
        return fuse.steps, (list(world.questions().values()), world.status())

    steps, expected = whole(tmp_path / "whole", None)
    assert expected[1]["recall"].startswith("at least")
    assert {"review", "audit"} <= {question["reason"] for question in expected[0]}
    for place in range(3, steps + 1, steps // 8):
        assert whole(tmp_path / str(place), place)[1] == expected, place


def test_a_promise_of_recall_needs_two_classes(tmp_path):
    (tmp_path / "app.toml").write_text(
        '[log]\nlabels = "labels"\nquestions = "questions"\n[label]\nmax_classes = 3\n[labelling]\nstop = "recall"\n'
    )
    with pytest.raises(ConfigError, match='stop = "recall" needs two classes'):
        load(tmp_path / "app.toml", {}, [])


def test_a_challenger_learns_what_is_asked_at_random_and_changes_no_question(tmp_path):
    own = ChallengerSettings("other", model=ModelSettings(C=1.0, gamma=2.0, cache_mb=1.0))
    worlds = [World(configure(tmp_path / name, selection="random")) for name in ("alone", "beside")]
    worlds[1].settings = replace(worlds[1].settings, challenger=(own,))
    for _ in range(8):
        states = [world.run() for world in worlds]
        for world in worlds:
            world.answer(*map(world.right, world.open()))
    states = [world.run() for world in worlds]
    assert worlds[0].questions().keys() == worlds[1].questions().keys()
    assert states[0].model.digest() == states[1].model.digest()
    (challenger,) = states[1].challengers.all
    assert challenger.comparison.n == worlds[1].n_labels > 30
    worlds[1].settings = replace(worlds[1].settings, model=own.model)
    expected, _ = retrained(states[1], worlds[1])
    model = challenger.models.model
    assert dict(zip(model.support_ids, model.dual_coef, strict=True)) == dict(
        zip(expected.support_ids, expected.dual_coef, strict=True)
    )
