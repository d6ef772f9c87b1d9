"""Steps towards a solution: along pairs of examples, along conjugate directions, and of Newton's method.

Begin with `pairs`.  `conjugate` and `newton` take fewer and larger steps.  The folder imports `kernels` and `problem`.
"""
