"""The learners that users meet: river classifiers around the engine's arrays.

Start with `model` (the state of a learner), then `learning`.  `features` turns names into columns, `lasvm` and
`gap_family` have the algorithms, `learners` the table of their names, and `multiclass` combines them for several
classes.  `left_out` judges labelled examples by a model.  This room imports from core, batch, online and active.
"""
