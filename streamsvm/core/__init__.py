"""What every other room of the engine stands on: kernels, the kernel expansion, devices, snapshots, checked input.

It imports numpy, scipy, threadpoolctl (in `threads` only), numba (in `compiling` only) and CuPy (in `device.gpu` only),
and nothing of streamsvm.
Begin with `expansion`, whose symbol table names the arrays of a model; `rows` computes its kernel rows, `storage` makes
room.  `kernels` has all formulas, `inputs` and `arguments` check what users give, `saving.snapshot` is the file format.
"""
