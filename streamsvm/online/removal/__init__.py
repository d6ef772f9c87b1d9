"""Taking examples out of a solution: on request, by window or budget, and for leave-one-out.

Start in `forget`, which removes one example exactly.  `bounded` keeps a learner within a budget, `window` within a
window, and `leave_one_out` solves the problem without each example in turn.  `tracked_values` follows the decision
values of examples that are no members, and tells which ones a removal uncovers.  The folder imports from core, batch
and online.
"""
