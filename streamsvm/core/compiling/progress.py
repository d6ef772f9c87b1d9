"""What the compiler is doing, for a caller that shows it to people who wait."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core.event import Event, Listener, install_listener


@contextmanager
def on_compilation(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` before each function is compiled, in any thread; code that comes from the cache is not compiled."""
    with install_listener("numba:compile", _Teller(tell)):
        yield


class _Teller(Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    def on_start(self, event: Event) -> None:
        self._tell()

    def on_end(self, event: Event) -> None:
        pass
