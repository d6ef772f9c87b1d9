"""What the doctor says about this machine: Python, and the compiled code."""

import os
import platform
import signal
import subprocess
import sys
import time
from importlib.metadata import version

from streamsvm.core.compiling._jit import cache_state

from ...runtime.findings import Finding, Findings
from ...settings.sections import Settings

_PACKAGES = ("numpy", "scipy", "numba", "river", "orjson", "kafka-python")
_WARM_SECONDS = 15  # CPU time that is enough for a process with nothing to compile


def python() -> Findings:
    versions = ", ".join(f"{name} {version(name)}" for name in ("streamsvm", *_PACKAGES))
    yield Finding.ok(f"Python {platform.python_version()} on {platform.system()} {platform.machine()}, {versions}")


def compile_cache(settings: Settings | None) -> Findings:
    folder, is_warm = cache_state()
    if folder is None and os.environ.get("STREAMSVM_CACHE", "1") == "0":
        yield Finding.warning("STREAMSVM_CACHE=0: every process compiles anew", "unset STREAMSVM_CACHE")
        return
    if folder is None:
        yield Finding.warning(
            "compiled code cannot be kept, because no folder for it is writable: every process compiles anew",
            "set NUMBA_CACHE_DIR to a writable folder",
        )
        return
    seconds = _seconds_to_start(settings) if is_warm else None
    if seconds is not None:
        yield Finding.ok(f"{folder} has all compiled code; a process is ready after {seconds:.1f} seconds")
    else:
        what = "lacks some of the compiled code" if is_warm else "has no compiled code of this version"
        yield Finding.warning(f"{folder} {what}: the first process compiles", "run `streamsvm warmup`")


def _seconds_to_start(settings: Settings | None) -> float | None:
    """How long a process takes to prepare the engine; None if it compiles.

    The cache's files alone cannot tell: they may have been compiled for another processor.
    """
    settings = settings or Settings()
    algorithm = settings.model.implementation.__name__
    code = f"removal={settings.removes()}, classes={settings.label.vocabulary is not None}"
    script = "import resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
    script += f"resource.setrlimit(resource.RLIMIT_CPU, ({_WARM_SECONDS}, {_WARM_SECONDS})); "
    script += f"import streamsvm; streamsvm.warmup(streamsvm.{algorithm}, {code})"
    started = time.perf_counter()
    answer = subprocess.run([sys.executable, "-c", script], capture_output=True)  # noqa: S603 - this interpreter
    if answer.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return None
    answer.check_returncode()
    return time.perf_counter() - started
