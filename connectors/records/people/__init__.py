"""Questions to people and their answers: questions, labels in files and in a log, and figures about annotators.

Start in `questions`.  `votes` says which label several answers make together.  `label_history` reads the labels that a
log has, `label_files` those of files, and `annotators` compares the people who gave them.  The folder may import what
records may, and the engine's majority.
"""
