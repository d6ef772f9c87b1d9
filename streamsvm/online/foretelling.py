"""What a model says of each example of a block just before it learns it: test, then train, in one call.

======== ============================================================ ================
symbol   name                                                         shape, dtype
======== ============================================================ ================
before   f(x) of each example, the sigmoid, and the threshold, all    (B, BEFORE)
         from before the example was learned                          float64
======== ============================================================ ================
"""

import numpy as np

from streamsvm.core.compiling._jit import compiled
from streamsvm.core.expansion import SLOTS
from streamsvm.online.arrival import example_of, has_room, learn_query, row_of_block, store_raw_of
from streamsvm.online.outputs.calibration import CUT, RUN

MARGIN, SIGMOID, THRESHOLD = 0, slice(1, 1 + RUN), 1 + RUN  # columns of `before`
BEFORE = 2 + RUN


@compiled
def foretell_block(s, kernel, rule, block, own_ids, P, G, mapped, calibration, limit, margins, before):
    """`learn_block` that also notes what the model says of each example before it learns it."""
    first = s.counts[SLOTS]
    arrivals = np.empty(block.sq.shape[0], np.int64)
    for t in range(block.sq.shape[0]):
        e = example_of(block, t)
        if not has_room(s, e, limit):
            return t
        row_of_block(s, kernel, e.indices, e.values, e.sq, P, G, mapped, arrivals, t, first)
        for k in range(RUN):
            before[t, 1 + k] = calibration[k]
        before[t, THRESHOLD] = calibration[CUT]
        margins[t], slot = learn_query(rule, s, kernel, e, own_ids, calibration)
        before[t, MARGIN] = margins[t]
        if slot >= 0:
            arrivals[slot - first] = t
            store_raw_of(s, slot, block, t)
    return block.sq.shape[0]
