"""What several commands share; it imports no command.

`options` has values of options, `exit_codes` the codes, `long_running` what a command needs that works until it is
stopped, `log_access` the reading of a range of a log, and `tables` the files that commands write.
"""
