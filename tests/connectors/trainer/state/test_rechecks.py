"""Answers that look wrong are asked again: which ones, when, and what becomes of them."""

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from world import World, configure

from streamsvm import LASVM, AutoLASVM, OneVsRest
from streamsvm.active import suspects
from streamsvm.connectors.records.labels import Label
from streamsvm.connectors.records.people.questions import without_recheck
from streamsvm.connectors.settings.sections import LabelSettings
from streamsvm.connectors.trainer.state.rechecks import Recheck, Rechecks
from streamsvm.estimators.inputs.named_rows import NamedRows

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def a_model(n=40, wrong=(3, 30)):
    """Two groups of examples with two wrong labels, and a model that has learned them."""
    xs = [{"a": (0.0 if i < n // 2 else 4.0) + 0.1 * (i % 7), "b": 0.01 * i} for i in range(n)]
    answers = {i: (i >= n // 2) ^ (i in wrong) for i in range(n)}
    model = LASVM(C=10.0, gamma=0.5)
    model.learn_many(xs, list(answers.values()))
    return model, xs, answers


def ones(examples):
    return [1.0] * len(examples)


def test_the_answers_that_the_others_contradict_are_chosen_worst_first():
    model, xs, answers = a_model()
    chosen = Rechecks(10, 5).choose(answers, NamedRows.of(xs), ones(xs), model)
    assert set(chosen) == {3, 30}
    shift, factor = zip(*map(model.scale_of, ("a", "b")), strict=True)
    scaled = [[(x["a"] - shift[0]) * factor[0], (x["b"] - shift[1]) * factor[1]] for x in xs]
    ranked = suspects(scaled, list(answers.values()), C=10.0, gamma=0.5)
    assert [suspect.place for suspect in ranked[:2]] == chosen
    assert Rechecks(10, 1).choose(answers, NamedRows.of(xs), ones(xs), model) == chosen[:1]


CENTRES = {"cat": (0.0, 0.0), "dog": (6.0, 0.0), "bird": (0.0, 6.0), 7: (6.0, 6.0)}


@pytest.mark.parametrize("learner", [LASVM(C=10.0, gamma=0.5), AutoLASVM()], ids=["one setting", "tuned"])
def test_of_several_classes_those_are_chosen_whose_class_the_others_contradict(learner):
    rng = np.random.default_rng(0)
    truth = [list(CENTRES)[i % 4] for i in range(60)]
    xs = [dict(zip("ab", (CENTRES[y] + 0.5 * rng.normal(size=2)).tolist(), strict=True)) for y in truth]
    answers = dict(enumerate(truth)) | {8: "dog", 15: "cat"}
    model = OneVsRest(learner)
    model.learn_many(xs, list(answers.values()))
    assert set(Rechecks(10, 5).choose(answers, NamedRows.of(xs), ones(xs), model)[:2]) == {8, 15}


def test_a_model_that_tunes_itself_is_asked_as_well():
    _, xs, answers = a_model()
    tuned = AutoLASVM()
    tuned.learn_many(xs, list(answers.values()))
    assert set(Rechecks(10, 5).choose(answers, NamedRows.of(xs), ones(xs), tuned)) == {3, 30}


def test_an_event_of_little_weight_contradicts_no_other():
    """Example 30 contradicts its neighbours.  If they weigh next to nothing, the two that agree with it win."""
    model, xs, answers = a_model(wrong=(3, 28, 29, 30))
    heavy = {28, 29, 30}
    weights = [1.0 if key < 20 or key in heavy else 1e-6 for key in answers]
    assert 30 in Rechecks(10, 5).choose(answers, NamedRows.of(xs), ones(xs), model)
    assert not heavy & set(Rechecks(10, 5).choose(answers, NamedRows.of(xs), weights, model))


def test_a_few_answers_or_those_of_one_class_say_nothing():
    model, xs, answers = a_model()
    few = {key: answers[key] for key in list(answers)[:19]}
    assert Rechecks(1, 5).choose(few, NamedRows.of(xs[:19]), ones(few), model) == []
    assert Rechecks(1, 5).choose(dict.fromkeys(answers, True), NamedRows.of(xs), ones(xs), model) == []


def test_an_answer_is_asked_again_once_whether_it_was_confirmed_or_has_expired():
    model, xs, answers = a_model()
    rechecks = Rechecks(10, 5)
    rechecks.ask("q-recheck", Recheck(3, True, 100))
    assert rechecks.choose(answers, NamedRows.of(xs), ones(xs), model) == [30]
    rechecks.hear("q-recheck", label(True))
    rechecks.ask("p-recheck", Recheck(30, False, 100))
    rechecks.expire(99)
    assert rechecks.take_closed() == ["q-recheck"]
    rechecks.expire(100)
    assert rechecks.take_closed() == ["p-recheck"]
    assert rechecks.choose(answers, NamedRows.of(xs), ones(xs), model) == []
    assert rechecks.counts == {"rechecks": 2, "confirmed": 1, "revised": 0}


def label(y, op="set"):
    return Label("e", 3, y, None, None, 5, op, "terminal:ann")


def test_a_recheck_that_is_taken_back_restores_the_label_before():
    rechecks = Rechecks(10, 5)
    rechecks.ask("q-recheck", Recheck(3, True, 100))
    assert rechecks.hear("q-recheck", label(False)) == label(False)
    assert rechecks.hear("q-recheck", label(None, "retract")) == label(True)
    assert rechecks.counts["revised"] == 1


def test_it_looks_after_so_many_answers():
    rechecks = Rechecks(10, 1)
    assert [n for n in range(35) if rechecks.is_due(n)] == [10, 20, 30]
    rechecks.ask("q", Recheck(3, True, 100))
    assert not rechecks.is_due(50), "enough wait for an answer"
    assert not Rechecks(0, 1).is_due(1000)


def test_the_state_goes_through_json():
    rechecks = Rechecks(10, 5)
    for number, name in enumerate(("a", "b", "c")):
        rechecks.ask(name, Recheck(number, True, 100))
    rechecks.hear("b", label(True))
    rechecks.take_closed()
    again = Rechecks(10, 5)
    again.restore(json.loads(json.dumps(rechecks.state())))
    assert again.state() == rechecks.state()
    assert again.open == rechecks.open


# --- the trainer ------------------------------------------------------------------------------------------------------


def say(world, question, y, who="terminal:ann", **fields):
    world.answer({"id": question["id"], "y": y, "source": who, "query_id": question["query_id"], **fields})


def two_groups(folder, **labelling):
    """A world whose events are easy to tell apart, with 30 answers, two of them wrong."""
    conf = configure(folder, **{"open": 6, "recheck_every": 30, "explore": 1.0, **labelling})
    world = World(replace(conf, join=replace(conf.join, ttl_seconds=1e6)), n=150, share=0.4)
    wrong = []
    for _ in range(5):
        world.run()
        for place, question in enumerate(world.open()):
            is_wrong = place == 0 and len(wrong) < 2
            wrong += [question["id"]] * is_wrong
            say(world, question, world.truth[question["id"]] ^ is_wrong)
    world.run()
    return world, wrong


def rechecks_of(world):
    return [question for question in world.open() if question["reason"] == "recheck"]


def test_wrong_answers_are_asked_again_and_a_changed_one_replaces_the_example(tmp_path):
    world, wrong = two_groups(tmp_path)
    asked = rechecks_of(world)
    assert set(wrong) <= {question["id"] for question in asked}
    assert all(question["score"] is None and question["text"] for question in (q | q["event"] for q in asked))
    first_asked = {record.key.decode() for record in world.read("questions")}
    assert {without_recheck(question["query_id"]) for question in asked} <= first_asked
    before = world.status()
    for question in asked:
        say(world, question, world.truth[question["id"]])
    state, status = world.run(), world.status()
    assert rechecks_of(world) == []
    assert status["rechecks"] == len(asked)
    assert (status["revised"], status["confirmed"]) == (2, len(asked) - 2)
    assert (state.join.counters.corrected, status["corrected"]) == (2, 2)
    assert status["answered"] == before["answered"], "asking again costs no label of the quota"
    clean, _ = two_groups(tmp_path / "clean", recheck_every=0)
    for id_ in (question["id"] for question in asked if question["id"] in wrong):
        clean.answer({"id": id_, "y": clean.truth[id_]})
    assert clean.run().model.digest() == state.model.digest()


def test_with_several_classes_a_wrong_class_is_asked_again_without_a_guess(tmp_path):
    conf = configure(tmp_path, open=6, recheck_every=40, explore=1.0)
    conf = replace(conf, label=LabelSettings(classes=tuple(CENTRES)), join=replace(conf.join, ttl_seconds=1e6))
    world, wrong = World(conf, n=150, centres=CENTRES), []
    for _ in range(7):
        world.run()
        for place, question in enumerate(world.open()):
            is_wrong = place == 0 and len(wrong) < 2
            wrong += [question["id"]] * is_wrong
            truth = world.truth[question["id"]]
            say(world, question, truth if not is_wrong else "cat" if truth != "cat" else "dog")
    world.run()
    asked = rechecks_of(world)
    assert set(wrong) <= {question["id"] for question in asked}
    assert not any(question.get("guess") or question.get("probabilities") or question["score"] for question in asked)
    for question in asked:
        say(world, question, world.truth[question["id"]])
    state = world.run()
    assert (world.status()["revised"], state.join.counters.corrected) == (2, 2)


def test_confirmed_answers_are_not_asked_a_third_time(tmp_path):
    world, wrong = two_groups(tmp_path)
    for question in rechecks_of(world):
        say(
            world, question, not world.truth[question["id"]] if question["id"] in wrong else world.truth[question["id"]]
        )
    for _ in range(6):
        world.run()
        for question in world.open():
            say(world, question, world.truth[question["id"]])
    world.run()
    assert world.status()["answered"] >= 60
    asked = [question["id"] for question in world.questions().values() if question["reason"] == "recheck"]
    assert len(asked) == len(set(asked))


def test_it_is_off_unless_it_is_asked_for_and_begins_at_once_when_it_is(tmp_path):
    world, wrong = two_groups(tmp_path, recheck_every=0)
    assert rechecks_of(world) == []
    world.settings = replace(world.settings, labelling=replace(world.settings.labelling, recheck_every=10))
    world.run()
    assert set(wrong) <= {question["id"] for question in rechecks_of(world)}


@pytest.mark.parametrize("answers", [1, 2])
def test_a_second_opinion_is_a_further_vote(tmp_path, answers):
    """With several people, the one who looks again does not outvote the others."""
    world, wrong = two_groups(tmp_path)
    changed = replace(world.settings.labelling, answers_per_question=answers)
    world.settings = replace(world.settings, labelling=changed)
    question = next(question for question in rechecks_of(world) if question["id"] == wrong[0])
    say(world, question, world.truth[question["id"]], who="page:bob#1")
    assert world.run().join.counters.corrected == 1


@pytest.mark.long
def test_killed_at_any_step_it_asks_the_same_again(tmp_path, monkeypatch):
    def whole(folder, blows_at):
        world, _ = two_groups(folder, recheck_every=12)
        fuse = Fuse(blows_at)
        for number, question in enumerate(world.open()):
            say(world, question, world.truth[question["id"]] ^ (number % 3 == 0))
        with contextlib.suppress(Killed):
            run_with(world.settings, fuse, monkeypatch)
        state = world.run()
        found = (*world.outcome(state), json.loads(state.labelling.to_bytes()))
        return fuse.steps, found

    steps, expected = whole(tmp_path / "whole", None)
    assert steps > 20
    for place in range(1, steps + 1, 4):
        assert whole(tmp_path / str(place), place)[1] == expected, place
