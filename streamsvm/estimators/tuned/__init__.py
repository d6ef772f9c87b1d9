"""`AutoLASVM`: a learner that chooses C, gamma and the window while it learns.

Start in `auto`.  `candidates` has the models that compete, and `waiting` the examples that some of them have still to
learn.  `tuner` decides between them, and `tuning` is the record of its decisions.
"""
