"""What several commands share; it imports no command.

`configuration` reads the settings, and `long_running` has what a command needs that works until it is stopped.
`log_access` makes records durable, `labels_in` places the labels of a file, and `tables` writes files.
"""
