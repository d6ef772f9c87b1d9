"""The page about a run in a browser: nothing to complain of, readable by eye and on a phone, light and dark."""

import json

import pytest

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.report.page import write_report
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer as daemon

from .test_appearance import PALE

CONFIG = """
[estimates]
folds = 4
every = 50
[daemon]
follow = false
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Of a page about a finished run with two partitions."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "app.toml").write_text(CONFIG)
    with LocalLog(folder / "log") as log:
        log.create("events", 2)
        for i in range(400):
            event = {"id": i, "x": {"a": i % 7, "b": i % 5}, "y": i % 7 > 3}
            log.produce("events", json.dumps(event).encode(), partition=i % 2)
    daemon.run(load(folder / "app.toml", {}))
    return write_report(folder / "state")[0].as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_shown_and_asks_for_nothing(address, scheme, visitor):
    page = visitor.open(address, color_scheme=scheme)
    assert visitor.requests == [address]
    pictures = page.get_by_role("img").all()
    assert len(pictures) == 10
    for picture in pictures:
        assert picture.bounding_box()["height"] > 200
    assert page.evaluate(PALE) == []


def test_a_phone(address, visitor):
    page = visitor.open(address, viewport={"width": 360, "height": 740}, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    sizes = page.eval_on_selector_all("svg text", "nodes => nodes.map(node => node.getBoundingClientRect().height)")
    assert min(sizes) > 9


@pytest.fixture(scope="module")
def labelled(tmp_path_factory):
    """The address of a page about a labelling with two annotators and corrections."""
    folder = tmp_path_factory.mktemp("labelled")
    (folder / "app.toml").write_text('[log]\nlabels = "labels"\nquestions = "questions"\n[daemon]\nfollow = false\n')
    settings = load(folder / "app.toml", {})
    with LocalLog(folder / "log") as log:
        for i in range(60):
            log.produce("events", json.dumps({"id": i, "x": {"a": i % 7, "b": i % 5}}).encode())
    daemon.run(settings)
    with LocalLog(folder / "log") as log:
        for number in range(40):
            for who in ("ann", "somebody with a name that is rather long"):
                given = {"id": number, "y": number % 7 > 3 or who == "ann", "source": f"page:{who}#1a", "rev": number}
                log.produce("labels", json.dumps(given).encode())
    daemon.run(settings)
    return write_report(folder / "state", settings=settings)[0].as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_labelling_is_readable(labelled, scheme, visitor):
    page = visitor.open(labelled, color_scheme=scheme)
    assert page.evaluate(PALE) == []
    for part in ("progress", "quality", "people", "corrections", "labels"):
        assert page.locator(f"#p0-{part}").bounding_box()["width"] > 300


def test_the_labelling_on_a_phone(labelled, visitor):
    page = visitor.open(labelled, viewport={"width": 360, "height": 740}, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
