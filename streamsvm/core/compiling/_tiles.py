"""One tile of a matrix product, whose sums stay in vector registers.

A tile has `TILE_ROWS` queries and up to `TILE_VECTORS` vectors of members.  For each feature it loads the members'
values once and each query's value once, and adds all their products.  LLVM does not find this form by itself: it keeps
the sums in memory.  Each sum is one chain of additions in the order of the features, so its bits do not depend on the
tile's shape, which is the processor's.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from streamsvm.core.compiling._target import current

_FEATURES = current().has()
VECTOR_BYTES = 64 if "avx512f" in _FEATURES else 32 if "avx2" in _FEATURES else 16
# The sums, the members' values and one of a query's take 28 of the 32 registers of 64 bytes, or 16 of 16.
TILE_ROWS, TILE_VECTORS = (8, 3) if VECTOR_BYTES == 64 else (4, 3)
FUSED = ("contract",)  # as all code that adds up inner products


@intrinsic
def put_tile(typingctx, X, t, panel, begin, n_features, n_vectors, out, row, slot):
    """out[row + r, slot + s] = <X[t + r], the panel's s-th member> for all rows and vectors of a tile.

    The panel lies in a flat array from `begin` on: feature after feature, the values of its members.  Nothing checks
    the bounds: X must have `TILE_ROWS` rows from t on, and so must `out` from `row` on.
    """

    def codegen(context, builder, signature, args):
        x, values, sums = (make_array(signature.args[k])(context, builder, args[k]) for k in (0, 2, 6))
        tile = _Tile(context, builder, signature.args[6].dtype, x, values, sums)
        tile.begin, tile.n_features = args[3], args[4]
        tile.rows = [(_plus(builder, args[1], r), _plus(builder, args[7], r)) for r in range(TILE_ROWS)]
        done = builder.append_basic_block("done")
        switch = builder.switch(args[5], done)
        for n_vectors in range(1, TILE_VECTORS + 1):
            block = builder.append_basic_block(f"vectors.{n_vectors}")
            switch.add_case(args[5].type(n_vectors), block)
            builder.position_at_end(block)
            tile.put(n_vectors, args[8])
            builder.branch(done)
        builder.position_at_end(done)
        return context.get_dummy_value()

    number = types.intp
    return types.void(X, number, panel, number, number, number, out, number, number), codegen


def _plus(builder, number, constant):
    return builder.add(number, number.type(constant))


class _Tile:
    """The instructions of a tile with a given number of vectors."""

    def __init__(self, context, builder, dtype, x, panel, out):
        self.builder, self.x, self.panel, self.out = builder, x, panel, out
        self.real = context.get_data_type(dtype)
        size = context.get_abi_sizeof(self.real)
        self.lanes, self.align = VECTOR_BYTES // size, size
        self.vector = ir.VectorType(self.real, self.lanes)
        self.begin = self.n_features = None
        self.rows = []  # the row of each query in x, and that of its sums in `out`

    def put(self, n_vectors, slot):
        """Add all features up, and store the sums."""
        builder, vectors = self.builder, range(n_vectors)
        sums = [[cgutils.alloca_once(builder, self.vector) for _ in vectors] for _ in self.rows]  # become registers
        for each in sums:
            for total in each:
                builder.store(ir.Constant(self.vector, None), total)
        with cgutils.for_range(builder, self.n_features) as loop:
            self._add_feature(loop.index, sums, vectors)
        for (_, row), each in zip(self.rows, sums, strict=True):
            start = self._element(self.out, row, slot)
            for v in vectors:
                builder.store(builder.load(each[v]), self._vector_at(start, v), align=self.align)

    def _add_feature(self, k, sums, vectors):
        builder = self.builder
        first = builder.mul(k, k.type(len(vectors) * self.lanes))
        start = builder.gep(self.panel.data, [builder.add(self.begin, first)])
        members = [builder.load(self._vector_at(start, v), align=self.align) for v in vectors]
        for (row, _), each in zip(self.rows, sums, strict=True):
            query = self._in_all_lanes(builder.load(self._element(self.x, row, k)))
            for total, member in zip(each, members, strict=True):
                product = builder.fmul(query, member, flags=FUSED)
                builder.store(builder.fadd(builder.load(total), product, flags=FUSED), total)

    def _element(self, array, row, column):
        """The address of an element of a matrix whose rows are contiguous."""
        step = cgutils.unpack_tuple(self.builder, array.strides, 2)[0]  # bytes from one row to the next
        start = self.builder.gep(self.builder.bitcast(array.data, cgutils.voidptr_t), [self.builder.mul(row, step)])
        return self.builder.gep(self.builder.bitcast(start, self.real.as_pointer()), [column])

    def _vector_at(self, start, v):
        address = self.builder.gep(start, [ir.IntType(64)(v * self.lanes)])
        return self.builder.bitcast(address, self.vector.as_pointer())

    def _in_all_lanes(self, value):
        lane, undefined = ir.IntType(32), ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, value, lane(0))
        return self.builder.shuffle_vector(first, undefined, ir.Constant(ir.VectorType(lane, self.lanes), None))
