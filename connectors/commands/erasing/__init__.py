"""The commands by which a person's records leave the models: ``erase``, and what proves that they have left.

`subjects` finds the records of a person in the log.  The trainer does the rest: see `trainer.erasing`.
"""
