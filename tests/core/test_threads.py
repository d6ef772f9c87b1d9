"""Work shared among threads: the limit, the order, errors and interruptions."""

import subprocess
import sys
import threading
import time

import pytest
from threadpoolctl import threadpool_info

import streamsvm
from streamsvm.core import threads
from streamsvm.core.threads import chained, get_num_threads, in_order, n_cores, set_num_threads, threads_for


@pytest.fixture(autouse=True)
def no_limit(monkeypatch):
    for name in (threads.VARIABLE, threads.OTHERS):
        monkeypatch.delenv(name, raising=False)
    yield
    set_num_threads(None)


def test_the_limit_is_the_users_else_the_variables_else_the_cores(monkeypatch):
    assert get_num_threads() == n_cores() >= 1
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert get_num_threads() == 1
    monkeypatch.setenv("STREAMSVM_NUM_THREADS", "5")
    assert get_num_threads() == 5
    streamsvm.set_num_threads(3)
    assert streamsvm.get_num_threads() == 3
    streamsvm.set_num_threads(None)
    assert get_num_threads() == 5


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "2"])
def test_a_limit_is_a_positive_number(n):
    with pytest.raises(ValueError, match=r"n=.* must be a whole number of at least 1"):
        set_num_threads(n)


@pytest.mark.parametrize("text", ["0", "two", "-1", "1.5"])
def test_an_invalid_variable_is_an_error(text, monkeypatch):
    monkeypatch.setenv("STREAMSVM_NUM_THREADS", text)
    with pytest.raises(ValueError, match="STREAMSVM_NUM_THREADS="):
        get_num_threads()


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"cpu.max": "max 100000"}, 8),
        ({"cpu.max": "150000 100000"}, 2),
        ({"cpu.max": "50000 100000"}, 1),
        ({"cpu.max": "nonsense"}, 8),
        ({"cpu/cpu.cfs_quota_us": "300000", "cpu/cpu.cfs_period_us": "100000"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
    ],
)
def test_a_containers_quota_limits_the_cores(files, cores, tmp_path, monkeypatch):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    monkeypatch.setattr(threads, "CGROUP", tmp_path)
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda of: set(range(8)), raising=False)
    assert n_cores() == cores


def test_little_work_stays_on_one_thread():
    set_num_threads(4)
    assert threads_for(0.0) == threads_for(1.9 * threads.MIN_WORK) == 1
    assert threads_for(2.0 * threads.MIN_WORK) == 2
    assert threads_for(100.0 * threads.MIN_WORK) == 4
    assert threads_for(float("inf"), tasks=3) == 3


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_results_come_in_order(n_threads):
    def slow(task):
        time.sleep(0.01 if task % 3 == 0 else 0.0)
        return task * task

    assert list(in_order(slow, range(20), n_threads)) == [task * task for task in range(20)]


def test_no_more_threads_than_the_limit_work_at_once():
    busy, most, lock = [0], [0], threading.Lock()

    def work(task):
        with lock:
            busy[0] += 1
            most[0] = max(most[0], busy[0])
        time.sleep(0.005)
        with lock:
            busy[0] -= 1

    list(in_order(work, range(12), 2))
    assert 1 <= most[0] <= 2


def test_one_thread_is_the_callers():
    assert list(in_order(lambda _: threading.current_thread(), range(2), 1)) == [threading.current_thread()] * 2


def test_a_share_of_the_work_is_not_shared_again():
    set_num_threads(4)
    assert list(in_order(lambda _: get_num_threads(), range(3), 2)) == [1, 1, 1]
    assert get_num_threads() == 4


def test_blas_has_one_thread_meanwhile():
    def blas_threads(_):
        return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}

    assert list(in_order(blas_threads, range(2), 2)) == [{1}, {1}]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_ends_the_work_and_drops_what_waits(error):
    done = []

    def work(task):
        if task == 3:
            raise error(f"task {task}")
        done.append(task)
        return task

    before = threading.active_count()
    with pytest.raises(error, match="task 3"):
        list(in_order(work, range(10_000), 2))
    assert len(done) < 100
    assert threading.active_count() == before


def test_an_error_of_the_tasks_is_raised():
    def tasks():
        yield 1
        raise ValueError("no second task")

    before = threading.active_count()
    with pytest.raises(ValueError, match="no second task"):
        list(in_order(str, tasks(), 2))
    assert threading.active_count() == before


def test_who_stops_listening_leaves_no_thread_behind():
    before = threading.active_count()
    results = in_order(str, range(100), 2)
    assert next(results) == "0"
    results.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_values_of_long_tasks_come_in_order(n_threads):
    assert list(chained(lambda task: iter(range(task)), range(5), n_threads)) == [0, 0, 1, 0, 1, 2, 0, 1, 2, 3]


def test_long_tasks_stop_at_their_next_value():
    made, begun = [], threading.Event()

    def work(task):
        if task == 0:
            begun.wait(5.0)
            raise KeyboardInterrupt
        for value in range(1000):
            made.append(value)
            begun.set()
            time.sleep(0.001)
            yield value

    def first(task):
        return work(task) if task else iter([next(work(task))])

    with pytest.raises(KeyboardInterrupt):
        list(chained(first, range(2), 2))
    assert len(made) < 1000


@pytest.mark.long
def test_scipy_s_own_blas_has_one_thread_too_if_it_was_loaded_later():
    script = """
from threadpoolctl import threadpool_info
from streamsvm.core.threads import one_blas_thread
with one_blas_thread():
    pass
import scipy.linalg.blas
with one_blas_thread():
    print({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})
"""
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert found.strip() == "{1}"
