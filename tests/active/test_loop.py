"""The labelling loop: every rule by example, and all of them against a twin that remembers everything."""

import json
from collections import Counter
from dataclasses import asdict
from itertools import permutations

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from streamsvm.active import (
    ActiveSelection,
    Answer,
    Answered,
    ArrayPool,
    CurvePoint,
    LabellingLoop,
    MarginExhausted,
    MaxFraction,
    MaxLabels,
    MixedSelection,
    Question,
    RandomSelection,
    Refuse,
    Retract,
    SetLabel,
    StoppingRule,
    StreamPool,
    Verdict,
    Withdraw,
    missed_at_most,
)
from streamsvm.active.answers import questions

DAY = 86_400_000
GO_ON = Verdict(False, False, "go on")


class Line:
    """A model whose f(x) is x times a factor; it counts what it is asked."""

    def __init__(self, factor=1.0):
        self.factor = factor
        self.n_rows = 0

    def decision_function_many(self, X):
        self.n_rows += len(X)
        return self.factor * np.ravel(np.asarray(X, np.float64))


class Spy(StoppingRule):
    """A rule that notes what it is told, and says what it is told to."""

    def __init__(self, says=GO_ON):
        self.told = []
        self.says = says

    def observe(self, answered):
        self.told.append(answered)

    def verdict(self):
        return self.says

    def state(self):
        return {"told": [list(answered) for answered in self.told]}

    def restore(self, state):
        told = [Answered(*answered) for answered in state["told"]]
        self.told = [answered._replace(classes=tuple(answered.classes)) for answered in told]  # JSON has no tuples


MODEL = Line()


def make(xs=(0.5, -2.0, 3.0, -0.1), *, pool=None, explore=0.0, seeds=0, selection=None, **options):
    """A loop over the numbers, whose keys are their places."""
    if pool is None:
        pool = ArrayPool(np.array(xs, np.float64).reshape(-1, 1))
    return LabellingLoop(pool, selection=selection or ActiveSelection(), explore=explore, seeds=seeds, **options)


def label(key, y=True, time=0, who="ann"):
    return Answer(key, "label", y, who, time)


def retract(key, time=0, who="ann"):
    return Answer(key, "retract", None, who, time)


def ask(loop, now=0, model=MODEL):
    """What is asked next, one question."""
    (action,) = loop.choose(model, now)
    return action.question


def tell(loop, answer, now=0):
    """What becomes of an answer, if that is one action."""
    (action,) = loop.answer(answer, 0, now)
    return action


def counted(loop, **expected):
    expected = {"n_offered": 4} | expected
    return {name: n for name, n in asdict(loop.counts).items() if n} == {k: n for k, n in expected.items() if n}


# --- questions --------------------------------------------------------------------------------------------------------


def test_the_example_nearest_to_the_boundary_is_asked_about():
    loop = make()
    question = ask(loop, now=7)
    assert question == Question(question.id, 3, "boundary", -0.1, 7, 7 + DAY)
    assert loop.open_questions() == [question]
    assert loop.row(3).tolist() == [[-0.1]]
    assert counted(loop, n_asked=1, n_open=1)


def test_nothing_more_is_asked_while_enough_questions_are_open():
    loop = make(n_open=3)
    asked = [action.question.key for action in loop.choose(MODEL, 0)]
    assert asked == [3, 0, 1]
    assert loop.choose(MODEL, 1) == []
    assert tell(loop, label(0)) == SetLabel(0, True, "ann", False)
    assert ask(loop).key == 2
    assert [question.key for question in loop.open_questions()] == [3, 1, 2]


def test_nothing_is_asked_twice_and_an_empty_pool_ends_the_questions():
    loop = make()
    asked = []
    for time in range(4):
        asked.append(ask(loop).key)
        tell(loop, label(asked[-1], time=time))
    assert sorted(asked) == [0, 1, 2, 3]
    assert loop.choose(MODEL, 0) == []
    assert not loop.open_questions()


def test_to_ask_again_when_nothing_is_left_changes_nothing():
    """How often a loop is asked depends on how a stream is cut; what it asks later must not."""
    loop = make([0.5], explore=0.5, n_open=2)
    ask(loop)
    before = loop.state()
    assert loop.choose(MODEL, 0) == []
    assert loop.state() == before


def test_an_id_is_a_function_of_the_name_and_the_key():
    ids = {
        (name, question.key): question.id
        for name in ("a", "b")
        for seed in (0, 1)
        for question in [action.question for action in make(name=name, seed=seed, n_open=4).choose(MODEL, seed)]
    }
    assert len(ids) == len(set(ids.values())) == 8
    for name, key in ids:
        again = make(name=name, n_open=4, selection=ActiveSelection(2))
        again.choose(MODEL, 99)
        assert ids[name, key] in [question.id for question in again.open_questions()]


def test_until_both_classes_are_known_questions_are_random():
    loop = make(np.linspace(1, 5, 200), seeds=2, selection=ActiveSelection(None))
    answers = [True, True, True, False, True]
    asked = []
    for time, y in enumerate(answers):
        asked.append(ask(loop))
        assert asked[-1].reason == "seed"
        tell(loop, label(asked[-1].key, y, time))
    assert "4 positive, 1 negative so far" in loop.verdict().why
    tell(loop, label(199, False))  # from elsewhere
    assert ask(loop).reason == "boundary"
    assert [question.key for question in asked] != [0, 1, 2, 3, 4]
    assert all(question.margin == pytest.approx(np.linspace(1, 5, 200)[question.key]) for question in asked)


def test_seeding_begins_again_when_the_only_example_of_a_class_is_taken_back():
    loop = make(range(10), seeds=1)
    tell(loop, label(8, True))
    tell(loop, label(9, False))
    tell(loop, retract(9, 1))
    assert ask(loop).reason == "seed"


def test_a_share_of_the_questions_is_random():
    loop = make(range(1, 1001), explore=0.25, selection=ActiveSelection(None))
    reasons = Counter()
    n_first = 0
    for time in range(400):
        question = ask(loop)
        reasons[question.reason] += 1
        if question.reason == "boundary":
            n_first += question.key < 600
        tell(loop, label(question.key, time=time))
    assert set(reasons) == {"explore", "boundary"}
    assert 70 < reasons["explore"] < 130
    assert n_first == reasons["boundary"]


def test_an_audit_asks_at_random():
    loop = make(stopping=Spy(Verdict(False, True, "looking")), n_open=4)
    assert {action.question.reason for action in loop.choose(MODEL, 0)} == {"audit"}


def test_when_the_rule_stops_open_questions_are_withdrawn():
    rule = Spy()
    loop = make(stopping=rule, n_open=2)
    asked = [action.question for action in loop.choose(MODEL, 0)]
    rule.says = Verdict(True, False, "it is enough")
    assert loop.choose(MODEL, 0) == [Withdraw(question, "it is enough") for question in asked]
    assert loop.verdict() == rule.says
    assert loop.choose(MODEL, 0) == []
    assert counted(loop, n_asked=2, withdrawn=2)


def test_one_example_of_a_row_of_59_is_scored_at_a_time():
    model = Line()
    loop = make(range(1000))
    ask(loop, model=model)
    assert model.n_rows == 59


# --- offers -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def stream():
    return make(pool=StreamPool(capacity=3, expiry=100))


def test_an_example_is_offered_once(stream):
    assert stream.offer(1, [0.5], 0)
    assert not stream.offer(1, [0.7], 0)
    assert ask(stream).margin == 0.5
    assert not stream.offer(1, [0.5], 0)
    tell(stream, label(1))
    assert not stream.offer(1, [0.5], 0)
    tell(stream, label(2))
    assert not stream.offer(2, [0.5], 0)
    assert counted(stream, n_offered=1, n_asked=1, n_answered=1, n_positive=2, elsewhere=1)


def test_an_offer_that_is_too_old_is_not_asked_about(stream):
    stream.offer(1, [0.1], 0)
    stream.offer(2, [0.5], 50)
    assert ask(stream, now=100).key == 2


def test_one_that_is_gone_is_not_asked_about_and_questions_about_it_are_withdrawn():
    gone = {3, 1}
    loop = make(n_open=2, is_alive=lambda key: key not in gone)
    asked = [action.question for action in loop.choose(MODEL, 0)]
    assert [question.key for question in asked] == [0, 2]
    assert counted(loop, n_asked=2, n_open=2, gone=2)
    gone.add(2)
    assert loop.refresh(MODEL) == [Withdraw(asked[1], "the example is gone")]
    assert loop.choose(MODEL, 0) == []


# --- answers ----------------------------------------------------------------------------------------------------------


def test_a_label_closes_the_question_and_is_seen_by_the_rule_once():
    rule = Spy()
    loop = make(stopping=rule)
    ask(loop)
    assert loop.answer(label(3, False, 5), n_support=17, now=6) == [SetLabel(3, False, "ann", False)]
    assert not loop.open_questions()
    with pytest.raises(KeyError):
        loop.row(3)
    for answer in (label(3, True, 6), label(3, True, 7), retract(3, 8), label(3, False, 9)):
        loop.answer(answer, 99, 9)
    assert rule.told == [Answered(-0.1, False, "boundary", 17, 1, 4)]
    assert counted(loop, n_asked=1, n_answered=1, n_negative=1, corrected=1, retracted=1, refused=1)


def test_the_label_that_was_given_last_holds():
    loop = make()
    ask(loop)
    assert tell(loop, label(3, True, 10)) == SetLabel(3, True, "ann", False)
    assert tell(loop, label(3, True, 10, "bob")) == Refuse(3, "repeated: this label holds already")
    assert tell(loop, label(3, False, 9, "bob")) == Refuse(3, "stale: a later one holds")
    assert tell(loop, label(3, False, 10, "bob")) == SetLabel(3, False, "bob", True)
    assert tell(loop, label(3, False, 12)) == Refuse(3, "repeated: this label holds already")
    assert tell(loop, label(3, True, 11)) == Refuse(3, "stale: a later one holds")  # although 11 is later than 10
    assert counted(loop, n_asked=1, n_answered=1, n_negative=1, corrected=1, refused=4)


def test_a_retraction_and_a_label_after_it():
    loop = make()
    ask(loop)
    tell(loop, label(3, True, 1))
    assert tell(loop, retract(3, 0)) == Refuse(3, "stale: a later one holds")
    assert tell(loop, retract(3, 2, "bob")) == Retract(3, "bob")
    assert tell(loop, retract(3, 4)) == Refuse(3, "there is no label to retract")
    assert tell(loop, label(3, True, 3)) == Refuse(3, "stale: a later one holds")
    assert loop.counts.n_labels == 0
    assert tell(loop, label(3, False, 5)) == SetLabel(3, False, "ann", False)
    assert counted(loop, n_asked=1, n_answered=1, n_negative=1, retracted=1, refused=3)


def test_it_tells_which_label_holds():
    loop = make()
    ask(loop)
    assert (loop.label_of(3), loop.label_of(7)) == (None, None)
    tell(loop, label(3, True, 1))
    tell(loop, label(7, False, 1))
    assert (loop.label_of(3), loop.label_of(7)) == (True, False)
    tell(loop, retract(3, 2))
    assert loop.label_of(3) is None


def test_a_retraction_that_overtakes_its_label():
    rule = MaxLabels(1)
    loop = make(stopping=rule)
    question = ask(loop)
    assert tell(loop, retract(3, 2)) == Refuse(3, "there is no label to retract")
    assert loop.answer(label(3, True, 1), 0, 0) == [
        Withdraw(question, "its answer was retracted before it came"),
        Refuse(3, "stale: a later one holds"),
    ]
    assert rule.remaining() == 0
    assert counted(loop, n_asked=1, n_answered=1, refused=2)


def test_a_label_that_is_late_and_was_retracted_closes_nothing():
    loop = make(stopping=MaxLabels(1))
    ask(loop)
    tell(loop, Answer(3, "skip", None, "bob", 0))
    tell(loop, retract(3, 2))
    assert tell(loop, label(3, True, 1)) == Refuse(3, "stale: a later one holds")
    assert loop.remaining() == 0
    assert counted(loop, n_asked=1, n_answered=1, late=1, skipped=1, refused=2)


@pytest.mark.parametrize("status", ["skip", "ignore"])
def test_a_question_that_is_skipped_or_ignored_costs_nothing_and_is_not_asked_again(status):
    loop = make([0.1], stopping=MaxLabels(1))
    question = ask(loop)
    done = f"{status}ped" if status == "skip" else "ignored"
    assert tell(loop, Answer(0, status, None, "bob", 3)) == Withdraw(question, f"{done} by bob")
    assert tell(loop, Answer(0, status, None, "bob", 3)) == Refuse(0, "there is no open question about it")
    assert loop.choose(MODEL, 0) == []
    assert loop.remaining() == 1
    assert counted(loop, n_offered=1, n_asked=1, refused=1, **{done: 1})
    assert tell(loop, label(0)) == SetLabel(0, True, "ann", False)  # somebody else knew
    assert loop.remaining() == 0


def test_a_label_cannot_be_skipped():
    loop = make()
    ask(loop)
    tell(loop, label(3))
    assert tell(loop, Answer(3, "skip", None, "bob", 9)) == Refuse(3, "there is no open question about it")
    assert loop.counts.n_positive == 1


def test_a_label_for_what_was_not_asked_costs_nothing_and_takes_it_out_of_the_pool():
    rule = Spy()
    loop = make(stopping=rule)
    assert tell(loop, label(3)) == SetLabel(3, True, "ann", False)
    assert tell(loop, label(3, False, 1)) == SetLabel(3, False, "ann", True)
    assert tell(loop, label(77)) == SetLabel(77, True, "ann", False)
    assert ask(loop).key == 0
    assert not rule.told
    assert counted(loop, n_asked=1, n_open=1, n_positive=1, n_negative=1, elsewhere=2, corrected=1)


def test_what_is_no_answer_is_refused_loudly():
    loop = make()
    with pytest.raises(ValueError, match="status='no' is unknown"):
        loop.answer(Answer(0, "no", None, "", 0), 0, 0)
    with pytest.raises(ValueError, match="y=None of a label must be True or False"):
        loop.answer(Answer(0, "label", None, "", 0), 0, 0)
    assert counted(loop)


# --- time -------------------------------------------------------------------------------------------------------------


def test_a_question_expires_and_a_late_answer_still_counts():
    rule = MaxLabels(2)
    loop = make(stopping=rule, expiry=10)
    first = ask(loop, now=0)
    assert loop.choose(MODEL, 9) == []
    withdrawn, asked = loop.choose(MODEL, 10)
    assert withdrawn == Withdraw(first, "expired")
    assert asked.question.key == 0
    assert loop.remaining() == 2
    assert loop.answer(label(3, time=5), 0, 11) == [SetLabel(3, True, "ann", False)]
    assert loop.remaining() == 1
    assert counted(loop, n_asked=2, n_open=1, n_answered=1, n_positive=1, expired=1, late=1)


def test_an_answer_at_the_last_moment_is_not_late_and_withdraws_the_others():
    loop = make(expiry=10, n_open=2)
    first, second = (action.question for action in loop.choose(MODEL, 0))
    assert loop.answer(label(first.key), 0, 10) == [
        SetLabel(first.key, True, "ann", False),
        Withdraw(second, "expired"),
    ]
    assert counted(loop, n_asked=2, n_answered=1, n_positive=1, expired=1)


# --- the budget -------------------------------------------------------------------------------------------------------


def test_open_questions_reserve_the_budget():
    loop = make(stopping=MaxLabels(2), n_open=3)
    first, second = (action.question for action in loop.choose(MODEL, 0))
    tell(loop, label(first.key))
    assert loop.remaining() == 1
    assert loop.choose(MODEL, 0) == []
    tell(loop, Answer(second.key, "skip", None, "", 0))
    third = ask(loop)
    tell(loop, label(third.key))
    assert loop.remaining() == 0
    assert loop.verdict().stop
    assert loop.choose(MODEL, 0) == []


def test_a_late_answer_takes_the_budget_of_the_newest_question():
    loop = make(stopping=MaxLabels(2), n_open=2, expiry=10)
    first, _ = (action.question for action in loop.choose(MODEL, 0))
    *_, third, fourth = (action.question for action in loop.choose(MODEL, 10))
    tell(loop, label(first.key))
    assert loop.choose(MODEL, 11) == [Withdraw(fourth, "the label quota is spent")]
    assert loop.open_questions() == [third]


def test_a_budget_that_is_a_share_of_the_stream_grows_with_it():
    loop = make(pool=StreamPool(), stopping=MaxFraction(0.5))
    assert loop.choose(MODEL, 0) == []
    loop.offer(1, [0.1], 0)
    assert loop.remaining() == 0
    loop.offer(2, [0.2], 0)
    assert loop.remaining() == 1
    tell(loop, label(ask(loop).key))
    assert loop.choose(MODEL, 0) == []


# --- refreshing -------------------------------------------------------------------------------------------------------


def test_a_question_is_withdrawn_when_the_model_has_become_sure():
    loop = make(n_open=3)
    asked = {action.question.key: action.question for action in loop.choose(MODEL, 0)}
    assert set(asked) == {3, 0, 1}  # margins -0.1, 0.5 and -2
    assert loop.refresh(MODEL) == []
    assert loop.refresh(Line(2.0)) == [Withdraw(asked[0], "no longer needed: the model is sure")]
    assert counted(loop, n_asked=3, n_open=2, withdrawn=1)
    assert tell(loop, label(0)) == SetLabel(0, True, "ann", False)
    assert counted(loop, n_asked=3, n_open=2, n_answered=1, late=1, n_positive=1, withdrawn=1)


def test_random_questions_are_not_withdrawn():
    loop = make([0.5] * 4, n_open=4, explore=1.0)
    loop.choose(MODEL, 0)
    assert loop.refresh(Line(100.0)) == []


# --- what the people see ----------------------------------------------------------------------------------------------


def test_the_curve_says_how_often_the_model_was_right():
    loop = make([1.0, -1.1, 2.0, -2.1], selection=ActiveSelection(None))
    for n_support, y in enumerate([True, False, False, True]):
        loop.answer(label(ask(loop).key, y), n_support, 0)
    assert loop.curve() == [
        CurvePoint(1, 0, None, 1.0),
        CurvePoint(2, 1, None, 1.0),
        CurvePoint(3, 2, None, pytest.approx(2 / 3)),
        CurvePoint(4, 3, None, 0.5),
    ]


@pytest.mark.parametrize(
    ("selection", "explore", "expected"),
    [
        (MixedSelection(boundary=0.0, novel=0.0, explore=1.0), 0.0, (None, None)),  # far from the labelled examples
        (MixedSelection(boundary=0.0, novel=0.0, explore=1.0), 1.0, (1.0, None)),
        (MixedSelection(boundary=1.0, novel=0.0, explore=0.0), 0.0, (None, 1.0)),
        (ActiveSelection(None), 1.0, (1.0, None)),
        (RandomSelection(), 0.0, (1.0, None)),
    ],
)
def test_only_the_questions_about_random_examples_say_how_good_the_model_is(selection, explore, expected):
    loop = make([0.5] * 4, selection=selection, explore=explore)
    loop.answer(label(ask(loop).key, True), 0, 0)
    assert loop.curve()[-1][2:] == expected


def test_the_first_questions_do_not_say_how_good_the_model_is():
    loop = make([0.5] * 4, seeds=1)
    loop.answer(label(ask(loop).key, True), 0, 0)
    assert loop.curve()[-1][2:] == (None, None)


def test_the_curve_stays_short_and_ends_now():
    loop = make([1.0] * 1500, explore=0.5)
    for n in range(1500):
        loop.answer(label(ask(loop).key, n >= 1300), n, 0)
        points = loop.curve()
        assert len(points) <= 256
        assert points[-1][:2] == (n + 1, n)
    places = [point.n_labels for point in points[:-1]]
    assert places == list(range(8, 1497, 8))
    assert points[-1][2:] == (1.0, 1.0)
    assert points[100][2:] == (0.0, 0.0)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(questions, "ENDED", 20)
    it = make(range(200), n_open=3)
    for key in range(1000, 1100):
        tell(it, label(key))
    for _ in range(50):
        for action in it.choose(MODEL, 0):
            tell(it, label(action.question.key))
    state = it.state()
    assert len(state["closed"]) == len(state["elsewhere"]) == 20
    assert [key for key, *_ in state["elsewhere"]] == list(range(1080, 1100))
    assert tell(it, label(1000, False, 5)) == SetLabel(1000, False, "ann", False)  # forgotten
    assert tell(it, label(1099, False, 5)) == SetLabel(1099, False, "ann", True)


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("explore", -0.1),
        ("explore", 1.1),
        ("seeds", -1),
        ("n_open", 0),
        ("n_open", 1.5),
        ("expiry", 0),
        ("seeds", None),
    ],
)
def test_an_argument_out_of_range_is_named(argument, value):
    with pytest.raises(ValueError, match=f"{argument}={value!r} must be"):
        make(**{argument: value})


# --- any order --------------------------------------------------------------------------------------------------------


def test_the_order_of_arrival_matters_neither_to_labels_nor_to_the_budget():
    answers = [label(3, True, 1), label(3, False, 2, "bob"), retract(3, 3), label(3, True, 4), label(3, False, 5)]
    for n in range(1, 6):
        results = set()
        for order in permutations(answers[:n]):
            loop = make()
            ask(loop)
            held = None
            for answer in order:
                for action in loop.answer(answer, 0, 0):
                    if isinstance(action, SetLabel | Retract):
                        assert getattr(action, "is_correction", held is not None) == (held is not None)
                        held = action.y if isinstance(action, SetLabel) else None
            c = loop.counts
            results.add((held, c.n_positive, c.n_negative, c.n_answered, c.n_open, c.n_asked))
        held = [True, False, None, True, False][n - 1]
        assert results == {(held, held is True, held is False, 1, 0, 1)}


# --- checkpoints ------------------------------------------------------------------------------------------------------


def test_a_state_of_another_loop_or_rule_is_refused():
    with pytest.raises(ValueError, match="name='b': the state is that of the loop 'a'"):
        make(name="b").restore(make(name="a").state())
    with pytest.raises(ValueError, match="MaxLabels"):
        make(stopping=MaxFraction(0.5)).restore(make(stopping=MaxLabels(3)).state())


def test_what_is_lost_in_a_restart_is_left_out(stream):
    xs = {key: [key / 10] for key in range(1, 4)}
    for key, x in xs.items():
        stream.offer(key, x, 0)
    question = ask(stream)
    copy = make(pool=StreamPool(capacity=3, expiry=100))
    del xs[1], xs[2]
    copy.restore(json.loads(json.dumps(stream.state())), xs.get)
    assert copy.open_questions() == [question]
    assert copy.row(1) is None
    assert copy.refresh(Line(100.0)) == []
    tell(copy, label(1))
    assert ask(copy).key == 3


def test_in_memory_nothing_is_lost():
    """Without a function for the examples: the pool has them."""
    loop = make(np.linspace(-1, 1, 100), explore=0.5, n_open=3)
    loop.choose(MODEL, 0)
    copy = make(np.linspace(-1, 1, 100), explore=0.5, n_open=3)
    copy.restore(json.loads(json.dumps(loop.state())))
    for time in range(60):
        key = loop.open_questions()[0].key
        np.testing.assert_array_equal(copy.row(key), loop.row(key))
        assert copy.answer(label(key, key > 50, time), 0, 0) == loop.answer(label(key, key > 50, time), 0, 0)
        assert copy.choose(MODEL, time) == loop.choose(MODEL, time)
    assert copy.state() == loop.state()


# --- everything at once -----------------------------------------------------------------------------------------------

KEYS = st.integers(0, 15)
CAPACITY, EXPIRY, LIFE = 6, 20, 30
RULES = [
    lambda: None,
    Spy,
    lambda: MaxLabels(4),
    lambda: MaxFraction(0.4),
    lambda: MarginExhausted(2),
    lambda: MarginExhausted(2) | MaxLabels(9),
]


class Machine(RuleBasedStateMachine):
    """The loop, a copy that went through JSON at some moment, and a twin that keeps all that has happened."""

    @initialize(
        i=st.integers(0, len(RULES) - 1), n_open=st.integers(1, 3), seeds=st.integers(0, 1), seed=st.integers(0, 9)
    )
    def start(self, i, n_open, seeds, seed):
        self.n_open, self.seeds, self.now = n_open, seeds, 0
        self.xs, self.alive = {}, set()

        def build():
            self.parts = StreamPool(CAPACITY, LIFE), RULES[i]()
            return LabellingLoop(
                self.parts[0],
                selection=ActiveSelection(3),
                stopping=self.parts[1],
                explore=0.3,
                seeds=seeds,
                n_open=n_open,
                expiry=EXPIRY,
                seed=seed,
                is_alive=lambda key: key in self.alive,
            )

        self.build, self.loop = build, build()
        self.pool, self.rule = self.parts
        self.copy = None
        self.asked = {}  # by key: the question
        self.ended = {}  # by key: how it ended without a label
        self.answered = []  # keys of questions, as they were answered first
        self.late = 0
        self.said = {}  # by key: all labels and retractions, as they came
        self.dismissed = set()  # without having been asked about
        self.offered = set()
        self.taught = {}  # labels by the actions
        self.gone = 0

    def call(self, name, *args):
        """The same for the loop and its copy; what it returns."""
        result = getattr(self.loop, name)(*args)
        if self.copy is not None:
            assert getattr(self.copy, name)(*args) == result
            assert self.copy.state() == self.loop.state()
        return result

    def open(self):
        return {key: q for key, q in self.asked.items() if key not in self.ended and key not in self.answered}

    def expired(self, *but):
        over = [q for key, q in self.open().items() if q.expires <= self.now and key not in but]
        self.ended |= {q.key: "expired" for q in over}
        return [Withdraw(q, "expired") for q in over]

    @rule(key=KEYS, x=st.floats(-3, 3), revives=st.booleans())
    def offer(self, key, x, revives):
        if revives:
            self.alive.add(key)
        known = key in self.asked or key in self.said or key in self.dismissed or key in self.pool
        if not known:
            self.xs[key] = x
            self.offered.add(key)
            self.alive.add(key)
        before = self.loop.counts.n_offered
        assert self.call("offer", key, x, self.now) is not known
        assert self.loop.counts.n_offered == before + (not known)

    @rule(key=KEYS)
    def lose(self, key):
        self.alive.discard(key)

    @rule(by=st.integers(0, 15))
    def wait(self, by):
        self.now += by

    @rule(factor=st.sampled_from([0.3, 1.0, 3.0]))
    def choose(self, factor):
        expected = self.expired()
        actions = self.call("choose", Line(factor), self.now)
        assert actions[: len(expected)] == expected
        rest = actions[len(expected) :]
        withdrawn = [action for action in rest if isinstance(action, Withdraw)]
        questions = [action.question for action in rest[len(withdrawn) :]]
        stopped, left = self.loop.verdict().stop, self.loop.remaining()
        oldest = list(self.open().values())
        keep = 0 if stopped else len(oldest) if left is None else min(left, len(oldest))
        assert {action.question for action in withdrawn} == set(oldest[keep:])
        self.ended |= {action.question.key: "withdrawn" for action in withdrawn}
        room = 0 if stopped else max(0, min(self.n_open, self.n_open if left is None else left) - keep)
        assert len(questions) == room or (len(questions) < room and not len(self.pool))
        seeding = min(sum(self.taught.values()), sum(not y for y in self.taught.values())) < self.seeds
        for question in questions:
            self.check(question, factor)
            assert (question.reason == "seed") == seeding
            self.asked[question.key] = question

    def check(self, question, factor):
        assert question.key in self.offered
        assert question.key not in self.asked
        assert question.key not in self.said
        assert question.key not in self.dismissed
        assert question.key in self.alive
        assert question.margin == factor * self.xs[question.key]
        assert (question.asked, question.expires) == (self.now, self.now + EXPIRY)

    @rule(factor=st.sampled_from([0.3, 1.0, 3.0]))
    def refresh(self, factor):
        expected = []
        for key, question in self.open().items():
            sure = abs(question.margin) < 1 <= abs(factor * self.xs[key]) and question.reason == "boundary"
            if key not in self.alive:
                expected.append(Withdraw(question, "the example is gone"))
            elif sure:
                expected.append(Withdraw(question, "no longer needed: the model is sure"))
        assert self.call("refresh", Line(factor)) == expected
        self.ended |= {action.question.key: "withdrawn" for action in expected}

    @rule(key=KEYS, y=st.none() | st.booleans(), time=st.integers(0, 6), who=st.sampled_from(["ann", "bob"]))
    def say(self, key, y, time, who):
        """A label, or a retraction."""
        before = self.holding(key)
        self.said.setdefault(key, []).append((time, len(self.said.get(key, ())), y))
        after = self.holding(key)
        is_newest = max(self.said[key])[1] == len(self.said[key]) - 1
        question, was_open = self.asked.get(key), key in self.open()
        expected = [SetLabel(key, after, who, before is not None)] if after is not None else [Retract(key, who)]
        if before == after or not is_newest:
            expected = [Refuse(key, None)]
        if y is not None and question and key not in self.answered:
            if was_open and isinstance(expected[0], Refuse):
                expected.insert(0, Withdraw(question, "its answer was retracted before it came"))
            self.answered.append(key)
            self.late += not was_open
        expected += self.expired()
        actions = self.call("answer", Answer(key, "retract" if y is None else "label", y, who, time), 5, self.now)
        assert [a._replace(why=None) if isinstance(a, Refuse) else a for a in actions] == expected
        for action in actions:
            if isinstance(action, SetLabel):
                self.taught[key] = action.y
            elif isinstance(action, Retract):
                del self.taught[key]

    def holding(self, key):
        return max(self.said[key])[2] if key in self.said else None

    @rule(key=KEYS, status=st.sampled_from(["skip", "ignore"]))
    def dismiss(self, key, status):
        expected = [Refuse(key, "there is no open question about it")]
        if key in self.open():
            self.ended[key] = {"skip": "skipped", "ignore": "ignored"}[status]
            expected = [Withdraw(self.asked[key], f"{self.ended[key]} by bob")]
        elif key not in self.asked:
            self.dismissed.add(key)
        expected += self.expired()
        assert self.call("answer", Answer(key, status, None, "bob", self.now), 5, self.now) == expected

    @rule()
    def go_through_a_checkpoint(self):
        self.copy = self.build()
        state = self.loop.state()
        self.copy.restore(json.loads(json.dumps(state, allow_nan=False)), self.xs.get)
        assert self.copy.state() == state

    @invariant()
    def labels_are_those_that_were_given_last(self):
        held = {key: self.holding(key) for key in self.said}
        assert self.taught == {key: y for key, y in held.items() if y is not None}
        assert self.loop.counts.n_positive == sum(self.taught.values())
        assert self.loop.counts.n_labels == len(self.taught)

    @invariant()
    def accounts_are_in_order(self):
        counts, rule = self.loop.counts, self.rule
        ended = Counter(self.ended.values())
        assert [q.key for q in self.loop.open_questions()] == list(self.open())
        assert len(self.open()) == counts.n_open <= self.n_open
        assert counts.n_asked == len(self.asked)
        assert (counts.n_answered, counts.late) == (len(self.answered), self.late)
        for name in ("skipped", "ignored", "expired", "withdrawn"):
            assert getattr(counts, name) == ended[name]
        lost = counts.skipped + counts.ignored + counts.expired + counts.withdrawn
        assert counts.n_asked == counts.n_open + counts.n_answered - counts.late + lost
        if isinstance(rule, MaxLabels):
            assert self.loop.remaining() == max(0, rule.max_labels - len(self.answered))
        if isinstance(rule, Spy):
            assert [told.margin for told in rule.told] == [self.asked[key].margin for key in self.answered]

    @invariant()
    def the_pool_has_only_what_was_never_looked_at(self):
        keys = set(self.pool.keys())
        assert keys <= self.offered
        assert not keys & (self.asked.keys() | self.said.keys() | self.dismissed)


TestMachine = pytest.mark.long(Machine.TestCase)
TestMachine.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


# --- what is missed ---------------------------------------------------------------------------------------------------


def audited(n=100, n_open=30, seed=0):
    """A loop with many open random questions about examples that the model takes for negative."""
    loop = make(-np.linspace(1, 2, n), explore=1.0, selection=MixedSelection(), n_open=n_open, seed=seed)
    return loop, [action.question.key for action in loop.choose(MODEL, 0)]


def test_examples_that_were_asked_about_and_have_no_label_count_as_missed():
    loop, keys = audited()
    for key in keys[:20]:
        tell(loop, label(key, False))
    before = loop.missed()
    assert (before.n_audited, before.n_found, before.n_unlabelled) == (20, 0, 80)
    assert before.at_most == missed_at_most(70, 20, 0) + 10
    tell(loop, Answer(keys[20], "ignore", None, "ann", 0))
    assert loop.missed().n_unlabelled == 79
    tell(loop, Answer(keys[21], "skip", None, "ann", 0))
    assert loop.missed() == (missed_at_most(70, 21, 1) + 9, 21, 1, 79)
    assert loop.missed(disputed=keys[22:24]) == (missed_at_most(70, 23, 3) + 9, 23, 3, 79)
    tell(loop, label(keys[21], False))  # late
    assert loop.missed() == (missed_at_most(70, 21, 0) + 8, 21, 0, 78)
    tell(loop, retract(keys[0], time=1))
    assert loop.missed().n_unlabelled == 79
    (found, *_) = set(range(100)) - set(keys)  # a person labels it without being asked
    tell(loop, label(found, True))
    assert loop.missed() == (missed_at_most(69, 21, 0) + 9, 21, 0, 78)
    tell(loop, retract(found, time=1))
    assert loop.missed() == (missed_at_most(69, 21, 0) + 10, 21, 0, 79)
