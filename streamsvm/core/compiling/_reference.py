"""Large named tuples of arrays, which compiled functions pass on as one pointer.

Numba hands a named tuple over as separate values: seven for an array, 240 for an expansion.  Every call then compiles
and runs slowly: learning took 1.3 to 2.5 times as long.  Here the wrapper that Python calls writes the address and the
shape of each array into a table, and functions get a pointer to the table.  Python's tuple keeps the arrays alive
during the call, so compiled code counts no references to them.

The arrays must be contiguous, in C order, of one or two dimensions; others are refused.  The wrapper compares their
types with those that it was compiled for, because `_dispatch` looks at the tuple's class only.

A compiled function that works on many such tuples gets their tables as the rows of one matrix: `keep_reference` writes
a row, and `reference_at` reads it.
"""

import functools
from typing import Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof, typeof_impl
from numba.extending import NativeValue, infer_getattr, intrinsic, lower_getattr_generic, register_model, unbox
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import as_dtype

from streamsvm.core.compiling._dispatch import BY_REFERENCE

WORD, HALF, BYTE = ir.IntType(64), ir.IntType(32), ir.IntType(8)
WORDS = 3  # of an array in the table: its address, its first and its last length
# Where numpy's array object has its fields, and the object of its dtype: numpy's binary interface promises all of them.
HEAD = object.__basicsize__
ADDRESS, DIMENSIONS, LENGTHS, DTYPE, FLAGS = HEAD, HEAD + 8, HEAD + 16, HEAD + 40, HEAD + 48
BYTE_ORDER, NUMBER = HEAD + 10, HEAD + 12


def _flags(mutable: bool) -> int:
    """The flags of an array in C order that is aligned, and may be written to if it is mutable."""
    view = np.zeros((2, 2))[:]  # of memory that is not its own: no other flag
    view.flags.writeable = mutable
    return view.flags.num


binding.add_symbol("streamsvm.ndarray", id(np.ndarray))


class Reference(types.Type):
    """The type of a named tuple that is passed as a pointer.

    Parameters
    ----------
    instance_class
        The named tuple's class.
    kinds
        The types of its arrays.
    """

    def __init__(self, instance_class: Any, kinds: tuple[types.Array, ...]) -> None:
        self.instance_class, self.fields, self.kinds = instance_class, instance_class._fields, kinds
        names = ", ".join(map(str, kinds))
        super().__init__(f"{instance_class.__module__}.{instance_class.__qualname__}({names})")


@register_model(Reference)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, WORD.as_pointer())


def by_reference(instance_class: Any) -> Any:
    """Let compiled functions take a named tuple of arrays of this class as a pointer."""

    @typeof_impl.register(instance_class)
    def _(value: Any, context: Any) -> Reference:
        kinds = tuple(map(typeof, value))
        for name, kind in zip(instance_class._fields, kinds, strict=True):
            if not (isinstance(kind, types.Array) and kind.layout == "C" and kind.ndim in (1, 2)):
                raise TypeError(f"{instance_class.__name__}.{name} is {kind}: it must be contiguous, in C order")
        return Reference(instance_class, kinds)

    BY_REFERENCE.add(instance_class)
    return instance_class


def _expected(kind: types.Array) -> tuple[int, int, int]:
    """The number of dimensions, the number of the dtype, and the flags of an array of this type."""
    return kind.ndim, as_dtype(kind.dtype).num, _flags(kind.mutable)


class _Memory:
    """Reads numbers at an address."""

    def __init__(self, builder: Any, address: Any) -> None:
        self.builder, self.address = builder, address

    def at(self, offset: int, kind: Any = WORD) -> Any:
        place = self.builder.gep(self.address, [WORD(offset)])
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()))

    def pointed(self, offset: int) -> "_Memory":
        return _Memory(self.builder, self.builder.inttoptr(self.at(offset), BYTE.as_pointer()))


def _is_array(b: Any, array: _Memory) -> Any:
    """Whether a Python object is an array, and no instance of a subclass."""
    name = "streamsvm.ndarray"
    known = b.module.globals.get(name) or ir.GlobalVariable(b.module, BYTE, name)
    return b.icmp_unsigned("==", array.at(HEAD - 8), b.ptrtoint(known, WORD))


def _is_expected(b: Any, array: _Memory, expected: _Memory) -> Any:
    """Whether an array has the expected type."""
    dtype, flags = array.pointed(DTYPE), HALF(_flags(True))
    order = dtype.at(BYTE_ORDER, BYTE)
    found = array.at(DIMENSIONS, HALF), dtype.at(NUMBER, HALF), b.and_(array.at(FLAGS, HALF), flags)
    equal = [b.icmp_unsigned("==", value, expected.at(4 * k, HALF)) for k, value in enumerate(found)]
    native = [b.icmp_unsigned("==", order, BYTE(ord(sign))) for sign in "=|"]
    return functools.reduce(b.and_, equal, b.or_(*native))


@unbox(Reference)
def _unbox(kind: Reference, values: Any, c: Any) -> NativeValue:
    b, n = c.builder, len(kind.kinds)
    table = b.bitcast(cgutils.alloca_once(b, ir.ArrayType(WORD, n * WORDS)), WORD.as_pointer())
    fits = cgutils.alloca_once_value(b, ir.IntType(1)(1))
    get_item = c.pyapi._get_function(ir.FunctionType(BYTE.as_pointer(), [BYTE.as_pointer(), WORD]), "PyTuple_GetItem")
    numbers = [HALF(number) for of in kind.kinds for number in _expected(of)]
    constant = cgutils.global_constant(b, "expected", ir.Constant(ir.ArrayType(HALF, len(numbers)), numbers))
    with cgutils.for_range(b, WORD(n)) as loop:
        array = _Memory(b, b.call(get_item, [values, loop.index]))
        with cgutils.if_unlikely(b, b.not_(_is_array(b, array))):
            b.store(ir.IntType(1)(0), fits)
            loop.do_break()
        expected = b.gep(b.bitcast(constant, BYTE.as_pointer()), [b.mul(loop.index, WORD(12))])
        with cgutils.if_unlikely(b, b.not_(_is_expected(b, array, _Memory(b, expected)))):
            b.store(ir.IntType(1)(0), fits)
            loop.do_break()
        lengths = array.pointed(LENGTHS)
        last = b.sub(b.zext(array.at(DIMENSIONS, HALF), WORD), WORD(1))
        row = b.mul(loop.index, WORD(WORDS))
        last_length = b.load(b.gep(b.bitcast(lengths.address, WORD.as_pointer()), [last]))
        for k, value in enumerate((array.at(ADDRESS), lengths.at(0), last_length)):
            b.store(value, b.gep(table, [b.add(row, WORD(k))]))
    refused = b.not_(b.load(fits))
    with cgutils.if_unlikely(b, refused):
        c.pyapi.err_set_string("PyExc_TypeError", f"an array of {kind.instance_class.__name__} is of another type")
    return NativeValue(table, is_error=refused)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        return kind.kinds[kind.fields.index(name)] if name in kind.fields else None


@lower_getattr_generic(Reference)
def _lower_attribute(context: Any, builder: Any, kind: Reference, table: Any, name: str) -> Any:
    place = kind.fields.index(name)
    of = kind.kinds[place]
    address, first, last = (builder.load(builder.gep(table, [WORD(place * WORDS + k)])) for k in range(WORDS))
    array = make_array(of)(context, builder)
    itemsize = WORD(context.get_abi_sizeof(context.get_data_type(of.dtype)))
    shape, strides = ([first], [itemsize]) if of.ndim == 1 else ([first, last], [builder.mul(last, itemsize), itemsize])
    data = builder.inttoptr(address, array.data.type)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


def n_words(instance_class: Any) -> int:
    """The length of a table."""
    return WORDS * len(instance_class._fields)


def _words(context: Any, builder: Any, kind: Any, words: Any) -> Any:
    return builder.bitcast(make_array(kind)(context, builder, words).data, WORD.as_pointer())


@intrinsic
def keep_reference(typing_context: Any, values: Any, words: Any) -> Any:
    """Write the table of a named tuple into `words`, (n_words,) int64."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        target = _words(context, builder, signature.args[1], given[1])
        cgutils.raw_memcpy(builder, target, given[0], WORD(n_words(values.instance_class)), 8)
        return context.get_dummy_value()

    return types.none(values, words), generate


@intrinsic
def reference_at(typing_context: Any, like: Any, words: Any) -> Any:
    """The named tuple whose table `words` has.  It is of the class of `like`, and something must own its arrays."""

    def generate(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return _words(context, builder, signature.args[1], given[1])

    return like(like, words), generate
