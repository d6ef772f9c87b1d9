"""Kernel values on a GPU, for blocks of queries and for training sets; imports from the rest of core only.

Begin with `evaluator` (a model's blocks of kernel values, from the CPU or a device) and `gram` (those of a training
set).  `choice` picks the device and gives it up when it fails; `gpu` holds everything that knows CuPy.
"""
