"""What the tests of connectors share."""

import os

import pytest
from registry import Registry


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch):
    """Files need not be durable: a test that looks for nothing of the kind saves half its time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


@pytest.fixture
def haste(no_waiting_for_the_disk, monkeypatch):
    """A labelling service looks at its log often."""
    from streamsvm.connectors.labelling import follower
    from streamsvm.connectors.labelling.terminal import session

    monkeypatch.setattr(follower, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(follower, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(session, "POLL_SECONDS", 0.02)


@pytest.fixture
def registry():
    """A schema registry."""
    server = Registry()
    yield server
    server.close()
