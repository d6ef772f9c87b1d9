"""What a model was made with stays: an attribute that is set later changes nothing, is told, and is never saved."""

import numpy as np
import pytest

from streamsvm import (
    LASVM,
    LASVMG,
    LASVMI,
    LASVMNC,
    AutoLASVM,
    FullSVM,
    OneVsOne,
    OneVsRest,
    StreamWarning,
    WarmupScaler,
)
from streamsvm.active import ActiveLearner
from streamsvm.estimators.learners import LEARNERS
from streamsvm.validation import StreamingKFold, StreamingLOO

MODELS = [
    *(learner() for learner in (LASVM, LASVMG, LASVMNC, LASVMI, FullSVM, AutoLASVM)),
    OneVsRest(LASVM()),
    OneVsRest(AutoLASVM()),
    OneVsOne(LASVM(), classes=["a", "b"]),
    StreamingLOO(LASVM()),
    StreamingKFold(LASVM()),
    ActiveLearner(LASVM(), seed=1),
    WarmupScaler(),
]


def parameters_of():
    return [(model, name) for model in MODELS for name in model._get_params()]


def test_all_learners_are_tried():
    assert set(LEARNERS.values()) <= {type(model) for model in MODELS}


@pytest.mark.parametrize(
    ("model", "name"), parameters_of(), ids=lambda value: value if isinstance(value, str) else type(value).__name__
)
def test_a_parameter_stays_and_says_so(model, name):
    before = getattr(model, name)
    with pytest.warns(
        StreamWarning, match=rf"(?s){name} stays .*, and 'other' is not used: .* this {type(model).__name__}"
    ):
        setattr(model, name, "other")
    assert getattr(model, name) is before
    with pytest.raises(AttributeError):
        delattr(model, name)
    setattr(model, name, before)
    assert getattr(model, name) is before


def test_what_is_saved_is_what_learned():
    X = np.random.default_rng(0).normal(size=(60, 2))
    model = LASVM(gamma=1.0)
    model.learn_many(X, X[:, 0] > 0)
    with pytest.warns(StreamWarning, match=r"make another one with clone\({'gamma': 0.1}\), and learn"):
        model.gamma = 0.1
    again = LASVM.from_bytes(model.to_bytes())
    assert np.array_equal(again.decision_function_many(X), model.decision_function_many(X))
    assert (again.gamma, model.clone({"gamma": 0.1}).gamma) == (1.0, 0.1)


def test_a_class_of_your_own_may_set_what_is_its_own():
    class Mine(LASVM):
        def __init__(self, C=2.0, name="a"):
            super().__init__(C)
            self.name = name

    model = Mine()
    model.name = "b"
    assert (model.C, model.name) == (2.0, "b")
    with pytest.warns(StreamWarning, match=r"C stays 2\.0"):
        model.C = 3.0
    assert model.C == 2.0
