"""The commands ``crossval`` and ``search``: they test settings on the labelled examples of a file.

`validate` is what they share, and `training_set` reads the file.
"""
