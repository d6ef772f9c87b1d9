"""What models said, as bytes in a checkpoint."""

import pytest

from streamsvm.conformal import Decision
from streamsvm.connectors.records.predictions import ClassPrediction, Prediction
from streamsvm.connectors.records.said import answer_of, probability_of, read_said, write_said

DECISION = Decision((True,), {True: 0.9, False: 0.1}, None, (0.8, 0.9), 7)
SAID = {
    1: Prediction(0.5, 0.7, 0.5),
    -(1 << 63): Prediction(-0.25, 0.2, -0.25, DECISION, (-0.25, 1.0)),
    3: ClassPrediction("b", 0.5, {"a": -1.0, "b": 0.0, 3: -0.5}, {"a": 0.2, "b": 0.7, 3: 0.1}),
    4: ClassPrediction(None, 0.0, {}, {}),
}


def test_it_comes_back_as_it_was():
    assert read_said(write_said(SAID)) == SAID


@pytest.mark.parametrize(
    ("key", "answer", "y", "p"),
    [(1, True, True, 0.7), (-(1 << 63), True, False, 0.1), (3, "b", 3, 0.1), (4, None, "a", 0.0)],
)
def test_the_answer_is_what_was_given(key, answer, y, p):
    assert answer_of(SAID[key]) == answer
    assert probability_of(SAID[key], y) == pytest.approx(p)
