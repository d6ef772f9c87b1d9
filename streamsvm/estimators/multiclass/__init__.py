"""Several models over one set of columns: `OneVsRest` and `OneVsOne`, and what they share with the tuned learner.

Start in `multiclass`, which has `OneVsRest` and what both are to their users; `one_vs_one` has `OneVsOne`.
`class_models` has the models, `lessons` how they learn, and `afterwards` how examples leave and labels are corrected.
`tuned_classes` has models that tune themselves.  `shared` has the columns and rows that models share.
"""
