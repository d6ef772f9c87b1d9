"""Label Studio itself: its protection, the model, its webhook, deleted tasks and annotations, predictions, absence."""

import http.cookiejar
import json
import urllib.parse
import urllib.request
from types import SimpleNamespace

import pytest
from asked import configure, of_questions, until
from logged import read_json
from studio import CONFIG, Desk, Trainer

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.labelling.label_studio.api import Api
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.labelling import LabellingSettings

pytestmark = pytest.mark.long

SECRET = "word"  # noqa: S105 - of the server in this test
OPEN = {"ML_BLOCK_LOCAL_IP": "false", "SSRF_PROTECTION_ENABLED": "false"}


def personal_token(url):
    """An access token of the user, as the account page makes it."""
    jar = http.cookiejar.CookieJar()
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))

    def send(path, data, headers):
        token = next((cookie.value for cookie in jar if cookie.name == "csrftoken"), "")
        asked = urllib.request.Request(url + path, data, {"Referer": url, "X-CSRFToken": token, **headers})  # noqa: S310
        with opener.open(asked, timeout=60) as answer:
            return answer.read()

    send("/user/login/", None, {})
    send("/user/login/", urllib.parse.urlencode({"email": "ann@example.org", "password": "loopback"}).encode(), {})
    return json.loads(send("/api/token/", b"{}", {"Content-Type": "application/json"}))["token"]


@pytest.fixture(scope="module")
def studio(label_studio):
    """Label Studio with its protection on, a token and a project."""
    label_studio.start()
    token = personal_token(label_studio.url)
    api = Api(label_studio.url, token)
    project = api.call("POST", "/api/projects/", {"title": "questions", "label_config": CONFIG})["id"]
    return SimpleNamespace(url=label_studio.url, token=token, api=api, project=project, server=label_studio)


def check(studio, tmp_path):
    (tmp_path / "token").write_text(studio.token)
    configure(tmp_path)
    (tmp_path / "log").mkdir(exist_ok=True)
    where = ["--label-studio", studio.url, "--project", str(studio.project), "--token-file", str(tmp_path / "token")]
    names = ["--set", "label.positive=spam", "--set", "label.negative=ham", "--set", "labelling.port=8765"]
    return main(["label", str(tmp_path / "app.toml"), "--check", *where, *names])


def test_the_questions_and_the_answers(studio, tmp_path, capsys):
    assert check(studio, tmp_path) == 2
    said = capsys.readouterr().err
    assert all(f"{name}=false" in said for name in OPEN), said
    studio.server.stop()
    studio.server.start(**OPEN)
    assert check(studio, tmp_path) == 0
    mine = f"?project={studio.project}"
    assert [studio.api.call("GET", f"/api/{path}/{mine}") for path in ("ml", "webhooks")] == [[], []]
    settings = of_questions(tmp_path, labelling=LabellingSettings(port=0))
    with LocalLog(settings.log.dir) as log, Desk(settings, studio, auth=SECRET, **vars_of(studio)) as desk:
        Trainer(log).ask("q1", "q2", "q3")
        desk.wait_for_tasks(3)
        connect(studio, desk.ours.port)
        use(studio, settings, desk)
        predictions(studio)
    annotate(studio, shown(studio, "q1"))  # while no service listens
    with Desk(settings, studio, auth=SECRET, **vars_of(studio)) as desk:
        until(lambda: len(read_json(settings, "labels")) == 5)
        assert desk.service.last_word("q1") == ("set", True, "label-studio:1")


def vars_of(studio):
    return {"token": studio.token, "project": studio.project}


def connect(studio, port):
    """Do what docs/labelling.md says: connect the model, and give its webhook the header."""
    url = f"http://127.0.0.1:{port}"
    login = {"auth_method": "BASIC_AUTH", "basic_auth_user": "any", "basic_auth_pass": SECRET}
    model = studio.api.call("POST", "/api/ml/", {"project": studio.project, "url": url, "title": "m", **login})
    (webhook,) = studio.api.call("GET", f"/api/webhooks/?project={studio.project}")
    assert webhook["url"] == f"{url}/webhook"
    headers = {"headers": {"Authorization": f"Bearer {SECRET}"}}
    studio.api.call("PATCH", f"/api/webhooks/{webhook['id']}/", headers)
    assert studio.api.call("GET", f"/api/ml/{model['id']}/versions")["versions"] == ["streamsvm"]


def shown(studio, name):
    tasks = studio.api.call("GET", f"/api/tasks/?project={studio.project}&fields=all")["tasks"]
    return next((task["id"] for task in tasks if task["data"]["query_id"] == name), None)


def use(studio, settings, desk):
    numbers = {task.query_id: task.id for task in desk.ours._tasks._tasks.values()}
    first = annotate(studio, numbers["q1"])
    studio.api.call("POST", f"/api/tasks/{numbers['q2']}/annotations/", {"result": []})
    until(lambda: len(read_json(settings, "labels")) == 2)
    said = [(item["op"], item["query_id"], item["source"]) for item in read_json(settings, "labels")]
    assert said == [("set", "q1", "label-studio:1"), ("skip", "q2", "label-studio:1")]
    studio.api.call("DELETE", f"/api/tasks/{numbers['q3']}/")
    again = until(lambda: shown(studio, "q3"))  # it has the same number, because Label Studio's database is SQLite
    annotate(studio, again)
    until(lambda: len(read_json(settings, "labels")) == 3)
    assert desk.service.open() == []
    studio.api.call("DELETE", f"/api/annotations/{first}/")
    until(lambda: [question.query_id for question in desk.service.open()] == ["q1"])
    assert read_json(settings, "labels")[-1]["op"] == "retract"


def annotate(studio, task):
    """Say that a task is spam; the annotation's number."""
    choice = {"from_name": "class", "to_name": "text", "type": "choices", "value": {"choices": ["spam"]}}
    return studio.api.call("POST", f"/api/tasks/{task}/annotations/", {"result": [choice]})["id"]


def predictions(studio):
    """Ask for those of all tasks, as the data manager does; they are what the trainer's model gave."""
    where = f"project={studio.project}"
    everything = {"selectedItems": {"all": True, "excluded": []}}
    studio.api.call("POST", f"/api/dm/actions/?id=retrieve_tasks_predictions&{where}", everything)
    found = until(lambda: studio.api.call("GET", f"/api/predictions/?{where}"))
    assert {one["model_version"] for one in found} == {"streamsvm"}
    assert all(one["result"][0]["value"]["choices"] for one in found)
