"""A page in the browser that follows a trainer's model and scores the stream itself.

    python examples/follow/follow.py app.toml        # then open http://127.0.0.1:8000

The configuration needs `log.model` and `daemon.publish_json = true`. This program passes on what is on the topics:
each new model as JSON, and each event. Only the browser scores. It works with Kafka and with the log in a folder.
"""
# ruff: noqa: T201 - an example answers by printing

import argparse
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from streamsvm.connectors.records.published import POLL_PIECES, Shelf, Snapshot
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.settings.opening import open_once
from streamsvm.connectors.settings.sections import Settings
from streamsvm.export import javascript_reader

PAGE = Path(__file__).with_name("page.html")


def happenings(settings: Settings) -> Iterator[tuple[str, str]]:
    """("model", its JSON), ("event", its JSON) and ("", "") while nothing happens: models from the beginning."""
    shelf = Shelf()
    with open_once(settings) as log:
        for number, start in log.start_offsets(settings.log.model).items():
            log.seek(settings.log.model, number, start)
        for number, end in log.end_offsets(settings.log.topic).items():
            log.seek(settings.log.topic, number, end)
        while True:
            records = log.poll(1.0, POLL_PIECES)
            for record in records:
                if record.topic == settings.log.topic:
                    yield "event", json.dumps(json.loads(record.value or b"{}"))
                else:
                    found = shelf.put(record)
                    if isinstance(found, Snapshot) and found.name.startswith("json-"):
                        yield "model", found.blob.decode().strip()
            if not records:
                yield "", ""


class Handler(BaseHTTPRequestHandler):
    """Answers with the page, its module and the stream of happenings."""

    settings: Settings

    def do_GET(self) -> None:
        pages = {"/": ("text/html", PAGE.read_text), "/scorer.mjs": ("text/javascript", javascript_reader)}
        kind, text = pages.get(self.path, ("text/event-stream", None))
        self.send_response(200 if text or self.path == "/stream" else 404)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.end_headers()
        if text:
            self.wfile.write(text().encode())
        elif self.path == "/stream":
            self._stream()

    def _stream(self) -> None:
        try:
            for what, data in happenings(self.settings):
                self.wfile.write(f"event: {what}\ndata: {data}\n\n".encode() if what else b": waiting\n\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # the page was closed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    Handler.settings = load(arguments.config)
    server = ThreadingHTTPServer(("127.0.0.1", arguments.port), Handler)
    server.daemon_threads = True
    print(f"open http://127.0.0.1:{server.server_port}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        server.server_close()


if __name__ == "__main__":
    main()
