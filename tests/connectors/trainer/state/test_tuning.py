"""The trainer chooses gamma and the threshold by the labels, through restarts, corrections and retractions."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from world import World, configure

from streamsvm import LASVM
from streamsvm.connectors.settings.contradictions import find_contradictions
from streamsvm.connectors.settings.estimates import EstimateSettings
from streamsvm.validation import leave_one_out

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def labelled(conf, rounds, n=300, share=0.1, **options):
    """A world whose questions were answered for some rounds, and the state then."""
    world = World(conf, n=n, share=share, **options)
    for _ in range(rounds):
        world.run()
        world.answer(*map(world.right, world.open()))
    return world, world.run()


def events_of(world):
    return [question["x"] for question in world.questions().values()]


@pytest.mark.parametrize("objective", ["gmean", "recall"])
def test_the_threshold_suits_its_objective_and_questions_stay(tmp_path, objective):
    asked, thresholds = [], []
    for name in ("", objective):
        world, state = labelled(configure(tmp_path / (name or "none"), open=8, threshold=name, tune_gamma=0), 6)
        asked.append(list(world.questions()))
        thresholds.append(state.model.decision_threshold)
    assert asked[0] == asked[1]
    assert thresholds[0] == 0.0 > thresholds[1] >= -1.0
    assert world.status()["threshold"] == [objective, thresholds[1]]
    finished = copy.deepcopy(state.model)
    finished.finish()
    rows = events_of(world)
    assert finished.decision_function_many(rows) == pytest.approx(state.model.decision_function_many(rows), abs=0.05)


def test_a_restart_goes_on_alike(tmp_path):
    world, state = labelled(configure(tmp_path, open=8, threshold="gmean"), 8, seed=3)
    again = world.run()
    assert again.model.digest() == state.model.digest()
    assert again.model.decision_threshold == state.model.decision_threshold != 0.0
    assert again.labelling.to_bytes() == state.labelling.to_bytes()


def test_gamma_is_tuned_and_the_model_has_learned_all_labels_again(tmp_path):
    conf = configure(tmp_path, open=10)
    conf = replace(conf, model=replace(conf.model, gamma=100.0))  # each event is alone
    world, state = labelled(conf, 8)
    n = world.status()["labels"]
    assert state.model.gamma < 100.0
    assert state.model.n_seen == n == sum(state.model.class_counts) > 50
    before = LASVM(C=10.0, gamma=100.0)
    again = LASVM(C=10.0, gamma=state.model.gamma)
    xs, ys = events_of(world)[:n], [world.truth[q["id"]] for q in world.questions().values()][:n]
    errors = []
    for model in (before, again):
        f = leave_one_out(model, np.array([[x["a"], x["b"]] for x in xs]), ys).decision_values
        errors.append(np.mean((f > 0) != np.array(ys)))
    assert errors[1] < errors[0]


def test_corrections_and_retractions_choose_again(tmp_path):
    world, state = labelled(configure(tmp_path, open=8, threshold="recall", tune_gamma=0), 6)
    before = state.model.decision_threshold
    positives = [id_ for id_ in (q["id"] for q in world.questions().values()) if world.truth[id_]]
    world.answer(*({"id": id_, "op": "retract", "source": "truth"} for id_ in positives))
    state = world.run()
    assert state.model.decision_threshold == 0.0 > before


def test_seed_words_are_asked_about_first(tmp_path):
    world = World(configure(tmp_path, open=4, seed_words=("e77", "E99", "none"), first=("e60", "nothing")))
    world.run()
    world.answer(*map(world.right, world.open()))
    world.run()
    reasons = {question["id"]: question["reason"] for question in world.open()}
    assert {reasons.get(name) for name in ("e60", "e77", "e99")} == {"seed"}


def test_what_does_not_go_with_a_threshold_is_said(tmp_path):
    conf = configure(tmp_path, threshold="gmean")
    assert not find_contradictions(conf)
    for wrong in (
        replace(conf, model=replace(conf.model, threshold=0.3)),
        replace(conf, model=replace(conf.model, algorithm="lasvm-g")),
        replace(conf, estimates=EstimateSettings(loo=True)),
    ):
        assert any('labelling.threshold = "gmean"' in problem for problem in find_contradictions(wrong))
