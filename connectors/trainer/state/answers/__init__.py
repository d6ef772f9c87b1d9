"""What the trainer knows of the answers to its questions: `votes` counts them, `rechecks` asks doubtful ones again.

This room imports the engine and records only.
"""
