"""Questions that want the answers of several annotators, and the majority that decides."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import LASVM
from streamsvm.active import ActiveSelection, ArrayPool, LabellingLoop, QuestionBook, majority

LEASE = 100
PEOPLE = ("ann", "bob", "cem")


def make(answers: int, *questions: str) -> QuestionBook:
    book = QuestionBook(LEASE)
    for asked, question in enumerate(questions):
        book.add(question, asked, answers)
    return book


def test_as_many_annotators_have_a_question_as_it_wants_answers():
    book = make(2, "a")
    assert [book.assign(who, 0) for who in PEOPLE] == ["a", "a", None]
    assert book.answered("a", "ann", True, 1) == "first"
    assert [book.assign(who, 2) for who in PEOPLE] == [None, "a", None]
    book.answered("a", "bob", True, 3)
    assert len(book) == 0


def test_a_lease_that_ended_makes_room_for_another_annotator():
    book = make(2, "a")
    book.assign("ann", 0)
    book.assign("bob", 50)
    assert book.assign("cem", LEASE) == "a"
    assert book.assign("ann", LEASE + 1) is None


def test_nobody_is_asked_twice_and_a_change_is_no_further_answer():
    book = make(2, "a")
    book.answered("a", "ann", True, 0)
    assert book.answered("a", "ann", False, 1) == "changed"
    assert book.assign("ann", 2) is None
    assert book.assign("bob", 2) == "a"


def test_questions_that_an_annotator_must_not_get_are_passed_over():
    book = make(1, "a", "b")
    assert book.assign("ann", 0, without={"a"}) == "b"
    assert book.assign("bob", 0, without={"a", "b"}) is None


def test_an_answer_without_a_label_counts_once():
    book = make(2, "a")
    book.assign("ann", 0)
    for _ in range(2):
        book.passed("a", "ann")
    assert book.assign("ann", 1) is None
    assert book.assign("bob", 1) == "a"
    book.passed("a", "bob")
    book.passed("a", "cem")
    assert len(book) == 0


def test_each_annotator_can_undo_while_the_question_waits_for_others():
    book = make(3, "a")
    book.answered("a", "ann", True, 0)
    book.answered("a", "bob", True, 1)
    assert book.undo("ann", 2).question_id == "a"
    assert book.assign("ann", 3) == "a"
    assert book.assign("bob", 3) is None
    book.answered("a", "cem", False, 4)
    book.answered("a", "ann", False, 5)
    assert len(book) == 0
    assert book.undo("bob", 6).y is True
    assert book.assign("bob", 7) == "a"


@given(st.lists(st.tuples(st.sampled_from(["assign", "answer", "undo", "pass"]), st.sampled_from(PEOPLE)), max_size=60))
def test_no_question_is_with_more_people_than_it_wants_or_with_one_who_answered(steps):
    book = make(2, *"abcd")
    said = {name: set() for name in "abcd"}
    has: dict[str, str | None] = dict.fromkeys(PEOPLE)
    for now, (step, who) in enumerate(steps):  # no lease ends
        if step == "undo":
            taken = book.undo(who, now)
            if taken is not None:
                said[taken.question_id].discard(who)
        elif step == "assign":
            has[who] = book.assign(who, now)
        elif has[who] is not None:
            question = has[who]
            said[question].add(who)
            if step == "answer":
                book.answered(question, who, True, now)
            else:
                book.passed(question, who)
            has[who] = None
        held = {one: question for one in PEOPLE if (question := book._held.get(one)) is not None}
        for question, n_holders in Counter(held.values()).items():
            assert n_holders + len(said[question]) <= 2
        assert not any(who in said[question] for who, question in held.items())
        assert len(book) == sum(len(people) < 2 for people in said.values())


@given(st.lists(st.sampled_from(["yes", "no", "skip"]), max_size=7), st.integers(1, 4))
def test_the_majority_is_the_single_most_frequent_word(words, least):
    counts = {word: words.count(word) for word in words}
    leading = [word for word, n in counts.items() if n == max(counts.values())]
    wanted = leading[0] if len(leading) == 1 and len(words) >= least else None
    assert majority(words, least) == wanted


@pytest.mark.parametrize("words", [[], [True, False]])
def test_no_words_and_a_tie_have_no_majority(words):
    assert majority(words) is None


# --- the loop ---------------------------------------------------------------------------------------------------------


def test_the_number_of_open_questions_may_change():
    loop = LabellingLoop(ArrayPool(np.arange(10.0)[:, np.newaxis]), n_open=3)
    assert len(loop.choose(LASVM(), 0)) == 3
    loop.n_open = 1
    assert loop.choose(LASVM(), 1) == []  # none is withdrawn
    loop.n_open = 4
    assert len(loop.choose(LASVM(), 2)) == 1


def test_a_question_that_an_annotator_has_begun_with_stays_when_the_model_is_sure():
    model = LASVM(C=10.0, gamma=1.0)
    loop = LabellingLoop(
        ArrayPool(np.array([[0.0], [0.1]])), seeds=0, explore=0.0, n_open=2, selection=ActiveSelection()
    )
    first, second = (ask.question.key for ask in loop.choose(model, 0))
    for _ in range(20):
        model.learn_many(np.array([[0.0], [3.0]]), [True, False])
    kept = loop.refresh(model, keep={first})
    assert [action.question.key for action in kept] == [second]
    assert [question.key for question in loop.open_questions()] == [first]
