"""Decisions of the trainer and of scorers: those of a `ConformalClassifier` in a loop, over restarts, too."""

from collections import deque
from itertools import pairwise

import numpy as np
import pytest
from decided import START, append, configure, events, new
from logged import change, read_json

from streamsvm import LASVM
from streamsvm.conformal import ConformalClassifier, Tally
from streamsvm.connectors.commands.shared.long_running import show_states
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import TopicMismatch
from streamsvm.connectors.records.classes import KnownClasses
from streamsvm.connectors.records.decisions import from_json, to_json
from streamsvm.connectors.report.decisions import decisions_panels
from streamsvm.connectors.report.drawing import picture
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.settings.contradictions import find_contradictions
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer import telemetry, trainer
from streamsvm.connectors.trainer.state.decided import Decided
from streamsvm.connectors.trainer.state.state import State
from streamsvm.connectors.trainer.state.stored_state import read_state

LATE = 20


def taught(settings, given, classes=()):
    """A loop in Python, and what it decided."""
    model, found = new(settings, classes), []
    for event in given:
        said = model.decide_one(event["x"])
        found.append((said.decided, list(said.labels)))
        model.learn_one(event["x"], event["y"], id=event["id"], said=said._replace(margin=None))
    return model, found


def decided(settings, topic="predictions"):
    return [(said["decided"], said["labels"]) for said in read_json(settings, topic)]


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["two", "three"])
def test_the_trainer_decides_as_a_loop_does_over_restarts(tmp_path, classes):
    settings, given = configure(tmp_path, classes), list(events(300, classes))
    for begin, end in pairwise((0, 100, 170, 300)):
        append(settings, given[begin:end], start=START + 10 * begin)
        state = trainer.run(settings)[0]
    expected, found = taught(settings, given, classes)
    assert decided(settings) == found
    assert 50 < sum(alone for alone, _ in found) < 300
    assert state.models.digest() == expected.digest()
    assert state.models.trained(None).decider.tallies == expected.tallies
    for said in read_json(settings, "predictions")[20:]:
        assert said["label"] == said["labels"][0]


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["two", "three"])
def test_a_late_label_judges_the_decision_of_the_prediction(tmp_path, classes):
    """Over a restart, too: the checkpoint keeps what was decided."""
    settings, given = configure(tmp_path, classes, log={"labels": "labels"}), list(events(300, classes))
    for begin, end in ((0, 130), (130, 300)):
        part = range(begin, end)
        append(settings, [{"id": i, "x": given[i]["x"]} for i in part], start=START + 10 * begin)
        late = [{"id": i - LATE, "y": given[i - LATE]["y"]} for i in part if i >= LATE]
        append(settings, late, "labels", start=START + 10 * max(begin, LATE) + 5)
        state = trainer.run(settings)[0]
    model, waiting = new(settings, classes), deque()
    for event in given:
        waiting.append((event, model.decide_one(event["x"])))
        if len(waiting) > LATE:
            event, said = waiting.popleft()
            model.learn_one(event["x"], event["y"], id=event["id"], said=said)
    assert state.models.trained(None).decider.tallies == model.tallies
    assert sum(tally.n for tally in model.tallies.values()) == 300 - LATE
    assert sum(tally.decided for tally in model.tallies.values()) > 50


def test_corrections_and_retractions_take_back_what_labels_said(tmp_path):
    settings, given = configure(tmp_path, log={"labels": "labels"}), list(events(150))
    append(settings, given)
    trainer.run(settings)
    corrections = [{"id": 100, "y": not given[100]["y"]}, {"id": 101, "op": "retract"}]
    append(settings, corrections, "labels", start=START + 10_000)
    found = trainer.run(settings)[0].models.trained(None).decider.tallies
    model, saids = new(settings), {}
    for event in given:
        saids[event["id"]] = model.decide_one(event["x"])
        model.learn_one(event["x"], event["y"], id=event["id"], said=saids[event["id"]])
    assert sum(tally.n for tally in model.tallies.values()) == 150
    model.forget([100, 101])
    model.learn_one(given[100]["x"], not given[100]["y"], id=100, said=saids[100])
    assert found == model.tallies
    assert sum(tally.n for tally in found.values()) == 149


def test_each_key_decides_for_itself_and_raw_events_are_decided(tmp_path):
    """With one model in memory, so that the others come back from their files; over a restart."""
    keys = (b"k", b"l", b"m")
    settings = configure(tmp_path, daemon={"per": "key", "max_models": 1}, features={"raw": True})
    given = list(events(240))
    for begin, end in ((0, 120), (120, 240)):
        append(settings, given[begin:end], keys=keys, start=START + 10 * begin)
        state = trainer.run(settings)[0]
    whole = configure(tmp_path / "whole", daemon={"per": "key"}, features={"raw": True})
    append(whole, given, keys=keys)
    other = trainer.run(whole)[0]
    assert decided(settings) == decided(whole)
    assert state.models.digest() == other.models.digest()
    assert [sum(t.n for t in state.models.trained(key).decider.tallies.values()) for key in keys] == [80, 80, 80]
    assert sum(alone for alone, _ in decided(settings)) > 20
    whole_of = {label: np.zeros(3, int) for label in (False, True)}  # what was decided with all models together
    for key in keys:
        for label, tally in other.models.trained(key).decider.tallies.items():
            whole_of[label] += tally
    assert state.decided.tallies == {label: Tally(*counts) for label, counts in whole_of.items()}
    assert [point.n for point in other.decided.course.rows] == [64, 128, 192]
    assert [point.n for point in state.decided.course.rows] == [64, 120, 184, 240]
    panel, _ = decisions_panels(read_state(settings.daemon.state_dir)[0])
    assert panel.table[0] == ("class", "labelled", "decided", "wrong")


def test_the_course_of_decisions_stays_short_and_survives_its_bytes():
    classes = KnownClasses(["a", "b", "c"])
    decided, again, damaged = (Decided(classes) for _ in range(3))
    for n in range(0, 100_000, 7):
        before = {"c": Tally(n, n, 0)}
        decided.change(before, {"c": Tally(n + 2, n + 1, 0), "a": Tally(0, 0, 0)})
        decided.note(n)
    n_steps = len(range(0, 100_000, 7))
    assert decided.tallies == {"c": Tally(2 * n_steps, n_steps, 0)}
    assert 100 < len(decided.course.rows) <= 256
    assert decided.course.rows[-1].n > 99_000
    again.restore(decided.to_arrays())
    assert (again.tallies, again.course.rows) == (decided.tallies, decided.course.rows)
    with pytest.raises(ValueError, match="no counts"):
        damaged.restore(decided.to_arrays() | {"counts": np.full((3, 3), -1)})


@pytest.mark.parametrize("labels", ["", "labels"], ids=["at once", "late"])
def test_a_trainer_that_is_killed_decides_the_same(tmp_path, monkeypatch, labels):
    whole, settings = (configure(tmp_path / name, log={"labels": labels}) for name in ("whole", "killed"))
    given = list(events(200))
    late = [{"id": event["id"], "y": event.pop("y")} for event in given] if labels else []
    for each in (whole, settings):
        append(each, given)
        if labels:
            append(each, late, labels, start=START + 10 * LATE + 5)
    expected = trainer.run(whole)[0]
    calls = iter(range(10**6))

    def killing(self, *arguments):
        if next(calls) == 2:  # the third checkpoint is not written
            raise KeyboardInterrupt
        return to_checkpoint(self, *arguments)

    to_checkpoint = State.to_checkpoint
    with monkeypatch.context() as patch:
        patch.setattr(State, "to_checkpoint", killing)
        with pytest.raises(KeyboardInterrupt):
            trainer.run(settings)
    assert trainer.run(settings)[0].models.digest() == expected.models.digest()
    said = {each["src"]: each for each in read_json(settings, "predictions")}
    assert list(said.values()) == read_json(whole, "predictions")


@pytest.mark.parametrize("classes", [(), ("a", "b", "c")], ids=["two", "three"])
@pytest.mark.parametrize("n_partitions", [1, 2])
def test_scorers_decide_with_the_published_state(tmp_path, classes, n_partitions):
    settings = configure(tmp_path, classes, log={"model": "model"})
    parts = [list(events(150, classes, seed)) for seed in range(n_partitions)]
    for number, part in enumerate(parts):
        append(settings, part, partition=number)
    states = trainer.run(settings)
    scorer.run(settings)
    deciders = [states[number].models.trained(None).decider for number in range(n_partitions)]
    each = [[decider.predict_set_one(event["x"]) for decider in deciders] for part in parts for event in part]
    expected = [{label for labels in row for label in labels} for row in each]
    found = {said["src"]: said for said in read_json(settings, "scores")}
    assert len(found) == len(expected)
    numbered = [(number, at) for number, part in enumerate(parts) for at in range(len(part))]
    for (number, at), said in zip(numbered, expected, strict=True):
        one = found[f"events-{number}-{at}"]
        assert (one["decided"], set(one["labels"])) == (len(said) == 1, said)
        assert one["label"] == one["labels"][0]
    assert n_partitions == 1 or any(len(set(map(frozenset, row))) > 1 for row in each)  # the models differ
    assert sum(len(said) == 1 for said in expected) > 20


def test_models_that_do_not_decide_are_refused_by_scorers_that_must(tmp_path):
    settings = configure(tmp_path, log={"model": "model"})
    append(settings, events(30))
    trainer.run(change(settings, decide={"error": 0.0}))
    with pytest.raises(TopicMismatch, match=r"it does not decide, and the configuration has decide\.error"):
        scorer.run(settings)


def test_without_it_nothing_changes(tmp_path):
    settings = change(configure(tmp_path), decide={"error": 0.0})
    append(settings, events(30))
    state = trainer.run(settings)[0]
    assert "decided" not in read_json(settings, "predictions")[-1]
    assert state.models.digest() == state.model.digest()
    with pytest.raises(ConfigError, match=r"written without decide.error, the configuration says 0.1"):
        trainer.run(change(settings, decide={"error": 0.1}))


def test_metrics_and_the_end_show_the_share_and_the_errors_of_each_class(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(telemetry, "LOOK_SECONDS", 0.0)  # look after every cycle
    settings, metrics, texts = configure(tmp_path), Metrics(), []
    append(settings, events(200))
    with LocalLog(settings.log.dir) as log:
        # at its end, a trainer forgets its partitions
        looking = lambda: bool(texts.append(metrics.render()))  # noqa: E731
        state = trainer.Trainer(settings, log, looking, Health(), metrics).run()[0]
    text = texts[-1]
    alone = sum(is_alone for is_alone, _ in decided(settings))
    assert f"streamsvm_decided_total {float(alone)}" in text
    for label, tally in state.models.trained(None).decider.tallies.items():
        of_class = f'class="{label}"'
        for name, n in (("labelled", tally.n), ("decided", tally.decided), ("wrong", tally.wrong)):
            assert f'streamsvm_decisions_{name}{{{of_class},partition="0"}} {float(n)}' in text
        promised = state.models.trained(None).decider.promised(tally.n)
        assert f'streamsvm_decisions_promised{{{of_class},partition="0"}} {promised}' in text
    show_states(settings, {0: state})
    tally = state.models.trained(None).decider.tallies[True]
    shown = f"class positive: {tally.decided / tally.n:.2%} of {tally.n} events, {tally.wrong / tally.n:.2%} wrongly, "
    shown += f"at most {state.models.trained(None).decider.promised(tally.n) / tally.n:.2%} promised"
    assert f"decided of events-0, {shown}" in capsys.readouterr().out
    panel, course, would = decisions_panels(read_state(settings.daemon.state_dir)[0])
    row = next(row for row in panel.table if row[0] == "positive")
    assert row[1:3] == (f"{tally.n}", f"{tally.decided} ({tally.decided / tally.n:.1%})")
    assert row[3] == f"{tally.wrong} ({tally.wrong / tally.n:.2%})"
    drawn = picture(course.plot, "course", "")
    assert "% decided" in drawn
    assert "% of class wrong" in drawn
    assert f"{100 * state.models.trained(None).decider.would_decide(0.1):.0f} % at 10.0%" in would.alt


def test_settings_that_contradict_it(tmp_path):
    settings = configure(tmp_path)
    merged = change(settings, log={"model": "model", "merged": "merged"})
    assert any("decide.error does not go with log.merged" in line for line in find_contradictions(merged))


def test_a_decision_survives_its_bytes():
    model = ConformalClassifier(LASVM())
    said = model.decide_one({"a": 1.0})._replace(margin=None)
    assert from_json(to_json(said)) == said
