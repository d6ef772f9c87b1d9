"""A server that speaks S3's protocol: a wrong key, a missing bucket, no encryption, and a server that is away."""

import threading
import time

import pytest
from asked import until
from logged import append, some_events, write_config

from streamsvm.connectors.commands.cli import main
from streamsvm.connectors.settings.loading import load
from streamsvm.connectors.trainer import trainer

pytestmark = pytest.mark.long

AWAY_SECONDS = 20
KEYS = {"ACCESS_KEY_ID": "me", "SECRET_ACCESS_KEY": "secret-key", "DEFAULT_REGION": "us-east-1", "ALLOW_HTTP": "true"}


@pytest.fixture(scope="module")
def bucket(gateway):
    boto3 = pytest.importorskip("boto3")
    names = {"aws_access_key_id": "me", "aws_secret_access_key": "secret-key", "region_name": "us-east-1"}
    boto3.client("s3", endpoint_url=gateway.url, **names).create_bucket(Bucket="bucket")


@pytest.fixture
def config(gateway, bucket, tmp_path, monkeypatch):
    for name, value in {**KEYS, "ENDPOINT_URL": gateway.url}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    path = write_config(tmp_path)
    append(tmp_path / "log", some_events(60))
    return path


def overrides(where):
    return ["state.store=objects", f"state.url=s3://{where}"]


@pytest.mark.parametrize(
    ("place", "variables", "code", "said"),
    [
        ("bucket", {"ACCESS_KEY_ID": "nobody"}, 3, "No user exists with the provided access key ID"),
        ("bucket", {"SECRET_ACCESS_KEY": "wrong"}, 3, "SignatureDoesNotMatch"),
        ("missing", {}, 4, "NoSuchBucket: The specified bucket does not exist"),
        ("bucket", {"ALLOW_HTTP": "false"}, 2, "needs AWS_ALLOW_HTTP=true"),
        ("bucket", {"ENDPOINT_URL": "http://127.0.0.1:9"}, 75, "error sending request"),
    ],
)
def test_what_is_wrong_has_a_code(config, monkeypatch, capsys, place, variables, code, said):
    for name, value in variables.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    sets = [part for setting in overrides(f"{place}/wrong") for part in ("--set", setting)]
    assert main(["run", str(config), *sets]) == code
    assert said in capsys.readouterr().err


def test_while_the_server_is_away_the_trainer_waits(config, gateway, tmp_path):
    settings = load(config, {}, [*overrides("bucket/away"), "daemon.follow=true"])
    is_over, states = threading.Event(), []
    thread = threading.Thread(target=lambda: states.append(trainer.run(settings, is_over.is_set)), daemon=True)
    thread.start()
    try:
        until(lambda: list((tmp_path / "state" / "p0").glob("journal*")))
        gateway.stop()
        append(tmp_path / "log", some_events(120)[60:])
        time.sleep(AWAY_SECONDS)
        assert thread.is_alive()
    finally:
        gateway.start()
        is_over.set()
        thread.join(60)
    assert states
    assert trainer.run(load(config, {}, overrides("bucket/away")))[0].counters.learned == 120
