"""The names and signatures that others rely on: they may be added to, and not changed."""

import importlib
import inspect
import subprocess
import sys

import pytest

import streamsvm
from streamsvm import LASVM, LASVMG, LASVMI, LASVMNC, AutoLASVM, FullSVM, OneVsOne, OneVsRest
from streamsvm.estimators import learners
from streamsvm.estimators.learners import ALGORITHMS
from streamsvm.sklearn_api import LASVMClassifier

NAMES = {
    "streamsvm": [
        "LASVM",
        "LASVMG",
        "LASVMNC",
        "LASVMI",
        "AutoLASVM",
        "FullSVM",
        "Mixture",
        "OneVsOne",
        "OneVsRest",
        "WarmupScaler",
        "load",
        "warmup",
    ],
    "streamsvm.active": [
        "ActiveLearner",
        "label_pool",
        "RandomSelection",
        "GradientSelection",
        "ActiveSelection",
        "AutoActiveSelection",
        "MaxLabels",
    ],
    "streamsvm.alarms": ["ErrorAlarm", "InputAlarm"],
    "streamsvm.metrics": ["PRBEP"],
    "streamsvm.sklearn_api": ["LASVMClassifier"],
}
METHODS = {  # by name: its parameters, those that must come first, with their defaults
    "learn_one": "x, y, w=1.0, id=None, t=None",
    "predict_one": "x",
    "predict_proba_one": "x",
    "decision_function_one": "x",
    "explain_one": "x",
    "learn_many": "X, y, w=None, ids=None, t=None",
    "predict_many": "X",
    "predict_proba_many": "X",
    "decision_function_many": "X",
    "finish": "tol=None",
    "forget": "ids",
    "relabel": "ids, y",
    "digest": "",
    "save": "path",
    "load": "path",
    "to_bytes": "",
    "from_bytes": "data",
}
PROPERTIES = ["n_support", "n_members", "support_ids", "dual_coef", "bias", "kernel_evaluations", "n_seen", "next_id"]
COMMON = {  # after C and kernel, by keyword only
    "gamma": "scale",
    "scaling": "auto",
    "degree": 3,
    "coef0": 0.0,
    "pos_weight": 1.0,
    "threshold": 0.0,
    "tol": 1e-3,
    "budget": None,
    "on_budget": "remove",
    "window": None,
    "reservoir": 4000,
    "cache_mb": 256.0,
    "device": "cpu",
}
LEARNERS = [LASVM, LASVMG, LASVMNC, LASVMI, FullSVM]


def shown(method, n):
    """The first n parameters of a method after self, as they are written."""
    parameters = [p for p in inspect.signature(method).parameters.values() if p.name not in ("self", "kwargs")]
    plain = [p.replace(annotation=p.empty, kind=p.POSITIONAL_OR_KEYWORD) for p in parameters[:n]]
    assert all(p.default is not p.empty for p in parameters[n:])
    return ", ".join(map(str, plain))


@pytest.mark.parametrize("module", NAMES)
def test_every_name_is_there(module):
    found = importlib.import_module(module)
    assert [name for name in NAMES[module] if not hasattr(found, name)] == []
    assert set(getattr(found, "__all__", NAMES[module])) >= set(NAMES[module])


def test_everything_that_is_exported_exists():
    for module in ("streamsvm", "streamsvm.active", "streamsvm.metrics"):
        found = importlib.import_module(module)
        assert [name for name in found.__all__ if not hasattr(found, name)] == []
        assert sorted(set(found.__all__)) == sorted(found.__all__)


@pytest.mark.parametrize("learner", [*LEARNERS, OneVsOne, OneVsRest, AutoLASVM])
def test_methods(learner):
    for name, expected in METHODS.items():
        n = len(expected.split(", ")) if expected else 0
        assert shown(getattr(learner, name), n) == expected, name
    for name in PROPERTIES:
        assert isinstance(inspect.getattr_static(learner, name), property), name
    if learner is not AutoLASVM:  # it tunes and replaces its models itself
        assert shown(learner.sparsify, 2) == "ramp_s=None, tol=None"


@pytest.mark.parametrize("learner", LEARNERS)
def test_parameters_of_a_learner(learner):
    parameters = list(inspect.signature(learner).parameters.values())
    assert [(p.name, p.default) for p in parameters[:2]] == [("C", 10.0), ("kernel", "rbf")]
    assert {p.kind for p in parameters[:2]} == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
    assert {p.kind for p in parameters[2:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert [(p.name, p.default) for p in parameters[2 : 2 + len(COMMON)]] == list(COMMON.items())
    assert not {"tau", "seed", "weights", "sample_weight"} & {p.name for p in parameters}


def test_what_the_learner_that_tunes_itself_tells():
    for name in ("champion_", "history_"):
        assert isinstance(inspect.getattr_static(AutoLASVM, name), property), name
    assert {p.kind for p in inspect.signature(AutoLASVM).parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}


def test_several_classes_take_a_learner():
    for several in (OneVsOne, OneVsRest):
        assert list(inspect.signature(several).parameters) == ["model", "classes"]


def test_the_table_of_algorithms():
    assert {"lasvm": LASVM, "lasvm-g": LASVMG, "lasvm-nc": LASVMNC, "lasvm-i": LASVMI, "full": FullSVM} == ALGORITHMS
    assert {**ALGORITHMS, "auto": AutoLASVM} == learners.LEARNERS


def test_the_scikit_learn_front():
    parameters = inspect.signature(LASVMClassifier).parameters
    assert next(iter(parameters.values())).default == "lasvm"
    assert "tol" in parameters
    for name in ("fit", "partial_fit"):
        assert "sample_weight" in inspect.signature(getattr(LASVMClassifier, name)).parameters


def test_one_word_for_one_idea_in_active_learning():
    """A quota of labels is max_labels, or a share of the stream; weights are sample_weight; a budget is of members."""
    active = importlib.import_module("streamsvm.active")
    assert list(inspect.signature(active.MaxLabels).parameters) == ["max_labels"]
    assert list(inspect.signature(active.ActiveLearner).parameters) == ["model", "share", "explore", "seed"]
    assert "sample_weight" in inspect.signature(active.label_pool).parameters
    for name in active.__all__:
        found = getattr(active, name)
        if inspect.isclass(found) or inspect.isfunction(found):
            assert not {"budget", "weights", "tau", "w"} & set(inspect.signature(found).parameters), name


@pytest.mark.parametrize("name", streamsvm.__all__)
def test_every_public_name_has_an_example(name):
    found = getattr(streamsvm, name)
    if name not in ("SnapshotError", "StreamWarning", "warmup"):
        assert ">>>" in found.__doc__


def test_scipy_is_loaded_when_it_is_needed():
    """It takes as long as numpy; every process of the product would wait for it."""
    script = "import sys, streamsvm.connectors.commands.run, streamsvm.connectors.commands.score; "
    script += "print({'scipy.sparse', 'scipy.linalg', 'scipy.special'} & set(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert loaded.strip() == "set()"
