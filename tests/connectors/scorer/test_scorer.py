"""The scorer: every event is predicted, by the newest model that is whole."""

import json
import threading
import time

import fake_cupy
import numpy as np
import pytest
from asked import until
from fuse import Fuse, Killed
from logged import change, read, read_json
from logged import configure as small
from states import state_of

from streamsvm import LASVM, OneVsRest, WarmupScaler
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import OffsetOutOfRange, PositionRefused, TopicMismatch, Unavailable
from streamsvm.connectors.records.models import Trained, pack_model
from streamsvm.connectors.records.predictions import HEADERS, ModelVersion
from streamsvm.connectors.records.published import Publisher, Snapshot
from streamsvm.connectors.runtime.folders import AlreadyInUse
from streamsvm.connectors.runtime.health import Health
from streamsvm.connectors.runtime.metrics import Metrics
from streamsvm.connectors.runtime.numbers import MAX_INT64
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.scorer.committee import Committee, KeyModels, Member, ModelTopic, PartitionModels, unpack
from streamsvm.connectors.scorer.scorer import Scorer
from streamsvm.connectors.settings.sections import ConfigError, LabelSettings
from streamsvm.connectors.trainer import trainer
from streamsvm.connectors.trainer.publication import key_name
from streamsvm.core.device.gpu import find_gpu

# --- a stream, its trainer and its scorer -----------------------------------------------------------------------------


def configure(folder, **changes):
    settings = small(folder, log={"model": "model"}, daemon={"batch": 500, "checkpoint_records": 20_000})
    return change(settings, **changes)


def some_events(n, first=0):
    rng = np.random.default_rng(first)
    for i in range(first, first + n):
        a, b = rng.normal(size=2).round(6).tolist()
        event = {"id": f"id-{i}", "x": {"a": 3 * a + 5, "b": 0.1 * b}}
        yield event if i % 7 == 0 else {**event, "y": a * b > 0}


def fill(settings, values, *, keys=None, partitions=None):
    """Append events; the i-th with the i-th of the keys, to the i-th of the partitions, over and over."""
    with LocalLog(settings.log.dir) as log:
        for i, value in enumerate(values):
            value = value if isinstance(value, bytes) else json.dumps(value).encode()
            key = keys[i % len(keys)] if keys else None
            log.produce(settings.log.topic, value, key=key, partition=partitions and partitions[i % len(partitions)])


def scores(settings):
    """What was predicted, in order."""
    return read_json(settings, settings.log.scores)


def sources(settings):
    return [item["src"] for item in scores(settings)]


def train(settings):
    """The states of a trainer that has consumed all there is, and published."""
    return trainer.run(change(settings, daemon={"follow": False, "start": "earliest"}))


def trained(folder, n=60, **changes):
    """The settings of a trainer that has consumed so many events."""
    settings = configure(folder, **changes)
    fill(settings, some_events(n))
    train(settings)
    return settings


def expected(state, events, key=None):
    """Margins and scores by the trainer's own model."""
    rows = [event["x"] for event in events]
    model = state.models.trained(key).model
    margins = model.decision_function_many(rows)
    return margins.tolist(), model.probability(margins).tolist()


class Run:
    """A scorer in this thread; `steps` is a generator that runs between its cycles, and stops it by ending."""

    def __init__(self, settings, steps=None):
        self.health, self.metrics = Health(), Metrics()
        self._steps = steps(self) if steps else None
        with LocalLog(settings.log.dir, group=f"{settings.group.id}-score") as log:
            self.log = log
            self.scorer = Scorer(settings, log, self._stop, self.health, self.metrics)
            self.n_predicted = self.scorer.run()

    def _stop(self):
        return self._steps is not None and next(self._steps, "end") == "end"

    def metric(self, name):
        """Lines of `/metrics`."""
        lines = self.metrics.render().splitlines()
        return [line.removesuffix(".0") for line in lines if line.startswith(f"streamsvm_{name}")]


def cycles(n, settings=None, until=None):
    """Let the scorer go on for `n` cycles, or until it has predicted so many."""
    for _ in range(n):
        if settings and until and len(scores(settings)) >= until:
            return
        yield
    assert not settings, f"only {len(scores(settings))} of {until} events were predicted"


def committed(settings, number=0):
    with LocalLog(settings.log.dir, group=f"{settings.group.id}-score") as log:
        found = log.committed(settings.log.topic).get(number)
    return found and found.offset


# --- one model --------------------------------------------------------------------------------------------------------


def test_scores_are_those_of_the_trained_model(tmp_path):
    settings = configure(tmp_path)
    events = list(some_events(200))
    fill(settings, events, keys=[b"a", None])
    state = train(settings)[0]
    digest = state.model.digest()
    assert scorer.run(settings) == 200
    found = scores(settings)
    assert ([p["margin"] for p in found], [p["score"] for p in found]) == expected(state, events)
    assert [p["id"] for p in found] == [event["id"] for event in events]
    assert [p["label"] for p in found] == [p["margin"] > 0 for p in found]
    assert [p["src"] for p in found] == [f"events-0-{i}" for i in range(200)]
    assert all(p["model"] == {"ver": state.counters.learned, "offset": 200} for p in found)
    records = read(settings, "scores")
    assert [record.key for record in records[:2]] == [b"a", None]
    assert list(records[0].headers) == list(HEADERS)
    assert state.model.digest() == digest


@pytest.mark.parametrize("per", ["partition", "key"])
def test_scores_of_a_device_are_those_of_the_cpu(tmp_path, monkeypatch, per):
    """CuPy's part is played by a stand-in; see tests/core/device/test_device.py."""
    settings = change(configure(tmp_path), daemon={"per": per})
    events = list(some_events(200))
    fill(settings, events, keys=[b"a"])
    state = train(settings)[0]
    find_gpu.cache_clear()
    fake_cupy.install(monkeypatch)
    try:
        assert scorer.run(settings, device="cuda") == 200
    finally:
        find_gpu.cache_clear()
    assert fake_cupy.launched[0] > 0
    margins, _ = expected(state, events, b"a")
    np.testing.assert_allclose([p["margin"] for p in scores(settings)], margins, atol=1e-5)


def test_the_trace_context_of_an_event_goes_along(tmp_path):
    settings = configure(tmp_path)
    trace = [("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), ("tracestate", b"a=1")]
    with LocalLog(settings.log.dir) as log:
        for event, headers in zip(
            some_events(3), ([*trace, ("other", b"x")], [("tracestate", b"a" * 2000)], []), strict=True
        ):
            log.produce(settings.log.topic, json.dumps(event).encode(), headers=headers)
    train(settings)
    scorer.run(settings)
    for topic in (settings.log.scores, settings.log.predictions):
        found = [list(record.headers) for record in read(settings, topic)]
        assert found == [[*HEADERS, *trace], list(HEADERS), list(HEADERS)]


def test_a_second_run_goes_on_behind_the_first(tmp_path):
    settings = trained(tmp_path, 100)
    assert scorer.run(settings) == 100
    assert scorer.run(settings) == 0
    fill(settings, some_events(30, 100))
    assert scorer.run(settings) == 30
    assert sources(settings) == [f"events-0-{i}" for i in range(130)]
    assert committed(settings) == 130


@pytest.mark.parametrize("algorithm", ["lasvm-g", "lasvm-nc", "lasvm-i", "full"])
def test_every_algorithm_is_served_whatever_the_scorer_s_own_settings_say(tmp_path, algorithm):
    settings = configure(tmp_path, model={"algorithm": algorithm})
    events = list(some_events(60))
    fill(settings, events)
    state = train(settings)[0]
    scorer.run(change(settings, model={"algorithm": "lasvm", "scaling": "none"}))
    assert [p["margin"] for p in scores(settings)] == expected(state, events)[0]


def test_what_is_no_event_is_counted_and_passed_over(tmp_path):
    poly = {"kernel": "poly", "gamma": 1.0, "scaling": "none"}  # under which the last of these is too large
    settings = configure(tmp_path, model=poly)
    values = list(some_events(60))
    values[30:33] = [b"{", b'{"id": 1, "x": {"a": "high"}}', {"id": 2, "x": {"b": 9e14}}]
    fill(settings, values)
    with LocalLog(settings.log.dir) as log:
        log.produce("events", None, key=b"k")
    train(settings)
    n_refused = len(read(settings, "dlq"))
    run = Run(settings)
    assert run.n_predicted == 57
    assert [line for line in run.metric("bad_records_total") if not line.endswith(" 0")] == [
        'streamsvm_bad_records_total{reason="bad-feature"} 2',
        'streamsvm_bad_records_total{reason="not-json"} 1',
    ]
    assert len(read(settings, "dlq")) == n_refused == 3
    assert committed(settings) == 61
    assert run.metric("tombstones_total") == ["streamsvm_tombstones_total 1"]


def test_metrics_and_health(tmp_path, monkeypatch):
    monkeypatch.setattr(scorer, "LOOK_SECONDS", 0.0)
    settings = trained(tmp_path, daemon={"follow": True})

    def steps(run):
        assert run.health.unready == "starting"
        yield from cycles(50, settings, until=60)
        yield from cycles(2)
        assert run.health.unready is None
        assert run.metric("records_total") == ["streamsvm_records_total 60"]
        assert run.metric("predictions_total") == ["streamsvm_predictions_total 60"]
        assert run.metric("refused_snapshots_total") == ["streamsvm_refused_snapshots_total 0"]
        assert run.metric("lag_records") == ['streamsvm_lag_records{partition="0",topic="events"} 0']
        [age] = run.metric("model_age_seconds")
        name, seconds = age.split()
        assert name == 'streamsvm_model_age_seconds{model="p0"}'
        assert 0 < float(seconds) < 60

    Run(settings, steps)


def test_a_scorer_needs_a_topic_of_models(tmp_path):
    with pytest.raises(ConfigError, match=r"log\.model"):
        scorer.run(configure(tmp_path, log={"model": ""}))


def test_two_scorers_do_not_write_to_one_embedded_log(tmp_path):
    settings = trained(tmp_path, 30)
    with LocalLog(settings.log.dir) as log:
        log.produce(settings.log.scores, b"")
        with pytest.raises(AlreadyInUse):
            scorer.run(settings)


# --- other models come ------------------------------------------------------------------------------------------------


def test_a_newer_model_takes_over_between_two_events(tmp_path, monkeypatch):
    monkeypatch.setattr(scorer, "POLL_RECORDS", 8)
    settings = configure(tmp_path, daemon={"follow": True})
    events = list(some_events(300))
    fill(settings, events[:100])
    states = [train(settings)[0]]

    def steps(run):
        yield from cycles(50, settings, until=100)
        for first in (100, 200):
            fill(settings, events[first : first + 100])
            yield from cycles(50, settings, until=first + 48)
            states.append(train(settings)[0])
            yield from cycles(50, settings, until=first + 100)

    Run(settings, steps)
    found = scores(settings)
    assert sources(settings) == [f"events-0-{i}" for i in range(300)], "each once, and in order"
    places = [0, 148, 248, 300]
    for state, first, last in zip(states, places[:-1], places[1:], strict=True):
        assert {p["model"]["ver"] for p in found[first:last]} == {state.counters.learned}
        margins, _ = expected(state, events[first:last])
        assert [p["margin"] for p in found[first:last]] == pytest.approx(margins, abs=1e-6)


def publish(settings, blob, version=1, *, offset=0, on_the_way=lambda value: value):
    """Publish a blob as a newer model of partition 0; its chunks may suffer on the way."""

    class Way:
        def produce(self, topic, value, *, key, partition):
            value = value if key.endswith(b"manifest") else on_the_way(value)
            if value is not None:
                log.produce(topic, value, key=key, partition=partition)

    with LocalLog(settings.log.dir) as log:
        meta = {"epoch": 99, "ver": version, "offset": offset, "created": time.time()}
        Publisher(Way(), settings.log.model).publish("p0", blob, meta)


@pytest.mark.long
@pytest.mark.parametrize(
    ("blob", "offset", "on_the_way"),
    [
        (pack_model(Trained(LASVM())), 0, lambda value: None),
        (pack_model(Trained(LASVM())), 0, lambda value: value[:-1] + b"?"),
        (b"not a model", 0, lambda value: value),
        (pack_model(Trained(LASVM())), "many", lambda value: value),
    ],
    ids=["torn", "damaged", "no model", "no offset"],
)
def test_a_snapshot_that_is_of_no_use_is_refused_and_the_old_one_kept(
    tmp_path, monkeypatch, caplog, blob, offset, on_the_way
):
    monkeypatch.setattr(scorer, "LOOK_SECONDS", 0.0)
    settings = configure(tmp_path, daemon={"follow": True})
    events = list(some_events(120))
    fill(settings, events[:60])
    state = train(settings)[0]

    def steps(run):
        yield from cycles(50, settings, until=60)
        publish(settings, blob, offset=offset, on_the_way=on_the_way)
        yield from cycles(3)
        fill(settings, events[60:])
        yield from cycles(50, settings, until=120)
        yield from cycles(2)
        assert run.metric("refused_snapshots_total") == ["streamsvm_refused_snapshots_total 1"]
        assert run.health.unready is None
        publish(settings, pack_model(Trained(LASVM())), 2)
        yield from cycles(3)
        fill(settings, some_events(1, 120))
        yield from cycles(50, settings, until=121)

    Run(settings, steps)
    assert "refusing" in caplog.text
    found = scores(settings)
    assert [p["margin"] for p in found[60:120]] == pytest.approx(expected(state, events[60:])[0], abs=1e-6)
    assert {p["model"]["ver"] for p in found[:120]} == {state.counters.learned}
    assert found[120]["model"] == {"ver": 2, "offset": 0}, "the next that is whole is taken"


@pytest.mark.long
def test_without_a_model_events_wait(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True})
    (tmp_path / "log").mkdir()
    states = []

    def steps(run):
        yield from cycles(3)
        assert run.health.unready == "no model has been published yet on topic 'model' for daemon.per = 'partition'"
        fill(settings, some_events(80))
        yield from cycles(3)
        assert committed(settings) is None
        states.append(train(settings)[0])
        yield from cycles(50, settings, until=80)
        assert run.health.unready is None

    Run(settings, steps)
    assert sources(settings) == [f"events-0-{i}" for i in range(80)]
    assert {p["model"]["ver"] for p in scores(settings)} == {states[0].counters.learned}


def test_a_scorer_that_does_not_follow_does_not_wait_for_a_model(tmp_path):
    settings = configure(tmp_path)
    fill(settings, some_events(10))
    with pytest.raises(TopicMismatch, match="'model' has no model"):
        scorer.run(settings)


def test_models_of_the_other_kind_are_none(tmp_path):
    settings = trained(tmp_path)
    with pytest.raises(TopicMismatch, match=r"daemon\.per = 'key'"):
        scorer.run(change(settings, daemon={"per": "key"}))


def test_of_all_that_was_published_before_only_the_newest_is_unpacked(tmp_path, monkeypatch):
    settings = configure(tmp_path)
    for first in range(0, 150, 30):
        fill(settings, some_events(30, first))
        state = train(settings)[0]
    unpacked = []
    monkeypatch.setattr(scorer, "unpack", lambda found, device: unpacked.append(found) or unpack(found, device))
    scorer.run(settings)
    assert [snapshot.manifest["ver"] for snapshot in unpacked] == [state.counters.learned]


# --- several models ---------------------------------------------------------------------------------------------------


def test_a_committee_s_margins_and_scores_are_means(tmp_path):
    settings = configure(tmp_path)
    with LocalLog(settings.log.dir) as log:
        log.create("events", 4)
    events = list(some_events(400))
    fill(settings, events, partitions=[0, 1, 2, 3])
    states = train(settings)
    assert sorted(states) == [0, 1, 2, 3]
    assert scorer.run(settings) == 400
    by_id = {p["id"]: p for p in scores(settings)}
    by_state = [expected(state, events) for state in states.values()]
    margins, probabilities = (np.mean(rows, axis=0) for rows in zip(*by_state, strict=True))
    sides = np.where(margins > 0.0, [[0.5], [1.0]], [[0.0], [0.5]])  # where the label lets a score be
    probabilities = np.clip(probabilities, *sides)
    np.testing.assert_allclose([by_id[event["id"]]["margin"] for event in events], margins, atol=1e-6)
    np.testing.assert_allclose([by_id[event["id"]]["score"] for event in events], probabilities, atol=1e-6)
    total = {"ver": sum(state.counters.learned for state in states.values()), "offset": 400}
    assert all(p["model"] == total for p in by_id.values())
    for number in range(4):
        assert [p.partition for p in read(settings, "scores")].count(number) == 100


def test_a_committee_s_label_and_score_agree():
    """Its members' decision values are positive on average, and their probabilities small."""
    x, members = {"u": 1.0}, []
    for label, slope, C in ((True, 0.05, 10.0), (False, 50.0, 0.1)):
        model = LASVM(C=C, gamma=1.0)
        model.learn_many([x, {"u": -1.0}], [label, not label])
        state_of(model).sigmoid[[0, 2]] = slope
        members.append(Member(Trained(model), ModelVersion(1, 1), 0.0))
    (said,) = Committee(members).predict([x])
    assert said.margin > 0.0
    assert said.score > 0.5


def test_a_member_that_is_missing_is_not_waited_for(tmp_path):
    settings = configure(tmp_path)
    with LocalLog(settings.log.dir) as log:
        log.create("events", 2)
    fill(settings, some_events(60), partitions=[1])
    states = train(settings)
    assert sorted(states) == [1]
    fill(settings, some_events(10), partitions=[0])
    assert scorer.run(settings) == 70


def test_each_key_has_its_own_model(tmp_path):
    keys = [b"a", b"b", b"c", None]
    settings = configure(tmp_path, daemon={"per": "key", "max_models": 2})
    events = list(some_events(200))
    fill(settings, events, keys=keys)
    state = train(settings)[0]
    fill(settings, some_events(1, 200), keys=[b"unknown"])
    scorer.run(settings)
    found = scores(settings)
    for i, key in enumerate(keys):
        margins, probabilities = expected(state, events[i::4], key)
        np.testing.assert_allclose([p["margin"] for p in found[i:200:4]], margins, atol=1e-6)
        np.testing.assert_allclose([p["score"] for p in found[i:200:4]], probabilities, atol=1e-6)
    assert all(p["model"]["ver"] == state.counters.learned for p in found[:200])
    assert found[200]["model"] == {"ver": 0, "offset": 0}
    assert (found[200]["label"], found[200]["margin"], found[200]["score"]) == (False, 0.0, 0.5)


def test_a_model_that_made_room_for_another_is_served_no_more(tmp_path):
    settings = configure(tmp_path, daemon={"per": "key", "max_keys": 2, "follow": True})
    keys = [b"a", b"b"]
    fill(settings, some_events(100), keys=keys)
    train(settings)

    def steps(run):
        yield from cycles(50, settings, until=100)
        assert {item["model"]["ver"] > 0 for item in scores(settings)} == {True}
        fill(settings, some_events(40, 100), keys=[b"c", b"b"])
        train(settings)
        yield from cycles(50, settings, until=140)
        fill(settings, some_events(4, 200), keys=[b"a", b"b", b"c", b"d"])
        yield from cycles(50, settings, until=144)

    run = Run(settings, steps)
    assert [item["model"]["ver"] > 0 for item in scores(settings)[-4:]] == [False, True, True, False]
    assert run.metric("refused_snapshots_total") in ([], ["streamsvm_refused_snapshots_total 0"])


def test_the_model_of_a_partition_may_be_withdrawn(tmp_path):
    models = PartitionModels()
    for number in range(2):
        manifest = {"epoch": 1, "ver": 1 + number, "offset": 0, "created": 0.0}
        snapshot = Snapshot(f"p{number}", manifest, pack_model(Trained(LASVM(), WarmupScaler())))
        models.put(snapshot, unpack(snapshot))
    models.drop("p1")
    models.drop("p7")
    assert models.choose(None).version.ver == 1


def test_of_many_keys_the_last_used_are_unpacked():
    models = KeyModels(2)

    def publish(key, ver):
        blob = pack_model(Trained(LASVM(), WarmupScaler()))
        manifest = {"epoch": 1, "ver": ver, "offset": ver, "created": 0.0}
        snapshot = Snapshot(key_name(key), manifest, blob)
        models.put(snapshot, unpack(snapshot))

    for ver, key in enumerate([b"a", b"b", b"c"]):
        publish(key, ver)
    a = models.choose(b"a")
    assert models.choose(b"c").version.ver == 2
    assert models.choose(b"a") is a
    assert models.choose(b"b").version.ver == 1
    assert models.choose(b"a") is a
    assert models.choose(b"c") is not None
    assert models.choose(b"b").version.ver == 1
    assert models.choose(b"a") is not a
    publish(b"a", 7)
    assert models.choose(b"a").version.ver == 7
    assert models.choose(b"d").version.ver == 0


@pytest.mark.long
def test_models_of_keys_come_a_few_at_a_time(tmp_path, monkeypatch):
    """So that events do not wait until all of them are unpacked."""
    monkeypatch.setattr(scorer, "_SWAP_SECONDS", 0.0)
    monkeypatch.setattr(scorer, "_LOADING_SECONDS", 0.0)
    settings = configure(tmp_path, daemon={"per": "key", "follow": True})
    keys = [b"%d" % i for i in range(10)]
    fill(settings, some_events(100), keys=keys)
    train(settings)

    def steps(run):
        yield from cycles(50, settings, until=100)
        fill(settings, some_events(100, 100), keys=keys)
        train(settings)
        yield from cycles(3)
        fill(settings, some_events(10, 200), keys=keys)
        yield from cycles(20)
        fill(settings, some_events(10, 210), keys=keys)
        yield from cycles(50, settings, until=220)

    Run(settings, steps)
    found = scores(settings)
    old, new = found[0]["model"], found[-1]["model"]
    assert len({p["id"] for p in found}) == len(found) == 220
    assert old != new
    assert all(p["model"] == old for p in found[:100])
    assert all(p["model"] == new for p in found[210:])
    assert {p["model"]["ver"] for p in found[200:210]} == {old["ver"], new["ver"]}, "some were not there yet"


def test_nobody_predicts_what_a_new_model_predicts():
    answers = Committee([]).predict([{}, {}])
    assert [answer.margin for answer in answers] == LASVM().decision_function_many([{}, {}]).tolist() == [0.0, 0.0]
    assert [answer.score for answer in answers] == [LASVM().predict_proba_one({})[True]] * 2


# --- models that do not fit -------------------------------------------------------------------------------------------

CLASSES = LabelSettings(classes=("a", "b", "c"))


def taught(kind, *names):
    """A model of two classes, or of more, that knows these features."""
    model = LASVM(C=10.0) if kind == "two" else OneVsRest(LASVM(C=10.0), ["a", "b", "c"])
    for i in range(12):
        y = i % 2 == 0 if kind == "two" else "abc"[i % 3]
        model.learn_one({name: float(i % 6) for name in names or ("a", "b")}, y)
    return model


@pytest.mark.parametrize(
    ("kind", "changes", "stranger", "why"),
    [
        ("two", {}, taught("more"), "it is a model of more than two classes, and the configuration has two"),
        ("more", {}, taught("two"), "it is a model of two classes, and the configuration has more than two"),
        ("two", {"features": {"names": ("a", "b")}}, taught("two", "a", "z"), "it has learned the feature 'z', which "),
        ("two", {"log": {"format": "float32"}}, taught("two"), "it has learned the feature 'a', and log.format = "),
    ],
    ids=["more", "two", "names", "format"],
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_model_of_another_kind_is_refused_once(tmp_path, caplog, kind, changes, stranger, why, is_first):
    settings = configure(tmp_path, label={"classes": CLASSES.classes} if kind == "more" else {}, **changes)
    is_json = settings.log.format == "json"
    value = b'{"id": 1, "x": {"a": 1.0, "b": 2.0}}' if is_json else np.arange(2.0, dtype="<f4").tobytes()
    with LocalLog(settings.log.dir) as log:
        log.produce(settings.log.topic, value, headers=[("sv-id", b"1")])
        publisher = Publisher(log, settings.log.model)
        models = {"p0": taught(kind, *(() if is_json else "01")), "p1": stranger}
        for version in (1, 2):
            for name in sorted(models, reverse=is_first):
                meta = {"epoch": 1, "ver": version, "offset": 5, "created": 1.0}
                publisher.publish(name, pack_model(Trained(models[name])), meta)
    run = Run(settings)
    assert run.metric("refused_snapshots_total") == ["streamsvm_refused_snapshots_total 1"]
    assert caplog.text.count(why) == 1
    (found,) = scores(settings)
    assert found["model"] == {"ver": 2, "offset": 5}
    assert ("probabilities" in found) is (kind == "more")
    assert scorer.run(settings) == 0, "the next start is no worse"


def test_a_model_of_another_kind_comes_again_and_again(tmp_path, caplog):
    settings = trained(tmp_path, daemon={"follow": True})
    stranger = pack_model(Trained(taught("more")))

    def steps(run):
        yield from cycles(50, settings, until=60)
        for version in (10, 20, 30):
            publish(settings, stranger, version)
            yield from cycles(3)
        fill(settings, some_events(1, 60))
        yield from cycles(50, settings, until=61)
        assert run.metric("refused_snapshots_total") == ["streamsvm_refused_snapshots_total 3"]

    Run(settings, steps)
    assert caplog.text.count("more than two classes") == 1


def test_a_scorer_says_why_it_has_no_model(tmp_path):
    settings = configure(tmp_path)
    fill(settings, some_events(1))
    publish(settings, pack_model(Trained(taught("more"))))
    with pytest.raises(TopicMismatch, match="Model 'p0' is refused: it is a model of more than two classes"):
        scorer.run(settings)


@pytest.mark.parametrize(
    "fields",
    [
        *({"offset": number} for number in (True, -1, -(10**30), 1 << 63, 1.0, None)),
        *({"created": number} for number in (True, -1, -(10**30), 1 << 63, 1e300, None, "now")),
    ],
    ids=str,
)
def test_numbers_of_a_manifest_are_bounded(fields):
    manifest = {"epoch": 1, "ver": 1, "offset": 1, "created": 1.0, **fields}
    with pytest.raises(ValueError, match=f"'{next(iter(fields))}' must be "):
        unpack(Snapshot("p0", manifest, pack_model(Trained(LASVM()))))


def test_the_largest_versions_are_no_end_of_a_scorer(tmp_path):
    settings = configure(tmp_path)
    fill(settings, some_events(5))
    with LocalLog(settings.log.dir) as log:
        for number in range(3):
            meta = {"epoch": 1, "ver": MAX_INT64, "offset": MAX_INT64, "created": 1.0}
            Publisher(log, settings.log.model).publish(f"p{number}", pack_model(Trained(LASVM())), meta)
    assert scorer.run(settings) == 5
    assert scores(settings)[0]["model"] == {"ver": MAX_INT64, "offset": MAX_INT64}


# --- stopped, killed and started again --------------------------------------------------------------------------------


def run_with(settings, fuse, monkeypatch):
    with monkeypatch.context() as patch:
        for name in ("seek", "poll", "produce", "flush", "commit"):
            patch.setattr(LocalLog, name, fuse.around(getattr(LocalLog, name)))
        return scorer.run(settings)


@pytest.mark.long
@pytest.mark.parametrize("start", ["earliest", "latest"])
def test_killed_at_any_step_it_predicts_every_event_at_least_once(tmp_path, monkeypatch, start):
    settings = configure(tmp_path, daemon={"batch": 4, "checkpoint_records": 8, "start": start})
    begin, end = (0, 12) if start == "earliest" else (12, 24)
    fill(settings, some_events(12))
    train(settings)
    if start == "latest":  # which is here; what comes afterwards has to be predicted, whatever happens
        assert scorer.run(settings) == 0
        fill(settings, some_events(12, 12))
    fuse = Fuse()
    with monkeypatch.context() as patch:
        patch.setattr(LocalLog, "commit", lambda *_: None)  # to come back to the same beginning
        run_with(settings, fuse, patch)
    assert fuse.steps > 30
    before = committed(settings)
    for place in range(1, fuse.steps + 1):
        n_before = len(scores(settings))
        with pytest.raises(Killed):
            run_with(settings, Fuse(place), monkeypatch)
        scorer.run(settings)
        numbers = [int(src.rsplit("-", 1)[1]) for src in sources(settings)[n_before:]]
        assert set(numbers) == set(range(begin, end)), f"killed at step {place}"
        assert committed(settings) == end
        path = settings.log.dir / "events" / "0" / f"committed-{settings.group.id}-score.json"
        path.unlink() if before is None else path.write_text(json.dumps([before, ""]))


def test_nothing_is_committed_before_it_is_durable(tmp_path, monkeypatch):
    settings = trained(tmp_path, daemon={"checkpoint_records": 10, "batch": 10})
    effects = []
    for name in ("produce", "flush", "commit"):
        original = getattr(LocalLog, name)

        def noted(self, *arguments, name=name, original=original, **options):
            effects.append(name)
            return original(self, *arguments, **options)

        monkeypatch.setattr(LocalLog, name, noted)
    scorer.run(settings)
    commits = [i for i, name in enumerate(effects) if name == "commit"]
    assert commits
    assert all(effects[i - 1] == "flush" for i in commits)


def test_it_begins_at_the_end_of_the_log_if_told_so(tmp_path):
    settings = trained(tmp_path, daemon={"start": "latest", "follow": True})

    def steps(run):
        fill(settings, some_events(10, 60))  # after its beginning, and before it has read the models
        yield from cycles(50, settings, until=10)

    Run(settings, steps)
    assert sources(settings) == [f"events-0-{i}" for i in range(60, 70)]


def test_it_ends_where_the_log_ended_when_it_began(tmp_path):
    settings = trained(tmp_path)

    def steps(run):
        yield
        fill(settings, some_events(10, 60))
        yield from cycles(1000)

    assert Run(settings, steps).n_predicted == 60
    assert committed(settings) == 60
    assert scorer.run(settings) == 10


@pytest.mark.long
@pytest.mark.parametrize("has_model", [True, False])
def test_it_stops_at_once(tmp_path, has_model):
    settings = configure(tmp_path, daemon={"follow": True})
    fill(settings, some_events(60))
    if has_model:
        train(settings)
    stop = threading.Event()
    thread = threading.Thread(target=scorer.run, args=(settings, stop.is_set))
    thread.start()
    time.sleep(0.5)
    until(lambda: len(scores(settings)) == (60 if has_model else 0))
    stop.set()
    thread.join(60)
    assert not thread.is_alive()
    assert committed(settings) == (60 if has_model else None)


@pytest.mark.long
def test_what_is_handed_over_is_committed_and_what_is_lost_is_not(tmp_path):
    settings = configure(tmp_path, daemon={"follow": True})
    with LocalLog(settings.log.dir) as log:
        log.create("events", 2)
    fill(settings, some_events(60), partitions=[0, 1])
    train(settings)

    def steps(run):
        yield from cycles(5)
        assert (committed(settings, 0), committed(settings, 1)) == (30, 30)
        fill(settings, some_events(20, 60), partitions=[0, 1])
        yield from cycles(5)
        assert len(read(settings, "scores")) == 80
        run.scorer.lost([1])
        run.scorer.revoked([0])
        assert (committed(settings, 0), committed(settings, 1)) == (40, 30)
        yield from cycles(2)
        assert run.health.unready == "no partition is assigned"
        assert run.metric("lag_records") == []
        run.scorer.assigned([0, 1])
        yield from cycles(5)

    assert Run(settings, steps).n_predicted == 90
    assert (committed(settings, 0), committed(settings, 1)) == (40, 40)


# --- trouble ----------------------------------------------------------------------------------------------------------


def failing(function, n_times, error):
    """Fails so many times, then does what it should."""
    left = [n_times]

    def wrapped(*arguments, **options):
        if left[0] == 0:
            return function(*arguments, **options)
        left[0] -= 1
        raise error

    return wrapped


@pytest.mark.long
@pytest.mark.parametrize("verb", ["poll", "flush"])
def test_a_log_that_is_away_is_waited_for(tmp_path, monkeypatch, verb):
    settings = trained(tmp_path, daemon={"follow": True, "checkpoint_records": 1})

    def steps(run):
        yield from cycles(50, settings, until=60)
        monkeypatch.setattr(run.log, verb, failing(getattr(run.log, verb), 2, Unavailable("nobody is there")))
        fill(settings, some_events(10, 60))
        yield from cycles(2)
        assert run.health.unready == "nobody is there"
        assert committed(settings) == 60
        yield from cycles(50, settings, until=70)
        yield from cycles(3)
        assert run.health.unready is None
        assert committed(settings) == 70

    Run(settings, steps)
    assert len(set(sources(settings))) == len(sources(settings)) == 70


def test_a_position_that_the_log_refuses_is_sought_again(tmp_path, monkeypatch):
    settings = trained(tmp_path, daemon={"follow": True})

    def steps(run):
        yield from cycles(50, settings, until=60)
        run.log.seek("events", 0, 7)
        monkeypatch.setattr(run.log, "poll", failing(run.log.poll, 1, PositionRefused("no")))
        fill(settings, some_events(10, 60))
        yield from cycles(50, settings, until=70)

    Run(settings, steps)
    assert sources(settings) == [f"events-0-{i}" for i in range(70)]


def test_no_partition_leaves_a_transaction_that_cannot_end_yet(tmp_path, monkeypatch):
    settings = trained(tmp_path, daemon={"follow": True})

    def steps(run):
        yield from cycles(50, settings, until=60)
        yield from cycles(2)
        fill(settings, some_events(10, 60))
        yield from cycles(50, settings, until=70)
        monkeypatch.setattr(run.log, "flush", failing(run.log.flush, 1, Unavailable("away")))
        with pytest.raises(Unavailable, match="handed over only after"):
            run.scorer.revoked([0])  # so it is told again
        run.scorer.revoked([0])
        assert committed(settings) == 70

    Run(change(settings, daemon={"exactly_once": True}), steps)


def test_records_that_are_gone_are_an_error_unless_they_may_be(tmp_path):
    settings = configure(tmp_path, log={"segment_mb": 0.001})
    with LocalLog(settings.log.dir, 1000) as log:
        for event in some_events(60):
            log.produce("events", json.dumps(event).encode())
    train(settings)
    with LocalLog(settings.log.dir, group="streamsvm-score") as log:
        log.commit({("events", 0): (2, "")})
    first, second, *_ = sorted((settings.log.dir / "events" / "0").glob("*.log"))
    first.unlink()
    begin = int(second.stem)
    with pytest.raises(OffsetOutOfRange, match="removed before they were read"):
        scorer.run(settings)
    run = Run(change(settings, daemon={"on_data_loss": "skip"}))
    assert run.n_predicted == 60 - begin
    assert run.metric("lost_records_total") == [f"streamsvm_lost_records_total {begin - 2}"]


def test_models_are_read_from_where_they_begin_by_now():
    class Log:
        starts, ends, positions = {0: 5}, {0: 9}, {}

        def start_offsets(self, topic):
            return self.starts

        def end_offsets(self, topic):
            return self.ends

        def position(self, topic, partition):
            return self.positions[partition]

        def seek(self, topic, partition, offset):
            self.positions[partition] = offset

    log = Log()
    topic = ModelTopic(log, "model")
    topic.follow()
    assert log.positions == {0: 5}
    assert not topic.is_read
    for position, starts, expected in [(7, {0: 6}, 7), (7, {0: 8}, 8), (12, {0: 0}, 0)]:
        log.positions, log.starts = {0: position}, starts
        topic.check_positions()
        assert log.positions == {0: expected}
    log.positions = {0: 9}
    assert topic.is_read
