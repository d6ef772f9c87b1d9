"""The quality of the model: `observe` for two classes, with the history and the drift; `multiclass` for more classes.

This room imports the engine, river's metrics and records only.
"""
