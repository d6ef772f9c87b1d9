"""The whole loop: a trainer asks, a person answers on the page, the trainer learns and asks again."""

import json
import random
import threading

from asked import until
from playwright.sync_api import expect

import streamsvm
from streamsvm.connectors.labelling.service import LabellingService
from streamsvm.connectors.labelling.web.page import LabellingPage
from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer as daemon

from .conftest import press, shown

CONFIG = """
[log]
labels = "labels"
questions = "questions"
[model]
C = 10.0
[labelling]
port = 0
max_labels = 20
"""


def text_of(number):
    """One that is like no other: near-duplicates would share an answer."""
    return f"number {7 ** (60 + number)}"


def test_twenty_labels(tmp_path, visitor):
    rng = random.Random(7)
    truth = {}
    with LocalLog(tmp_path / "log") as log:
        for number in range(300):
            truth[f"e{number}"] = rng.random() < 0.3
            side = 1.5 if truth[f"e{number}"] else -1.5
            event = {
                "id": f"e{number}",
                "x": {"a": rng.gauss(side, 1), "b": rng.gauss(0, 1)},
                "text": text_of(number),
            }
            log.produce("events", json.dumps(event).encode())
    (tmp_path / "app.toml").write_text(CONFIG)
    settings = load(tmp_path / "app.toml", {})
    streamsvm.warmup(settings.model.implementation)  # or a first run would compile while the page waits
    stop, states = threading.Event(), []
    trainer = threading.Thread(target=lambda: states.append(daemon.run(settings, stop.is_set)))
    trainer.start()
    try:
        with LabellingService(settings) as service, LabellingPage(service, settings) as desk:
            page = visitor.open(desk.url)
            for _ in range(20):
                event = shown(page)
                expect(page.locator("#text")).to_have_text(text_of(int(event[1:])))
                press(page, "1" if truth[event] else "2", event)
            expect(page.locator("#n-labels")).to_have_text("20")
            expect(page.locator("#quota")).to_have_text("· all planned ones")
            expect(page.locator("#rest-title")).to_have_text("All planned answers are given")
            until(lambda: service.stats()["unheard"] == 0)
            page.close()
    finally:
        stop.set()
        trainer.join()
    (state,) = states[0].values()
    assert state.labelling.loop.counts.n_labels == 20
    assert state.model.n_support > 0
