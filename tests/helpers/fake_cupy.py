"""As much of CuPy as streamsvm.core.device uses, over numpy: what is on the "device" mixes with nothing on the host.

Memory is counted, and refused above `LIMIT`.  The C formulas of fused kernels are evaluated as Python, so that their
text is what is tested; whether they compile is for tests/gpu to say.
"""

import sys
import types
import weakref

import numpy as np

LIMIT = [1 << 40]  # bytes of the "device"
live = [0]  # bytes that arrays on it take
largest = [0]  # the most they have taken
sent = [0]  # bytes from host to device
launched = [0]  # fused kernels and matrix products
released = [0]  # times that memory was given back
DEVICES = [1]
missing = [None]  # a library that cannot be loaded


class OutOfMemoryError(MemoryError):
    """As `cupy.cuda.memory.OutOfMemoryError`."""


class CUDARuntimeError(RuntimeError):
    """As `cupy.cuda.runtime.CUDARuntimeError`."""


class CUBLASError(RuntimeError):
    """As `cupy_backends.cuda.libs.cublas.CUBLASError`."""


class CompileException(Exception):  # noqa: N818 - its name
    """As `cupy.cuda.compiler.CompileException`."""


def _freed(n):
    live[0] -= n


class DeviceArray:
    """An array that only this module's functions can compute with."""

    __array_priority__ = 100.0

    def __init__(self, a, owner=None):
        self.a = a
        self.owner = owner  # a view keeps the memory it looks at
        if owner is None:
            if live[0] + a.nbytes > LIMIT[0]:
                raise OutOfMemoryError(f"out of memory allocating {a.nbytes} bytes")
            live[0] += a.nbytes
            largest[0] = max(largest[0], live[0])
            weakref.finalize(self, _freed, a.nbytes)

    def __array__(self, *args, **kwargs):
        raise TypeError("implicit conversion to a host array is not allowed")

    shape = property(lambda self: self.a.shape)
    dtype = property(lambda self: self.a.dtype)
    T = property(lambda self: DeviceArray(self.a.T, self.owner or self))

    def __len__(self):
        return len(self.a)

    def __getitem__(self, key):
        a = self.a[_index(key)]
        return DeviceArray(a, self.owner or self) if np.may_share_memory(a, self.a) else DeviceArray(a)

    def __setitem__(self, key, value):
        self.a[_index(key)] = _own(value)

    def __lt__(self, other):
        return DeviceArray(self.a < _scalar(other))

    def astype(self, dtype):
        with np.errstate(all="ignore"):
            return DeviceArray(self.a.astype(dtype))

    def __matmul__(self, other):
        if missing[0]:
            raise RuntimeError(f"CuPy failed to load {missing[0]}")
        launched[0] += 1
        with np.errstate(all="ignore"):
            return DeviceArray(self.a @ _own(other))


def _own(value):
    if not isinstance(value, DeviceArray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value.a


def _scalar(value):
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {type(value)}")
    return value


def _index(key):
    """Slices, None, and arrays on the device."""
    if isinstance(key, tuple):
        return tuple(_index(k) for k in key)
    return key.a if isinstance(key, DeviceArray) else _scalar(key)


def asarray(a):
    sent[0] += a.nbytes
    return DeviceArray(np.array(a))


def asnumpy(a):
    return _own(a).copy()


def zeros(shape, dtype):
    return DeviceArray(np.zeros(shape, dtype))


def arange(n):
    return DeviceArray(np.arange(n))


def where(condition, a, b):
    return DeviceArray(np.where(_own(condition), _own(a), _scalar(b)))


def searchsorted(a, v, side="left"):
    return DeviceArray(np.searchsorted(_own(a), _own(v), side))


C = {"exp": np.exp, "max": np.maximum, "pow": np.power, "tanh": np.tanh, "float": np.float32, "double": np.float64}


def _values(params, args):
    """What a fused kernel sees: arrays on the host are refused, and whatever has another type than declared."""
    values = {}
    for (dtype, name), a in zip(params, args, strict=True):
        values[name] = a.a if isinstance(a, DeviceArray) else _scalar(a)
        if values[name].dtype != dtype:
            raise TypeError(f"Type is mismatched. {name} {values[name].dtype} {dtype}")
    return values


def _params(text):
    return [tuple(param.split()) for param in text.split(",")]


class ElementwiseKernel:
    def __init__(self, in_params, out_params, operation, name):
        self.params, ((_, self.result),), self.operation = _params(in_params), _params(out_params), operation

    def __call__(self, *args):
        *args, out = args
        launched[0] += 1
        target, formula = self.operation.split("=", 1)
        assert target.strip() == self.result
        with np.errstate(all="ignore"):
            k = eval(formula, C, _values(self.params, args))  # noqa: S307
        assert k.dtype == out.a.dtype
        out.a[...] = k
        return out


class ReductionKernel:
    def __init__(self, in_params, out_params, map_expr, reduce_expr, post_map_expr, identity, name):
        ((_, result),) = _params(out_params)
        assert (reduce_expr, post_map_expr.replace(" ", ""), identity) == ("a + b", f"{result}=a", "0")
        self.params, self.formula = _params(in_params), map_expr

    def __call__(self, *args, axis):
        launched[0] += 1
        with np.errstate(all="ignore"):
            terms = eval(self.formula, C, _values(self.params, args))  # noqa: S307
        return DeviceArray(terms.sum(axis=axis))


class _Pool:
    def free_bytes(self):
        return 0

    def free_all_blocks(self):
        released[0] += 1


def get_default_memory_pool():
    return _Pool()


def get_default_pinned_memory_pool():
    return _Pool()


def _device_count():
    if DEVICES[0] < 0:
        raise CUDARuntimeError(
            "cudaErrorInsufficientDriver: CUDA driver version is insufficient for CUDA runtime version"
        )
    return DEVICES[0]


cuda = types.SimpleNamespace(
    runtime=types.SimpleNamespace(
        getDeviceCount=_device_count,
        memGetInfo=lambda: (LIMIT[0] - live[0], LIMIT[0]),
        getDeviceProperties=lambda number: {"name": b"fake"},
    ),
    Device=lambda: types.SimpleNamespace(id=0),
)


def install(monkeypatch):
    """Be CuPy for a test."""
    for counter in (live, largest, sent, launched, released):
        counter[0] = 0
    LIMIT[0], DEVICES[0], missing[0] = 1 << 40, 1, None
    monkeypatch.setitem(sys.modules, "cupy", sys.modules[__name__])
