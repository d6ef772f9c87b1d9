"""Near-duplicates in the trainer: what a question names, what their labels count as, and a kill at any step."""

import contextlib
import json
import os
from operator import itemgetter

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from world import World, configure

TEXT = "you have won a prize, call us at once to get it"


def repeated(folder, n=24, **labelling):
    """A world in which every fourth event has the text of others."""
    world = World(configure(folder, **{"open": 1, "explore": 0.0, **labelling}), n=0)
    with world.appending("events") as append:
        for i in range(n):
            world.truth[f"e{i}"] = i % 4 == 0
            text = f"{TEXT}{'!' * (i % 3)}" if i % 4 == 0 else f"message {i} about the matter {i} of person {i}"
            append({"id": f"e{i}", "x": {"a": float(i % 4 == 0), "b": 0.1 * i * (i % 4 > 0)}, "text": text, "ts": i})
    return world


def for_all(world, question, who="ann"):
    """The answers of a person who answers for all of a group."""
    answer = world.right(question) | {"query_id": question["query_id"], "source": who}
    others = [each | {"y": answer["y"], "source": who, "like": answer["query_id"]} for each in question["alike"]]
    return [*others, answer]


def until_a_group(world):
    for _ in range(40):
        world.run()
        (question,) = world.open()
        if "alike" in question:
            return question
        world.answer(world.right(question))
    raise AssertionError("no question about one of several")


def test_a_question_names_its_near_duplicates(tmp_path):
    world = repeated(tmp_path)
    question = until_a_group(world)
    i = int(question["id"][1:])
    assert {each["id"] for each in question["alike"]} == {f"e{j}" for j in range(0, 24, 4)} - {f"e{i}"}
    assert "almost" not in question


@pytest.mark.parametrize("change", [{"text": f"{TEXT}?"}, {"amount": 100}, {"x": {"a": 1.0, "b": 0.5}}])
def test_where_something_differs_a_person_must_say_so(tmp_path, change):
    world = World(configure(tmp_path, open=1, explore=0.0), n=0)
    with world.appending("events") as append:
        for i in range(2):
            event = {"id": f"e{i}", "x": {"a": 1.0, "b": 0.0}, "text": TEXT, "amount": 10}
            append(event | (change if i else {}))
    world.run()
    (question,) = world.open()
    assert question["almost"] is True
    assert len(question["alike"]) == 1


def test_their_labels_are_learned_cost_nothing_and_are_not_random(tmp_path):
    world = repeated(tmp_path)
    before = until_a_group(world)
    status = world.status()
    world.answer(*for_all(world, before))
    state = world.run()
    after, counts = world.status(), state.labelling.loop.counts
    assert after["labels"] == status["labels"] + 6
    assert after["answered"] == status["answered"] + 1
    assert after["missed"]["n_audited"] <= status["missed"]["n_audited"] + (before["reason"] == "audit")
    assert counts.alike == counts.elsewhere == 5
    assert all(state.join.label_of(key) is not None for key in state.labelling.loop.labels())
    keys = set(state.labelling.loop.labels()) - set(state.labelling.loop.labels(alike=False))
    assert len(keys) == 5
    assert not keys & set(state.labelling.loop._pool.keys())


def test_who_takes_them_back_is_asked_about_them_again(tmp_path):
    world = repeated(tmp_path)
    question = until_a_group(world)
    *others, answer = for_all(world, question)
    world.answer(*others, answer)
    world.run()
    status = world.status()
    world.answer(*({"id": each["id"], "op": "retract", "source": "ann"} for each in others[:3]))
    state = world.run()
    assert state.labelling.loop.counts.alike == 2
    assert len(state.labelling.loop._pool) == 24 - status["asked"] - 2
    world.answer(*map(world.right, world.open()))
    world.run()
    assert all("id" in asked for asked in world.open())


def test_where_no_text_is_shown_there_are_none(tmp_path):
    world = repeated(tmp_path, n=16, text="body")
    world.run()
    assert not any("alike" in question for question in world.open())


def test_images_are_alike_by_their_grey_values(tmp_path):
    world, rng = World(configure(tmp_path, open=1), n=0), np.random.default_rng(0)
    images = rng.random((2, 64))
    with world.appending("events") as append:
        for i in range(8):
            grey = images[i % 2] + 0.004 * rng.random(64)
            append({"id": f"e{i}", "x": grey.round(3).tolist(), "image": f"{i}.png"})
        append({"id": "table", "x": {"a": 1.0}, "image": "8.png"})
    world.run()
    (question,) = world.open()
    i = int(question["id"][1:])
    assert {each["id"] for each in question["alike"]} == {f"e{j}" for j in range(i % 2, 8, 2)} - {f"e{i}"}


def test_where_two_must_answer_both_may_answer_for_all(tmp_path):
    world = repeated(tmp_path, answers_per_question=2)
    for _ in range(40):
        world.run()
        question = world.open()[0]
        if "alike" in question:
            break
        world.answer(*(world.right(question) | {"query_id": question["query_id"], "source": who} for who in "ab"))
    n_labels, n_asked = world.status()["labels"], world.status()["asked"]
    world.answer(*for_all(world, question, "ann"))
    world.run()
    assert world.status()["labels"] == n_labels
    assert len({each["id"] for each in question["alike"]} & {each["id"] for each in world.open()}) < 2  # not suggested
    world.answer(*for_all(world, question, "bob"))
    world.run()
    assert world.status()["labels"] == n_labels + 6
    assert world.status()["asked"] <= n_asked + 2


@pytest.mark.long
def test_killed_at_any_step_it_names_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def whole(folder, blows_at):
        world, fuse = repeated(folder, reservoir=20), Fuse(blows_at)
        question = until_a_group(world)
        *others, answer = for_all(world, question)
        world.answer(*others, answer, {"id": others[0]["id"], "op": "retract", "source": "ann"})
        with contextlib.suppress(Killed):
            run_with(world.settings, fuse, monkeypatch)
        state = world.run()
        for _ in range(3):
            world.answer(*map(world.right, sorted(world.open(), key=itemgetter("id"))))
            state = world.run()
        asked = [json.dumps(each, sort_keys=True) for each in world.questions().values()]
        return fuse.steps, (state.model.digest(), asked, world.status())

    steps, expected = whole(tmp_path / "whole", None)
    assert steps > 15
    for place in range(1, steps + 1, 3):
        assert whole(tmp_path / str(place), place)[1] == expected, place
