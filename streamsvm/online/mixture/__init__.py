"""Prediction with expert advice: a kernel learner, simple experts beside it, and one probability made of all.

`experts` begins: what predicts and learns one record.  `linear` and `pairs` are experts that compiled code learns;
`spans` evaluates one that is fitted elsewhere.  `advice` makes one probability of those of all experts.  The folder
imports `core` only.
"""
