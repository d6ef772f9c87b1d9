"""What all learners share: their state, and what a user can do with it.

Start in `model`, then `learning`, which takes `examples`; `leaving` says which members make way for them.  Each other
file adds one ability: `prediction`, `forgetting`, `rechecking`, `snapshots`, `copies` and `advice`.
`classifier` joins them into the base class of the algorithms.
"""
