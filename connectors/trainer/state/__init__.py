"""What a trainer knows between two cuts, and how it survives a kill.

It may import records, logs, settings and runtime, but nothing of the trainer's loop.  Start with `state`, which lists
the parts: models, join, labelling, estimates, metrics.  `checkpoint` and `journal` are the files; `stored_state` reads
the state folder of a trainer that may be running.  ``test_old_state`` loads a folder of version 0.1.0.
"""
