"""`explain_one`: what it names is what carries the decision, for every kernel, storage and number of classes."""

import copy
import math

import naive
import numpy as np
import pytest
import scipy.sparse as sp
from four_classes import NAMES, problem
from river import datasets

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsOne, OneVsRest
from streamsvm.conformal import ConformalClassifier
from streamsvm.core.kernels import NAMES as KERNELS

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4)) * [1.0, 100.0, 0.01, 1.0] + [0.0, 500.0, 0.0, 0.0]
Y = X[:, 0] * (X[:, 1] - 500.0) / 100.0 + 0.3 * rng.normal(size=300) > 0.0
QUERIES = [dict(zip("abcd", x, strict=True)) for x in X[250:270].tolist()]
ROWS = [dict(zip("abcd", x, strict=True)) for x in X[:250].tolist()]


def taught(model):
    model.learn_many(ROWS, Y[:250], ids=np.arange(1000, 1250))
    return model


def terms_of(model, x):
    """alpha_s k(x_s, x) by id, from what the model tells of itself."""
    vectors = model.support_vectors.toarray().astype(float)
    k = naive.gram(naive.kernel_of(model), vectors, [naive.scaled_example(model, x)])[:, 0]
    return dict(zip(model.support_ids.tolist(), (model.dual_coef * k).tolist(), strict=True))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_members_and_slopes_are_those_of_the_formula(kernel, threshold):
    model = taught(LASVM(C=1.0, kernel=kernel, scaling="standard", coef0=0.5, threshold=threshold))
    label_of = dict(zip(range(1000, 1250), Y[:250].tolist(), strict=True))
    for x in QUERIES:
        why = model.explain_one(x, n=3)
        side = 1.0 if model.predict_one(x) else -1.0
        assert (why.label, why.rival) == (side > 0, side < 0)
        assert why.margin == pytest.approx(side * (model.decision_function_one(x) - threshold))
        terms = {number: side * c for number, c in terms_of(model, x).items()}
        total = sum(map(abs, terms.values()))
        for sign, influences in ((1.0, why.members), (-1.0, why.against)):
            expected = sorted((sign * c / total for c in terms.values() if sign * c > 0.0), reverse=True)[:3]
            assert [i.share for i in influences] == pytest.approx(expected, rel=1e-3)
            for i in influences:
                assert (sign * terms[i.id] / total, label_of[i.id]) == (pytest.approx(i.share, rel=1e-3), i.label)
        expected = slopes_of(model, x, side)
        steepest = sorted(expected, key=lambda name: -abs(expected[name]))[:3]
        assert [f.name for f in why.features] == steepest, f"is the derivative of {kernel} in explain_example?"
        for f in why.features:
            assert f.slope == pytest.approx(expected[f.name], rel=1e-3, abs=1e-5)
            assert f.change == pytest.approx(-why.margin / f.slope / model.scale_of(f.name)[1])


def slopes_of(model, x, side):
    """The derivative of f by each feature as the kernel sees it, by differences."""
    z, h, found = naive.scaled_example(model, x), 1e-4, {}
    for column, name in enumerate(model.feature_names):
        step = h * (np.arange(len(z)) == column)
        difference = naive.decision_value(model, z + step) - naive.decision_value(model, z - step)
        found[name] = side * difference / (2 * h)
    return found


@pytest.mark.parametrize(
    "model",
    [LASVMG(), LASVMNC(), LASVMI(), FullSVM(), AutoLASVM(), LASVM(gamma=0.5, scaling=None), LASVM(budget=60)],
    ids=lambda model: type(model).__name__,
)
def test_every_learner_explains(model):
    taught(model)
    why = model.explain_one(QUERIES[0], n=5)
    assert why.label == model.predict_one(QUERIES[0])
    assert why.margin == abs(model.decision_function_one(QUERIES[0]))
    assert len(why.members) == len(why.against) == 5
    assert len(why.features) == 4
    assert {i.id for i in why.members + why.against} <= set(model.support_ids.tolist())
    terms = terms_of(model, QUERIES[0])
    best = max(terms, key=lambda number: terms[number] * (1 if why.label else -1))
    assert why.members[0].id == best


def test_bits_and_text_are_explained_like_columns():
    """The storage of the features changes nothing but rounding."""
    bits = (rng.random((300, 40)) < 0.3).astype(float)
    y = bits[:, :3].sum(axis=1) > 1
    wide = sp.random(600, 12_000, 0.002, format="lil", random_state=np.random.default_rng(1))
    words = np.random.default_rng(2).integers(6, size=600)
    wide[np.arange(600), words] = 1.0
    for data, labels in ((bits, y), (wide.tocsr(), words > 2)):
        model = LASVM(gamma=0.1)
        model.learn_many(data[:-1], labels[:-1])
        row = sp.csr_matrix(data[-1])
        x = dict(zip(row.indices.tolist(), row.data.tolist(), strict=True))
        x = {name: v for name, v in x.items() if name in model.feature_names}  # Others only add to distances.
        why, side = model.explain_one(x), 1.0 if model.predict_one(x) else -1.0
        terms = terms_of(model, x)
        assert why.members[0].id == max(terms, key=lambda number: side * terms[number])
        z, vectors = naive.scaled_example(model, x), model.support_vectors.toarray().astype(float)
        c = np.array([terms[number] for number in model.support_ids.tolist()])
        slopes = side * 2.0 * 0.1 * (c @ vectors - c.sum() * z)
        expected = sorted(zip(model.feature_names, slopes.tolist(), strict=True), key=lambda item: -abs(item[1]))
        assert [f.slope for f in why.features] == pytest.approx([slope for _, slope in expected[:3]], rel=1e-3)


@pytest.mark.parametrize("wrapper", [OneVsRest, OneVsOne])
@pytest.mark.parametrize("model", [LASVM(), AutoLASVM()], ids=["LASVM", "AutoLASVM"])
def test_of_several_classes_the_two_most_probable_are_compared(wrapper, model):
    if wrapper is OneVsOne and isinstance(model, AutoLASVM):
        pytest.skip("pairs take no AutoLASVM")
    features, labels = problem(n=300, d=5)
    several = wrapper(model)
    several.learn_many(features[:-5], labels[:-5], ids=np.arange(7000, 7295))
    for x in features[-5:]:
        example = dict(enumerate(x.tolist()))
        why, p = several.explain_one(example, n=2), several.predict_proba_one(example)
        assert why.label == several.predict_one(example)
        assert why.rival == sorted((c for c in NAMES if c != why.label), key=lambda c: -p[c])[0]
        if wrapper is OneVsRest:
            f = several.decision_function_one(example)
            assert why.margin == pytest.approx(f[why.label] - f[why.rival])
        else:
            pairs = several.pair_values_one(example)
            pair = (why.label, why.rival)
            assert why.margin == pytest.approx(pairs[pair] if pair in pairs else -pairs[pair[::-1]])
        for i in why.members + why.against:
            assert i.label in (labels[i.id - 7000], None)
        assert len(why.features) == 2


def test_removing_the_named_members_turns_decisions_and_removing_others_seldom_does():
    rows = list(datasets.Bananas().take(1300))
    model = LASVM()
    model.learn_many([x for x, _ in rows[:1000]], [y for _, y in rows[:1000]], ids=np.arange(1000))
    near = [x for x, _ in rows[1000:] if abs(model.decision_function_one(x)) < 0.5][:20]
    draw, turned = np.random.default_rng(0), {"named": 0, "random": 0}
    for x in near:
        why = model.explain_one(x)
        same_side = model.support_ids[(model.dual_coef > 0.0) == why.label]
        for kind, ids in (("named", [i.id for i in why.members]), ("random", draw.choice(same_side, 3, replace=False))):
            without = copy.deepcopy(model)
            without.forget(ids)
            turned[kind] += without.predict_one(x) != why.label
    assert turned["named"] >= 0.39 * len(near)
    assert turned["named"] >= 3 * turned["random"]


@pytest.mark.parametrize("model", [LASVM(), OneVsRest(LASVM())], ids=lambda model: type(model).__name__)
def test_missing_features_are_explained_as_they_are_predicted(model):
    """A gap counts as the feature's mean, not as 0."""
    taught(model)
    for x in ({**QUERIES[0], "b": None}, {"a": 1.0, "c": 0.01, "d": 0.5}):
        f = model.decision_function_one(x)
        expected = abs(f) if isinstance(f, float) else abs(f[True] - f[False])
        assert model.explain_one(x).margin == pytest.approx(expected, rel=1e-6)


def test_a_classifier_that_decides_alone_explains_as_its_model():
    model = taught(LASVM())
    assert ConformalClassifier(model).explain_one(QUERIES[0], n=2) == model.explain_one(QUERIES[0], n=2)


def test_explaining_changes_nothing():
    model = taught(LASVM())
    before = model.digest()
    model.explain_one({"a": 1.0, "never seen": 5.0})
    assert model.digest() == before


def test_a_model_that_knows_nothing_names_nothing():
    why = LASVM().explain_one({"a": 1.0})
    assert (why.label, why.margin, why.members, why.features) == (False, 0.0, [], [])


@pytest.mark.parametrize("wrapper", [OneVsRest, OneVsOne])
def test_a_single_class_has_no_rival(wrapper):
    several = wrapper(LASVM())
    with pytest.raises(ValueError, match="no class yet"):
        several.explain_one({"a": 1.0})
    several.learn_many([{"a": 1.0}, {"a": 2.0}], ["low", "low"])
    why = several.explain_one({"a": 1.0})
    assert (why.label, why.rival) == ("low", None)


@pytest.mark.parametrize("n", [0, 1.5, True])
def test_a_wrong_number_is_refused(n):
    for model in (LASVM(), OneVsRest(LASVM())):
        with pytest.raises(ValueError, match=rf"n={n}"):
            model.explain_one({"a": 1.0}, n=n)


def test_a_wrong_feature_is_refused():
    model = taught(LASVM())
    with pytest.raises(ValueError, match="feature 'a' is inf"):
        model.explain_one({"a": math.inf})  # NaN is a missing value
