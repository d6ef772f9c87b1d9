"""Learning from a pool in memory, with all five learners."""

from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, WarmupScaler
from streamsvm.active import (
    ActiveSelection,
    Ask,
    AutoActiveSelection,
    GradientSelection,
    MarginExhausted,
    MaxLabels,
    Question,
    RandomSelection,
    Refuse,
    Retract,
    SetLabel,
    SupportStable,
    Withdraw,
    carry_out,
    label_pool,
)

LEARNERS = [LASVM, LASVMG, LASVMNC, LASVMI, FullSVM]


def rings(n=600, d=3, seed=0):
    """Two classes, one inside the other."""
    X = np.random.default_rng(seed).normal(size=(n, d))
    return X, np.linalg.norm(X, axis=1) > np.sqrt(d)


X, Y = rings()


def run(model, X=X, y=Y, **options):
    return list(label_pool(model, X, lambda key: y[key], **{"stopping": MaxLabels(40)} | options))


# --- what is learned --------------------------------------------------------------------------------------------------


def test_one_iteration_for_each_question_as_in_the_source():
    """Without `finish`, the model is the one that only learned the answers, in their order."""
    model = LASVM(C=100.0, gamma=0.3, admission="all", reprocess=1)
    keys = [step.key for step in run(model, finish=False, tune_gamma=0)]
    alone = LASVM(C=100.0, gamma=0.3, admission="all", reprocess=1)
    for key in keys:
        alone.learn_many(X[[key]], Y[[key]], ids=[key])
    np.testing.assert_array_equal(model.decision_function_many(X), alone.decision_function_many(X))
    assert model.delta > model.tol
    finished = LASVM(C=100.0, gamma=0.3, admission="all", reprocess=1)
    run(finished, tune_gamma=0)
    assert finished.delta <= finished.tol


@pytest.mark.parametrize("learner", LEARNERS)
def test_the_model_is_the_one_that_learned_the_same_labels_in_the_same_order(learner):
    model = learner(C=10.0, gamma=0.3)
    steps = run(model, initial=[5, 3, 9], tune_gamma=0)
    keys = np.array([step.key for step in steps])
    assert len(set(keys.tolist())) == len(keys) == 43
    assert [step.y for step in steps] == Y[keys].tolist()
    assert [step.n_labels for step in steps] == list(range(1, 44))
    again = learner(C=10.0, gamma=0.3)
    for step in steps:
        row = X[step.key : step.key + 1]
        assert again.decision_function_many(row)[0] == step.margin
        again.learn_many(row, [step.y], ids=[step.key])
        again.finish()
        assert again.n_support == step.n_support
    assert model.digest() == again.digest()


def test_a_run_is_a_function_of_the_seed():
    runs = [run(LASVM(gamma=0.3), seed=seed) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_initial_rows_come_first_in_their_order_and_cost_nothing():
    steps = run(LASVM(gamma=0.3), initial=iter([7, 599, 0]), stopping=MaxLabels(2))
    assert [(step.key, step.reason) for step in steps[:3]] == [(7, "initial"), (599, "initial"), (0, "initial")]
    assert len(steps) == 5
    assert not {7, 599, 0} & {step.key for step in steps[3:]}


@pytest.mark.parametrize("form", [sp.csr_matrix, pd.DataFrame, "polars", "dicts", "list of lists"])
def test_every_kind_of_pool(form):
    names = ["a", "b", "c"]
    forms = {
        "polars": lambda X: pl.DataFrame(X, schema=names),
        "dicts": lambda X: [dict(zip(names, row, strict=True)) for row in X.tolist()],
    }
    if form == "list of lists":
        with pytest.raises(TypeError, match="is \\["):
            run(LASVM(), X.tolist())
        return
    assert run(LASVM(gamma=0.3), forms.get(form, form)(X)) == run(LASVM(gamma=0.3))


@pytest.mark.parametrize("form", ["array", "sparse", "frame", "dicts"])
def test_a_pipeline_learns_as_a_whole(form):
    names = ["a", "b", "c"] if form == "frame" else [0, 1, 2]
    dicts = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    forms = {"array": X, "sparse": sp.csr_matrix(X), "frame": pd.DataFrame(X, columns=names), "dicts": dicts}
    model = WarmupScaler(warmup=20) | LASVM(C=10.0, gamma=0.3)
    steps = run(model, forms[form], sample_weight=2.0)
    again = WarmupScaler(warmup=20) | LASVM(C=10.0, gamma=0.3)
    for step in steps:
        again.learn_one(dicts[step.key], step.y, w=2.0, id=step.key)
        again["LASVM"].finish()
    assert model["LASVM"].digest() == again["LASVM"].digest()
    assert model["WarmupScaler"].frozen


@pytest.mark.parametrize("model", [LASVM(), LASVM(gamma=0.5)], ids=["scaled", "unscaled"])
def test_a_pool_of_sparse_columns(model):
    X = sp.csr_matrix(np.random.default_rng(0).normal(size=(60, 3)) > 0.3, dtype=np.float64)
    y = np.asarray(X.sum(axis=1)).ravel() > 1
    chosen = [
        [step.key for step in label_pool(model.clone(), pool, y.__getitem__, stopping=MaxLabels(10), seed=0)]
        for pool in (X, pd.DataFrame.sparse.from_spmatrix(X))
    ]
    assert chosen[0] == chosen[1]


def test_weights_reach_the_model():
    weights = np.where(Y, 1.0, 0.0)
    model = LASVM(gamma=0.3)
    steps = run(model, sample_weight=weights)
    assert sum(step.y for step in steps) == model.n_members < len(steps)
    with pytest.raises(ValueError, match="w has shape"):
        run(LASVM(), sample_weight=[1.0, 2.0])


@pytest.mark.parametrize("labels", [(True, False), (1, 0), (1, -1), (np.True_, np.float32(0))])
def test_labels_in_every_usual_form(labels):
    steps = run(LASVM(gamma=0.3), y=[labels[0] if y else labels[1] for y in Y])
    assert steps == run(LASVM(gamma=0.3))
    assert {type(step.y) for step in steps} == {bool}


def test_what_is_no_label_is_refused():
    with pytest.raises(
        ValueError, match="y=2 is not a binary label; use True and False, 1 and 0, 1 and -1, or OneVsRest"
    ):
        run(LASVM(), y=[2] * len(X))


def test_a_row_that_is_skipped_costs_nothing():
    asked = Counter()

    def oracle(key):
        asked[key] += 1
        return None if key % 2 else Y[key]

    steps = list(label_pool(LASVM(gamma=0.3), X, oracle, stopping=MaxLabels(50), initial=[1, 2, 3]))
    assert [step.key for step in steps[:1]] == [2]
    assert len(steps) == 51
    assert not any(step.key % 2 for step in steps)
    assert max(asked.values()) == 1


def test_a_pool_may_be_asked_to_the_end():
    steps = run(LASVM(gamma=0.3), X[:50], stopping=None)
    assert sorted(step.key for step in steps) == list(range(50))


# --- any learner, any selection, any labels ---------------------------------------------------------------------------


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("y", [False, True])
@pytest.mark.parametrize("selection", [ActiveSelection(), ActiveSelection(None), AutoActiveSelection()])
def test_a_single_class_never_crashes(learner, y, selection):
    model = learner(C=10.0)
    steps = run(model, X[:70], [y] * 70, selection=selection, stopping=MaxLabels(69), seeds=0)
    assert len(steps) == 69
    model.finish()
    assert np.isfinite(model.decision_function_many(X)).all()


@pytest.mark.long
@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("seeds", [0, 1, 5])
def test_the_other_class_may_come_late(learner, seeds):
    y = np.zeros(len(X), bool)
    y[: len(X) // 20] = True
    model = learner(C=10.0, gamma=0.3)
    steps = run(model, y=y, seeds=seeds, stopping=MaxLabels(150), seed=1)
    if seeds:
        labels = [step.y for step in steps]
        found = np.flatnonzero(labels)[seeds - 1]  # the last of the wanted labels of the other class
        assert [step.reason for step in steps[: found + 1]] == ["seed"] * (found + 1)
        assert "boundary" in [step.reason for step in steps[found + 1 :]]
    assert np.isfinite(model.decision_function_many(X)).all()


@given(
    st.lists(st.sampled_from([True, False, None]), min_size=1, max_size=30),
    st.sampled_from(LEARNERS),
    st.sampled_from([ActiveSelection(3), ActiveSelection(None), AutoActiveSelection(2, 5), RandomSelection()]),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.integers(0, 2),
)
@settings(max_examples=40, deadline=None)
def test_every_row_is_asked_about_once_whatever_the_answers(y, learner, selection, explore, seeds):
    asked = []

    def oracle(key):
        asked.append(key)
        return y[key]

    rows = X[: len(y)]
    steps = list(label_pool(learner(), rows, oracle, selection=selection, explore=explore, seeds=seeds))
    assert sorted(asked) == list(range(len(y)))
    assert [step.key for step in steps] == [key for key in asked if y[key] is not None]


# --- whether it is any good -------------------------------------------------------------------------------------------


def rare(n=6000, seed=0):
    """One percent of positives, in a corner where there are negatives too."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.zeros(n, bool)
    y[: n // 100] = True
    X[y] = 0.3 * X[y] + 1.5
    return X, y


@pytest.mark.parametrize("learner", LEARNERS)
def test_rare_positives_are_found(learner):
    """Of 60 positives in 6000, 200 random labels would find 2."""
    X, y = rare()
    model = learner(C=10.0, gamma=0.2)
    run(model, X, y, stopping=MaxLabels(200))
    assert model.predict_many(X)[y].mean() > 0.9


def test_active_labels_are_worth_more_than_random_ones():
    X, y = rings(4000)
    wrong = {}
    for name, selection in {"active": ActiveSelection(), "random": RandomSelection()}.items():
        model = LASVM(C=100.0, gamma=0.3)
        run(model, X, y, stopping=MaxLabels(200), selection=selection)
        model.finish()
        wrong[name] = np.mean(model.predict_many(X) != y)
    assert wrong["active"] < 0.5 * wrong["random"]


def test_it_stops_when_the_rule_says_so_and_the_rule_can_say_why():
    X, y = rings(3000, 2)
    y = X[:, 0] > 0  # easy
    rule = MarginExhausted() | MaxLabels(2000)
    model = LASVM(C=100.0, gamma=0.5)
    steps = run(model, X, y, stopping=rule, explore=0.0, selection=ActiveSelection())
    assert rule.verdict().stop
    assert "random examples agree" in rule.verdict().why
    assert len(steps) < 1000
    audit = steps[-59:]
    assert {step.reason for step in audit} == {"audit"}
    assert all((step.margin > 0) == step.y and abs(step.margin) >= 1 for step in audit)
    assert all(step.reason == "boundary" and abs(step.margin) >= 1 for step in steps[-118:-59])
    assert np.mean(model.predict_many(X) == y) > 0.99


def test_the_rule_sees_the_support_vectors():
    rule = SupportStable()
    steps = run(LASVM(C=100.0, gamma=0.5), X, X[:, 0] > 0, stopping=rule)
    assert len(steps) < len(X)
    assert rule.verdict().why.startswith(f"{steps[-2].n_support} support vectors; they changed by no more than")


def test_a_selection_that_knows_the_labels():
    steps = run(LASVM(gamma=0.3), selection=GradientSelection(Y, 10), stopping=MaxLabels(100))
    wrong = [step for step in steps if step.reason == "boundary" and (step.margin > 0) != step.y]
    assert len(wrong) > 15


def test_one_label_costs_one_query_and_one_example():
    class Counting:
        """A model that learns nothing."""

        n_support = 1
        n_queries = n_rows = n_learned = 0

        def decision_function_many(self, X):
            self.n_queries += 1
            self.n_rows += len(X)
            return X[:, 0]

        def learn_many(self, X, y, w, ids):
            self.n_learned += len(X)

    model = Counting()
    assert len(run(model, stopping=MaxLabels(200), selection=ActiveSelection())) == 200
    assert (model.n_queries, model.n_learned) == (200, 200)
    assert model.n_rows <= 200 * 59


# --- corrections and retractions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [lambda model: model, lambda model: WarmupScaler() | model])
def test_what_was_learned_is_undone(wrap):
    """A pipeline's scaler keeps what it has seen."""
    learner = LASVM()
    model = wrap(learner)
    for i in range(30):
        assert carry_out(SetLabel(i, X[i, 0] > 0, "ann", False), model, pd.DataFrame(X[[i]])) is None
    wrong = not X[7, 0] > 0
    assert carry_out(SetLabel(7, wrong, "bob", True), model, pd.DataFrame(X[[7]]), 2.0) is None
    labels = dict(zip(learner.support_ids.tolist(), learner.dual_coef > 0, strict=True))
    assert labels[7] == wrong
    assert carry_out(Retract(7, "bob"), model) is None
    assert 7 not in learner.support_ids


def test_what_cannot_be_undone_is_said():
    class Stubborn:
        """A model that only learns."""

        def __init__(self):
            self.learned = []

        def learn_many(self, X, y, w, ids):
            self.learned.append((int(ids[0]), bool(y[0]), w))

    model = Stubborn()
    carry_out(SetLabel(7, True, "ann", False), model, X[:1])
    said = carry_out(SetLabel(7, False, "bob", True), model, X[:1], 2.0)
    assert said == "Stubborn cannot forget: example 7 was learned again, beside its old label"
    said = carry_out(Retract(7, "bob"), model)
    assert said == "Stubborn cannot forget: what was learned from example 7 stays in the model"
    assert model.learned == [(7, True, 1.0), (7, False, 2.0)]


def test_other_actions_change_no_model():
    model = LASVM()
    before = model.digest()
    question = Question("id", 7, "seed", 0.0, 0, 1)
    for action in (Ask(question), Withdraw(question, "why"), Refuse(7, "why")):
        assert carry_out(action, model, X[:1]) is None
    assert model.digest() == before


@pytest.mark.parametrize(
    ("initial", "what"), [([0, 99], r"initial\[1\]=99 must be the number of a row"), ([3, 3], "not repeat")]
)
def test_initial_rows_are_rows(initial, what):
    with pytest.raises(ValueError, match=what):
        label_pool(LASVM(), np.eye(5), lambda row: True, initial=initial)


def test_a_fault_in_the_features_is_found_under_its_own_number():
    X = np.eye(100)
    X[7, 3] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        label_pool(LASVM(), X, lambda row: True)
