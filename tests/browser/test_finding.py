"""People find events and label them: by keyboard in the list, and one of them on the page."""

import json

from asked import until
from playwright.sync_api import expect

from streamsvm.connectors.logs.embedded import LocalLog

from .conftest import press, shown, wait_for

TYPE = "(key) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }))"
TEXTS = ("win a prize now", "see you at noon", "a prize for you", "noon", "free prize")


def put(office):
    with LocalLog(office.settings.log.dir) as log:
        for number, text in enumerate(TEXTS):
            event = {"id": f"e{number}", "x": {"amount": float(number)}, "text": text}
            log.produce("events", json.dumps(event).encode(), partition=0)
    until(lambda: office.service.find("", None, 20).page.n_found == len(TEXTS))


def rows(page):
    return page.locator("#finding-list b").all_text_contents()


def test_find_and_label_by_keyboard(office, visitor):
    put(office)
    office.trainer.ask(9)
    page = visitor.open(office.url)
    assert shown(page) == "e9"
    page.keyboard.press("/")
    page.keyboard.type("prize amount > 1")
    page.keyboard.press("Enter")
    expect(page.locator("#finding-said")).to_have_text("2 of 5 events.")
    assert rows(page) == ["event e4", "event e2"]
    page.keyboard.press("1")  # the first row has the focus, and leaves it to the next one
    expect(page.locator("#finding-list li .given").first).to_have_text("fraud")
    page.keyboard.press("2")
    expect(page.locator("#finding-list li").nth(1)).to_contain_text("genuine")
    assert office.trainer.labels() == {"e4": True, "e2": False}
    page.keyboard.press("1")  # a correction
    expect(page.locator("#finding-list li").nth(1)).to_contain_text("fraud")
    page.keyboard.press("=")
    expect(page.locator("#finding-said")).to_have_text("The events that are most like event e2.")
    assert set(rows(page)) == {"event e0", "event e1", "event e4"}  # they share a word
    page.keyboard.press("/")
    page.keyboard.type("amout > 1")
    page.keyboard.press("Enter")
    expect(page.locator("#finding-said")).to_have_text("No event has a value 'amout'; there are text, amount.")
    assert len(visitor.complaints) == 1
    assert "400" in visitor.complaints.pop()
    page.evaluate(f"$('finding').close(); ({TYPE})('1')")  # at once, while the box of the closed list has the focus
    wait_for(page, "!isBusy && !shown")
    assert office.trainer.labels() == {"e4": True, "e2": True, "e9": True}


def test_an_event_of_the_list_that_is_left_before_it_has_come_is_not_shown(office, visitor):
    put(office)
    office.trainer.ask(9)
    page = visitor.open(office.url, handlers={"**/api/review?*": lambda route: None})  # no reply ever comes
    assert shown(page) == "e9"
    page.keyboard.press("/")
    page.keyboard.type("free")
    page.keyboard.press("Enter")
    expect(page.locator("#finding-list button")).to_be_focused()
    # A key before the browser draws again, while the row of the closed list has the focus: it answers neither event.
    page.evaluate(f"async () => {{ document.activeElement.click(); await null; await null; ({TYPE})('1'); }}")
    page.keyboard.press("Escape")
    press(page, "2", "e9")
    expect(page.locator("#rest")).to_be_visible()
    assert office.trainer.labels() == {"e9": False}


def test_a_search_waits_until_all_events_are_read(office, visitor, monkeypatch):
    put(office)
    page = visitor.open(office.url)
    wait_for(page, "!isBusy")
    finder = office.service._finder
    monkeypatch.setattr(finder._loaded, "set", lambda: None)
    finder._loaded.clear()  # as after the start; its thread sets it when it has read on
    page.keyboard.press("/")
    page.keyboard.type("free")
    page.keyboard.press("Enter")
    expect(page.locator("#finding-said")).to_have_text("Reading the events: 5 so far.")
    assert rows(page) == []
    monkeypatch.undo()
    expect(page.locator("#finding-said")).to_have_text("1 of 5 events.")
    assert rows(page) == ["event e4"]
    page.keyboard.press("1")
    expect(page.locator("#finding-list li .given")).to_have_text("fraud")
    page.keyboard.press("Escape")
    page.keyboard.press("/")  # what was answered before is shown with the list
    page.keyboard.press("Enter")
    expect(page.locator("#finding-list li .given")).to_have_text("fraud")


def test_a_found_event_is_seen_and_labelled_on_the_page(office, visitor):
    put(office)
    page = visitor.open(office.url)
    wait_for(page, "!isBusy")
    page.get_by_role("button", name="Find events").click()
    expect(page.get_by_text("Find those like the event on the page")).to_be_hidden()  # there is none
    page.get_by_label("Words and values").fill("free")
    page.get_by_role("button", name="Find", exact=True).click()
    page.locator("#finding-list button").click()
    expect(page.locator("#text")).to_have_text("free prize")
    expect(page.locator("#reason")).to_have_text("Found")
    page.keyboard.press("s")  # leaves it, since the model did not ask
    expect(page.locator("#rest")).to_be_visible()
    assert office.trainer.answers() == []
    wait_for(page, "!isBusy")
    page.keyboard.press("/")
    page.locator("#finding-list button").click()
    assert shown(page) == "e4"
    page.get_by_role("button", name="Find events").click()
    page.get_by_text("Find those like the event on the page").click()
    expect(page.locator("#finding-said")).to_have_text("The events that are most like event e4.")
    page.keyboard.press("Escape")
    wait_for(page, "!isBusy")
    page.keyboard.press("1")
    expect(page.locator("#said")).to_have_text("Saved: fraud for event e4.")
    assert office.trainer.labels() == {"e4": True}
    wait_for(page, "!isBusy && undoable")
    page.keyboard.press("u")
    assert shown(page) == "e4"
    assert office.trainer.labels() == {}
