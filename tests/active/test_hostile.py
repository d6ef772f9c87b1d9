"""What is given in place of a model, a selection, a rule or an oracle: the error names it, and says what is right."""

import numpy as np
import pytest

from streamsvm import LASVM
from streamsvm.active import ActiveLearner, Audited, MixedSelection, label_pool

X = np.random.default_rng(0).normal(size=(20, 2))
Y = X[:, 0] > 0.0


@pytest.mark.parametrize(
    ("model", "oracle", "options", "message"),
    [
        (None, Y.__getitem__, {}, "model=None must be a learner such as LASVM()"),
        (LASVM, Y.__getitem__, {}, "model is the class LASVM; it must be an instance"),
        (LASVM(), Y, {}, "oracle is a ndarray; it must be a function of a row's number, such as y.__getitem__"),
        (LASVM(), Y.__getitem__, {"selection": "mixed"}, "selection is a str; it must be a selection such as"),
        (LASVM(), Y.__getitem__, {"selection": MixedSelection}, "selection is the class MixedSelection; it must be"),
        (LASVM(), Y.__getitem__, {"stopping": 100}, "stopping is a int; it must be a stopping rule such as MaxLabels"),
    ],
)
def test_label_pool_says_what_it_needs(model, oracle, options, message):
    with pytest.raises(TypeError, match="^" + message.replace("(", r"\(").replace(")", r"\)")):
        label_pool(model, X, oracle, **options)


@pytest.mark.parametrize("other", [3, None, "audited", Audited])
def test_rules_combine_with_rules_only(other):
    with pytest.raises(TypeError, match="it must be stopping rules such as"):
        Audited() | other
    with pytest.raises(TypeError, match="it must be stopping rules such as"):
        Audited() & other


def test_a_learner_that_asks_needs_a_classifier():
    with pytest.raises(TypeError, match="model=3 must be a classifier"):
        ActiveLearner(3)
