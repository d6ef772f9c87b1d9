"""Pages whose models are scored by the browser: the example that follows a trainer, and one of the documentation."""

import json
import sys
import threading
from http.server import ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from streamsvm.connectors.logs.embedded import LocalLog
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer

from .conftest import wait_for

ROOT = Path(__file__).parents[2]

CONFIG = """
[log]
model = "model"
[decide]
error = 0.1
[daemon]
publish_json = true
follow = false
"""


@pytest.fixture
def app(tmp_path):
    """A finished run, and the example's server on a port of its own."""
    (tmp_path / "app.toml").write_text(CONFIG)
    settings = load(tmp_path / "app.toml", {})
    produce(tmp_path, range(60), labelled=True)
    trainer.run(settings)
    spec = spec_from_file_location("follow", ROOT / "examples" / "follow" / "follow.py")
    follow = module_from_spec(spec)
    spec.loader.exec_module(follow)
    follow.Handler.settings = settings
    follow.Handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("127.0.0.1", 0), follow.Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def produce(folder, numbers, *, labelled):
    with LocalLog(folder / "log") as log:
        if labelled:
            log.create("events", 1)
        for i in numbers:
            event = {"id": i, "x": {"a": i % 7, "b": i % 5}} | ({"y": i % 7 > 3} if labelled else {})
            log.produce("events", json.dumps(event).encode())


def test_a_page_follows_and_scores(app, visitor, tmp_path):
    page = visitor.open(app)
    wait_for(page, "document.querySelector('#state').textContent.startsWith('Model 1 ')")
    produce(tmp_path, (0, 6), labelled=False)
    wait_for(page, "document.querySelectorAll('#last li').length === 2")
    newest, oldest = page.locator("#last li").all_text_contents()
    assert newest.startswith("6: ")
    assert "true" in newest
    assert "false" in oldest
    produce(tmp_path, range(100, 160), labelled=True)
    trainer.run(load(tmp_path / "app.toml", {}))
    wait_for(page, "document.querySelector('#state').textContent.startsWith('Model 2 ')")


@pytest.mark.long
def test_the_page_of_the_documentation(visitor, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs"), *sys.path])
    import live

    (tmp_path / "page.html").write_text(f'<!doctype html><meta charset="utf-8">{live.demo()}', encoding="utf-8")
    page = visitor.open((tmp_path / "page.html").as_uri())
    wait_for(page, "document.querySelector('#live p').textContent.startsWith('3 records were scored here: ')")
