"""Every check that river has for a classifier and a transformer, with none left out."""

import pytest

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, Mixture, WarmupScaler
from streamsvm.conformal import ConformalClassifier
from streamsvm.validation import StreamingKFold, StreamingLOO
from tests.helpers.river_checks import hold


class LeaveOneOut(StreamingLOO):
    """With the parameter that has no default, which river's checks ask the class for."""

    @classmethod
    def _unit_test_params(cls):
        yield {"model": LASVM(), "every": 10, "share": 1e9}


class Folds(StreamingKFold):
    """The same."""

    @classmethod
    def _unit_test_params(cls):
        yield {"model": LASVMG(), "every": 10, "share": 1e9}


MODELS = {
    "LASVM": (LASVM(), 48),
    "LASVM, polynomial": (LASVM(C=10.0, kernel="poly", degree=2, gamma=0.5, coef0=1.0), 48),
    "LASVM, linear, one REPROCESS": (LASVM(kernel="linear", reprocess=1, pos_weight=2.0), 48),
    "LASVM, for a rare class": (LASVM(pos_weight="balanced", threshold="gmean"), 48),
    "LASVM-G": (LASVMG(), 48),
    "LASVM-G, polynomial, single steps": (LASVMG(kernel="poly", degree=2, gamma=0.5, coef0=1.0, steps="single"), 48),
    "LASVM-NC": (LASVMNC(C=10.0), 48),
    "LASVM-NC, ramp from the start": (LASVMNC(ramp_s=0.0, ramp_warmup=20, clean_every=20, max_non_sv=10), 48),
    "LASVM-I": (LASVMI(C=10.0), 48),
    "LASVM-I, ramp from the start": (LASVMI(ramp_s=0.0, ramp_warmup=20, clean_every=20, max_non_sv=10), 48),
    "FULL": (FullSVM(), 48),
    "FULL, linear": (FullSVM(kernel="linear", pos_weight=2.0), 48),
    "AutoLASVM": (AutoLASVM(), 48),
    "Mixture": (Mixture(LASVM()), 48),
    "StreamingLOO": (LeaveOneOut(LASVM(), every=10, share=1e9), 49),
    "StreamingKFold": (Folds(LASVMG(), every=10, share=1e9), 49),
    "ConformalClassifier": (ConformalClassifier(LASVM()), 49),
    "ConformalClassifier, tuned": (ConformalClassifier(AutoLASVM(), 0.02), 49),
    "WarmupScaler": (WarmupScaler(), 28),
    "WarmupScaler, min-max": (WarmupScaler("minmax", warmup=10), 28),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MODELS)
def test_every_check_of_river_passes(name):
    hold(*MODELS[name])


@pytest.mark.parametrize("learner", [LASVM, LASVMI, AutoLASVM])
def test_memory_is_that_of_the_model_alone(learner):
    """River walks through all that a model refers to: compiled functions would bring numba's own megabytes."""
    model = learner()
    for i in range(50):
        model.learn_one({"a": float(i % 7), "b": float(i % 5)}, i % 2 == 0)
    assert model._raw_memory_usage < 500_000
