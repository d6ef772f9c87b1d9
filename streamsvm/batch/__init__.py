"""Solvers over a fixed set of examples: SMO with warm starts, and the smooth SVM; imports core only.

Begin with `smo`, the solver: `solve` for users, `train` for rooms that bring their own boxes and starts.  It stands on
`cache` and `rows` (kernel rows), `steps` (pair steps) and `newton` (steps on the free set).  `seeding` and `path` turn
one solution into the start of the next; `ssvm` is the smooth SVM.  In single precision, `chunks` solves over whole
training sets, and `gram` many problems on one kernel matrix.
"""

from streamsvm.batch import seeding as seeding
from streamsvm.batch import smo as smo
from streamsvm.batch.options import SolverOptions as SolverOptions
from streamsvm.batch.rows import RowStore as RowStore
from streamsvm.batch.solution import Solution as Solution
from streamsvm.batch.ssvm.model import SmoothSVM as SmoothSVM

__all__ = ["RowStore", "SmoothSVM", "Solution", "SolverOptions", "seeding", "smo"]
