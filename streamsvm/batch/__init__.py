"""Solvers over a fixed set of examples: SMO with warm starts, and the smooth SVM; imports core only.

Begin with `smo`, the solver: `solve` for users, `train` for rooms that bring their own boxes and starts.  `problem` has
the conditions of optimality, and `costs` what work costs.  From the bottom up: `kernels` (kernel values), `steps` (pair
steps and Newton steps), `working_set` (solvers in single precision), `multiclass` (pairs of classes), `path` and
`seeding` (from one solution to the start of the next).  `ssvm` is the smooth SVM.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from streamsvm.batch import seeding, smo
    from streamsvm.batch.kernels.rows import RowStore
    from streamsvm.batch.options import SolverOptions
    from streamsvm.batch.solution import Solution
    from streamsvm.batch.ssvm.model import SmoothSVM

__all__ = ["RowStore", "SmoothSVM", "Solution", "SolverOptions", "seeding", "smo"]

_HOMES = {  # A name is imported with its first use: learners need `problem` only, and the others load scipy.
    "RowStore": "kernels.rows",
    "SolverOptions": "options",
    "Solution": "solution",
    "SmoothSVM": "ssvm.model",
}

if not TYPE_CHECKING:

    def __getattr__(name):
        """A public name, or one of the solvers' files; imported now."""
        if name in _HOMES:
            return getattr(_import_module(f"streamsvm.batch.{_HOMES[name]}"), name)
        if name in __all__:
            return _import_module(f"streamsvm.batch.{name}")
        raise AttributeError(f"module 'streamsvm.batch' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
