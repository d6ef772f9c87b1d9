"""What all learners share: one plain state, functions that take it, and the public class that has it.

Start in `state`, then `learning`, which takes `examples`; `eviction` says which members make way for them, and
`validation` which examples are refused.  `finishing`, `forgetting`, `merging`, `snapshots` and `advice` have a verb
each.  `prediction` has what a model answers, `copies` how it is copied and saved, and `base` what learners of one model
and of several share.  `classifier` joins them into the base class of the algorithms.  Models that are made of several
begin in `sharing` and `composite`.
"""
