"""Several models over one set of columns: `OneVsRest`, and what it shares with the tuned learner.

Start in `multiclass`.  `class_models` has the models of all classes, and `tuned_classes` those that tune themselves.
`shared` has the columns and rows that models share.
"""
