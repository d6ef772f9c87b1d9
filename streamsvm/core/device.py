"""Kernel values on a GPU: of a model's members with blocks of queries, and among the examples of a training set.

    f(x_t) = sum_s alpha_s k(x_s, x_t),     K_ts = k(x_s, x_t)

Inner products are one matrix product (GEMM); one fused kernel then turns them into kernel values, or into kernel values
times coefficients, summed over the members in float64, so that no block of kernel values is written at all.

A model's members change a little at a time, so the device holds a *mirror* of them that follows: who has joined is
sent, the last ones take the places of who has left.  Coefficients are sent for each block.  Members are told apart by
the `serial` of their slot.  For the models all is float32, as on the CPU; for training sets float64, as there.

The code asks an array module for everything, CuPy where there is a GPU.  Blocks of queries are cut so that what they
need is at most `CHUNK_BYTES` and half of the free memory; where even that is refused they are halved.  If the device
fails for good, a warning says so and the CPU goes on.

========= ================================================================ ================
symbol    name                                                             shape, dtype
========= ================================================================ ================
X         features of the members, or of the examples; on the device       (n, D)
sq        their squared norms, on the device                               (n,)
serials   whose features are in each place of a mirror                     (n,) int64
places    where in the mirror the member of each slot is                   (slots,) int64
Q, sq_q   features and squared norms of a block of queries, on the device  (B, D), (B, 1)
P         inner products, or kernel values, on the device                  (B, n)
========= ================================================================ ================

Deviation from `blocks`: a GEMM adds in an order of its own, so values agree with the CPU's to rounding only, and a
model learned here is not the CPU's bit for bit.
"""

import functools
import sys
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from streamsvm.core import blocks
from streamsvm.core.blocks import BLOCK, LARGEST_SQUARED_NORM, NO_PRODUCTS, Queries, by_fours
from streamsvm.core.expansion import EVALUATIONS, SLOTS, WIDTH, Expansion
from streamsvm.core.kernels import Kernel
from streamsvm.core.storage import live_slots, n_members, rows_of

DEVICES = ("cpu", "cuda", "auto")
QUERIES_AT_ONCE = 8192  # that a model is asked about at once when it has a device,
HOST_BYTES = 64 << 20  # and so many bytes of them, before their zeros are left out
CHUNK_BYTES = 256 << 20  # of working memory: larger products are no faster, and others may want the device too
SHARE_OF_FREE = 0.5  # of the device's free memory, likewise
MIN_CHUNK = 64  # queries below which halving a block that does not fit is no use
# device="auto", in terms of what the CPU would do.  A call of the device takes about half a millisecond whatever it
# computes, in which one core adds some 10^7 products; the factor of 5 is for slow devices and several cores.
AUTO_WORK = 5e7  # products of two numbers, below which the CPU is as fast
AUTO_DENSITY = 0.02  # of non-zero features, below which a dense product does more than the device makes up for
AUTO_FEATURES = 64  # non-zero ones of a query, below which sending its inner products back takes as long as adding them

LOADING = (ImportError, OSError, RuntimeError)  # what CuPy raises where a library of CUDA cannot be loaded
OUT_OF_MEMORY = ("ALLOC_FAILED", "OUT_OF_MEMORY", "MemoryAllocation")  # of cuBLAS, the driver and the runtime


class NoDevice(RuntimeError):  # noqa: N818 - says what is missing
    """There is no GPU to use, or no CuPy to use it by."""


def require_device(device: Any) -> None:
    """Raise a ValueError unless this names a device."""
    if device not in DEVICES:
        raise ValueError(f'device={device!r} must be "cpu", "cuda" or "auto"')


# ---------------------------------------------------------------------------------------------------------- the device


class Gpu:
    """The array module of a GPU, and what is left of its memory.

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
                raise NoDevice(_reason(error)) from error
            raise
        if count == 0:
            raise NoDevice("CUDA finds no device")

    def has_raised(self, error: BaseException) -> bool:
        """Whether an error is CuPy's: of its memory, compiler or runtime, of cuBLAS, or that a library is missing."""
        if type(error).__module__.startswith(self.xp.__name__):
            return True
        step = error.__traceback__
        while step is not None and step.tb_next is not None:
            step = step.tb_next
        raised_in = "" if step is None else step.tb_frame.f_globals.get("__name__", "")
        return isinstance(error, LOADING) and raised_in.startswith(self.xp.__name__)

    def is_out_of_memory(self, error: BaseException) -> bool:
        """Whether the device had no memory left, whoever needed it."""
        return self.has_raised(error) and (
            isinstance(error, MemoryError) or any(word in str(error) for word in OUT_OF_MEMORY)
        )

    @property
    def name(self) -> str:
        """What its maker calls it."""
        return str(self.xp.cuda.runtime.getDeviceProperties(self.xp.cuda.Device().id)["name"].decode())

    def free_bytes(self) -> int:
        """What could be allocated: what the device has left, and what CuPy's pool keeps for this process."""
        return int(self.xp.cuda.runtime.memGetInfo()[0] + self.xp.get_default_memory_pool().free_bytes())

    def release(self) -> None:
        """Give what nothing uses any more back, for other processes: memory of the device, and pinned memory."""
        self.xp.get_default_memory_pool().free_all_blocks()
        self.xp.get_default_pinned_memory_pool().free_all_blocks()

    def chunk(self, bytes_each: int) -> int:
        """How many queries to work on at once that take so much memory each."""
        allowed = min(CHUNK_BYTES, int(SHARE_OF_FREE * self.free_bytes()))
        return max(MIN_CHUNK, allowed // max(bytes_each, 1))

    def dense(self, indptr: np.ndarray, indices: np.ndarray, values: np.ndarray, width: int, dtype: Any) -> Any:
        """Compressed rows as a matrix on the device; features beyond its width are left out."""
        known = indices < width
        if not known.all():
            indptr = np.concatenate([[0], np.cumsum(known)])[indptr]
            indices, values = indices[known], values[known]
        out = self.xp.zeros((len(indptr) - 1, width), dtype)
        rows = self.xp.searchsorted(self.xp.asarray(indptr[1:]), self.xp.arange(len(indices)), side="right")
        out[rows, self.xp.asarray(indices)] = self.xp.asarray(values)
        return out

    def arranged(self, table: np.ndarray, columns: np.ndarray, width: int) -> tuple[Any, Any]:
        """A table on the device with its columns where they belong, those beyond the width left out; squared norms."""
        given, known = self.xp.asarray(table).astype(np.float32), (columns >= 0) & (columns < width)
        out = self.xp.zeros((len(table), width), np.float32)
        source, target = (self.xp.asarray(places) for places in (np.flatnonzero(known), columns[known]))
        out[:, target] = given[:, source]
        return out, squared_norms(self.xp)(given, axis=1)


@functools.cache
def find_gpu() -> Gpu:
    """The GPU.

    Raises
    ------
    NoDevice
        If there is none, or no CuPy.
    """
    try:
        xp = blocks.load_cupy()
    except (ImportError, OSError) as error:
        raise NoDevice(str(error)) from error
    return Gpu(xp)


# --------------------------------------------------------------------------------------------------------- the kernels

# By the kind of a kernel: k in terms of the inner product p and the squared norms, in C for one element.
FORMULAS = (
    "exp(-gamma * max(sq + sq_q - 2 * p, {real}(0)))",
    "p",
    "pow(gamma * p + coef0, degree)",
    "tanh(gamma * p + coef0)",
)
REALS = {"float32": "float", "float64": "double"}


@functools.cache
def kernel_values(xp: Any, kind: int, dtype: str) -> Callable[..., Any]:
    """The fused kernel (p, sq, sq_q, gamma, coef0, degree) -> k, elementwise."""
    formula = FORMULAS[kind].format(real=REALS[dtype])
    return xp.ElementwiseKernel(_arguments(dtype), f"{dtype} k", f"k = {formula}", f"kernel_values_{kind}_{dtype}")


@functools.cache
def weighted_sum(xp: Any, kind: int, dtype: str) -> Callable[..., Any]:
    """The fused kernel (p, sq, sq_q, gamma, coef0, degree, alpha) -> sum_s alpha_s k_s in float64, along an axis."""
    formula = FORMULAS[kind].format(real=REALS[dtype])
    return xp.ReductionKernel(
        f"{_arguments(dtype)}, float64 alpha",
        "float64 f",
        f"alpha * double({formula})",
        "a + b",
        "f = a",
        "0",
        f"weighted_sum_{kind}_{dtype}",
    )


@functools.cache
def squared_norms(xp: Any) -> Callable[..., Any]:
    """The fused kernel x -> sum_d x_d², along an axis; summed in float64, as on the CPU."""
    return xp.ReductionKernel(
        "float32 x", "float64 sq", "double(x) * double(x)", "a + b", "sq = a", "0", "squared_norms"
    )


def _arguments(dtype: str) -> str:
    return ", ".join(f"{dtype} {name}" for name in ("p", "sq", "sq_q", "gamma", "coef0", "degree"))


class Vectors(NamedTuple):
    """Examples on the device, and the kernel between them and others."""

    gpu: Gpu
    kernel: Kernel
    X: Any
    sq: Any

    @property
    def _constants(self) -> tuple[Any, ...]:
        real = self.sq.dtype.type
        return real(self.kernel.gamma), real(self.kernel.coef0), real(self.kernel.degree)

    def kernel_values(self, Q: Any, sq_q: Any) -> Any:
        """K, (B, n)."""
        P = Q @ self.X.T
        fused = kernel_values(self.gpu.xp, self.kernel.kind, self.sq.dtype.name)
        return fused(P, self.sq, sq_q, *self._constants, P)

    def weighted_sum(self, Q: Any, sq_q: Any, alpha: Any) -> Any:
        """sum_s alpha_s k(x_s, x_t) for each query, (B,) float64."""
        fused = weighted_sum(self.gpu.xp, self.kernel.kind, self.sq.dtype.name)
        # CuPy lays a reduction out for the inputs that lie dense along its results.  If the norms did, the products
        # would be read down their columns.
        spread = self.gpu.xp.zeros((len(sq_q), 2), sq_q.dtype)
        spread[:, :1] = sq_q
        return fused(Q @ self.X.T, self.sq, spread[:, :1], *self._constants, alpha, axis=1)

    @property
    def bytes_each(self) -> int:
        """Memory for one query: its row of products twice, its features, and the way they come in."""
        return int(self.sq.dtype.itemsize * (2 * len(self.X) + self.X.shape[1]) + 32 * self.X.shape[1])


def by_halves(gpu: Gpu, compute: Callable[[int, int], None], begin: int, end: int, at_once: int) -> None:
    """Have `compute` do begin..end, so many at a time, and fewer where the device is out of memory.

    What is raised for so few as `MIN_CHUNK` is raised.
    """
    while begin < end:
        stop, done = min(begin + at_once, end), True
        try:
            compute(begin, stop)
        except Exception as error:
            if stop - begin <= MIN_CHUNK or not gpu.is_out_of_memory(error):
                raise
            done = False
        if done:
            begin = stop
        else:  # only here, where the error's frames no longer keep what they had
            gpu.release()
            at_once = max(MIN_CHUNK, (stop - begin) // 2)


# ---------------------------------------------------------------------------------------------- as long as it works


class Device:
    """The device that a user chose, which is given up when it fails.

    Parameters
    ----------
    choice
        One of `DEVICES`.
    """

    def __init__(self, choice: str) -> None:
        self.choice = choice
        self.works = choice != "cpu"

    def attempt(self, compute: Callable[[Gpu], Any], drop: Callable[[], None]) -> Any:
        """What `compute` gives on the device; None if the device has failed, now or before.

        Whatever is raised, `drop` is called first, to let go of what the caller has there.
        """
        gpu = self.gpu()
        if gpu is None:
            return None
        try:
            return compute(gpu)
        except BaseException as error:
            drop()
            if not gpu.has_raised(error):
                raise
            reason = _reason(error)  # only its text: its frames would keep device memory
        gpu.release()
        self._give_up(reason)
        return None

    def gpu(self) -> Gpu | None:
        """The GPU if there is one."""
        if not self.works:
            return None
        try:
            return find_gpu()
        except NoDevice as error:
            self.works = False
            if self.choice == "cuda":
                self._give_up(str(error))
            return None

    def release(self) -> None:
        """Give what was let go of back to the device."""
        if self.works and find_gpu.cache_info().currsize:
            find_gpu().release()

    def _give_up(self, reason: str) -> None:
        self.works = False
        warnings.warn(
            f"device={self.choice!r} cannot be used ({reason}); the CPU computes from now on",
            RuntimeWarning,
            stacklevel=_level_of_the_caller(),
        )


def _level_of_the_caller() -> int:
    """Whose line a warning is to name, as its `stacklevel`: the first one outside this package."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] == __package__:
        level, frame = level + 1, frame.f_back
    return level


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


# ---------------------------------------------------------------------------------------------------- a model's members


class Mirror:
    """The members of an expansion on the device, kept up to date by sending only what has changed."""

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self.serials = np.zeros(0, np.int64)
        self.sent = 0  # members, so far
        self._X = gpu.xp.zeros((0, 0), np.float32)
        self._sq = gpu.xp.zeros(0, np.float32)
        self._live = self._followed = self._places = np.zeros(0, np.int64)

    def follow(self, s: Expansion) -> None:
        """Be the mirror of these members."""
        live = live_slots(s)
        wanted = s.serial[live]
        if not np.array_equal(wanted, self._followed):
            new = live[~np.isin(wanted, self.serials)]
            places = self._vacate(np.isin(self.serials, wanted), len(new))
            self._make_room(len(wanted), by_fours(int(s.counts[WIDTH])))
            self._send(s, new, places)
            order = np.argsort(self.serials)
            self._places = order[np.searchsorted(self.serials, wanted, sorter=order)]
        self._live, self._followed = live, wanted

    def _vacate(self, stays: np.ndarray, n_new: int) -> np.ndarray:
        """Places for new members: those of who has left, whose rest the last ones take, or else behind all others."""
        gaps, n = np.flatnonzero(~stays), len(stays)
        size = n - len(gaps) + n_new
        if n_new >= len(gaps):
            return np.concatenate([gaps, np.arange(n, size)])
        gaps, moving = gaps[gaps < size], size + np.flatnonzero(stays[size:])
        if len(moving):
            into, source = (self.gpu.xp.asarray(places) for places in (gaps[: len(moving)], moving))
            self._X[into], self._sq[into] = self._X[source], self._sq[source]
            self.serials[gaps[: len(moving)]] = self.serials[moving]
        return gaps[len(moving) :]

    def _make_room(self, n: int, width: int) -> None:
        xp, (capacity, old_width) = self.gpu.xp, self._X.shape
        used = min(n, len(self.serials))
        if n > capacity or width > old_width:
            capacity = capacity if n <= capacity else n + n // 4
            width = old_width if width <= old_width else by_fours(width + old_width // 4)
            X, sq = xp.zeros((capacity, width), np.float32), xp.zeros(capacity, np.float32)
            X[:used, :old_width], sq[:used] = self._X[:used], self._sq[:used]
            self._X, self._sq = X, sq
        self.serials = np.concatenate([self.serials[:used], np.full(n - used, -1)])

    def _send(self, s: Expansion, slots: np.ndarray, places: np.ndarray) -> None:
        width = self._X.shape[1]

        def send(begin: int, end: int) -> None:
            part = slots[begin:end]
            into = self.gpu.xp.asarray(places[begin:end])
            rows = rows_of(s, part, width)
            self._X[into] = self.gpu.dense(rows.indptr, rows.indices, rows.data, width, np.float32)
            self._sq[into] = self.gpu.xp.asarray(s.sq[part])

        by_halves(self.gpu, send, 0, len(slots), self.gpu.chunk(32 * width))
        self.serials[places] = s.serial[slots]
        self.sent += len(slots)

    def decide(self, s: Expansion, kernel: Kernel, q: Queries) -> np.ndarray:
        """sum_s alpha_s k(x_s, x_t) for each query, (B,)."""
        self.follow(s)
        vectors, out, alpha = self._vectors(kernel), np.empty(len(q.sq)), self._alpha(s)

        def decide(begin: int, end: int) -> None:
            values = vectors.weighted_sum(*self._queries(q.part(begin, end)), alpha)
            out[begin:end] = self.gpu.xp.asnumpy(values)

        by_halves(self.gpu, decide, 0, len(out), self.gpu.chunk(vectors.bytes_each))
        s.counts[EVALUATIONS] += len(out) * len(self.serials)
        return out

    def decide_table(self, s: Expansion, kernel: Kernel, table: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The same for the rows of a table whose features have these columns; NaN where they are too large."""
        self.follow(s)
        vectors, out, alpha = self._vectors(kernel), np.empty(len(table)), self._alpha(s)
        width, xp = self._X.shape[1], self.gpu.xp

        def decide(begin: int, end: int) -> None:
            Q, sq = self.gpu.arranged(table[begin:end], columns, width)
            values = vectors.weighted_sum(Q, sq.astype(np.float32)[:, None], alpha)
            out[begin:end] = xp.asnumpy(xp.where(sq < LARGEST_SQUARED_NORM, values, np.nan))

        by_halves(self.gpu, decide, 0, len(out), self.gpu.chunk(vectors.bytes_each + 16 * table.shape[1]))
        s.counts[EVALUATIONS] += len(out) * len(self.serials)
        return out

    def products(self, s: Expansion, q: Queries) -> tuple[np.ndarray, np.ndarray]:
        """P, by slot (what holes have there is nobody's), and G: see `blocks`."""
        self.follow(s)
        xp, X = self.gpu.xp, self._X[: len(self.serials)]
        place_of = np.zeros(int(s.counts[SLOTS]), np.int64)
        place_of[self._live] = self._places
        places, width = xp.asarray(place_of), max(X.shape[1], int(q.indices.max(initial=-1)) + 1)
        Q = self.gpu.dense(q.indptr, q.indices, q.values, width, np.float32)  # with features that no member has
        P, G = (np.empty((len(q.sq), columns), np.float32) for columns in (len(place_of), len(q.sq)))

        def multiply(begin: int, end: int) -> None:
            P[begin:end] = xp.asnumpy((Q[begin:end, : X.shape[1]] @ X.T)[:, places])
            G[begin:end] = xp.asnumpy(Q[begin:end] @ Q.T)

        by_halves(self.gpu, multiply, 0, len(q.sq), self.gpu.chunk(8 * len(place_of)))
        return P, G

    def _alpha(self, s: Expansion) -> Any:
        """The coefficients, by place."""
        alpha = np.empty(len(self.serials))
        alpha[self._places] = s.alpha[self._live]
        return self.gpu.xp.asarray(alpha)

    def _vectors(self, kernel: Kernel) -> Vectors:
        n = len(self.serials)
        return Vectors(self.gpu, kernel, self._X[:n], self._sq[:n])

    def _queries(self, q: Queries) -> tuple[Any, Any]:
        Q = self.gpu.dense(q.indptr, q.indices, q.values, self._X.shape[1], np.float32)
        return Q, self.gpu.xp.asarray(q.sq)[:, None]


class Evaluator:
    """What a model has its blocks of kernel values from: the CPU, or a device while that works and is worth it.

    Parameters
    ----------
    device
        One of `DEVICES`.
    """

    def __init__(self, device: str) -> None:
        self.device = Device(device)
        self.mirror: Mirror | None = None

    def queries_at_once(self, s: Expansion, n_queries: int) -> int:
        """In blocks of how many to ask."""
        width = int(s.counts[WIDTH])
        if not self._pays(s, n_queries, n_queries * width) or self.device.gpu() is None:
            return BLOCK
        return min(QUERIES_AT_ONCE, max(BLOCK, HOST_BYTES // (8 * max(width, 1))))

    def decide(self, s: Expansion, kernel: Kernel, q: Queries, b: float) -> np.ndarray:
        """f(x) = sum_s alpha_s k(x_s, x) + b for each query, (B,)."""
        if self._pays(s, len(q.sq), len(q.indices)):
            f = self._attempt(lambda mirror: mirror.decide(s, kernel, q))
            if f is not None:
                return np.asarray(f + b)
        begins = range(0, len(q.sq), BLOCK)
        parts = [blocks.decide(s, kernel, q.part(t, min(t + BLOCK, len(q.sq))), b) for t in begins]
        return np.concatenate(parts) if len(parts) != 1 else parts[0]

    def decide_table(
        self, s: Expansion, kernel: Kernel, table: np.ndarray, columns: np.ndarray, b: float
    ) -> np.ndarray | None:
        """f(x) for the rows of a table whose features have these columns, NaN where they are too large.

        None if the device is not to be used: the CPU wants compressed rows.
        """
        if table.size == 0 or not self._pays(s, len(table), table.size):
            return None
        f = self._attempt(lambda mirror: mirror.decide_table(s, kernel, table, columns))
        return None if f is None else np.asarray(f + b)

    def products(self, s: Expansion, q: Queries, within: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """P and, if `within`, G for a block of examples (see `blocks`); both empty where rows are faster."""
        dense = len(q.indices) >= AUTO_FEATURES * len(q.sq) or self.device.choice == "cuda"
        if dense and self._pays(s, len(q.sq), len(q.indices)):
            products = self._attempt(lambda mirror: mirror.products(s, q))
            if products is not None:
                return products
        return blocks.inner_products(s, q, within) if blocks.prefers_product(s, q) else (NO_PRODUCTS, NO_PRODUCTS)

    def _pays(self, s: Expansion, n_queries: int, nnz: int) -> bool:
        """Whether the device is to be tried for queries with so many non-zero features."""
        n = n_members(s)
        if not self.device.works or n == 0 or n_queries == 0:
            return False
        return self.device.choice == "cuda" or is_worth_it(n, nnz, n_queries * int(s.counts[WIDTH]))

    def _attempt(self, compute: Callable[[Mirror], Any]) -> Any:
        return self.device.attempt(lambda gpu: compute(self._mirror_on(gpu)), self._drop)

    def _drop(self) -> None:
        self.mirror = None

    def _mirror_on(self, gpu: Gpu) -> Mirror:
        if self.mirror is None:
            self.mirror = Mirror(gpu)
        return self.mirror


def is_worth_it(n: int, nnz: int, entries: int) -> bool:
    """Whether "auto" takes the device for the kernel values of n vectors with others, `nnz` of `entries` non-zero."""
    return n * nnz >= AUTO_WORK and nnz >= AUTO_DENSITY * entries


# -------------------------------------------------------------------------------------------------------- training sets


class Gram:
    """Kernel values of a training set, among its examples and with others, in float64.

    Parameters
    ----------
    gpu, kernel
        What to compute, and where.
    examples
        In compressed rows, (n, D) float64.
    sq
        Their squared norms, (n,).
    """

    def __init__(self, gpu: Gpu, kernel: Kernel, examples: sp.csr_matrix, sq: np.ndarray) -> None:
        X = gpu.xp.zeros(examples.shape, np.float64)
        self._gpu = gpu
        self._vectors = Vectors(gpu, kernel, X, gpu.xp.asarray(sq))

        def send(begin: int, end: int) -> None:
            X[begin:end] = self._dense(examples[begin:end])

        by_halves(gpu, send, 0, len(sq), gpu.chunk(32 * X.shape[1]))

    def _dense(self, examples: sp.csr_matrix) -> Any:
        return self._gpu.dense(examples.indptr, examples.indices, examples.data, examples.shape[1], np.float64)

    def rows(self, ids: np.ndarray, keep: Callable[[np.ndarray, np.ndarray], None]) -> None:
        """Compute the kernel rows of these examples, and have `keep` take some of them at a time: ids, (b, n)."""
        X, sq = self._vectors.X, self._vectors.sq

        def compute(begin: int, end: int) -> None:
            part = self._gpu.xp.asarray(ids[begin:end])
            keep(ids[begin:end], self._gpu.xp.asnumpy(self._vectors.kernel_values(X[part], sq[part][:, None])))

        by_halves(self._gpu, compute, 0, len(ids), self._gpu.chunk(self._vectors.bytes_each))

    def expand(self, examples: sp.csr_matrix, sq: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """sum_s beta_s k(x_s, x_t) for other examples of the same width, (B,)."""
        out, coefficients = np.empty(len(sq)), self._gpu.xp.asarray(beta)

        def compute(begin: int, end: int) -> None:
            sq_q = self._gpu.xp.asarray(sq[begin:end])[:, None]
            values = self._vectors.weighted_sum(self._dense(examples[begin:end]), sq_q, coefficients)
            out[begin:end] = self._gpu.xp.asnumpy(values)

        by_halves(self._gpu, compute, 0, len(sq), self._gpu.chunk(self._vectors.bytes_each))
        return out
