"""Estimates of a model's error while it learns.

`wrapper` has what both wrappers share: it learns, remembers examples, and finds the time for an estimate.  `loo` and
`kfold` make the estimates, `estimates` holds what they return, `memory` the examples.  The room imports from core,
online, metrics and `streamsvm.validation.scores`.  Start reading at `wrapper.StreamingEstimate.learned`.
"""

from streamsvm.validation.streaming.kfold import StreamingKFold as StreamingKFold
from streamsvm.validation.streaming.loo import StreamingLOO as StreamingLOO

__all__ = ["StreamingKFold", "StreamingLOO"]
