"""More than two classes: `OneVsRest` and `OneVsOne`, made of one model for each class or each pair.

Start in `several`, which has what both are to their users; `one_vs_rest` and `one_vs_one` have what is their own.
`binary_models` has the models, `learning` how they learn, `joint` how all of them do in one call, and `forgetting` how
they are optimised, and how examples leave and labels are corrected.  `tuned_classes` has models that tune themselves.
"""
