"""The trainer: it consumes events and labels, predicts, learns, and publishes models.

It may import the lower rooms (runtime, logs, records, settings) and its own `state`; the scorer, the labelling service
and the report build on it.  Start with `trainer`, the loop over the partitions; then `partition`, which consumes cuts,
and `processing`, which says what is done with a cut.
"""
