"""The exit codes of every command; docs/commands.md and SECURITY.md rely on these numbers."""

OK = 0
FAILED = 1  # anything that has no code of its own
BAD_CONFIG = 2  # a wrong configuration or wrong arguments, as argparse has it
DENIED = 3  # the broker refuses the user
BAD_DATA = 4  # a log, a snapshot or a checkpoint that cannot be used
STALLED = 70  # the process made no progress any more; EX_SOFTWARE in sysexits.h
TEMPORARY = 75  # a restart may mend it, such as a full disk
