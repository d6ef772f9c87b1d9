"""Label Studio, played by a small server that has its documented routes."""

import base64
import http.server
import json
import logging
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from asked import until
from logged import read_json
from studio import CONFIG, REFRESH, TOKEN, Desk, Trainer, request

from streamsvm.connectors.labelling.label_studio import project
from streamsvm.connectors.labelling.label_studio.api import Api
from streamsvm.connectors.labelling.label_studio.interface import Interface
from streamsvm.connectors.labelling.label_studio.project import LabelStudio
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.logs.transport import AccessDenied, Unavailable
from streamsvm.connectors.settings.sections import ConfigError, LabelSettings


@pytest.fixture
def trainer(settings):
    with LocalLog(settings.log.dir) as log:
        yield Trainer(log)


def answers(settings):
    return [(item["op"], item.get("y"), item["query_id"], item["source"]) for item in read_json(settings, "labels")]


# --- questions --------------------------------------------------------------------------------------------------------


def test_questions_become_tasks_once(settings, trainer, studio):
    trainer.ask("q1")
    with Desk(settings, studio):
        until(lambda: len(studio.tasks) == 1)
        trainer.ask("q2")
        until(lambda: len(studio.tasks) == 2)
    n_before = len(studio.requests)
    with Desk(settings, studio) as desk:
        until(lambda: ("GET", "/api/tasks/?project=7&page=1&page_size=100&fields=all") in studio.requests[n_before:])
        desk.service.wait(0.1)
    assert len(studio.tasks) == 2
    assert studio.find("q1")["data"] == {
        "text": "text of q1",
        "streamsvm": "streamsvm/questions",
        "query_id": "q1",
        "event_id": "event-q1",
        "partition": 0,
        "x": {"a": 1.5},
        "score": 0.3,
        "margin": -0.4,
        "reason": "boundary",
    }


def test_an_image_that_is_a_file_goes_with_the_task(settings, trainer, studio, tmp_path):
    (tmp_path / "a.png").write_bytes(b"pixels")
    settings = replace(settings, labelling=replace(settings.labelling, image_folder=tmp_path))
    trainer.ask("q1", event={"text": "a", "image": "a.png"})
    trainer.ask("q2", event={"text": "b", "image": "none.png"})
    with Desk(settings, studio):
        until(lambda: len(studio.tasks) == 2)
    images = [studio.find(name)["data"]["image"] for name in ("q1", "q2")]
    assert images == ["data:image/png;base64,cGl4ZWxz", "none.png"]


def test_an_image_that_cannot_be_read_keeps_no_task_away(settings, trainer, studio, tmp_path, monkeypatch, caplog):
    def refused(path):
        raise PermissionError(f"{path.name} is not yours")

    (tmp_path / "a.png").write_bytes(b"pixels")
    monkeypatch.setattr(Path, "read_bytes", refused)
    settings = replace(settings, labelling=replace(settings.labelling, image_folder=tmp_path))
    trainer.ask("q1", event={"text": "a", "image": "a.png"})
    with Desk(settings, studio):
        until(lambda: studio.tasks)
    assert studio.find("q1")["data"]["image"] == "a.png"
    assert "has no image: a.png is not yours" in caplog.text


def test_tasks_of_closed_questions_go_unless_somebody_has_begun(settings, trainer, studio):
    trainer.ask("q1", "q2", "q3", "q4")
    with Desk(settings, studio, tasks=4) as desk:
        studio.tasks[900] = {"id": 900, "data": {"text": "somebody else's"}, "annotations": [], "drafts": []}
        studio.find("q2")["drafts"] = [{"id": 1}]
        desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(studio.find("q3")["id"], "spam"))
        for name in ("q1", "q2", "q3"):
            trainer.withdraw(name)
        until(lambda: len(studio.tasks) == 4)
        desk.service.wait(0.1)
    assert {task["data"].get("query_id") for task in studio.tasks.values()} == {"q2", "q3", "q4", None}


def test_an_import_that_takes_its_time(settings, trainer, studio):
    studio.tells_ids = False
    trainer.ask("q1")
    with Desk(settings, studio) as desk:
        until(lambda: len(studio.tasks) == 1)
        number = studio.find("q1")["id"]
        desk.wait_for_tasks(1)
        assert desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(number, "ham"))[0] == 200
    assert answers(settings) == [("set", False, "q1", "label-studio:1")]
    assert len(studio.tasks) == 1


def test_what_label_studio_does_not_take_ends_it(settings, trainer, studio):
    trainer.ask("q1", event={})
    with Desk(settings, studio) as desk:
        desk.thread.join(60)
    assert isinstance(desk.error, ConfigError)
    assert '\\"text\\" key is expected' in str(desk.error)


# --- questions that Label Studio does not show ------------------------------------------------------------------------


def look_again(desk):
    """Let our side read the project once more, as it does every few minutes."""
    n_before = desk.studio.requests.count(("GET", "/api/projects/7/"))
    assert desk.post("/train", {})[0] == 200
    until(lambda: desk.studio.requests.count(("GET", "/api/projects/7/")) > n_before)
    desk.service.wait(0.15)


def of_question(studio, name):
    return [number for number, task in studio.tasks.items() if task["data"].get("query_id") == name]


@pytest.mark.parametrize("is_told", [False, True])
def test_an_open_question_whose_task_was_deleted_gets_another_one(settings, trainer, studio, is_told):
    trainer.ask("q1", "q2", "q3")
    with Desk(settings, studio, tasks=3) as desk:
        desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(studio.find("q2")["id"], "spam"))
        for name in ("q1", "q2"):
            number = studio.find(name)["id"]
            del studio.tasks[number]
            if is_told:
                assert desk.hear("TASKS_DELETED", tasks=[{"id": number}])[0] == 200
        if not is_told:
            look_again(desk)
        until(lambda: of_question(studio, "q1"))
        look_again(desk)
        assert (len(studio.tasks), of_question(studio, "q2")) == (2, [])
        desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(studio.find("q1")["id"], "ham"))
    assert answers(settings) == [("set", True, "q2", "label-studio:1"), ("set", False, "q1", "label-studio:1")]


def test_a_number_that_another_task_gets(settings, trainer, studio):
    """Label Studio on SQLite gives the number of the last task, if it is deleted, to the next one."""
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        other = {"id": 100, "data": {"text": "not ours"}, "annotations": [], "drafts": []}
        studio.tasks[100] = other
        annotation = studio.annotate(100, "spam")
        assert desk.hear("ANNOTATION_CREATED", annotation=annotation, task=other)[0] == 200
        until(lambda: of_question(studio, "q1") == [101])
        desk.wait_for_tasks(1)
        studio.tasks[101] = {**other, "id": 101}
        trainer.withdraw("q1")
        until(lambda: ("GET", "/api/tasks/101/") in studio.requests)
        desk.service.wait(0.1)
    assert list(studio.tasks) == [100, 101]
    assert answers(settings) == []


def test_a_task_that_a_list_misses_is_not_made_twice(settings, trainer, studio):
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        studio.unlisted = set(studio.tasks)
        look_again(desk)
    assert len(studio.tasks) == 1


def test_a_task_that_is_still_being_made_is_not_made_twice(settings, trainer, studio, monkeypatch):
    studio.coming = []
    trainer.ask("q1")
    with Desk(settings, studio) as desk:
        until(lambda: studio.coming)
        look_again(desk)
        assert len(studio.coming) == 1
        monkeypatch.setattr(project.time, "monotonic", lambda now=time.monotonic: now() + 400)
        until(lambda: len(studio.coming) == 2)  # it was lost


def test_a_question_that_is_opened_again_gets_another_task(settings, trainer, studio):
    trainer.ask("q1", "q2")
    with Desk(settings, studio, tasks=2) as desk:
        desk.service.answer("q1", True, "page:ann")
        until(lambda: not of_question(studio, "q1"))
        desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(studio.find("q2")["id"], "ham"))
        for name, who in (("q1", "page:ann"), ("q2", "page:bob")):
            desk.service.retract(name, who)
        until(lambda: of_question(studio, "q1"))
        look_again(desk)
        until(lambda: len(of_question(studio, "q2")) == 2)
        look_again(desk)
        assert [len(of_question(studio, name)) for name in ("q1", "q2")] == [1, 2]
        second = studio.annotate(of_question(studio, "q2")[1], "spam")
        desk.hear("ANNOTATION_CREATED", annotation=second)
        look_again(desk)
        assert desk.service.last_word("q2") == ("set", True, "label-studio:1")


def test_a_question_that_waits_for_a_second_person_has_one_task(settings, trainer, studio, caplog):
    settings = replace(settings, labelling=replace(settings.labelling, answers_per_question=2))
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(studio.find("q1")["id"], "ham"))
        look_again(desk)
        assert (len(studio.tasks), len(desk.service.open())) == (1, 1)
    said = [record.message for record in caplog.records if "answers_per_question = 2: set maximum" in record.message]
    assert len(said) == 1


# --- answers ----------------------------------------------------------------------------------------------------------


def test_annotations_are_answers_corrections_and_retractions(settings, trainer, studio):
    trainer.ask("q1", "q2")
    with Desk(settings, studio, tasks=2) as desk:
        annotation = studio.annotate(studio.find("q1")["id"], "spam", user=5)
        assert desk.hear("ANNOTATION_CREATED", annotation=annotation) == (200, {"status": "ok"})
        assert answers(settings) == [("set", True, "q1", "label-studio:5")]  # durable before it was acknowledged
        desk.hear("ANNOTATION_CREATED", annotation=annotation)
        assert len(answers(settings)) == 1
        desk.hear("ANNOTATION_UPDATED", annotation=studio.change(annotation, "ham"))
        desk.hear("ANNOTATIONS_DELETED", annotations=[{"id": annotation["id"]}])
        skipped = studio.annotate(studio.find("q2")["id"], None, user={"id": 6}, cancelled=True)
        desk.hear("ANNOTATION_CREATED", annotation=skipped)
        assert answers(settings)[1:] == [
            ("set", False, "q1", "label-studio:5"),
            ("retract", None, "q1", "label-studio:5"),
            ("skip", None, "q2", "label-studio:6"),
        ]


def test_an_annotation_that_is_left_holds_again(settings, trainer, studio):
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        number = studio.find("q1")["id"]
        desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(number, "spam", user=1))
        second = studio.annotate(number, "ham", user=2)
        desk.hear("ANNOTATION_CREATED", annotation=second)
        desk.hear("ANNOTATION_DELETED", annotation={"id": second["id"]})
    assert answers(settings) == [
        ("set", True, "q1", "label-studio:1"),
        ("set", False, "q1", "label-studio:2"),
        ("retract", None, "q1", "label-studio:2"),
        ("set", True, "q1", "label-studio:1"),
    ]


def test_an_annotation_without_our_labels_is_a_skip(settings, trainer, studio, caplog):
    """Label Studio does not show its task again, so the question would stay open for good."""
    trainer.ask("q1", "q2")
    with Desk(settings, studio, tasks=2) as desk:
        for name, choice in (("q1", "odd"), ("q2", None)):
            annotation = studio.annotate(studio.find(name)["id"], choice)
            for _ in range(2):
                assert desk.hear("ANNOTATION_CREATED", annotation=annotation)[0] == 200
        assert desk.service.open() == []
        desk.hear("ANNOTATION_UPDATED", annotation=studio.change(annotation, "ham"))
    assert answers(settings) == [
        ("skip", None, "q1", "label-studio:1"),
        ("skip", None, "q2", "label-studio:1"),
        ("set", False, "q2", "label-studio:1"),
    ]
    assert len([record for record in caplog.records if "has no known label" in record.message]) == 2


def test_what_is_none_of_ours_is_not_heard(settings, trainer, studio):
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        assert desk.hear("PROJECT_UPDATED")[0] == 200
        annotation = {**studio.annotate(studio.find("q1")["id"], "spam"), "id": 9}
        other = {"action": "ANNOTATION_CREATED", "project": {"id": 8}, "annotation": annotation}
        assert desk.post("/webhook", other)[0] == 200
    assert answers(settings) == []


@pytest.mark.parametrize("way", ["heard", "missed", "away"])
@pytest.mark.parametrize("cancelled", [False, True])
def test_an_annotation_that_lost_its_label(settings, trainer, studio, way, cancelled):
    """The model must not keep what the annotator has taken away."""
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        annotation = studio.annotate(studio.find("q1")["id"], "spam")
        desk.hear("ANNOTATION_CREATED", annotation=annotation)
        if way != "away":
            studio.change(annotation, None, cancelled=cancelled)
            if way == "heard":
                desk.hear("ANNOTATION_UPDATED", annotation=annotation)
            else:
                look_again(desk)
    if way == "away":
        studio.change(annotation, None, cancelled=cancelled)
        with Desk(settings, studio):
            until(lambda: len(answers(settings)) == 3)
    who = "label-studio:1"
    assert answers(settings) == [("set", True, "q1", who), ("retract", None, "q1", who), ("skip", None, "q1", who)]


def test_an_annotation_that_is_made_while_we_read_is_not_lost(settings, trainer, studio, monkeypatch):
    trainer.ask("q1", "q2")
    with Desk(settings, studio, tasks=2) as desk:
        list_, is_late = desk.ours._tasks.listed, iter([True])

        def slowly():
            tasks = json.loads(json.dumps(list(list_())))
            if next(is_late, False):
                desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(studio.find("q1")["id"], "spam"))
            yield from tasks

        monkeypatch.setattr(desk.ours._tasks, "listed", slowly)
        look_again(desk)
        until(lambda: next(is_late, None) is None)
        desk.service.wait(0.1)
    assert answers(settings) == [("set", True, "q1", "label-studio:1")]


def test_the_label_of_another_annotator_stays(settings, trainer, studio):
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        number = studio.find("q1")["id"]
        for user, choice in ((1, "spam"), (2, None)):
            desk.hear("ANNOTATION_CREATED", annotation=studio.annotate(number, choice, user=user))
        assert desk.post("/train", {})[0] == 200
        until(lambda: studio.requests.count(("GET", "/api/projects/7/")) == 2)
        desk.service.wait(0.1)
    assert answers(settings) == [("set", True, "q1", "label-studio:1")]


def test_what_happened_while_we_were_away_is_heard(settings, trainer, studio):
    trainer.ask("q1", "q2", "q3", "q4")
    with Desk(settings, studio, tasks=4) as desk:
        numbers = {name: studio.find(name)["id"] for name in ("q1", "q2", "q3", "q4")}
        first = studio.annotate(numbers["q1"], "spam")
        gone = studio.annotate(numbers["q4"], "spam")
        desk.hear("ANNOTATION_CREATED", annotation=first)
        desk.hear("ANNOTATION_CREATED", annotation=gone)
        studio.find("q3")["drafts"] = [{"id": 1}]  # so its task stays
        desk.service.answer("q3", True, "page:ann")
    studio.change(first, "ham")
    studio.annotate(numbers["q2"], "ham", user=2)
    studio.annotate(numbers["q3"], "ham", when=time.time() - 3600)  # before somebody else has said something
    studio.tasks[numbers["q4"]]["annotations"].clear()
    before = len(answers(settings))
    for _ in range(2):
        with Desk(settings, studio) as desk:
            until(lambda: len(answers(settings)) >= before + 3)
            desk.service.wait(0.1)
    assert sorted(answers(settings)[before:], key=lambda label: label[2]) == [
        ("set", False, "q1", "label-studio:1"),
        ("set", False, "q2", "label-studio:2"),
        ("retract", None, "q4", "label-studio:1"),
    ]


def test_an_answer_that_cannot_be_written_is_read_again(settings, trainer, studio, monkeypatch):
    trainer.ask("q1")
    with Desk(settings, studio, tasks=1) as desk:
        flush = LocalLog.flush
        monkeypatch.setattr(LocalLog, "flush", lambda self: (_ for _ in ()).throw(OSError("disk full")))
        annotation = studio.annotate(studio.find("q1")["id"], "spam")
        status, content = desk.hear("ANNOTATION_CREATED", annotation=annotation)
        assert (status, "disk full" in content["error"]) == (503, True)
        monkeypatch.setattr(LocalLog, "flush", flush)
        until(lambda: desk.service.last_word("q1") is not None)
    assert answers(settings)[-1] == ("set", True, "q1", "label-studio:1")


def test_label_studio_may_be_away(settings, trainer, studio, caplog):
    studio.failing = 3
    trainer.ask("q1")
    with Desk(settings, studio):
        until(lambda: studio.tasks)
    complaints = [record for record in caplog.records if "Label Studio reports a failure" in record.message]
    assert len(complaints) == 1


# --- who is who -------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(
    "answer",
    [None, 7, [], {}, {"tasks": 7}, {"tasks": [], "total": "many"}, {"label_config": None}, {"label_config": ["x"]}],
)
def test_answers_that_are_none_are_asked_for_again(settings, trainer, studio, monkeypatch, answer):
    call, n_strange = Api._call, 0

    def strange(self, method, path, *rest):
        nonlocal n_strange
        if method == "GET" and n_strange < 4:
            n_strange += 1
            return answer
        return call(self, method, path, *rest)

    monkeypatch.setattr(Api, "_call", strange)
    trainer.ask("q1")
    with Desk(settings, studio) as desk:
        until(lambda: len(studio.tasks) == 1)
        assert n_strange == 4
    assert desk.error is None


@pytest.mark.long
@pytest.mark.parametrize(
    "damage",
    [
        {"annotations": 7}, {"annotations": [7]}, {"annotations": [{}]}, {"annotations": [{"id": 1, "result": 7}]},
        {"annotations": [{"id": "x", "was_cancelled": True}]}, {"annotations": [{"id": [], "result": [7]}]},
        {"annotations": [{"id": 1, "was_cancelled": True, "updated_at": "0001-01-01T00:00:00+14:00"}]},
        {"data": {"streamsvm": "streamsvm/questions"}}, {"id": None}, {"id": {}},
    ],
)  # fmt: skip
def test_a_task_that_is_damaged_is_passed_over(settings, trainer, studio, damage):
    data = {"streamsvm": "streamsvm/questions", "query_id": "q0", "event_id": "e", "partition": 0}
    studio.tasks[90] = {"id": 90, "data": data, "annotations": [], "drafts": []} | damage
    studio.tasks[91] = 7
    trainer.ask("q1")
    with Desk(settings, studio) as desk:
        until(lambda: len(studio.tasks) == 3)
        desk.service.wait(0.1)
    assert desk.error is None


def test_a_score_that_is_none_is_no_prediction(settings, studio):
    with Desk(settings, studio) as desk:
        tasks = [{"data": {"score": score}} for score in (float("nan"), float("inf"), 10**400, "0.5", 1.5)]
        status, content = desk.post("/predict", {"label_config": CONFIG, "tasks": tasks})
    assert status == 200
    assert content["results"] == [{"result": [], "score": 0.0, "model_version": "streamsvm"}] * 5


def test_personal_access_tokens_are_exchanged(settings, trainer, studio):
    with Desk(settings, studio, token=REFRESH):
        until(lambda: ("GET", "/api/projects/7/") in studio.requests)
        studio.access = "expired"
        trainer.ask("q1")
        until(lambda: studio.tasks)
    assert studio.requests.count(("POST", "/api/token/refresh")) == 2


def test_a_wrong_token_ends_it(settings, studio):
    with Desk(settings, studio, token="wrong") as desk:  # noqa: S106
        desk.thread.join(60)
    assert isinstance(desk.error, AccessDenied)
    assert "wrong" not in str(desk.error)
    assert "--token-file" in str(desk.error)


def test_a_project_without_our_labels_ends_it(settings, studio):
    studio.config = CONFIG.replace("spam", "eggs")
    with Desk(settings, studio) as desk:
        desk.thread.join(60)
    assert isinstance(desk.error, ConfigError)
    assert "has no Choices with 'spam' and 'ham'; for example:" in str(desk.error)
    assert Interface.read(str(desk.error).partition("example:\n")[2], settings.label)


@pytest.mark.parametrize("url", ["localhost:8080", "file:///etc/passwd", "http://", ""])
def test_addresses_are_checked(url):
    with pytest.raises(ConfigError, match="must be an address"):
        Api(url, TOKEN)


def test_nothing_listens():
    with pytest.raises(Unavailable, match=r"at http://127\.0\.0\.1:9 does not answer: .*refused"):
        Api("http://127.0.0.1:9", TOKEN).call("GET", "/api/projects/7/")


def test_redirects_do_not_get_the_token(studio):
    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", studio.url + self.path)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ConfigError, match="Label Studio has another address"):
            Api(f"http://127.0.0.1:{server.server_address[1]}", TOKEN).call("GET", "/api/projects/7/")
    assert studio.requests == []


def test_a_backend_for_others_needs_a_password(settings, studio):
    public = replace(settings, labelling=replace(settings.labelling, host="0.0.0.0"))  # noqa: S104
    with pytest.raises(ConfigError, match="give --auth-file"):
        LabelStudio(LabellingService(public), public, Api(studio.url, TOKEN), 7)


# --- the backend ------------------------------------------------------------------------------------------------------


def test_the_routes_of_a_backend(settings, trainer, studio):
    with Desk(settings, studio) as desk:
        assert request(desk.ours.port, "/health") == (200, {"status": "UP", "model_class": "streamsvm"})
        setup = {"project": "7.1", "schema": CONFIG, "hostname": studio.url, "access_token": "x"}
        assert desk.post("/setup", setup) == (200, {"model_version": "streamsvm"})
        tasks = [{"id": 1, "data": {"score": 0.3}}, {"id": 2, "data": {"score": 0.9}}, {"id": 3, "data": {}}]
        status, content = desk.post("/predict", {"tasks": tasks, "label_config": CONFIG})
        assert status == 200
        assert [(item["result"], item["score"]) for item in content["results"]] == [
            ([{"from_name": "class", "to_name": "text", "type": "choices", "value": {"choices": ["ham"]}}], 0.7),
            ([{"from_name": "class", "to_name": "text", "type": "choices", "value": {"choices": ["spam"]}}], 0.9),
            ([], 0.0),
        ]
        assert request(desk.ours.port, "/versions") == (200, {"versions": ["streamsvm"]})
        assert request(desk.ours.port, "/train")[0] == 404
        assert desk.post("/nothing", {})[0] == 404


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400),
        (b"[]", {}, 400),
        (b'{"action": "ANNOTATION_CREATED"}', {}, 400),
        (b'{"action": "ANNOTATION_CREATED", "annotation": 3}', {}, 400),
        (b'{"action": "ANNOTATIONS_DELETED", "annotations": [{"id": "x"}]}', {}, 400),
        (b"{}", {"Origin": "http://127.0.0.1"}, 403),
        (b"", {"Content-Length": "999999999"}, 413),
    ],
)
def test_requests_that_are_wrong(settings, studio, body, headers, status):
    with Desk(settings, studio) as desk:
        assert request(desk.ours.port, "/webhook", body, headers)[0] == status


def test_a_password_is_asked_for(settings, studio):
    with Desk(settings, studio, auth="user:secret") as desk:
        for given, status in (("user:secret", 200), ("user:wrong", 401), (None, 401)):
            headers = {"Authorization": "Basic " + base64.b64encode(given.encode()).decode()} if given else {}
            assert request(desk.ours.port, "/health", headers=headers)[0] == status
            assert desk.post("/webhook", {"action": "PROJECT_UPDATED"}, headers)[0] == status


def test_a_port_that_is_taken(settings, studio):
    with Desk(settings, studio) as desk:
        taken = replace(settings, labelling=replace(settings.labelling, port=desk.ours.port))
        with pytest.raises(OSError, match=r"cannot listen on 127.0.0.1, port \d+"):
            LabelStudio(LabellingService(taken), taken, Api(studio.url, TOKEN), 7)


@pytest.mark.parametrize(
    ("config", "meanings"),
    [
        (CONFIG, {"spam": True, "ham": False}),
        (CONFIG.replace('"spam"', '"Yes"').replace('"ham"', '"x" alias="no"'), {"Yes": True, "no": False}),
        (CONFIG.replace('"ham"', '"-1"'), {"spam": True, "-1": False}),
        ("<View/>", None),
        ("<View", None),
        ("", None),
    ],
)
def test_interfaces_are_read(config, meanings):
    interface = Interface.read(config, LabelSettings("spam", "ham"))
    assert (interface and interface.meanings) == meanings


def test_the_log_says_nothing_secret(settings, trainer, studio, caplog):
    caplog.set_level(logging.DEBUG)
    with Desk(settings, studio, token=REFRESH):
        trainer.ask("q1")
        until(lambda: studio.tasks)
    assert REFRESH not in caplog.text
    assert studio.access not in caplog.text
