"""The warning of everything from which a model cannot learn well."""


class StreamWarning(UserWarning):
    """A stream from which the model cannot learn well: its features, its labels, or the model's parameters."""
