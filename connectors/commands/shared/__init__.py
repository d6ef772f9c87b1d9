"""What several commands share; it imports no command.

`configuration` reads the settings, `options` has values of options, `exit_codes` the codes, and `long_running` what a
command needs that works until it is stopped. `log_access` makes records durable, `labels_in` places the labels of a
file, and `tables` writes files.
"""
