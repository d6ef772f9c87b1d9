"""The merger: it makes one model of those that the trainers of all partitions publish, and publishes it.

It may import the scorer's room and all lower ones, but not the labelling service or the report.  Start with `merger`,
the loop; `merging` makes one model of several snapshots.
"""
