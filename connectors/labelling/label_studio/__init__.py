"""Label Studio as a front end: its project shows the trainer's questions, and its annotations are the answers.

project.py keeps questions and tasks together; start reading there. tasks.py makes tasks of questions, and
annotations.py makes answers of annotations. api.py calls Label Studio's REST API, server.py is
called by Label Studio, and interface.py reads a project's labelling interface. This room imports what the room above
it, labelling, may import.
"""
