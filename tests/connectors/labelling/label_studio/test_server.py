"""What Label Studio calls: requests in the form in which it sends them, live predictions, and hostile requests."""

import base64
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from asked import until
from logged import change, read, read_json
from studio import Desk, Trainer, request

from streamsvm import LASVM
from streamsvm.connectors.labelling.label_studio.server import is_secret
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.records.models import Trained, pack_model
from streamsvm.connectors.records.published import Publisher

SENT = json.loads((Path(__file__).parent / "data" / "label_studio.json").read_text())
DEEP = b'{"tasks": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.fixture
def settings(settings):
    return change(settings, log={"model": "model"})


@pytest.fixture
def log(settings):
    with LocalLog(settings.log.dir) as opened:
        yield opened


def send(desk, name, path=None):
    """Send what Label Studio sends."""
    return desk.post(f"/{path or name}", SENT[name])


def said(settings):
    return [(item["op"], item.get("y"), item["query_id"], item["source"]) for item in read_json(settings, "labels")]


# --- as Label Studio sends it -----------------------------------------------------------------------------------------


def test_annotations_reach_the_log_as_they_come(settings, log, studio):
    Trainer(log).ask("q1", "q2")
    with Desk(settings, studio, tasks=2) as desk:
        for name in ("created", "created", "updated", "cancelled"):
            assert send(desk, name, "webhook") == (200, {"status": "ok"})
        assert said(settings) == [
            ("set", True, "q1", "label-studio:3"),
            ("set", False, "q1", "label-studio:3"),
            ("skip", None, "q2", "label-studio:4"),
        ]
        assert send(desk, "deleted", "webhook")[0] == 200
        assert said(settings)[3:] == [("retract", None, "q1", "label-studio:3")]


def test_two_people_annotate_the_same_task(settings, log, studio):
    settings = replace(settings, labelling=replace(settings.labelling, answers_per_question=2))
    Trainer(log).ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        send(desk, "created", "webhook")
        assert [question.query_id for question in desk.service.open()] == ["q1"]
        other = {**SENT["created"]["annotation"], "id": 502, "completed_by": {"id": 9}}
        assert desk.hear("ANNOTATION_CREATED", annotation=other)[0] == 200
        assert desk.service.open() == []
        assert [item[3] for item in said(settings)] == ["label-studio:3", "label-studio:9"]


def test_a_label_of_a_person_with_a_very_long_name_can_be_read(settings, log, studio):
    Trainer(log).ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        long = {**SENT["created"]["annotation"], "completed_by": "x" * 3000}
        assert desk.hear("ANNOTATION_CREATED", annotation=long)[0] == 200
        assert [settings.codec().decode_label(record).y for record in read(settings, "labels")] == [True]


@pytest.mark.parametrize("name", ["train", "start_training"])
def test_a_request_to_train_reads_the_annotations_again(settings, log, studio, name):
    """It takes nothing from the request itself, which anybody could have made up."""
    Trainer(log).ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        studio.annotate(100, "ham", user=5)
        n_before = len(studio.requests)
        assert send(desk, name, "train" if name == "train" else "webhook")[0] == 200
        until(lambda: said(settings) == [("set", False, "q1", "label-studio:5")])
        assert ("GET", "/api/projects/7/") in studio.requests[n_before:]


# --- predictions ------------------------------------------------------------------------------------------------------


def a_model(flip=False):
    model = LASVM(C=10.0, gamma=0.1)
    for a in range(-10, 11):
        model.learn_one({"a": a / 2, "b": 0.0}, (a > 0) ^ flip)
    return model


def publish(log, version, model, name="p0"):
    meta = {"epoch": 1, "ver": version, "offset": 0, "created": time.time()}
    Publisher(log, "model").publish(name, pack_model(Trained(model)), meta)


def predicted(desk):
    status, content = send(desk, "predict")
    assert status == 200
    return [item["result"] and item["result"][0]["value"]["choices"] for item in content["results"]], content


def test_predictions_come_from_the_newest_published_model(settings, log, studio):
    with Desk(settings, studio) as desk:
        assert send(desk, "setup") == (200, {"model_version": "streamsvm"})
        assert predicted(desk)[0] == [["ham"], ["ham"]], "the scores of the tasks, as long as there is no model"
        model = a_model()
        publish(log, 21, model)
        until(lambda: send(desk, "setup")[1] == {"model_version": "streamsvm-21"})
        choices, content = predicted(desk)
        assert choices == [["spam"], ["ham"]]
        assert content["model_version"] == content["results"][0]["model_version"] == "streamsvm-21"
        score = model.predict_proba_one({"a": 3.0, "b": 0.0})[True]
        assert content["results"][0]["score"] == pytest.approx(score)
        log.produce("model", b"no model", key=b"p0/manifest", partition=0)
        publish(log, 22, a_model(flip=True))
        until(lambda: predicted(desk)[0] == [["ham"], ["spam"]])
        publish(log, 30, model, name="p1")  # of another partition, which disagrees
        until(lambda: send(desk, "setup")[1] == {"model_version": "streamsvm-52"})
        assert [item["score"] for item in predicted(desk)[1]["results"]] == [pytest.approx(0.5, abs=0.1)] * 2


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"x": None},
        {"x": [1, 2]},
        {"x": {"a": "text"}},
        {"x": {"a": True}},
        {"x": {"a": {"b": 1}}},
        {"x": {f"f{i}": 1.0 for i in range(11)}},
        {"x": {"a": 1e308}, "score": "high"},
        {"score": -1},
        {"score": [0.5]},
    ],
)
def test_a_task_that_cannot_be_predicted_gets_no_result(settings, log, studio, data):
    settings = replace(settings, limits=replace(settings.limits, event_features=10))
    publish(log, 21, a_model())
    with Desk(settings, studio) as desk:
        until(lambda: send(desk, "setup")[1] == {"model_version": "streamsvm-21"})
        status, content = desk.post("/predict", {**SENT["predict"], "tasks": [{"id": 1, "data": data}]})
        assert (status, content["results"][0]["result"]) == (200, [])


# --- hostile requests -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/predict", "/setup", "/webhook", "/train"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"\xff\xfe",
        b'{"tasks": 5, "schema": 5, "action": 5}',
        b'{"tasks": [1, null, "x"], "action": []}',
        b'{"tasks": [{"data": [1]}], "action": "ANNOTATION_CREATED", "annotation": {"task": [], "id": {}}}',
        b'{"tasks": [{"data": {"x": {"a": 1e999}}}], "action": "ANNOTATION_UPDATED", "annotation": {"id": 1e999}}',
        b'{"tasks": [], "label_config": "<!DOCTYPE x [<!ENTITY a \'aaaa\'><!ENTITY b \'&a;&a;\'>]><View>&b;</View>"}',
        b'{"action": "ANNOTATIONS_DELETED", "annotations": [{"id": 99999999999999999999999}], "tasks": {}}',
        b'{"action": "ANNOTATION_CREATED", "annotation": {"task": 100, "id": 1, "result": [7], "completed_by": "x"}}',
        DEEP,
    ],
)
def test_hostile_requests_change_nothing_and_stop_nothing(settings, log, studio, path, body):
    Trainer(log).ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        assert request(desk.ours.port, path, body)[0] in (200, 400, 503)
        assert request(desk.ours.port, "/health")[0] == 200
        assert [question.query_id for question in desk.service.open()] == ["q1"]
        assert desk.error is None
    assert said(settings) == [] if (settings.log.dir / "labels").exists() else True


def test_a_project_that_is_not_ours_is_not_heard(settings, log, studio):
    Trainer(log).ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        assert desk.post("/webhook", {**SENT["created"], "project": {"id": 8}})[0] == 200
        assert [question.query_id for question in desk.service.open()] == ["q1"]


# --- the secret -------------------------------------------------------------------------------------------------------


def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("header", "secret", "is_right"),
    [
        ("Bearer abc", "abc", True),
        ("Token abc", "abc", True),
        (basic("anybody:abc"), "abc", True),
        (basic("abc:"), "abc", False),
        ("Bearer abd", "abc", False),
        ("Bearer ", "abc", False),
        ("abc", "abc", False),
        ("", "abc", False),
        (basic("user:abc"), "user:abc", True),
        (basic("other:abc"), "user:abc", False),
        ("Bearer user:abc", "user:abc", False),
        ("Basic !!", "user:abc", False),
        ("Bearer \udce4", "abc", False),
    ],
)
def test_the_secret_is_a_password_or_a_token(header, secret, is_right):
    assert is_secret(header, secret) is is_right


def test_every_request_needs_the_token(settings, studio):
    with Desk(settings, studio, auth="abc") as desk:
        for path, body in (("/health", None), ("/predict", b"{}"), ("/webhook", b"{}"), ("/train", b"{}")):
            assert request(desk.ours.port, path, body)[0] == 401
            assert request(desk.ours.port, path, body, {"Authorization": "Bearer abc"})[0] == 200
