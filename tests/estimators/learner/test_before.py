"""What `learn_many` says of each row before it learns it: what a loop of predictions and `learn_one` says."""

import numpy as np
import pytest

from streamsvm import LASVM, LASVMG, LASVMI, FullSVM
from streamsvm.estimators.inputs.named_rows import NamedRows
from streamsvm.estimators.learner.before import Before

MODELS = {
    "scaled": lambda: LASVM(),
    "as they come": lambda: LASVM(C=3.0, gamma=0.3, threshold="gmean"),
    "linear": lambda: LASVM(C=1.0, kernel="linear"),
    "budget": lambda: LASVM(gamma=0.3, budget=20),
    "window": lambda: LASVM(window=30),
    "lasvm-g": lambda: LASVMG(C=3.0, budget=25),
    "lasvm-i": lambda: LASVMI(pos_weight="balanced"),
    "full": lambda: FullSVM(gamma=0.2),
}


def a_stream(n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(2.0, [1.0, 5.0, 0.1], size=(n, 3))
    y = ((x[:, 0] - 2.0) * (x[:, 1] - 2.0) > 0) != (rng.random(n) < 0.1)
    ids = np.where(rng.random(n) < 0.1, rng.integers(0, 20, n), np.arange(n))  # some come again
    return NamedRows.of([dict(zip("abc", row, strict=True)) for row in x.tolist()]), y, rng.integers(0, 3, n) / 2, ids


@pytest.mark.parametrize("cut", [1, 7, 60])
@pytest.mark.parametrize("name", MODELS)
def test_it_is_what_a_loop_says_to_the_bit(name, cut):
    rows, y, w, ids = a_stream(180)
    fast, slow = MODELS[name](), MODELS[name]()
    for model in (fast, slow):
        model.learn_one(rows[0], bool(y[0]), 1.0, 1000)
    assert fast.foretells(rows)
    for begin in range(0, 180, cut):
        own = range(begin, min(begin + cut, 180))
        before = Before(len(own))
        fast.learn_many(rows.take(own), y[own], w=w[own], ids=ids[own], before=before)
        expected = []
        for t in own:
            margin = slow.decision_function_one(rows[t])
            expected.append((margin, slow.probability_one(margin), slow.decision_threshold))
            slow.learn_one(rows[t], bool(y[t]), w[t], int(ids[t]))
        found = zip(before.margins.tolist(), before.probabilities.tolist(), before.thresholds.tolist(), strict=True)
        assert [*found] == expected
    assert fast.digest() == slow.digest()


def test_rows_with_other_features_are_refused():
    """A new feature is taken in otherwise than it is predicted."""
    rows = a_stream(4)[0]
    model = LASVM()
    assert not model.foretells(rows)
    with pytest.raises(ValueError, match="exactly the features that the model has learned"):
        model.learn_many(rows, [True] * 4, before=Before(4))
    assert model.n_seen == 0
    model.learn_many(rows, [True, False] * 2)
    assert model.foretells(rows)
    assert not model.foretells(NamedRows.of([{"a": 1.0, "b": 2.0}] * 4))
    assert not model.foretells([*rows])
