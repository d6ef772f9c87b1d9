"""Everything that a model can do, in random sequences, after each step of which the model must be consistent.

`make bounds-test` runs this file with bounds checks in compiled code, which otherwise has none: an index out of bounds
is then an IndexError.
"""

import copy

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from river import datasets
from states import state_of

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, OneVsOne, OneVsRest
from streamsvm.core import storage
from streamsvm.core.expansion import HOLES, SLOTS
from tests.helpers.states import binaries_of

pytestmark = pytest.mark.filterwarnings("ignore:an example lacks:streamsvm.StreamWarning")

FEW = {"clean_every": 15, "max_non_sv": 5}
RAMP = {**FEW, "ramp_warmup": 20}
LEARNERS = {
    "LASVM": lambda **bounds: LASVM(C=2.0, gamma=0.3, cache_mb=0.02, **bounds),
    "LASVM, shifted": lambda **bounds: LASVM(C=2.0, gamma=2000.0, **bounds),  # for which 1 is far from 0
    "LASVM, linear": lambda **bounds: LASVM(C=0.5, kernel="linear", **bounds),
    "G": lambda **bounds: LASVMG(C=2.0, gamma=0.3, **FEW, **bounds),
    "NC": lambda **bounds: LASVMNC(C=2.0, gamma=0.3, **RAMP, **bounds),
    "I": lambda **bounds: LASVMI(C=2.0, gamma=0.3, **RAMP, **bounds),
    "FULL": lambda **bounds: FullSVM(C=2.0, gamma=0.3, **bounds),
    "LASVM, scaled": lambda **bounds: LASVM(C=2.0, cache_mb=0.02, **bounds),
    "I, scaled": lambda **bounds: LASVMI(C=2.0, **RAMP, **bounds),
    "LASVM, rare": lambda **bounds: LASVM(C=2.0, gamma=0.3, pos_weight="balanced", threshold="gmean", **bounds),
}
BOUNDS = {
    "unbounded": {},
    "remove": {"budget": 25},
    "project": {"budget": 25, "on_budget": "project"},
    "merge": {"budget": 25, "on_budget": "merge"},
    "window": {"window": 60},
}
CLASSES = ["remove", "window", "unbounded"]  # members that only one class has cannot be shared: no "merge"
N_STEPS = 30


class Trial:
    """A model that something is done to, and the random numbers that tell what."""

    def __init__(self, model, seed):
        self.model, self.rng = model, np.random.default_rng(seed)
        self.is_binary = not isinstance(model, OneVsOne | OneVsRest)
        self.n_new, self.used = 0, []

    def label(self):
        return bool(self.rng.random() < 0.4) if self.is_binary else int(self.rng.integers(3))

    def ids(self, n):
        """None, or some that are new, some that are not, and perhaps one that occurs twice."""
        if self.rng.random() < 0.4:
            return None
        new = self.rng.integers(-(2**63), 2**62, n) if self.rng.random() < 0.3 else self.rng.integers(0, 10**6, n)
        ids = np.where(self.rng.random(n) < 0.3, self.rng.choice([*self.used, 3, 4], n), new)
        self.used = [*self.used, *ids.tolist()][-50:]
        return ids

    def row(self):
        """Some known features, and perhaps a new one."""
        x = {int(d): float(self.rng.normal()) for d in self.rng.choice(12, self.rng.integers(0, 6), replace=False)}
        if self.rng.random() < 0.3:
            self.n_new += 1
            x[f"new {self.n_new}"] = 1.0
        return x

    def learn(self, X, n):
        y, w = [self.label() for _ in range(n)], self.rng.choice([0.0, 0.5, 1.0, 3.0], n)
        self.model.learn_many(X, y, w=w, ids=self.ids(n))

    # --- what may be done ---------------------------------------------------------------------------------------------

    def learn_one(self):
        for _ in range(5):
            ids = self.ids(1)
            weight = float(self.rng.choice([0.0, 0.5, 3.0]))
            self.model.learn_one(self.row(), self.label(), w=weight, id=None if ids is None else int(ids[0]))

    def learn_dense(self):
        n = int(self.rng.integers(1, 40))
        X = self.rng.normal(size=(n, int(self.rng.integers(1, 25))))
        self.learn(X, n)

    def learn_bits(self):
        n = int(self.rng.integers(1, 40))
        self.learn((self.rng.random((n, 20)) < 0.3).astype(float), n)

    def learn_sparse(self):
        n = int(self.rng.integers(1, 40))
        self.learn(sp.random(n, 3000, 0.003, format="csr", random_state=self.rng), n)

    def learn_dicts(self):
        n = int(self.rng.integers(1, 40))
        self.learn([self.row() for _ in range(n)], n)

    def forget(self):
        support = self.model.support_ids
        leaving = self.rng.choice(support, min(len(support), int(self.rng.integers(1, 6))), replace=False)
        self.model.forget([*leaving.tolist(), 12345])

    def relabel(self):
        if self.is_binary and self.model.n_support:
            self.model.relabel(self.rng.choice(self.model.support_ids, 3), self.label())

    def finish(self):
        self.model.finish(1e-3)

    def sparsify(self):
        if hasattr(getattr(self.model, "model", self.model), "sparsify"):
            self.model.sparsify()

    def predict(self):
        self.model.predict_one(self.row() | {"unknown": 1.0})
        sparse = sp.hstack([np.ones((20, 12)), sp.random(20, 5000, 0.01)], format="csr")  # none of all strange columns
        for X in (self.rng.normal(size=(20, 40)), sparse, [self.row(), {}]):
            assert np.isfinite(self.model.decision_function_many(X)).all()
            self.model.predict_proba_many(X)

    def copy(self):
        digest, kept = self.model.digest(), self.model
        self.model = copy.copy(kept)
        self.learn_dense()
        assert kept.digest() == digest
        self.model = kept

    def restore(self):
        digest = self.model.digest()
        self.model = type(self.model).from_bytes(self.model.to_bytes())
        assert self.model.digest() == digest

    STEPS = (
        *(learn_one, learn_dense, learn_bits, learn_sparse, learn_dicts) * 2,
        *(forget, relabel, finish, sparsify, predict, copy, restore),
    )


def check(model):
    """What is kept up to date is what it would be if it were computed anew."""
    if isinstance(model, OneVsOne | OneVsRest):
        for of_class in binaries_of(model).values():
            check(of_class)
        numbers, _ = model._members()
        assert set(numbers.tolist()) <= set(model._union.numbers[model._union.live_slots()].tolist())
        return
    s, live = state_of(model).expansion, storage.live_slots(state_of(model).expansion)
    alpha, y = s.alpha[live], s.y[live].astype(float)
    assert s.counts[HOLES] == s.counts[SLOTS] - len(live)
    assert ((s.lo[live] <= alpha) & (alpha <= s.hi[live])).all()
    assert np.count_nonzero(s.alpha) == np.count_nonzero(alpha)
    if isinstance(model, LASVM):
        assert abs(alpha.sum()) <= 1e-9 * (1.0 + np.abs(alpha).sum())
    X = storage.rows_of(s, live, len(model.feature_names)).toarray().astype(float)
    K = naive.gram(naive.kernel_of(model), X, X)
    rounding = 1e-4 * (1.0 + np.abs(alpha).sum() * np.abs(K).max(initial=0.0))
    np.testing.assert_allclose(s.g[live], y - K @ alpha, rtol=0, atol=rounding)


@pytest.fixture(autouse=True)
def small_matrices(monkeypatch):
    """Wide data are compressed early."""
    monkeypatch.setattr(storage.members, "WIDE_BYTES", 4 * 60_000)


def run(model, seed):
    trial = Trial(model, seed)
    for step in trial.rng.choice(len(Trial.STEPS), N_STEPS):
        Trial.STEPS[step](trial)
        check(trial.model)
    return trial.model


@pytest.mark.long
@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("name", LEARNERS)
def test_a_model_stays_consistent_whatever_is_done(name, bounds):
    model = run(LEARNERS[name](**BOUNDS[bounds]), 100 * list(LEARNERS).index(name) + list(BOUNDS).index(bounds))
    assert model.n_seen > 100


@pytest.mark.long
@pytest.mark.parametrize("bounds", CLASSES)
@pytest.mark.parametrize("several", [OneVsOne, OneVsRest])
@pytest.mark.parametrize("name", ["LASVM", "G", "FULL", "LASVM, scaled"])
def test_models_of_classes_stay_consistent_whatever_is_done(name, several, bounds):
    model = run(several(LEARNERS[name](**BOUNDS[bounds])), 1000 + CLASSES.index(bounds))
    assert model.n_seen > 100


def test_longer_streams():
    """Long enough to evict rows of the kernel cache, to widen the storage, and to fill working sets."""
    rows, labels = zip(*datasets.Bananas().take(600), strict=True)
    model = LASVM(C=316.0, gamma=0.5, cache_mb=0.1)
    for x, y in zip(rows[:500], labels, strict=False):
        model.predict_one(x)
        model.learn_one(x, y)
    model.learn_many(list(rows), list(labels))
    model.finish()
    assert np.mean(model.predict_many(list(rows)) == np.array(labels)) > 0.88


@pytest.mark.parametrize("algorithm", [LASVM, LASVMG, LASVMNC, LASVMI, FullSVM])
def test_other_kinds_of_rows_follow(algorithm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 40))
    y = X[:, 0] + X[:, 1] ** 2 > 0.7
    bounds = {"clean_every": 30} if algorithm in (LASVMG, LASVMNC, LASVMI) else {}
    model = algorithm(C=10.0, gamma=0.1, cache_mb=0.1, **bounds)
    model.learn_many(X > 0, y)
    model.learn_many(X, y)
    model.learn_many(sp.random(700, 90, density=0.1, random_state=0, format="csr"), rng.random(700) > 0.5)
    model.learn_one({0: 1.0, 77: -1.0}, False)
    model = algorithm.from_bytes(model.to_bytes())
    model.learn_many(X[:50], y[:50])
    model.finish()
    assert np.isfinite(model.decision_function_many(np.pad(X, ((0, 0), (0, 200)), constant_values=1.0))).all()


@pytest.mark.parametrize("several", [OneVsOne, OneVsRest])
@pytest.mark.parametrize("name", ["LASVM", "LASVM, scaled", "I, scaled"])
def test_models_that_lack_many_new_features_follow_those_that_learn_them(name, several):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 5)) + 7.0, rng.integers(0, 4, 300)
    model = several(LEARNERS[name]())
    model.learn_many(X, y)
    for d in range(1, 4):
        new = rng.normal(size=(100, 9 * d)) + 7.0
        model.learn_many([{(d, c): v for c, v in enumerate(x)} for x in new.tolist()], np.full(100, d))
        check(model)
