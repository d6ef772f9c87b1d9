"""The scorer: it predicts events with the newest models that trainers publish, and learns nothing.

It may import the trainer's rooms and all lower ones, but not the labelling service or the report.  Start with `scorer`,
the loop; `committee` has the models that it predicts with.
"""
