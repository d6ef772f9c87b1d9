"""Figures from a process of its own, whose threads are counted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "TBB_NUM_THREADS")


def limited(threads: int = 1) -> dict[str, str]:
    """The environment of a process with so many threads."""
    return os.environ | dict.fromkeys(THREADS, str(threads))


def elsewhere(program: str | Path, *words: Any, data: Path | None = None, threads: int = 1) -> Any:
    """What a program prints as JSON; None if it failed (an engine is not installed, say), which is said."""
    command = [sys.executable, program, *map(str, words)] + (["--data", data] if data else [])
    done = subprocess.run(command, env=limited(threads), capture_output=True, text=True)
    if done.returncode:
        reason = (done.stderr.strip() or f"exit {done.returncode}").splitlines()[-1]
        print(f"{' '.join(map(str, words))}: not measured: {reason}", file=sys.stderr, flush=True)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def needed(program: str | Path, *words: Any, data: Path | None = None, threads: int = 1) -> Any:
    """What `elsewhere` returns, and an end of this program if that is nothing."""
    found = elsewhere(program, *words, data=data, threads=threads)
    if found is None:
        raise SystemExit(1)
    return found
