"""Solvers over a fixed set of examples: SMO with warm starts, and the smooth SVM; imports core only.

Begin with `smo`, the solver: `solve` for users, `train` for rooms that bring their own boxes and starts.  `problem` has
the conditions of optimality, and `costs` what work costs.  From the bottom up: `kernels` (kernel values), `steps` (pair
steps and Newton steps), `working_set` (solvers in single precision), `multiclass` (pairs of classes), `path` and
`seeding` (from one solution to the start of the next).  `ssvm` is the smooth SVM.
"""

from streamsvm.batch import seeding as seeding
from streamsvm.batch import smo as smo
from streamsvm.batch.kernels.rows import RowStore as RowStore
from streamsvm.batch.options import SolverOptions as SolverOptions
from streamsvm.batch.solution import Solution as Solution
from streamsvm.batch.ssvm.model import SmoothSVM as SmoothSVM

__all__ = ["RowStore", "SmoothSVM", "Solution", "SolverOptions", "seeding", "smo"]
