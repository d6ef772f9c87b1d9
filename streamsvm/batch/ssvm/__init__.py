"""The smooth support vector machine: the squared hinge loss, minimised by Newton's method.

Begin with `model`, the classifier `SmoothSVM`.  `newton` minimises, `systems` solves for its directions, and `removal`
has the minimum without some examples.  The room imports core and the batch rooms `newton` and `solution`.
"""
