"""Found events: an annotator labels them, takes that back, corrects it, before and after restarts."""

import json

import pytest
from asked import Trainer, of_questions, opened, until
from logged import read_json

from streamsvm.active import LabellingLoop, StreamPool
from streamsvm.connectors.labelling import service as service_module
from streamsvm.connectors.labelling.book import UnknownQuestion
from streamsvm.connectors.logs.embedded import LocalLog

ANN, BOB = "page:Ann#1", "page:Bob#2"


@pytest.fixture
def settings(tmp_path):
    settings = of_questions(tmp_path)
    with LocalLog(settings.log.dir) as log:
        for number in range(10):
            fields = {"id": f"e{number}", "x": {"amount": float(number)}, "text": "a prize" if number % 5 else "noon"}
            log.produce("events", json.dumps(fields).encode(), partition=0)
        log.produce("events", b"damaged", partition=0)
        log.produce("questions", b'{"status": {}}', key=b"status", partition=0)
    return settings


def find(service, text):
    until(lambda: service.find("", None, 20).is_loaded)
    return service.find(text, None, 20)


def test_lists_of_numbers_are_found_and_given_to_a_second_annotator(settings):
    with LocalLog(settings.log.dir) as log:
        log.produce("events", json.dumps({"id": "image", "x": [0.5] * 256, "text": "a cat"}).encode(), partition=0)
    with opened(settings) as service:
        (event,) = find(service, "cat").page.questions
        assert (event.id, dict(event.x)) == ("image", {str(number): 0.5 for number in range(256)})
        assert service.find_like(event.query_id, 3).n_events == 11


def test_found_events_are_labelled_and_taken_back(settings):
    with opened(settings) as service:
        found = find(service, "noon amount > 1")
        (event,) = found.page.questions
        assert (event.id, found.given, found.n_events) == ("e5", [None], 10)
        assert service.answer(event.query_id, True, ANN) == "first"
        assert service.answer(event.query_id, True, BOB) == "repeated"
        (given,) = find(service, "noon amount > 1").given
        assert (given.op, given.y) == ("set", True)
        assert service.correct(event.query_id, "set", False, BOB) == "changed"
        assert service.undo(BOB).outcome == "restored"
        assert service.undo(ANN).outcome == "open"  # now it is a question
        assert service.next(ANN).id == "e5"
    answers = read_json(settings, "labels", 0)
    assert [(one["id"], one["op"], one.get("y")) for one in answers] == [
        ("e5", "set", True), ("e5", "set", False), ("e5", "set", True), ("e5", "retract", None),
    ]  # fmt: skip
    with opened(settings) as service:
        assert [one.id for one in service.open()] == ["e5"]


def test_an_answer_finds_its_event_after_a_restart(settings):
    with opened(settings) as service:
        (event,) = find(service, "amount = 7").page.questions
    with opened(settings) as service:  # the browser has kept the answer, and sends it again
        find(service, "")
        assert service.answer(event.query_id, True, ANN) == "first"
    with opened(settings) as service:
        (given,) = find(service, "amount = 7").given
        assert given.y is True
        assert service.review(event.query_id)[0].id == "e7"


def test_who_has_to_wait_gets_a_random_event(settings, monkeypatch):
    monkeypatch.setattr(service_module, "_SPARES", 2)
    trainer = Trainer(settings)
    trainer.ask(1, id="e1")
    with opened(settings) as service:
        until(lambda: service.open())
        assert service.next(ANN).query_id == "q1"
        spare = until(lambda: service.next(BOB))
        assert service.next(BOB) == spare
        assert spare.reason == "found"
        service.rename(BOB, f"{BOB}by")
        assert service.next(f"{BOB}by") == spare
        service.rename(f"{BOB}by", BOB)
        service.answer(spare.query_id, True, BOB)
        assert service.next(BOB).id != spare.id
        for number in range(5):  # they leave without a word
            assert service.next(f"page:Cid#{number}") is not None
        assert len(service._spares) == 2
    trainer.close()


def test_what_was_not_asked_is_not_skipped(settings):
    with opened(settings) as service:
        (event,) = find(service, "amount = 7").page.questions
        with pytest.raises(UnknownQuestion):
            service.skip(event.query_id, ANN)
        with pytest.raises(UnknownQuestion):
            service.find_like("nothing", 3)


def test_a_found_event_has_the_id_of_the_trainers_question(settings):
    """So both are one: labelled first, it is not asked; asked first, the answer is that to the question."""
    with opened(settings) as service:
        (event,) = find(service, "amount = 7").page.questions
        codec = settings.codec()
        with LocalLog(settings.log.dir) as log:
            log.seek("events", 0, 7)
            key = codec.decode(log.poll(1.0, 1)[0]).key
        loop = LabellingLoop(StreamPool(10), name="events-0")
        loop.offer(key, {"amount": 7.0}, 0)
        (ask,) = loop.choose(_Flat(), 0)
        assert ask.question.id == event.query_id


class _Flat:
    def decision_function_many(self, rows):
        return [0.0] * len(rows)


def test_events_that_come_later_are_found(settings):
    with opened(settings) as service:
        assert find(service, "sunshine").page.n_found == 0
        with LocalLog(settings.log.dir) as log:
            log.produce("events", b'{"id": "late", "x": {}, "text": "sunshine"}', partition=0)
        until(lambda: service.find("sunshine", None, 20).page.n_found == 1)
