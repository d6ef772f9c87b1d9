"""The labelling service: the trainer's questions, the annotators' answers, and the ways to answer.

This room may import the engine's active, trainer, settings, records, logs and runtime; it imports neither commands nor
report nor scorer. Start in service.py: it guards the questions and answers of book.py, which follower.py reads and
writer.py writes. Front ends are the page in web/, terminal/, oracles.py and label_studio/.
"""
