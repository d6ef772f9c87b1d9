"""What a test has started ends with the run of the tests, in whatever way that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import Patience, exit_code

TEST = """
import pathlib, subprocess, sys

def test():
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    pathlib.Path("new").write_text(str(child.pid))
    pathlib.Path("new").rename("child")
    child.wait()
"""


def wait_until(condition):
    patience = Patience(60)
    while not condition():
        assert patience.lasts
        time.sleep(0.01)


def hear_interrupts():
    """What a shell starts in the background is deaf to them, and so is everything that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the guard needs Linux")
@pytest.mark.parametrize(("number", "workers"), [(signal.SIGINT, 0), (signal.SIGKILL, 0), (signal.SIGTERM, 1)])
def test_it_ends_with_a_run_that_is_interrupted_or_killed(tmp_path, number, workers):
    (tmp_path / "test_one.py").write_text(TEST)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "conftest", "-p", "no:cacheprovider", "test_one.py"]
    command += [f"-n{workers}"]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    options = {"cwd": tmp_path, "env": environment, "stdout": subprocess.DEVNULL, "preexec_fn": hear_interrupts}
    with subprocess.Popen(command, **options, process_group=0) as run:
        wait_until((tmp_path / "child").exists)
        os.killpg(run.pid, number)  # as a terminal does, and `timeout`: its workers, too
        assert exit_code(run, 60) is not None
    words = Path("/proc", (tmp_path / "child").read_text(), "cmdline")
    wait_until(lambda: not words.exists() or not words.read_bytes())  # gone, or dead and not buried yet
