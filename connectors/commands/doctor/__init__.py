"""The command ``doctor``: checks of the machine, of the state, and of the log and its newest records."""
