"""Estimates of a model's error while it learns.

`wrapper` has what both wrappers share: it learns, remembers examples, and decides when an estimate is due.  `loo` and
`kfold` make the estimates, `cost` says what these cost, `estimates` holds what they return, `memory` the examples.  The
room imports from core, online, metrics and `streamsvm.validation.scores`.  Start reading at
`wrapper.StreamingEstimate.learned`.
"""

from streamsvm.validation.streaming.estimates import Estimate, Interval
from streamsvm.validation.streaming.kfold import StreamingKFold
from streamsvm.validation.streaming.loo import StreamingLOO

__all__ = ["Estimate", "Interval", "StreamingKFold", "StreamingLOO"]
