"""An outage is said once, and again only with another reason."""

import logging
import time

from streamsvm.connectors.runtime.outage import Outage
from streamsvm.connectors.runtime.process import pause


def test_each_reason_is_said_once_and_the_end_too(caplog):
    caplog.set_level(logging.INFO)
    outage = Outage(logging.getLogger("test"), "it is back")
    outage.ends()
    for text in ("away", "away", "slow", "slow"):
        outage.goes_on(ValueError(text))
        assert outage.reason == text
    outage.ends()
    outage.ends()
    assert outage.reason is None
    outage.goes_on(ValueError("slow"))
    assert [record.message for record in caplog.records] == ["away", "slow", "it is back", "slow"]


def test_a_pause_ends_with_a_stop(monkeypatch):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    pause(1000.0, lambda: len(slept) == 3)
    assert len(slept) == 3
    pause(0.0, lambda: False)
    assert len(slept) == 3
