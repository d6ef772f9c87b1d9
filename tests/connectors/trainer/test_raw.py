"""Raw records in the trainer: it does what `Records() | model` does, and goes on as exactly after a kill."""

import contextlib
import json
import os
import random
import time

import numpy as np
import pytest
from fuse import Fuse, Killed, run, run_through, run_with
from logged import append, change, predictions, read
from logged import configure as small

from streamsvm import LASVM, OneVsRest, SnapshotError
from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.commands.doctor.fields import check_features
from streamsvm.connectors.logs.transport import Record
from streamsvm.connectors.records.codec import Event
from streamsvm.connectors.records.models import Trained, unpack_model
from streamsvm.connectors.records.people.questions import STATUS, read_question
from streamsvm.connectors.records.published import read_newest
from streamsvm.connectors.report.page import write_report
from streamsvm.connectors.scorer import scorer
from streamsvm.connectors.scorer.committee import misfit
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.settings.sections import ConfigError
from streamsvm.connectors.trainer.state.known_fields import known_fields
from streamsvm.connectors.trainer.state.stored_state import read_state
from streamsvm.features import Records

FLAT = {"raw": True, "id": "order.id", "label": "bought", "time": "created"}
JOBS = ("clerk", "smith", "baker")


def configure(folder, features=FLAT, **changes):
    return small(folder, features=features, **changes)


def orders(n, seed=0):
    """Flat records with blanks, nulls, texts, nested fields and times; some have no label."""
    rng = random.Random(seed)
    for i in range(n):
        age, job = rng.randint(18, 70), rng.choice(JOBS)
        yield {
            "order": {"id": f"o{i}", "amount": rng.choice([None, "", rng.random() * 100])},
            "age": str(age) if i % 9 else "N/A",
            "job": job,
            "created": f"2026-01-{1 + i % 28:02d}T{i % 24:02d}:00:00Z",
            "bought": ("" if i % 2 else None) if i % 7 == 0 else str((age > 40) == (job == "clerk")).lower(),
            "note": f"said that caller {i} was {rng.choice(['happy', 'angry'])}",
        }


def features_of(order):
    """What is left of an order for its features."""
    rest = {name: v for name, v in order.items() if name not in ("order", "bought")}
    return rest | {"order.amount": order["order"]["amount"]}


def append_at(monkeypatch, second, *what):
    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: second * 10**9)
        append(*what)


def outcome(settings, state):
    counters = state.counters
    return {
        "digest": state.models.digest(),
        "counters": (counters.predicted, counters.learned, counters.bad, state.offset),
        "predictions": predictions(settings),
        "refused": {dict(r.headers)["sv-dlq-offset"]: r.value for r in read(settings, settings.log.dlq)},
    }


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def test_it_predicts_and_learns_as_the_pipeline_does(tmp_path):
    settings, given = configure(tmp_path), list(orders(120))
    append(settings, given)
    state = run(settings)
    records, model = Records(), LASVM(**settings.model.parameters())
    for order, value in zip(given, predictions(settings).values(), strict=True):
        x, told = features_of(order), json.loads(value)
        assert told["id"] == order["order"]["id"]
        assert told["ts"] == order["created"]
        assert told["margin"] == model.decision_function_one(records.transform_one(x))
        records.learn_one(x)
        if order["bought"]:
            model.learn_one(records.transform_one(x), order["bought"] == "true")
    assert state.models.trained(None).records.digest() == records.digest()
    assert state.counters.learned == sum(bool(order["bought"]) for order in given) == state.model.n_seen
    assert state.model.feature_names == model.feature_names
    np.testing.assert_array_equal(state.model.dual_coef, model.dual_coef)


@pytest.mark.parametrize("batch", [7, 1000])
def test_cuts_do_not_matter(tmp_path, monkeypatch, batch):
    """Labels come on a topic of their own, late, and some are corrected."""
    found = []
    for at_once in (batch, 16):
        settings = configure(
            tmp_path / str(at_once), {"raw": True}, log={"labels": "labels"}, daemon={"batch": at_once}
        )
        for i, order in enumerate(orders(60)):
            append_at(monkeypatch, 1 + i, settings, [{"id": i, "x": features_of(order)}])
            if i >= 8:
                append_at(monkeypatch, 1 + i, settings, [{"id": i - 8, "y": i % 3 == 0}], "labels")
            if i == 40:
                append_at(monkeypatch, 1 + i, settings, [{"id": 12, "y": True}], "labels")
        found.append(outcome(settings, run(settings)))
    assert found[0] == found[1]
    assert found[0]["counters"][1] > 50


@pytest.mark.parametrize("per", ["partition", "key"])
def test_killed_again_and_again_it_ends_the_same(tmp_path, monkeypatch, per):
    whole, killed = (
        configure(tmp_path / name, daemon={"per": per, "max_models": 2, "checkpoint_records": 16})
        for name in ("whole", "killed")
    )
    for settings in (whole, killed):
        for i, order in enumerate(orders(80)):
            append(settings, [order if i % 20 else b"[]"], key=b"k%d" % (i % 4))
    expected = outcome(whole, run(whole))
    rng = random.Random(7)
    assert outcome(killed, run_through(killed, lambda: rng.randint(20, 90), monkeypatch)[0]) == expected
    assert expected["counters"] == (76, expected["counters"][1], 4, 80)


def test_each_key_has_its_own_records(tmp_path):
    settings = configure(tmp_path, {"raw": True}, daemon={"per": "key", "max_models": 1})
    for i in range(60):
        append(settings, [{"id": i, "x": {"v": i}, "y": i % 4 < 2}], key=b"numbers")
        append(settings, [{"id": -i, "x": {"v": f"word{i % 3}"}, "y": i % 3 == 0}], key=b"words")
    state = run(settings)
    assert [f.kind for f in state.models.trained(b"numbers").records.summary()] == ["number"]
    assert [f.kind for f in state.models.trained(b"words").records.summary()] == ["category"]
    assert "~v=word1" in state.models.trained(b"words").model.feature_names


def test_several_classes(tmp_path):
    settings = configure(tmp_path, FLAT, label={"classes": ("red", "green", "blue")})
    colors = ("red", "green", "blue")
    append(settings, [order | {"bought": colors[JOBS.index(order["job"])]} for order in orders(150)])
    state = run(settings)
    records, model = state.models.trained(None).records, state.model
    assert isinstance(model, OneVsRest)
    order = next(orders(1, seed=5))
    assert model.predict_one(records.transform_one(features_of(order))) == colors[JOBS.index(order["job"])]


def test_a_scorer_says_what_the_trainer_s_model_says(tmp_path):
    settings = configure(tmp_path, log={"model": "model"})
    append(settings, orders(100))
    state = run(settings)
    with open_once(settings) as log:
        newest = read_newest(log, "model", time.monotonic() + 60)["p0"]
    served = unpack_model(newest.blob)
    assert served.records.digest() == state.models.trained(None).records.digest()
    scorer.run(settings, lambda: False)
    model, records = state.model, state.models.trained(None).records
    for order, value in zip(orders(100), predictions(settings, "scores").values(), strict=True):
        margin = model.decision_function_many([records.transform_one(features_of(order))])[0]
        assert json.loads(value)["margin"] == margin


@pytest.mark.filterwarnings("ignore:the embedder 'moods' cannot take")
def test_texts_are_embedded_by_the_trainer_and_the_scorer_and_after_a_kill(tmp_path, monkeypatch):
    (tmp_path / "of_a_shop.py").write_text(
        "class Moods:\n    name, size = 'moods', 2\n\n    def embed_one(self, text):\n"
        "        return ['happy' in text, 'angry' in text] if '33' not in text else 1 // 0\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    features = FLAT | {"embed": {"note": "of_a_shop:Moods"}}
    whole, killed = (configure(tmp_path / name, features, log={"model": "model"}) for name in ("whole", "killed"))
    for settings in (whole, killed):
        append(settings, orders(100))
    state = run(whole)
    with contextlib.suppress(Killed):
        run_with(killed, Fuse(60), monkeypatch)
    assert outcome(killed, run(killed)) == outcome(whole, state)
    assert "~note:1" in state.model.feature_names
    assert state.models.trained(None).records.n_unfit == 1  # the text that it cannot take
    scorer.run(whole, lambda: False)
    records = state.models.trained(None).records
    for order, value in zip(orders(100), predictions(whole, "scores").values(), strict=True):
        x = records.transform_one(features_of(order))
        assert json.loads(value)["margin"] == state.model.decision_function_many([x])[0]


def test_models_of_raw_events_and_of_others_are_not_mistaken_for_each_other(tmp_path):
    raw, plain = Trained(LASVM(), Records()), Trained(LASVM())
    for trained, features in ((raw, {}), (plain, FLAT)):
        says = misfit(trained, configure(tmp_path, features))
        assert "features.raw is" in says
    assert misfit(raw, configure(tmp_path)) == ""
    again = Trained.from_bytes(LASVM, raw.to_bytes())
    assert again.digest() == raw.digest() != plain.digest() == plain.model.digest()
    assert Trained.from_bytes(LASVM, LASVM().to_bytes()).records is None
    with pytest.raises(SnapshotError):
        Trained.from_bytes(LASVM, raw.to_bytes()[:-9])


def test_models_of_raw_events_are_not_merged(tmp_path, capsys):
    settings = configure(tmp_path)
    append(settings, orders(20))
    run(settings)
    assert main(["merge", str(settings.daemon.state_dir), "--out", str(tmp_path / "out")]) != 0
    assert "has a model of raw events" in capsys.readouterr().err


REFUSED = {
    "no object": (b"[1]", "not-an-object"),
    "two fields of one name": ({"id": 1, "a.b": 1, "a": {"b": 2}}, "duplicate-field"),
    "a name twice": (b'{"id": 1, "a": 1, "a": 2}', "duplicate-field"),
    "no id": ({"a": 1}, "missing-field"),
    "a null for an id": ({"id": None, "a": 1}, "missing-field"),
    "an object for an id": ({"id": {"a": 1}}, "missing-field"),
    "a list for an id": ({"id": [1], "a": 1}, "bad-id"),
    "no label": ({"id": 1, "y": "perhaps"}, "bad-label"),
    "deep": (b'{"id": 1, "a": ' + b"[" * 200 + b"]" * 200 + b"}", "not-json"),
    "large": (b'{"id": 1, "a": "' + b"a" * (1 << 20) + b'"}', "too-large"),
    "no UTF-8": (b'{"id": 1, "a": "\xff"}', "not-utf8"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_few_records_are_refused(tmp_path, case):
    record, reason = REFUSED[case]
    settings = configure(tmp_path, {"raw": True, "id": "id", "label": "y"})
    append(settings, [record, {"id": 2, "a": 1}])
    state = run(settings)
    (letter,) = read(settings, "dlq")
    assert dict(letter.headers)["sv-dlq-reason"].decode() == reason
    assert (state.counters.bad, state.counters.predicted) == (1, 1)


STRANGE = [
    None,
    True,
    "",
    "x" * 5000,
    1e300,
    -(10**30),
    [1, 2, 3],
    [],
    [{}],
    {"a": {"b": [None]}},
    {},
    "2026-01-05",
    "\0",
]


@pytest.mark.filterwarnings("ignore::streamsvm.core.stream_warning.StreamWarning")
def test_everything_else_is_accepted(tmp_path):
    settings, rng = configure(tmp_path, {"raw": True, "label": "y"}), random.Random(0)
    made = [{name: rng.choice(STRANGE) for name in "abcd"} | {"y": i % 2, "when": "soon"} for i in range(200)]
    append(settings, made)
    state = run(settings)
    assert (state.counters.learned, state.counters.bad) == (200, 0)
    assert sum(f.n_unfit for f in state.models.trained(None).records.summary()) > 10
    assert json.loads(next(iter(predictions(settings).values())))["id"] == "events-0-0"


def test_a_checkpoint_does_not_go_on_with_other_features(tmp_path):
    settings = configure(tmp_path)
    append(settings, orders(20))
    run(settings)
    for name, value in {"kinds": {"age": "category"}, "thousands": ",", "width": 64, "time": ""}.items():
        with pytest.raises(ConfigError, match=f"features.{name}"):
            run(change(settings, features={name: value}))


# --- the user's own function ------------------------------------------------------------------------------------------


def own(event):
    """A function as a user may write it."""
    assert "y" not in event
    if event["x"].get("a") == 13:
        raise KeyError("thirteen")
    return {"double": 2.0 * event["x"]["a"], "length": len(event.get("text", ""))}


@pytest.mark.parametrize("raw", [False, True])
def test_a_function_makes_the_features(tmp_path, raw):
    settings = configure(tmp_path, {"raw": raw, "transform": f"{__name__}:own"})
    append(settings, [{"id": i, "x": {"a": i}, "y": i % 2, "text": "t" * i} for i in range(40)])
    state = run(settings)
    assert sorted(state.model.feature_names) == ["double", "length"]
    (letter,) = read(settings, "dlq")
    found = {name: value.decode() for name, value in letter.headers}
    assert (found["sv-dlq-reason"], found["sv-dlq-offset"]) == ("bad-transform", "13")
    assert "KeyError: 'thirteen'" in found["sv-dlq-error"]
    assert (state.counters.learned, state.counters.bad) == (39, 1)


def test_a_flat_record_s_function_sees_neither_label_nor_id(tmp_path):
    settings = configure(tmp_path, FLAT | {"transform": f"{__name__}:seen"})
    append(settings, orders(3))
    run(settings)
    assert SEEN[0] == features_of(next(orders(1)))


SEEN = []


def seen(event):
    SEEN.append(event)
    return event


class Fickle:
    """Makes features of an event once, and never again."""

    def __init__(self):
        self.known = set()

    def __call__(self, event):
        if event["id"] in self.known:
            raise RuntimeError("again")
        self.known.add(event["id"])
        return event["x"]


fickle = Fickle()


def test_a_function_that_fails_later_does_not_stop_the_trainer(tmp_path):
    settings = configure(tmp_path, {"transform": f"{__name__}:fickle"}, log={"labels": "labels"})
    append(settings, [{"id": i, "x": {"a": i}} for i in range(40)])
    append(settings, [{"id": i, "y": i % 2} for i in range(40)], "labels")
    state = run(settings)
    letters = [dict(letter.headers) for letter in read(settings, "dlq")]
    assert {letter["sv-dlq-reason"] for letter in letters} == {b"bad-transform"}
    assert state.counters.bad == len(letters) > 20
    assert isinstance(state.model, LASVM)


def test_an_event_is_plain_by_default(tmp_path):
    """Without [features] the codec does no more than it did."""
    settings = configure(tmp_path, {})
    assert settings.codec()._is_read_plainly
    assert Event._fields == ("id", "key", "x", "y", "w", "ts")


# --- questions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [(), ("red", "green", "blue")])
def test_people_see_the_raw_fields_and_answers_are_learned(tmp_path, classes):
    """The records have no id of their own, so that of an event is its place, also when it is asked about again."""
    settings = configure(
        tmp_path,
        {"raw": True, "label": "bought", "time": "created"},
        label={"classes": classes},
        log={"labels": "labels", "questions": "questions"},
        labelling={"open": 5, "recheck_every": 5, "stop": "never"},
        join={"ttl_seconds": 1e9},
    )
    given = [order | {"bought": None} for order in orders(60)]
    append(settings, given)
    seen = set()
    for _ in range(8):
        run(settings)
        open_ones = {}
        for record in read(settings, "questions"):
            if record.key != STATUS:
                open_ones[record.key] = read_question(record) if record.value else None
        for question in filter(None, open_ones.values()):
            offset = int(question.id.removeprefix("events-0-"))
            order = given[offset]
            assert question.event["job"] == order["job"]
            assert question.event["order.amount"] == order["order"]["amount"]
            assert "bought" not in question.event
            assert question.x == {}
            seen.add((offset, question.reason))
            y = classes[offset % 3] if classes else offset % 2
            append(settings, [{"id": question.id, "y": y, "source": "anna", "query_id": question.query_id}], "labels")
    assert len(seen) > 20
    assert "recheck" in {reason for _, reason in seen}
    assert run(settings).counters.learned > 20


# --- what people are told ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", [{}, {"raw": True}])
def test_events_without_features_are_warned_of_once(tmp_path, caplog, features):
    settings = configure(tmp_path, features, daemon={"batch": 4})
    append(settings, [{"id": i, "x": {}, "text": "a message", "y": i % 2} for i in range(20)])
    run(settings)
    assert caplog.text.count("has no features") == 1


def test_the_report_says_what_each_field_became(tmp_path):
    settings = configure(tmp_path)
    append(settings, orders(60))
    run(settings)
    text = write_report(settings.daemon.state_dir)[0].read_text()
    table = text[text.index("What each field became") :]
    assert '<th scope="row">order.amount</th><td>number</td>' in table
    assert '<th scope="row">job</th><td>category</td><td>60</td><td>0</td><td>0</td>' in table


def test_the_report_adds_up_what_the_models_of_keys_know(tmp_path):
    settings = configure(tmp_path, daemon={"per": "key", "max_models": 1})
    for i, order in enumerate(orders(60)):
        append(settings, [order | {"code": i if i % 2 else f"word{i % 3}"}], key=b"k%d" % (i % 2))
    run(settings)
    text = write_report(settings.daemon.state_dir)[0].read_text()
    table = text[text.index("What each field became") :]
    assert "sums over the 2 models that learned last" in table
    assert '<th scope="row">job</th><td>category</td><td>60</td><td>0</td><td>0</td>' in table
    assert '<th scope="row">code</th><td>category, number</td><td>60</td>' in table
    for path in (settings.daemon.state_dir / "p0").glob("models-*"):
        path.write_bytes(bytes(path.stat().st_size))
    (stored,) = read_state(settings.daemon.state_dir)
    assert known_fields(stored) == ([], 0), "damaged models are left out"


@pytest.mark.parametrize("per", ["partition", "key"])
def test_the_doctor_tells_how_the_events_have_changed(tmp_path, per):
    settings = configure(tmp_path, daemon={"per": per})
    for i, order in enumerate(orders(300)):
        append(settings, [order], key=b"k%d" % (i % 2))
    run(settings)

    def found(given):
        events = [settings.codec().decode(Record("events", 0, i, 0, None, value, ())) for i, value in enumerate(given)]
        return [finding.text for finding in check_features(settings, events)]

    as_before = [json.dumps(order).encode() for order in orders(100, seed=1)]
    assert found(as_before) == ["the 5 fields of the events are as p0 knows them"]
    changed = []
    for i, order in enumerate(orders(100, seed=1)):
        rest = {name: v for name, v in order.items() if name != "note"}
        changed.append(rest | {"age": "old" if i % 2 else "1", "job": None if i % 2 else "smith", "color": "red"})
    told = found(json.dumps(order).encode() for order in changed)
    assert told == [
        "p0: in the newest 100 events, fields are new: 'color'",
        "p0: in the newest 100 events, fields are gone: 'note'",
        "p0: in the newest 100 events, fields have values of another kind than before: 'age'",
        "p0: in the newest 100 events, fields are missing more often: 'job'",
    ]
    assert found([b'{"order": {"id": 1}}']) == ["1 event of 1 without any feature, from which a model learns nothing"]
