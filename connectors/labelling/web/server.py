"""The server of the labelling page: the files of static/, and the requests that they make.

========================  ==============================================================================================
``GET /``                 The page; it holds no secret, and requests everything below.
``GET /main.js``, ...     Its scripts and its style.
``GET /api/about``        ``{"labels": [positive, negative], "is_multiclass": false, "may_add": false,
                          "keys": ["1", "2"], "instructions": [...]}``, see `markdown`.  With more than two
                          classes, `labels` has all of them, and `may_add` says whether a label may be a new class.
``GET /api/next``         ``{"question": {...} or null, "undo": the answer that undo takes back, or null,
                          "stats": {...}, "labels": ..., "seen": N}`` and what else `about` says of classes; with
                          ``?wait=S&seen=N``, as soon as anything changes after N, or after S seconds.
``GET /api/stats``        Only the stats.
``GET /api/history``      ``{"answers": [{...}, ...], "is_all": whether there are no older ones}``, newest first; with
                          ``?before=N``, those older than the answer of this number; with ``?of=all``, of everybody.
``GET /api/review``       With ``?query_id=...``: ``{"question": {...} or null, "answers": [oldest, ...]}``.
``GET /api/find``         With ``?q=...``, the newest events that hold these words and values; with ``&before=N``, older
                          ones; with ``?like=QUERY_ID``, those like one: ``{"found": [{...}, ...], "n_found": N,
                          "next": N or null, "n_events": how many were searched, "is_loaded": whether that is all}``.
``GET /api/image``        With ``?name=...``: a file of labelling.image_folder.
``POST /api/answer``      ``{"query_id": ..., "label": one of the labels, or a new class}``: 200 when it is durable.
                          With ``"alike": true`` it is also for the near-duplicates that the question names.
``POST /api/skip``        ``{"query_id": ...}``: the annotator cannot tell.
``POST /api/ignore``      ``{"query_id": ...}``: the event is useless.
``POST /api/correct``     ``{"query_id": ..., "label": ...}`` or ``{"query_id": ..., "op": "skip" or "ignore"}``: this
                          holds, whatever was answered before.
``POST /api/undo``        ``{"number": N}``: take the answer of this number back.
========================  ==============================================================================================

Requests to ``/api/`` carry the token, as ``Authorization: Bearer TOKEN``. The header X-Tab identifies the tab, so that
two tabs get different questions. X-Annotator (percent-encoded) is the annotator's name. An error is
``{"error": "..."}``. 403 means a wrong token. 503 means: send the request again. A client that received no reply also
sends its request again, because the same answer counts once.

The page keeps the token in the storage of its tab, and gives it to other tabs of its own origin. There is no cookie:
a browser sends cookies to every port of a host, so also to a server that an event's image names. Images are fetched
without a referrer, and without the cookies of other sites (Cross-Origin-Embedder-Policy).

Other pages in the same browser can neither answer nor read: they have no token, the server refuses their Origin, and it
accepts only its own address, ``localhost`` and the configured names as Host.
"""

import hmac
import logging
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from streamsvm.core.newest import Newest

from ...logs.transport import Unavailable
from ...records.classes import ClassLabel
from ...records.labels import MAX_QUERY_ID
from ...records.people.questions import FOUND, Question
from ...runtime.http import Handler, HTTPServer, Refused, is_own_name
from ...runtime.process import POLL_SECONDS
from ...settings.sections import Settings
from ..answer import Given, Unusable
from ..book import UnknownQuestion
from ..choices import Choices
from ..history import Step
from ..service import LabellingService
from . import markdown
from .files import page_files, policy
from .images import FILES, file_of
from .replies import answer, class_change, preview, question, said

logger = logging.getLogger(__name__)

MAX_BODY = 4096  # bytes of a request
MAX_WAIT = 20.0  # seconds that a request may wait for a question
PAGE = 20  # answers in a reply

_MAX_NAME = 40  # characters of an annotator's name, which every answer carries
_MAX_TABS = 1000  # tabs whose annotators are remembered
_TAB = re.compile(r"[0-9A-Za-z]{1,32}")
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # images come from other servers
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "credentialless",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class PageServer(HTTPServer):
    """Serves the page, and knows which annotator uses which tab."""

    def __init__(self, service: LabellingService, settings: Settings, token: str) -> None:
        self.service = service
        self.labelling = settings.labelling
        self.label = settings.label
        self.instructions = markdown.parse(settings.labelling.instructions)
        self.token = token
        self.files, self.policy = page_files(), policy(settings.labelling)
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._annotators: Newest[str, str] = Newest(_MAX_TABS)  # by tab
        self.names = settings.labelling.host, *settings.http.names
        super().__init__(settings.labelling.host, settings.labelling.port, _Handler, settings.http.connections)

    def arrive(self, tab: str, who: str) -> str:
        """Remember who uses a tab now; the question stays with the tab if its annotator types another name."""
        with self._lock:
            before, self._annotators[tab] = self._annotators.get(tab, who), who
        if before != who:
            self.service.rename(before, who)
        return who

    def leave(self, tab: str) -> None:
        """End the reservation of a tab that is closed; a request of it that still waits gets no question."""
        with self._lock:
            who = self._annotators.pop(tab, None)
        if who is not None:
            self.service.release(who)

    def is_here(self, who: str) -> bool:
        """Whether an annotator has not closed their tab or left it to another one."""
        with self._lock:
            return who in self._annotators.values()


class _Handler(Handler):
    server: PageServer

    # --- routes -------------------------------------------------------------------------------------------------------

    def do_GET(self) -> None:  # noqa: N802 - a name of http.server's
        self._guarded(self._get)

    def _get(self) -> None:
        routes = {
            "/api/about": self._about,
            "/api/next": self._next,
            "/api/stats": self.server.service.stats,
            "/api/history": self._history,
            "/api/review": self._review,
            "/api/classes": self._class_changes,
            "/api/disputes": self._disputes,
            "/api/find": self._find,
        }
        path = self._address().path
        if path in self.server.files:
            self.reply(HTTPStatus.OK, *self.server.files[path])
        elif path in routes:
            self.reply_json(HTTPStatus.OK, routes[path]())
        elif path == FILES:
            self._image()
        else:
            self._not_found()

    def _image(self) -> None:
        found = file_of(self._parameter("name"), self.server.labelling)
        if found is None:
            raise Refused(HTTPStatus.NOT_FOUND, "the folder of images (labelling.image_folder) has no such image")
        path, media = found
        self.reply(HTTPStatus.OK, path.read_bytes(), media)

    def do_POST(self) -> None:  # noqa: N802 - a name of http.server's
        routes = {
            "/api/answer": self._answer,
            "/api/skip": lambda body: self._without_label(self.server.service.skip, body),
            "/api/ignore": lambda body: self._without_label(self.server.service.ignore, body),
            "/api/correct": self._correct,
            "/api/decide": self._decide,
            "/api/undo": self._undo,
            "/api/release": self._release,
            "/api/classes": self._change_class,
        }
        route = routes.get(self.path)
        if route is None:
            self._guarded(self._not_found)
        else:
            self._guarded(lambda: self.reply_json(HTTPStatus.OK, route(self._body())))

    def _about(self) -> dict[str, Any]:
        return {**self._classes(), "instructions": self.server.instructions}

    @property
    def _choices(self) -> Choices:
        return Choices(self.server.label, self.server.service.stats())

    def _classes(self) -> dict[str, Any]:
        """What the page needs to know of the classes."""
        choices, vocabulary = self._choices, self.server.label.vocabulary
        keys = choices.keys()
        return {
            "labels": list(keys),
            "is_multiclass": vocabulary is not None,
            "may_add": choices.may_add,
            "keys": list(keys.values()),
            "is_open": vocabulary is not None and vocabulary.is_open,
            "limit": 2 if vocabulary is None else vocabulary.limit,
        }

    def _class_changes(self) -> dict[str, Any]:
        """The classes with their numbers of labels, and how people have changed them, newest first."""
        service, label = self.server.service, self.server.label
        n_labels, changes = dict(service.stats().get("classes", ())), service.class_changes()
        return {
            "classes": [{"name": name, "n": n_labels.get(y, 0)} for name, y in self._choices.known.items()],
            "changes": [class_change(change, label) for change in reversed(changes)],
        }

    def _change_class(self, body: Mapping[str, Any]) -> dict[str, Any]:
        old, new = body.get("from"), body.get("to")
        if not isinstance(old, str) or not (new is None or isinstance(new, str)):
            raise Refused(HTTPStatus.BAD_REQUEST, "from must be the name of a class, and to a name or null")
        change = self._choices.change(old, None if new is None else new.strip())
        self.server.service.change_class(change, self._who())
        return {"op": change.op, **self._class_changes()}

    def _next(self) -> dict[str, Any]:
        who, service = self._who(), self.server.service
        patience = min(MAX_WAIT, self.server.labelling.lease_seconds / 3)  # each request renews the reservation
        deadline, seen = time.monotonic() + min(self._number("wait") or 0, patience), self._number("seen")
        while (now := service.wait(0)) == seen and not self.server.closing.is_set() and time.monotonic() < deadline:
            service.wait(min(deadline - time.monotonic(), POLL_SECONDS), now)
        self._check_connection()
        seen = service.wait(0)  # read first, so that no later change is missed
        shown = service.next(who) if self.server.is_here(who) else None  # a new name may have come while this waited
        step = service.undoable(who)
        return {
            "question": None if shown is None else self._asked(shown),
            "undo": None if step is None else self._answer_of(step),
            "stats": service.stats(),
            **self._classes(),
            "seen": seen,
        }

    def _asked(self, shown: Question) -> dict[str, Any]:
        """A question, and whether it decides between people who disagree; what they said would bias the annotator."""
        is_spare = {"reason": "spare"} if shown.reason == FOUND else {}
        is_tied = self.server.service.is_tied(shown.query_id)
        return {**question(shown, self.server.labelling), **is_spare, "is_tied": is_tied}

    def _check_connection(self) -> None:
        """Raise if the page has gone: a question that it gets would stay reserved."""
        if select.select([self.connection], [], [], 0)[0] and not self.connection.recv(1, socket.MSG_PEEK):
            raise ConnectionAbortedError("the page closed the connection")

    def _history(self) -> dict[str, Any]:
        service, labelling = self.server.service, self.server.labelling
        who = None if self._parameter("of") == "all" else self._who()
        steps = service.history(who, self._number("before"), PAGE + 1)
        found = [(step, service.review(step.query_id)[0]) for step in steps[:PAGE]]
        answers = [self._answer_of(step) | preview(shown, labelling) for step, shown in found]
        return {"answers": answers, "is_all": len(steps) <= PAGE}

    def _review(self) -> dict[str, Any]:
        shown, steps = self.server.service.review(_query_id({"query_id": self._parameter("query_id")}))
        return {
            "question": None if shown is None else question(shown, self.server.labelling),
            "answers": [self._answer_of(step) for step in steps],
        }

    def _disputes(self) -> dict[str, Any]:
        """The answers that look doubtful, with the names: for the person who decides."""
        found = self.server.service.disputes(PAGE)
        disputes = [
            {
                "kind": one.kind,
                "query_id": one.query_id,
                "id": str(one.answers[0].id if one.question is None else one.question.id),
                "answers": [self._answer_of(step) for step in one.answers],
                **preview(one.question, self.server.labelling),
            }
            for one in found
        ]
        return {"disputes": disputes}

    def _decide(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"outcome": self.server.service.decide(_query_id(body), self._class(body), self._who())}

    def _answer_of(self, step: Step) -> dict[str, Any]:
        """An answer as the page shows it: what it said, and what it counts as now."""
        return answer(step, self.server.service.meaning(step.given.y), self.server.label)

    def _find(self) -> dict[str, Any]:
        service, labelling, like = self.server.service, self.server.labelling, self._parameter("like")
        before = self._number("before")
        if like:
            found = service.find_like(_query_id({"query_id": like}), PAGE)
        else:
            found = service.find(self._parameter("q"), before, PAGE)
        shown = zip(found.page.questions, found.given, strict=True)
        return {
            "found": [preview(one, labelling) | self._said(one, given) for one, given in shown],
            "n_found": found.page.n_found,
            "next": found.page.next,
            "n_events": found.n_events,
            "is_loaded": found.is_loaded,
        }

    def _said(self, shown: Question, given: Given | None) -> dict[str, Any]:
        now = None if given is None else self.server.service.meaning(given.y)
        return said(shown.query_id, shown.id, given, now, self.server.label)

    def _answer(self, body: Mapping[str, Any]) -> dict[str, Any]:
        label = self._class(body)
        is_for_all = body.get("alike") is True
        outcome = self.server.service.answer(_query_id(body), label, self._who(), alike=is_for_all)
        named = {"label": str(label)} if self.server.label.vocabulary else {}  # perhaps in other capitals
        return {"outcome": outcome, **named}

    def _without_label(self, say: Callable[[str, str], str], body: Mapping[str, Any]) -> dict[str, Any]:
        return {"outcome": say(_query_id(body), self._who())}

    def _correct(self, body: Mapping[str, Any]) -> dict[str, Any]:
        op = body.get("op", "set")
        if op not in ("set", "skip", "ignore"):
            raise Refused(HTTPStatus.BAD_REQUEST, f"op must be 'skip' or 'ignore', got {op!r:.100}")
        y = self._class(body) if op == "set" else None
        return {"outcome": self.server.service.correct(_query_id(body), op, y, self._who())}

    def _class(self, body: Mapping[str, Any]) -> ClassLabel:
        label, choices = body.get("label"), self._choices
        if not isinstance(label, str):
            raise Refused(HTTPStatus.BAD_REQUEST, f"label must be {choices.wanted()}, got {label!r:.100}")
        return choices.named(label)

    def _undo(self, body: Mapping[str, Any]) -> dict[str, Any]:
        number = body.get("number")
        if type(number) is not int or not 0 <= number < 1 << 63:
            raise Refused(HTTPStatus.BAD_REQUEST, f"number must be that of an answer, got {number!r:.100}")
        undone = self.server.service.undo(self._who(), number)
        if undone is None:
            raise Refused(HTTPStatus.NOT_FOUND, "there is no such answer of yours")
        return {"outcome": undone.outcome, "answer": self._answer_of(undone.step)}

    def _release(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The page is closed: another annotator may have its question."""
        self._who()
        self.server.leave(self.headers["X-Tab"])
        return {}

    def _not_found(self) -> None:
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such page; the labelling page is at /")

    # --- what a request says ------------------------------------------------------------------------------------------

    def _who(self) -> str:
        tab = self.headers.get("X-Tab", "")
        if not _TAB.fullmatch(tab):
            raise Refused(HTTPStatus.BAD_REQUEST, "the header X-Tab must be 1 to 32 letters or digits")
        name = unquote(self.headers.get("X-Annotator", ""), errors="replace")
        name = "".join(character for character in name if character.isprintable()).strip()[:_MAX_NAME]
        return self.server.arrive(tab, f"page:{name}#{tab[:8]}")

    def _address(self) -> SplitResult:
        try:
            return urlsplit(self.path)
        except ValueError:
            raise Refused(HTTPStatus.BAD_REQUEST, "the address is malformed") from None

    def _parameter(self, name: str, missing: str = "") -> str:
        """A parameter of the address."""
        return parse_qs(self._address().query).get(name, [missing])[0]

    def _number(self, name: str) -> int | None:
        """A parameter of the address; None if it is missing, or -1."""
        given = self._parameter(name, "-1")
        if not re.fullmatch(r"-1|\d{1,9}", given):
            raise Refused(HTTPStatus.BAD_REQUEST, f"{name} must be a whole number, got {given!r:.100}")
        return None if given == "-1" else int(given)

    def _body(self) -> dict[str, Any]:
        if self.headers.get_content_type() != "application/json":
            raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Content-Type must be application/json")
        return self.json_body(MAX_BODY)

    # --- who may send requests ----------------------------------------------------------------------------------------

    def _guarded(self, respond: Callable[[], None]) -> None:
        try:
            self._check_sender()
            respond()
        except Refused as refusal:
            self._send_error(refusal.status, str(refusal))
        except Unusable as error:
            self._send_error(HTTPStatus.BAD_REQUEST, str(error))
        except UnknownQuestion as error:
            self._send_error(HTTPStatus.NOT_FOUND, str(error))
        except Unavailable as error:
            self._send_error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
        except OSError:
            raise  # the page closed the connection
        except Exception as error:
            logger.exception("a request to the labelling page failed")
            self._send_error(HTTPStatus.INTERNAL_SERVER_ERROR, f"the server failed: {type(error).__name__}")

    def _check_sender(self) -> None:
        host = self.headers.get("Host", "")
        if not is_own_name(host, self.server.names):
            raise Refused(
                HTTPStatus.FORBIDDEN, "this server does not have that name: use its address, or set http.names"
            )
        origin = self.headers.get("Origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Refused(HTTPStatus.FORBIDDEN, "a request from another page is refused")
        if self._address().path not in self.server.files and not self._has_token():
            raise Refused(HTTPStatus.FORBIDDEN, "the token is missing or wrong: open the printed address")

    def _has_token(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Bearer ")
        return hmac.compare_digest(given.encode(errors="replace"), self.server.token.encode())

    # --- replies ------------------------------------------------------------------------------------------------------

    def _send_error(self, status: HTTPStatus, reason: str) -> None:
        if self.path.startswith("/api/"):
            self.reply_json(status, {"error": reason})
        else:
            self.reply(status, f"{reason}\n".encode(errors="replace"), "text/plain; charset=utf-8")

    def end_headers(self) -> None:
        """Add the headers that every answer has."""
        for name, value in {**_HEADERS, "Content-Security-Policy": self.server.policy}.items():
            self.send_header(name, value)
        super().end_headers()


def _query_id(body: Mapping[str, Any]) -> str:
    query_id = body.get("query_id")
    if not isinstance(query_id, str) or not 0 < len(query_id) <= MAX_QUERY_ID:
        raise Refused(HTTPStatus.BAD_REQUEST, f"query_id must be the id of a question, got {query_id!r:.100}")
    return query_id
