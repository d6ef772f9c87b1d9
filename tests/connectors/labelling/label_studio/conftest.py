"""What the tests of Label Studio share."""

import threading

import pytest
from asked import of_questions
from studio import Studio

from streamsvm.connectors.labelling.label_studio import predictor, project
from streamsvm.connectors.runtime import http as serve
from streamsvm.connectors.settings.labelling import LabellingSettings


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    for module in (project, predictor, serve):
        monkeypatch.setattr(module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(project, "_RETRY_SECONDS", 0.05)
    monkeypatch.setattr(predictor, "LOOK_SECONDS", 0.02)


@pytest.fixture
def settings(tmp_path):
    return of_questions(tmp_path, labelling=LabellingSettings(port=0))


@pytest.fixture
def studio():
    with Studio() as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server
        server.shutdown()
