"""The merger: one model of all partitions' models, made again when they have changed, without any state of its own."""

import json

import numpy as np
import pytest
from logged import append, change, read_json
from logged import configure as small

from streamsvm import LASVM, OneVsRest, merge
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import PositionRefused, TopicMismatch, Unavailable
from streamsvm.connectors.merger import merger
from streamsvm.connectors.merger.merger import Merger
from streamsvm.connectors.records.models import Trained, pack_model, unpack_model
from streamsvm.connectors.records.published import Publisher, Shelf, read_newest
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer import trainer

pytestmark = pytest.mark.usefixtures("no_waiting_for_the_disk")


def configure(folder, **changes):
    topics, daemon = {"model": "model", "merged": "merged"}, {"batch": 64, "checkpoint_records": 20_000}
    return change(small(folder, log=topics, daemon=daemon, scorer={"model": "merged"}), **changes)


def some_events(n, first=0):
    rng = np.random.default_rng(first)
    for i in range(first, first + n):
        a, b = rng.normal(size=2).round(6).tolist()
        yield {"id": f"id-{i}", "x": {"a": 3 * a + 5, "b": 0.1 * b}, "y": a * b > 0}


def train(settings, events, n_partitions=3):
    """The models of the trainer's partitions after these events, which it has published."""
    with LocalLog(settings.log.dir) as log:
        log.create("events", n_partitions)
        for i, event in enumerate(events):
            log.produce("events", json.dumps(event).encode(), partition=i % n_partitions)
    states = trainer.run(settings)
    return [states[number].model for number in sorted(states)]


def published(settings):
    """The newest merged model and its manifest."""
    with LocalLog(settings.log.dir) as log:
        snapshot = read_newest(log, "merged", float("inf"), Shelf())["merged"]
    return unpack_model(snapshot.blob).model, snapshot.manifest


class Run:
    """A merger in this thread; `steps` is a generator that runs between its cycles, and stops it by ending."""

    def __init__(self, settings, steps):
        self.health, self.metrics = Health(), Metrics()
        self._steps = steps(self)
        with LocalLog(settings.log.dir, group="streamsvm-merge") as self.log:
            self.merger = Merger(
                settings, self.log, lambda: next(self._steps, "end") == "end", self.health, self.metrics
            )
            self.n_published = self.merger.run()

    def metric(self, name):
        lines = [line for line in self.metrics.render().splitlines() if line.startswith(f"streamsvm_{name}")]
        return float(lines[0].split()[-1])


def until(condition, n=600):
    """Let the merger go on until something holds."""
    for _ in range(n):
        if condition():
            return
        yield
    raise AssertionError("it did not happen")


def test_scorers_predict_with_the_model_that_the_merger_made(tmp_path):
    settings = configure(tmp_path)
    events = list(some_events(300))
    parts = train(settings, events)
    assert merger.run(settings) == 1
    assert scorer.run(settings) == 300
    expected = merge(parts)
    said = {score["id"]: score for score in read_json(settings, "scores")}
    margins = expected.decision_function_many([event["x"] for event in events])
    assert [said[event["id"]]["margin"] for event in events] == margins.tolist()
    assert said["id-0"]["model"] == {"ver": 300, "offset": 300}
    assert np.mean([said[event["id"]]["label"] == event["y"] for event in events]) > 0.9


def test_a_merger_that_begins_again_merges_only_if_a_trainer_has_published(tmp_path):
    settings = configure(tmp_path)
    train(settings, some_events(120))
    assert merger.run(settings) == 1
    assert merger.run(settings) == 0
    parts = train(settings, some_events(60, 120))
    assert merger.run(settings) == 1
    model, manifest = published(settings)
    assert model.digest() == merge(parts).digest()
    assert (manifest["epoch"], manifest["ver"], len(manifest["of"])) == (2, 180, 3)


def test_newer_models_are_merged_after_the_pause(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True}, merger={"seconds": 0.1})
    bounded = change(settings, daemon={"follow": False})
    train(bounded, some_events(90))

    def steps(run):
        yield from until(lambda: run.metric("merges_total") == 1)
        assert run.health.unready is None
        train(bounded, some_events(30, 90))
        yield from until(lambda: run.metric("merges_total") == 2)

    assert Run(settings, steps).n_published == 2
    assert published(settings)[1]["ver"] == 120


def test_models_that_do_not_fit_are_named_and_the_merger_waits_for_others(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True}, merger={"seconds": 0.1})
    other = LASVM(C=3.0)
    other.learn_one({"a": 1.0}, True)
    train(change(settings, daemon={"follow": False}), some_events(60), n_partitions=1)
    with LocalLog(settings.log.dir) as log:
        publisher = Publisher(log, "model")
        publisher.publish("p1", pack_model(Trained(other)), {"epoch": 1, "ver": 1, "offset": 1, "created": 0.0})

        def steps(run):
            yield from until(lambda: run.metric("failed_merges_total") == 1)
            yield
            assert "C=10.0 and C=3.0" in run.health.unready
            for _ in range(3):
                yield  # The same models are not tried again.
            publisher.withdraw("p1")
            yield from until(lambda: run.metric("merges_total") == 1)
            yield
            assert run.health.unready is None
            assert run.metric("failed_merges_total") == 1

        Run(settings, steps)


@pytest.mark.parametrize("name", ["p1", "p7"])
def test_a_model_of_another_kind_is_left_out(tmp_path, caplog, name):
    settings = configure(tmp_path, daemon={"follow": True})
    models = train(change(settings, daemon={"follow": False}), some_events(60), n_partitions=1)
    other = OneVsRest(LASVM(C=10.0), ["x", "y", "z"])
    other.learn_one({"a": 1.0}, "x")
    with LocalLog(settings.log.dir) as log:
        meta = {"epoch": 1, "ver": 1, "offset": 1, "created": 0.0}
        Publisher(log, "model").publish(name, pack_model(Trained(other)), meta)

    def steps(run):
        yield from until(lambda: run.metric("merges_total") == 1)
        yield
        assert (run.metric("refused_snapshots_total"), run.health.unready) == (1, None)

    Run(settings, steps)
    assert f"merging without model '{name}': it is a model of more than two classes" in caplog.text
    model, manifest = published(settings)
    assert (model.n_seen, manifest["ver"]) == (models[0].n_seen, 60)


@pytest.mark.parametrize("offset", [None, True, -1, 1 << 63])
def test_a_manifest_without_a_right_offset_is_a_merge_that_failed(tmp_path, offset):
    settings = configure(tmp_path, daemon={"follow": True})
    with LocalLog(settings.log.dir) as log:
        meta = {"epoch": 1, "ver": 1, "offset": offset, "created": 0.0}
        Publisher(log, "model").publish("p0", pack_model(Trained(LASVM())), meta)

    def steps(run):
        yield from until(lambda: run.metric("failed_merges_total") == 1)
        yield
        assert "'offset' must be an integer from 0 to 2**63 - 1" in run.health.unready

    Run(settings, steps)


def test_a_damaged_model_is_a_merge_that_failed(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True})
    with LocalLog(settings.log.dir) as log:
        Publisher(log, "model").publish("p0", b"no model", {"epoch": 1, "ver": 1, "offset": 1, "created": 0.0})

        def steps(run):
            yield from until(lambda: run.metric("failed_merges_total") == 1)

        assert Run(settings, steps).n_published == 0


def test_a_merger_waits_for_the_first_model_if_it_follows(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True})

    def steps(run):
        yield
        yield
        assert "no model has been published yet" in run.health.unready

    with LocalLog(settings.log.dir) as log:
        log.create("model", 1)
    assert Run(settings, steps).n_published == 0
    with pytest.raises(TopicMismatch, match=r"only if daemon\.follow"):
        merger.run(change(settings, daemon={"follow": False}))


def test_an_outage_and_a_refused_position_are_passed(tmp_path, monkeypatch):
    settings = configure(tmp_path, daemon={"follow": True})
    train(change(settings, daemon={"follow": False}), some_events(60))

    def steps(run):
        poll = run.log.poll
        errors = [Unavailable("no broker"), PositionRefused("compacted")]
        monkeypatch.setattr(run.log, "poll", lambda *given: poll(*given) if not errors else raised(errors.pop(0)))
        yield
        yield
        assert run.health.unready == "no broker"
        yield from until(lambda: run.metric("merges_total") == 1)

    Run(settings, steps)


def raised(error):
    raise error


def test_another_merger_takes_over(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True})
    train(change(settings, daemon={"follow": False}), some_events(60))

    def steps(run):
        yield from until(lambda: run.metric("merges_total") == 1)
        run.merger.lost([0])
        yield
        assert run.health.unready == "another merger works"
        run.merger.assigned([0])
        yield from until(lambda: run.health.unready is None)

    assert Run(settings, steps).n_published == 1, "the models are those of the newest merged model"


def test_settings_that_a_merger_lacks_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r"log\.model = ''"):
        merger.run(configure(tmp_path, log={"model": ""}))
    with pytest.raises(ConfigError, match=r"log\.merged = ''"):
        merger.run(configure(tmp_path, log={"merged": ""}))


def test_merged_snapshots_keep_the_order_of_the_partitions(tmp_path):
    settings = configure(tmp_path)
    parts = train(settings, some_events(240), n_partitions=12)
    merger.run(settings)
    assert published(settings)[0].digest() == merge(parts).digest()


# --- a new partition --------------------------------------------------------------------------------------------------


def test_a_new_partition_goes_on_from_the_merged_model(tmp_path):
    settings = configure(tmp_path, daemon={"begin": "merged"})
    train(settings, some_events(120), n_partitions=2)
    merger.run(settings)
    expected, _ = published(settings)
    assert train(settings, [], n_partitions=3)[0].n_seen == 60, "a partition without an event has no model yet"
    for first in (120, 140):  # The second time, the partition goes on from its checkpoint.
        events = list(some_events(20, first))
        append(settings, events, partition=2)
        model = trainer.run(settings)[2].model
        expected.learn_many([event["x"] for event in events], [event["y"] for event in events])
        assert model.n_seen == expected.n_seen == first + 20
        np.testing.assert_array_equal(model.dual_coef, expected.dual_coef)


def test_a_correction_that_only_one_partition_was_told_holds_in_the_next_merge(tmp_path):
    settings = configure(tmp_path, log={"labels": "labels"}, daemon={"begin": "merged"})
    with LocalLog(settings.log.dir) as log:
        log.create("labels", 3)
    events = {i: {**event, "id": i} for i, event in enumerate(some_events(150))}
    train(settings, [events[i] for i in range(120)], n_partitions=2)
    merger.run(settings)
    append(settings, [events[i] for i in range(120, 150)], partition=2)
    copies = trainer.run(settings)[2].model.support_ids.tolist()
    turned = next(i for i in copies if i < 120 and i % 2 == 0)  # partition 0 has it
    append(settings, [{"id": turned, "y": not events[turned]["y"], "rev": 1}], topic="labels", partition=0)
    parts = [state.model for state in trainer.run(settings).values()]
    assert turned in parts[2].support_ids, "the copy keeps the old label"
    merger.run(settings)
    model, _ = published(settings)
    (coefficient,) = model.dual_coef[model.support_ids == turned]
    assert (coefficient > 0) == (not events[turned]["y"])


def test_a_merged_model_of_other_parameters_is_refused(tmp_path):
    settings = configure(tmp_path)
    train(settings, some_events(60), n_partitions=1)
    merger.run(settings)
    other = change(settings, model={"C": 3.0}, daemon={"begin": "merged", "state_dir": tmp_path / "other"})
    with pytest.raises(ConfigError, match=r"the merged model has C = 10\.0, the configuration says 3\.0"):
        trainer.run(other)


def test_without_a_merged_model_a_partition_begins_empty(tmp_path):
    settings = configure(tmp_path, daemon={"begin": "merged"})
    assert train(settings, some_events(20), n_partitions=1)[0].n_seen == 20


def test_models_of_several_classes_are_merged_served_and_begun_with(tmp_path):
    settings = configure(tmp_path, label={"max_classes": 5}, daemon={"begin": "merged"})
    events = [
        {**event, "y": ("none", "left", "right")[event["y"] * (1 + (event["x"]["b"] > 0))]}
        for event in some_events(240)
    ]
    parts = train(settings, events, n_partitions=2)
    merger.run(settings)
    model, _ = published(settings)
    assert model.digest() == merge(parts).digest()
    scorer.run(settings)
    said = {score["id"]: score["label"] for score in read_json(settings, "scores")}
    assert np.mean([said[event["id"]] == event["y"] for event in events]) > 0.85
    append(settings, [{**event, "y": "new"} for event in some_events(20, 240)], partition=2)
    state = trainer.run(settings)[2]
    assert state.model.n_seen == 260
    assert state.classes.labels == [*model.labels, "new"]
