"""librdkafka fetches its tokens from an OpenID provider: a small server here, whose tokens are not signed."""

import base64
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

import pytest

from .app import settings_of, some_stream


def part(content):
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()


class Provider(BaseHTTPRequestHandler):
    """Gives a token to each client that has the secret."""

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(form.get("grant_type", [""])[0])
        expected = base64.b64encode(b"trainer:s3cret").decode()
        is_right = self.headers.get("Authorization", "") == f"Basic {expected}"
        claims = {"sub": "trainer", "iat": int(time.time()), "exp": int(time.time()) + 3600, "scope": "kafka"}
        token = {"access_token": f"{part({'alg': 'none'})}.{part(claims)}.", "token_type": "Bearer", "expires_in": 3600}
        body = json.dumps(token if is_right else {"error": "invalid_client"}).encode()
        self.send_response(200 if is_right else 401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def provider():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def options(secure_broker, provider):
    return {
        "client": "librdkafka",
        "bootstrap_servers": secure_broker.sasl["bootstrap_servers"],
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_method": "oidc",
        "sasl_oauthbearer_client_id": "trainer",
        "sasl_oauthbearer_client_secret": "s3cret",
        "sasl_oauthbearer_token_endpoint_url": f"http://127.0.0.1:{provider.server_port}/token",
    }


def test_a_trainer_gets_in_with_tokens_of_a_provider(topics, start_app, options, provider):
    log = settings_of(topics, labels="", model="")
    topics.produce(log["topic"], some_stream(100)[0])
    start_app("oidc", log=log, kafka=options).run("daemon.follow=false")
    assert len(topics.read_all(log["predictions"])) == 100
    assert set(provider.asked) == {"client_credentials"}


def test_a_provider_that_refuses_us_ends_it_at_once(start_app, options):
    options = {**options, "sasl_oauthbearer_client_secret": "forged"}
    process = start_app("forged", log={"topic": "events"}, kafka=options).start()
    assert process.wait() == 3, process.said
    assert "the broker refuses us" in process.said
    assert "forged" not in process.said.replace("forged/", "")
