"""Compilation: what turns a plain function into a compiled one, and keeps the machine code between runs.

Start in `_jit`, which has the decorator.  `_target` says which processor code is for, `_cache` finds the folder of
compiled code, and `_archive` the code that a wheel brings.  `_simd` has the loops for wide processors, `_tiles` a tile
of a matrix product, `_reference` borrows a NamedTuple's arrays, and `_dispatch` finds the code for some arguments.
Only core, batch and online import from here.
"""
