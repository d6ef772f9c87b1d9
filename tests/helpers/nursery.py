"""Processes that are forked from one that has loaded the product and its compiled code, which takes two seconds.

A test that asks what the start of a process does, or wants another environment of it, begins a fresh one instead.
"""

import contextlib
import logging
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
from multiprocessing import forkserver
from pathlib import Path

COMMAND_LINE = "import sys; from streamsvm.connectors.commands.cli import main; sys.exit(main())"
_IS_WARM = "STREAMSVM_NURSERY"  # in the environment of the process that all others are forked from


class Nursery:
    """Starts scripts as `python -c` would, in forks of a process that has warmed up and runs no thread."""

    def __init__(self):
        self._context = multiprocessing.get_context("forkserver")
        before = dict(os.environ)
        os.environ |= {_IS_WARM: "1", "PYTHONPATH": str(Path(__file__).parent)}
        try:
            self._context.set_forkserver_preload(["nursery"])
            forkserver.ensure_running()
        finally:
            os.environ.clear()
            os.environ.update(before)

    def start(self, script, *arguments, output):
        """Start a script; what it prints, on standard error too, is appended to a file."""
        Path(output).touch()
        here = (os.getcwd(), dict(os.environ))
        child = self._context.Process(target=_run, args=(here, str(output), script, *map(str, arguments)), daemon=True)
        child.start()
        return Forked(child)


class Forked:
    """A process with those methods of `subprocess.Popen` that tests use."""

    def __init__(self, child):
        self._child = child
        self.pid = child.pid

    def poll(self):
        return self._child.exitcode

    def wait(self):
        self._child.join()
        return self._child.exitcode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def start_fresh(script, *arguments, output):
    """Start a process that nothing was loaded in, as `Nursery.start` does."""
    with open(output, "ab") as file:
        return subprocess.Popen([sys.executable, "-c", script, *map(str, arguments)], stdout=file, stderr=file)


def _run(here, output, script, *arguments):
    folder, environment = here
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for number in (1, 2):
        os.dup2(descriptor, number)
    sys.argv = ["-c", *arguments]
    exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})


CONFIG = """
[log]
labels = "labels"
model = "model"
[model]
C = 10.0
[daemon]
per = "PER"
start = "earliest"
follow = false
"""


def _warm_up():
    """Load what trainers need, so that those who are forked need not.

    Nor do they wait for the disk: what a killed process has written is there all the same.
    """
    import streamsvm.connectors.logs.kafka.backend
    import streamsvm.connectors.logs.rdkafka.backend  # noqa: F401
    from streamsvm.connectors.commands.cli import main
    from streamsvm.connectors.settings.loading import load
    from streamsvm.connectors.settings.opening import open_once

    os.fsync = lambda descriptor: None
    for per in ("partition", "key"):
        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w") as nowhere:
            config = Path(folder) / "app.toml"
            config.write_text(CONFIG.replace("PER", per))
            with open_once(load(config, {})) as log:
                for j in range(80):
                    x, key = j * 7 % 11 - 5.0, b"key-%d" % (j // 10)
                    log.produce("events", b'{"id": "%d", "x": {"a": %g, "b": %g, "c": 1}}' % (j, x, j % 5), key=key)
                    log.produce("labels", b'{"id": "%d", "y": %s}' % (j, b"true" if x < 0 else b"false"), key=key)
            with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
                main(["run", str(config)])
    logging.getLogger().handlers.clear()  # they write to nowhere


if __name__ == "nursery" and os.environ.pop(_IS_WARM, None):
    _warm_up()
