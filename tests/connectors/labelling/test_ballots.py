"""The labelling service when a question wants the answers of several people."""

import json
from contextlib import contextmanager
from dataclasses import replace

import pytest
from asked import Trainer, of_questions, until
from hypothesis import given, settings
from hypothesis import strategies as st
from logged import read_json
from world import World, configure

from streamsvm.connectors.labelling import follower
from streamsvm.connectors.labelling.oracles import answer_with
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.terminal.picture import picture
from streamsvm.connectors.labelling.web.replies import question as reply
from streamsvm.connectors.settings.labelling import LabellingSettings

ANN, BOB, CEM = "page:ann#1111", "page:bob#2222", "terminal:cem"
ANN_AGAIN = "page:ann#9999"


@contextmanager
def opened(conf, n_questions):
    with LabellingService(conf) as service:
        until(lambda: service.stats()["loaded"] and len(service.open()) == n_questions)
        yield service


@contextmanager
def asked(folder, n_questions, answers=2):
    """A service with questions q1, q2, ... that want the answers of several people."""
    conf = of_questions(folder, labelling=LabellingSettings(answers_per_question=answers))
    trainer = Trainer(conf)
    for number in range(1, n_questions + 1):
        trainer.ask(number)
    with opened(conf, n_questions) as service:
        yield service, trainer, conf
    trainer.close()


def shown(service, who):
    question = service.next(who)
    return None if question is None else question.query_id


def ids(questions):
    return [question.query_id for question in questions]


def test_a_question_goes_to_two_people_and_to_a_third_one_if_they_disagree(tmp_path):
    with asked(tmp_path, 2) as (service, _, conf):
        assert [shown(service, who) for who in (ANN, BOB, CEM)] == ["q1", "q1", "q2"]
        assert service.answer("q1", True, ANN) == "first"
        assert ids(service.open()) == ["q1", "q2"]
        assert shown(service, ANN) == shown(service, ANN_AGAIN) == "q2", "a second tab makes no second person"
        assert service.answer("q1", False, BOB) == "first"
        assert ids(service.open()) == ["q1", "q2"]
        assert shown(service, BOB) is None, "ann and cem have the other question"
        assert service.answer("q2", True, CEM) == "first"
        assert shown(service, CEM) == "q1"
        assert service.answer("q1", False, CEM) == "first"
        assert ids(service.open()) == ["q2"]
        assert [answer["source"] for answer in read_json(conf, "labels", 0)] == [ANN, BOB, CEM, CEM]


def test_the_same_person_is_not_counted_twice(tmp_path):
    with asked(tmp_path, 1) as (service, _, _):
        assert service.answer("q1", True, ANN) == "first"
        assert service.answer("q1", True, ANN_AGAIN) == "repeated"
        assert service.answer("q1", False, ANN_AGAIN) == "changed"
        assert ids(service.open()) == ["q1"]
        assert service.answer("q1", False, BOB) == "first"
        assert service.open() == []


def test_a_skip_is_an_answer_and_leads_to_a_third_person(tmp_path):
    with asked(tmp_path, 1) as (service, _, _):
        service.skip("q1", ANN)
        assert (shown(service, ANN), shown(service, BOB)) == (None, "q1")
        service.answer("q1", True, BOB)
        assert (shown(service, BOB), shown(service, CEM)) == (None, "q1")
        service.skip("q1", CEM)
        assert service.open() == []


def test_an_undo_takes_back_ones_own_answer_only(tmp_path):
    with asked(tmp_path, 1) as (service, _, conf):
        service.answer("q1", True, ANN)
        service.answer("q1", True, BOB)
        assert service.undo(ANN).step.query_id == "q1"
        assert (shown(service, ANN), shown(service, BOB), shown(service, CEM)) == ("q1", None, None)
        assert service.answer("q1", True, ANN) == "first"
        assert service.open() == []
        assert service.undo(BOB).step.query_id == "q1"
        assert service.answer("q1", False, BOB) == "first"
        assert (shown(service, ANN), shown(service, BOB), shown(service, CEM)) == (None, None, "q1")
        said = [(answer["source"], answer["op"]) for answer in read_json(conf, "labels", 0)]
        assert said[2:4] == [(ANN, "retract"), (ANN, "set")]


def test_a_change_of_mind_after_the_decision_asks_a_third_person(tmp_path):
    with asked(tmp_path, 1) as (service, _, _):
        service.answer("q1", True, ANN)
        service.answer("q1", True, BOB)
        assert service.answer("q1", False, ANN) == "changed"
        assert [shown(service, who) for who in (ANN, BOB, CEM)] == [None, None, "q1"]


def test_after_a_restart_the_answers_are_known(tmp_path):
    with asked(tmp_path, 2) as (service, _, conf):
        service.answer("q1", True, ANN)
        service.answer("q2", True, ANN)
        service.answer("q2", False, BOB)
    with opened(conf, 2) as service:
        assert shown(service, ANN) is None
        assert shown(service, BOB) == "q1"
        assert shown(service, CEM) == "q2"
        assert service.answer("q1", True, ANN) == "repeated"
        service.answer("q1", True, BOB)
        assert ids(service.open()) == ["q2"]


def test_after_a_restart_an_old_decision_is_corrected_not_asked_anew(tmp_path, monkeypatch):
    def at_the_end(_follower, log, _oldest):
        """As on Kafka, where old labels are not read again."""
        return log.end_offsets("labels")

    with asked(tmp_path, 2) as (service, trainer, conf):
        for who in (ANN, BOB, CEM):
            service.answer("q1", True, who)
        trainer.withdraw(1)
        trainer.withdraw(2)
        until(lambda: service.open() == [])
    monkeypatch.setattr(follower.Follower, "_first_answers", at_the_end)
    with opened(conf, 0) as service:
        assert service.correct("q1", "set", False, ANN) == "changed"
        assert service.open() == []
        assert service.answer("q1", True, BOB) == "repeated"
        assert service.correct("q1", "set", False, BOB) == "changed"
        assert service.open() == []


def test_a_question_that_asks_again_wants_one_answer(tmp_path):
    with asked(tmp_path, 1) as (service, trainer, _):
        trainer.write("q1-recheck", question_again())
        until(lambda: len(service.open()) == 2)
        service.answer("q1-recheck", False, ANN)
        assert ids(service.open()) == ["q1"]


def question_again():
    return {
        "query_id": "q1-recheck", "id": "e1", "x": {}, "event": {}, "margin": 0.0, "score": None, "reason": "recheck",
        "asked_at": 1, "expires_at": 10**13, "unusual": {}, "model": {"ver": 7},
    }  # fmt: skip


def test_statistics_of_all_partitions_are_put_together(tmp_path):
    ann = {"name": "ann", "n_labels": 4, "n_positive": 1, "n_skipped": 0, "n_changed": 0}
    measure = "Cohen's kappa"
    with asked(tmp_path, 0) as (service, trainer, _):
        assert service.stats()["agreement"]["share"] is None
        for number, share in ((0, 1.0), (1, 0.5)):
            agreed = {"n_shared": 1 + 2 * number, "share": share, "kappa": None, "measure": measure}
            people = [{**ann, "agreement": share, "per_hour": 60.0}]
            status = {"status": {"agreement": agreed, "annotators": people, "unresolved": 1}}
            trainer.log.produce("questions", json.dumps(status).encode(), key=b"status", partition=number)
        until(lambda: service.stats()["unresolved"] == 2)
        stats = service.stats()
    assert stats["agreement"] == {"n_shared": 4, "share": 0.625, "kappa": None, "measure": measure}
    assert stats["annotators"] == [{**ann, "n_labels": 8, "n_positive": 2, "agreement": 0.75, "per_hour": 120.0}]


STEPS = st.lists(st.tuples(st.sampled_from(["next", "yes", "no", "skip", "undo"]), st.sampled_from((ANN, BOB, CEM))))


@settings(max_examples=15, deadline=None)
@given(STEPS)
def test_nobody_is_shown_what_they_have_answered(tmp_path_factory, steps):
    said = {f"q{number}": {} for number in (1, 2, 3)}
    with asked(tmp_path_factory.mktemp("people"), 3) as (service, _, _):
        for step, who in steps:
            if step == "undo":
                if (taken := service.undo(who)) is not None:
                    del said[taken.step.query_id][who]
            elif (name := shown(service, who)) is not None:
                assert who not in said[name]
                if step in ("yes", "no"):
                    service.answer(name, step == "yes", who)
                elif step == "skip":
                    service.skip(name, who)
                if step != "next":
                    said[name][who] = step
        still = {name for name, words in said.items() if not decided(list(words.values()))}
        assert set(ids(service.open())) == still


def decided(words):
    counts = sorted((words.count(word) for word in set(words)), reverse=True)
    return len(words) >= 2 and (len(counts) == 1 or counts[0] > counts[1])


@pytest.mark.long
def test_two_people_who_disagree_and_a_third_one_teach_the_model(tmp_path):
    """From the trainer's questions to its model: ann is right, bob is often wrong, and cem decides."""
    conf = configure(tmp_path, open=0, answers_per_question=2, expires_seconds=1e9)  # the events are old
    world = World(replace(conf, join=replace(conf.join, ttl_seconds=1e9)), n=80)
    for turn in range(12):
        world.run()
        with opened(world.settings, len(world.open())) as service:
            for who, noise in ((ANN, 0.0), (BOB, 0.4), (CEM, 0.0)):
                answer_with(
                    service,
                    lambda question: world.truth[question.id],
                    lambda: False,
                    who=who,
                    noise=noise,
                    seed=turn,
                    enough=lambda stats: True,
                )
    state, status = world.run(), world.status()
    assert status["unresolved"] == 0
    assert status["answered"] == state.join.counters.matched > 12
    assert 0.4 < status["agreement"]["share"] < 0.9
    wrong = [label["id"] for label in read_json(world.settings, "labels", 0) if label["y"] != world.truth[label["id"]]]
    assert wrong
    codec = world.settings.codec()
    held = {record.key: record for record in map(codec.decode_label, world.read("labels"))}
    assert all(state.join.label_of(key) == world.truth[label.id] for key, label in held.items())


def test_an_answer_that_is_asked_again_comes_without_a_guess(tmp_path):
    with asked(tmp_path, 1, answers=1) as (service, trainer, conf):
        trainer.write("q1-recheck", question_again())
        until(lambda: len(service.open()) == 2)
        again = next(question for question in service.open() if question.reason == "recheck")
        assert (reply(again, conf.labelling)["margin"], reply(again, conf.labelling)["score"]) == (None, None)
        text = picture(again, conf, service.stats(), (80, 40), dict(zip(conf.label.shown, "12", strict=True)))
        assert "please look again" in text
        assert "the model:" not in text
