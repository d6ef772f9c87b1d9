"""Cross-validation and the choice of parameters for the batch solvers."""

from streamsvm.validation import folds as folds
from streamsvm.validation import smooth as smooth
from streamsvm.validation.crossval import Comparison as Comparison
from streamsvm.validation.crossval import Result as Result
from streamsvm.validation.crossval import compare as compare
from streamsvm.validation.crossval import cross_validate as cross_validate
from streamsvm.validation.crossval import leave_one_out as leave_one_out
from streamsvm.validation.search import Search as Search
from streamsvm.validation.search import grid_search as grid_search
from streamsvm.validation.streaming import StreamingKFold as StreamingKFold
from streamsvm.validation.streaming import StreamingLOO as StreamingLOO

__all__ = [
    "Comparison",
    "Result",
    "Search",
    "StreamingKFold",
    "StreamingLOO",
    "compare",
    "cross_validate",
    "folds",
    "grid_search",
    "leave_one_out",
    "smooth",
]
