"""Working sets that violators join: the optimum in single precision, over more examples than steps could look at.

Begin with `solver`, which learns the examples in growing chunks, then looks for the ones that still violate.
`members` has the kernel matrix of the working set, and takes the steps.  `series` solves many problems over the same
examples, such as the folds of a grid.  `single_precision` makes starts for `smo`, in double precision.
"""
