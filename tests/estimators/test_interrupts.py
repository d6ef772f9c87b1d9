"""Learning that is interrupted: the model has learned the examples before, whole, and goes on as any other.

Python looks for signals after calls, at the start of functions and in loops.  The first tests raise KeyboardInterrupt
at these places, one after the other; the last one leaves it to the clock.
"""

import copy
import dis
import functools
import itertools
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import streamsvm
from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsOne, OneVsRest
from streamsvm.core import storage
from streamsvm.core.scaling.state import DUE
from streamsvm.estimators.learner.state import rescale_if_due
from tests.helpers.states import state_of

OURS = str(Path(streamsvm.__file__).parent)
PLACES = ("CALL", "RESUME", "JUMP_BACKWARD", "FOR_ITER")
AT_MOST = 40  # places of one call that are tried
MODELS = {
    "LASVM": LASVM(C=2.0, gamma=0.3),
    "G": LASVMG(C=2.0, gamma=0.3, clean_every=20, max_non_sv=5),
    "NC": LASVMNC(C=2.0, gamma=0.3, ramp_warmup=20),
    "I": LASVMI(C=2.0, gamma=0.3, ramp_warmup=20),
    "FULL": FullSVM(C=2.0, gamma=0.3),
    "budget": LASVM(C=2.0, gamma=0.3, budget=20, on_budget="project"),
    "window": LASVM(C=2.0, gamma=0.3, window=30, budget=25, reservoir=20),
    "reservoir": LASVM(C=2.0, gamma=0.3, reservoir=14),
    "scaled": LASVM(C=2.0),
    "scaled, window": LASVMG(C=2.0, window=30, budget=25),
    "classes": OneVsRest(LASVM(C=2.0, gamma=0.3)),
    "auto": AutoLASVM(),
    "classes, auto": OneVsRest(AutoLASVM()),
    "classes, budget": OneVsRest(FullSVM(C=2.0, gamma=0.3, budget=20)),
    "classes, scaled": OneVsRest(LASVM(C=2.0)),
    "pairs": OneVsOne(LASVM(C=2.0, gamma=0.3)),
    "pairs, window": OneVsOne(LASVMG(C=2.0, gamma=0.3, window=40, budget=25)),
    "pairs, scaled": OneVsOne(LASVM(C=2.0)),
}


class Interrupted(KeyboardInterrupt):
    pass


class Interrupting:
    """Within, the n-th place of our own Python code raises; afterwards, `passed` tells how many places there were."""

    def __init__(self, n=None):
        self.n, self.passed = n, 0
        self._before = {}

    def __enter__(self):
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _call(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._step

    def _step(self, frame, event, argument):
        if event == "opcode":
            before = self._before.get(frame, "RESUME")
            self._before[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before.startswith(PLACES):
                self.passed += 1
                if self.passed == self.n:
                    raise Interrupted
        return self._step


def stream(model, n=60, seed=0):
    """Rows, with new features now and then, and labels.  The values grow for a model that scales its features."""
    rng = np.random.default_rng(seed)
    X = np.zeros((n, 8 + 3 * n))
    X[:, :3] = rng.normal(size=(n, 3))
    X[np.arange(n), 8 + rng.integers(0, 3 * n, n)] = 1.0
    values = X[:, 0] + X[:, 1] ** 2
    if state_of(model).scale.sets_gamma:
        X[:, :3] *= 1.05 ** np.arange(n)[:, None]
    return X, np.digitize(values, [0.0, 1.5]).tolist() if isinstance(model, OneVsRest | OneVsOne) else values > 0.7


FORMS = {
    "one": None,
    "one without an id": None,
    "array": lambda X: X,
    "sparse": sp.csr_matrix,
    "dicts": lambda X: [{f"f{d}": x[d] for d in np.flatnonzero(x)} for x in X],
}


def said_of(model, number):
    """What the model may have said of an example, if its number is odd: such labels came late."""
    f = number % 11 / 2 - 2.0
    if isinstance(model, OneVsOne):
        return dict.fromkeys(itertools.combinations(range(3), 2), f) if number % 2 else None
    by_class = isinstance(model, OneVsRest)
    return None if number % 2 == 0 else dict.fromkeys(range(3), f) if by_class else float(f)


def learn(model, form, X, y, ids):
    if not len(y):
        return
    margins = [said_of(model, number) for number in ids]
    if form == "one without an id":
        for x, label in zip(FORMS["dicts"](X), y, strict=True):
            model.learn_one(x, label)
    elif form == "one":
        for x, label, number, margin in zip(FORMS["dicts"](X), y, ids, margins, strict=True):
            model.learn_one(x, label, id=number, margin=margin)
    else:
        model.learn_many(FORMS[form](X), y, ids=ids, margins=margins)


class Expected:
    """Models that were not interrupted."""

    def __init__(self, blank, form, X, y, ids):
        self.given = form, X, y, ids
        self.names = [f"f{d}" for d in range(X.shape[1] + 5)]
        named = FORMS[form] is None or form == "dicts"
        self.query = [dict.fromkeys(self.names, 1.0)] * 3 if named else np.ones((3, len(self.names)))
        self.after = functools.cache(lambda n: self.go_on(blank.clone(), 0, n))
        self.end = self.go_on(blank.clone(), 0, len(y))

    def go_on(self, model, begin, end):
        form, X, y, ids = self.given
        learn(model, form, X[begin:end], y[begin:end], ids[begin:end])
        return self.state(model)

    def state(self, model):
        renew(model)  # which may be all that was missing
        return np.asarray(model.decision_function_many(self.query)).tolist(), model.digest()

    def check(self, model):
        """Nothing but the first `n_seen` examples was learned; with the others it becomes what it would have been."""
        model.predict_one(dict.fromkeys(self.names, 1.0))
        assert self.state(model) == self.after(model.n_seen)
        assert self.go_on(model, model.n_seen, len(self.given[2])) == self.end


def places(call, model):
    """Numbers of places in a call, the last one among them: there the example has been learned."""
    own = copy.deepcopy(model)
    with Interrupting() as counting:
        call(own)
    return range(counting.passed, 0, -(counting.passed // AT_MOST + 1))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "form"),
    [
        *itertools.product(MODELS, ("one", "sparse")),
        *itertools.product(("auto", "classes, auto"), ("one without an id",)),
        ("LASVM", "array"),
        ("LASVM", "dicts"),
    ],
)
def test_learning_that_is_interrupted_anywhere(name, form):
    model = MODELS[name]
    X, y = stream(model)
    ids = np.arange(60) + 1000
    ids[[30, 45, 50]] = ids[[3, 29, 49]]  # these replace others, if they are members
    first = 48 if FORMS[form] is None else 20
    begun = model.clone()
    learn(begun, form, X[:first], y[:first], ids[:first])
    last = first + 2 if FORMS[form] is None else 60
    interruptions, expected = 0, Expected(model, form, X, y, ids)

    def call(m):
        learn(m, form, X[first:last], y[first:last], ids[first:last])

    for n in places(call, begun):
        interrupted = copy.deepcopy(begun)
        try:
            with Interrupting(n):
                call(interrupted)
        except Interrupted:
            interruptions += 1
            assert first <= interrupted.n_seen <= last
            expected.check(interrupted)
    assert interruptions > 10


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["LASVM", "G", "window", "reservoir", "classes", "classes, budget", "pairs", "auto", "classes, auto"]
)
def test_a_correction_that_is_interrupted_is_made_or_not(name):
    X, y = stream(MODELS[name])
    begun = MODELS[name].clone()
    learn(begun, "array", X, y, np.arange(60))
    number = int(begun.support_ids[-3])
    corrected = copy.deepcopy(begun)
    right = (y[number] + 1) % 3 if hasattr(begun, "labels") else not y[number]
    corrected.relabel(number, right)
    outcomes = {begun.digest(), corrected.digest()}
    found = set()
    for n in places(lambda m: m.relabel(number, right), begun):
        model = copy.deepcopy(begun)
        try:
            with Interrupting(n):
                model.relabel(number, right)
        except Interrupted:
            found.add(model.digest())
            model.predict_many(X)
    assert found == outcomes


def renew(model):
    """Take the running scale into use."""
    model._rescale_if_due() if hasattr(model, "_rescale_if_due") else rescale_if_due(model._state)


@pytest.mark.parametrize("name", ["scaled", "scaled, window", "classes, scaled", "pairs, scaled", "classes, auto"])
def test_a_renewal_that_is_interrupted_is_made_or_not(name):
    X, y = stream(MODELS[name])
    begun = MODELS[name].clone()
    learn(begun, "array", X, y, np.arange(60))
    state_of(begun).scale.state.counts[DUE] = 1
    renewed = copy.deepcopy(begun)
    renew(renewed)
    outcomes = {str(model.decision_function_many(X)): model for model in (begun, renewed)}
    assert len(outcomes) == 2
    found = set()
    for n in places(renew, begun):
        model = copy.deepcopy(begun)
        try:
            with Interrupting(n):
                renew(model)
        except Interrupted:
            found.add(str(model.decision_function_many(X)))
            renew(model)
        assert model.digest() == renewed.digest()
    assert found
    assert found <= set(outcomes)


@pytest.mark.parametrize("name", ["LASVM", "classes", "pairs"])
def test_no_memory_for_new_features(name, monkeypatch):
    """The columns of the examples that there was no room for are taken back."""
    model = MODELS[name].clone()
    X, y = stream(model)
    learn(model, "sparse", X[:20], y[:20], np.arange(20))
    digest = model.digest()

    def none_left(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(storage.room, "more_features", none_left)
        with pytest.raises(MemoryError):
            model.learn_many(np.ones((5, 5000)), y[:5])
        with pytest.raises(MemoryError):
            model.learn_one(dict.fromkeys(range(5000), 1.0), y[0])
    assert model.digest() == digest
    model.predict_one(dict.fromkeys(range(5000), 1.0))
    model.predict_many(np.ones((20, 5000)))
    Expected(MODELS[name], "sparse", X, y, np.arange(60)).check(model)


def test_features_beyond_the_room_are_never_handed_to_compiled_code():
    model = LASVM()
    model.learn_many(np.eye(3), [True, False, True])
    model._features.columns |= {f"new {d}": 3 + d for d in range(5000)}
    model._features.n_kept = len(model._features)
    for call in (model.predict_one, lambda x: model.predict_many([x])):
        with pytest.raises(AssertionError, match="5003 features, but room for 4"):
            call({0: 1.0})


@pytest.mark.long
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("name", ["LASVM", "window", "classes", "pairs", "auto"])
def test_learning_that_is_interrupted_at_some_moment(name):
    model = MODELS[name]
    X, y = stream(model, 400)
    ids = np.arange(400)
    learn(model.clone(), "sparse", X[:50], y[:50], ids[:50])

    def interrupt(*_):
        raise Interrupted

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        expected = Expected(model, "sparse", X, y, ids)
        for trial in range(12):
            interrupted = model.clone()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.0005 * 1.5**trial)
                learn(interrupted, "sparse", X, y, ids)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupted:
                expected.check(interrupted)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
