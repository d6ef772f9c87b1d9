"""What the compiler is doing, for a caller that shows it to people who wait."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core.event import Event, Listener, install_listener


@contextmanager
def on_compilation(tell: Callable[[], object], pause: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Call `tell` before each function is compiled, in any thread, and `pause` when nothing is left to compile.

    Code that comes from the cache is not compiled.
    """
    with install_listener("numba:compile", _Teller(tell, pause)):
        yield


class _Teller(Listener):
    def __init__(self, tell: Callable[[], object], pause: Callable[[], object]) -> None:
        self._tell, self._pause = tell, pause
        self._n_open = 0  # functions that are being compiled, each for the one before

    def on_start(self, event: Event) -> None:
        self._n_open += 1
        self._tell()

    def on_end(self, event: Event) -> None:
        self._n_open -= 1
        if not self._n_open:
            self._pause()
