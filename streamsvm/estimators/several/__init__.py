"""Several models over one set of columns: `OneVsRest`, and what it shares with the tuned learner.

Start in `multiclass`.  `class_models` has the model of one class, and `shared` the columns and rows that models share.
"""
