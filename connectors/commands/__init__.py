"""The commands of ``streamsvm``: one file a command, whose `run` does the work.

This room may import every other one. Start in cli.py, which lists the commands; a new command is a new file, a function
in `arguments` that says what it takes, and one line in that list. A command that needs several files has a folder:
`demos`, `doctor`, `replays` (dead letters and replays) and `tuning` (crossval and search). What all commands share is
in `shared`; its `errors` turns errors into exit codes.
"""
