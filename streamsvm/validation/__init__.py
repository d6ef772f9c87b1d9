"""Honest numbers for a model: cross-validation, grids, and estimates while it learns.

`cross_validate`, `leave_one_out` and `grid_search` solve the model's problem exactly, by the batch solver;
`StreamingLOO` and `StreamingKFold` estimate the error of a model that is learning.  `AlwaysValidMean` compares two
models while they learn.  The room imports from core, batch,
online and metrics; it recognises learners by their attributes.  Start reading at `crossval.cross_validate`, then
`splits` (where each fold starts) or `streaming.wrapper`.
"""

from streamsvm.validation.always_valid import AlwaysValidMean
from streamsvm.validation.crossval import cross_validate, leave_one_out
from streamsvm.validation.grids.grid import Search
from streamsvm.validation.grids.multiclass import ClassSearch
from streamsvm.validation.grids.search import grid_search
from streamsvm.validation.held_out import folds
from streamsvm.validation.multiclass import ClassResult
from streamsvm.validation.results import Comparison, Result, compare
from streamsvm.validation.streaming import Estimate, Interval, StreamingKFold, StreamingLOO

__all__ = [
    "AlwaysValidMean",
    "ClassResult",
    "ClassSearch",
    "Comparison",
    "Estimate",
    "Interval",
    "Result",
    "Search",
    "StreamingKFold",
    "StreamingLOO",
    "compare",
    "cross_validate",
    "folds",
    "grid_search",
    "leave_one_out",
]
