"""Real servers on this machine, from the package registries: Label Studio, an S3 server and a schema registry.

    python tests/servers/servers.py        # fetches them, for the tests of this folder

It takes some minutes and 1.5 GB.  Needs Go for the S3 server, and Java 21 with Maven for the registry.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path

STUDIO, GATEWAY, APICURIO = "label-studio-1.23.2", "versitygw-v1.8.0", "apicurio-3.3.3"
START_SECONDS, STOP_SECONDS = 300, 20
JAVA = ("-Xmx512m", "-XX:TieredStopAtLevel=1")


def home():
    return Path(os.environ.get("TEST_SERVERS_CACHE", "~/.cache/streamsvm/servers")).expanduser()


def installed(name):
    """Folder of a server that was fetched; None if it was not."""
    return home() / name if (home() / name).exists() else None


def fetch(name):
    """Fetch a server, unless it is there."""
    target = home() / name
    if target.exists():
        return
    home().mkdir(parents=True, exist_ok=True)
    new = target.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    FETCH[name](new, name.rpartition("-")[2])
    new.rename(target)


def fetch_studio(folder, version):
    venv.create(folder, with_pip=True)
    subprocess.run([folder / "bin" / "python", "-m", "pip", "install", "-q", f"label-studio=={version}"], check=True)


def fetch_gateway(folder, version):
    go = {**os.environ, "GOBIN": str(folder)}
    subprocess.run(["go", "install", f"github.com/versity/versitygw/cmd/versitygw@{version}"], check=True, env=go)


def fetch_apicurio(folder, version):
    folder.mkdir()
    artifact = f"-Dartifact=io.apicurio:apicurio-registry-app:{version}:tar.gz:all"
    subprocess.run(["mvn", "-q", "-B", "dependency:copy", artifact, f"-DoutputDirectory={folder}"], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as content:
        content.extractall(folder, filter="data")
    archive.unlink()


FETCH = {STUDIO: fetch_studio, GATEWAY: fetch_gateway, APICURIO: fetch_apicurio}


def java(at_least=21):
    """A Java of this version or newer: that of JAVA_HOME, or the first one on the path; None if there is none."""
    home_ = os.environ.get("JAVA_HOME")
    found = str(Path(home_, "bin", "java")) if home_ else shutil.which("java")
    if found is None:
        return None
    said = subprocess.run([found, "-version"], capture_output=True, text=True).stderr
    version = re.search(r'version "(\d+)', said)
    return found if version and int(version[1]) >= at_least else None


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A server of one process, which listens on 127.0.0.1 only.

    Parameters
    ----------
    command : list
        With {port} for its port.
    folder : Path
        Where it runs, and where its log is.
    ready : str
        Path that it answers once it is ready.
    """

    def __init__(self, command, folder, ready, **environment):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [str(part).format(port=self.port) for part in command]
        self._folder, self._ready, self._environment = folder, ready, environment
        self._process = None

    def start(self, **environment):
        with open(self._folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env={**os.environ, **self._environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"it did not start: {(self._folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.2)
        return self

    def _answers(self):
        try:
            urllib.request.urlopen(self.url + self._ready, timeout=5).close()  # noqa: S310 - http
        except urllib.error.HTTPError as error:
            return error.code < 500
        except OSError:
            return False
        return True

    def stop(self):
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self._process is not None and self._process.poll() is None:
                os.killpg(self._process.pid, number)
                try:
                    self._process.wait(STOP_SECONDS)
                except subprocess.TimeoutExpired:
                    continue
        self._process = None


def begun(name, server, folder):
    """Fill a server's folder as its first start does, which takes half a minute: a copy is kept for later runs."""
    kept = home() / f"{name}-data"
    if not kept.exists():
        server.start()
        server.stop()
        new = kept.with_name(f"{kept.name}-{os.getpid()}")
        shutil.copytree(folder, new)
        try:
            new.rename(kept)
        except OSError:  # another run was faster
            shutil.rmtree(new)
    shutil.copytree(kept, folder, dirs_exist_ok=True)


def main():
    for name in FETCH:
        print(f"{name} ...", flush=True)
        fetch(name)


if __name__ == "__main__":
    sys.exit(main())
