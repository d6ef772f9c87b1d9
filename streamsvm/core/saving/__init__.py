"""Saving: a learner as bytes, and the checks that refuse damaged or hostile bytes.

`snapshot` is the container and `layout` its bytes.  `dumping` writes an expansion and reads it back, and `integrity`
proves what was read, with `faults`.  `scale` and `rows` prove a stored scale and stored examples.  `plain` writes and
proves records by the types of their fields.  The folder imports from core only.
"""
