"""The trainer: it consumes events and labels, predicts, learns, and publishes models.

It may import the lower rooms (runtime, logs, records, settings) and its own `state`; the scorer, the labelling service
and the report build on it.  Start with `trainer`, the loop over the partitions; then `partition`, which consumes cuts,
and `processing`, which says what is done with a cut.  Of the tests beside `test_trainer`, some try the whole room:
``test_several_classes``, ``test_rare_class``, ``test_damage``, ``test_registry_away`` and ``test_storm``.
"""
