"""Label Studio, played by a small server that has its documented routes, and our side of it."""

import http.server
import json
import re
import threading
import time
import urllib.error
import urllib.request
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from asked import until

from streamsvm.connectors.labelling.label_studio.api import Api
from streamsvm.connectors.labelling.label_studio.project import LabelStudio
from streamsvm.connectors.labelling.service import LabellingService

CONFIG = """<View><Text name="text" value="$text"/>
<Choices name="class" toName="text"><Choice value="spam"/><Choice value="ham"/><Choice value="odd"/></Choices></View>"""
TOKEN = "0123abcd"  # noqa: S105 - of the server below
REFRESH = "head.body.tail"


class Studio(http.server.ThreadingHTTPServer):
    """A Label Studio with one project, number 7.  It answers as version 1.23.2 does."""

    daemon_threads = True

    def __init__(self, config=CONFIG):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.config = config
        self.tasks = {}
        self.n_annotations = 0
        self.access = None
        self.failing = 0  # how many requests are answered with 500
        self.tells_ids = True
        self.coming = None  # a list: imported tasks that it has not made yet
        self.unlisted = set()  # tasks that a list misses, because others were deleted meanwhile
        self.protects = True  # refuses to call addresses of this machine
        self.maximum_annotations = 1
        self.requests = []

    def annotate(self, task_id, choice, *, user=1, when=None, cancelled=False):
        self.n_annotations += 1
        annotation = {"id": self.n_annotations, "task": task_id, "completed_by": user}
        self.tasks[task_id]["annotations"].append(annotation)
        return self.change(annotation, choice, when=when, cancelled=cancelled)

    def change(self, annotation, choice, *, when=None, cancelled=False):
        value = {"from_name": "class", "to_name": "text", "type": "choices", "value": {"choices": [choice]}}
        moment = datetime.fromtimestamp(time.time() if when is None else when, UTC)
        annotation["result"] = [] if choice is None else [value]
        annotation["was_cancelled"] = cancelled
        annotation["updated_at"] = moment.isoformat().replace("+00:00", "Z")
        return annotation

    def find(self, query_id):
        return next(task for task in self.tasks.values() if task["data"]["query_id"] == query_id)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Studio

    def handle_request(self):
        studio, path = self.server, urlsplit(self.path).path
        studio.requests.append((self.command, self.path))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if studio.failing:
            studio.failing -= 1
            return self.answer(500, {"detail": "trouble"})
        if (self.command, path) == ("POST", "/api/token/refresh"):
            studio.access = f"access-{len(studio.requests)}"
            return self.answer(200, {"access": studio.access})
        if self.headers["Authorization"] not in (f"Token {TOKEN}", f"Bearer {studio.access}"):
            return self.answer(401, {"detail": "Invalid token."})
        if (self.command, path) == ("GET", "/api/projects/7/"):
            shown = {"label_config": studio.config, "maximum_annotations": studio.maximum_annotations}
            return self.answer(200, {"id": 7, **shown})
        if self.command == "POST" and path in ("/api/ml/", "/api/webhooks/"):
            return self.connect(json.loads(body))
        if (self.command, path) == ("POST", "/api/projects/7/import"):
            return self.take(json.loads(body))
        if (self.command, path) == ("GET", "/api/tasks/"):
            return self.show(parse_qs(urlsplit(self.path).query))
        number = re.fullmatch(r"/api/tasks/(\d+)/", path)
        task = studio.tasks.get(int(number[1])) if number else None
        if task is None:
            return self.answer(404, {"detail": "Not found."})
        if self.command == "DELETE":
            del studio.tasks[task["id"]]
            return self.answer(204, None)
        return self.answer(200, task)

    def connect(self, body):
        if self.server.protects:
            return self.answer(403, {"detail": "URL resolves to a reserved network address (block: 127.0.0.0/8)"})
        if "actions" in body:
            return self.answer(400, {"validation_errors": {"actions": {"0": ['"NO_ACTION" is not a valid choice.']}}})
        return self.answer(400, {"validation_errors": {"non_field_errors": ["Can't connect to ML backend"]}})

    do_GET = do_POST = do_DELETE = handle_request  # noqa: N815 - names of the base class

    def take(self, items):
        if any("text" not in item["data"] for item in items):
            return self.answer(400, {"detail": '"text" key is expected in task data'})
        numbers = []
        if self.server.coming is not None:
            self.server.coming += items
            return self.answer(201, {"import": 1})
        for item in items:
            number = max(self.server.tasks, default=99) + 1
            self.server.tasks[number] = {"id": number, "data": item["data"], "annotations": [], "drafts": []}
            numbers.append(number)
        return self.answer(
            201, {"task_count": len(items), "task_ids": numbers} if self.server.tells_ids else {"import": 1}
        )

    def show(self, query):
        page, size = int(query["page"][0]), int(query["page_size"][0])
        tasks = [task for number, task in self.server.tasks.items() if number not in self.server.unlisted]
        part = tasks[(page - 1) * size : page * size]
        if not part and page > 1:
            return self.answer(404, {"detail": "Invalid page."})
        return self.answer(200, {"tasks": part, "total": len(tasks)})

    def answer(self, status, content):
        body = b"" if content is None else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Trainer:
    def __init__(self, log):
        self.log = log

    def ask(self, *names, **fields):
        for number, name in enumerate(names):
            question = {
                "query_id": name,
                "id": f"event-{name}",
                "x": {"a": 1.5},
                "event": {"text": f"text of {name}", "score": "of the event"},
                "margin": -0.4,
                "score": 0.3,
                "reason": "boundary",
                "asked_at": number,
                "expires_at": 10**9,
                "unusual": {},
                "model": {"ver": 7, "n_support": 3},
                **fields,
            }
            self.log.produce("questions", json.dumps(question).encode(), key=name.encode(), partition=0)

    def withdraw(self, name):
        self.log.produce("questions", None, key=name.encode(), partition=0)


class Desk:
    """Our side, running, from when Label Studio has made so many tasks."""

    def __init__(self, settings, studio, *, token=TOKEN, auth=None, project=7, tasks=0):
        self.settings, self.studio, self.token, self.auth, self.project = settings, studio, token, auth, project
        self.tasks = tasks
        self.stop = threading.Event()
        self.error = None

    def __enter__(self):
        self.service = LabellingService(self.settings)
        self.service.__enter__()
        self.ours = LabelStudio(self.service, self.settings, Api(self.studio.url, self.token), self.project, self.auth)
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()
        if self.tasks:
            self.wait_for_tasks(self.tasks)
        return self

    def work(self):
        try:
            self.ours.run(self.stop.is_set)
        except Exception as error:
            self.error = error

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join(60)
        self.service.__exit__()
        assert not self.thread.is_alive()

    def wait_for_tasks(self, n):
        """Until we know that Label Studio has made so many."""
        until(lambda: len(self.ours._tasks._tasks) == n)

    def hear(self, action, **content):
        return self.post("/webhook", {"action": action, "project": {"id": 7}, **content})

    def post(self, path, body, headers=()):
        return request(self.ours.port, path, json.dumps(body).encode(), dict(headers))


def request(port, path, data=None, headers=()):
    """Status and content of a request to us."""
    asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, dict(headers))
    try:
        with urllib.request.urlopen(asked, timeout=5) as response:  # noqa: S310 - http, see above
            return response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())
