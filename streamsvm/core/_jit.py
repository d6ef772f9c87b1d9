"""Compile policy: the one decorator behind every compiled function of the engine.

Numba stamps a cached function with the file that defines it, so a caller in one file keeps inlining the old version of
a callee from another file after an upgrade.  Here the stamp is the digest of every source file of the rooms that
compile: any edit there invalidates the whole cache, and nothing stale is ever run; nor is code with bounds checks
(``NUMBA_BOUNDSCHECK=1``) taken for code without.  Without a place to write, functions are compiled in memory.

``STREAMSVM_CACHE=0`` switches the disk cache off.
"""

import hashlib
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import config, njit
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.extending import overload

F = TypeVar("F", bound=Callable[..., Any])


COMPILED_ROOMS = ("core", "batch", "online")  # tests/test_layers.py holds that no other room compiles anything


def _digest() -> str:
    root = Path(__file__).parents[1]
    sha = hashlib.sha256()
    for path in sorted(path for room in COMPILED_ROOMS for path in (root / room).rglob("*.py")):
        sha.update(str(path.relative_to(root)).encode())
        sha.update(path.read_bytes())
    return sha.hexdigest()


_DIGEST = _digest()


class _StampedImpl(CompileResultCacheImpl):
    """Cache entries that are valid for this very state of the package."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        file_stamp = self._locator.get_source_stamp
        self._locator.get_source_stamp = lambda: (file_stamp(), _DIGEST, bool(config.BOUNDSCHECK))


class _StampedCache(FunctionCache):
    _impl_class = _StampedImpl

    def is_warm(self) -> bool:
        """Whether it has code of this version."""
        return bool(self._cache_file._load_index())


_caches: list[_StampedCache] = []


def cache_state() -> tuple[str | None, bool]:
    """The folder of the disk cache, None if there is none, and whether it has code of this version."""
    folder = _caches[0].cache_path if _caches else None
    return folder, any(cache.is_warm() for cache in _caches)


def _compile(py_func: F, fastmath: set[str], entry: bool) -> F:
    dispatcher = njit(
        py_func,
        nogil=True,
        error_model="numpy",
        fastmath=fastmath or False,
        no_cfunc_wrapper=True,
        no_cpython_wrapper=not entry,
    )
    if os.environ.get("STREAMSVM_CACHE", "1") != "0" and hasattr(dispatcher, "_cache"):
        try:
            dispatcher._cache = _StampedCache(py_func)
            _caches.append(dispatcher._cache)
        except RuntimeError as error:  # numba: "no locator available"
            logging.getLogger("streamsvm").debug("no compile cache for %s: %s", py_func.__name__, error)
    return dispatcher


def compiled(py_func: F) -> F:
    """Compile `py_func` with IEEE arithmetic in source order, without the GIL, cached on disk."""
    return _compile(py_func, set(), entry=True)


def inner(py_func: F) -> F:
    """Like `compiled`, for functions that only compiled code calls.

    They get no wrapper for Python, which takes longer to compile than most of them.
    """
    return _compile(py_func, set(), entry=False)


def inner_fma(py_func: F) -> F:
    """Like `inner`, with a * b + c as one fused operation; each element's result is still in source order."""
    return _compile(py_func, {"contract"}, entry=False)


def inner_sum(py_func: F) -> F:
    """Like `inner_fma`, and a sum may be split over vector lanes (its order then depends on its length only)."""
    return _compile(py_func, {"contract", "reassoc"}, entry=False)


def compiled_for(function: Callable[..., Any], kind: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make what is decorated the compiled `function` where its first argument is a named tuple of this class."""

    def register(implementation: Callable[..., Any]) -> Callable[..., Any]:
        def choose(first: Any, *others: Any) -> Callable[..., Any] | None:
            return implementation if getattr(first, "instance_class", None) is kind else None

        overload(function, strict=False)(choose)
        return implementation

    return register
