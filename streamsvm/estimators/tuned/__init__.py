"""`AutoLASVM`: a learner that chooses C, gamma and the window while it learns.

Start in `auto`.  `candidates` has the models that compete, `tuner` decides between them, and `tuning` is the record of
its decisions.  `plain_state` turns that record into numbers and text for a snapshot.
"""
