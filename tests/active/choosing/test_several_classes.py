"""Questions among several classes: rare classes first, rules that each class must satisfy, and pools."""

import json

import numpy as np
import pandas as pd
import pytest

from streamsvm import LASVM, OneVsOne, OneVsRest, WarmupScaler
from streamsvm.active import (
    ActiveSelection,
    AllOf,
    Answer,
    Answered,
    AnyOf,
    ArrayPool,
    Audited,
    EachClass,
    LabellingLoop,
    MarginExhausted,
    MaxLabels,
    MixedSelection,
    RandomSelection,
    label_pool,
    margins,
)
from streamsvm.active.choosing.decisions import guesses
from streamsvm.active.choosing.stopping import inherited_state

CENTRES = {"a": (0.0, 0.0), "b": (3.0, 0.0), "c": (0.0, 3.0), "rare": (3.0, 3.0)}


def examples(n, shares, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(list(CENTRES), n, p=shares)
    return np.array([CENTRES[label] for label in y]) + 0.8 * rng.normal(size=(n, 2)), y


def taught(kind=OneVsRest, n=120):
    """A model that knows few examples of the class "rare"."""
    X, y = examples(n, [0.4, 0.3, 0.27, 0.03], seed=1)
    model = kind(LASVM(C=10.0, gamma=0.5), classes=list(CENTRES))
    model.learn_many(X, y)
    return model


SELECTIONS = [
    lambda first: ActiveSelection(59, rare_first=first),
    lambda first: ActiveSelection(None, rare_first=first),
    lambda first: MixedSelection(1.0, 0.0, 0.0, rare_first=first),
]


@pytest.mark.parametrize("kind", [OneVsRest, OneVsOne])
@pytest.mark.parametrize("selection", SELECTIONS, ids=["some", "all", "mixed"])
def test_a_rare_class_is_asked_about_more_often_and_near_its_own_boundary(kind, selection):
    model = taught(kind)
    X, _ = examples(600, [0.25] * 4, seed=2)
    pool, asked = ArrayPool(X), {}
    for first in (False, True):
        chosen = [selection(first).choose(pool, model, np.random.default_rng(i)) for i in range(60)]
        assert all(choice.margin < 1.0 for choice in chosen)
        values = model.decision_function_many(X[[choice.key for choice in chosen]])
        two_best = np.argsort(values, axis=1)[:, -2:]
        asked[first] = (two_best == model.labels.index("rare")).any(axis=1).sum()
    assert asked[True] > 30
    assert asked[True] > asked[False] or asked[False] == 60


def test_class_counts_are_those_of_the_examples():
    X, y = examples(80, [0.4, 0.3, 0.2, 0.1])
    for kind in (OneVsRest, OneVsOne):
        model = kind(LASVM())
        model.learn_many(X, y)
        assert model.class_counts == {label: int((y == label).sum()) for label in model.labels}


def test_two_classes_have_no_rare_one_among_several():
    model = LASVM()
    model.learn_many(np.array([[-1.0], [1.0]]), [False, True])
    with pytest.raises(ValueError, match="rare_first=True needs a model of several classes"):
        ActiveSelection(rare_first=True).choose(ArrayPool(np.eye(3, 1)), model, np.random.default_rng(0))


def test_outside_the_margin_the_least_certain_of_some_class_is_asked_about():
    X, _ = examples(300, [0.25] * 4, seed=2)
    model = taught()
    X = X[margins(model, X) >= 1.0]
    assert len(X) >= 8
    choices = [MixedSelection().choose(ArrayPool(X), model, np.random.default_rng(i)) for i in range(40)]
    assert {choice.reason for choice in choices} == {"boundary", "novel", "audit"}


@pytest.mark.parametrize("model", [OneVsRest(LASVM(C=10.0)), WarmupScaler() | OneVsRest(LASVM(C=10.0))])
def test_a_pool_of_several_classes_is_labelled(model):
    X, y = examples(400, [0.4, 0.3, 0.25, 0.05], seed=3)
    steps = list(label_pool(model, X, y.__getitem__, selection=MixedSelection(rare_first=True), stopping=MaxLabels(60)))
    assert len(steps) == 60
    assert {step.y for step in steps} == set(CENTRES)
    assert all(type(step.y) is str for step in steps)
    rows = [dict(enumerate(x)) for x in X.tolist()]
    assert np.mean([model.predict_one(x) == label for x, label in zip(rows, y, strict=True)]) > 0.85


def test_pairs_of_classes_have_a_margin():
    X, _ = examples(200, [0.25] * 4, seed=2)
    model = taught(OneVsOne)
    classes, pairs = model.labels, model.pair_values_many(X)
    expected = []
    for row, guess in zip(pairs, guesses(model, X), strict=True):
        against = dict(zip(model.pairs, row, strict=True))
        of = {k: [f if k == pair[0] else -f for pair, f in against.items() if k in pair] for k in classes}
        second, best = sorted(min(values) for values in of.values())[-2:]
        expected.append(0.5 * (best - second))
        assert best < 0.0 or best == min(of[guess])
    np.testing.assert_allclose(margins(model, X), expected)
    assert margins(model, X).max() > 1.0


def test_the_guess_is_that_of_the_whole_pipeline():
    X, y = examples(300, [0.4, 0.3, 0.25, 0.05], seed=4)
    X = X * [1.0, 1000.0] + [0.0, 5000.0]
    model = WarmupScaler() | OneVsRest(LASVM(C=10.0))
    for x, label in zip(X.tolist(), y, strict=True):
        model.learn_one(dict(enumerate(x)), label)
    assert guesses(model, X) == [model.predict_one(dict(enumerate(x))) for x in X.tolist()]


def test_a_pool_of_several_classes_may_be_a_dataframe():
    X, y = examples(200, [0.4, 0.3, 0.25, 0.05], seed=3)
    steps = label_pool(OneVsRest(LASVM(C=10.0)), pd.DataFrame(X), y.__getitem__, stopping=MaxLabels(20))
    assert [step.y for step in steps]


@pytest.mark.parametrize("bad", [True, 1.5, b"a"])
def test_a_label_of_several_classes_is_a_string_or_an_integer(bad):
    with pytest.raises(ValueError, match="must be a string or an integer"):
        list(label_pool(OneVsRest(LASVM()), np.eye(3), lambda key: bad))


# ------------------------------------------------------------------------------------------------------ stopping rules


def answer(rule, *classes, margin=2.0, is_right=True, reason="audit"):
    about = {"reason": reason, "n_support": 9, "n_labels": 20, "n_offered": 100}
    rule.observe(Answered(margin=margin, y=is_right, classes=classes, **about))


@pytest.mark.parametrize("rule", [Audited(calm=12), MarginExhausted(pool=4)], ids=["audited", "margin"])
def test_a_common_class_does_not_hide_a_rare_one(rule):
    both = rule & EachClass(calm=3)
    answer(both, "rare", "common", is_right=False)
    for _ in range(20):
        answer(both, "common", reason="boundary")
    for _ in range(20):
        answer(both, "common")
    assert rule.verdict().stop
    assert not both.verdict().stop
    assert "rare (0)" in both.verdict().why
    assert "common" not in both.verdict().why.split("each class")[1]
    for n in range(3):
        assert f"rare ({n})" in both.verdict().why
        answer(both, "rare")
    assert both.verdict().stop
    answer(both, "rare", margin=0.5)
    assert not both.verdict().stop


def test_an_answer_counts_for_the_class_that_was_predicted_too():
    rule = EachClass(calm=2)
    for label in ("a", "b", 7):
        answer(rule, label)
        answer(rule, label)
    assert rule.verdict().stop
    answer(rule, "a", 7, is_right=False)
    assert rule.verdict().why.endswith(": 7 (0), a (0)")


@pytest.mark.parametrize("selection", [MixedSelection(), ActiveSelection(), RandomSelection()], ids=repr)
@pytest.mark.parametrize("kind", [OneVsRest, OneVsOne])
def test_a_class_with_few_examples_does_not_hold_back_for_ever(kind, selection):
    X, y = examples(400, [0.5, 0.25, 0.25, 0.0], seed=5)
    X[:4], y[:4] = [[6.0, 6.0], [6.1, 6.0], [6.0, 6.1], [6.1, 6.1]], "rare"
    keep = (np.abs(X - [CENTRES[label] for label in y]) < 0.9).all(axis=1)  # the classes lie apart
    keep[:4] = True
    X, y = X[keep], y[keep]
    model, rule = kind(LASVM(C=100.0, gamma=0.5), classes=list(CENTRES)), Audited(calm=10) & EachClass(calm=10)
    steps = label_pool(model, X, y.__getitem__, selection=selection, stopping=rule, initial=[0], tune_gamma=0)
    asked = [step.y for step in steps]
    verdict = rule.verdict()
    assert verdict.stop
    assert len(asked) < len(X)
    assert asked.count("rare") == 4  # the loop asks about the few that there are
    assert "but no example is left of: rare " in verdict.why
    assert rule.waits_for() == ()


def test_only_a_class_that_nothing_else_waits_for_decides_the_next_question():
    rule = (Audited(calm=2) & EachClass(calm=3)) | MaxLabels(50)
    answer(rule, "rare", is_right=False)
    assert rule.waits_for() == ()  # the other rule waits too
    answer(rule, "common")
    answer(rule, "common")
    assert rule.waits_for() == ("rare", "common")
    rule.used_up("common")
    rule.used_up("rare")
    assert rule.verdict().stop
    assert "no example is left of: rare (0), common (2)" in rule.verdict().why
    answer(rule, "rare")  # there was one after all
    assert rule.waits_for() == ("rare",)


def test_an_open_question_about_a_class_is_waited_for():
    X, y = examples(60, [0.5, 0.5, 0.0, 0.0], seed=6)
    model = OneVsRest(LASVM(C=100.0, gamma=0.5), classes=["a", "b"])
    model.learn_many(X, y)
    rule = EachClass(calm=1)
    answer(rule, "a")
    answer(rule, "b", is_right=False)
    only_b = X[[i for i, label in enumerate(guesses(model, X)) if label == "b"][:1]]
    loop = LabellingLoop(ArrayPool(only_b), stopping=rule, seeds=0, n_open=2, is_several=True)
    (ask,) = loop.choose(model, 0)
    assert ask.question.guess == "b"
    assert loop.choose(model, 0) == []
    assert not loop.verdict().stop
    loop.answer(Answer(0, "skip", None, "ann", 1), 9, 1)
    assert loop.choose(model, 2) == []
    assert loop.verdict().stop


def test_what_it_heard_goes_through_json_also_into_other_combinations():
    rule = AnyOf(Audited() & EachClass(), MaxLabels(50))
    for label in ("a", 7, 7):
        answer(rule, label)
    stored = json.loads(json.dumps(rule.state()))
    again = AnyOf(Audited() & EachClass(), MaxLabels(50))
    again.restore(stored)
    assert again.state() == rule.state()
    other = AnyOf(AllOf(MarginExhausted() | Audited(), EachClass()), MaxLabels(90))
    other.restore(inherited_state(other, stored, n_answered=3, n_offered=100))
    assert "7 (2)" in other.verdict().why
    assert "agreed with the model: 3 of 120" in other.verdict().why
    assert other.remaining() == 87
    plain = AnyOf(Audited(), MaxLabels(50))  # as older versions had it
    other.restore(inherited_state(other, plain.state(), n_answered=3, n_offered=100))
    assert other.remaining() == 90
    with pytest.raises(ValueError, match="calm=0"):
        EachClass(calm=0)
