"""Several answers to a question: who is counted, what they decide together, and what the trainer makes of it."""

import contextlib
import json
from dataclasses import replace

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from hypothesis import given
from hypothesis import strategies as st
from world import World, configure

from streamsvm.connectors.records.labels import Label
from streamsvm.connectors.records.people.votes import Votes

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")

PEOPLE = ("page:ann#1111", "page:bob#2222", "terminal:cem", "page:ann#9999")  # the last one is ann again


def label(who, said, rev=0, key=7):
    """The answer True, False, "skip", "ignore" or "retract"."""
    is_label = isinstance(said, bool)
    return Label("e", key, said if is_label else None, None, None, rev, "set" if is_label else said, who)


def naive(answers, n):
    """The label that holds after each answer: True, False or None."""
    words, holding, found = {}, None, []
    for who, said in answers:
        name = who.split(":")[1].split("#")[0]
        words.pop(name, None)
        if said != "retract":
            words[name] = said
        given_words = list(words.values())
        leading = [
            word
            for word in set(given_words)
            if all(given_words.count(word) > given_words.count(other) for other in set(given_words) - {word})
        ]
        if not words:
            holding = None
        elif leading and (len(words) >= n or holding is not None):
            holding = leading[0] if isinstance(leading[0], bool) else None
        found.append(holding)
    return found


@given(
    st.lists(st.tuples(st.sampled_from(PEOPLE), st.sampled_from([True, False, "skip", "ignore", "retract"]))),
    st.integers(2, 4),
)
def test_the_label_that_holds_is_that_of_the_majority(answers, n):
    votes, holding = Votes(n), None
    for rev, ((who, said), expected) in enumerate(zip(answers, naive(answers, n), strict=True)):
        together = votes.hear(label(who, said, rev), holding, rev)
        if together is not None and together.op in ("set", "retract"):
            assert together.y != holding or holding is None
            holding = together.y
        assert holding == expected


def test_with_one_answer_each_holds_at_once():
    votes = Votes(1)
    for said in (True, False, "skip", "retract"):
        given_label = label("page:ann#1", said)
        assert votes.hear(given_label, True, 0) is given_label


def test_an_older_answer_of_the_same_person_changes_nothing():
    votes = Votes(2)
    votes.hear(label("terminal:ann", True, 9), None, 0)
    votes.hear(label("terminal:ann", False, 8), None, 0)
    assert votes.hear(label("terminal:bob", True, 7), None, 0) == label("terminal:bob", True, 9)


def test_questions_that_wait_for_others_take_no_place():
    votes = Votes(2)
    assert votes.room(0, []) == 1
    votes.hear(label("terminal:ann", True, key=1), None, 0)
    votes.hear(label("terminal:bob", True, key=2), None, 0)
    votes.hear(label("terminal:ann", False, key=2), None, 0)
    assert (votes.begun([1, 2, 3]), votes.unresolved([1, 2, 3])) == ({1, 2}, {2})
    assert votes.room(0, [1, 2, 3]) == 2 + 1 + 1
    assert votes.room(5, [3]) == 5
    for key in range(100, 160):
        votes.hear(label("terminal:ann", True, key=key), None, 0)
    assert votes.room(5, range(100, 160)) == 25


def test_the_state_goes_through_json():
    votes = Votes(2)
    for who, said in zip(PEOPLE, (True, "skip", False, True), strict=True):
        votes.hear(label(who, said), None, 5)
    again = Votes(2)
    again.restore(json.loads(json.dumps(votes.state())))
    assert again.state() == votes.state()
    assert again.statistics() == votes.statistics()
    assert again.begun([7]) == {7}


def test_statistics_forget_what_was_taken_back():
    votes = Votes(2)
    for who, said in (("terminal:ann", True), ("terminal:bob", False), ("terminal:bob", "retract")):
        votes.hear(label(who, said), None, 5)
    assert [one["name"] for one in votes.statistics()["annotators"]] == ["ann"]


def test_many_people_with_long_names_fit_into_a_status():
    votes = Votes(1)
    for number in range(1000):
        votes.hear(label(f"terminal:{number}{'x' * 5000}", True, key=number), None, number)
    votes.hear(label("terminal:ann", True, key=1), None, 0)
    votes.hear(label("terminal:ann", True, key=2), None, 1)
    people = votes.statistics()["annotators"]
    assert people[0]["name"] == "ann"
    assert len(json.dumps(people)) < 100_000


# --- the trainer ------------------------------------------------------------------------------------------------------


def say(world, question, who, y, **fields):
    world.answer({"id": question["id"], "y": y, "source": who, "query_id": question["query_id"], **fields})


def test_the_model_learns_what_two_people_agree_on_and_a_third_one_decides(tmp_path):
    world = World(configure(tmp_path, open=2, answers_per_question=2))
    world.run()
    first, second = world.open()
    for question, others in ((first, True), (second, False)):
        say(world, question, "page:ann#1", True)
        say(world, question, "page:ann#2", True)  # another tab
        assert world.run().counters.learned == int(question is second)
        say(world, question, "page:bob#3", others)
        state = world.run()
    assert state.counters.learned == 1
    status = world.status()
    assert (status["unresolved"], status["answered"], status["agreement"]["share"]) == (1, 1, 0.5)
    assert [one["name"] for one in status["annotators"]] == ["ann", "bob"]
    assert second["query_id"] in {question["query_id"] for question in world.open()}
    say(world, second, "terminal:cem", False)
    state = world.run()
    assert (state.counters.learned, world.status()["unresolved"]) == (2, 0)
    assert state.join.label_of(world.settings.codec().decode_label(world.read("labels")[-1]).key) is False


def test_people_who_wait_for_others_get_new_questions(tmp_path):
    world = World(configure(tmp_path, open=0, answers_per_question=2))
    world.run()
    for n in range(1, 5):
        say(world, world.open()[-1], "terminal:ann", True)
        world.run()
        assert len(world.open()) == n + 1


def test_one_question_is_open_for_each_person_who_answers(tmp_path):
    world = World(configure(tmp_path, open=0))
    world.run()
    assert len(world.open()) == 1
    say(world, world.open()[0], "terminal:ann", True)
    world.run()
    assert len(world.open()) == 1
    say(world, world.open()[0], "page:bob#1", False)
    world.run()
    assert len(world.open()) == 2


def test_a_label_that_answers_no_question_decides_alone(tmp_path):
    world = World(configure(tmp_path, answers_per_question=3))
    world.run()
    world.answer(*map(world.right, world.open()))
    assert world.run().counters.learned == 4


def test_a_corrected_answer_replaces_the_label_when_the_majority_changes(tmp_path):
    world = World(configure(tmp_path, open=1, answers_per_question=3))
    world.run()
    (question,) = world.open()
    for rev, (who, y) in enumerate([("ann", True), ("bob", True), ("cem", False)], 1):
        say(world, question, f"terminal:{who}", y, rev=rev)
    assert world.run().join.counters.corrected == 0
    say(world, question, "terminal:bob", False, rev=4)
    state = world.run()
    assert (state.join.counters.corrected, world.status()["corrected"]) == (1, 1)
    for rev, who in enumerate(("ann", "bob", "cem"), 5):
        say(world, question, f"terminal:{who}", None, rev=rev, op="retract")
    assert world.run().join.counters.undone == 1


def several_people(world, rng):
    """Three people answer the open questions: they disagree, skip, change their minds and take answers back."""
    for question in world.open():
        for who in rng.permutation(["page:ann#1", "page:bob#2", "terminal:cem"])[: rng.integers(1, 4)]:
            y = world.truth[question["id"]] ^ bool(rng.random() < 0.3)
            kind = rng.integers(12)
            fields = {"op": "skip"} if kind == 0 else {"op": "retract"} if kind == 1 else {}
            say(world, question, who, y, **fields)


@pytest.mark.long
def test_killed_at_any_step_the_same_people_decide_the_same(tmp_path, monkeypatch):
    def whole(folder, blows_at):
        rng, fuse = np.random.default_rng(5), Fuse(blows_at)
        conf = configure(folder, open=0, answers_per_question=2)
        world = World(replace(conf, join=replace(conf.join, ttl_seconds=30_000.0)), n=60)
        for _ in range(6):
            world.run()
            several_people(world, rng)
        with contextlib.suppress(Killed):
            run_with(world.settings, fuse, monkeypatch)
        state = world.run()
        found = (*world.outcome(state), json.loads(state.labelling.to_bytes()))
        return fuse.steps, found, state.counters.learned

    steps, expected, learned = whole(tmp_path / "whole", 10**9)
    assert steps > 30
    assert learned > 3
    for place in range(1, steps + 1, 3):
        assert whole(tmp_path / str(place), place)[1] == expected, place


def test_what_a_person_decides_holds_whatever_the_others_say():
    votes, lea = Votes(2), "page:lea#1"
    assert votes.hear(label("page:ann#1", True, 1), None, 1) is None
    assert votes.hear(label("page:bob#1", False, 2), None, 2) is None
    assert votes.unresolved([7]) == {7}
    decision = Label("e", 7, False, None, None, 3, "decide", lea)
    together = votes.hear(decision, None, 3)
    assert (together.op, together.y) == ("set", False)
    assert votes.hear(label("terminal:cem", True, 4), False, 4) is None  # the majority, but too late
    assert votes.statistics()["agreement"]["n_shared"] == 1
    assert {one["name"] for one in votes.statistics()["annotators"]} == {"ann", "bob", "cem"}
    restored = Votes(2)
    restored.restore(json.loads(json.dumps(votes.state())))
    for each in (votes, restored):
        together = each.hear(label(lea, "retract", 5), False, 5)  # then the majority counts
        assert (together.op, together.y) == ("set", True)


def test_a_decision_between_two_that_is_taken_back_leaves_no_label():
    votes = Votes(2)
    votes.hear(label("page:ann#1", True, 1), None, 1)
    votes.hear(label("page:bob#1", False, 2), None, 2)
    votes.hear(Label("e", 7, True, None, None, 3, "decide", "page:ann#1"), None, 3)  # one of the two
    together = votes.hear(label("page:ann#1", "retract", 4), True, 4)
    assert together.op == "retract"
    assert votes.unresolved([7]) == {7}  # ann's own answer still counts
    assert Votes(1).hear(Label("e", 7, True, None, None, 3, "decide", "page:ann#1"), None, 3).op == "set"
