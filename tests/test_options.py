"""Numbers that are no use are refused early, with the name of the option and its value."""

import re

import numpy as np
import pytest

from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, FullSVM, OneVsRest, WarmupScaler
from streamsvm.active import (
    ActiveLearner,
    ActiveSelection,
    AutoActiveSelection,
    GradientSelection,
    MarginExhausted,
    MaxFraction,
    MaxLabels,
    StreamPool,
    SupportStable,
    pool_size,
)
from streamsvm.batch import SmoothSVM, SolverOptions, smo
from streamsvm.core import kernels
from streamsvm.sklearn_api import LASVMClassifier
from streamsvm.validation import StreamingKFold, StreamingLOO, cross_validate

X = np.random.default_rng(0).normal(size=(40, 2))
y = X[:, 0] > 0


def fitted(**options):
    return LASVMClassifier(**options).fit(X, y)


def restored(**options):
    return LASVM.from_bytes(LASVM().to_bytes(), **options)


def solved(**options):
    parameters = {name: options.pop(name) for name in ("C", "gamma") if name in options}
    return smo.solve(X, y, **parameters, options=SolverOptions(**options))


def validated(**options):
    return cross_validate(LASVM(), X, y, **options)


def of_model(wrapper):
    return lambda **options: wrapper(LASVM(), **options)


MODEL = ("C", "gamma", "degree", "coef0", "pos_weight", "tol", "budget", "cache_mb")
FAMILY = (*MODEL, "clean_every", "max_non_sv")
RAMP = (*FAMILY, "ramp_s", "ramp_warmup")
WRAPPER = ("every", "memory", "share", "seed")
OPTIONS = {
    LASVM: (*MODEL, "reprocess", "delta_max"),
    LASVMG: FAMILY,
    LASVMNC: RAMP,
    LASVMI: RAMP,
    FullSVM: MODEL,
    restored: ("cache_mb",),
    fitted: ("C", "degree", "gamma", "coef0", "tol", "max_iter", "cache_mb"),
    of_model(StreamingLOO): WRAPPER,
    of_model(StreamingKFold): (*WRAPPER, "k"),
    of_model(ActiveLearner): ("share", "explore", "seed"),
    WarmupScaler: ("warmup",),
    SmoothSVM: ("C", "gamma", "tol", "seed"),
    ActiveSelection: ("pool",),
    AutoActiveSelection: ("within", "at_most"),
    lambda **options: GradientSelection([True], **options): ("pool",),
    MarginExhausted: ("pool",),
    SupportStable: ("tolerance", "over", "at_least"),
    MaxLabels: ("max_labels",),
    MaxFraction: ("share",),
    StreamPool: ("capacity", "expiry"),
    pool_size: ("p", "eta"),
    kernels.make_kernel: ("gamma", "degree", "coef0"),
    solved: ("C", "gamma", "tol", "cache_mb", "planning", "max_iterations"),
    validated: ("k",),
}
ALLOWED = {  # None is another way, -1 and 1e300 are numbers like any others
    **dict.fromkeys(("C", "pos_weight", "tol", "share"), (1e300,)),
    **dict.fromkeys(("budget", "seed", "pool", "max_iterations", "cache_mb"), (None,)),
    **dict.fromkeys(("delta_max", "expiry"), (None, 1e300)),
    **dict.fromkeys(("coef0", "ramp_s"), (-1.0,)),
}
BAD = [None, "x", True, np.True_, float("nan"), float("inf"), 10**400, 1e300, -1.0, np.float64("nan"), 1j, [1], b"1"]


def cases():
    for make, names in OPTIONS.items():
        for name in names:
            own = "name" if make is kernels.make_kernel else None
            yield pytest.param(make, name, {} if own is None else {own: "poly"}, id=f"{make.__name__}-{name}")


@pytest.mark.parametrize(("make", "name", "others"), list(cases()))
def test_a_number_that_is_no_use_is_named(make, name, others):
    if make in (LASVM, LASVMG, LASVMNC, LASVMI, FullSVM, fitted) and name in ("degree", "coef0"):
        others = {"kernel": "poly"}
    for value in BAD:
        if any(value is allowed or (type(value) is float and value == allowed) for allowed in ALLOWED.get(name, ())):
            continue
        if make is fitted and name == "C" and isinstance(value, float) and value == float("inf"):
            continue  # the hard margin, as in scikit-learn
        with pytest.raises((ValueError, TypeError), match=re.escape(f"{name}={value!r}")):
            make(**others, **{name: value})


@pytest.mark.parametrize(
    "options",
    [{"cache_mb": 1e30}, {"reprocess": 10**30}, {"degree": 10**9, "kernel": "poly"}, {"budget": 2**63}],
    ids=str,
)
def test_numbers_that_do_not_fit_are_refused_before_anything_is_computed(options):
    name = next(iter(options))
    with pytest.raises(ValueError, match=re.escape(f"{name}={options[name]!r}")):
        LASVM(**options)
    with pytest.raises(ValueError, match=re.escape(f"{name}={options[name]!r}")):
        OneVsRest(LASVM(**options))


@pytest.mark.parametrize(
    "options", [{"cache_mb": 1e9}, {"reprocess": np.int64(3)}, {"budget": 2**63 - 1}, {"C": np.float32(2)}]
)
def test_numbers_at_the_edge_are_taken(options):
    model = LASVM(**options)
    model.learn_many(X, y)
    assert LASVM.from_bytes(model.to_bytes()).digest() == model.digest()
