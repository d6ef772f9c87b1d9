"""Many problems over the same examples, on one kernel matrix: the folds and the values of C of a grid.

Begin with `series`, which solves one problem after another.  `matrix` makes the kernel matrices of all gammas.
"""
