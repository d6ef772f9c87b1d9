"""When nothing contradicts the model any more, and what may still be missed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsvm import LASVM
from streamsvm.active import Answered, ArrayPool, Audited, MaxLabels, label_pool, missed_at_most
from streamsvm.active.loop import LabellingLoop


def told(rule, answers):
    for margin, y in answers:
        rule.observe(Answered(margin, y, "boundary", 5, 10, 100))
    return rule


AGREES, VIOLATES = (2.0, True), (0.5, True)


@given(st.lists(st.tuples(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0]), st.booleans())), st.integers(1, 4))
def test_it_stops_after_so_many_agreements_in_a_row(answers, calm):
    in_a_row = 0
    for margin, y in answers:
        in_a_row = in_a_row + 1 if (margin if y else -margin) >= 1.0 else 0
    verdict = told(Audited(calm), answers).verdict()
    assert verdict.stop is (in_a_row >= calm)
    assert not verdict.audit
    assert not verdict.spent


def test_a_later_violation_takes_the_stop_back():
    rule = told(Audited(2), [AGREES] * 3)
    assert rule.verdict().stop
    assert not told(rule, [VIOLATES]).verdict().stop


def test_its_state_is_all_it_knows():
    rule, again = told(Audited(3), [AGREES] * 2), Audited(3)
    again.restore(rule.state())
    assert again.verdict() == rule.verdict()
    assert told(again, [AGREES]).verdict().stop


def test_a_spent_quota_is_no_success():
    spent = told(Audited(2) | MaxLabels(1), [VIOLATES]).verdict()
    assert spent == (True, False, "1 of 1 labels are used", True)
    assert not told(Audited(1) | MaxLabels(1), [AGREES]).verdict().spent
    assert not told(Audited(2) | MaxLabels(9), [AGREES] * 2).verdict().spent


@pytest.mark.parametrize(("share", "m"), [(0.01, 59), (0.05, 120), (0.2, 30)])
def test_the_bound_holds_in_95_of_100_cases(share, m):
    rng, n = np.random.default_rng(0), 2000
    held = [missed_at_most(n, m, int(rng.binomial(m, share))) >= share * n - 1 for _ in range(400)]
    assert np.mean(held) >= 0.93


def test_the_bound():
    assert missed_at_most(1000, 0, 0) == missed_at_most(1000, 5, 5) == 1000
    assert missed_at_most(1000, 59, 0) == 49  # 1 - 0.05^(1/59)
    assert missed_at_most(1000, 59, 1) > missed_at_most(1000, 59, 0) > missed_at_most(1000, 120, 0)
    with pytest.raises(ValueError, match="n_found=3 must be at most n_audited=2"):
        missed_at_most(10, 2, 3)


def test_a_run_ends_by_itself_and_says_what_may_be_missed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 2))
    y = X[:, 0] > 1.0
    rule, model = Audited() | MaxLabels(1000), LASVM(C=100.0, gamma=0.5)
    steps = list(label_pool(model, X, y.__getitem__, stopping=rule))
    assert rule.verdict().stop
    assert not rule.verdict().spent
    assert len(steps) < 600
    assert {step.reason for step in steps[-120:]} <= {"boundary", "novel", "explore", "audit"}
    missed = int((y & ~model.predict_many(X)).sum())
    random = [step for step in steps if step.reason == "audit" and step.margin <= 0.0]
    assert missed <= missed_at_most(1500 - len(steps), len(random), sum(step.y for step in random)) < 200


def test_only_random_answers_count_for_the_bound():
    from streamsvm.active import Answer, RandomSelection, Verdict
    from streamsvm.active.choosing.stopping import StoppingRule

    class Auditing(StoppingRule):
        def observe(self, answered):
            pass

        def verdict(self):
            return Verdict(False, True, "look")

    class Negative:
        def decision_function_many(self, X):
            return np.full(len(X), -2.0)

    loop = LabellingLoop(ArrayPool(np.eye(40)), selection=RandomSelection(), stopping=Auditing(), seeds=0)
    assert loop.missed() == (None, 0, 0, 40)
    for time in range(10):
        (ask,) = loop.choose(Negative(), 0)
        assert ask.question.reason == "audit"
        loop.answer(Answer(ask.question.key, "label", time == 3, "ann", time), 0, 0)
    assert loop.missed() == (missed_at_most(30, 10, 1), 10, 1, 30)
