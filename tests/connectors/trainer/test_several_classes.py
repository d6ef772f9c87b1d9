"""The trainer with more than two classes: what it learns and says, and that a kill changes nothing."""

import os
import time

import numpy as np
import pytest
from fuse import Fuse, Killed, killed_anywhere, run, run_through, run_with
from logged import append, change, predictions, read, read_json
from logged import configure as small

from streamsvm import LASVM, OneVsRest
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.predictions import NO_CLASS
from streamsvm.connectors.report.charts import estimates_of
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.scorer.committee import NO_MODELS
from streamsvm.connectors.trainer import telemetry
from streamsvm.connectors.trainer.trainer import Trainer

BREAK = 0.002  # seconds: the trainer reads both topics by the records' times, in milliseconds
CENTRES = {"cat": (0.0, 0.0), "dog": (3.0, 0.0), "bird": (0.0, 3.0), 7: (3.0, 3.0)}


def configure(folder, **changes):
    settings = small(folder, label={"classes": tuple(CENTRES)}, model={"cache_mb": 1.0})
    return change(settings, **changes)


def some_events(n, seed=0, classes=tuple(CENTRES)):
    rng = np.random.default_rng(seed)
    for i in range(n):
        label = classes[rng.integers(len(classes))]
        a, b = (np.array(CENTRES[label]) + 0.7 * rng.normal(size=2)).round(6).tolist()
        yield {"id": i, "x": {"a": a, "b": b}, "y": label}


def without_labels(events):
    return [{name: event[name] for name in ("id", "x")} for event in events]


def some_labels(events):
    """Labels for most events: some twice, some corrected, some taken back, one unknown."""
    for i, event in enumerate(events):
        if i % 13 == 12:
            continue
        yield {"id": event["id"], "y": str(event["y"]) if i % 2 else event["y"]}
        if i % 9 == 0:
            yield {"id": event["id"], "y": "cat", "rev": 1}
        if i % 17 == 0:
            yield {"id": event["id"], "op": "retract", "rev": 2}


def outcome(settings, state):
    """All that must not depend on where the trainer was killed."""
    return {
        "digest": state.models.digest(),
        "classes": state.classes.labels,
        "counters": (state.counters.predicted, state.counters.learned, state.counters.bad),
        "join": state.join.counters,
        "offsets": (state.offset, state.labels_offset),
        "metrics": (state.metrics.n_errors, state.metrics.rolling().counts.tolist()),
        "history": [(row.n, str(row.error)) for row in state.history.rows],
        "predictions": predictions(settings),
    }


def test_it_learns_what_the_engine_learns(tmp_path):
    settings = configure(tmp_path)
    events = list(some_events(300))
    append(settings, events)
    state = run(settings)
    twin = OneVsRest(LASVM(**settings.model.parameters()), tuple(CENTRES))
    for event in events:
        twin.learn_one(event["x"], event["y"], id=event["id"])
    assert state.model.digest() == twin.digest()
    said = read_json(settings, "predictions")
    assert {prediction["label"] for prediction in said} == set(CENTRES)
    assert list(said[-1]["probabilities"]) == [str(label) for label in CENTRES]
    assert max(said[-1]["values"], key=said[-1]["values"].get) == str(said[-1]["label"])
    assert state.metrics.rolling_error() < 0.2


@pytest.mark.parametrize("algorithm", ["lasvm-g", "auto", "mixture"])
def test_other_algorithms_go_on_from_a_checkpoint(tmp_path, algorithm):
    whole = configure(tmp_path / "whole", model={"algorithm": algorithm})
    parts = configure(tmp_path / "parts", model={"algorithm": algorithm})
    append(whole, some_events(120))
    expected = outcome(whole, run(whole))
    append(parts, list(some_events(120))[:64])
    run(parts)
    append(parts, list(some_events(120))[64:])
    assert outcome(parts, run(parts)) == expected


def test_the_error_of_the_model_itself_is_estimated_and_goes_on_after_a_kill(tmp_path, monkeypatch):
    estimates = {"loo": True, "folds": 4, "every": 30, "memory": 50, "share": 1e9}
    whole, killed = (
        configure(tmp_path / name, estimates=estimates, log={"labels": "labels", "estimates": "estimates"})
        for name in ("whole", "killed")
    )
    events = list(some_events(120))
    append(whole, without_labels(events))
    append(whole, some_labels(events), topic="labels")
    expected = run(whole)
    found = read_json(whole, "estimates")
    assert {item["kind"] for item in found} == {"loo", "folds"}
    assert found[-1]["n"] == 50
    assert all(0.0 <= item["error"]["low"] <= item["error"]["high"] < 0.4 for item in found[2:])
    assert {item["prbep"]["value"] for item in found} == {None}
    assert all("g-mean" in line and "PRBEP" not in line for line in estimates_of({"it": expected}))
    append(killed, without_labels(events))
    append(killed, some_labels(events), topic="labels")
    with pytest.raises(Killed):
        run_with(killed, Fuse(150), monkeypatch)
    again = run(killed)
    assert again.model.digest() == expected.model.digest()
    assert [str(row[:-1]) for row in again.estimates.history] == [str(row[:-1]) for row in expected.estimates.history]
    plain = configure(tmp_path / "plain", log={"labels": "labels"})
    append(plain, without_labels(events))
    append(plain, some_labels(events), topic="labels")
    assert run(plain).model.digest() == expected.model.digest()


@pytest.mark.parametrize("algorithm", ["lasvm", "mixture"])
def test_classes_come_with_their_first_label_up_to_the_limit(tmp_path, algorithm):
    settings = configure(tmp_path, label={"classes": (), "max_classes": 3}, model={"algorithm": algorithm})
    append(settings, some_events(100))
    state = run(settings)
    assert len(state.classes) == 3
    assert set(state.model.labels) == set(state.classes.labels)
    refused = [dict(record.headers)["sv-dlq-reason"] for record in read(settings, "dlq")]
    assert refused
    assert set(refused) == {b"too-many-classes"}
    assert read_json(settings, "predictions")[0]["label"] is None


def test_a_class_that_is_not_listed_is_a_dead_letter(tmp_path):
    settings = configure(tmp_path)
    append(settings, [*some_events(20), {"id": 99, "x": {"a": 1}, "y": "fish"}])
    assert run(settings).counters.bad == 1
    assert [dict(record.headers)["sv-dlq-reason"] for record in read(settings, "dlq")] == [b"bad-label"]


@pytest.mark.parametrize("algorithm", ["lasvm", "mixture"])
def test_classes_may_be_listed_later(tmp_path, algorithm):
    settings = configure(tmp_path, label={"classes": ("cat", "dog", "bird")}, model={"algorithm": algorithm})
    append(settings, some_events(60, classes=("cat", "dog", "bird")))
    run(settings)
    append(settings, [{**event, "id": 1000 + event["id"]} for event in some_events(60)])
    state = run(change(settings, label={"classes": tuple(CENTRES)}))
    assert state.classes.labels == state.model.labels == list(CENTRES)
    assert state.counters.bad == 0


# --- labels on their own topic ----------------------------------------------------------------------------------------


def joined(folder, n=60, **changes):
    settings = configure(folder, log={"labels": "labels", "model": "model"}, **changes)
    events = list(some_events(n))
    for first in range(0, n, 20):  # now some of the one, now some of the other
        part = events[first : first + 20]
        append(settings, without_labels(part))
        time.sleep(BREAK)
        append(settings, some_labels(part), "labels")
        time.sleep(BREAK)
    append(settings, [{"id": 1, "y": "no such class"}], "labels")
    return settings


def test_labels_correct_and_retract(tmp_path):
    settings = joined(tmp_path, 200)
    state = run(settings)
    counters = state.join.counters
    assert counters.corrected
    assert counters.undone
    assert state.counters.bad == 1  # the label of a class that is not listed
    assert all(state.join.label_of(key) is not None for key in state.model.support_ids.tolist())
    assert state.metrics.n == counters.matched


@pytest.mark.long
@pytest.mark.parametrize("per", ["partition", "key"])
def test_killed_at_any_step_it_ends_the_same(tmp_path, monkeypatch, per):
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def small(name):
        return joined(tmp_path / name, 24, daemon={"checkpoint_records": 16, "per": per})

    killed_anywhere(small, lambda where, states: outcome(where, states[0]), 3 if per == "partition" else 5, monkeypatch)


@pytest.mark.long
def test_killed_again_and_again_while_classes_arrive_it_ends_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    opened = {"classes": (), "max_classes": 9}
    whole, killed = (joined(tmp_path / name, 400, label=opened) for name in ("whole", "killed"))
    expected = outcome(whole, run(whole))
    assert outcome(killed, run_through(killed, lambda: 37, monkeypatch)[0]) == expected


# --- scorers, monitoring ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["lasvm", "mixture"])
def test_a_scorer_predicts_with_the_published_model(tmp_path, algorithm):
    settings = configure(tmp_path, log={"model": "model"}, model={"algorithm": algorithm})
    append(settings, some_events(200))
    state = run(settings)
    scorer.run(settings)
    scores = {item["src"]: item for item in read_json(settings, "scores")}
    assert len(scores) == 200
    for i, event in enumerate(some_events(200)):
        said = scores[f"events-0-{i}"]
        assert said["label"] == state.model.predict_one(event["x"])
        assert said["probabilities"] == pytest.approx(
            {str(label): p for label, p in state.model.predict_proba_one(event["x"]).items()}
        )


def test_a_scorer_without_a_model_predicts_no_class():
    assert NO_MODELS.predict([{"a": 1.0}], NO_CLASS) == [NO_CLASS]


def test_monitoring_shows_each_class(tmp_path, monkeypatch):
    monkeypatch.setattr(telemetry, "LOOK_SECONDS", 0.0)  # look after every cycle
    settings = configure(tmp_path)
    append(settings, some_events(200))
    metrics, texts = Metrics(), []
    with LocalLog(settings.log.dir) as log:
        # at its end, a trainer forgets its partitions
        found = Trainer(settings, log, lambda: bool(texts.append(metrics.render())), Health(), metrics).run()
    confusion, text = found[0].metrics.rolling(), texts[-1]
    accuracy = confusion.overall()["accuracy"]
    assert f'streamsvm_rolling_accuracy{{partition="0"}} {accuracy}' in text
    assert "streamsvm_rolling_macro_f1{" in text
    assert "streamsvm_rolling_auc" not in text
    n = int(confusion.counts[0, 0])
    assert f'streamsvm_confusion{{class="cat",partition="0",predicted="cat"}} {n}.0' in text
    assert 'streamsvm_class_recall{class="7",partition="0"}' in text


def test_monitoring_does_not_name_a_class_that_came_with_a_label(tmp_path, monkeypatch):
    """/metrics needs no token, and an annotator may write anything."""
    monkeypatch.setattr(telemetry, "LOOK_SECONDS", 0.0)
    settings = configure(tmp_path, label={"classes": ("cat", "dog"), "max_classes": 4})
    append(settings, some_events(60))
    metrics, texts = Metrics(), []
    with LocalLog(settings.log.dir) as log:
        Trainer(settings, log, lambda: bool(texts.append(metrics.render())), Health(), metrics).run()
    assert "bird" not in texts[-1]
    for name in ("cat", "dog", "added-1", "added-2"):
        assert f'streamsvm_class_n{{class="{name}",partition="0"}}' in texts[-1]
        assert f'streamsvm_confusion{{class="{name}",partition="0",predicted="cat"}}' in texts[-1]
