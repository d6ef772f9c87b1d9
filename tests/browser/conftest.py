"""What the tests of the page share: a headless Chromium, a labelling service with its page, an obedient trainer."""

import contextlib
import os
import shutil

import pytest
from asked import Trainer, configure

from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.web.page import LabellingPage

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 120_000  # ms for anything to happen on the page of a busy machine

# Playwright's own wait_for_function compiles a text on the page, which the page's policy forbids.
WAIT = """([known, limit]) => new Promise((done, fail) => {
  const end = Date.now() + limit;
  const check = () => {
    if (CONDITION) done();
    else if (Date.now() > end) fail(new Error("not in time: CONDITION"));
    else setTimeout(check, 5);
  };
  check();
})"""


def wait_for(page, condition, known=None):
    """Wait until an expression of the page's script holds, which may look at `known`."""
    page.evaluate(WAIT.replace("CONDITION", condition), [known, PATIENCE])


def shown(page):
    """The id of the event that the page asks about."""
    wait_for(page, "!isBusy && shown")
    return page.locator("#ident").locator("visible=true").text_content().removeprefix("event ")


def press(page, key, event):
    """Press a key that answers the question about this event, and wait until that is done."""
    # A question that has just replaced another one takes no key, nor does one below a list that is open.
    wait_for(page, "mayAct() && shown.id === known && !document.querySelector('dialog[open]')", event)
    page.keyboard.press(key)
    wait_for(page, "!isBusy && (!shown || shown.id !== known)", event)


def name(page, who):
    """Type an annotator's name, and wait until the page has asked for a question under this name."""
    page.get_by_label("Your name").fill(who)
    page.keyboard.press("Enter")
    wait_for(page, "myName === known && seen >= 0 && !isBusy", who)


def arrive(visitor, office, who):
    """A new browser of an annotator with this name."""
    page = visitor.open(office.url)
    name(page, who)
    return page


def try_now(page):
    """Click the button of the banner, which hides as soon as what waits has gone by itself."""
    page.evaluate("$('again').click()")


@pytest.fixture(scope="package")
def browser():
    """Skips where there is no Chromium, and fails there in continuous integration."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        reason = f"there is no Chromium: none of {', '.join(PROGRAMS)} can be found (on Debian: apt install chromium)"
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=PATIENCE)
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses to have one as root
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*sandbox, "--disable-dev-shm-usage"])
        yield browser
        browser.close()


class Visitor:
    """Opens pages like one person's browser; a complaint of the browser that no test expects fails it.

    Parameters
    ----------
    browser : Browser
        Of Playwright.
    """

    def __init__(self, browser):
        self._browser = browser
        self._contexts = []
        self.requests = []  # addresses
        self.complaints = []

    def context(self, **options):
        """A browser with a memory of its own."""
        context = self._browser.new_context(**options)
        context.set_default_timeout(PATIENCE)
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("console", self._hear)
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        self._contexts.append(context)
        return context

    def open(self, url, context=None, handlers=(), **options):
        """A new tab.

        The handlers answer requests in the server's place, by patterns of addresses. A page that is open already would
        send some more requests past a new handler.
        """
        page = (context or self.context(**options)).new_page()
        for pattern, handler in dict(handlers).items():
            page.route(pattern, handler)
        page.goto(url)
        return page

    def close(self):
        for context in self._contexts:
            context.close()

    def _hear(self, message):
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@pytest.fixture
def visitor(browser):
    visitor = Visitor(browser)
    yield visitor
    visitor.close()
    assert visitor.complaints == []


class Office:
    """A trainer, a desk, and a page that can be closed and opened.

    Parameters
    ----------
    settings : Settings
        The configuration.
    """

    def __init__(self, settings):
        self.settings = settings
        self.trainer = Trainer(settings)
        self._stack = contextlib.ExitStack()
        self.service = self._stack.enter_context(LabellingService(settings))
        self.page = self._stack.enter_context(LabellingPage(self.service, settings))

    @property
    def url(self):
        return self.page.url

    def close(self):
        self._stack.close()
        self.trainer.close()


@pytest.fixture
def make_office(tmp_path):
    """An office whose settings differ from those of `asked`."""
    with contextlib.ExitStack() as stack:

        def make(*overrides):
            office = Office(configure(tmp_path, *overrides))
            stack.callback(office.close)
            return office

        yield make


@pytest.fixture
def office(make_office):
    return make_office()
