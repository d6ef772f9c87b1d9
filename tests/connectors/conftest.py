"""What the tests of connectors share."""

import os

import pytest


@pytest.fixture
def no_waiting_for_the_disk(monkeypatch):
    """Files need not be durable: a test that looks for nothing of the kind saves half its time."""
    monkeypatch.setattr(os, "fsync", lambda _: None)
