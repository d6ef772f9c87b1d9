"""Undoing, reviewing and correcting answers, also after a restart."""

import stat
import tempfile
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from asked import Trainer, of_questions, opened, until
from hypothesis import given
from hypothesis import settings as options
from hypothesis import strategies as st
from logged import read_json

from streamsvm.connectors.labelling import ballots, book, history
from streamsvm.connectors.labelling.answer import Given
from streamsvm.connectors.labelling.history import FILE, History
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.records.labels import Place
from streamsvm.connectors.runtime.folders import FileError

WORDS = {"1": ("set", True), "2": ("set", False), "s": ("skip", None), "i": ("ignore", None)}


@contextmanager
def asked(settings, n, **fields):
    """A trainer that has asked about this many events."""
    trainer = Trainer(settings)
    for number in range(n):
        trainer.ask(number, **fields)
    yield trainer
    trainer.close()


def press(service, keys, who="page:ann#1"):
    """Answer the questions that `who` gets, one with each key; return their ids."""
    events = []
    for key in keys:
        shown = service.next(who)
        op, y = WORDS[key]
        say = {"skip": service.skip, "ignore": service.ignore}.get(op)
        assert (say(shown.query_id, who) if say else service.answer(shown.query_id, y, who)) == "first"
        events.append(shown.query_id)
    return events


def word(service, query_id):
    """Operation and class of the newest answer; None if the question is open."""
    last = service.last_word(query_id)
    return None if last is None or last[0] == "retract" else last[:2]


# --- undo -------------------------------------------------------------------------------------------------------------


def test_labels_skips_and_ignores_are_undone_one_after_the_other(settings):
    with asked(settings, 8), opened(settings) as service:
        who = "page:ann#1"
        events = press(service, "12s1i2s")
        for query_id in events[:1:-1]:
            assert service.undoable(who).query_id == query_id
            assert service.undo(who).outcome == "open"
            assert service.next(who).query_id == query_id
        assert [word(service, query_id) for query_id in events] == [("set", True), ("set", False)] + 5 * [None]
        assert press(service, "11111") == events[2:]  # they come again, the oldest question first
    assert [label["op"] for label in read_json(settings, "labels")[7:12]] == ["retract"] * 5


def test_a_skip_that_is_undone_can_become_a_label(settings):
    with asked(settings, 1), opened(settings) as service:
        press(service, "s")
        service.undo("page:ann#1")
        press(service, "1")
    told = read_json(settings, "labels")
    assert [(label["op"], label.get("y")) for label in told] == [("skip", None), ("retract", None), ("set", True)]
    assert all(later["rev"] > earlier["rev"] for earlier, later in pairwise(told))


def test_undo_goes_on_after_a_restart_and_so_do_open_questions(settings):
    with asked(settings, 4) as trainer:
        with opened(settings) as service:
            events = press(service, "1s2")
            service.undo("page:ann#1")
        for number in range(4):
            trainer.withdraw(number)  # as the trainer does, which has heard the answers
        with opened(settings) as service:
            assert service.next("page:ann#1").query_id == events[2]  # its answer was taken back
            for query_id, op, y in ((events[1], "skip", None), (events[0], "set", True)):
                step = service.undo("page:ann#1").step
                assert (step.query_id, *step.given[:2]) == (query_id, op, y)
            assert service.undo("page:ann#1") is None
            assert sorted(shown.query_id for shown in service.open()) == sorted(events)
            assert service.next("page:ann#1").event == {}


def test_a_repeated_request_undoes_one_answer(settings):
    with asked(settings, 3), opened(settings) as service:
        events = press(service, "11")
        number = service.undoable("page:ann#1").number
        assert service.undo("page:ann#1", number).outcome == "open"
        assert service.undo("page:ann#1", number).outcome == "repeated"
        assert service.undo("page:bob#2", number) is None
        assert [word(service, query_id) for query_id in events] == [("set", True), None]


def test_undoing_a_correction_brings_back_what_it_replaced(settings):
    with asked(settings, 3), opened(settings) as service:
        who, (first, second) = "page:ann#1", press(service, "1s")
        assert service.correct(first, "skip", None, who) == "changed"
        assert service.correct(second, "set", False, who) == "changed"
        assert service.correct(second, "set", False, who) == "repeated"
        assert (word(service, first), word(service, second)) == (("skip", None), ("set", False))
        told = []
        while (result := service.undo(who)) is not None:
            told.append((result.step.query_id, result.outcome, word(service, result.step.query_id)))
    assert told == [
        (second, "restored", ("skip", None)),
        (first, "restored", ("set", True)),
        (second, "open", None),
        (first, "open", None),
    ]


def test_an_older_label_of_ones_own_holds_again_after_a_correction(settings):
    with asked(settings, 1), opened(settings) as service:
        (query_id,) = press(service, "1")
        service.answer(query_id, False, "page:bob#2")
        assert service.answer(query_id, True, "page:ann#1") == "repeated"  # as after a lost reply
        assert service.correct(query_id, "set", True, "page:ann#1") == "changed"
        assert word(service, query_id) == ("set", True)


class Slow:
    """The rules of undoing, on plain lists."""

    def __init__(self):
        self.steps = []  # [query, word, who, whether it counts, whether it can be undone], oldest first

    def counting(self, query):
        return [step for step in self.steps if step[0] == query and step[3]]

    def word(self, query):
        return self.counting(query)[-1][1] if self.counting(query) else None

    def say(self, query, word, who):
        if self.word(query) != word:
            self.steps.append([query, word, who, True, True])

    def undo(self, who):
        mine = [step for step in self.steps if step[2] == who and step[4]]
        if not mine:
            return None
        step, counting = mine[-1], self.counting(mine[-1][0])
        step[4] = False
        if counting[-1] is not step:
            return step[0], "replaced"
        step[3] = False
        return step[0], "restored" if len(counting) > 1 else "open"


MOVES = st.tuples(
    st.sampled_from(["1", "2", "s", "i", "u", "restart"]), st.integers(0, 3), st.sampled_from(["ann", "bob"])
)


@options(max_examples=12, deadline=None)
@given(st.lists(MOVES, max_size=25))
def test_undoing_is_as_its_rules_say(moves):
    with tempfile.TemporaryDirectory() as folder:
        settings, slow = of_questions(Path(folder)), Slow()
        with asked(settings, 4):
            service = LabellingService(settings).__enter__()
            until(lambda: service.stats()["loaded"])
            for move, number, who in moves:
                query_id = f"q{number}"
                if move == "restart":
                    service.__exit__()
                    service = LabellingService(settings).__enter__()
                    until(lambda service=service: service.stats()["loaded"])
                elif move == "u":
                    result = service.undo(who)
                    assert (result and (result.step.query_id, result.outcome)) == slow.undo(who)
                else:
                    service.correct(query_id, *WORDS[move], who)
                    slow.say(query_id, WORDS[move], who)
                words = {f"q{n}": slow.word(f"q{n}") for n in range(4)}
                assert {name: word(service, name) for name in words} == words
                assert {shown.query_id for shown in service.open()} == {name for name in words if words[name] is None}
            service.__exit__()


# --- history ----------------------------------------------------------------------------------------------------------


def told(steps):
    return [(step.query_id, *step.given.by) for step in steps]


def test_the_history_comes_in_pages_the_newest_first(settings):
    with asked(settings, 30), opened(settings) as service:
        events = press(service, "1s" * 15)
        pages, before = [], None
        while page := service.history("page:ann#1", before, 8):
            pages.append([step.query_id for step in page])
            before = page[-1].number
        assert [len(page) for page in pages] == [8, 8, 8, 6]
        assert [query_id for page in pages for query_id in page] == events[::-1]
        assert service.history("page:bob#1", None, 8) == []


def test_the_history_shows_what_each_said_last_and_no_undone_answers(settings):
    ann, bob = "page:ann#1", "page:bob#2"
    with asked(settings, 3), opened(settings) as service:
        first, second, third = press(service, "112", ann)
        service.correct(first, "set", False, ann)
        service.correct(second, "set", False, bob)
        service.undo(ann)
        service.undo(ann)  # the correction, then the third answer
        assert told(service.history(ann, None, 9)) == [(second, "set", True, ann), (first, "set", True, ann)]
        assert told(service.history("page:ann#other tab", None, 9)) == told(service.history(ann, None, 9))
        assert told(service.history(None, None, 9)) == [(second, "set", False, bob), (first, "set", True, ann)]
        shown, answers = service.review(second)
        assert (shown.id, told(answers)) == ("e1", [(second, "set", True, ann), (second, "set", False, bob)])
        assert service.review(third)[1] == []


def test_tabs_without_a_name_are_different_people(settings):
    with asked(settings, 1), opened(settings) as service:
        press(service, "1", "page:#1")
        assert len(service.history("page:#1", None, 9)) == 1
        assert service.history("page:#2", None, 9) == []


def test_any_earlier_answer_can_be_corrected_after_a_restart(settings, monkeypatch):
    monkeypatch.setattr(book, "_KEPT_QUESTIONS", 2)
    monkeypatch.setattr(ballots, "KEPT_QUESTIONS", 2)
    with asked(settings, 6, event={"text": "hello"}) as trainer:
        with opened(settings) as service:
            first = press(service, "1s1111")[0]
            for number in range(6):
                trainer.withdraw(number)
        with opened(settings) as service:
            assert service.review(first)[0].event == {"text": "hello"}
            assert service.correct(first, "set", False, "page:ann#9") == "changed"
            assert service.history("page:ann#9", None, 1)[0].query_id == first
    labels = [label for label in read_json(settings, "labels") if label["query_id"] == first]
    assert [label["y"] for label in labels] == [True, False]
    assert labels[1]["rev"] > labels[0]["rev"]


def test_of_many_answers_the_newest_are_remembered(settings, monkeypatch):
    monkeypatch.setattr(history, "_STORED_ANSWERS", 5)
    monkeypatch.setattr(history, "_PRUNE_EVERY", 1)
    with asked(settings, 9), opened(settings) as service:
        events = press(service, "1" * 9)
        assert [step.query_id for step in service.history(None, None, 100)] == events[:3:-1]


def test_of_large_questions_the_newest_are_remembered(settings, monkeypatch):
    monkeypatch.setattr(history, "_STORED_BYTES", 25_000)
    monkeypatch.setattr(book, "_KEPT_BYTES", 0)
    monkeypatch.setattr(history, "_PRUNE_EVERY", 1)
    with asked(settings, 5, event={"text": "x" * 10_000}), opened(settings) as service:
        events = press(service, "1" * 5)
        assert [service.review(query_id)[0] is not None for query_id in events] == [False] * 3 + [True] * 2
        assert service.correct(events[0], "set", False, "ann") == "changed"  # its place is known


def test_the_file_is_private_and_a_damaged_one_is_named(tmp_path):
    path = tmp_path / "state" / FILE
    kept = History(path)
    kept.add("q", Given("set", True, "ann", 1, Place(0, "e")), None)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    kept.close()
    assert set(modes.values()) == {0o600}
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(FileError, match=r"answers\.sqlite: .*remove the file"):
        History(path)


def test_an_answer_counts_although_the_history_cannot_be_written(settings, monkeypatch, caplog):
    def fail(*_):
        raise OSError("disk full")

    with asked(settings, 2), opened(settings) as service:
        monkeypatch.setattr(History, "add", fail)
        assert press(service, "1") == ["q0"]
    assert len(read_json(settings, "labels")) == 1
    assert "disk full" in caplog.text
