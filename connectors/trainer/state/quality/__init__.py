"""The quality of the model: `prequential` for two classes, with the history and the drift; `multiclass` for more.

This room imports the engine, river's metrics and records only.
"""
