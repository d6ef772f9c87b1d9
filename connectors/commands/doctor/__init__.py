"""The command ``doctor``: checks of the machine, the state, other services, and the log with its newest records."""
