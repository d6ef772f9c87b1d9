"""The smooth support vector machine: the squared hinge loss, minimised by Newton's method.

Begin with `model`, the classifier `SmoothSVM`.  `newton` minimises, `systems` solves for its directions, and `removal`
has the minimum without some examples.  The folder imports core, and the names of `solution`.
"""
