"""More than two classes: `OneVsRest` and `OneVsOne`, made of one model for each class or each pair.

Start in `one_vs_rest`, which has `OneVsRest` and what both are to their users; `one_vs_one` has `OneVsOne`.
`binary_models` has the models, `learning` how they learn, `joint` how all of them do in one call, and `forgetting` how
they are optimised, and how examples leave and labels are corrected.  `tuned_classes` has models that tune themselves.
"""
