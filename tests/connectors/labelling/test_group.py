"""One answer for several near-duplicates: what is written, taken back and corrected."""

from dataclasses import replace

import pytest
from asked import Trainer, until
from logged import read_json

from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import Unavailable

ALIKE = [{"query_id": name, "id": f"event-{name}"} for name in ("r", "s", "t")]


@pytest.fixture
def trainer(settings):
    trainer = Trainer(settings)
    ask(trainer, "q", alike=ALIKE)
    yield trainer
    trainer.close()


def ask(trainer, *names, **fields):
    for number, name in enumerate(names):
        trainer.ask(number, query_id=name, id=f"event-{name}", **fields)


@pytest.fixture
def service(settings, trainer):
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        yield service


def holding(settings):
    """The label of each event that holds, None if it was taken back, with the question that it was given with."""
    return {
        label["id"].removeprefix("event-"): (label.get("y"), label.get("like"))
        for label in read_json(settings, "labels", 0)
    }


def test_one_answer_is_written_for_all_of_them(settings, service):
    assert service.answer("q", True, "page:ann", alike=True) == "first"
    written = read_json(settings, "labels", 0)
    assert {(label["id"], label["query_id"], label.get("like")) for label in written} == {
        ("event-q", "q", None),
        *((f"event-{name}", name, "q") for name in "rst"),
    }
    assert {(label["y"], label["op"], label["source"]) for label in written} == {(True, "set", "page:ann")}
    assert service.answer("q", True, "page:ann", alike=True) == "repeated"
    assert len(read_json(settings, "labels", 0)) == 4
    assert [step.query_id for step in service.history("page:ann", None, 9)] == ["q"]


def test_an_answer_may_be_for_one_event_alone(settings, service):
    service.answer("q", True, "ann")
    assert holding(settings) == {"q": (True, None)}


def test_what_others_said_of_one_of_them_stays(settings, trainer, service):
    ask(trainer, "r", "s")
    until(lambda: len(service.open()) == 3)
    service.answer("r", False, "bob")
    service.answer("q", True, "ann", alike=True)
    assert holding(settings) == {"r": (False, None), "q": (True, None), "t": (True, "q")}  # s has its own question


def test_undo_takes_all_of_them_back_and_one_that_was_corrected_alone_stays(settings, service):
    service.answer("q", True, "ann", alike=True)
    service.answer("s", False, "bob")  # found by a search
    assert service.undo("ann").outcome == "open"
    assert holding(settings) == {"q": (None, None), "r": (None, None), "s": (False, None), "t": (None, None)}
    assert [question.query_id for question in service.open()] == ["q"]
    service.answer("q", True, "ann")
    assert holding(settings)["r"] == (None, None)


def test_a_correction_is_for_all_of_them_and_so_is_its_undo(settings, service):
    service.answer("q", True, "ann", alike=True)
    service.correct("q", "set", False, "ann")
    assert set(holding(settings).values()) == {(False, None), (False, "q")}
    service.undo("ann")
    assert set(holding(settings).values()) == {(True, None), (True, "q")}
    service.correct("q", "skip", None, "ann")
    assert {name: y for name, (y, _) in holding(settings).items()} == dict.fromkeys("qrst")


def test_an_answer_that_fails_on_the_way_is_completed_by_its_repetition(settings, service, monkeypatch):
    flush, n_calls = LocalLog.flush, []

    def fail_once(log):
        n_calls.append(1)
        if len(n_calls) == 2:  # the near-duplicates are written, the question is not acknowledged
            raise Unavailable("no acknowledgement")
        flush(log)

    monkeypatch.setattr(LocalLog, "flush", fail_once)
    with pytest.raises(Unavailable):
        service.answer("q", True, "ann", alike=True)
    service.answer("q", True, "ann", alike=True)
    assert len(read_json(settings, "labels", 0)) == 4
    assert set(holding(settings).values()) == {(True, None), (True, "q")}


def test_after_a_restart_they_still_go_together(settings, trainer):
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        service.answer("q", True, "ann", alike=True)
    with LabellingService(settings) as service:
        until(lambda: service.stats()["loaded"])
        assert service.open() == []
        service.undo("ann")
    assert {name: y for name, (y, _) in holding(settings).items()} == dict.fromkeys("qrst")


def test_of_several_people_each_answers_for_all_of_them(settings, trainer):
    settings = replace(settings, labelling=replace(settings.labelling, answers_per_question=2))
    ask(trainer, "r", "s")  # chosen before the answers to the first one came
    with LabellingService(settings) as service:
        until(lambda: len(service.open()) == 3)
        service.answer("r", False, "page:bob")
        service.answer("q", True, "page:ann", alike=True)
        service.answer("q", True, "page:bob", alike=True)
        said = sorted((label["id"], label["source"], label["y"]) for label in read_json(settings, "labels", 0))
        bobs = [(f"event-{name}", "page:bob", name != "r") for name in "qrst"]
        assert said == sorted([*((f"event-{name}", "page:ann", True) for name in "qrst"), *bobs])
        assert [question.query_id for question in service.open()] == ["r"]  # they disagree
        service.undo("page:bob")
        newest = {(label["id"], label["source"]): label.get("y") for label in read_json(settings, "labels", 0)}
        assert {name: y for (name, who), y in newest.items() if who == "page:bob"} == {
            "event-q": None, "event-r": False, "event-s": None, "event-t": None,
        }  # fmt: skip
        assert all(y for (_, who), y in newest.items() if who == "page:ann")
