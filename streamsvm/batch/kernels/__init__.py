"""Where kernel values come from: rows on demand in float64, and matrices in float32.

Begin with `rows`, the kernel rows of a training set, kept in `cache` while they fit.  In single precision, `features`
computes the values of some examples with others, `matrix` those of all examples for one gamma after another, and
`given` has a matrix that exists already.  `square` copies values out of a matrix.  The folder imports core only.
"""
