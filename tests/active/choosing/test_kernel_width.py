"""Gamma is chosen from the labels, by exact leave-one-out."""

import numpy as np
import pytest

from streamsvm import LASVM, LASVMG, WarmupScaler
from streamsvm.active import MaxLabels, RandomSelection, label_pool
from streamsvm.active.choosing.kernel_width import FACTORS, GammaTuner
from streamsvm.validation import leave_one_out


def checkerboard(n=600, seed=0):
    """Small squares: a kernel that is far too wide sees nothing."""
    X = 4.0 * np.random.default_rng(seed).random((n, 2))
    return X, np.floor(X).sum(axis=1) % 2 > 0


def balanced_error(model, X, y):
    result = leave_one_out(model, X, y)
    wrong = (result.decision_values > 0.0) != y
    return 0.5 * (wrong[y].mean() + wrong[~y].mean())


def test_the_best_of_four_is_chosen():
    X, y = checkerboard(120)
    tuner = GammaTuner(LASVM(C=10.0, gamma=0.25), 50)
    fresh = tuner.choose(X, y.tolist(), np.ones(120))
    errors = {0.25 * factor: balanced_error(LASVM(C=10.0, gamma=0.25 * factor), X, y) for factor in FACTORS}
    assert fresh.gamma == min(errors, key=errors.get) == 1.0
    assert tuner.choose(X, y.tolist(), np.ones(120)) is None  # it is in use already


def test_a_run_with_it_learns_what_a_wide_kernel_cannot():
    X, y = checkerboard()
    right, models = {}, {}
    for every in (0, 50):
        model = models[every] = LASVM(C=10.0, gamma=0.5)
        list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(150), tune_gamma=every))
        right[every] = np.mean(model.predict_many(X) == y)
    assert models[0].gamma == 0.5
    assert models[50].gamma == 2.0
    assert right[50] > right[0]


def test_the_model_has_learned_all_labels_again():
    X, y = checkerboard()
    model = LASVM(C=10.0, gamma=0.5)
    steps = list(label_pool(model, X, y.__getitem__, stopping=MaxLabels(60), selection=RandomSelection()))
    again, keys = LASVM(C=10.0, gamma=model.gamma), [step.key for step in steps]
    assert model.gamma != 0.5
    again.learn_many(X[keys], y[keys], ids=np.array(keys))
    again.finish()
    np.testing.assert_allclose(model.decision_function_many(X), again.decision_function_many(X), atol=0.02)
    assert model.n_seen == 60


def test_a_model_that_scales_goes_on_scaling():
    X, y = checkerboard()
    model = LASVM()
    list(label_pool(model, X * [1.0, 1000.0], y.__getitem__, stopping=MaxLabels(150)))
    assert model.gamma == "scale" or model.scaling == "standard"
    assert np.mean(model.predict_many(X * [1.0, 1000.0]) == y) > 0.75


@pytest.mark.parametrize("model", [LASVMG(gamma=1.0), LASVM(kernel="linear"), WarmupScaler() | LASVM(gamma=1.0)])
def test_other_models_stay_as_they_are(model):
    assert not GammaTuner(model, 50).is_due([True, False] * 50, np.ones(100))


def test_it_waits_for_labels_of_both_classes():
    tuner = GammaTuner(LASVM(gamma=1.0), 50)
    few = [True, True, True, *[False] * 26]
    assert not tuner.is_due(few, np.ones(29))
    assert tuner.is_due([*few, False], np.ones(30))
    assert not tuner.is_due([*few, False], np.array([0.0, *[1.0] * 29]))
    assert not GammaTuner(LASVM(gamma=1.0), 0).is_due([*few, False], np.ones(30))
    X, y = checkerboard(30)
    tuner.choose(X, y.tolist(), np.ones(30))
    assert not tuner.is_due([True, False] * 39, np.ones(78))
    assert tuner.is_due([True, False] * 40, np.ones(80))
    with pytest.raises(ValueError, match="tune_gamma"):
        GammaTuner(LASVM(gamma=1.0), -1)
