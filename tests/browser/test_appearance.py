"""What people see, and how they get at it: by eye, by keyboard, by a screen reader, on a phone."""

import base64
import re
import struct
import zlib

import pytest
from playwright.sync_api import expect

from .conftest import shown, wait_for

CONTROLS = "button, input, a, summary, [tabindex]"

# Texts whose contrast with what lies behind them is too small (WCAG 2.2, 1.4.3 AA), as [text, ratio].
PALE = """() => {
  const channel = (v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => .2126 * channel(r) + .7152 * channel(g) + .0722 * channel(b);
  const behind = (node) => {
    for (; node; node = node.parentElement) {
      const color = parse(getComputedStyle(node).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const pale = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text; (text = walker.nextNode());) {
    const node = text.parentElement, style = getComputedStyle(node);
    if (!text.data.trim() || node.closest("script, style") || !node.checkVisibility()) continue;
    const ink = node.closest("svg") ? style.fill : style.color;
    const [a, b] = [light(parse(ink)), light(behind(node))].sort((x, y) => y - x);
    const ratio = (a + .05) / (b + .05);
    if (ratio < 4.5) pale.push([text.data, ratio]);
  }
  return pale;
}"""


def picture(side=1):
    """A red square as a PNG."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(side * (b"\0" + side * b"\xff\0\0"))), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)
    return "data:image/png;base64," + base64.b64encode(png).decode()


def ask_everything(office, **fields):
    """A question that has one of everything."""
    x = {f"feature {i}": i / 7 for i in range(30)} | {"amount": 412.0}
    event = {"text": "Paid online.\nThe address is new.", "image": picture(), "series": [3, 1, 4, 1, 5, 9, 2.5]}
    office.trainer.ask(1, **({"x": x, "unusual": {"amount": 7.14, "feature 3": -3.2}, "event": event} | fields))
    office.trainer.status(
        labels=20, positive=4, negative=16, remaining=7,
        curve=[[n, n // 2, 0.8, 0.6] for n in range(20)], verdict={"stop": False, "audit": True, "why": "an audit"},
    )  # fmt: skip


def test_a_record(office, visitor):
    ask_everything(office)
    page = visitor.open(office.url)
    expect(page.locator("#reason")).to_have_text("The model is unsure")
    expect(page.locator("#opinion")).to_have_text("genuine, 63 % sure")
    expect(page.locator("#text")).to_have_text("Paid online. The address is new.")
    wait_for(page, "document.getElementById('image').naturalWidth === 1")
    expect(page.locator("#series svg")).to_have_attribute("aria-label", "Series of 7 values, from 1 to 9")
    rows = page.locator("#features tr")
    expect(rows.nth(0)).to_be_hidden()  # there is something better to look at
    page.get_by_text("Values (31)").click()
    expect(rows.locator("visible=true")).to_have_count(14)
    expect(rows.nth(0)).to_have_text("amount412▲ extremely high")
    expect(rows.nth(0).locator(".badge")).to_have_attribute("title", "7.1 standard deviations above the mean")
    expect(rows.nth(1)).to_have_text("feature 30.42857▼ unusually low")
    page.get_by_role("button", name="Show all 31 values").click()
    expect(rows).to_have_count(31)
    page.get_by_role("button", name="Show fewer values").click()
    expect(rows).to_have_count(14)


@pytest.mark.parametrize("event", [{}, {"text": 5, "image": None, "series": []}, {"series": {"a": 1}}])
def test_a_record_without_extras(event, office, visitor):
    office.trainer.ask(1, event=event, score=None)
    page = visitor.open(office.url)
    expect(page.locator("#opinion")).to_have_text("unsure, perhaps genuine")
    expect(page.locator("#features")).to_be_visible()
    for block in ("#text-block", "#image-block", "#series-block", "#odd-head", "#more"):
        expect(page.locator(block)).to_be_hidden()


@pytest.mark.parametrize(
    "series", [[1e308, -1e308, 0], [1.7e308, 1.7e308], [-1.7e308, 1.7e308], [5e-324, 0], [1e308], [0, 1e-320, 5e-324]]
)
def test_the_largest_and_smallest_numbers_are_drawn(series, office, visitor):
    office.trainer.ask(1, event={"series": series}, x={"a": 1e308, "b": -1e308}, margin=-1e308, unusual={"a": 1e308})
    page = visitor.open(office.url)
    shown(page)
    drawing = page.locator("#question").inner_html()
    assert "NaN" not in drawing
    assert "Infinity" not in drawing
    marks = page.locator("#series path, #series circle")
    expect(marks).to_have_count(1)
    numbers = re.findall(r"[\d.]+", marks.get_attribute("d") or marks.get_attribute("cy"))
    assert all(0 <= float(number) <= 2000 for number in numbers)


@pytest.mark.parametrize(
    ("margin", "score", "words"),
    [(0.1, None, "unsure, perhaps fraud"), (-0.5, None, "rather genuine"), (1.5, None, "fraud, sure"),
     (0.5, 0.9, "fraud, 90 % sure"), (0.5, 0.2, "genuine, 80 % sure"),
     (0.0, 0.5, "undecided"), (0.01, 0.504, "undecided")],
)  # fmt: skip
def test_the_guess_in_words(margin, score, words, office, visitor):
    office.trainer.ask(1, margin=margin, score=score)
    expect(visitor.open(office.url).locator("#opinion")).to_have_text(words)


def test_an_image_that_cannot_be_had(make_office, visitor):
    office = make_office('labelling.image_hosts=["http://127.0.0.1:9"]')
    office.trainer.ask(1, event={"image": "http://127.0.0.1:9/none.png"})
    page = visitor.open(office.url)
    expect(page.locator("#no-image")).to_have_text("This image cannot be shown: http://127.0.0.1:9/none.png")
    visitor.complaints.clear()  # of the browser, about the image


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(scheme, office, visitor):
    page = visitor.open(office.url, color_scheme=scheme)
    expect(page.locator("#rest-title")).to_contain_text("Waiting")
    assert page.evaluate(PALE) == []
    ask_everything(office)
    expect(page.locator("#question")).to_be_visible()
    assert page.evaluate(PALE) == []
    rare = "trouble('The server does not answer.'); busy(true); say('Saved'); $('verdict').className = 'verdict stop';"
    rare += " for (const part of document.querySelectorAll('details')) part.open = true; $('reviewed').hidden = false"
    assert page.evaluate(f"() => {{ {rare}; return ({PALE})(); }}") == []


def test_the_contrast_check_finds_something(office, visitor):
    page = visitor.open(office.url)
    expect(page.locator("#rest-title")).to_contain_text("Waiting")
    page.evaluate("$('rest-text').style.color = '#bbb'")
    assert len(page.evaluate(PALE)) == 1


def test_every_control_has_a_name_and_is_reached_in_order(office, visitor):
    ask_everything(office)
    page = visitor.open(office.url)
    expect(page.locator("#question")).to_be_visible()
    page.keyboard.press("1")
    expect(page.locator("#rest")).to_be_visible()
    page.keyboard.press("u")
    expect(page.get_by_role("button", name="fraud (key 1)")).to_be_visible()
    keys = (
        "1 fraud, 2 genuine, S skip (cannot tell), I ignore (useless event), U undo, H earlier answers, / find, "
        "= more like this, Z zoom"
    )
    names = [
        ("button", "Find events (key /)"),
        ("textbox", "Your name"),
        ("region", "Image of the event"),
        ("button", "Smaller"),
        ("button", "Larger"),
        ("button", "Zoom in or out (key Z)"),
        ("region", "Text of the event"),
        (None, "Values (31)"),
        ("button", "fraud (key 1)"),
        ("button", "genuine (key 2)"),
        ("button", "Skip, cannot tell (key S)"),
        ("button", "Ignore, useless event (key I)"),
        ("button", "Undo (key U), nothing to undo"),
        ("button", "Earlier answers (key H)"),
        (None, "How often the model guesses right"),
        (None, "All events and answers"),
        (None, "For the person in charge"),
        ("checkbox", "Hide the model’s guess until I have answered"),
        ("checkbox", f"Keys on: {keys}"),
    ]
    visible = page.locator(CONTROLS).locator("visible=true")
    expect(visible).to_have_count(len(names))
    page.evaluate("document.activeElement.blur()")
    for role, name in names:
        page.keyboard.press("Tab")
        control = page.get_by_role(role, name=name, exact=True) if role else page.locator("summary", has_text=name)
        expect(control).to_be_focused()
        assert control.evaluate("(node) => getComputedStyle(node).outlineWidth") == "3px"


def test_a_screen_reader_hears_what_happens(office, visitor):
    ask_everything(office)
    page = visitor.open(office.url)
    expect(page.locator("#question")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("")
    for image in page.get_by_role("img").all():  # before the question gives way to the next, or to none
        assert image.get_attribute("aria-label") or image.get_attribute("alt")
    page.get_by_role("button", name="fraud (key 1)").click()
    expect(page.get_by_role("status")).to_have_text("Saved: fraud for event e1.")
    expect(page.locator("#banner")).to_have_attribute("role", "alert")
    assert page.locator("html").get_attribute("lang") == "en"


def test_keys_can_be_turned_off(office, visitor):
    for number in (1, 2):
        office.trainer.ask(number)
    page = visitor.open(office.url)
    expect(page.locator("#question")).to_be_visible()
    page.get_by_label("Keys on").uncheck()
    page.keyboard.press("1")
    page.reload()
    assert shown(page) == "e1"
    page.keyboard.press("2")
    page.get_by_label("Keys on").check()
    page.keyboard.press("Control+2")
    page.keyboard.press("9")
    page.keyboard.press("2")
    expect(page.locator("#ident")).to_have_text("event e2")
    assert office.trainer.labels() == {"e1": False}


def test_a_phone(office, visitor):
    long = "a_name_without_any_place_to_break_it_" * 4
    ask_everything(office, id=long, x={long: 1.23456e-7, "b": -1234567.0}, unusual={long: 4.0, "b": -3.0})
    page = visitor.open(
        office.url, viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True, device_scale_factor=2
    )
    expect(page.locator("#question")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for button in page.get_by_role("button").locator("visible=true").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["width"] >= 44
        expect(button).to_be_in_viewport()  # without scrolling
    page.get_by_role("button", name=re.compile("genuine")).tap()
    expect(page.locator("#rest")).to_be_visible()
    assert office.trainer.labels() == {long: False}
