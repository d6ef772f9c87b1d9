"""The commands of ``streamsvm``: one file a command, with its parser (`add_parser`) and its body (`run`) together.

This room may import every other one. Start in cli.py, which lists the commands and turns errors into exit codes; a new
command is a new file and one line in that list. What several commands share is in options.py (values of options),
long_running.py (commands that work until they are stopped), log_access.py and exit_codes.py.
"""
