"""A GPU through CuPy's array module: its memory, its errors, and how matrices get there.

Blocks of work need at most `CHUNK_BYTES`.  Where the device has less memory left, `by_halves` makes them smaller.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

CHUNK_BYTES = 256 << 20  # of working memory: larger products are no faster, and others may want the device too

LOADING = (ImportError, OSError, RuntimeError)  # what CuPy raises if a library of CUDA cannot be loaded
OUT_OF_MEMORY = ("ALLOC_FAILED", "OUT_OF_MEMORY", "MemoryAllocation")  # of cuBLAS, the driver and the runtime


class NoDevice(RuntimeError):  # noqa: N818 - says what is missing
    """There is no GPU, or CuPy cannot be imported."""


class Gpu:
    """The array module of a GPU, and the GPU's memory.

    Parameters
    ----------
    xp
        CuPy.

    Raises
    ------
    NoDevice
        If there is no driver, or no device.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        try:
            count = xp.cuda.runtime.getDeviceCount()
        except Exception as error:
            if self.has_raised(error):
                raise NoDevice(reason_of(error)) from error
            raise
        if count == 0:
            raise NoDevice("CUDA finds no device")

    def has_raised(self, error: BaseException) -> bool:
        """Whether an error comes from CuPy: its memory, compiler or runtime, cuBLAS, or a missing library."""
        if type(error).__module__.startswith(self.xp.__name__):
            return True
        step = error.__traceback__
        while step is not None and step.tb_next is not None:
            step = step.tb_next
        raised_in = "" if step is None else step.tb_frame.f_globals.get("__name__", "")
        return isinstance(error, LOADING) and raised_in.startswith(self.xp.__name__)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether an error says that the device has no memory left."""
        return self.has_raised(error) and (
            isinstance(error, MemoryError) or any(word in str(error) for word in OUT_OF_MEMORY)
        )

    @property
    def name(self) -> str:
        """The name that its maker gave it."""
        return str(self.xp.cuda.runtime.getDeviceProperties(self.xp.cuda.Device().id)["name"].decode())

    def release(self) -> None:
        """Give unused memory, on the device and pinned, back for other processes."""
        self.xp.get_default_memory_pool().free_all_blocks()
        self.xp.get_default_pinned_memory_pool().free_all_blocks()

    def chunk(self, bytes_each: int) -> int:
        """The number of queries to work on at once, if each takes this much memory."""
        return max(1, CHUNK_BYTES // max(bytes_each, 1))

    def dense(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int, dtype: Any) -> Any:
        """Compressed rows as a matrix on the device, without features beyond its width."""
        known = indices < width
        if not known.all():
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            indices, values = indices[known], values[known]
        out = self.xp.zeros((len(indptr) - 1, width), dtype)
        rows = self.xp.searchsorted(self.xp.asarray(indptr[1:]), self.xp.arange(len(indices)), side="right")
        out[rows, self.xp.asarray(indices)] = self.xp.asarray(values)
        return out

    def arranged(self, table: np.ndarray, columns: np.ndarray, width: int) -> tuple[Any, Any]:
        """A table on the device with its columns in their places, without those beyond the width; and squared norms."""
        given, known = self.xp.asarray(table).astype(np.float32), (columns >= 0) & (columns < width)
        out = self.xp.zeros((len(table), width), np.float32)
        source, target = (self.xp.asarray(places) for places in (np.flatnonzero(known), columns[known]))
        out[:, target] = given[:, source]
        return out, squared_norms(self.xp)(given, axis=1)


def load_cupy() -> Any:
    """CuPy, imported when a device is first asked for."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            f'CuPy cannot be imported ({error}); pip install "streamsvm[gpu12]" for CUDA 12, "streamsvm[gpu13]" for 13'
        ) from error
    return cupy


@functools.cache
def find_gpu() -> Gpu:
    """The GPU.

    Raises
    ------
    NoDevice
        If there is none, or no CuPy.
    """
    try:
        xp = load_cupy()
    except (ImportError, OSError) as error:
        raise NoDevice(str(error)) from error
    return Gpu(xp)


@functools.cache
def squared_norms(xp: Any) -> Callable[..., Any]:
    """The fused kernel x -> sum_d x_d², along an axis; summed in float64, as on the CPU."""
    return xp.ReductionKernel(
        "float32 x", "float64 sq", "double(x) * double(x)", "a + b", "sq = a", "0", "squared_norms"
    )


def by_halves(gpu: Gpu, compute: Callable[[int, int], None], begin: int, end: int, at_once: int) -> None:
    """Have `compute` do begin..end, `at_once` at a time, and fewer where the device is out of memory.

    An error for a single one is raised.
    """
    while begin < end:
        stop, done = min(begin + at_once, end), True
        try:
            compute(begin, stop)
        except Exception as error:
            if stop - begin == 1 or not gpu.is_out_of_memory(error):
                raise
            done = False
        if done:
            begin = stop
        else:  # only here the error's frames no longer keep their memory
            gpu.release()
            at_once = (stop - begin) // 2


def reason_of(error: BaseException) -> str:
    """The text of an error."""
    return f"{type(error).__name__}: {error}"
