"""Questions to people and their answers: questions, labels in files and in a log, and figures about annotators.

Start in `questions`.  `label_history` reads the labels that a log has, `label_files` those of files, and `annotators`
compares the people who gave them.  The folder may import what records may.
"""
