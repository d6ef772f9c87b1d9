"""People label: keys, undo, skip, reload, two tabs at once, and servers that die in between."""

import base64
import csv
import http.server
import json
import socket
import threading
import time

import pytest
from asked import Trainer, configure, until
from patience import exit_code
from playwright.sync_api import expect

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.labelling.web.page import LabellingPage

from .conftest import arrive, name, press, shown, try_now, wait_for

IDENT, SAID, TROUBLE = "#ident", "#said", "#trouble"

# A page in a process of its own, which dies at the first answer: before it is durable, or before the reply.
SERVER = """
import os, sys, time
from pathlib import Path
from streamsvm.connectors.labelling.web.page import LabellingPage
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.settings.loading import load

folder, port, death = sys.argv[1:]

class Dying(LabellingService):
    def answer(self, *arguments, **options):
        if death == "before":
            os._exit(9)
        outcome = super().answer(*arguments, **options)
        if death == "after":
            os._exit(9)
        return outcome

settings = load(Path(folder) / "app.toml", {}, [f"labelling.port={port}"])
with Dying(settings) as service, LabellingPage(service, settings) as page:
    print(page.url, flush=True)
    time.sleep(600)
"""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_thirty_questions(office, visitor):
    for number in range(30):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    given = {}
    for turn in range(30):
        event = shown(page)
        given[event] = int(event[1:]) % 3 == 0
        if turn % 2:
            press(page, "1" if given[event] else "2", event)
        else:  # with the mouse
            page.locator("#labels button").nth(0 if given[event] else 1).click()
            wait_for(page, "!isBusy && (!shown || shown.id !== known)", event)
    assert len(given) == 30
    expect(page.locator("#rest")).to_be_visible()
    answers = office.trainer.answers()
    assert {answer["id"]: answer["y"] for answer in answers} == given
    assert len(answers) == 30
    assert {answer["op"] for answer in answers} == {"set"}
    config, out = office.settings.log.dir.parent / "app.toml", office.settings.log.dir.parent / "labels.csv"
    assert main(["labels", str(config), "--out", str(out)]) == 0
    with open(out, newline="", encoding="utf-8") as file:
        exported = {row["id"]: row["y"] for row in csv.DictReader(file)}
    assert exported == {event: "fraud" if y else "genuine" for event, y in given.items()}
    own = f"http://127.0.0.1:{office.url.split(':')[2].split('/')[0]}/"
    assert all(url.startswith((own, "data:")) for url in visitor.requests)


def test_the_address_loses_its_token(office, visitor):
    page = visitor.open(office.url)
    expect(page.locator("#rest")).to_be_visible()
    assert "token" not in page.url
    page.reload()
    expect(page.locator("#rest-title")).to_contain_text("Waiting")


PIXEL = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw==")


class Stranger(http.server.ThreadingHTTPServer):
    """Another server of this host, which an event's image names; it remembers what browsers tell it."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), StrangersHandler)
        self.heard = []  # path and headers of each request
        self.url = f"http://127.0.0.1:{self.server_address[1]}"

    def requests(self, path):
        return [headers for asked, headers in self.heard if asked == path]


class StrangersHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.heard.append((self.path, dict(self.headers.items())))
        is_image = self.path.endswith(".gif")
        body = PIXEL if is_image else b"<!doctype html><title>elsewhere</title><link rel=icon href=data:,>"
        self.send_response(200)
        self.send_header("Content-Type", "image/gif" if is_image else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Set-Cookie", "strangers=1")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def stranger():
    with Stranger() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def test_an_image_elsewhere_learns_nothing_of_us(make_office, visitor, stranger):
    """Cookies do not tell ports apart: a server on this host would be sent those of the page."""
    office = make_office(f'labelling.image_hosts=["{stranger.url}"]')
    token = office.url.partition("token=")[2]
    for number in (1, 2):
        office.trainer.ask(number, event={"image": f"{stranger.url}/{number}.gif"})
    context = visitor.context()
    page = visitor.open(office.url, context)
    assert shown(page) == "e1"
    wait_for(page, "document.getElementById('image').naturalWidth === 1")
    elsewhere = visitor.open(f"{stranger.url}/page", context)  # it has a cookie of its own from now on
    assert [cookie["name"] for cookie in context.cookies()] == ["strangers"]
    elsewhere.close()
    press(page, "1", "e1")
    wait_for(page, "document.getElementById('image').naturalWidth === 1")
    page.evaluate(f"void window.open('{stranger.url}/popup')")
    until(lambda: stranger.requests("/popup"))
    page.goto(f"{stranger.url}/away")
    page.goto(office.url.partition("#")[0])
    assert shown(page) == "e2"  # the tab has its token still
    page.evaluate(f"location.href = '{stranger.url}/link'")
    until(lambda: stranger.requests("/link"))
    (first,), (second,) = stranger.requests("/1.gif"), stranger.requests("/2.gif")[:1]
    assert "Cookie" not in first
    assert "Cookie" not in second  # not even its own: an image is fetched without anybody's credentials
    assert all("Referer" not in headers for _, headers in stranger.heard)
    assert token not in json.dumps(stranger.heard)


def test_a_tab_without_a_token_is_given_that_of_another(office, visitor):
    office.trainer.ask(1)
    office.trainer.ask(2)
    context = visitor.context()
    bare = office.url.partition("#")[0]
    first = visitor.open(office.url, context)
    event = shown(first)
    second = visitor.open(bare, context)
    assert shown(second) not in ("", event)
    first.reload()
    assert shown(first) == event
    alone = visitor.open(bare)  # another browser
    expect(alone.locator(TROUBLE)).to_contain_text("open the address that streamsvm label printed")
    alone.goto(office.url)  # which changes nothing but the fragment
    expect(alone.locator("#banner")).to_be_hidden()
    forgive(visitor, "403 (Forbidden)")


def test_the_way_in_by_a_file(office, visitor):
    office.trainer.ask(1)
    page = visitor.open(office.page.door())
    page.wait_for_url(office.url.partition("#")[0])
    assert shown(page) == "e1"


def test_undo(office, visitor):
    office.trainer.ask(1)
    office.trainer.ask(2)
    page = visitor.open(office.url)
    assert shown(page) == "e1"
    expect(page.locator("#undo")).to_have_attribute("aria-disabled", "true")
    press(page, "1", "e1")
    assert shown(page) == "e2"
    page.get_by_role("button", name="Undo: fraud").click()
    expect(page.locator(IDENT)).to_have_text("event e1")
    expect(page.locator(SAID)).to_have_text("Taken back: fraud for event e1. Here it is again.")
    press(page, "2", "e1")
    assert shown(page) == "e2"
    press(page, "1", "e2")
    page.keyboard.press("u")  # also where no question is left
    assert shown(page) == "e2"
    press(page, "2", "e2")
    assert [answer["op"] for answer in office.trainer.answers()] == ["set", "retract", "set", "set", "retract", "set"]
    assert office.trainer.labels() == {"e1": False, "e2": False}


def test_five_undos_in_a_row_across_labels_and_skips(office, visitor):
    for number in range(8):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    events = []
    for key in "12s1i2s":
        events.append(shown(page))
        press(page, key, events[-1])
    page.reload()
    taken = ["skipped", "genuine", "ignored", "fraud", "skipped"]
    for event, what in zip(events[:1:-1], taken, strict=True):
        before = shown(page)
        expect(page.locator("#undo")).to_have_attribute("aria-label", f"Undo: {what} (key U)")
        press(page, "u", before)
        expect(page.locator(SAID)).to_have_text(f"Taken back: {what} for event {event}. Here it is again.")
        assert shown(page) == event
    assert office.trainer.labels() == {events[0]: True, events[1]: False}
    for event in events[2:]:
        press(page, "1", event)
    assert office.trainer.labels() == {event: event != events[1] for event in events}


def test_an_undo_whose_reply_is_lost_undoes_one_answer(office, visitor):
    for number in range(3):
        office.trainer.ask(number)
    lost = []

    def lose(route):
        lost.append(route.request.post_data_json)
        if len(lost) == 1:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page = visitor.open(office.url, handlers={"**/api/undo": lose})
    for _ in range(2):
        press(page, "1", shown(page))
    page.keyboard.press("u")
    expect(page.locator(IDENT)).to_have_text("event e1")
    assert len(lost) == 2
    assert lost[0] == lost[1]
    assert office.trainer.labels() == {"e0": True}
    forgive(visitor, "net::ERR_FAILED")


def test_a_correction_from_the_history(office, visitor):
    for number in range(30):
        office.trainer.ask(number, event={"text": f"letter {number}"})
    page = visitor.open(office.url)
    given = {}
    for number in range(25):
        event = shown(page)
        given[event] = number % 3 == 0
        press(page, "1" if given[event] else "2", event)
    current = shown(page)
    page.reload()
    assert shown(page) == current
    page.keyboard.press("h")
    items = page.locator("#history-list li")
    expect(items).to_have_count(20)
    expect(items.first).to_contain_text("event e24letter 24")
    page.keyboard.press("1")  # answers nothing
    page.get_by_role("button", name="Show older answers").click()
    expect(items).to_have_count(25)
    expect(page.locator("#history-more")).to_be_hidden()
    items.filter(has_text="event e3letter").get_by_role("button").click()
    expect(page.locator("#reviewed-text")).to_contain_text("The answer is fraud, ")
    expect(page.locator("#text")).to_have_text("letter 3")
    press(page, "2", "e3")
    expect(page.locator(SAID)).to_have_text("Corrected: event e3 is now genuine.")
    assert shown(page) == current
    given["e3"] = False
    assert office.trainer.labels() == given
    page.keyboard.press("h")
    expect(items.first).to_contain_text("event e3letter 3")
    items.nth(1).get_by_role("button").click()
    expect(page.locator(IDENT)).to_have_text("event e24")
    page.keyboard.press("Escape")
    expect(page.locator("#reviewed")).to_be_hidden()
    assert shown(page) == current
    page.keyboard.press("u")
    expect(page.locator(SAID)).to_have_text("Undone: the answer for event e3 is again what it was before “genuine”.")
    assert office.trainer.labels() == given | {"e3": True}


def test_a_label_is_corrected_to_a_skip(office, visitor):
    office.trainer.ask(1)
    page = visitor.open(office.url)
    press(page, "1", shown(page))
    page.get_by_role("button", name="Earlier answers").click()
    page.locator("#history-list button").click()
    expect(page.locator("#reviewed")).to_be_visible()
    page.get_by_role("button", name="Skip, cannot tell").click()
    expect(page.locator(SAID)).to_have_text("Corrected: event e1 is now skipped.")
    assert office.trainer.labels() == {}
    assert [answer["op"] for answer in office.trainer.answers()] == ["set", "retract", "skip"]
    page.locator("#rest-earlier").click()
    expect(page.locator("#history-list .given")).to_have_text("skipped")


def test_two_annotators_who_disagree(office, visitor):
    for number in range(2):
        office.trainer.ask(number)
    zoe, bob = arrive(visitor, office, "Zoë"), arrive(visitor, office, "Bob")
    event = shown(zoe)
    press(zoe, "1", event)
    shown(bob)
    bob.keyboard.press("h")
    expect(bob.locator("#history-empty")).to_be_visible()
    bob.get_by_label("Whose answers").select_option("all")
    expect(bob.locator("#history-list li")).to_contain_text("Zoë")
    bob.locator("#history-list button").click()
    expect(bob.locator("#reviewed-text")).to_contain_text("The answer is fraud, by Zoë")
    press(bob, "2", event)
    assert office.trainer.labels() == {event: False}
    sources = [answer["source"].partition("#")[0] for answer in office.trainer.answers()]
    assert sources == ["page:Zoë", "page:Bob"]
    zoe.keyboard.press("u")
    expect(zoe.locator(SAID)).to_have_text(f"Not undone: another annotator has changed the answer for event {event}.")
    wait_for(zoe, "!isBusy")  # it looks for the next question, and a click would go by
    zoe.keyboard.press("h")
    zoe.locator("#history-list button").click()
    expect(zoe.locator("#reviewed-text")).to_contain_text("The answer is genuine, by Bob")
    expect(zoe.locator("#reviewed-text")).to_contain_text("Before: fraud by Zoë.")
    press(zoe, "1", event)
    assert office.trainer.labels() == {event: True}


def test_the_guess_can_be_hidden_until_the_answer(office, visitor):
    speaking = [{"id": "e17", "label": "genuine", "share": 0.05}, {"id": 4, "label": "genuine", "share": 0.04}]
    for number in range(2):
        office.trainer.ask(number, speaking=speaking)
    page = visitor.open(office.url)
    expect(page.locator("#guess")).to_be_visible()
    expect(page.locator("#speaking")).to_have_text(
        "These answers speak most for the model’s guess: e17 (genuine), 4 (genuine)."
    )
    page.get_by_label("Hide the model’s guess").check()
    expect(page.locator("#guess")).to_be_hidden()
    expect(page.locator("#speaking")).to_be_hidden()
    page.reload()
    event = shown(page)
    expect(page.locator("#guess")).to_be_hidden()
    press(page, "1", event)
    expect(page.locator(SAID)).to_have_text(
        f"Saved: fraud for event {event}. The model’s guess was: genuine, 63 % sure."
    )


def test_skip_and_ignore(office, visitor):
    for number in range(3):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    first = shown(page)
    press(page, "s", first)
    expect(page.locator(SAID)).to_have_text(f"Skipped: event {first}.")
    second = shown(page)
    press(page, "i", second)
    third = shown(page)
    page.reload()
    assert shown(page) == third
    assert [(answer["id"], answer["op"]) for answer in office.trainer.answers()] == [
        (first, "skip"),
        (second, "ignore"),
    ]


def test_a_reload_shows_the_same_question(office, visitor):
    for number in range(5):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    press(page, "1", shown(page))
    event = shown(page)
    page.reload()
    assert shown(page) == event


def test_two_tabs_share_the_work(office, visitor):
    for number in range(10):
        office.trainer.ask(number)
    context = visitor.context()
    tabs = [visitor.open(office.url, context) for _ in range(2)]
    name(tabs[0], "Zoë 12")  # whose digits are no answers
    for _ in range(5):
        events = [shown(tab) for tab in tabs]
        assert events[0] != events[1]
        for tab, event in zip(tabs, events, strict=True):
            press(tab, "1", event)
    answers = office.trainer.answers()
    assert sorted(answer["id"] for answer in answers) == sorted(f"e{number}" for number in range(10))
    sources = {answer["source"] for answer in answers}
    assert len(sources) == 2
    assert sum(source.startswith("page:Zoë 12#") for source in sources) == 1


def test_who_goes_away_loses_the_question(make_office, visitor):
    office = make_office("labelling.lease_seconds=1.0")
    now = time.time()
    office.service._clock = lambda: now
    office.trainer.ask(1)
    context = visitor.context()
    context.clock.install()
    first = visitor.open(office.url, context)
    assert shown(first) == "e1"
    second = visitor.open(office.url)
    expect(second.locator("#rest-text")).to_contain_text("Other annotators have")
    for _ in range(2):
        now += 0.8  # together longer than the lease, but it is prolonged
        for _ in range(2):  # the first one may have been served before
            first.wait_for_event("response", lambda response: "/api/next" in response.url)
    expect(second.locator("#rest-text")).to_contain_text("Other annotators have")
    context.clock.fast_forward(61_000)
    office.service._clock = time.time
    assert shown(second) == "e1"
    press(second, "2", "e1")
    first.mouse.move(50, 50)
    expect(first.locator("#rest")).to_be_visible()
    assert office.trainer.labels() == {"e1": False}


def test_a_duplicated_tab_gets_a_question_of_its_own(office, visitor):
    for number in range(2):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    event = shown(page)
    with page.expect_popup() as popup:
        page.evaluate("window.open('/')")  # which copies what the tab remembers
    popup.value.wait_for_load_state()
    wait_for(popup.value, "!isBusy && shown && shown.id !== known", event)
    assert shown(page) == event


def test_a_lost_reply_is_asked_for_again(office, visitor):
    for number in range(2):
        office.trainer.ask(number)
    lost, is_down = [], True

    def lose(route):
        lost.append(route.request.post_data_json)
        if is_down or len(lost) <= 2:
            route.fetch()
            route.abort()
        else:
            route.continue_()

    page = visitor.open(office.url, handlers={"**/api/answer": lose})
    first = shown(page)
    page.keyboard.press("1")
    expect(page.locator(TROUBLE)).to_contain_text("Your answer is kept in this browser")
    for key in "2siu":  # what is on its way is on its way
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Try now")).to_be_visible()
    is_down = False
    try_now(page)
    expect(page.locator(IDENT)).not_to_have_text(f"event {first}")
    expect(page.locator("#banner")).to_be_hidden()
    assert len(lost) > 2
    assert lost == [{"query_id": first.replace("e", "q"), "label": "fraud"}] * len(lost)
    assert office.trainer.labels() == {first: True}
    assert len(office.trainer.answers()) == 1
    assert page.evaluate("kept()") == []
    forgive(visitor, "net::ERR_FAILED")


def forgive(visitor, *texts):
    """What the browser may complain of when a server is gone."""
    left = [text for text in visitor.complaints if not any(known in text for known in texts)]
    assert left == []
    visitor.complaints.clear()


def test_the_server_is_killed_between_answer_and_reply(visitor, tmp_path, request, nursery):
    """Before the answer is durable, then after: it counts once, and the page goes on with the next server."""
    settings = configure(tmp_path)
    trainer = Trainer(settings)
    request.addfinalizer(trainer.close)
    for number in range(3):
        trainer.ask(number)
    port = free_port()

    def serve(death):
        output = tmp_path / death
        server = nursery.start(SERVER, tmp_path, port, death, output=output)
        request.addfinalizer(server.kill)
        return server, until(lambda: output.read_text().strip(), 60)

    server, url = serve("before")
    page = visitor.open(url)
    first = shown(page)
    page.keyboard.press("1")
    assert exit_code(server, 60) == 9
    expect(page.locator(TROUBLE)).to_contain_text("The server does not answer. Your answer is kept in this browser")
    assert trainer.labels() == {}
    server, _ = serve("after")
    assert exit_code(server, 60) == 9  # of the answer that was sent again
    assert trainer.labels() == {first: True}
    expect(page.locator("#banner")).to_be_visible()
    serve("never")
    try_now(page)
    expect(page.locator("#banner")).to_be_hidden()
    second = shown(page)
    assert second != first
    press(page, "2", second)
    page.close()
    assert [(answer["id"], answer["y"]) for answer in trainer.answers()] == [(first, True), (second, False)]
    forgive(visitor, "net::ERR_")


def test_an_answer_outlives_its_page(office, visitor):
    """The server is away, the tab is closed, the server comes back with another token: the answer was kept."""
    office.trainer.ask(1)
    context = visitor.context()
    page = visitor.open(office.url, context)
    event = shown(page)
    office.page.close()
    page.keyboard.press("1")
    expect(page.locator(TROUBLE)).to_contain_text("Your answer is kept in this browser")
    page.close()
    assert office.trainer.answers() == []
    (office.settings.daemon.state_dir / "page-key").unlink()
    port = int(office.url.split(":")[2].split("/")[0])
    again = configure(office.settings.log.dir.parent, f"labelling.port={port}")
    with LabellingPage(office.service, again) as new:
        assert new.url != office.url
        page = visitor.open(new.url, context)
        expect(page.locator(SAID)).to_contain_text("is saved now")
        assert office.trainer.labels() == {event: True}
        page.close()
    forgive(visitor, "net::ERR_")


def test_a_page_with_an_old_token_says_so(office, visitor):
    office.trainer.ask(1)
    page = visitor.open(office.url)
    shown(page)
    office.page.token = "another"  # noqa: S105
    page.keyboard.press("1")
    expect(page.locator(TROUBLE)).to_contain_text("streamsvm label printed. Your answer is kept in this browser")
    office.page.token = office.url.partition("token=")[2]
    expect(page.locator("#rest")).to_be_visible()
    assert office.trainer.labels() == {"e1": True}
    forgive(visitor, "403 (Forbidden)")


def test_a_question_that_is_withdrawn_makes_room(office, visitor):
    for number in range(2):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    assert shown(page) == "e0"
    office.trainer.withdraw(0)
    expect(page.locator(IDENT)).to_have_text("event e1")
    expect(page.locator(SAID)).to_contain_text("no longer needed. Here is another one")


def test_a_key_that_comes_too_late_does_not_answer_another_question(office, visitor):
    for number in range(2):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    assert shown(page) == "e0"
    page.evaluate(
        """new MutationObserver(() => {
          if (document.getElementById("ident").textContent === "event e1")
            document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "1", bubbles: true }));
        }).observe(document.getElementById("ident"), { childList: true })"""
    )
    office.trainer.withdraw(0)
    expect(page.locator(IDENT)).to_have_text("event e1")
    page.wait_for_timeout(100)
    assert office.trainer.answers() == []


def test_what_it_says_when_there_is_nothing_to_ask(office, visitor):
    page = visitor.open(office.url)
    title = page.locator("#rest-title")
    expect(title).to_have_text("Waiting for the next question")
    trap = "59 answers in a row lay outside the margin, and an audit agreed; a cluster nobody saw may be missed"
    office.trainer.status(verdict={"stop": True, "audit": True, "why": trap}, labels=70, answered=70, remaining=30)
    expect(title).to_have_text("No more questions")
    expect(page.locator("#rest-note")).to_have_text(f"For the person in charge: {trap}.")
    expect(page.locator("#quota")).to_have_text("· 30 to go")
    spent = {"stop": True, "audit": False, "why": "70 of 70 labels"}
    office.trainer.status(verdict=spent, labels=70, positive=1, negative=69, answered=70, remaining=0)
    expect(title).to_have_text("All planned answers are given")
    expect(page.locator("#verdict")).to_contain_text("Whether the model is good enough is not known.")
    assert page.locator("#verdict").get_attribute("class").strip() == "verdict"  # no green
    office.trainer.ask(5)
    assert shown(page) == "e5"


def test_before_any_trainer(tmp_path, visitor, request):
    from streamsvm.connectors.labelling.service import LabellingService

    settings = configure(tmp_path)
    with LabellingService(settings) as service, LabellingPage(service, settings) as desk:
        page = visitor.open(desk.url)
        expect(page.locator("#rest-title")).to_have_text("No questions yet")
        trainer = Trainer(settings)
        request.addfinalizer(trainer.close)
        trainer.ask(1)
        assert shown(page) == "e1"
        page.close()


def test_progress(office, visitor):
    curve = [[n, n // 2, 0.7 + n / 100, None if n < 4 else 0.5] for n in range(1, 20)]
    office.trainer.status(labels=19, positive=4, negative=15, answered=19, curve=curve)
    page = visitor.open(office.url)
    expect(page.locator("#n-pos")).to_have_text("fraud: 4 (21 %)")
    expect(page.locator("#n-neg")).to_have_text("genuine: 15 (79 %)")
    expect(page.locator("#efficiency svg")).to_have_attribute(
        "aria-label", "The model guesses right: on events picked at random 89 %, on events that it found hard 50 %"
    )
    expect(page.locator("#efficiency path")).to_have_count(2)
    expect(page.locator("#quota")).to_have_text("")
    expect(page.locator("#quota-bar")).to_be_hidden()
    expect(page.locator("#verdict-title")).to_have_text("Not yet")
    zoe = {"name": "page:Zoë", "n_labels": 12, "n_positive": 3, "n_skipped": 1, "n_changed": 0}
    zoe |= {"agreement": 0.75, "per_hour": 240.4}
    missed = {"at_most": 12, "n_audited": 900, "n_found": 2, "n_unlabelled": 4300}
    auditing = {"stop": False, "audit": True, "why": "it audits", "spent": False}
    office.trainer.status(labels=19, positive=4, negative=15, annotators=[zoe], missed=missed, verdict=auditing)
    expect(page.locator("#notes li")).to_have_text(["Zoë: 12 answers, 240 an hour, 75 % as the others.", "It audits."])
    expect(page.locator("#verdict-title")).to_have_text("◎ Final check")
    expect(page.locator("#verdict-text")).to_contain_text("Among the 4,300 events without an answer")
    expect(page.locator("#verdict-text")).to_contain_text("overlooks at most 12 of “fraud” (with 95 % certainty")
    office.trainer.status(labels=19, positive=4, negative=15)
    expect(page.locator("#notes")).to_have_text("7 of the 59 answers in a row that it takes.")
    office.trainer.ask(1)
    shown(page)
    words = page.locator("body").inner_text().lower()
    assert not [word for word in ("support vector", "budget", "margin", "trainer", "feature") if word in words]


def test_json_of_the_page_is_what_the_browser_reads(office, visitor):
    """Nothing in a record can leave its place: not markup, not an address, not a name."""
    evil = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>"
    image = "javascript:window.hacked=1"
    office.trainer.ask(
        1, id=evil, x={evil: 1.5, "__proto__": 2.0}, unusual={evil: -4.0}, reason=evil,
        event={"text": evil, "image": image, "series": [1, "2"]},
    )  # fmt: skip
    page = visitor.open(office.url)
    expect(page.locator(IDENT)).to_have_text("event " + evil)
    expect(page.locator("#text")).to_have_text(evil)
    expect(page.locator("#reason")).to_have_text(evil)
    expect(page.locator("#features th").first).to_have_text(evil)
    expect(page.locator("#features .badge")).to_have_text("▼ unusually low")
    expect(page.locator("#no-image")).to_contain_text("There is no such image: " + image)
    expect(page.locator("#no-image a")).to_have_count(0)
    expect(page.locator("#series-block")).to_be_hidden()
    assert page.evaluate("window.hacked") is None
    assert json.loads(page.evaluate("JSON.stringify(Object.keys(shown.x))")) == [evil, "__proto__"]
