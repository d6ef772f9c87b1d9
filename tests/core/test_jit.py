"""The compile policy: cached on disk, never stale, and usable where nothing can be written."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

JIT = Path(__file__).parents[2] / "streamsvm" / "core" / "_jit.py"

CALLEE = """
from ._jit import compiled

@compiled
def number():
    return 1
"""
CALLER = """
from ._jit import compiled
from .callee import number

@compiled
def ten_times():
    return 10 * number()
"""
SCRIPT = """
from mini.core.caller import ten_times
print(ten_times(), sum(ten_times.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path):
    """A package of two compiled functions in two files, one calling the other."""
    folder = tmp_path / "mini" / "core"
    folder.mkdir(parents=True)
    shutil.copy(JIT, folder)
    (folder / "__init__.py").touch()
    (folder / "callee.py").write_text(CALLEE)
    (folder / "caller.py").write_text(CALLER)
    return folder


def call(package, **environment):
    """Run the caller in a new process; return its result, how often the cache served it, and the cached files."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "STREAMSVM_"))}
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=package.parents[1],
        env=variables | {"PYTHONPATH": str(package.parents[1])} | environment,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    result, hits = map(int, answer.stdout.split())
    return result, hits, len(list(package.rglob("*.nbi")))


def test_the_second_process_compiles_nothing(package):
    assert call(package) == (10, 0, 2)
    assert call(package) == (10, 1, 2)


def test_an_edited_callee_is_not_stale_in_its_cached_caller(package):
    assert call(package)[0] == 10
    (package / "callee.py").write_text(CALLEE.replace("return 1", "return 7"))
    assert call(package)[:2] == (70, 0)
    assert call(package)[:2] == (70, 1)


def test_the_cache_can_be_switched_off(package):
    assert call(package, STREAMSVM_CACHE="0") == (10, 0, 0)


def test_without_a_place_for_the_cache_functions_still_compile(package, tmp_path):
    """A file where numba wants its folder stands for a system without any writable place, for every user."""
    blocked = tmp_path / "blocked"
    blocked.touch()
    (package / "__pycache__").touch()
    home = {"HOME": str(blocked), "XDG_CACHE_HOME": str(blocked), "NUMBA_CACHE_DIR": str(blocked)}
    assert call(package, PYTHONDONTWRITEBYTECODE="1", **home) == (10, 0, 0)


def test_code_without_bounds_checks_is_never_taken_for_code_with_them(package):
    """Nor the other way round, in one cache: `make bounds-test` would test nothing, or users pay for its checks."""
    assert call(package) == (10, 0, 2)
    assert call(package, NUMBA_BOUNDSCHECK="1")[:2] == (10, 0)
    assert call(package, NUMBA_BOUNDSCHECK="1")[:2] == (10, 1)
    assert call(package)[:2] == (10, 0)


def test_the_cache_may_lie_elsewhere_and_holds_code_for_each_processor(package, tmp_path):
    folder = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for processor in ({}, {"NUMBA_CPU_NAME": "generic"}):
        assert call(package, **folder, **processor) == (10, 0, 0)
        assert call(package, **folder, **processor) == (10, 1, 0)
    assert call(package, **folder) == (10, 1, 0)
    assert list((tmp_path / "cache").rglob("*.nbi"))
