"""What every test shares, and the order of the tests among several workers."""

import atexit
import gc
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from hypothesis import settings

# The first call of a compiled function takes seconds, which says nothing about the example that made it.
settings.register_profile("streamsvm", deadline=None)
settings.load_profile("streamsvm")

# The longest tests with a broker, the longest first.
LONGEST = (
    "test_a_storm_of_challengers",
    "test_a_broker_that_hangs_is_away_for_a_while_and_dies",
    "test_a_storm_of_kills",
    "test_two_trainers_killed_often_in_transactions",
    "test_trainers_that_lose_their_disks_end_with_the_same_models",
    "test_with_transactions_committed_readers_see_each_prediction_once",
    "test_killed_often_it_ends_with_the_same_model",
    "test_trainers_that_join_and_leave_lose_nothing_and_learn_nothing_twice",
)


RACING = {"browser", "connectors", "kafka"}  # folders whose tests follow processes and threads at work
RUN = "STREAMSVM_TEST_RUN"  # every process that a test starts has it in its environment


def pytest_configure():
    """Let brokers, trainers and browsers end with this run, even if it is interrupted or killed."""
    if not Path("/proc/self/environ").exists():
        return
    mark = uuid.uuid4().hex
    command = [sys.executable, "-S", str(Path(__file__).parent / "helpers" / "guard.py"), f"{RUN}={mark}"]
    # Without the mark of the run that started this worker: that run's guard would end this one before its work is done.
    own = {name: value for name, value in os.environ.items() if name != RUN}
    guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, env=own)
    atexit.register(guard.communicate)  # after what joblib registers later, which needs a process of its own
    os.environ[RUN] = mark  # of the processes from now on, and not of the guard


def pytest_collection_finish():
    """Keep the collector of garbage from going through all tests and modules again and again."""
    gc.freeze()


@pytest.hookimpl(trylast=True)  # after -k and -m have chosen among the tests
def pytest_collection_modifyitems(config, items):
    """Let half of the workers begin with the tests with a broker, the longest first.

    These tests wait more than they compute, so the other half computes meanwhile. At the end they would keep one worker
    busy while the others have nothing.
    """
    if os.environ.get("CI") == "true" and config.pluginmanager.has_plugin("rerunfailures"):
        again = pytest.mark.flaky(reruns=1)
        for item in items:
            if not RACING.isdisjoint(item.path.parts):
                item.add_marker(again)
    n_workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    with_broker = [item for item in items if item.path.parent.name == "kafka"]
    if n_workers == 1 or not with_broker:
        return
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    with_broker.sort(key=lambda item: ranks.get(item.originalname, len(LONGEST)))
    others = [item for item in items if item.path.parent.name != "kafka"]
    others.sort(key=lambda item: item.path.name != "test_wheel.py")  # which takes long, and would come last
    n_with_broker, ordered = max(1, n_workers // 2), []
    for worker in range(n_workers):  # xdist gives each worker as many neighbouring tests as here
        size = (len(items) - len(ordered)) // (n_workers - worker)
        share = with_broker[worker::n_with_broker] if worker < n_with_broker else []
        n_others = max(0, size - len(share))
        ordered += share + others[:n_others]
        others = others[n_others:]
    items[:] = ordered


def pytest_terminal_summary(terminalreporter):
    """Show why a test had to run again: the machine may be too busy, and the product may be at fault."""
    for report in terminalreporter.stats.get("rerun", ()):
        terminalreporter.section(f"failed once: {report.nodeid}", sep="_")
        terminalreporter.write_line(report.longreprtext)


@pytest.fixture(scope="session")
def nursery():
    """Starts processes that need not load the product again."""
    from nursery import Nursery

    return Nursery()
