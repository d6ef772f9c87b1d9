"""The learners that users meet: river classifiers around the engine's arrays.

Start with `learner` (the state of a learner, and what is done with it).  `inputs` turns names into columns, `lasvm` and
`gap_family` have the algorithms, `learners` the table of their names.  `tuned` has the learner that tunes itself, and
`multiclass` combines learners for several classes.  `leave_one_out` judges labelled examples by a model.  This room
imports from core, batch, online and active.
"""
