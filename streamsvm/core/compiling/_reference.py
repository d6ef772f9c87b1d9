"""Large named tuples of arrays, which compiled functions pass on as one pointer.

Numba hands a named tuple over as separate values: seven for an array, 240 for an expansion.  Every call then compiles
and runs slowly: learning took 1.3 to 2.5 times as long.  Here the wrapper that Python calls writes the address and the
shape of each array into a table, and functions get a pointer to the table.  Python's tuple keeps the arrays alive
during the call, so compiled code counts no references to them.

The arrays must be contiguous, in C order, of one or two dimensions; others are refused.

A compiled function that works on many such tuples gets their tables as the rows of one matrix: `keep_reference` writes
a row, and `reference_at` reads it.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.core.typing.typeof import typeof, typeof_impl
from numba.extending import NativeValue, infer_getattr, intrinsic, lower_getattr_generic, register_model, unbox
from numba.np.arrayobj import make_array, populate_array

WORD = ir.IntType(64)
WORDS = 3  # of an array in the table: its address, its first and its last length
# Where numpy's array object has its address and the pointer to its lengths: its binary interface promises both.
ADDRESS, LENGTHS = object.__basicsize__, object.__basicsize__ + 16


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

    return instance_class


@unbox(Reference)
def _unbox(kind: Reference, values: Any, c: Any) -> NativeValue:
    b, n = c.builder, len(kind.kinds)
    table = b.bitcast(cgutils.alloca_once(b, ir.ArrayType(WORD, n * WORDS)), WORD.as_pointer())
    byte = ir.IntType(8).as_pointer()
    get_item = c.pyapi._get_function(ir.FunctionType(byte, [byte, WORD]), "PyTuple_GetItem")

    def word_at(address: Any, offset: int) -> Any:
        return b.load(b.bitcast(b.gep(address, [WORD(offset)]), WORD.as_pointer()))

    with cgutils.for_range(b, WORD(n)) as loop:
        array = b.call(get_item, [values, loop.index])
        lengths = b.inttoptr(word_at(array, LENGTHS), WORD.as_pointer())
        dimensions = b.and_(word_at(array, ADDRESS + 8), WORD(0xFF))
        last = b.load(b.gep(lengths, [b.sub(dimensions, WORD(1))]))
        row = b.mul(loop.index, WORD(WORDS))
        for k, value in enumerate((word_at(array, ADDRESS), b.load(lengths), last)):
            b.store(value, b.gep(table, [b.add(row, WORD(k))]))
    return NativeValue(table)


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
