"""Numbers that several rooms mean: the largest integers, and units of time."""

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
