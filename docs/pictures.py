"""Makes the pictures of the labelling page: a trainer, ten digits and a headless Chromium.

    .venv/bin/python docs/pictures.py    # after `make test`, which installs Playwright; a minute

A program answers the first questions by the keyboard, as a person would.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from streamsvm.connectors.commands.demos import digits
from streamsvm.connectors.logs.embedded import LocalLog

DOCS = Path(__file__).parent
DESK, PHONE = {"width": 1120, "height": 940}, {"width": 390, "height": 800}
ANSWERS = 60
LABELLING = '''open = 3  # one for each page
max_labels = 250
instructions = """
**Which digit is this?**

- A seven may have a bar.
- Doubtful? Press `S`. More in [the handbook](https://example.org/handbook).
"""'''


def prepared(folder: Path) -> Path:
    """The demonstration's digits, each with a text; return the configuration's path."""
    config = folder / "digits.toml"
    config.write_text(re.sub(r"(?m)^instructions = .*", LABELLING, digits.CONFIG))
    with LocalLog(folder / "log") as log:
        for number, value in enumerate(digits.events(), 4000):
            text = f"Letter {number}, postcode, {1 + number % 5}. digit: https://example.org/letters/{number}"
            log.produce("digits", json.dumps(json.loads(value) | {"text": text}).encode())
        log.flush()
    return config


def answer(page: Page, known: dict[str, int]) -> None:
    """Answer the question that the page shows, and wait for the next one."""
    event = shown(page)
    page.keyboard.press(str(known[event]))
    page.locator("#ident", has_text=re.compile(f"^(?!event {event}$)event ")).locator("visible=true").wait_for()


def shown(page: Page) -> str:
    """The id of the event that the page asks about."""
    text = page.locator("#ident").locator("visible=true").text_content()
    return str(text).removeprefix("event ")


def take(browser: Browser, url: str) -> None:
    """Answer, and photograph the page."""
    page = browser.new_context(viewport=DESK).new_page()
    page.goto(url)
    page.get_by_label("Your name").fill("Zoë")
    page.keyboard.press("Enter")
    known = digits.truth()
    for number in range(ANSWERS):
        if number == ANSWERS - 3:
            page.keyboard.press("s")
            page.wait_for_timeout(1000)
        answer(page, known)
    page.wait_for_timeout(2000)  # until the model has learned
    page.screenshot(path=DOCS / "labelling.png")
    page.keyboard.press("h")
    page.locator("#history-list .given").nth(3).wait_for()
    page.screenshot(path=DOCS / "labelling-history.png")
    page.keyboard.press("Escape")
    disagree(browser, url)
    page.keyboard.press("#")
    page.locator("#classes-list li").nth(9).wait_for()
    page.screenshot(path=DOCS / "labelling-changes.png")
    page.keyboard.press("Escape")
    page.keyboard.press("q")
    page.locator("#disputes-list li").first.wait_for()
    page.screenshot(path=DOCS / "labelling-review.png")
    for name, options in (
        ("dark", {"viewport": DESK, "color_scheme": "dark"}),
        ("phone", {"viewport": PHONE, "device_scale_factor": 1.5, "is_mobile": True, "has_touch": True}),
    ):
        other = browser.new_context(**options).new_page()
        other.goto(url)
        shown(other)
        other.get_by_text("Instructions", exact=True).click()
        other.wait_for_timeout(500)
        other.screenshot(path=DOCS / f"labelling-{name}.png")


def disagree(browser: Browser, url: str) -> None:
    """Let another person correct two answers."""
    page = browser.new_context(viewport=DESK).new_page()
    page.goto(url)
    page.get_by_label("Your name").fill("Bob")
    page.keyboard.press("Enter")
    for place in (2, 5):
        shown(page)
        page.keyboard.press("h")
        page.get_by_label("Whose answers").select_option("all")
        page.locator("#history-list button").nth(place).click()
        page.locator("#reviewed").wait_for()
        page.keyboard.press("3")
        page.locator("#reviewed").wait_for(state="hidden")
    page.close()


def main() -> None:
    """Start the trainer and the page, take the pictures, and stop."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        config, streamsvm = prepared(Path(folder)), Path(sys.executable).with_name("streamsvm")
        command = [streamsvm, "label", config, "--train", "--no-browser"]
        server = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)  # noqa: S603
        assert server.stdout
        try:
            line = next(line for line in server.stdout if "http://" in line)
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            take(browser, line.split()[-1])
            browser.close()
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    main()
