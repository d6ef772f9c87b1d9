"""What the page shows of an event and of the instructions: images that grow, links, and nothing that runs."""

import base64

import pytest
from playwright.sync_api import expect

from .conftest import press, shown, wait_for
from .test_appearance import picture

GUIDE = """
# Fraud or not?

Read **all**. *Then* press `1`:

- see [the handbook](https://example.org/handbook)
- <img src=x onerror=alert(1)>
"""


def width(page):
    return page.locator("#image").bounding_box()["width"]


def test_an_image_grows_and_shrinks(office, visitor):
    for number in (1, 2):
        office.trainer.ask(number, event={"image": picture(), "text": "small"})
    page = visitor.open(office.url)
    shown(page)
    wait_for(page, "document.getElementById('image').clientWidth > 20")
    whole = width(page)
    smaller, larger = (page.get_by_role("button", name=name, exact=True) for name in ("Smaller", "Larger"))
    expect(smaller).to_have_attribute("aria-disabled", "true")
    larger.click()
    assert width(page) == pytest.approx(1.5 * whole)
    page.keyboard.press("z")
    assert width(page) == pytest.approx(whole)
    page.keyboard.press("z")
    expect(page.locator("#zoom")).to_have_text("300 %")
    page.locator("#image").click()
    expect(page.locator("#zoom")).to_have_text("100 %")
    for _ in range(6):
        larger.click()
    expect(page.locator("#zoom")).to_have_text("800 %")
    expect(larger).to_have_attribute("aria-disabled", "true")
    press(page, "1", "e1")
    assert shown(page) == "e2"
    expect(page.locator("#zoom")).to_have_text("100 %")
    order = page.evaluate("['image-block', 'text-block', 'table-block'].map((id) => $(id).offsetTop)")
    assert order == sorted(order)
    expect(page.locator("#features")).to_be_hidden()


def test_a_zoomed_image_is_dragged(office, visitor):
    office.trainer.ask(1, event={"image": picture(30)})
    page = visitor.open(office.url)
    shown(page)
    wait_for(page, "document.getElementById('image').clientWidth > 200")
    for _ in range(6):
        page.get_by_role("button", name="Larger", exact=True).click()
    frame = page.locator("#frame").bounding_box()
    x, y = frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2
    before = page.evaluate("$('frame').scrollTop")
    assert before > 0
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x, y + 30, steps=3)
    page.mouse.up()
    assert page.evaluate("$('frame').scrollTop") == before - 30
    expect(page.locator("#zoom")).to_have_text("800 %")  # this was no click


def test_addresses_in_a_text_are_links(office, visitor):
    text = 'See https://a.example/x?y=1, (http://b.example/c) or "https://d.example/(e)". javascript:alert(1) https://'
    office.trainer.ask(1, event={"text": text})
    page = visitor.open(office.url)
    expect(page.locator("#text")).to_have_text(text)
    links = page.locator("#text a")
    addresses = ["https://a.example/x?y=1", "http://b.example/c", "https://d.example/(e)"]
    expect(links).to_have_text(addresses)
    assert [link.get_attribute("href") for link in links.all()] == addresses
    for link in links.all():
        assert link.get_attribute("rel") == "noopener noreferrer"
        assert link.get_attribute("target") == "_blank"


def test_an_image_from_elsewhere_is_a_link_and_not_loaded(make_office, visitor):
    office = make_office('labelling.image_hosts=["images.example.org"]')
    office.trainer.ask(1, event={"image": "http://127.0.0.1:9/a.png"})
    page = visitor.open(office.url)
    expect(page.locator("#no-image")).to_contain_text("its server is not on the list of image hosts")
    expect(page.locator("#no-image a")).to_have_attribute("href", "http://127.0.0.1:9/a.png")
    assert "http://127.0.0.1:9/a.png" not in visitor.requests
    page.evaluate("$('image').src = 'http://127.0.0.1:9/b.png'")  # the policy also forbids it
    expect(page.locator("#no-image")).to_contain_text("cannot be shown")
    assert any("Content Security Policy" in text for text in visitor.complaints)
    visitor.complaints.clear()


def test_an_image_is_a_file_of_a_folder(make_office, visitor, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(base64.b64decode(picture().partition(",")[2]))
    office = make_office("labelling.image_folder=photos")
    office.trainer.ask(1, event={"image": "a.png"})
    page = visitor.open(office.url)
    wait_for(page, "$('image').naturalWidth > 0 && $('image').src.startsWith('blob:')")
    press(page, "1", "e1")
    office.trainer.ask(2, event={"image": "b.png"})
    expect(page.locator("#no-image")).to_have_text("There is no such image: b.png")
    wait_for(page, "!isBusy")
    page.keyboard.press("h")
    wait_for(page, "document.querySelector('#history-list .thumbnail')?.naturalWidth > 0")


def test_instructions_stay_closed_until_they_change(make_office, visitor):
    office = make_office(f"labelling.instructions={GUIDE}")
    office.trainer.ask(1)
    context = visitor.context()
    page = visitor.open(office.url, context)
    guide = page.locator("#guide-text")
    expect(guide.get_by_role("heading")).to_have_text("Fraud or not?")
    expect(guide.locator("strong")).to_have_text("all")
    expect(guide.locator("em")).to_have_text("Then")
    expect(guide.locator("code")).to_have_text("1")
    expect(guide.get_by_role("link")).to_have_attribute("rel", "noopener noreferrer")
    expect(guide.locator("li").nth(1)).to_have_text("<img src=x onerror=alert(1)>")
    expect(guide.locator("img")).to_have_count(0)
    page.locator("#guide summary").click()
    expect(guide).to_be_hidden()
    page.reload()
    shown(page)
    expect(guide).to_be_hidden()
    page.evaluate("showGuide([['p', ['Other ones']]])")
    expect(guide).to_have_text("Other ones")
    expect(guide).to_be_visible()


def test_without_instructions_there_is_no_place_for_them(office, visitor):
    office.trainer.ask(1)
    page = visitor.open(office.url)
    shown(page)
    expect(page.locator("#guide")).to_be_hidden()


def test_other_fields_of_an_event_are_shown(office, visitor):
    """Those of `streamsvm produce --show`."""
    office.trainer.ask(1, event={"text": "small", "from": "<b>ann</b>", "hours": 3, "tags": ["a"]})
    office.trainer.ask(2, event={"text": "small"})
    page = visitor.open(office.url)
    shown(page)
    assert page.locator("#fields dt").all_inner_texts() == ["from", "hours"]
    assert page.locator("#fields dd").all_inner_texts() == ["<b>ann</b>", "3"]
    press(page, "1", "e1")
    assert shown(page) == "e2"
    expect(page.locator("#fields-block")).to_be_hidden()
