"""What work costs on one core: the measured times by which core, online and validation choose between two ways.

Measured on one core of 2.6 GHz with AVX-512, as the smallest of several runs (`benchmarks/pieces.py`).  Only ratios
count.  Both ways reach the same end, and where a number that is twice or half as large changes the choice, both take
about equally long.  No clock is asked, so that a stream that is learned again has the same model and the same
estimates.  `batch` has the times of its solvers.
"""

FIRST_LEVEL, SECOND_LEVEL = 32 << 10, 1 << 20  # bytes of the caches that most processors have

# Nanoseconds of a prediction: of a kernel value, of a product of two numbers in it, of a number of a table.
VALUE, PRODUCT, ENTRY = 0.7, 0.015, 0.5
LISTING = 10  # visits to a member's feature that is not listed, for which it can be listed
TASK = 62_500.0  # nanoseconds for which a thread gets a task and hands its result back: eight tasks take 500 us
FEW_FEATURES = 64  # of an example: for fewer, what it costs anyway decides between two ways to sort, keep or send them
PAIR = 20.0  # nanoseconds that a pair of examples costs a grid for one gamma, at least

SECONDS_PER_CUBE = 0.02e-9  # of the factor of a matrix, for each cube of a member

# Seconds of models that learn and are estimated meanwhile; see `validation.streaming.cost`.
LEARNED, PER_MEMBER = 8e-6, 8e-9  # of an example, 4e-6 in a batch and 18e-6 alone; and more of it for each member
COPIED, REMEMBERED = 1.5e-3, 1e-6  # of a copy of a model, and of each remembered example beside its members
SOLVED = 3e-9  # of a kernel value of a copy, with the steps that go over its members
REMOVED = 2e-4  # of a removal, without its steps
