"""The problems of all pairs of several classes.

Begin with `class_pairs`.  Pairs with few examples have one compiled loop, `small_pairs`; the others are solved by
`working_set.solver`.
"""
