"""The question book: every rule by example, and all of them against a twin that looks through all that happened."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamsvm.active import Given, QuestionBook
from streamsvm.active.answers import question_book

LEASE = 100


def make(*questions):
    """A book of questions that were asked one after the other."""
    it = QuestionBook(LEASE)
    for asked, question in enumerate(questions):
        it.add(question, asked)
    return it


# --- leases -----------------------------------------------------------------------------------------------------------


def test_the_oldest_question_comes_first_and_everybody_gets_another():
    it = QuestionBook(LEASE)
    for question, asked in (("c", 5), ("a", 3), ("b", 3), ("d", 4)):
        it.add(question, asked)
    assert [it.assign(who, 0) for who in ("ann", "bob", "cem", "dan", "eve")] == ["a", "b", "d", "c", None]
    assert len(it) == 4


def test_who_asks_again_gets_the_same_question():
    it = make("a", "b")
    assert [it.assign("ann", now) for now in (0, 50, 1000)] == ["a", "a", "a"]


def test_a_lease_ends_unless_it_is_renewed():
    it = make("a")
    it.assign("ann", 0)
    assert it.assign("bob", LEASE - 1) is None
    it.assign("ann", LEASE - 1)
    assert it.assign("bob", LEASE) is None
    assert it.assign("bob", 2 * LEASE - 1) == "a"
    assert it.assign("ann", 2 * LEASE) is None


def test_what_is_given_back_is_for_others_at_once():
    it = make("a", "b")
    it.assign("ann", 0)
    it.release("ann")
    it.release("nobody")
    assert it.assign("bob", 1) == "a"
    assert it.assign("ann", 1) == "b"


def test_a_question_that_is_withdrawn_is_in_front_of_nobody():
    it = make("a", "b")
    it.assign("ann", 0)
    it.withdraw("a")
    it.withdraw("a")
    it.withdraw("never there")
    assert len(it) == 1
    assert it.assign("ann", 1) == "b"


def test_a_question_that_is_added_twice_is_one():
    it = make("a")
    it.assign("ann", 0)
    it.add("a", 9)
    assert len(it) == 1
    assert it.assign("bob", 1) is None


def test_a_question_may_come_back():
    it = make("a")
    it.withdraw("a")
    it.add("a", 1)
    assert it.answered("a", "ann", True, 2) == "first"
    it.add("a", 3)
    assert it.assign("bob", 4) == "a"
    assert it.answered("a", "ann", True, 5) == "first"


def test_a_lease_must_be_positive():
    with pytest.raises(ValueError, match="lease=0 must be a positive integer of milliseconds"):
        QuestionBook(0)


# --- answers ----------------------------------------------------------------------------------------------------------


def test_an_answer_closes_the_question():
    it = make("a", "b")
    it.assign("ann", 0)
    assert it.answered("a", "ann", True, 1) == "first"
    assert len(it) == 1
    assert it.assign("ann", 2) == "b"


def test_answers_that_repeat_and_answers_that_change():
    it = make("a")
    outcomes = [
        it.answered("a", *given)
        for given in [
            ("ann", True, 1),
            ("ann", True, 2),
            ("bob", True, 3),
            ("bob", False, 4),
            ("ann", True, 5),  # the same again, as when a reply got lost: she has not changed her mind
            ("ann", False, 6),
            ("ann", True, 7),
        ]
    ]
    assert outcomes == ["first", "repeated", "repeated", "changed", "repeated", "repeated", "changed"]


def test_a_late_answer_counts():
    it = make("a", "b")
    it.assign("ann", 0)
    it.assign("bob", LEASE)
    assert it.answered("a", "ann", True, LEASE + 1) == "first"
    assert it.assign("bob", LEASE + 2) == "b"
    it.withdraw("b")
    assert it.answered("b", "bob", False, LEASE + 3) == "first"


def test_an_answer_to_nothing_is_unknown():
    it = make("a")
    assert it.answered("z", "ann", True, 0) == "unknown"
    assert it.undo("ann", 0) is None


def test_an_answer_may_come_from_somebody_without_the_question():
    it = make("a")
    it.assign("ann", 0)
    assert it.answered("a", "bob", True, 1) == "first"
    assert it.assign("ann", 2) is None


# --- undo -------------------------------------------------------------------------------------------------------------


def test_undo_takes_back_one_answer_after_the_other():
    it = make("a", "b", "c")
    it.answered("a", "ann", True, 10)
    it.answered("b", "ann", False, 20)
    assert it.undo("bob", 30) is None
    assert it.undo("ann", 30) == Given("b", False, 20)
    assert it.assign("ann", 31) == "b"
    assert it.undo("ann", 32) == Given("a", True, 10)
    assert it.assign("ann", 33) == "a"
    assert it.assign("bob", 33) == "b"
    assert it.undo("ann", 34) is None
    assert it.answered("a", "ann", True, 35) == "first"
    assert it.undo("ann", 36) == Given("a", True, 35)


def test_the_newest_answer_is_told_without_taking_it_back():
    it = make("a", "b")
    assert it.newest("ann", 0) is None
    it.answered("a", "ann", True, 0)
    it.answered("b", "ann", False, 10)
    assert [it.newest("ann", now) for now in (20, 60_010, 60_011)] == [
        Given("b", False, 10),
        Given("b", False, 10),
        None,
    ]
    assert it.newest("ann", 20, within=9) is None
    it.answered("b", "bob", True, 30)
    assert it.newest("ann", 40) == Given("b", False, 10)  # though it does not hold any more
    assert len(it) == 0


def test_undo_lets_go_of_the_question_that_was_next():
    it = make("a", "b")
    it.assign("ann", 0)
    it.answered("a", "ann", True, 1)
    assert it.assign("ann", 2) == "b"
    it.undo("ann", 3)
    assert it.assign("ann", 4) == "a"
    assert it.assign("bob", 4) == "b"


def test_undo_takes_back_the_last_word():
    it = make("a", "b")
    it.answered("b", "ann", True, 0)
    it.answered("a", "ann", True, 1)
    it.answered("a", "ann", False, 2)
    assert it.undo("ann", 3) == Given("a", False, 2)
    assert it.undo("ann", 3) == Given("b", True, 0)


def test_an_answer_can_be_taken_back_for_a_minute():
    it = make("a")
    it.answered("a", "ann", True, 0)
    assert it.undo("ann", 60_001) is None
    assert it.undo("ann", 11, within=10) is None
    assert it.undo("ann", 60_000) == Given("a", True, 0)


def test_what_somebody_else_has_changed_cannot_be_taken_back():
    it = make("a")
    it.answered("a", "ann", True, 0)
    it.answered("a", "bob", False, 1)
    assert it.undo("ann", 2) is None
    assert it.undo("bob", 2) == Given("a", False, 1)


def test_after_an_undo_everybody_may_answer_as_before():
    it = make("a")
    it.answered("a", "bob", True, 0)
    it.answered("a", "ann", False, 1)
    it.undo("ann", 2)
    it.release("ann")
    assert it.assign("bob", 3) == "a"
    assert it.answered("a", "bob", True, 4) == "first"
    assert it.assign("bob", 5) is None


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(question_book, "ENDED", 10)
    monkeypatch.setattr(question_book, "KEPT", 3)
    it = QuestionBook(LEASE)
    for n in range(100):
        it.add(str(n), n)
        assert it.assign("all", n) == str(n)
        it.answered(str(n), "all", True, n)
        it.answered(str(n), f"p{n}", False, n)
    assert it.answered("89", "bob", True, 0) == "unknown"
    assert it.answered("90", "bob", True, 0) == "changed"
    assert it.undo("p89", 99) is None
    assert it.undo("p98", 99) is not None
    for n in range(10):
        assert it.answered("99", f"v{n}", bool(n % 2), n) == ("changed" if n else "repeated")
    assert len(it._closed) == 9  # the question of the undo is open again
    assert len(it._given) <= 10
    assert max(len(card.said) for card in it._closed.values()) <= 3
    assert it._held == {"p98": "98"}


def test_the_newest_answers_can_be_taken_back(monkeypatch):
    monkeypatch.setattr(question_book, "KEPT", 3)
    it = make(*"abcde")
    for n, question in enumerate("abcde"):
        it.answered(question, "ann", True, n)
    assert [it.undo("ann", 9) for _ in range(4)] == [
        Given("e", True, 4),
        Given("d", True, 3),
        Given("c", True, 2),
        None,
    ]


def test_who_has_not_answered_for_longest_is_forgotten_first(monkeypatch):
    monkeypatch.setattr(question_book, "ENDED", 2)
    it = make(*"abcd")
    for now, (who, question) in enumerate(zip(["ann", "bob", "ann", "cem"], "abcd", strict=True)):
        it.answered(question, who, True, now)
    assert it.undo("bob", 9) is None
    assert it.undo("ann", 9) == Given("c", True, 2)


# --- everything at once -----------------------------------------------------------------------------------------------

QUESTIONS = st.sampled_from("abcdef")
WHO = st.sampled_from(["ann", "bob", "cem"])


class Machine(RuleBasedStateMachine):
    """A book, and a twin: the open questions, what each annotator holds, and all answers since each was opened."""

    @initialize()
    def start(self):
        self.book, self.now = QuestionBook(LEASE), 0
        self.on = {}  # the open questions, in the order of coming: when each was asked
        self.leases = {}  # by question: who and until when, also when it is over
        self.answers = {}  # by question that was ever there: who said what when, since it came last

    def put(self, question, asked):
        self.on[question] = asked
        self.answers[question] = []

    def take(self, question):
        self.on.pop(question, None)
        self.leases.pop(question, None)

    def holding(self, question):
        return self.answers[question][-1][1] if self.answers[question] else None

    @rule(by=st.integers(0, LEASE))
    def wait(self, by):
        self.now += by

    @rule(question=QUESTIONS, asked=st.integers(0, 3))
    def add(self, question, asked):
        if question not in self.on:
            self.put(question, asked)
        self.book.add(question, asked)

    @rule(question=QUESTIONS)
    def withdraw(self, question):
        self.take(question)
        self.book.withdraw(question)

    @rule(who=WHO)
    def release(self, who):
        self.leases = {question: lease for question, lease in self.leases.items() if lease[0] != who}
        self.book.release(who)

    @rule(who=WHO, to=WHO)
    def pass_on(self, who, to):
        held = {name: question for question, (name, _) in self.leases.items()}
        question = held.pop(who, None)
        self.leases = {question: lease for question, lease in self.leases.items() if lease[0] != who}
        if question is not None and to not in held and all(name != to for name, _, _ in self.answers[question]):
            self.leases[question] = (to, self.now + LEASE)
        self.book.pass_on(who, to, self.now)

    @rule(who=WHO)
    def hand_out(self, who):
        held = [question for question, lease in self.leases.items() if lease[0] == who]
        free = [q for q in self.on if q not in self.leases or self.leases[q][1] <= self.now]
        expected = held[0] if held else min(free, key=self.on.get, default=None)
        assert self.book.assign(who, self.now) == expected
        if expected is not None:
            self.leases[expected] = (who, self.now + LEASE)

    @rule(question=QUESTIONS, who=WHO, y=st.booleans())
    def answer(self, question, who, y):
        outcome = self.book.answered(question, who, y, self.now)
        if question not in self.answers:
            assert outcome == "unknown"
            return
        said = [given for given in self.answers[question] if given[0] == who]
        holds = self.holding(question)
        if (said and said[-1][1] == y) or holds == y:
            assert outcome == "repeated"
        else:
            assert outcome == ("first" if holds is None else "changed")
        self.take(question)
        if not said or said[-1][1] != y:
            self.answers[question].append((who, y, self.now))

    @rule(who=WHO)
    def undo(self, who):
        """Only what the person said last, and only while it holds: the details are above."""
        given = self.book.undo(who, self.now)
        if given is None:
            return
        question, y, time = given
        assert question not in self.on
        assert self.holding(question) == y
        assert (who, y, time) in self.answers[question]
        assert self.now - time <= 60_000
        newest = [t for answers in self.answers.values() for name, _, t in answers if name == who]
        assert time == max(newest)
        self.leases = {q: lease for q, lease in self.leases.items() if lease[0] != who}
        asked = next(card.asked for name, card in self.book._open.items() if name == question)
        self.put(question, asked)
        self.leases[question] = (who, self.now + LEASE)

    @invariant()
    def nobody_has_two_questions_and_no_question_is_with_two_people(self):
        holders = {question: lease[0] for question, lease in self.leases.items()}
        assert len(set(holders.values())) == len(holders)
        assert {question: who for who, question in self.book._held.items()} == holders
        assert len(self.book) == len(self.on)
        assert holders.keys() <= self.on.keys()


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
