"""The exact path from one solution to the next, when examples leave and enter.

Begin with `follow`.  `events` finds where a piece of the path ends, and `factor` solves the equations of a piece.
The folder imports `kernels`.
"""
