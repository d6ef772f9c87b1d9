"""The server of the labelling page, over plain HTTP; tests/browser has what people see of it."""

import http.client
import json
import re
import socket
import stat
import threading
import time
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from asked import STATUS, Trainer, configure, until
from patience import Patience

from streamsvm.connectors.labelling.answer import Given
from streamsvm.connectors.labelling.book import UnknownQuestion
from streamsvm.connectors.labelling.history import Step, Undone
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.web import page as labelling_page
from streamsvm.connectors.labelling.web import server as page_server
from streamsvm.connectors.labelling.web.page import LabellingPage
from streamsvm.connectors.labelling.web.server import MAX_BODY, PAGE
from streamsvm.connectors.logs.transport import Unavailable
from streamsvm.connectors.records.labels import Place
from streamsvm.connectors.records.people.questions import Question
from streamsvm.connectors.runtime import http as serve
from streamsvm.connectors.settings.sections import ConfigError

TAB = {"X-Tab": "0123abcd"}
IMAGE = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw=="
STEP = Step(7, "q1", Given("set", True, "page:Zoë#0123abcd", 1_000_000, Place(0, "e1")), True)
SHOWN_STEP = {
    "number": 7, "query_id": "q1", "id": "e1", "op": "set", "label": "fraud", "now": "fraud", "by": "Zoë",
    "at": 1_000_000,
}  # fmt: skip

CLASSES = {"labels": ["fraud", "genuine"], "is_multiclass": False, "may_add": False, "keys": ["1", "2"]}
CLASSES |= {"is_open": False, "limit": 2}


class Desk:
    """Has what `LabellingService` has for the page, and says what it is told to say.

    Parameters
    ----------
    event : dict
        Of its question.
    """

    def __init__(self, event=()):
        self.shown = Question(
            "q1", 2**60 + 1, 0, {"a": 1.0}, dict(event), 0.5, "seed", 1, 2, 0.6, {}, {"ver": 1, "n_support": 1}
        )  # fmt: skip
        self.said, self.released, self.renamed, self.steps = [], [], [], []
        self.trouble = None
        self.version = 3
        self.is_awaited = threading.Event()  # since a request began to wait for a change

    def next(self, who):
        self._note("next", who)
        return self.shown

    def meaning(self, label):
        return label

    def is_tied(self, query_id):
        return False

    def answer(self, query_id, y, who, *, alike=False):
        return self._note("answer", query_id, y, who)

    def skip(self, query_id, who):
        return self._note("skip", query_id, who)

    def ignore(self, query_id, who):
        return self._note("ignore", query_id, who)

    def correct(self, query_id, op, y, who):
        return self._note("correct", query_id, op, y, who)

    def undo(self, who, number):
        self._note("undo", who, number)
        return Undone(self.steps[-1], "open") if self.steps else None

    def undoable(self, who):
        return self.steps[-1] if self.steps else None

    def history(self, who, before, n):
        self._note("history", who, before, n)
        return self.steps[::-1][:n]

    def review(self, query_id):
        return self.shown, self.steps

    def release(self, who):
        self.released.append(who)

    def rename(self, who, to):
        self.renamed.append((who, to))

    def stats(self):
        return dict(STATUS)

    def wait(self, seconds, seen=-1):
        if seconds:
            self.is_awaited.set()
        deadline = time.monotonic() + seconds
        while self.version == seen and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.version

    def _note(self, *what):
        if self.trouble:
            raise self.trouble
        self.said.append(what)
        return "first"


class Client:
    """Asks as a browser would, or not quite.

    Parameters
    ----------
    page : LabellingPage
        Whom it asks.
    """

    def __init__(self, page):
        self.url = page.url
        self.token = page.url.partition("token=")[2]
        self.port = int(re.search(r":(\d+)/", page.url)[1])
        self.key = {"Authorization": f"Bearer {self.token}"}

    def ask(self, method, path, body=None, headers=(), key=True):
        """Status, headers and text of a reply."""
        given = (self.key if key else {}) | TAB | dict(headers)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            given = {"Content-Type": "application/json"} | given
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, given)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read().decode()
        finally:
            connection.close()

    def json(self, method, path, body=None, headers=()):
        """Status and content of a reply."""
        status, _, text = self.ask(method, path, body, headers)
        return status, json.loads(text)


@pytest.fixture(autouse=True)
def _quick_end(monkeypatch):
    monkeypatch.setattr(serve, "POLL_SECONDS", 0.01)


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def client(desk, tmp_path):
    with LabellingPage(desk, configure(tmp_path)) as page:
        yield Client(page)


# --- who may ask ------------------------------------------------------------------------------------------------------


def test_the_page_is_for_everybody_and_has_no_secret(client, desk):
    """Its address carries the token where browsers send it to no server, and nothing else may remember it."""
    assert client.url == f"http://127.0.0.1:{client.port}/#token={client.token}"
    status, _, text = client.ask("GET", "/", key=False)
    assert status == 200
    assert text.startswith("<!doctype html>")
    assert client.token not in text
    assert desk.said == []
    assert client.ask("GET", "/api/stats")[0] == 200


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("GET", "/api/next"), ("POST", "/api/skip"), ("GET", "/x")])
def test_there_are_no_cookies(method, path, client):
    """A browser sends a cookie to every port of a host, also to those that an event's image names."""
    assert client.ask(method, path, {"query_id": "q1"} if method == "POST" else None)[1]["Set-Cookie"] is None
    cookie = {"Cookie": f"streamsvm-{client.port}={client.token}; token={client.token}"}
    assert client.ask("GET", "/api/stats", headers=cookie, key=False)[0] == 403


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer wrong"},
        {"Authorization": "Basic x"},
        {"Authorization": "ü"},
    ],
)
def test_without_the_token_nothing_is_said(headers, client, desk):
    headers = {name: value.encode("latin-1") for name, value in headers.items()}
    status, _, text = client.ask("GET", "/api/stats", headers=headers, key=False)
    assert status == 403
    assert "token" in text
    assert client.token not in text
    assert desk.said == []


@pytest.mark.parametrize("path", ["/api/stats?token={}", "/api/next?token={}"])
def test_the_token_is_not_taken_from_addresses(path, client):
    assert client.ask("GET", path.format(client.token), key=False)[0] == 403


@pytest.mark.parametrize(
    "host", ["127.0.0.1:{}", "localhost:{}", "[::1]:{}", "192.168.1.7:{}", "127.0.0.1", "LOCALHOST:9000"]
)
def test_own_names(host, client):
    assert client.ask("GET", "/api/stats", headers={"Host": host.format(client.port)})[0] == 200


@pytest.mark.parametrize("host", ["evil.example:{}", "", "127.0.0.1.evil.example", "[", "localhost.evil.example:{}"])
def test_foreign_names(host, client):
    """A name of somebody else's may point to this machine: their page would then share our origin."""
    status, _, text = client.ask("GET", "/", headers={"Host": host.format(client.port)})
    assert status == 403
    assert "have that name" in text


def test_a_configured_name(desk, tmp_path):
    with LabellingPage(desk, configure(tmp_path, "labelling.host=localhost")) as page:
        assert page.url.startswith("http://localhost:")
        assert Client(page).ask("GET", "/")[0] == 200


def test_the_name_of_a_proxy(desk, tmp_path):
    """A proxy with TLS hands on the name that the browser has asked for."""
    here, elsewhere = ({"Host": name, "Origin": f"https://{name}"} for name in ("labels.example.org", "evil.example"))
    with LabellingPage(desk, configure(tmp_path, 'http.names=["labels.example.org"]')) as page:
        assert Client(page).ask("GET", "/api/stats", headers=here)[0] == 200
        assert Client(page).ask("GET", "/api/stats", headers=elsewhere)[0] == 403


@pytest.mark.parametrize(("host", "address"), [("0.0.0.0", "127.0.0.1"), ("::", "[::1]")])  # noqa: S104
def test_a_server_on_all_addresses_tells_one_that_others_can_use(host, address, desk, tmp_path, monkeypatch):
    if host == "::" and not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    settings = configure(tmp_path, f"labelling.host={host}")
    with LabellingPage(desk, settings) as page:
        assert Client(page).ask("GET", "/", headers={"Host": page.url.split("/")[2]})[0] == 200
    monkeypatch.setattr(labelling_page, "_own_address", lambda family: {2: "192.168.1.7"}.get(family, "fd00::7"))
    with LabellingPage(desk, settings) as page:
        assert page.url.startswith(("http://192.168.1.7:", "http://[fd00::7]:"))
    monkeypatch.undo()

    def unreachable(self, _):
        raise OSError("network is unreachable")

    monkeypatch.setattr(socket.socket, "connect", unreachable)
    with LabellingPage(desk, settings) as page:
        assert page.url.startswith(f"http://{address}:")


def test_origins(client, desk):
    own = f"http://127.0.0.1:{client.port}"
    body = {"query_id": "q1", "label": "fraud"}
    assert client.json("POST", "/api/answer", body, {"Origin": own}) == (200, {"outcome": "first"})
    for origin in ("http://127.0.0.1:1", "null", "https://evil.example", f"{own}.evil.example", ""):
        status, content = client.json("POST", "/api/answer", body, {"Origin": origin})
        assert (status, content) == (403, {"error": "a request from another page is refused"})
    assert len(desk.said) == 1


def test_the_token_outlives_the_server_and_is_nobody_elses(desk, tmp_path):
    settings = configure(tmp_path)
    with LabellingPage(desk, settings) as page:
        token = Client(page).token
    path = settings.daemon.state_dir / "page-key"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) == 32
    with LabellingPage(desk, settings) as page:
        assert Client(page).token == token
    path.write_text("short\n")
    with LabellingPage(desk, settings) as page:
        assert Client(page).token not in (token, "short")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_way_in_is_a_file_that_only_its_owner_reads(desk, tmp_path):
    """Other users of a machine can read the arguments of a browser."""
    settings = configure(tmp_path)
    path = settings.daemon.state_dir / "open-page.html"
    with LabellingPage(desk, settings) as page:
        assert not path.exists()
        assert page.door() == path.resolve().as_uri()
        assert f"url={page.url}" in path.read_text()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


def test_what_the_page_may_do(client):
    """Its own scripts and style, and images: nothing else, and nobody may frame it."""
    _, headers, text = client.ask("GET", "/")
    rules = dict(rule.split(" ", 1) for rule in headers["Content-Security-Policy"].split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert rules["img-src"] == "data:"
    assert rules["script-src"] == rules["style-src"] == "'self'"
    assert "<style" not in text
    assert not re.search(r"<script[^>]*>[^<]", text)
    assert "style=" not in text
    assert not re.search(r"\son\w+=", text)
    files = [name for name in re.findall(r"(?:src|href)=[\"']?([^\"'>]*)", text) if not name.startswith("data:")]
    assert "main.js" in files
    for name in files:
        status, headers, _ = client.ask("GET", f"/{name}", key=False)
        assert (status, headers["X-Content-Type-Options"]) == (200, "nosniff")
        assert headers["Content-Type"].startswith(("text/javascript", "text/css"))
    headers = client.ask("GET", "/")[1]
    for name, value in {
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Embedder-Policy": "credentialless",
        "X-Content-Type-Options": "nosniff",
    }.items():
        assert headers[name] == value
    assert "Python" not in headers["Server"]


@pytest.mark.parametrize(
    ("hosts", "source", "right", "wrong"),
    [
        ([], "data:", [IMAGE], ["http://example.org/a.png", "https://localhost/", "javascript:0", "//a/b", "/a.png"]),
        (
            ["example.org", "*.cdn.example"],
            "data: example.org *.cdn.example",
            ["http://example.org/a", "https://EXAMPLE.org:443/a", "https://a.b.cdn.example/"],
            ["https://example.org:8443/", "https://a.example.org/", "https://cdn.example/", "https://xcdn.example/"],
        ),
        (
            ["http://localhost:9000"],
            "data: http://localhost:9000",
            ["http://localhost:9000/a.png"],
            ["https://localhost:9000/", "http://localhost/", "http://u@localhost:9000/", "http://localhost:99999999/"],
        ),
        (["*"], "data: http: https:", ["https://a/", "http://[::1]:7/"], ["ftp://a/", "data:text/html,a", "http://["]),
    ],
)
def test_images_come_from_listed_hosts_only(hosts, source, right, wrong, tmp_path):
    """The server and the browser's policy agree, so that a question is never half shown."""
    desk = Desk()
    with LabellingPage(desk, configure(tmp_path, f"labelling.image_hosts={json.dumps(hosts)}")) as page:
        client = Client(page)
        assert f"; img-src {source};" in client.ask("GET", "/")[1]["Content-Security-Policy"]
        for address in [*right, *wrong]:
            desk.shown = replace(desk.shown, event={"image": address})
            question = client.json("GET", "/api/next")[1]["question"]
            shown = (address, None) if address in right else (None, address)
            assert (question["image"], question["refused_image"]) == shown


def test_images_of_a_folder_have_safe_names(tmp_path):
    photos, png = tmp_path / "photos", b"PNG of a cat"
    (photos / "cats").mkdir(parents=True)
    for name in ("cats/1 ü.png", "cats/.hidden.png", "page.html", "drawing.svg"):
        (photos / name).write_bytes(png)
    (tmp_path / "secret.png").write_bytes(b"secret")
    (photos / "link.png").symlink_to(tmp_path / "secret.png")
    (photos / "folder.png").mkdir()
    wrong = [
        *("../secret.png", "cats/../../secret.png", str(tmp_path / "secret.png"), "link.png", "folder.png", "none.png"),
        *("cats/.hidden.png", "./cats/1 ü.png", "cats//1 ü.png", "page.html", "drawing.svg"),
        *("..\\secret.png", "a\0.png"),
    ]
    desk = Desk()
    with LabellingPage(desk, configure(tmp_path, "labelling.image_folder=photos")) as page:
        client = Client(page)
        assert "; img-src data: blob:;" in client.ask("GET", "/")[1]["Content-Security-Policy"]
        desk.shown = replace(desk.shown, event={"image": "cats/1 ü.png"})
        address = client.json("GET", "/api/next")[1]["question"]["image"]
        status, headers, body = client.ask("GET", address)
        assert (status, headers["Content-Type"], body) == (200, "image/png", png.decode())
        assert client.ask("GET", address, headers={"Authorization": "Bearer wrong"})[0] == 403
        for name in wrong:
            desk.shown = replace(desk.shown, event={"image": name})
            question = client.json("GET", "/api/next")[1]["question"]
            assert (question["image"], question["refused_image"]) == (None, name)
            assert client.json("GET", f"/api/image?name={quote(name)}")[0] == 404
    with LabellingPage(desk, configure(tmp_path)) as page:
        assert Client(page).json("GET", address)[0] == 404


@pytest.mark.parametrize(
    "host",
    ["'self'", "a b", "a;script-src *", "https://a/path", "", "*.", "ftp://a", "a:99999999"],
)
def test_what_is_no_host_of_images(host, tmp_path):
    with pytest.raises(ConfigError, match="image_hosts"):
        configure(tmp_path, f"labelling.image_hosts={json.dumps([host])}")


def test_the_instructions_are_a_tree_for_those_with_the_token(desk, tmp_path):
    settings = configure(tmp_path)
    labelling = replace(settings.labelling, instructions="# Fraud\n\nIf *you* doubt, skip.")
    with LabellingPage(desk, replace(settings, labelling=labelling)) as page:
        client = Client(page)
        assert client.json("GET", "/api/about") == (
            200,
            {
                **CLASSES,
                "instructions": [["h", 1, ["Fraud"]], ["p", ["If ", ["em", ["you"]], " doubt, skip."]]],
            },
        )
        assert client.ask("GET", "/api/about", key=False)[0] == 403


# --- questions and answers --------------------------------------------------------------------------------------------


def test_a_question(client, desk):
    status, content = client.json("GET", "/api/next")
    assert status == 200
    assert content == {
        "question": {
            "query_id": "q1", "id": str(2**60 + 1), "x": {"a": 1.0}, "text": None, "image": None,
            "refused_image": None, "series": None, "margin": 0.5, "score": 0.6, "guess": None, "reason": "seed",
            "fields": {}, "unusual": {}, "alike": [], "almost": False,
        "speaking": [], "is_tied": False,
        },
        "undo": None,
        "stats": STATUS,
        **CLASSES,
        "seen": 3,
    }  # fmt: skip
    assert client.json("GET", "/api/stats") == (200, STATUS)
    desk.shown = None
    assert client.json("GET", "/api/next")[1]["question"] is None


def test_a_page_that_is_closed_releases_its_question(client, desk):
    client.json("GET", "/api/next")
    assert client.json("POST", "/api/release", {}) == (200, {})
    assert len(desk.released) == 1
    assert desk.released[0].startswith("page:")


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ({"text": "t", "image": IMAGE, "series": [1, 2.5]}, {"text": "t", "image": IMAGE, "series": [1, 2.5]}),
        ({"text": 1, "image": ["i"], "series": "12"}, {}),
        ({"text": "", "image": "", "series": []}, {}),
        ({"text": None, "image": {}, "series": [1, None]}, {}),
        ({"series": [True, 1]}, {}),
        ({"series": [1.0, float("nan")]}, {}),
        ({"series": [10**400, 1]}, {}),
        ({"note": "n", "n": 7, "is": True, "list": [1]}, {"fields": {"note": "n", "n": "7", "is": "true"}}),
    ],
)
def test_fields_of_another_kind_are_not_shown(event, fields, tmp_path):
    with LabellingPage(Desk(event), configure(tmp_path)) as page:
        question = Client(page).json("GET", "/api/next")[1]["question"]
    assert {name: question[name] for name in ("text", "image", "series", "fields")} == (
        {"text": None, "image": None, "series": None, "fields": {}} | fields
    )


def test_fields_by_other_names(tmp_path):
    settings = configure(tmp_path, "labelling.text=body", "labelling.image=photo", "labelling.series=ecg")
    with LabellingPage(Desk({"body": "b", "photo": IMAGE, "ecg": [1], "text": "t"}), settings) as page:
        question = Client(page).json("GET", "/api/next")[1]["question"]
    assert [question[name] for name in ("text", "image", "series")] == ["b", IMAGE, [1]]


def test_labels_without_names(desk, tmp_path):
    with LabellingPage(desk, configure(tmp_path, "label.positive=", "label.negative=")) as page:
        client = Client(page)
        assert client.json("GET", "/api/next")[1]["labels"] == ["positive", "negative"]
        client.json("POST", "/api/answer", {"query_id": "q1", "label": "negative"})
    assert desk.said[-1] == ("answer", "q1", False, "page:#0123abcd")


def test_answers(client, desk):
    who = {"X-Annotator": "Zo%C3%AB%0A%00 " + "x" * 100}
    assert client.json("POST", "/api/answer", {"query_id": "q1", "label": "fraud"}, who) == (200, {"outcome": "first"})
    assert client.json("POST", "/api/skip", {"query_id": "q2"}) == (200, {"outcome": "first"})
    assert client.json("POST", "/api/ignore", {"query_id": "q3"}) == (200, {"outcome": "first"})
    zoe, unnamed = "page:Zoë " + "x" * 36 + "#0123abcd", "page:#0123abcd"
    assert desk.said == [
        ("answer", "q1", True, zoe), ("skip", "q2", unnamed), ("ignore", "q3", unnamed),
    ]  # fmt: skip
    assert desk.renamed == [(zoe, unnamed)]


def test_who_sat_at_a_tab_long_ago_is_forgotten(request, monkeypatch):
    monkeypatch.setattr(page_server, "_MAX_TABS", 2)
    client, desk = map(request.getfixturevalue, ("client", "desk"))
    for tab, name in [("a", "ann"), ("b", "bob"), ("a", "ann"), ("c", "cem"), ("b", "bea"), ("c", "cleo")]:
        client.json("POST", "/api/skip", {"query_id": "q1"}, {"X-Tab": tab, "X-Annotator": name})
    assert desk.renamed == [("page:cem#c", "page:cleo#c")]  # bob was forgotten before bea came


def test_undo(client, desk):
    status, content = client.json("POST", "/api/undo", {"number": 7})
    assert (status, content["error"]) == (404, "there is no such answer of yours")
    desk.steps = [STEP]
    assert client.json("GET", "/api/next")[1]["undo"] == SHOWN_STEP
    undone = {"outcome": "open", "answer": SHOWN_STEP}
    assert client.json("POST", "/api/undo", {"number": 7}) == (200, undone)
    assert desk.said[-1] == ("undo", "page:#0123abcd", 7)


def test_the_history_comes_in_pages(client, desk):
    desk.shown = replace(desk.shown, event={"text": "x" * 1000, "image": "data:image/png;base64," + "A" * 99_999})
    desk.steps = [STEP._replace(number=number, given=STEP.given._replace(op="skip", y=None)) for number in range(30)]
    status, content = client.json("GET", "/api/history?before=31")
    assert desk.said == [("history", "page:#0123abcd", 31, PAGE + 1)]
    assert (status, content["is_all"], len(content["answers"])) == (200, False, PAGE)
    skipped = SHOWN_STEP | {"number": 29, "op": "skip", "label": None, "now": None}
    assert content["answers"][0] == skipped | {"text": "x" * 160, "image": None}
    desk.steps, desk.shown = desk.steps[:PAGE], None
    content = client.json("GET", "/api/history?of=all")[1]
    assert desk.said[-1] == ("history", None, None, PAGE + 1)
    assert (content["is_all"], content["answers"][0]["text"]) == (True, None)


def test_a_list_shows_small_images_or_some_values(client, desk):
    desk.steps = [STEP]
    for event, words in (({"image": IMAGE, "file": desk.shown.id}, ""), ({}, "a 1.2346, b 2")):
        desk.shown = replace(desk.shown, x={"none": 0.0, "a": 1.234567, "b": 2.0}, event=event)
        (item,) = client.json("GET", "/api/history")[1]["answers"]
        assert (item["text"], item["image"]) == (words, event.get("image"))


def test_review_and_correction(client, desk):
    desk.steps = [
        STEP._replace(given=STEP.given._replace(who=who)) for who in (STEP.given.who, "truth", "terminal:ann")
    ]
    content = client.json("GET", "/api/review?query_id=q1")[1]
    assert content["question"]["x"] == {"a": 1.0}
    assert [answer["by"] for answer in content["answers"]] == ["Zoë", "truth", "ann"]
    desk.shown = None
    assert client.json("GET", "/api/review?query_id=q1")[1]["question"] is None
    assert client.json("GET", "/api/review")[0] == 400
    for body in ({"label": "genuine"}, {"op": "skip"}, {"op": "ignore"}):
        assert client.json("POST", "/api/correct", {"query_id": "q1"} | body) == (200, {"outcome": "first"})
    assert [said[2:4] for said in desk.said] == [("set", False), ("skip", None), ("ignore", None)]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status", "reason"),
    [
        (
            "/api/answer",
            {"query_id": "q1", "label": "frau"},
            {},
            400,
            "label must be one of 'fraud', 'genuine', got 'frau'",
        ),
        ("/api/answer", {"query_id": "q1", "label": True}, {}, 400, "label must be one of"),
        ("/api/answer", {"query_id": "q1"}, {}, 400, "got None"),
        ("/api/answer", {"label": "fraud"}, {}, 400, "query_id must be the id of a question, got None"),
        ("/api/correct", {"query_id": "q1"}, {}, 400, "label must be one of"),
        ("/api/correct", {"query_id": "q1", "op": "retract"}, {}, 400, "op must be 'skip' or 'ignore', got 'retract'"),
        ("/api/undo", {}, {}, 400, "number must be that of an answer, got None"),
        ("/api/undo", {"number": 10**30}, {}, 400, "number must be"),
        ("/api/undo", {"number": True}, {}, 400, "number must be"),
        ("/api/skip", {"query_id": ""}, {}, 400, "query_id must be"),
        ("/api/skip", {"query_id": "q" * 301}, {}, 400, "query_id must be"),
        ("/api/skip", {"query_id": ["q"]}, {}, 400, "query_id must be"),
        ("/api/skip", b"[]", {}, 400, "the body must be a JSON object"),
        ("/api/skip", b"{", {}, 400, "the body must be a JSON object"),
        ("/api/skip", b"\xff", {}, 400, "the body must be a JSON object"),
        ("/api/skip", b"[" * 4000, {}, 400, "the body must be a JSON object"),
        ("/api/skip", {"query_id": "q"}, {"X-Tab": ""}, 400, "X-Tab"),
        ("/api/skip", {"query_id": "q"}, {"X-Tab": "a b"}, 400, "X-Tab"),
        ("/api/skip", {"query_id": "q"}, {"Content-Type": "text/plain"}, 415, "application/json"),
        ("/api/skip", b" " * (MAX_BODY + 1), {}, 413, f"{MAX_BODY} bytes"),
        ("/api/skip", b"", {"Content-Length": "1e9"}, 411, "Content-Length"),
        ("/api/skip", b"", {"Content-Length": "-1"}, 411, "Content-Length"),
        ("/api/skip", b"", {"Content-Length": "9" * 5000}, 413, "bytes"),
        ("/api/other", {}, {}, 404, "there is no such page"),
    ],
)
def test_requests_that_are_refused(path, body, headers, status, reason, client, desk):
    answered, content = client.json("POST", path, body, headers)
    assert answered == status
    assert reason in content["error"]
    assert desk.said == []


@pytest.mark.parametrize("path", ["/other", "/api/answer", "/../etc/passwd", "/index.html"])
def test_addresses_that_are_not_there(path, client):
    assert client.ask("GET", path)[0] == 404


@pytest.mark.parametrize(("key", "method"), [(True, "GET"), (False, "GET"), (True, "POST")])
def test_an_address_that_is_none(key, method, client, caplog):
    assert client.ask(method, "http://[", {}, {"Host": "localhost"}, key)[0] == 400
    assert not caplog.records


@pytest.mark.parametrize("query", ["wait=x", "wait=-2", "seen=1.5", "wait=9999999999"])
def test_numbers_that_are_none(query, client):
    status, content = client.json("GET", f"/api/next?{query}")
    assert status == 400
    assert "must be a whole number" in content["error"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "HEAD"])
def test_other_methods(method, client):
    assert client.ask(method, "/")[0] == 501


@pytest.mark.parametrize(
    ("trouble", "status", "reason"),
    [
        (UnknownQuestion("there is no question 'q1'"), 404, "there is no question 'q1'"),
        (Unavailable("the answer is not written yet"), 503, "the answer is not written yet"),
        (RuntimeError("secret"), 500, "the server failed: RuntimeError"),
    ],
)
def test_trouble(trouble, status, reason, client, desk):
    desk.trouble = trouble
    assert client.json("POST", "/api/skip", {"query_id": "q1"}) == (status, {"error": reason})
    desk.trouble = None
    assert client.json("POST", "/api/skip", {"query_id": "q1"})[0] == 200


# --- waiting ----------------------------------------------------------------------------------------------------------


def test_a_look_waits_for_news(client, desk):
    began, patience = time.monotonic(), Patience(9)
    timer = threading.Timer(0.3, lambda: setattr(desk, "version", 4))
    timer.start()
    assert client.json("GET", "/api/next?wait=10&seen=3")[1]["seen"] == 4
    assert time.monotonic() - began > 0.2
    assert patience.lasts
    assert client.json("GET", "/api/next?wait=10&seen=3")[1]["seen"] == 4  # at once
    assert client.json("GET", "/api/next?wait=0&seen=4")[1]["seen"] == 4
    timer.join()


def test_the_end_does_not_wait_for_those_who_wait(desk, tmp_path):
    with LabellingPage(desk, configure(tmp_path)) as page:
        client, replies = Client(page), []
        waiting = threading.Thread(target=lambda: replies.append(client.json("GET", "/api/next?wait=20&seen=3")))
        waiting.start()
        assert desk.is_awaited.wait(60)
        patience = Patience(15)
    waiting.join()
    assert patience.lasts
    assert replies[0][0] == 200


def test_who_is_gone_gets_no_question(client, desk):
    with socket.create_connection(("127.0.0.1", client.port)) as connection:
        lines = [
            "GET /api/next?wait=10&seen=3 HTTP/1.1",
            "Host: 127.0.0.1",
            f"Authorization: {client.key['Authorization']}",
            "X-Tab: a",
        ]
        connection.sendall("\r\n".join([*lines, "", ""]).encode())
        assert desk.is_awaited.wait(60)
    desk.version = 4
    time.sleep(0.3)
    assert desk.said == []


def test_a_name_that_has_changed_meanwhile_gets_no_question(client, desk):
    """Its question would stay reserved for nobody."""
    replies = []
    waiting = threading.Thread(target=lambda: replies.append(client.json("GET", "/api/next?wait=10&seen=3")))
    waiting.start()
    assert desk.is_awaited.wait(60)
    client.json("POST", "/api/skip", {"query_id": "q0"}, headers={"X-Annotator": "Bob"})
    desk.version = 4
    waiting.join()
    assert replies[0][1]["question"] is None
    assert [said[0] for said in desk.said] == ["skip"]


def test_a_body_that_does_not_come_is_given_up(desk, tmp_path, monkeypatch):
    monkeypatch.setattr(serve, "REQUEST_SECONDS", 2.0)
    with LabellingPage(desk, configure(tmp_path, "http.connections=1")) as page:
        client = Client(page)
        with socket.create_connection(("127.0.0.1", client.port), timeout=10) as connection:
            lines = [
                "POST /api/skip HTTP/1.1",
                "Host: 127.0.0.1",
                f"Authorization: {client.key['Authorization']}",
                "Content-Type: application/json",
                "Content-Length: 100",
            ]
            connection.sendall("\r\n".join([*lines, "", "{"]).encode())
            assert client.ask("GET", "/")[0] == 503  # it is the only connection
            assert b" 408 " in connection.recv(1000)
        until(lambda: client.ask("GET", "/")[0] == 200)
    assert desk.said == []


def test_a_port_that_is_taken(desk, tmp_path):
    with LabellingPage(desk, configure(tmp_path)) as page:
        port = Client(page).port
        with pytest.raises(OSError, match=rf"cannot listen on 127\.0\.0\.1, port {port}: "):
            LabellingPage(desk, configure(tmp_path, f"labelling.port={port}"))


def test_a_page_that_never_started_can_be_closed(desk, tmp_path):
    LabellingPage(desk, configure(tmp_path)).close()


# --- with the real desk -----------------------------------------------------------------------------------------------


def test_an_answer_is_in_the_log_when_it_is_acknowledged(tmp_path):
    settings = configure(tmp_path)
    trainer = Trainer(settings)
    for number in (1, 2):
        trainer.ask(number)
    with LabellingService(settings) as service, LabellingPage(service, settings) as page:
        client = Client(page)
        question = until(lambda: client.json("GET", "/api/next")[1]["question"])
        answer = {"query_id": question["query_id"], "label": "genuine"}
        assert client.json("POST", "/api/answer", answer) == (200, {"outcome": "first"})
        assert trainer.labels() == {question["id"]: False}
        assert client.json("POST", "/api/answer", answer) == (200, {"outcome": "repeated"})
        assert client.json("POST", "/api/answer", answer | {"query_id": "q9"})[0] == 404
        assert (
            client.json("GET", "/api/next", headers={"X-Tab": "b"})[1]["question"]["query_id"] != question["query_id"]
        )
        number = client.json("GET", "/api/next")[1]["undo"]["number"]
        for outcome in ("open", "repeated"):
            assert client.json("POST", "/api/undo", {"number": number})[1]["outcome"] == outcome
        assert client.json("GET", "/api/next")[1]["question"] == question
    assert [answer["op"] for answer in trainer.answers()] == ["set", "retract"]
    trainer.close()


def test_the_page_has_nothing_of_this_machine():
    folder = Path(__file__).parents[4] / "connectors" / "labelling" / "web" / "static"
    for file in folder.iterdir():
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)\w", file.read_text(encoding="utf-8")), file
