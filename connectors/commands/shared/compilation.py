"""What a command says while the engine is compiled: `compile_notice` at once, and then how far the compiler is."""

import logging
import sys
import time
from contextlib import AbstractContextManager, nullcontext

from tqdm import tqdm

from ...runtime.text import plural

logger = logging.getLogger(__name__)

_SECONDS = 5.0  # between two lines


def telling() -> AbstractContextManager[None]:
    """Say what the compiler does, on standard error; without the engine it does nothing."""
    if "numba" not in sys.modules:
        return nullcontext()
    from streamsvm.core.compiling.progress import on_compilation

    if not sys.stderr.isatty():
        return on_compilation(_Lines().step)
    bar = tqdm(desc="compiling", unit=" functions", leave=False, delay=1e-9)  # it appears with the first function
    return on_compilation(bar.update, bar.clear)


class _Lines:
    """Lines on standard error, or in the log."""

    def __init__(self) -> None:
        self._n_functions = 0
        self._told_at = 0.0

    def step(self) -> None:
        """A function will be compiled."""
        self._n_functions += 1
        now = time.monotonic()
        if self._n_functions > 1 and now - self._told_at < _SECONDS:
            return
        self._told_at = now
        is_logged = bool(logging.root.handlers)
        so_far = f"compiled {plural(self._n_functions - 1, 'function')} so far"
        if self._n_functions > 1 and is_logged:
            logger.info("%s", so_far)
        elif self._n_functions > 1:
            print(f"streamsvm: {so_far}", file=sys.stderr, flush=True)
        elif not is_logged:  # There, the engine says so itself.
            from streamsvm.core.compiling._jit import compile_notice

            print(compile_notice(), file=sys.stderr, flush=True)
