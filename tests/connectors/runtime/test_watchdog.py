"""A loop that hangs is ended with its stack on standard error; one that does not is left alone."""

import os
import signal
import subprocess
import sys
import time

import pytest
from asked import until
from patience import exit_code

from streamsvm.connectors.runtime.exit_codes import STALLED
from streamsvm.connectors.runtime.health import Heartbeat
from streamsvm.connectors.runtime.watchdog import Watchdog

HEAD = """
import ctypes, logging, os, signal, sys, threading, time
from streamsvm.connectors.runtime import watchdog as module
from streamsvm.connectors.runtime.health import Heartbeat
from streamsvm.connectors.runtime.watchdog import Watchdog
heart = Heartbeat()
logging.basicConfig()
"""
HANGS = {
    "python": "time.sleep(3600)",
    "lock": "threading.Lock().acquire() and threading.Event().wait()",
    "c": "ctypes.CDLL(None).sleep(3600)",  # which releases the interpreter's lock
    "spin": "while True: pass",
}


def run(script, **options):
    return subprocess.run([sys.executable, "-c", HEAD + script], timeout=900, capture_output=True, text=True, **options)


@pytest.mark.long
@pytest.mark.parametrize("hang", HANGS.values(), ids=HANGS)
def test_a_loop_that_hangs_is_ended(hang):
    script = f"def consume():\n    {hang}\nwith Watchdog(heart, 0.3):\n    heart.beat()\n    consume()"
    ended = run(script)
    assert ended.returncode == STALLED == 70
    line = HEAD.count("\n") + 2
    assert f'File "<string>", line {line} in consume' in ended.stderr
    assert "the loop has not beaten for 0.3 seconds: ending the process with exit code 70" in ended.stderr


@pytest.mark.long
def test_a_loop_that_beats_is_left_alone():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 1.0, on_expiry=reasons.append):
        for _ in range(50):
            heart.beat()
            time.sleep(0.03)
    assert not reasons


def test_it_barks_once():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0.1, on_expiry=reasons.append):
        until(lambda: reasons)
        time.sleep(0.4)
    assert reasons == ["the loop has not beaten for 0.1 seconds"]


@pytest.mark.long
def test_long_phases_are_allowed():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0.2, on_expiry=reasons.append):
        with heart.allow(30):
            with heart.allow(0.1):  # less than what is allowed already
                time.sleep(0.4)
            time.sleep(0.4)
        assert not reasons
        until(lambda: reasons)


@pytest.mark.long
def test_the_end_of_a_long_phase_is_a_beat():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0.2, on_expiry=reasons.append):
        for _ in range(4):
            with heart.allow(10):
                time.sleep(0.3)
    assert not reasons


@pytest.mark.long
def test_a_limit_of_0_waits_for_ever():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0, on_expiry=reasons.append):
        time.sleep(1.3)
    assert not reasons


def test_nothing_is_watched_after_the_block():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0.1, on_expiry=reasons.append):
        pass
    time.sleep(0.4)
    assert not reasons


@pytest.mark.long
def test_a_process_that_was_stopped_is_left_alone():
    script = "with Watchdog(heart, 0.5):\n    for _ in range(20):\n        heart.beat(); time.sleep(0.05)"
    with subprocess.Popen(
        [sys.executable, "-c", f"{HEAD}print(flush=True)\n{script}"], stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGSTOP)
        time.sleep(1.5)
        os.kill(child.pid, signal.SIGCONT)
        assert exit_code(child, 30) == 0


@pytest.mark.long
@pytest.mark.parametrize("limit", [0, 0.1, 60])
def test_a_shutdown_that_hangs_is_ended(limit):
    """Even after the watched block; called by a signal's handler, as a daemon does."""
    script = (
        f"with Watchdog(heart, {limit}) as watchdog:\n"
        "    signal.signal(signal.SIGTERM, lambda *_: watchdog.deadline(0.5))\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "started = time.monotonic()\n"
        "threading.Thread(target=lambda: time.sleep(60)).start()"  # the interpreter waits for it
    )
    ended = run(script)
    assert ended.returncode == STALLED
    assert "not ended in the time given after the request to stop" in ended.stderr


@pytest.mark.long
def test_after_a_deadline_beats_do_not_matter():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0.2, on_expiry=reasons.append) as watchdog:
        watchdog.deadline(30)
        time.sleep(0.5)
        assert not reasons
        watchdog.deadline(0)
        until(lambda: reasons)
    assert reasons == ["the process has not ended in the time given after the request to stop"]


@pytest.mark.long
def test_a_deadline_can_be_withdrawn():
    heart, reasons = Heartbeat(), []
    with Watchdog(heart, 0.1, on_expiry=reasons.append) as watchdog:
        watchdog.deadline(1.2)
        time.sleep(0.2)
        watchdog.deadline(float("inf"))
        time.sleep(1.3)
    assert not reasons


@pytest.mark.long
def test_a_shutdown_in_time_is_clean():
    ended = run("with Watchdog(heart, 60) as watchdog:\n    watchdog.deadline(20)")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.long
@pytest.mark.parametrize("trouble", ["full pipe", "held lock", "closed"])
def test_it_ends_even_if_nothing_can_be_said(trouble):
    """A pipe that nobody reads, a lock of the log that the hanging thread holds, no standard error at all."""
    prepare = {
        "full pipe": (
            "read, write = os.pipe()\nos.set_blocking(write, False)\n"
            "try:\n    while True: os.write(write, b'x' * 4096)\nexcept BlockingIOError: os.set_blocking(write, True)\n"
            "os.dup2(write, 2)"
        ),
        "held lock": "logging.root.handlers[0].acquire()",
        "closed": "sys.stderr.close()",
    }[trouble]
    ended = run(f"{prepare}\nmodule.LAST_WORDS_SECONDS = 1\nwith Watchdog(heart, 0.2):\n    time.sleep(60)")
    assert ended.returncode in (STALLED, -signal.SIGALRM)
