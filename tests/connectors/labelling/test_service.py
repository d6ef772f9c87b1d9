"""The labelling service between questions and answers, and the oracles that use it."""

import json
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
from asked import opened, until
from hypothesis import given
from hypothesis import strategies as st
from logged import read_json
from patience import Patience

from streamsvm.active import QuestionBook
from streamsvm.connectors.labelling import answering, book, history, log_thread
from streamsvm.connectors.labelling.book import UnknownQuestion
from streamsvm.connectors.labelling.oracles import answer_with, read_label, truth_from_field, truth_from_file
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.terminal.picture import picture
from streamsvm.connectors.labelling.web.replies import question as question_of
from streamsvm.connectors.logs import embedded
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import Record, Unavailable
from streamsvm.connectors.records.formats.base import BadRecord
from streamsvm.connectors.records.labels import Place
from streamsvm.connectors.records.people.questions import read_question
from streamsvm.connectors.runtime.folders import AlreadyInUse, FileError
from streamsvm.connectors.settings.labelling import LabellingSettings
from streamsvm.connectors.settings.sections import LabelSettings, Settings

SPAM = LabelSettings("spam", "ham")


@pytest.fixture
def trainer(settings):
    """What a trainer writes to the topic of questions."""
    with LocalLog(settings.log.dir) as log:
        yield Trainer(log)


class Trainer:
    def __init__(self, log):
        self.log = log

    def ask(self, *names, partition=0, **fields):
        for number, name in enumerate(names):
            question = {
                "query_id": name,
                "id": f"event-{name}",
                "x": {"a": float(number), "b": 2.0},
                "event": {"text": "hello", "truth": number % 2},
                "margin": 0.1,
                "score": 0.5,
                "reason": "boundary",
                "asked_at": 1000 + number,
                "expires_at": 10**9,
                "unusual": {"b": 4.2},
                "model": {"ver": 7, "n_support": 3},
                **fields,
            }
            self._put(name, question, partition)

    def withdraw(self, name, partition=0):
        self._put(name, None, partition)

    def report(self, partition=0, **status):
        self._put("status", {"status": status}, partition)

    def _put(self, key, value, partition):
        data = None if value is None else json.dumps(value).encode()
        self.log.produce("questions", data, key=key.encode(), partition=partition)


def answers(settings, partition=0):
    return read_json(settings, "labels", partition)


def tell(service, name, **fields):
    """Write an answer as another labelling service does, which the embedded log would not allow beside this one."""
    value = {"id": f"event-{name}", "op": "set", "query_id": name, **fields}
    log = service._writer._log
    log.produce("labels", json.dumps(value).encode(), partition=0)
    log.flush()


@contextmanager
def unacknowledged(monkeypatch):
    """What is written arrives, but nobody says so."""

    def flush(self):
        raise Unavailable("no acknowledgement within 5 seconds")

    with monkeypatch.context() as patch:
        patch.setattr(LocalLog, "flush", flush)
        yield


def ids(shown):
    return [question.query_id for question in shown]


# --- questions --------------------------------------------------------------------------------------------------------


def test_a_question_is_shown_as_it_was_asked(settings, trainer):
    trainer.ask("q", partition=2)
    with opened(settings) as service:
        shown = service.next("ann")
    assert (shown.query_id, shown.id, shown.partition, shown.place) == ("q", "event-q", 2, Place(2, "event-q"))
    assert (shown.x, shown.unusual, shown.event["text"]) == ({"a": 0.0, "b": 2.0}, {"b": 4.2}, "hello")
    assert (shown.margin, shown.score, shown.reason, shown.model["ver"]) == (0.1, 0.5, "boundary", 7)


def test_everybody_gets_another_question_and_the_same_again(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        assert [service.next(who).query_id for who in ("ann", "bob", "ann", "bob")] == ["q1", "q2", "q1", "q2"]
        assert service.next("cem") is None
        service.release("ann")
        assert service.next("cem").query_id == "q1"
        assert ids(service.open()) == ["q1", "q2"]


def test_a_question_stays_in_front_of_an_annotator_who_types_a_name(settings, trainer):
    trainer.ask("q1", "q2", "q3")
    with opened(settings) as service:
        service.next("page:#a")
        assert service.next("page:#b").query_id == "q2"
        service.release("page:#a")
        service.rename("page:#b", "page:bob#b")
        assert service.next("page:bob#b").query_id == "q2"
        assert service.next("page:#b").query_id == "q1"
        service.rename("page:bob#b", "page:#b")  # who has a question
        assert service.next("page:cem#c").query_id == "q2"


def test_a_name_that_has_answered_a_question_does_not_get_it_again(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(replace(settings, labelling=LabellingSettings(answers_per_question=2))) as service:
        service.answer("q1", True, "page:bob#a")
        assert service.next("page:#b").query_id == "q1"
        service.rename("page:#b", "page:bob#b")
        assert service.next("page:bob#b").query_id == "q2"
        service.rename("page:bob#b", "page:cem#b")
        assert service.next("page:cem#b").query_id == "q2"


def test_a_question_goes_to_somebody_else_when_its_lease_has_ended(settings, trainer):
    now = [1000.0]
    trainer.ask("q")
    with opened(replace(settings, labelling=LabellingSettings(lease_seconds=5)), clock=lambda: now[0]) as service:
        assert service.next("ann")
        now[0] += 4.9
        assert service.next("bob") is None
        now[0] += 0.2
        assert service.next("bob").query_id == "q"


def test_questions_come_and_go_while_it_runs(settings, trainer):
    with opened(settings) as service:
        assert service.next("ann") is None
        seen = service.wait(0)
        trainer.ask("q1", "q2")
        until(lambda: service.stats()["waiting"] == 2)
        assert service.wait(5, seen) > seen
        trainer.withdraw("q1")
        until(lambda: ids(service.open()) == ["q2"])
        trainer.ask("q3", partition=1)  # which the topic did not have before
        until(lambda: ids(service.open()) == ["q2", "q3"] or ids(service.open()) == ["q3", "q2"])


def test_what_is_no_question_is_passed_over(settings, trainer, caplog):
    for key, value in [(b"q", b"{"), (b"q", b"[]"), (b"q", b'{"query_id": "q"}'), (None, b"{}"), (b"status", b"1")]:
        trainer.log.produce("questions", value, key=key, partition=0)
    trainer.ask("other", query_id="q")  # under a key that is not its own
    trainer.ask("good")
    with opened(settings) as service:
        assert ids(service.open()) == ["good"]
        assert service.stats()["refused"] == 6
    assert len([record for record in caplog.records if "passing over" in record.message]) == 6


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"query_id": 7}, "query_id must be 1 to 300 characters, got 7"),
        ({"query_id": "q" * 301}, "query_id must be"),
        ({"id": None}, "id must be a text or a whole number, got None"),
        ({"id": True}, "id must be"),
        ({"x": [1.0]}, "x must be an object of finite numbers"),
        ({"x": {"a": "1"}}, "x must be"),
        ({"x": {"a": None}}, "x must be"),
        ({"x": {"a": True}}, "x must be"),
        ({"x": {"a": 10**400}}, "x must be"),
        ({"event": "text"}, "event must be an object"),
        ({"margin": "0.1"}, "margin must be a finite number, got '0.1'"),
        ({"margin": None}, "margin must be"),
        ({"score": 1.5}, "score must be a number from 0 to 1, or null, got 1.5"),
        ({"score": "high"}, "score must be"),
        ({"reason": ["seed"]}, "reason must be a text"),
        ({"asked_at": "now"}, "asked_at must be whole milliseconds"),
        ({"asked_at": 10**30}, "asked_at must be"),
        ({"expires_at": 1.5}, "expires_at must be"),
        ({"unusual": {"a": "4"}}, "unusual must be"),
        ({"unusual": []}, "unusual must be"),
        ({"model": 3}, "model must be an object of counts"),
        ({"model": {"ver": -1}}, "model must be"),
    ],
)
def test_a_damaged_question_is_set_aside_and_counted(settings, trainer, caplog, fields, reason):
    trainer.ask("q", **fields)
    trainer.ask("good")
    with opened(settings) as service:
        assert ids(service.open()) == ["good"]
        assert service.next("ann").query_id == "good"
        assert service.stats()["refused"] == 1
    assert reason in caplog.text


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "1e999", '"\\ud800"', "[" * 5000 + "]" * 5000, '{"a": 1, "a": 2}', "1" * 5000]
)
def test_a_value_that_is_no_json_for_everybody(settings, trainer, text):
    trainer.ask("good")
    with LocalLog(settings.log.dir) as log:
        log.seek("questions", 0, 0)
        question = next(record.value for record in log.poll(0, 10) if record.key == b"good")
    for name, old in (("x", b'"a": 0.0'), ("event", b'"text": "hello"')):
        damaged = question.replace(old, old.partition(b":")[0] + b": " + text.encode()).replace(b'"good"', b'"bad"')
        assert damaged != question, name
        trainer.log.produce("questions", damaged, key=b"bad", partition=0)
    with opened(settings) as service:
        shown = service.open()
        assert ids(shown)[0] == "good"
        for item in shown:
            json.dumps(question_of(item, settings.labelling), allow_nan=False)
        assert service.stats()["refused"] >= 1


DAMAGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
QUESTION = {
    "query_id": "q", "id": 1, "x": {"a": 1}, "event": {"text": "t"}, "margin": 0, "score": 0.5, "reason": "seed",
    "asked_at": 1, "expires_at": 2, "unusual": {"a": 3.5}, "model": {"ver": 1, "n_support": 2},
}  # fmt: skip


@given(st.sampled_from(sorted(QUESTION)), DAMAGE)
def test_whatever_is_read_can_be_shown_everywhere(name, value):
    data = json.dumps(QUESTION | {name: value}).encode()
    try:
        shown = read_question(Record("questions", 0, 0, 0, b"q", data, ()))
    except BadRecord:
        return
    json.dumps(question_of(shown, LabellingSettings()), allow_nan=False)
    stats = {"labels": 0, "positive": 0, "negative": 0, "remaining": None, "trainer": None, "trouble": None}
    assert picture(shown, Settings(), stats | {"verdict": {"why": ""}}, (80, 24), {"a": "1", "b": "2"})
    assert QuestionBook(1000).add(shown.query_id, shown.asked_at) is None


@pytest.mark.parametrize(
    "status",
    [
        7, [], {"labels": "x"}, {"labels": -1}, {"asked": 1.5}, {"remaining": "all"}, {"verdict": "stop"},
        {"verdict": {"stop": 1, "audit": False, "why": ""}}, {"verdict": {"stop": True}}, {"curve": 7},
        {"curve": [[1, 2, 0.5]]}, {"curve": [[1, 2, "x", None]]}, {"curve": [[1, -2, None, None]]},
    ],
)  # fmt: skip
def test_a_damaged_status_leaves_the_one_before(settings, trainer, status):
    trainer.report(labels=5, remaining=7)
    trainer.log.produce("questions", json.dumps({"status": status}).encode(), key=b"status", partition=0)
    with opened(settings) as service:
        stats = service.stats()
    assert (stats["labels"], stats["remaining"], stats["refused"]) == (5, 7, 1)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_is_a_label_on_the_partition_of_the_question(settings, trainer):
    trainer.ask("q", partition=3)
    with opened(settings, clock=lambda: 1000.0) as service:
        assert service.answer("q", True, "page:ann") == "first"
        label = {"id": "event-q", "y": True, "op": "set", "rev": 1_000_000, "source": "page:ann", "query_id": "q"}
        assert answers(settings, 3) == [label]
        assert service.open() == []
        assert service.next("bob") is None


def test_an_answer_is_durable_before_it_is_acknowledged(settings, trainer, monkeypatch):
    calls = []
    produce, flush = LocalLog.produce, LocalLog.flush
    monkeypatch.setattr(
        LocalLog, "produce", lambda self, topic, *a, **k: (calls.append(topic), produce(self, topic, *a, **k))
    )
    monkeypatch.setattr(LocalLog, "flush", lambda self: (calls.append("flush"), flush(self)))
    trainer.ask("q")
    with opened(settings) as service:
        calls.clear()
        service.answer("q", True, "ann")
        assert calls == ["labels", "flush"]


def test_a_repeated_answer_writes_nothing(settings, trainer):
    trainer.ask("q")
    with opened(settings) as service:
        assert [service.answer("q", True, who) for who in ("ann", "ann", "bob")] == ["first", "repeated", "repeated"]
        trainer.withdraw("q")
        until(lambda: service.stats()["unheard"] == 0)
        assert service.answer("q", True, "ann") == "repeated"
        assert len(answers(settings)) == 1
        assert service.answer("q", False, "bob") == "changed"
        assert service.answer("q", True, "ann") == "repeated"  # who perhaps has not heard the first reply
        assert service.answer("q", True, "bob") == "changed"
        assert [label["y"] for label in answers(settings)] == [True, False, True]


def test_revisions_of_a_question_always_grow(settings, trainer):
    now = [1000.0]
    trainer.ask("q")
    with opened(settings, clock=lambda: now[0]) as service:
        for i in range(4):
            service.answer("q", i % 2 == 0, "ann")
            now[0] -= 1  # a clock that is set back
        service.undo("ann")
    revisions = [label["rev"] for label in answers(settings)]
    assert len(revisions) == 5
    assert all(later > earlier for earlier, later in pairwise(revisions))


def test_a_late_answer_counts(settings, trainer):
    trainer.ask("q")
    with opened(settings) as service:
        service.next("ann")
        trainer.withdraw("q")
        until(lambda: service.open() == [])
        assert service.answer("q", False, "ann") == "first"
        assert len(answers(settings)) == 1
        assert service.stats()["unheard"] == 0  # there is no question that the trainer could close


def test_skips_and_ignored_events_have_no_label(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        assert service.skip("q1", "ann") == "first"
        assert service.ignore("q2", "ann") == "first"
        assert service.skip("q1", "ann") == "repeated"
        assert service.next("bob") is None
        assert service.answer("q1", True, "bob") == "changed"
        assert service.skip("q1", "ann") == "stale"
    told = [(label["op"], label["id"], label.get("y", "-")) for label in answers(settings)]
    assert told == [("skip", "event-q1", "-"), ("ignore", "event-q2", "-"), ("set", "event-q1", True)]


def undone(service, who):
    """The question of the answer that is undone, and what became of it."""
    result = service.undo(who)
    return result and (result.step.query_id, result.outcome)


def test_an_undo_opens_the_question_again_whatever_the_trainer_says(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        trainer.withdraw("q1")
        until(lambda: service.stats()["unheard"] == 0)
        assert service.undo("bob") is None
        assert undone(service, "ann") == ("q1", "open")
        assert service.next("ann").query_id == "q1"
        trainer.withdraw("q1")
        trainer.ask("q3")
        until(lambda: service.stats()["waiting"] == 3)
        assert service.next("ann").query_id == "q1"  # whatever the trainer says of it
        assert service.answer("q1", True, "ann") == "first"
    assert [label["op"] for label in answers(settings)] == ["set", "retract", "set"]


def test_nobody_undoes_what_somebody_else_has_changed(settings, trainer):
    trainer.ask("q")
    with opened(settings) as service:
        service.answer("q", True, "ann")
        service.answer("q", False, "bob")
        assert undone(service, "ann") == ("q", "replaced")
        assert undone(service, "bob") == ("q", "restored")
        assert service.last_word("q") == ("set", True, "bob")
        assert service.undo("ann") is None


def test_nobody_undoes_what_was_changed_at_another_desk(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(settings, clock=lambda: 1000.0) as service:
        service.answer("q1", True, "ann")
        service.next("ann")
        tell(service, "q1", y=False, rev=1_000_500, source="bob")
        until(lambda: service.last_word("q1") == ("set", False, "bob"))
        assert undone(service, "ann") == ("q1", "replaced")
        assert service.last_word("q1") == ("set", False, "bob")
        assert ids(service.open()) == ["q2"]
        assert service.next("bob") is None  # ann has it still


def test_a_question_whose_answer_was_taken_back_stays_whatever_the_trainer_says(settings, trainer):
    """It closes the question when it hears of the answer, perhaps before it hears that it was taken back."""
    trainer.ask("q1", "q2", "q3")
    with opened(settings, clock=lambda: 1000.0) as service:
        service.answer("q1", True, "ann")
        assert undone(service, "ann") == ("q1", "open")
        service.answer("q2", True, "ann")
        service.retract("q2", "ann")  # as Label Studio does
        service.answer("q3", True, "ann")
        tell(service, "q3", op="retract", rev=1_000_500, source="bob")
        until(lambda: ids(service.open()) == ["q1", "q2", "q3"])
        for name in ("q1", "q2", "q3"):
            trainer.withdraw(name)
        trainer.ask("q4")
        until(lambda: service.stats()["waiting"] == 4)
        assert [service.next(who).query_id for who in ("ann", "bob", "cem")] == ["q1", "q4", "q2"]
        assert service.answer("q1", True, "ann") == "first"
        assert service.answer("q2", True, "bob") == "first"
        assert service.answer("q3", True, "cem") == "first"
        assert ids(service.open()) == ["q4"]


def test_an_undo_that_nobody_repeats_opens_the_question_once_it_is_durable(settings, trainer, monkeypatch):
    trainer.ask("q1", "q2", "q3")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        with unacknowledged(monkeypatch), pytest.raises(Unavailable):
            service.undo("ann")
        assert ids(service.open()) == ["q2", "q3"]
        service.answer("q2", True, "bob")
        assert service.last_word("q1") == ("retract", None, "ann")
        assert ids(service.open()) == ["q1", "q3"]
        assert service.next("bob").query_id == "q1"
        assert service.answer("q1", False, "bob") == "first"
        assert undone(service, "ann") == ("q1", "replaced")


def test_an_undo_that_is_repeated_takes_back_one_answer(settings, trainer, monkeypatch):
    trainer.ask("q1", "q2", "q3")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        service.answer("q2", True, "ann")
        with unacknowledged(monkeypatch), pytest.raises(Unavailable):
            service.undo("ann")
        service.answer("q3", True, "bob")  # makes it durable
        assert undone(service, "ann") == ("q2", "open")
        assert service.next("ann").query_id == "q2"
        assert service.next("bob") is None
        assert [(label["op"], label["query_id"]) for label in answers(settings)] == [
            ("set", "q1"),
            ("set", "q2"),
            ("retract", "q2"),
            ("set", "q3"),
        ]
        assert undone(service, "ann") == ("q1", "open")


def test_undo_takes_back_an_answer_that_was_not_acknowledged(settings, trainer, monkeypatch):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        with unacknowledged(monkeypatch):
            for say in (lambda: service.answer("q2", True, "ann"), lambda: service.undo("ann")):
                with pytest.raises(Unavailable):
                    say()
        assert undone(service, "ann") == ("q2", "open")
        assert ids(service.open()) == ["q2"]
    assert [(label["op"], label["query_id"]) for label in answers(settings)] == [
        ("set", "q1"),
        ("set", "q2"),
        ("retract", "q2"),
    ]


def test_an_undo_of_a_question_that_cannot_be_shown_any_more_holds_nobody_up(settings, trainer, monkeypatch):
    monkeypatch.setattr(book, "_KEPT_QUESTIONS", 2)
    monkeypatch.setattr(history.History, "question", lambda *_: None)
    trainer.ask(*"abcdef")
    with opened(settings) as service:
        service.answer("a", True, "ann")
        for name in "bcd":
            service.answer(name, True, "bot")
        assert undone(service, "ann") == ("a", "open")
        assert service.last_word("a") == ("retract", None, "ann")
        assert service.next("ann").query_id == "e"
        assert service.next("bob").query_id == "f"
        assert service.undo("ann") is None


def test_an_answer_of_another_time_holds_only_if_it_is_the_latest(settings, trainer):
    trainer.ask("q")
    with opened(settings, clock=lambda: 1000.0) as service:
        assert service.answer("q", True, "ann") == "first"
        assert service.answer("q", False, "bob", at=999_999) == "stale"
        assert service.answer("q", False, "bob", at=1_000_500) == "changed"
    assert [label["rev"] for label in answers(settings)] == [1_000_000, 1_000_500]


def test_an_unknown_question_needs_a_place(settings, trainer):
    with opened(settings) as service:
        with pytest.raises(UnknownQuestion, match="'q'"):
            service.answer("q", True, "ann")
        assert service.answer("q", True, "ann", place=Place(1, 5)) == "first"
        assert service.answer("q", True, "ann") == "repeated"
    assert answers(settings, 1)[0]["id"] == 5


def test_threads_answer_each_question_once(settings, trainer):
    trainer.ask(*(f"q{i}" for i in range(40)))
    with opened(settings) as service:

        def work(who):
            while (shown := service.next(who)) is not None:
                service.answer(shown.query_id, True, who)

        threads = [threading.Thread(target=work, args=(f"person-{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    labels = answers(settings)
    assert sorted(label["query_id"] for label in labels) == sorted(f"q{i}" for i in range(40))


# --- restarts and troubles --------------------------------------------------------------------------------------------


def test_after_a_restart_answered_questions_are_not_shown_again(settings, trainer):
    trainer.ask("q1", "q2", "q3")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        service.skip("q2", "ann")
        service.answer("q3", True, "ann")
        service.undo("ann")
    with opened(settings) as service:
        assert ids(service.open()) == ["q3"]
        assert service.next("bob").query_id == "q3"
        assert service.answer("q1", True, "ann") == "repeated"
        assert service.answer("q1", False, "ann") == "changed"
    assert len(answers(settings)) == 5


def test_answers_of_others_are_heard(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        other = {"id": "event-q1", "y": True, "op": "set", "rev": 5, "source": "bob", "query_id": "q1"}
        for value in (other, {"id": 1, "y": True}, {"id": 1, "y": True, "query_id": None}, {"query_id": "q2"}):
            trainer.log.produce("labels", json.dumps(value).encode(), partition=0)
        until(lambda: ids(service.open()) == ["q2"])
        named = {"id": "event-q2", "y": "spam", "query_id": "q2"}
        trainer.log.produce("labels", json.dumps(named).encode(), partition=0)
        until(lambda: service.open() == [])
        assert service.answer("q2", True, "ann") == "repeated"


def test_of_answers_without_a_revision_and_a_timestamp_the_last_one_holds(settings, trainer, monkeypatch):
    trainer.ask("q")
    clock = SimpleNamespace(time_ns=lambda: -1, monotonic=time.monotonic, sleep=time.sleep)
    with monkeypatch.context() as patch:
        patch.setattr(embedded, "time", clock)
        for y in (True, False):
            value = {"id": "event-q", "y": y, "source": "bob", "query_id": "q"}
            trainer.log.produce("labels", json.dumps(value).encode(), partition=0)
    with opened(settings) as service:
        until(lambda: service.open() == [])
        assert service.answer("q", False, "bob") == "repeated"


def test_a_log_that_cannot_be_written_refuses_the_answer_and_takes_it_again(settings, trainer, monkeypatch):
    trainer.ask("q")
    full = OSError(28, "No space left on device")
    with opened(settings) as service:
        flush = LocalLog.flush
        monkeypatch.setattr(LocalLog, "flush", lambda self: (_ for _ in ()).throw(full))
        with pytest.raises(Unavailable, match=r"cannot be written: .*No space left"):
            service.answer("q", True, "ann")
        assert ids(service.open()) == ["q"]
        monkeypatch.setattr(LocalLog, "flush", flush)
        assert service.answer("q", True, "ann") == "first"
        monkeypatch.setattr(LocalLog, "flush", lambda self: (_ for _ in ()).throw(full))
        with pytest.raises(Unavailable):
            service.undo("ann")
        monkeypatch.setattr(LocalLog, "flush", flush)
        assert undone(service, "ann") == ("q", "open")


def write_beside(settings, value):
    """Add a label to the log of a running service, which closes the log soon after an answer."""

    def is_written():
        with suppress(AlreadyInUse), LocalLog(settings.log.dir) as other:
            other.produce("labels", json.dumps(value).encode(), partition=0)
            return True

    until(is_written)


def test_an_answer_whose_failed_write_arrived_all_the_same_is_undone_at_once(settings, trainer):
    trainer.ask("q", "other")
    with opened(settings) as service:
        assert service.answer("q", True, "ann") == "first"
        for query_id, who in (("q", "ann"), ("other", "bob")):
            value = {"id": f"event-{query_id}", "y": True, "source": who, "query_id": query_id, "rev": 1}
            write_beside(settings, value)
        until(lambda: service.open() == [])
        assert undone(service, "ann") == ("q", "open")
        assert service.undo("ann") is None


def test_a_question_that_was_taken_back_twice_stays_open(settings, trainer):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        assert undone(service, "ann") == ("q1", "open")
        again = {"id": "event-q1", "op": "retract", "source": "ann", "query_id": "q1", "rev": 10**13}
        write_beside(settings, again)
        write_beside(settings, {"id": "event-q2", "y": True, "source": "bob", "query_id": "q2", "rev": 1})
        until(lambda: len(service.open()) == 1)
        trainer.withdraw("q1")
        trainer.ask("q3")
        until(lambda: service.stats()["waiting"] == 2)
        assert ids(service.open()) == ["q1", "q3"]


def test_an_answer_that_waits_for_the_broker_is_not_appended_twice(settings, trainer, monkeypatch):
    trainer.ask("q")
    slow = [True]
    flush = LocalLog.flush

    def flush_slowly(self):
        if slow[0]:
            raise Unavailable("no acknowledgement within 5 seconds")
        flush(self)

    monkeypatch.setattr(LocalLog, "flush", flush_slowly)
    with opened(settings) as service:
        for _ in range(2):
            with pytest.raises(Unavailable, match="not written yet: no acknowledgement"):
                service.answer("q", True, "ann")
        slow[0] = False
        service.answer("q", True, "ann")
    assert len(answers(settings)) == 1


def test_a_skip_takes_the_place_of_a_label_that_was_not_acknowledged(settings, trainer, monkeypatch):
    trainer.ask("q1", "q2", "q3")
    with opened(settings) as service:
        with unacknowledged(monkeypatch), pytest.raises(Unavailable):
            service.answer("q1", True, "ann")
        assert service.skip("q1", "ann") == "first"
        assert [label["op"] for label in answers(settings)] == ["set", "retract", "skip"]
        with unacknowledged(monkeypatch):
            for say in (lambda: service.answer("q2", True, "ann"), lambda: service.skip("q2", "bob")):
                with pytest.raises(Unavailable):
                    say()
        assert service.skip("q2", "bob") == "stale"  # it is not his to take back
        service.answer("q3", True, "bob")
        with unacknowledged(monkeypatch), pytest.raises(Unavailable):
            service.answer("q3", False, "ann")
        assert service.skip("q3", "ann") == "stale"  # it was a label before
    assert [label["op"] for label in answers(settings)] == ["set", "retract", "skip", "set", "set", "set"]
    assert [label["rev"] for label in answers(settings)[:3]] == sorted(
        {label["rev"] for label in answers(settings)[:3]}
    )


def test_what_was_not_acknowledged_is_not_forgotten_when_what_was_before_is_said_again(settings, trainer, monkeypatch):
    trainer.ask("q1", "q2")
    with opened(settings) as service:
        service.answer("q1", True, "ann")
        with unacknowledged(monkeypatch), pytest.raises(Unavailable):
            service.undo("ann")
        assert service.answer("q1", True, "ann") == "first"
        service.answer("q2", True, "ann")
        with unacknowledged(monkeypatch), pytest.raises(Unavailable):
            service.answer("q2", False, "ann")
        assert service.answer("q2", True, "ann") == "changed"
    told = [(label["op"], label.get("y")) for label in answers(settings)]
    assert told == [("set", True), ("retract", None), ("set", True), ("set", True), ("set", False), ("set", True)]


def test_another_writer_of_labels_is_named(settings, trainer):
    trainer.ask("q")
    with opened(settings) as service, LocalLog(settings.log.dir) as other:
        other.produce("labels", b"{}")
        with pytest.raises(
            Unavailable, match=r"another process is writing labels to this log, .*stop that process first"
        ):
            service.answer("q", True, "ann")


def test_others_add_labels_while_no_answer_comes(settings, trainer, monkeypatch):
    trainer.ask("q1", "q2", "q3")
    with opened(settings) as service, LocalLog(settings.log.dir) as other:
        monkeypatch.setattr(answering, "IDLE_SECONDS", 600)
        service.answer("q1", True, "ann")
        with pytest.raises(AlreadyInUse):
            other.produce("labels", b"{}")
        monkeypatch.setattr(answering, "IDLE_SECONDS", 0.1)
        service.answer("q2", True, "ann")
        is_written, patience = False, Patience(10)
        while not is_written and patience.lasts:
            with suppress(AlreadyInUse):
                other.produce("labels", b"{}")
                is_written = True
        other.close()
        assert service.answer("q3", True, "ann") == "first"


def test_one_labelling_service_for_an_embedded_log(settings, trainer):
    with opened(settings), pytest.raises(AlreadyInUse, match="the labelling of this log is in use by process"):
        LabellingService(settings).__enter__()


def test_a_log_that_cannot_be_read_is_unavailable_until_it_is_there(settings, trainer, monkeypatch):
    monkeypatch.setattr(log_thread, "LOOK_SECONDS", 0.05)
    trainer.ask("q")
    away = [True]
    open_once = log_thread.open_once

    def open_or_not(settings):
        if away[0]:
            raise Unavailable("no broker answers")
        return open_once(settings)

    monkeypatch.setattr(log_thread, "open_once", open_or_not)
    with LabellingService(settings) as service:
        until(lambda: service.stats()["trouble"])
        for call in (service.next, lambda who: service.answer("q", True, who), lambda who: service.open()):
            with pytest.raises(Unavailable, match="no broker answers"):
                call("ann")
        away[0] = False
        until(lambda: service.stats()["loaded"])
        assert service.next("ann").query_id == "q"


def test_what_ends_the_reading_for_good_is_told(settings, trainer):
    trainer.ask("q")
    segment = next((settings.log.dir / "questions" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[40] ^= 255
    segment.write_bytes(data)
    with LabellingService(settings) as service:
        until(lambda: service.stats()["trouble"])
        with pytest.raises(Unavailable, match="checksum"):
            service.next("ann")
        with pytest.raises(ValueError, match="checksum"):
            service.check()


# --- how far it is ----------------------------------------------------------------------------------------------------


def test_stats_add_up_over_the_partitions(settings, trainer):
    going = {"stop": False, "audit": True, "why": "checking", "spent": False}
    trainer.report(0, asked=5, labels=3, positive=1, negative=2, remaining=7, verdict=going, curve=[[1, 1, None, None]])
    trainer.report(
        1, asked=9, labels=4, positive=4, negative=0, remaining=None, verdict={**going, "stop": True, "why": "done"}
    )
    trainer.report(
        1, asked=9, labels=6, positive=6, negative=0, remaining=None, verdict=going, curve=[[6, 3, 0.5, 0.5]]
    )
    with opened(settings) as service:
        stats = service.stats()
    assert {name: stats[name] for name in ("asked", "labels", "positive", "negative", "remaining", "waiting")} == {
        "asked": 14,
        "labels": 9,
        "positive": 7,
        "negative": 2,
        "remaining": 7,
        "waiting": 0,
    }
    assert stats["verdict"] == {"stop": False, "audit": True, "why": "checking", "spent": False}
    assert stats["curve"] == [[6, 3, 0.5, 0.5]]


def test_verdicts_that_differ_name_their_partitions(settings, trainer):
    trainer.report(0, verdict={"stop": True, "audit": False, "why": "done"})
    trainer.report(1, verdict={"stop": True, "audit": False, "why": "spent", "spent": True})
    with opened(settings) as service:
        assert service.stats()["verdict"] == {
            "stop": True,
            "audit": False,
            "why": "partition 0: done; partition 1: spent",
            "spent": True,
        }


def test_a_trainer_that_does_not_run_is_noticed(settings, trainer):
    now = [1000.0]
    with opened(settings, clock=lambda: now[0]) as service:
        assert "no trainer has asked a question yet" in service.stats()["trainer"]
        trainer.ask("q")
        until(lambda: service.stats()["waiting"])
        assert service.stats()["trainer"] is None
        service.answer("q", True, "ann")
        now[0] += 100
        assert service.stats()["trainer"].startswith("the trainer has not reacted to an answer for 100 seconds")
        trainer.withdraw("q")
        until(lambda: service.stats()["trainer"] is None)


# --- oracles ----------------------------------------------------------------------------------------------------------


def answered(settings, n, oracle, **options):
    """Let an oracle answer `n` questions; return what it told, by question."""
    done = threading.Event()
    with opened(settings) as service:
        thread = threading.Thread(target=answer_with, args=(service, oracle, done.is_set), kwargs=options, daemon=True)
        thread.start()
        until(lambda: len(answers(settings)) >= n)
        done.set()
        thread.join()
    return {label["query_id"]: label.get("y") for label in answers(settings)}


def test_a_program_answers(settings, trainer):
    trainer.ask("q0", "q1", "q2")
    told = answered(settings, 3, lambda shown: None if shown.query_id == "q2" else shown.x["a"] > 0, who="rule")
    assert told == {"q0": False, "q1": True, "q2": None}
    assert {label["source"] for label in answers(settings)} == {"rule"}
    assert answers(settings)[2]["op"] == "skip"


def test_the_truth_may_be_in_a_field_of_the_event(settings, trainer):
    trainer.ask("q0", "q1")
    assert answered(settings, 2, truth_from_field("truth", SPAM)) == {"q0": False, "q1": True}
    trainer.ask("q2")
    assert answered(settings, 3, truth_from_field("missing", SPAM))["q2"] is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("truth.csv", "text,id,y\nhello,event-q0,ham\nworld,event-q1,spam\n"),
        ("truth.jsonl", '{"id": "event-q0", "label": false}\n\n{"id": "event-q1", "label": "+1"}\n'),
    ],
)
def test_the_truth_may_be_in_a_file(tmp_path, settings, trainer, caplog, name, content):
    path = tmp_path / name
    path.write_text(content)
    trainer.ask("q0", "q1", "q2")
    assert answered(settings, 3, truth_from_file(path, SPAM)) == {"q0": False, "q1": True, "q2": None}
    assert [record.message.partition(" ")[2] for record in caplog.records if "no label" in record.message] == [
        "has no label for the event 'event-q2': such questions are skipped"
    ]


@pytest.mark.parametrize(
    ("name", "content", "what"),
    [
        ("truth.csv", "id,y\n1,spam\n2,eggs\n", "line 3: needs an 'id' and a label 'y' of 'spam'/'ham', true/false"),
        ("truth.csv", "id,y\n1,\n2,NaN\n", "line 3: needs an 'id' and a label"),
        ("truth.csv", "id,y\n1,x\n2,z\n", "line 2: needs an 'id' .*\n.*, line 3: needs an 'id'"),
        ("truth.csv", "id,y,y\n1,1,0\n", "line 1: column 'y' appears more than once"),
        ("truth.csv", "y\n1\n", "line 1: no column 'id'"),
        ("truth.jsonl", "[]\n", "line 1: not a JSON object"),
        ("truth.jsonl", "{\n", "line 1: not a JSON object: Expecting"),
        ("truth.csv", "id,y\n\xff,1\n", "not UTF-8 text: byte 0xff cannot be read"),
        ("truth.npz", "", "the name must end with .csv, .tsv or .jsonl"),
        ("truth.csv", "id,y\n", "has no labels"),
        ("truth.jsonl", "", "has no labels"),
        ("truth.csv", "id,y\n1,spam\n1,ham\n", "line 3: id '1' has another label on an earlier line"),
    ],
)
def test_a_file_that_is_wrong_says_where(tmp_path, name, content, what):
    path = tmp_path / name
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(FileError, match=what):
        truth_from_file(path, SPAM)


@pytest.mark.parametrize("value", ["", " ", "NaN", "None", None, float("nan")])
def test_a_blank_is_no_class(value):
    assert read_label(value, LabelSettings(max_classes=5)) is None
    assert read_label("None", LabelSettings(classes=("None", "one", "two"))) == "None"


def test_noise_turns_labels_round(settings, trainer):
    trainer.ask(*(f"q{i}" for i in range(60)))
    told = answered(settings, 60, lambda shown: True, noise=0.3, seed=1)
    assert 8 <= list(told.values()).count(False) <= 28
    assert told == {f"q{i}": told[f"q{i}"] for i in range(60)}


def test_a_delay_can_be_interrupted(settings, trainer):
    trainer.ask("q")
    with opened(settings) as service:
        until_then, patience = time.monotonic() + 0.3, Patience(40)
        assert answer_with(service, lambda shown: True, lambda: time.monotonic() > until_then, delay=60) == 0
        assert patience.lasts
    assert answers(settings) == []


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (True, True),
        (0, False),
        (-1.0, False),
        ("+1", True),
        (" spam ", True),
        ("ham", False),
        ("False", False),
        ("eggs", None),
        (2, None),
        (None, None),
        ([1], None),
        ("nan", None),
        ("1_", None),
        ("\uff11", None),
    ],
)
def test_labels_are_read_as_on_a_topic(value, meaning):
    assert read_label(value, SPAM) is meaning


# --- floods -----------------------------------------------------------------------------------------------------------


def test_of_large_questions_that_are_closed_a_few_are_kept(settings, trainer, monkeypatch):
    monkeypatch.setattr(book, "_KEPT_BYTES", 30_000)
    names = [str(number) for number in range(20)]
    trainer.ask(*names, event={"text": "x" * 10_000})
    for name in names:
        trainer.withdraw(name)
    with opened(settings) as service:
        assert service.answer("18", True, "page:me") == service.answer("19", True, "page:me") == "first"
        for forgotten in ("0", "17"):
            with pytest.raises(UnknownQuestion):
                service.answer(forgotten, True, "page:me")


def test_answers_of_nobody_we_know_take_little_memory(settings, trainer):
    trainer.ask("q")
    with LocalLog(settings.log.dir) as log:
        flood = [{"query_id": f"{'x' * 300}{number}", "source": "s"} for number in range(50)]
        flood += [{"query_id": "other", "source": f"{number:03}{'s' * 1000}", "rev": number} for number in range(50)]
        for fields in flood:
            log.produce("labels", json.dumps({"id": "e", "y": True, **fields}).encode(), partition=0)
    with opened(settings) as service:
        ((name, voices),) = service._book.ballots._given.items()
        assert name == "other"
        assert [who[:3] for who in voices] == [f"{number:03}" for number in range(34, 50)]
        assert max(map(len, voices)) == 200
        assert service.answer("q", True, "page:me") == "first"
