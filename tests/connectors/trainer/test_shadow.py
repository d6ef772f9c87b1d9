"""Challengers: they learn as if they were alone, are compared fairly, and change nothing of the model that serves."""

import re
from dataclasses import replace
from shutil import copytree

import numpy as np
import pytest
from fuse import Fuse, Killed, run_with
from logged import append, change, read, read_json
from shadows import SHADOWS, alone, configure, fill, late_labels, values

from streamsvm.connectors.commands import cli
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.erasures import Erasure
from streamsvm.connectors.report.page import write_report
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.settings.model import ModelSettings
from streamsvm.connectors.trainer import shadow, trainer
from streamsvm.connectors.trainer.erasing import erase
from streamsvm.connectors.trainer.state.checkpoint import CheckpointStore, load_newest
from streamsvm.connectors.trainer.state.digests import digests


def run(settings):
    return trainer.run(settings)[0]


def outcome(settings, state):
    """All that must not depend on kills."""
    return {
        name.name: (name.models.digest(), name.counters.learned, name.comparison.to_json(), name.said, name.dropped)
        for name in state.challengers.all
    } | {"digest": state.model.digest(), "said": state.challengers.said}


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_each_challenger_is_the_model_that_it_would_be_alone(tmp_path, labels):
    """To the bit: its predictions, and what it learned, forgot and corrected."""
    settings = configure(tmp_path, labels=labels)
    fill(settings)
    state = run(settings)
    for challenger in state.challengers.all:
        own = alone(settings, challenger.name, tmp_path)
        expected = run(own)
        assert challenger.models.digest() == expected.models.digest()
        assert values(settings, settings.topic_of(challenger.settings)) == values(own, own.log.predictions)
        if not labels:  # they count the same lessons
            topics = settings.topic_of(challenger.settings), own.log.predictions
            found, wanted = ([said["model"] for said in read_json(settings, topic)] for topic in topics)
            assert found == wanted
    assert state.join.counters.corrected > 5 or not labels


@pytest.mark.long
def test_with_decisions_and_several_classes(tmp_path):
    """The late label of a decision needs what was decided."""
    settings = configure(tmp_path, SHADOWS[:2], labels="labels", decide={"error": 0.2}, label={"classes": (0, 1, 2)})
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 2)).round(4)
    append(settings, [{"id": i, "x": {"a": a, "b": b}} for i, (a, b) in enumerate(x.tolist())])
    append(settings, [{"id": i, "y": int(a > 0) + int(b > 0)} for i, (a, b) in enumerate(x.tolist())], "labels")
    state = run(settings)
    for challenger in state.challengers.all:
        own = alone(settings, challenger.name, tmp_path)
        assert challenger.models.digest() == run(own).models.digest()
        assert {each.metric for each in challenger.comparison.differences()} == {"error", "log loss", "decided"}


def test_raw_events_come_as_the_numbers_of_the_model_that_serves(tmp_path):
    settings = configure(tmp_path, SHADOWS[:1], features={"raw": True, "id": "id", "label": "y"})
    rng = np.random.default_rng(0)
    rows = [{"id": i, "a": float(rng.normal()), "c": "xyz"[i % 3], "y": i % 3 == 1} for i in range(150)]
    append(settings, rows)
    (challenger,) = run(settings).challengers.all
    own = alone(settings, "c1", tmp_path)
    assert challenger.models.model.digest() == run(own).model.digest()
    assert values(settings, "predictions-c1") == values(own, own.log.predictions)


@pytest.mark.parametrize("labels", ["", "labels"])
def test_the_model_that_serves_is_as_without_challengers(tmp_path, labels):
    settings = configure(tmp_path, labels=labels)
    fill(settings)
    state = run(settings)
    without = replace(configure(tmp_path, (), labels=labels), log=replace(settings.log, predictions="without"))
    expected = run(change(without, daemon={"state_dir": tmp_path / "without"}))
    assert state.model.digest() == expected.model.digest()
    assert state.metrics.cumulative() == expected.metrics.cumulative()
    found, wanted = ([r.value for r in read(settings, topic)] for topic in ("predictions", "without"))
    assert found == wanted


# --- comparison -------------------------------------------------------------------------------------------------------


def test_the_comparison_counts_each_first_label_with_both_predictions(tmp_path):
    settings = configure(tmp_path, labels="labels", comparison={"miss_cost": 4.0})
    fill(settings)
    state = run(settings)
    said = {
        topic: {each["id"]: each for each in read_json(settings, topic)} for topic in ("predictions", "predictions-c1")
    }
    first = {}
    for label in late_labels(200):
        if label.get("op", "set") == "set" and label["id"] < 200:
            first.setdefault(label["id"], label["y"])
    challenger = state.challengers.all[0]
    found = {each.metric: each for each in challenger.comparison.differences()}
    wrong = {topic: np.array([said[topic][i]["label"] != y for i, y in first.items()]) for topic in said}
    y = np.array([*first.values()])
    assert challenger.comparison.n == len(first)
    assert found["error"][1:3] == pytest.approx([of.mean() for of in wrong.values()])
    assert found["cost"][1:3] == pytest.approx([(of * np.where(y, 4.0, 1.0)).mean() for of in wrong.values()])
    recalls = [np.sqrt((1 - of[y].mean()) * (1 - of[~y].mean())) for of in wrong.values()]
    assert found["g-mean"][1:3] == pytest.approx(recalls)
    p = {t: np.array([s[i]["score"] if y else 1 - s[i]["score"] for i, y in first.items()]) for t, s in said.items()}
    assert found["log loss"][1:3] == pytest.approx([-np.log(np.maximum(of, 0.01)).mean() for of in p.values()])
    for each in found.values():
        assert each.gain.low < each.gain.value < each.gain.high
        assert each.gain.value == pytest.approx(
            (each.challenger - each.champion) * (1 if each.metric == "g-mean" else -1)
        )


# --- isolation --------------------------------------------------------------------------------------------------------


def test_a_challenger_that_fails_is_dropped_and_nothing_else_changes(tmp_path, monkeypatch):
    settings = configure(tmp_path)
    fill(settings)
    teach = shadow.teach

    def failing(tasks, rows, entity, pupil, limit):
        if pupil.name == "c1" and pupil.counters.learned > 60:
            raise MemoryError("no memory is left")
        return teach(tasks, rows, entity, pupil, limit)

    monkeypatch.setattr(shadow, "teach", failing)
    state = run(settings)
    monkeypatch.undo()
    assert [each.dropped for each in state.challengers.all] == ["MemoryError: no memory is left", "", "", ""]
    intact = change(configure(tmp_path), daemon={"state_dir": tmp_path / "intact"})
    expected = run(intact)
    assert state.model.digest() == expected.model.digest()
    assert [each.models.digest() for each in state.challengers.all[1:]] == [
        each.models.digest() for each in expected.challengers.all[1:]
    ]
    assert run(settings).challengers.all[0].dropped  # and stays so after a restart


def test_a_challenger_that_is_large_or_slow_is_dropped(tmp_path, monkeypatch):
    large, slow = replace(SHADOWS[0], max_mb=0.001), replace(SHADOWS[1], slowdown=1e-6)
    settings = configure(tmp_path, (large, slow, SHADOWS[2]))
    fill(settings)
    monkeypatch.setattr(shadow, "_GRACE_SECONDS", 0.0)
    reasons = [each.dropped for each in run(settings).challengers.all]
    assert "more than max_mb = 0.001" in reasons[0]
    assert "more than slowdown = 1e-06 times" in reasons[1]
    assert not reasons[2]


def test_a_record_waits_for_no_challenger(tmp_path, monkeypatch):
    """All that is in the log is answered before a challenger takes the first step."""
    settings = configure(tmp_path, SHADOWS[:2])
    fill(settings, 48)
    order, produce = [], LocalLog.produce

    def noted(log, topic, *given, **options):
        order.append(topic)
        return produce(log, topic, *given, **options)

    monkeypatch.setattr(LocalLog, "produce", noted)
    run(settings)
    assert order[:48] == ["predictions"] * 48
    assert sorted(order[48:]) == ["predictions-c1"] * 48 + ["predictions-wide"] * 48


@pytest.mark.parametrize("labels", ["", "labels"])
def test_the_outcome_does_not_depend_on_when_challengers_follow(tmp_path, monkeypatch, labels):
    """They set the pace where the queue is full, and take their steps in slices of any length."""
    settings = configure(tmp_path, SHADOWS[:2], labels=labels)
    fill(settings)
    expected = outcome(settings, run(settings))
    monkeypatch.setattr(shadow, "_ROOM", 4000)
    monkeypatch.setattr(shadow, "_LARGEST_SLICE", 5)
    monkeypatch.setattr(shadow, "_FEW", 1)
    monkeypatch.setattr(trainer, "_SHADOW_SECONDS", 0.0)
    again = change(settings, daemon={"state_dir": tmp_path / "again"})
    assert outcome(settings, run(again)) == expected
    values(settings, "predictions-c1")  # those of both runs are equal


# --- restarts ---------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("labels", ["", "labels"])
def test_killed_anywhere_it_ends_as_if_it_never_was(tmp_path, monkeypatch, labels):
    settings = configure(tmp_path / "calm", SHADOWS[:2], labels=labels)
    fill(settings)
    begun = copytree(tmp_path / "calm", tmp_path / "begun")  # the times of records decide about their order
    fuse = Fuse()
    expected = outcome(settings, run_with(settings, fuse, monkeypatch)[0])
    said = values(settings, "predictions-c1")
    for number, step in enumerate(np.linspace(2, fuse.steps - 1, 12).astype(int).tolist()):
        stormy = configure(copytree(begun, tmp_path / f"storm-{number}"), SHADOWS[:2], labels=labels)
        with pytest.raises(Killed):
            run_with(stormy, Fuse(step), monkeypatch)
        assert outcome(stormy, run(stormy)) == expected
        assert values(stormy, "predictions-c1") == said


@pytest.mark.parametrize("labels", ["", "labels"])
def test_answers_do_not_wait_for_a_checkpoint_of_challengers(tmp_path, monkeypatch, labels):
    """It has the place where it began, and a restart goes on from there."""
    settings = configure(tmp_path, SHADOWS[:2], labels=labels)
    fill(settings)
    calm = run(settings)
    said = values(settings, "predictions"), values(settings, "predictions-c1")
    offsets, save = [], CheckpointStore.save

    def killing(store, *given):
        journal = save(store, *given)
        offsets.append(load_newest(store.folder)[1].offsets["events"])
        if len(offsets) == 2:
            raise Killed
        return journal

    stormy = change(settings, daemon={"state_dir": tmp_path / "stormy"}, log={"predictions": "stormy"})
    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save", killing)
        with pytest.raises(Killed):
            run(stormy)
    assert offsets[1] < len(read(stormy, "stormy")) == 200
    state = run(stormy)
    assert (digests(state), outcome(stormy, state)) == (digests(calm), outcome(settings, calm))
    assert (values(stormy, "stormy"), values(stormy, "stormy-c1")) == said


def test_a_challenger_with_other_settings_begins_anew(tmp_path, caplog):
    settings = configure(tmp_path)
    fill(settings)
    run(settings)
    changed = configure(tmp_path, (replace(SHADOWS[0], model=ModelSettings(C=3.0)), *SHADOWS[1:]))
    with caplog.at_level("INFO"):
        state = run(changed)
    assert "challenger 'c1' begins anew: its settings have changed" in caplog.text
    assert [each.counters.learned for each in state.challengers.all] == [0, *[state.counters.learned] * 3]


# --- what is shown ----------------------------------------------------------------------------------------------------


def test_the_table_the_panel_and_the_metrics(tmp_path, capsys, monkeypatch):
    settings = configure(tmp_path, SHADOWS[:2])
    fill(settings)
    monkeypatch.setattr(shadow, "_GRACE_SECONDS", 0.0)
    slow, sharing = replace(SHADOWS[0], slowdown=1e-9), replace(SHADOWS[1], share=0.3)
    settings = replace(settings, challenger=(slow, sharing))
    run(settings)
    assert cli.main(["challengers", str(settings.daemon.state_dir)]) == 0
    out = capsys.readouterr().out
    assert "events-0: 'model' serves, at offset 200" in out
    assert re.search(r"^wide +\d+ +error +\d+\.\d\d% ", out, re.MULTILINE)
    assert re.search(r"^answered by +events +labels", out, re.MULTILINE)
    assert re.search(r"^model +\d+ +\d+ +error +\d+\.\d\d% ", out, re.MULTILINE)
    assert "c1 was dropped: it took " in out
    path, _ = write_report(settings.daemon.state_dir)
    assert all(title in path.read_text() for title in ("Challengers", "Answers by model"))
    metrics, shown = Metrics(), []
    with LocalLog(settings.log.dir) as log:
        trainer.Trainer(settings, log, lambda: shown.append(metrics.render()), Health(), metrics).run()
    text = shown[-1]
    assert 'streamsvm_challenger_active{challenger="c1",partition="0"} 0.0' in text
    assert 'streamsvm_answers_mean{bound="low",challenger="wide",metric="error",partition="0"} 0' in text
    assert re.search(
        r'streamsvm_challenger_gain\{bound="low",challenger="wide",metric="error",partition="0"\} -0', text
    )


def test_an_erasure_reaches_every_challenger(tmp_path):
    settings = configure(tmp_path, labels="labels")
    fill(settings)
    state = run(settings)
    keys = tuple(range(0, 200, 5))
    assert any(set(keys) & set(each.said) for each in state.challengers.all)
    held = [set(each.models.model.support_ids) for each in state.challengers.all]
    erase(state, Erasure((), (), {None: keys}))
    for each, before in zip(state.challengers.all, held, strict=True):
        assert before & set(keys)
        assert not set(keys) & (set(each.models.model.support_ids) | set(each.said))
