"""Scalar intrinsics that the compiler turns into vector instructions.

Python's ``max`` and ``min`` follow NaN rules that keep LLVM from vectorising a reduction, and reinterpreting a float's
bits has no spelling in plain Python.  No argument of these functions is ever NaN.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic


def _select(operator: str, context, builder, signature, args):
    a, b = args
    keep_first = builder.fcmp_ordered(operator, a, b, flags=["fast"])
    return builder.select(keep_first, a, b, flags=["fast"])


@intrinsic
def fmax(typingctx, a, b):
    """The larger of two floats of one type, neither of them NaN."""

    def codegen(context, builder, signature, args):
        return _select(">", context, builder, signature, args)

    return a(a, a), codegen


@intrinsic
def fmin(typingctx, a, b):
    """The smaller of two floats of one type, neither of them NaN."""

    def codegen(context, builder, signature, args):
        return _select("<", context, builder, signature, args)

    return a(a, a), codegen


@intrinsic
def rounded_product(typingctx, a, b):
    """a * b of one type, never fused with an addition: of two products in a sum, this says which one is rounded."""

    def codegen(context, builder, signature, args):
        return builder.fmul(*args, flags=["arcp"])  # any flag but "contract"; without one, the function's are added

    return a(a, b), codegen


@intrinsic
def float32_bits(typingctx, x):
    """The bits of a float32 as an int32."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), codegen


@intrinsic
def float32_from_bits(typingctx, bits):
    """The float32 that has these 32 bits."""

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), codegen
