"""The solver to the optimum: it learns the examples in growing chunks, then looks for the ones that still violate.

Begin with `solver`, which says how.  It stands on `features` (examples and products of their kernel values with
coefficients) and `members` (the kernel matrix of the examples that are being solved for).  `pairs` solves the problems
of all pairs of several classes, the small ones by `pair_steps`.  `given` takes the place of `features` where the kernel
matrix is there already.
"""
