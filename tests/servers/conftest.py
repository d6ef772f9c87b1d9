"""The real servers, which are started for the tests of a file; without them, the tests are skipped."""

import pytest

from .servers import APICURIO, GATEWAY, JAVA, STUDIO, Server, begun, installed, java


def need(name):
    folder = installed(name)
    if folder is None:
        pytest.skip(f"{name} was not fetched: python tests/servers/servers.py does")
    return folder


@pytest.fixture(autouse=True)
def _direct(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """VersityGW, with a folder as its store."""
    program = need(GATEWAY) / "versitygw"
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "data").mkdir()
    keys = {"ROOT_ACCESS_KEY": "me", "ROOT_SECRET_KEY": "secret-key"}
    server = Server([program, "--port", "127.0.0.1:{port}", "--quiet", "posix", folder / "data"], folder, "/", **keys)
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def apicurio(tmp_path_factory):
    """Apicurio Registry; its routes of Confluent's begin with /apis/ccompat/v7."""
    program = need(APICURIO) / "quarkus-run.jar"
    machine = java()
    if machine is None:
        pytest.skip("Apicurio Registry needs Java 21: set JAVA_HOME")
    options = ["-Dquarkus.http.host=127.0.0.1", "-Dquarkus.http.port={port}", "-Dquarkus.management.enabled=false"]
    server = Server([machine, *JAVA, *options, "-jar", program], tmp_path_factory.mktemp("apicurio"), "/apis")
    yield server.start()
    server.stop()


@pytest.fixture(scope="module")
def label_studio(tmp_path_factory):
    """Label Studio as it is by default; it is not started."""
    program = need(STUDIO) / "bin" / "python"  # the script names the folder in which it was installed at first
    folder = tmp_path_factory.mktemp("studio")
    user = ["--username", "ann@example.org", "--password", "loopback"]
    local = ["--no-browser", "--internal-host", "127.0.0.1", "--port", "{port}"]
    key = {"SECRET_KEY": "of-these-tests"}  # its own is random, and lost at a restart if it begins with a dollar sign
    quiet = {"COLLECT_ANALYTICS": "false", "LATEST_VERSION_CHECK": "false", "SENTRY_DSN": ""}
    data = {"LABEL_STUDIO_BASE_DATA_DIR": str(folder)}
    server = Server(
        [program, "-m", "label_studio.server", "start", *local, *user], folder, "/version", **key, **quiet, **data
    )
    begun(STUDIO, server, folder)
    yield server
    server.stop()
