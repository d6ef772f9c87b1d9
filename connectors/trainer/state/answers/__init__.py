"""What the trainer knows of the answers to its questions: `votes` counts them, `rechecks` asks doubtful ones again.

`hearing` repeats both for readers of the topic.  This room imports the engine and records only.
"""
