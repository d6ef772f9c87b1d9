"""Solvers over a fixed set of examples."""

from streamsvm.batch import seeding as seeding
from streamsvm.batch import smo as smo
from streamsvm.batch.options import SolverOptions as SolverOptions
from streamsvm.batch.rows import RowStore as RowStore
from streamsvm.batch.ssvm import SmoothSVM as SmoothSVM

__all__ = ["RowStore", "SmoothSVM", "SolverOptions", "seeding", "smo"]
