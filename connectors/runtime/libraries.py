"""The libraries that only some installations have."""

from collections.abc import Iterator
from contextlib import contextmanager


class LibraryMissing(ImportError):  # noqa: N818 - says what is missing
    """Something needs a library that is not installed.

    Parameters
    ----------
    what
        What needs which library, as the message says it.
    extra
        The extra of streamsvm that installs the library.
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what}: pip install 'streamsvm[{extra}]'")


@contextmanager
def needing(what: str, extra: str) -> Iterator[None]:
    """Inside the ``with`` block a library is imported; without it, `LibraryMissing` says what needs it."""
    try:
        yield
    except ImportError:
        raise LibraryMissing(what, extra) from None
